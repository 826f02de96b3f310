"""nvidia-smi's monitors and reports: dashes, whole watts, both namings of the power elements, XML that attacks."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from joulebook_pipelines import recognise
from joulebook_pipelines.logs import text
from joulebook_pipelines.logs.contract import Log, LogRefusedError, Options


def _read(tmp_path, name, content, adapter, **options):
    path = tmp_path / name
    path.write_text(content)
    head = text.head(path, path.name)
    assert recognise.adapter_for(head).name == adapter
    parts = list(recognise.named(adapter).parse(Log(path, head, Options(timezone="UTC", **options))))
    frames = {n: [f for p in parts if (f := getattr(p, n)) is not None and f.height] for n in ("readings", "rejects")}
    return tuple(pl.concat(f, how="diagonal") if f else pl.DataFrame() for f in frames.values())


def test_dmon_dashes_are_rejects_and_move_nothing(tmp_path):
    head = "# Date       Time        gpu    pwr  gtemp     sm\n# YYYYMMDD   HH:MM:SS    Idx      W      C      %\n"
    rows = [
        f" 20261102   09:00:0{i}      0     {w}     45     98\n 20261102   09:00:0{i}      1      -     38      0\n"
        for i, w in enumerate((61, 63, 65, 63, 61))
    ]
    readings, rejects = _read(tmp_path, "d.log", head + "".join(rows[:3]) + head + "".join(rows[3:]), "nvidia-dmon")
    one = readings.filter(pl.col("device") == "gpu:0")
    seconds = one["ts_utc"].dt.timestamp("us").to_numpy() / 1e6
    assert one["power_w"].mean() == pytest.approx(62.6)
    assert np.trapezoid(one["power_w"].to_numpy(), seconds) == 62 + 64 + 64 + 62
    assert readings.filter(pl.col("device") == "gpu:1")["power_w"].null_count() == 5
    assert rejects.select("device", "column_name", "rule", "raw").rows() == [("gpu:1", "pwr", "no-value", "-")] * 5


XML = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log {doctype}>
<nvidia_smi_log><timestamp>Mon Nov  2 09:00:0{second} 2026</timestamp><attached_gpus>1</attached_gpus>
<gpu id="00000000:01:00.0"><uuid>GPU-1</uuid>{power}</gpu></nvidia_smi_log>
"""
SYSTEM = 'SYSTEM "nvsmi_device_v12.dtd"'
OLD = "<power_readings><power_draw>201.50 W</power_draw><enforced_power_limit>300.00 W</enforced_power_limit></power_readings>"
RENAMED = OLD.replace("power_readings", "gpu_power_readings").replace("enforced", "current")
NEWEST = (
    "<gpu_power_readings><average_power_draw>201.50 W</average_power_draw><instant_power_draw>N/A</instant_power_draw>"
    "<current_power_limit>300.00 W</current_power_limit></gpu_power_readings>"
)


@pytest.mark.parametrize("power", [OLD, RENAMED, NEWEST], ids=["before 535", "535", "later"])
def test_the_power_is_found_on_both_sides_of_the_renaming(tmp_path, power):
    content = "".join(XML.format(doctype=SYSTEM, second=i, power=power) for i in range(3))
    readings, _ = _read(tmp_path, "x.xml", content, "nvidia-smi-xml")
    assert readings.select("device", "power_w", "power_limit_w").rows() == [("gpu:0", 201.5, 300.0)] * 3
    assert readings["ts_utc"].dt.second().to_list() == [0, 1, 2]


ATTACKS = {
    "billion laughs": '[<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]',
    "file": '[<!ENTITY b SYSTEM "file:///etc/hostname">]',
    "parameter": '[<!ENTITY % p SYSTEM "http://127.0.0.1:9/x.dtd"> %p;]',
}


@pytest.mark.parametrize("doctype", ATTACKS.values(), ids=list(ATTACKS))
def test_entities_are_refused(tmp_path, doctype):
    content = XML.format(doctype=doctype, second=0, power=OLD.replace("201.50 W", "&b;"))
    with pytest.raises(LogRefusedError, match="entit"):
        _read(tmp_path, "x.xml", content, "nvidia-smi-xml")


def test_an_embedded_dtd_without_entities_is_harmless(tmp_path):
    content = XML.format(doctype="[<!ELEMENT nvidia_smi_log (timestamp, gpu*)>]", second=0, power=OLD)
    readings, _ = _read(tmp_path, "x.xml", content, "nvidia-smi-xml")
    assert readings["power_w"].to_list() == [201.5]


def test_a_report_over_two_blocks_is_one_report(tmp_path, monkeypatch):
    report = (
        "\n==============NVSMI LOG==============\n\nTimestamp : Mon Nov  2 09:00:0{i} 2026\nAttached GPUs : 1\nGPU 00000000:01:00.0\n"
        "    Product Name : Tesla T4\n    Power Readings\n        Power Draw : 2{i}.50 W\n    Clocks\n        SM : 900 MHz\n"
    )
    content = "".join(report.format(i=i) for i in range(8))
    whole, _ = _read(tmp_path, "q.txt", content, "nvidia-smi-q")
    monkeypatch.setattr(text, "BLOCK_BYTES", 150)
    pieces, _ = _read(tmp_path, "q.txt", content, "nvidia-smi-q")
    assert whole.height == 8
    assert pieces.equals(whole)


def test_a_driver_renewed_in_the_middle_of_a_looped_report_loses_no_power(tmp_path):
    report = (
        "==============NVSMI LOG==============\n\nTimestamp                 : Mon Nov  2 09:00:{s:02d} 2026\n"
        "Attached GPUs             : 1\nGPU 00000000:3B:00.0\n    GPU Power Readings\n{lines}\n"
    )
    old = "        Power Draw            : {w} W\n"
    new = "        Average Power Draw    : {w} W\n        Instantaneous Power Draw : {i} W\n"
    before = [report.format(s=s, lines=old.format(w=200 + s)) for s in range(3)]
    after = [report.format(s=s, lines=new.format(w=250 + s, i=300 + s)) for s in range(10, 13)]
    path = tmp_path / "q.txt"
    path.write_text("".join(before + after))
    head = text.head(path, path.name)
    parts = list(recognise.adapter_for(head).parse(Log(path, head, Options(timezone="UTC"))))
    readings = pl.concat([p.readings for p in parts if p.readings is not None and p.readings.height], how="diagonal")
    board = readings.filter(pl.col("device") == "gpu:0")["power_w"].to_list()
    assert board == [200, 201, 202, 260, 261, 262]
    assert readings.filter(pl.col("device") == "gpu:0/instant")["power_w"].to_list() == [310, 311, 312]
    (told,) = [f for p in parts for f in p.findings if f.code == "power-field-changed"]
    assert told.evidence["line"] == "".join(before).count("\n") + 7


def test_a_header_without_a_whole_row_below_it_loses_nothing_of_the_others(tmp_path):
    row = "GPU-b, 2026/05/11 08:30:00.000, 90.50 W"
    log = f"uuid, timestamp, power.draw [W]\n{row}\nuuid, timestamp, pstate, power.draw [W]\nP0\n"
    path = tmp_path / "gpu.csv"
    path.write_text(log)
    parts = list(
        recognise.named("nvidia-smi-csv").parse(Log(path, text.head(path, path.name), Options(timezone="UTC")))
    )
    readings = pl.concat([p.readings for p in parts if p.readings is not None])
    rejects = pl.concat([p.rejects for p in parts if p.rejects is not None])
    assert readings.select("line", "power_w").rows() == [(2, 90.5)]
    assert (4, "P0") in rejects.select("line", "raw").rows()
