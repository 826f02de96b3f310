"""What is wrong with single values of an emissions.csv, and what the reader of the file should know."""

from __future__ import annotations

import polars as pl

from joulebook import rules
from joulebook.findings import Finding, Severity
from joulebook.wording import counted
from joulebook_pipelines.logs import emissions_model

RAPL_RANGE_J = 262_143.328_850
"""Range of Intel's energy counter (2^32 steps of 61 µJ) [J]: an unmended wrap takes about this from the energy."""

LOWEST_W_PER_THREAD = 0.02
"""A processor thread draws more than this [W] even idle (a 10 W laptop of 16 threads: 0.06 and more)."""

MEAN_POWER_FROM = 3_001_002
"""From 3.1.2 the power columns hold the mean over the run, before that the last sample (issue 985 of CodeCarbon)."""

POWER_WITH_PUE_FROM = 3_003_001
"""From 3.3.1 the power columns include the PUE, as the energies always did (issue 1320 of CodeCarbon)."""

GPU_COUNTER_FROM = 2_003_000
"""From 2.3.0 GPU energy comes from the board's counter, before that from power times the sampling interval."""


def version_number(version: pl.Expr) -> pl.Expr:
    """Return versions as sortable numbers (3.1.2 = 3001002); null where there is none."""
    parts = version.str.replace_all(",", ".").str.extract_groups(r"^\s*(\d+)\.(\d+)(?:\.(\d+))?")
    major, minor, patch = (parts.struct.field(str(i)).cast(pl.Int64, strict=False) for i in (1, 2, 3))
    return major * 1_000_000 + minor * 1_000 + patch.fill_null(0)


def broken(values: pl.DataFrame, scope: str) -> pl.Series:
    """Return the rule that each row's energy breaks, null where it breaks none.

    Parameters
    ----------
    values
        ``span_s, energy_j``.
    scope
        Boundary of the energy.
    """
    energy, ceiling_w = pl.col("energy_j"), rules.CEILING_W[scope]
    return values.select(
        pl.when(energy < 0).then(pl.lit("negative-energy"))
        .when((energy == 0) & (pl.col("span_s") > 0)).then(pl.lit("zero-energy"))
        .when(energy > ceiling_w * pl.col("span_s")).then(pl.lit("beyond-physical"))
        .alias("rule")
    ).to_series()  # fmt: skip


def broken_power(values: pl.DataFrame, scope: str) -> pl.Series:
    """Return the rule that each row's printed power breaks, null where it breaks none."""
    power = pl.col("reported_power_w")
    return values.select(
        pl.when(power < 0).then(pl.lit("negative-power"))
        .when(power > rules.CEILING_W[scope]).then(pl.lit("beyond-physical"))
        .alias("rule")
    ).to_series()  # fmt: skip


def about_values(name: str, rows: pl.DataFrame) -> list[Finding]:
    """Return findings on values that are formally right and yet doubtful.

    Parameters
    ----------
    rows
        One row a line that has a time: ``line, duration_s, version, pue, cpu_j, gpu_j, ram_j, total_j, gpu_there,
        threads, machine_mode, ram_power, emissions_kg, rate`` (as the file has them, energies with PUE taken out).
    """
    rows = rows.with_columns(measured_share=emissions_model.measured_share(POWER_WITH_PUE_FROM))
    told = [
        f
        for f in (
            _negative(name, rows), _unmeasured(name, rows), _kilowatts(name, rows), _rate(name, rows),
            _parts(name, rows),
            _pue(name, rows), _meaning(name, rows),
        )
        if f is not None
    ]  # fmt: skip
    return [*told, *emissions_model.about(name, rows)]


def about_runs(name: str, rows: pl.DataFrame, runs: pl.DataFrame) -> list[Finding]:
    """Return findings on how the rows relate: flushes of one tracker, trackers that ran at once.

    Parameters
    ----------
    rows
        One row a line with ``flush``.
    runs
        One row a run, as :func:`joulebook_pipelines.logs.emissions_runs.overlaps` returns them.
    """
    found = []
    flushes = int(rows["flush"].sum())
    if flushes:
        found.append(Finding(
            "cumulative-rows", Severity.NOTE, name,
            f"{counted(flushes, 'row')} with more time and more energy of a run told before: flushes of a running tracker. Each run counts "
            "once, with its last row; the differences between flushes are its readings.", {"rows": flushes},
        ))  # fmt: skip
    beside = runs.filter(pl.col("members") > 1)
    same, apart = beside.filter("agree"), beside.filter(~pl.col("agree"))
    if same.height:
        joules = same["total_j"]
        found.append(Finding(
            "overlapping-trackers", Severity.WARNING, name,
            f"{same.height} trackers ran at the same time as others on the same machine in {same['group'].n_unique()} "
            f"places, first line {_first_line(same)}: each "
            "saw the whole machine, so their energies are not added. The longest of each place is used; the others "
            "are kept as parts.",
            {"runs": same.height, "mean_j": joules.mean(), "least_j": joules.min(), "most_j": joules.max()},
        ))  # fmt: skip
    if apart.height:
        found.append(Finding(
            "trackers-cannot-be-told-apart", Severity.ERROR, name,
            f"{apart.height} runs overlap in time and cannot be one machine seen several times (different hardware, "
            "or times and energies that do not fit into "
            f"each other), first line {_first_line(apart)}: no energy of them is given. Split the file by machine "
            "and give each part its host in [[source]].",
            {"runs": apart.height, "machines": apart["machines"].max()},
        ))  # fmt: skip
    return found


def _first_line(rows: pl.DataFrame) -> int:
    return int(rows.sort("line")["line"][0])


def _negative(name: str, rows: pl.DataFrame) -> Finding | None:
    bad = rows.filter(pl.min_horizontal("cpu_j", "gpu_j", "ram_j", "total_j") < 0)
    if bad.is_empty():
        return None
    wraps = bad.filter((pl.col("cpu_j") + RAPL_RANGE_J).abs() < 0.01 * RAPL_RANGE_J).height
    hint = (
        f" In {wraps} of them the processor's energy is one range of its counter ({RAPL_RANGE_J:.0f} J) below zero: a "
        "counter wrap that the tracker did not mend."
        if wraps
        else ""
    )
    return Finding(
        "negative-energy", Severity.WARNING, name,
        f"{counted(bad.height, 'row')} with a negative energy, first line {bad['line'][0]}; it is set aside with the total it "
        "went into, so those runs "
        f"have no total.{hint}", {"rows": bad.height, "counter_wraps": wraps, "line": int(bad["line"][0])},
    )  # fmt: skip


def _unmeasured(name: str, rows: pl.DataFrame) -> Finding | None:
    ran = rows.filter(pl.col("duration_s") > 0)
    zero = {
        "processor": ran.filter(pl.col("cpu_j") == 0).height,
        "GPU": ran.filter((pl.col("gpu_j") == 0) & pl.col("gpu_there")).height,
        "memory": ran.filter(pl.col("ram_j") == 0).height,
    }
    told = ", ".join(f"{device} in {count}" for device, count in zero.items() if count)
    if not told:
        return None
    return Finding(
        "not-measured", Severity.WARNING, name,
        f"The energy is exactly 0 although the run took time ({told} of {ran.height} rows): the tracker could not "
        "measure, so the zeros are set aside, and a total of such a row lacks those parts. It is set aside as well where the tracker "
        "printed a power of the processor or the GPU beside the zero.",
        {"rows": ran.height, **{k: v for k, v in zero.items() if v}},
    )  # fmt: skip


def _kilowatts(name: str, rows: pl.DataFrame) -> Finding | None:
    # A tracker that slept has a low mean and a right power.
    watts = pl.col("cpu_j") / pl.col("duration_s") / pl.col("measured_share").clip(upper_bound=1.0).fill_null(1.0)
    low = rows.filter((pl.col("cpu_j") > 0) & (pl.col("duration_s") > 0) & pl.col("machine_mode")).with_columns(
        watts=watts
    )
    early = (pl.col("version") < 2_000_000).fill_null(value=False)
    low = low.filter(
        (pl.col("watts") < LOWEST_W_PER_THREAD * pl.col("threads").fill_null(1.0)) | (early & (pl.col("watts") < 1.0))
    )
    if low.is_empty():
        return None
    first = low.row(0, named=True)
    old = " (versions before 2 are known to write kilowatts as watts)" if (first["version"] or 0) < 2_000_000 else ""
    return Finding(
        "implausible-cpu-power", Severity.WARNING, name,
        f"{counted(low.height, 'row')} with a mean power of the processor that no running machine has, first line {first['line']}: "
        f"{first['watts']:.3g} W. It may be "
        f"1000 times too small ({first['watts'] * 1e3:.3g} W){old}; nothing was changed.",
        {"rows": low.height, "line": first["line"], "cpu_power_w": first["watts"], "factor": 1000},
    )  # fmt: skip


def _rate(name: str, rows: pl.DataFrame) -> Finding | None:
    ratio = pl.col("rate") / (pl.col("emissions_kg") / pl.col("duration_s"))
    known = rows.filter((pl.col("duration_s") > 0) & (pl.col("emissions_kg") > 0)).with_columns(ratio=ratio)
    grams = known.filter(pl.col("ratio").is_between(900.0, 1100.0))
    if grams.is_empty():
        return None
    return Finding(
        "emissions-rate-in-grams", Severity.WARNING, name,
        f"emissions_rate of {counted(grams.height, 'row')} is 1000 times emissions / duration, first line {grams['line'][0]}: "
        "versions 2.0 and 2.1 wrote g/s, "
        "later ones kg/s. The column is not used; carbon comes from the energy.",
        {"rows": grams.height, "line": int(grams["line"][0])},
    )  # fmt: skip


def _parts(name: str, rows: pl.DataFrame) -> Finding | None:
    parts = pl.sum_horizontal("cpu_j", "gpu_j", "ram_j")
    judged = rows.filter((pl.col("total_j") > 0) & (pl.col("cpu_j") >= 0) & (pl.col("ram_j") >= 0))
    off = judged.with_columns(ratio=parts / pl.col("total_j")).filter((pl.col("ratio") - 1).abs() > 0.01)
    if off.is_empty():
        return None
    return Finding(
        "total-is-not-the-sum", Severity.WARNING, name,
        f"In {counted(off.height, 'row')} energy_consumed is not the sum of its parts, first line {off['line'][0]}: the parts "
        f"make {off['ratio'][0]:.3f} of it. "
        "Both are kept as they stand; the total is used for the scope components.",
        {"rows": off.height, "line": int(off["line"][0]), "parts_ratio": float(off["ratio"][0])},
    )  # fmt: skip


def _pue(name: str, rows: pl.DataFrame) -> Finding | None:
    factors = rows.filter(pl.col("pue") != 1)["pue"].unique().sort().to_list()
    if not factors:
        return None
    return Finding(
        "pue-taken-out", Severity.NOTE, name,
        f"The tracker multiplied its energies by a PUE of {', '.join(f'{p:g}' for p in factors)}; they are divided by "
        "it, so that the facility's "
        "overhead is counted once, by [site].", {"pue": factors},
    )  # fmt: skip


def _meaning(name: str, rows: pl.DataFrame) -> Finding:
    version = pl.col("version").fill_null(0)
    counts = rows.select(
        last=(version < MEAN_POWER_FROM).sum(),
        mean=(version >= MEAN_POWER_FROM).sum(),
        gpu=(version < GPU_COUNTER_FROM).sum(),
    ).row(0, named=True)
    said = [f"the last sample in {counts['last']} rows (before 3.1.2)"] if counts["last"] else []
    said += [f"the mean over the run in {counts['mean']} rows"] if counts["mean"] else []
    gpu = (
        " GPU energies from before 2.3.0 are power times the sampling interval, not a counter." if counts["gpu"] else ""
    )
    return Finding(
        "tracker-estimates", Severity.NOTE, name,
        f"The power columns hold {' and '.join(said)}; power comes from energy and duration. Memory, and processors "
        "without a counter, are models, "
        f"not measurements.{gpu}", {"last_sample": counts["last"], "mean": counts["mean"]},
    )  # fmt: skip
