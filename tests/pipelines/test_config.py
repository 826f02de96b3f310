"""study.toml: what it accepts, what it refuses and how it says so, and which files a study has."""

import datetime as dt
import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joulebook_pipelines import config, config_files, config_names, config_reference, config_text
from joulebook_pipelines.logs import cells

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = REPOSITORY.parent / "shared"


def write(folder: Path, text: str, *files: str) -> Path:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x\n")
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return folder


def refused(folder: Path, text: str, *files: str, **options: tuple[str, ...]) -> str:
    with pytest.raises(config.ConfigError) as error:
        config.load(write(folder, text, *files), **options).sources_resolved()
    assert str(folder) in str(error.value)
    return str(error.value)


def names(study: config.Study) -> list[str]:
    return [source.name for source in study.sources_resolved()]


LOCAL = '[[run]]\nid = "r"\nstart = 2026-01-01T08:00:00\nend = 2026-01-01T09:00:00'
RUN = 'id = "r"\nstart = 2026-01-01T00:00:00Z\nend = 2026-01-01T01:00:00Z\n'


class TestWhatIsRead:
    def test_contract_example(self, tmp_path):
        text = """
        [study]
        name = "node7-resnet"
        timezone = "Asia/Shanghai"
        reference_clock = "node7"
        [site]
        pue = 1.3
        carbon_kg_per_kwh = 0.581
        price_per_kwh = 0.12
        currency = "USD"
        [model]
        parameters = 7e9
        layers = 32
        hidden = 4096
        sequence_length = 4096
        peak_flops_per_device = 989e12
        [devices]
        tdp_w = 700
        [[source]]
        path = "logs/gpu*.csv"
        adapter = "nvidia-smi-csv"
        host = "node7"
        clock = "node7"
        scope = "node"
        timezone = "UTC"
        columns = { time = "Zeit", power_w = "P_ges" }
        devices = ["gpu:0", "gpu:1"]
        [[run]]
        id = "bs128-r1"
        start = 2026-11-01T08:00:00Z
        end = 2026-11-01T09:00:00Z
        host = "node7"
        labels = { variant = "baseline", repeat = 1 }
        batch_size = 128
        tokens = 1.2e9
        tokens_to_target = 6.1e9
        [[sweep]]
        name = "batch"
        knob = "batch_size"
        runs = "bs*"
        scope = "board"
        target_loss = 2.5
        [[campaign]]
        name = "november"
        scope = "rack"
        metric = "energy_per_token_j"
        order = ["baseline", "data-pipeline", "placement"]
        """
        study = config.load(write(tmp_path, text, "logs/gpu10.csv", "logs/gpu2.csv"), adapters=("nvidia-smi-csv",))
        assert study.name == "node7-resnet"
        assert study.devices.tdp_w == 700.0
        assert study.runs[0].labels == {"variant": "baseline", "repeat": 1}
        assert study.runs[0].start == dt.datetime(2026, 11, 1, 8, tzinfo=dt.UTC)
        assert study.campaigns[0].order == ("baseline", "data-pipeline", "placement")
        first, second = study.sources_resolved()
        assert (first.name, second.name) == ("logs/gpu2.csv", "logs/gpu10.csv")
        assert first.options.columns == {"time": "Zeit", "power_w": "P_ges"}
        assert (first.host, first.clock, first.options.timezone) == ("node7", "node7", "UTC")

    @pytest.mark.parametrize("file", sorted(SHARED.glob("*/*/study.toml")), ids=lambda p: p.parent.name)
    def test_studies_at_hand(self, file):
        study = config.load(file.parent)
        assert study == config.load(file)
        assert all(s.path.is_file() for s in study.sources_resolved())

    def test_the_file_itself_or_its_folder(self, tmp_path):
        write(tmp_path, "")
        assert config.load(tmp_path) == config.load(tmp_path / "study.toml")

    def test_is_frozen(self, tmp_path):
        study = config.load(write(tmp_path, "[site]\npue = 1.2"))
        with pytest.raises(ValueError, match="frozen"):
            study.site.pue = 1.0

    def test_byte_order_mark_and_crlf(self, tmp_path):
        (tmp_path / "study.toml").write_bytes(b'\xef\xbb\xbf[study]\r\nname = "x"\r\n')
        assert config.load(tmp_path).name == "x"

    def test_name_is_the_folder_s(self, tmp_path):
        assert config.load(write(tmp_path, "")).name == tmp_path.name

    def test_recomputation_has_two_spellings(self, tmp_path):
        found = [
            config.load(write(tmp_path, f"[model]\nrecomputation = {word}")).model.recomputation
            for word in ("true", "false", '"full"', '"none"')
        ]
        assert found == ["full", "none", "full", "none"]

    def test_columns_by_position(self, tmp_path):
        text = '[[source]]\npath = "a"\ncolumns = { time = 1, power_w = 5 }'
        (source,) = config.load(write(tmp_path, text, "a")).sources_resolved()
        assert source.options.columns == {"time": "1", "power_w": "5"}

    def test_zone_of_a_source(self, tmp_path):
        text = """
        study.timezone = "Asia/Shanghai"
        [[source]]
        path = "a"
        [[source]]
        path = "b"
        timezone = "UTC"
        [[source]]
        path = "c"
        utc_offset_s = 3600
        """
        a, b, c = (s.options for s in config.load(write(tmp_path, text, "a", "b", "c")).sources_resolved())
        assert (a.timezone, b.timezone, c.timezone) == ("Asia/Shanghai", "UTC", None)
        assert c.utc_offset_s == 3600.0

    def test_counter_range_of_all_or_one(self, tmp_path):
        text = 'devices.energy_counter_range_j = 10\n[[source]]\npath = "a"\n[[source]]\npath = "b"\nrange_j = 7'
        ranges = [s.options.range_j for s in config.load(write(tmp_path, text, "a", "b")).sources_resolved()]
        assert ranges == [10.0, 7.0]

    def test_host_of_a_run_is_the_only_one(self, tmp_path):
        text = f'[[source]]\npath = "a"\nhost = "n7"\n[[run]]\n{RUN}'
        assert config.load(write(tmp_path, text, "a")).runs[0].host == "n7"
        assert config.load(write(tmp_path, f"[[run]]\n{RUN}")).runs[0].host == "node"

    def test_carbon_by_hour(self, tmp_path):
        study = config.load(write(tmp_path, '[site]\ncarbon_kg_per_kwh = "grid.csv"', "grid.csv"))
        assert study.beside(str(study.site.carbon_kg_per_kwh)).is_file()

    def test_knob_may_be_a_label(self, tmp_path):
        text = f'[[run]]\n{RUN}labels = {{ depth = 3 }}\n[[sweep]]\nname = "d"\nknob = "depth"'
        assert config.load(write(tmp_path, text)).sweeps[0].knob == "depth"
        text = '[[sweep]]\nname = "d"\nknob = "labels.depth"'
        assert config.load(write(tmp_path, text)).sweeps[0].scope == "board"


class TestTimes:
    def test_local_time_is_the_study_s(self, tmp_path):
        text = 'study.timezone = "Asia/Shanghai"\n'
        assert config.load(write(tmp_path, text + LOCAL)).runs[0].start == dt.datetime(2026, 1, 1, 0, tzinfo=dt.UTC)

    def test_offset_is_kept(self, tmp_path):
        text = '[[run]]\nid = "r"\nstart = 2026-01-01T08:00:00+08:00\nend = 2026-01-01T00:30:00Z'
        run = config.load(write(tmp_path, text)).runs[0]
        assert run.end - run.start == dt.timedelta(minutes=30)

    def test_local_time_without_zone(self, tmp_path):
        text = '[[run]]\nid = "r"\nstart = 2026-01-01T08:00:00\nend = 2026-01-01T09:00:00Z'
        message = refused(tmp_path, text)
        assert "run[1].start = 2026-01-01T08:00:00 has no offset from UTC" in message
        assert "study.timezone" in message

    @pytest.mark.parametrize(
        ("start", "why"), [("2026-03-29T02:30:00", "does not exist"), ("2026-10-25T02:30:00", "exists twice")]
    )
    def test_doubtful_local_hours(self, tmp_path, start, why):
        text = f'study.timezone = "Europe/Berlin"\n[[run]]\nid = "r"\nstart = {start}\nend = 2027-01-01T00:00:00Z'
        assert f"run[1].start = {start} {why} in Europe/Berlin" in refused(tmp_path, text)

    def test_wrong_zone_is_told_once(self, tmp_path):
        text = 'study.timezone = "Berlin/Europe"\n'
        assert len(refused(tmp_path, text + LOCAL).splitlines()) == 1


CAMPAIGN = '[[campaign]]\nname = "c"\nscope = "node"\n'
ERRORS = {
    "unknown key": ('[study]\ntimezon = "UTC"', ["line 2: study.timezon is not", 'did you mean "timezone"']),
    "unknown section": ("[sites]\n", ["line 1: sites is not a known key", 'did you mean "site"']),
    "zone": ('study.timezone = "Asia/Shanghia"', ['study.timezone = "Asia/Shanghia"', 'did you mean "Asia/Shanghai"']),
    "zone by city": ('study.timezone = "shanghai"', ['did you mean "Asia/Shanghai"']),
    "zone as offset": ('[[source]]\npath = "a"\ntimezone = "+08:00"', ["line 3: source[1].timezone", "utc_offset_s"]),
    "pue": ("[site]\npue = 0.9", ["line 2: site.pue = 0.9 must be at least 1"]),
    "negative carbon": ("[site]\ncarbon_kg_per_kwh = -1", ["site.carbon_kg_per_kwh = -1.0 must be at least 0"]),
    "missing file": ('[site]\nprice_per_kwh = "prise.csv"', ["site.price_per_kwh", 'did you mean "price.csv"']),
    "neither number nor file": ("[site]\nprice_per_kwh = true", ["must be a number, or the name of a CSV file"]),
    "text for a number": ('[devices]\ntdp_w = "700"', ['devices.tdp_w = "700" must be a number']),
    "infinite": ("[model]\nparameters = inf", ["model.parameters = inf must be a finite number"]),
    "fraction": ("[model]\nlayers = 1.5", ["model.layers = 1.5 must be a whole number"]),
    "scope": ('[[source]]\npath = "a"\nscope = "nod"', ['source[1].scope = "nod"', 'did you mean "node"', "facility"]),
    "column": (
        '[[source]]\npath = "a"\n[[source]]\npath = "b"\ncolumns = { powr_w = "P" }',
        ["line 5: source[2].columns.powr_w is not a known column", 'did you mean "power_w"'],
    ),
    "unit": ('[[source]]\npath = "a"\nunits = { power_w = "kWh" }', ['source[1].units.power_w = "kWh"', "W, kW"]),
    "unit of text": ('[[source]]\npath = "a"\nunits = { device = "W" }', ['units.device = "W" has no unit']),
    "sign": ('[[source]]\npath = "a"\nsign = 2', ["source[1].sign = 2 must be 1 or -1"]),
    "contradiction": ('[[source]]\npath = "a"\ntimezone = "UTC"\nutc_offset_s = 0', ["utc_offset_s = 0.0 contradicts"]),
    "one sign for two": ('[[source]]\npath = "a"\ndelimiter = ","\ndecimal = ","', ["decimal", "is the delimiter"]),
    "device twice": ('[[source]]\npath = "a"\ndevices = ["gpu:0", "gpu:0"]', ["source[1].devices", "twice"]),
    "missing key": ('[[run]]\nid = "r"', ["run[1].start is missing; needed here: id, start, end"]),
    "end before start": (
        '[[run]]\nid = "r"\nstart = 2026-01-01T01:00:00Z\nend = 2026-01-01T00:00:00Z',
        ["line 4: run[1].end = 2026-01-01T00:00:00Z is not after start (2026-01-01T01:00:00Z)"],
    ),
    "time in quotes": ('[[run]]\nid = "r"\nstart = "2026"\nend = 2026-01-01', ["run[1].start", "run[1].end"]),
    "duplicate run": (f"[[run]]\n{RUN}[[run]]\n{RUN}", ['line 6: run[2].id = "r" is taken by run[1]']),
    "label": (f"[[run]]\n{RUN}labels = {{ a = [1] }}", ["run[1].labels.a = [1] must be text, a number"]),
    "knob": ('[[sweep]]\nname = "s"\nknob = "batch_sise"', ['line 3: sweep[1].knob = "batch_sise"', '"batch_size"']),
    "metric": (f'{CAMPAIGN}order = ["a", "b"]\nmetric = "energy"', ['campaign[1].metric = "energy"', '"energy_j"']),
    "campaign of one": (f'{CAMPAIGN}order = ["a"]', ["campaign[1].order", "too few"]),
    "part is not summed": ('[[sweep]]\nname = "s"\nknob = "batch_size"\nscope = "part"', ['sweep[1].scope = "part"']),
    "clock": ('[study]\nreference_clock = "metre"\n[[source]]\npath = "a"\nclock = "meter"', ["line 2: ", '"meter"']),
    "host": (f'[[source]]\npath = "a"\nhost = "node7"\n[[run]]\n{RUN}host = "nod7"', ["run[1].host", '"node7"']),
    "which host": (f'[[source]]\npath = "a"\nhost = "x"\n[[source]]\npath = "b"\nhost = "y"\n[[run]]\n{RUN}', ["x, y"]),
    "one bracket": ('[source]\npath = "a"', ["source must be written as [[source]]"]),
    "two brackets": ('[[site]]\npue = 1.2', ["site must be written as [site]"]),
    "memory": ('study.memory_limit = "2"', ['study.memory_limit = "2" is not an amount of memory']),
    "calibration": (
        '[[calibration]]\nfile = "c.json"\nscope = "board"\nreference_scope = "node"',
        ['line 2: calibration[1].file = "c.json" names no file'],
    ),
    "not filled in": ('[site]\npue = …   # FILL IN', ["line 2: still has … where its value belongs"]),
    "syntax": ('[study]\nname = "x\n', ["line 2: is not valid TOML"]),
    "key twice": ("[site]\npue = 1.2\npue = 1.3", ["line 3: is not valid TOML"]),
}  # fmt: skip


class TestWhatIsRefused:
    @pytest.mark.parametrize("case", ERRORS)
    def test_says_where_and_what(self, tmp_path, case):
        text, parts = ERRORS[case]
        message = refused(tmp_path, text, "a", "b", "price.csv")
        assert [p for p in parts if p not in message] == [], message

    def test_everything_at_once_in_the_order_of_lines(self, tmp_path):
        message = refused(tmp_path, '[study]\ntimezone = "X"\nnam = "a"\n[site]\npue = 0\n')
        assert [line.split("line ")[1][0] for line in message.splitlines()] == ["2", "3", "5"]

    def test_adapter(self, tmp_path):
        message = refused(
            tmp_path, '[[source]]\npath = "a"\nadapter = "ipmitol"', "a", adapters=("ipmitool", "meter-csv")
        )
        assert 'source[1].adapter = "ipmitol" is not an adapter; did you mean "ipmitool"?' in message

    def test_not_utf8(self, tmp_path):
        (tmp_path / "study.toml").write_bytes(b'[study]\nname = "\xe4"\n')
        with pytest.raises(config.ConfigError, match="line 2: is not UTF-8"):
            config.load(tmp_path)

    def test_no_study_there(self, tmp_path):
        (tmp_path / "a.csv").write_text("x")
        for path, why in ((tmp_path / "nowhere", "no such file or folder"), (tmp_path / "a.csv", "is not a study")):
            with pytest.raises(config.ConfigError, match=why):
                config.load(path)

    def test_file_with_another_name_is_not_passed_over(self, tmp_path):
        (tmp_path / "Study.toml").write_text("")
        with pytest.raises(config.ConfigError, match=r"would not be read; name it study\.toml"):
            config.load(tmp_path)

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.sampled_from(config_reference.EXAMPLE.splitlines()), st.text(max_size=12), st.integers(0, 60))
    def test_damage_raises_nothing_else(self, tmp_path, line, noise, at):
        text = config_reference.EXAMPLE.replace(line, line[:at] + noise + line[at:])
        (tmp_path / "study.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
        message = str(tmp_path)
        try:
            config.effective(config.load(tmp_path))
        except config.ConfigError as error:
            message = str(error)
        assert all(line.startswith(str(tmp_path)) for line in message.split("\n"))


class TestFiles:
    def test_whole_folder(self, tmp_path):
        kept = ["a/b/gpu2.csv", "a/b/gpu10.csv", "z.txt"]
        skipped = [
            ".x.csv",
            ".git/a.csv",
            "out/report.json",
            "res/study.duckdb",
            "res/a.csv",
            "n.md",
            "r.html",
            "t.toml",
        ]
        for name in (*kept, *skipped):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("x")
        study = config.load(tmp_path)
        assert study.file is None
        assert names(study) == kept
        assert {(s.host, s.clock, s.options.timezone) for s in study.sources_resolved()} == {("node", "node", None)}

    def test_study_without_sources_reads_the_folder(self, tmp_path):
        study = config.load(write(tmp_path, 'study.timezone = "UTC"', "a.csv"))
        assert [(s.name, s.options.timezone) for s in study.sources_resolved()] == [("a.csv", "UTC")]

    def test_empty_folder(self, tmp_path):
        with pytest.raises(config.ConfigError, match="no file below this folder"):
            config.load(tmp_path).sources_resolved()

    def test_loops_of_links_end(self, tmp_path):
        write(tmp_path, '[[source]]\npath = "**/*.csv"', "d/a.csv")
        (tmp_path / "d" / "up").symlink_to(tmp_path)
        (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
        (tmp_path / "same.csv").symlink_to(tmp_path / "d" / "a.csv")
        assert names(config.load(tmp_path)) == ["d/a.csv"]
        (tmp_path / "study.toml").unlink()
        assert names(config.load(tmp_path)) == ["d/a.csv"]

    def test_pipes_are_not_files(self, tmp_path):
        os.mkfifo(tmp_path / "pipe.csv")
        (tmp_path / "a.csv").write_text("x")
        assert names(config.load(tmp_path)) == ["a.csv"]

    def test_glob_without_match(self, tmp_path):
        message = refused(tmp_path, '[[source]]\npath = "logs/*.txt"', "logs/gpu.csv")
        assert 'line 2: source[1].path = "logs/*.txt" matches no file; in logs there are: gpu.csv' in message

    def test_folder_as_path(self, tmp_path):
        assert 'write "logs/*"' in refused(tmp_path, '[[source]]\npath = "logs"', "logs/gpu.csv")

    def test_pipe_by_name(self, tmp_path):
        os.mkfifo(tmp_path / "pipe.csv")
        assert "it is a pipe or a device, not a file" in refused(tmp_path, '[[source]]\npath = "pipe.csv"')

    def test_file_above_the_study(self, tmp_path):
        (tmp_path / "study").mkdir()
        write(tmp_path / "study", '[[source]]\npath = "../logs/*.csv"', "../logs/gpu.csv")
        assert names(config.load(tmp_path / "study")) == ["../logs/gpu.csv"]

    def test_one_file_in_two_entries(self, tmp_path):
        message = refused(tmp_path, '[[source]]\npath = "*.csv"\n[[source]]\npath = "./a.csv"', "a.csv")
        assert "line 4: source[2].path" in message
        assert "source[1].path" in message

    def test_wildcards_pass_over_results(self, tmp_path):
        study = config.load(
            write(tmp_path, '[[source]]\npath = "**/*"', "a.csv", "out/report.json", ".hidden", "d/b.csv")
        )
        assert names(study) == ["a.csv", "d/b.csv"]

    def test_odd_names(self, tmp_path):
        odd = ["it's.csv", 'a"b.csv', "gpu[0].csv", "a*.csv", "ä ö.csv", "new\nline.csv"]
        text = "".join(f"[[source]]\npath = {config_text.string(name)}\n" for name in odd)
        assert names(config.load(write(tmp_path, text, *odd))) == odd

    def test_name_that_is_no_utf8(self, tmp_path):
        (tmp_path / os.fsdecode(b"a\xff.csv")).write_text("x")
        study = config.load(tmp_path)
        assert names(study) == ["a\\xff.csv"]
        assert tomllib.loads(config.effective(study))

    def test_outside_of_the_folder(self, tmp_path):
        (tmp_path / "b.csv").write_text("x")
        inner = tmp_path / "s"
        inner.mkdir()
        assert names(config.load(write(inner, '[[source]]\npath = "../*.csv"'))) == ["../b.csv"]
        absolute = f"[[source]]\npath = {config_text.string(str(tmp_path / '*.csv'))}"
        assert names(config.load(write(inner, absolute))) == ["../b.csv"]

    def test_history_of_codecarbon(self, tmp_path):
        files = [
            "emissions.csv",
            "emissions.csv.bak",
            "emissions.csv_2.bak",
            "emissions.csv_10.bak",
            "meter.csv",
            "meter.csv.bak",
        ]
        text = '[[source]]\npath = "*.csv"\ntimezone = "UTC"'
        study = config.load(write(tmp_path, text, *files))
        assert names(study) == [
            "emissions.csv",
            "emissions.csv.bak",
            "emissions.csv_2.bak",
            "emissions.csv_10.bak",
            "meter.csv",
        ]
        assert {s.options.timezone for s in study.sources_resolved()} == {"UTC"}

    def test_history_that_is_listed(self, tmp_path):
        text = '[[source]]\npath = "emissions.csv"\n[[source]]\npath = "emissions.csv.bak"\ntimezone = "UTC"'
        study = config.load(write(tmp_path, text, "emissions.csv", "emissions.csv.bak"))
        assert [(s.name, s.entry) for s in study.sources_resolved()] == [
            ("emissions.csv", "source[1]"), ("emissions.csv.bak", "source[2]"),
        ]  # fmt: skip

    def test_natural_order(self):
        paths = [Path(p) for p in ("gpu10", "gpu2", "gpu", "gpu²", "gpu02")]
        assert [str(p) for p in sorted(paths, key=config_files.natural)] == ["gpu", "gpu02", "gpu2", "gpu10", "gpu²"]


PLAIN_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


class TestEffective:
    def test_means_the_same(self, tmp_path):
        study = config.load(write(tmp_path, config_reference.EXAMPLE, "logs/gpu1.csv", "logs/meter.csv"))
        text = config.effective(study)
        again = config.load(write(tmp_path, text))
        assert config.effective(again) == text
        assert (again.runs, again.sweeps, again.campaigns) == (study.runs, study.sweeps, study.campaigns)
        for mine, theirs in zip(again.sources_resolved(), study.sources_resolved(), strict=True):
            assert mine == theirs

    def test_defaults_are_filled_in(self, tmp_path):
        study = config.load(write(tmp_path, 'study.timezone = "UTC"\n[[source]]\npath = "a.csv"', "a.csv"))
        data = tomllib.loads(config.effective(study))
        assert data["study"] == {"name": tmp_path.name, "timezone": "UTC", "memory_limit": "750MB"}
        assert data["source"] == [{"path": "a.csv", "host": "node", "clock": "node", "timezone": "UTC", "sign": 1}]

    def test_of_a_folder_lists_its_files(self, tmp_path):
        (tmp_path / "a[1].csv").write_text("x")
        (tmp_path / "b.csv").write_text("x")
        text = config.effective(config.load(tmp_path))
        (tmp_path / "study.toml").write_text(text)
        assert names(config.load(tmp_path)) == ["a[1].csv", "b.csv"]

    @given(st.recursive(
        st.booleans() | st.integers(-(2**63), 2**63 - 1) | PLAIN_TEXT
        | st.floats(allow_nan=False, allow_infinity=False) | st.datetimes(timezones=st.just(dt.UTC)) | st.dates(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLAIN_TEXT, inner, max_size=3),
        max_leaves=6,
    ))  # fmt: skip
    def test_values_survive_as_text(self, value):
        assert tomllib.loads(f"x = {config_text.value(value)}")["x"] == value


class TestReference:
    def test_is_up_to_date(self):
        page = (REPOSITORY / "docs" / "reference-study-toml.md").read_text("utf-8")
        assert page == config_reference.render(), "write config_reference.render() to docs/reference-study-toml.md"

    def test_names_every_key(self):
        page = config_reference.render()
        for name in (
            "`memory_limit`",
            "`energy_counter_range_j`",
            "`utc_offset_s`",
            "`[[calibration]]`",
            "`max_slowdown_ratio`",
        ):
            assert name in page

    def test_units_are_those_that_are_read(self):
        columns = [c for c in config_names.COLUMN_NAMES if config_names.usual_units(c)]
        assert len(columns) > 10
        assert [(c, u) for c in columns for u in config_names.usual_units(c) if cells.factor(c, u) is None] == []
