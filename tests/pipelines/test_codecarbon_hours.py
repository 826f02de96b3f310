"""Local stamps of CodeCarbon in the hour that summer time repeats."""

from __future__ import annotations

from joulebook_pipelines import recognise
from joulebook_pipelines.logs import text
from joulebook_pipelines.logs.contract import Log, Options

ROW = (
    "timestamp,project_name,run_id,duration,emissions,emissions_rate,cpu_power,gpu_power,ram_power,cpu_energy,gpu_energy,ram_energy,"
    "energy_consumed,codecarbon_version,tracking_mode,pue\n"
    "2026-10-25T{hour}:30:00,p,r,600,0.01,0.0000167,40,300,10,0.0067,0.05,0.0017,0.0584,2.8.0,machine,1.0\n"
)


def test_a_row_in_the_hour_that_comes_twice_is_told(tmp_path):
    for hour, told in (("02", True), ("04", False)):
        path = tmp_path / f"emissions{hour}.csv"
        path.write_text(ROW.format(hour=hour))
        log = Log(path, text.head(path, path.name), Options(timezone="Europe/Berlin"))
        (part,) = recognise.named("codecarbon").parse(log)
        assert ("repeated-hour" in [f.code for f in part.findings]) == told
