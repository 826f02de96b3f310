# One set-up for every target: .venv is built from pinned versions and rebuilt when they change.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# The matrices are small: threads of the algebra library only wait for each other beside processes.
export OPENBLAS_NUM_THREADS = 1
# Compiled modules are kept, whatever the machine says: each of many short processes starts half a second sooner.
export PYTHONDONTWRITEBYTECODE =

.PHONY: report samples notebooks test test-code test-notebooks lint bench scores sample docs clean
.DEFAULT_GOAL := report

$(READY): constraints.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m compileall -q analysis pipelines
	$(BIN)/python -m joulebook_pipelines.loops
	touch $@

report: $(READY) ## run the main job on the sample study and say where the report lies
	$(BIN)/joulebook run sample_data/node -o out/node

test: $(READY) ## everything that must hold, in under three minutes
	@$(MAKE) --no-print-directory -j3 --output-sync=target test-code test-notebooks lint

# Processes side by side want the cores for themselves: threads of frames of some rows only wake each other.
test test-code test-notebooks: export POLARS_MAX_THREADS = 1

# Side by side, because each waits now and then: for a kernel, a browser, a worker that is killed.
test-code: $(READY)
	$(BIN)/python -m pytest -n auto --dist worksteal -p no:nbval

test-notebooks: samples
	$(BIN)/python -m pytest -n auto --dist loadfile -p no:cacheprovider --nbval-lax --nbval-sanitize-with tests/nbval_sanitize.cfg notebooks

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyrefly check --python-interpreter-path $(BIN)/python --output-format min-text
	$(BIN)/lint-imports

scores: $(READY) ## accuracy against known truth, minutes long; writes docs/accuracy.md
	$(BIN)/python -m pytest tests/scores -m score -n auto; failed=$$?; $(BIN)/python -m joulebook_pipelines.accuracy out/scores docs/accuracy.md; exit $$failed

bench: $(READY) ## speed as ratios measured side by side; writes docs/speed.md
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pandas
	$(BIN)/python -m pytest tests/benchmarks -m bench -s -p no:xdist

samples: samples-node samples-sweep samples-campaign ## analyse the sample studies, without notebooks and pages

samples-%: $(READY)
	@$(BIN)/joulebook run sample_data/$* -o out/$* --no-report --quiet >/dev/null

notebooks: samples ## execute the notebook templates on the samples and keep their text outputs
	$(BIN)/python -m joulebook_pipelines.notebooks_kept notebooks

sample: $(READY) ## make sample_data again from the simulator
	$(BIN)/python -m joulebook_pipelines.sample sample_data

docs: $(READY) ## make the reference pages again from the code
	$(BIN)/python -m joulebook_pipelines.reference docs
	$(BIN)/python -m joulebook_pipelines.documentation docs sample_data/node

clean:
	rm -rf $(VENV) out dist .ruff_cache .pytest_cache
