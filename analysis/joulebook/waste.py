"""Energy without output: idle gaps, idle cards at power, steps done twice, supplies at low load."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import polars as pl

from joulebook import energy, occupancy, totals
from joulebook.findings import Estimate, Finding, Severity
from joulebook.wording import counted, lasting

UNUSED_UTILIZATION = 0.05
"""Below this utilisation a device does nothing [1]."""

UNUSED_SECONDS = 30.0
"""For so long it has to do nothing to count [s]."""

UNUSED_MARGIN_W = 15.0
"""So far above idle it has to draw to count as waste [W]."""

LOW_LOAD = 0.3
"""Below this share of their rating power supplies are markedly less efficient [1]."""


LEAST_COVERED = 0.5
"""Share of the time between two runs that the log has to cover [1]: of less, what the idle machine drew is not known."""


@dataclass(frozen=True)
class Waste:
    """Energy of one kind of waste.

    Parameters
    ----------
    metric
        Name in the results, e.g. ``gap_idle_energy_j``.
    energy, seconds
        Energy [J] and time [s].
    frame
        The intervals behind it: ``start_utc``, ``end_utc``, ``seconds``, ``energy_j`` and what belongs to them.
    findings
        What to do about it.
    """

    metric: str
    energy: Estimate
    seconds: Estimate
    frame: pl.DataFrame
    findings: tuple[Finding, ...] = ()


def gaps(power: pl.DataFrame, runs: pl.DataFrame) -> Waste:
    """Return the energy of the time between runs, while nothing ran.

    Parameters
    ----------
    power
        Columns ``device``, ``ts_utc``, ``power_w`` of one host and scope.
    runs
        Columns ``run_id``, ``start_utc``, ``end_utc`` of the runs on that host.

    Returns
    -------
    Waste
        ``gap_idle_energy_j``; one row a gap, with ``before`` and ``after``, the runs on its sides, and the interval of its
        energy, ``lo`` and ``hi`` [J]; ``reason`` says what the log leaves open, and there is no energy where that is most.

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t = [datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=s) for s in range(101)]
    >>> runs = pl.DataFrame({"run_id": ["a", "b"], "start_utc": [t[0], t[60]], "end_utc": [t[20], t[90]]})
    >>> gaps(pl.DataFrame({"device": "node", "ts_utc": t, "power_w": 100.0}), runs).energy.value
    4000.0
    """
    ordered = (
        runs.drop_nulls(["start_utc", "end_utc"]).sort("start_utc").with_columns(until=pl.col("end_utc").cum_max())
    )
    latest = pl.when(pl.col("end_utc") == pl.col("until")).then("run_id").forward_fill()
    between = ordered.select(
        before=latest,
        after=pl.col("run_id").shift(-1),
        start_utc="until",
        end_utc=pl.col("start_utc").shift(-1),
    ).filter(pl.col("end_utc") > pl.col("start_utc"))
    if ordered.height < 2:
        why = "fewer than two runs"
        return Waste("gap_idle_energy_j", Estimate.refused(why, unit="J"), Estimate.refused(why, unit="s"),
                     _measured(power, between))  # fmt: skip
    return _waste("gap_idle_energy_j", _integrated(power, between), "integral between runs")


def unused(power: pl.DataFrame, *, idle_w: float) -> Waste:
    """Return the energy above idle of devices that did nothing for half a minute or more.

    Parameters
    ----------
    power
        Columns ``device``, ``ts_utc``, ``power_w``, ``utilization_ratio``.
    idle_w
        Idle power of one device [W].

    Returns
    -------
    Waste
        ``unused_energy_j``; one row a stretch, with ``device``.

    Raises
    ------
    ValueError
        There is no utilisation.

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t = [datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=s) for s in range(61)]
    >>> frame = pl.DataFrame({"device": "gpu:0", "ts_utc": t, "power_w": 120.0, "utilization_ratio": 0.0})
    >>> unused(frame, idle_w=60.0).energy.value
    3600.0
    """
    if "utilization_ratio" not in power.columns:
        raise ValueError(f"power has no column utilization_ratio; it has {', '.join(power.columns)}")
    quiet = (pl.col("utilization_ratio") < UNUSED_UTILIZATION) & (pl.col("power_w") > idle_w + UNUSED_MARGIN_W)
    stretches = (
        power.drop_nulls("power_w")
        .sort("device", "ts_utc")
        .with_columns(quiet=quiet.fill_null(False))
        .with_columns(block=(pl.col("quiet") != pl.col("quiet").shift().over("device")).fill_null(True).cum_sum())
        .filter("quiet")
        .group_by("device", "block", maintain_order=True)
        .agg(start_utc=pl.col("ts_utc").min(), end_utc=pl.col("ts_utc").max())
        .filter((pl.col("end_utc") - pl.col("start_utc")).dt.total_microseconds() >= UNUSED_SECONDS * 1e6)
        .drop("block")
    )
    parts = [_measured(power.filter(device=d), stretches.filter(device=d)) for d in stretches["device"].unique().sort()]
    frame = pl.concat(parts) if parts else _measured(power, stretches)
    return _waste("unused_energy_j", frame.with_columns(pl.col("energy_j") - idle_w * pl.col("seconds")), "above idle")


def rework(power: pl.DataFrame, steps: pl.DataFrame) -> Waste:
    """Return the energy of steps that had been done before: after a failure, training resumes from an older step.

    Parameters
    ----------
    power
        Columns ``device``, ``ts_utc``, ``power_w``.
    steps
        Columns ``step``, ``start_utc``, ``end_utc`` of one training, in the order of ``end_utc`` with its restarts;
        a missing start is the end of the step before.

    Returns
    -------
    Waste
        ``rework_energy_j``; one row a stretch of repeated steps, with ``first_step``, ``last_step``.

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t = [datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=s) for s in range(0, 61, 10)]
    >>> steps = pl.DataFrame({"step": [1, 2, 3, 2, 3, 4], "start_utc": t[:6], "end_utc": t[1:]})
    >>> rework(pl.DataFrame({"device": "node", "ts_utc": t, "power_w": 100.0}), steps).energy.value
    2000.0
    >>> micro = steps.with_columns(step=pl.Series([1, 1, 2, 2, 3, 3]))
    >>> rework(pl.DataFrame({"device": "node", "ts_utc": t, "power_w": 100.0}), micro).findings
    ()
    """
    ordered = steps.drop_nulls(["step", "end_utc"]).sort("end_utc")
    marked = ordered.with_columns(
        start_utc=pl.col("start_utc").fill_null(pl.col("end_utc").shift()),
        again=(pl.col("step") <= pl.col("step").cum_max().shift()).fill_null(value=False),
        turn=pl.col("step").rle_id(),
    )
    # Lines of one step that follow each other are its micro-steps, or what several processes told of it: one time.
    marked = marked.with_columns(pl.col("again").first().over("turn"))
    begins = (pl.col("again") != pl.col("again").shift()) | (pl.col("step").diff() < 0)
    marked = marked.with_columns(block=begins.fill_null(value=True).cum_sum())
    stretches = (
        marked.filter("again")
        .drop_nulls("start_utc")
        .group_by("block", maintain_order=True)
        .agg(
            start_utc=pl.col("start_utc").min(),
            end_utc=pl.col("end_utc").max(),
            first_step=pl.col("step").min(),
            last_step=pl.col("step").max(),
        )
        .drop("block")
    )
    out = _waste("rework_energy_j", _measured(power, stretches), "integral of repeated steps")
    if stretches.is_empty():
        return out
    lost = int(stretches.select((pl.col("last_step") - pl.col("first_step") + 1).sum()).item())
    text = (
        f"{counted(lost, 'step')} {'was' if lost == 1 else 'were'} done twice after {counted(stretches.height, 'restart')}: "
        "save more often."
    )
    return Waste(out.metric, out.energy, out.seconds, out.frame, (
        Finding("rework", Severity.NOTE, "steps", text, {"steps": lost, "restarts": stretches.height}),
    ))  # fmt: skip


def low_load(power: pl.DataFrame, *, rated_w: float, share: float = LOW_LOAD) -> Waste:
    """Return the energy drawn while power supplies ran far below their rating.

    Parameters
    ----------
    power
        Columns ``device``, ``ts_utc``, ``power_w`` of a node, or of its supplies.
    rated_w
        Rating of all supplies that share the load [W].
    share
        Load below which supplies are inefficient [1].

    Returns
    -------
    Waste
        ``low_load_energy_j``: all that was drawn in that time; how much of it is loss depends on the supply.

    Raises
    ------
    ValueError
        The rating is not positive.

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t = [datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=s) for s in range(3601)]
    >>> low_load(pl.DataFrame({"device": "node", "ts_utc": t, "power_w": 400.0}), rated_w=3000.0).seconds.value
    3600.0
    """
    if rated_w <= 0:
        raise ValueError(f"rated_w is {rated_w}: must be positive")
    count = power["device"].n_unique()
    stretches = (
        power.drop_nulls("power_w")
        .sort("device", "ts_utc")
        .group_by_dynamic("ts_utc", every="1m", group_by="device")
        .agg(pl.col("power_w").mean(), last=pl.col("ts_utc").max(), first=pl.col("ts_utc").min())
        .group_by("ts_utc")
        .agg(pl.col("power_w").sum(), pl.len().alias("n"), pl.col("last").max())
        .filter(pl.col("n") == count)
        .sort("ts_utc")
        .with_columns(low=pl.col("power_w") < share * rated_w)
        .with_columns(
            block=(pl.col("low") != pl.col("low").shift()).fill_null(True).cum_sum(),
            until=pl.min_horizontal(pl.col("ts_utc") + pl.duration(minutes=1), power["ts_utc"].max()),
        )
        .filter("low")
        .group_by("block", maintain_order=True)
        .agg(start_utc=pl.col("ts_utc").min(), end_utc=pl.col("until").max())
        .drop("block")
        .with_columns(start_utc=pl.max_horizontal(pl.col("start_utc"), power["ts_utc"].min()))
    )
    out = _waste("low_load_energy_j", _measured(power, stretches), f"below {share:.0%} of {rated_w:g} W")
    total = (power["ts_utc"].max() - power["ts_utc"].min()).total_seconds() if power.height else 0.0  # pyrefly: ignore[missing-attribute, unsupported-operation]
    part = (out.seconds.value or 0.0) / total if total else 0.0
    if part <= 0.5:
        return out
    text = f"Supplies ran below {share:.0%} of their rating for {part:.0%} of the time: fewer would waste less."
    return Waste(out.metric, out.energy, out.seconds, out.frame, (
        Finding("supplies-at-low-load", Severity.NOTE, "supplies", text, {"time_ratio": part, "rated_w": rated_w}),
    ))  # fmt: skip


def _measured(power: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Add time and energy of intervals."""
    return spans.with_columns(
        seconds=(pl.col("end_utc") - pl.col("start_utc")).dt.total_microseconds() / 1e6,
        energy_j=pl.Series(occupancy.within(power, spans), dtype=pl.Float64),
    )


def _integrated(power: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Add time and energy of intervals, with ``lo``, ``hi`` [J] and ``reason``: what the log leaves open is told."""
    margin = timedelta(seconds=energy.NEAR_EDGE_S)
    devices = totals.in_time([rows for _, rows in totals.by_device(power)])
    told = []
    for start, end in spans.select("start_utc", "end_utc").iter_rows():
        near = pl.concat([power.clear(), *totals.cut(devices, start - margin, end + margin)], rechunk=False)
        found = energy.integrate(near, start_utc=start, end_utc=end)
        total, covered = found.total, float(found.frame["coverage_ratio"][0] or 0.0)
        if total.value is not None and covered < LEAST_COVERED:
            length = f"{covered:.2g} of the {lasting((end - start).total_seconds())} between the runs"
            total = Estimate.refused(f"the log covers {length}; what was drawn in the rest is not known")
        told.append((total.value, total.lo, total.hi, total.reason))
    schema = {"energy_j": pl.Float64, "lo": pl.Float64, "hi": pl.Float64, "reason": pl.String}
    seconds = ((pl.col("end_utc") - pl.col("start_utc")).dt.total_microseconds() / 1e6).alias("seconds")
    return pl.concat([spans.with_columns(seconds), pl.DataFrame(told, schema=schema, orient="row")], how="horizontal")


def _waste(metric: str, frame: pl.DataFrame, method: str) -> Waste:
    """Sum intervals up."""
    n, unknown = frame.height, frame["energy_j"].null_count()
    total = Estimate(float(frame["energy_j"].sum()), unit="J", n=n, method=method)
    if unknown:
        total = Estimate.refused(f"the energy of {unknown} of {n} is not known", unit="J", method=method)
    return Waste(metric, total, Estimate(float(frame["seconds"].sum()), unit="s", n=n, method=method), frame)
