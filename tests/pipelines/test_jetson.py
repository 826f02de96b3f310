"""Lines of tegrastats that are unlike most; numbers worked out by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from joulebook_pipelines import recognise
from joulebook_pipelines.logs import text
from joulebook_pipelines.logs.contract import Channel, Log, Options


def read(folder: Path, told: str) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, Channel]]:
    path = folder / "tegrastats.log"
    path.write_text(told)
    head = text.head(path, path.name)
    parts = list(recognise.adapter_for(head).parse(Log(path, head, Options(timezone="UTC"))))
    frames = {n: [f for p in parts if (f := getattr(p, n)) is not None] for n in ("readings", "rejects")}
    channels = {c.device: c for p in parts for c in p.channels}
    return pl.concat(frames["readings"], how="diagonal"), pl.concat(frames["rejects"]), channels


def test_a_rail_below_zero_is_set_aside_and_still_a_rail(tmp_path: Path) -> None:
    """At rest the CPU's rail may read one step below zero; the rails beside it are the components of the module all the same."""
    cpu_mw = [-397, -397, 400]
    told = "".join(
        f"03-02-2026 10:00:0{i} RAM 900/30000MB (lfb 4x4MB) CPU [1%@729,off] GR3D_FREQ 0% cpu@40C "
        f"VDD_GPU_SOC 1600mW/1600mW VDD_CPU_CV {mw}mW/-397mW VIN_SYS_5V0 2500mW/2500mW\n"
        for i, mw in enumerate(cpu_mw)
    )
    readings, rejects, channels = read(tmp_path, told)
    assert {d: c.scope for d, c in channels.items()} == {
        "rail:vdd-gpu-soc": "components", "rail:vdd-cpu-cv": "components", "rail:vin-sys-5v0": "components",
    }  # fmt: skip
    assert readings.filter(device="rail:vdd-cpu-cv")["power_w"].to_list() == [0.4]
    assert rejects.select("line", "column_name", "rule", "raw").rows() == [
        (1, "VDD_CPU_CV", "negative-power", "-397"),
        (2, "VDD_CPU_CV", "negative-power", "-397"),
    ]
