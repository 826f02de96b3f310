"""Several tables of runs, none of which says when they were: what one spent is not another instrument of the other."""

from joulebook_pipelines import config, open_store, run

TABLES = {
    "bert": [(20, 1000.0), (21, 1080.0), (22, 1160.0)],
    "gpt": [(20, 1000.0), (25, 1030.0)],
    "resnet": [(20, 1000.0), (21, 1050.0), (40, 1100.0)],
}


def _table(name):
    rows = (f"{name}-{i},{8 << i},{energy},{seconds}" for i, (seconds, energy) in enumerate(TABLES[name]))
    return "run,batch_size,energy_j,duration_s\n" + "\n".join(rows) + "\n"


def test_each_run_has_the_energy_of_its_own_row(study_folder, tmp_path):
    sources = "".join(f'[[source]]\npath = "{n}.csv"\nscope = "node"\n' for n in TABLES)
    folder = study_folder({f"{n}.csv": _table(n) for n in TABLES}, f'[study]\ntimezone = "UTC"\n{sources}')
    result = run.analyse(config.load(folder), tmp_path / "out")
    with open_store(result.store) as store:
        runs = store.aligned_runs()
        energies = store.results().filter(metric="energy_j", device="", phase="")
        codes = set(store.findings()["code"])
    assert dict(energies.select("run_id", "value").iter_rows()) == {
        f"{name}-{i}": energy for name, rows in TABLES.items() for i, (_, energy) in enumerate(rows)
    }
    assert (runs["start_utc"].slice(1) >= runs["end_utc"].slice(0, runs.height - 1)).all()
    assert not codes & {"sources-disagree", "device-in-several-files"}
