"""Stored calibrations: what an earlier study found, applied to runs that were measured at the narrower scope only."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from joulebook import calibrate, calibration_record
from joulebook.findings import Estimate
from joulebook_pipelines.config_errors import ConfigError
from joulebook_pipelines.config_schema import Calibration
from joulebook_pipelines.stages.context import Context, Run, Stage
from joulebook_pipelines.stages.numbers import Numbers


def _work(context: Context) -> Numbers:
    numbers = Numbers()
    for entry in context.study.calibrations:
        record = _read(context, entry)
        for run in context.runs():
            wanted = entry.host in {None, run.host} and entry.scope in context.scopes(run.run_id)
            if wanted and entry.reference_scope not in context.scopes(run.run_id):
                _apply(context, run, entry, record, numbers)
    return numbers


def _read(context: Context, entry: Calibration) -> calibration_record.Record:
    path = context.study.beside(entry.file)
    try:
        return calibration_record.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: is no stored calibration: {error}") from None


def _apply(context: Context, run: Run, entry: Calibration, record: calibration_record.Record, numbers: Numbers) -> None:
    doubts = calibration_record.doubts(
        record, host=run.host, scope=entry.scope, reference_scope=entry.reference_scope, used_on=run.start_utc.date()
    )
    numbers.find(run.run_id, doubts)
    mean = context.number(run.run_id, entry.scope, "mean_power_w")
    coverage = context.coverage(run.run_id, entry.scope, "mean_power_w")
    if mean is None or mean.value is None or any(d.severity == "error" for d in doubts):
        return
    made = calibrate.predict(record.calibration, mean.value, se_w=(mean.half_width or 0.0) / 1.96)
    method = f"{entry.scope} power by the calibration in {entry.file} ({record.meter}, {record.made_on})"
    power = Estimate(made.value, made.lo, made.hi, "W", mean.n, None, method, made.reason)
    numbers.add(run.run_id, entry.reference_scope, "mean_power_w", power, coverage_ratio=coverage)
    covered_s = run.duration_s * (1.0 if coverage is None else coverage)
    value, lo, hi = (None if w is None else w * covered_s for w in (made.value, made.lo, made.hi))
    energy = Estimate(value, lo, hi, "J", mean.n, None, method, made.reason)
    numbers.add(run.run_id, entry.reference_scope, "energy_j", energy, coverage_ratio=coverage)


def keep(
    context: Context, host: str, scope: str, reference_scope: str, found: calibrate.Calibration, meter: str
) -> None:
    """Write a calibration beside the store, so that a later study can apply it.

    Its date is that of the last reading, so that the same study gives the same file.
    """
    if found.status != "calibrated":
        return
    last = context.store.table("sources")["last_utc"].max()
    made_on = last.date() if isinstance(last, datetime) else datetime.now(UTC).date()
    record = calibration_record.Record(found, host, scope, reference_scope, meter, made_on)
    folder = context.store.path.parent / "calibrations"
    folder.mkdir(exist_ok=True)
    text = json.dumps(calibration_record.to_dict(record), indent=1)
    (folder / f"{host}-{scope}-{reference_scope}.json").write_text(text + "\n", encoding="utf-8")


STAGE = Stage("stored-calibrations", "applying stored calibrations", _work)
