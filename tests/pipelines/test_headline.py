import polars as pl

from joulebook_pipelines import headline
from joulebook_pipelines import shown as numbers
from joulebook_pipelines.metrics import Unit


class Kept:
    """A store of rows."""

    def __init__(self, results, shares=(), findings=()):
        names = ("run_id", "scope", "metric", "value", "lo", "hi", "coverage_ratio")
        rows = [dict(zip(names, r, strict=True)) | {"device": "", "phase": "", "reason": "no reading"} for r in results]
        self._results = pl.DataFrame(rows, infer_schema_length=None)
        self._tables = {
            "shares": pl.DataFrame(
                shares, orient="row",
                schema={"host": pl.String, "scope": pl.String, "start_utc": pl.Int64, "run_id": pl.String, "energy_j": pl.Float64},
            ).with_columns(energy_lo=pl.col("energy_j") * 0.99, energy_hi=pl.col("energy_j") * 1.01, method=pl.lit("by boards")),
            "findings": pl.DataFrame(
                findings, orient="row", schema=dict.fromkeys(("severity", "stage", "code", "subject", "message"), pl.String),
            ),
        }  # fmt: skip

    def results(self):
        return self._results

    def runs(self):
        return self._results.select("run_id").unique(maintain_order=True)

    def table(self, name):
        return self._tables[name]


def energy(run, scope, value, half, covered=1.0):
    return (run, scope, "energy_j", value, value - half, value + half, covered)


def test_units_go_with_the_size_as_on_the_page():
    said = headline.lines(Kept([energy("small", "node", 101_000.0, 200.0), energy("big", "node", 3.6e6, 36e3, 0.5)]))
    assert said == [
        "small: 28.056 ± 0.056 Wh at the node",
        "big: 1.000 ± 0.010 kWh at the node (50.0 % of the time covered)",
        "findings: 0 errors, 0 warnings, 0 notes",
    ]


def test_the_widest_is_told_and_what_lies_beside_each_other_together():
    wide = [energy("a", "board", 1e6, 1e4), energy("a", "node", 2e6, 1e4)]
    beside = [energy("b", "dram", 36e3, 360.0), energy("b", "board", 360e3, 3600.0)]
    said = headline.lines(Kept([*wide, *beside]))
    assert said[0] == "a: 0.5556 ± 0.0028 kWh at the node"
    assert said[1] == "b: 0.1000 ± 0.0010 kWh at the board, 10.00 ± 0.10 Wh at the dram"


def test_what_was_refused_above_the_widest_known_is_told_too():
    rows = [energy("a", "board", 360e3, 3600.0), ("a", "node", "energy_j", None, None, None, None)]
    said = headline.lines(Kept(rows))
    assert said[0] == "a: 0.1000 ± 0.0010 kWh at the board, – at the node — no reading"


def test_a_run_that_shared_its_machine_is_told_its_own_part():
    both = [energy("a", "node", 360e3, 3600.0), energy("b", "node", 360e3, 3600.0)]
    shares = [("n", "node", 0, "a", 216e3), ("n", "node", 0, "b", 108e3), ("n", "node", 0, "idle", 36e3)]
    said = headline.lines(Kept(both, shares))
    assert (
        said[0] == "a: 60.00 ± 0.60 Wh of the node that it shared with b, which took 0.1000 ± 0.0010 kWh in that time"
    )
    assert said[1].startswith("b: 30.00 ± 0.30 Wh of the node that it shared with a")


def test_what_was_refused_and_what_is_doubtful_is_said():
    refused = ("a", "node", "energy_j", None, None, None, None)
    findings = [
        ("error", "energy", "counter-lost", "node", "why"),
        ("error", "recognise", "source-refused", "x", "said elsewhere"),
        ("note", "energy", "odd", "node", "so"),
    ]
    assert headline.lines(Kept([refused], findings=findings)) == [
        "a: – at the node — no reading",
        "✖ counter-lost — node: why",
        "findings: 2 errors, 0 warnings, 1 note",
    ]


def test_an_interval_without_width_is_not_shown():
    # Two ends of one reading, a rounding of floating point apart.
    shown = numbers.number(1059030.0, 1059029.9999999, 1059030.0000001, unit=Unit("kWh", 3.6e6))
    assert (shown.text, shown.sentence) == ("0.2942", "0.2942 kWh")
