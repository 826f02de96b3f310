"""Run tables: what titles mean, which side of a row its stamp is on, and that nothing given is changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulebook_pipelines import recognise
from joulebook_pipelines.logs import run_titles, text
from joulebook_pipelines.logs.contract import Log, LogRefusedError, Options

START = datetime(2026, 11, 2, 9, tzinfo=UTC)


def _read(path, **options):
    head = text.head(path, path.name)
    (part,) = recognise.named("run-table").parse(Log(path, head, Options(**options)))
    return part


@pytest.mark.parametrize(
    ("title", "quantity", "unit", "device", "scope"),
    [
        ("gpu0_energy_kj", "energy_j", "kj", "gpu:0", "board"),
        ("GPU-3 Energy (mJ)", "energy_j", "mJ", "gpu:3", "board"),
        ("CPU Package-1 Energy (uJ)", "energy_j", "uJ", "cpu:1", "package"),
        ("DRAM_ENERGY (J)", "energy_j", "J", "dram", "dram"),
        ("PP0_ENERGY (J)", "energy_j", "J", "cpu/pp0", "part"),
        ("power_meter_active_power_w_mean", "power_w", "w", "node", "node"),
        ("avg_power_watts", "power_w", "watts", "", ""),
        ("Energy [kWh]", "energy_j", "kWh", "", ""),
        ("total_energy", "energy_j", "", "", ""),
    ],
)
def test_titles_of_what_was_spent(title, quantity, unit, device, scope):
    (found,) = run_titles.understand(["run_id", title]).spent
    assert (found.quantity, found.unit, found.device, found.scope) == (quantity, unit, device, scope)


@pytest.mark.parametrize(
    "title",
    ["energy_per_token_joules", "energy_saving_pct", "Idle Package-0 Energy (uJ)", "power_limit", "std_power", "peak_power_w",
     "power_meter_reactive_power_var_mean", "energy_efficiency", "edp", "model", "co2_kg", "energy/prompt",
     "Energy (J/token)", "energy/token (J)", "Energy [kWh per epoch]", "energy_j/step", "Energy/image_J"],
)  # fmt: skip
def test_titles_of_something_else(title):
    assert run_titles.understand(["run_id", title]).spent == []


@pytest.mark.parametrize(
    "header",
    ["timestamp,power_w", "time,power_w,energy_kwh", "timestamp, index, power.draw [W]", "start,end,energy_kwh", "time,step,loss,energy_j",
     "timestamp,project_name,run_id,duration,emissions,cpu_energy,energy_consumed"],
)  # fmt: skip
def test_logs_of_readings_are_no_run_tables(header):
    assert not run_titles.is_run_table(header.split(","))


def test_the_sum_of_cards_is_not_added_to_the_cards():
    found = run_titles.understand(
        ["run_id", "duration_s", "gpu0_energy_j", "gpu1_energy_j", "gpu_energy_j", "node_energy_j"]
    )
    assert {s.device: s.scope for s in run_titles.chosen(found)} == {
        "gpu:0": "board", "gpu:1": "board", "gpu": "part", "node": "node",
    }  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.integers(5, 500), min_size=4, max_size=12),
    idle=st.integers(0, 2),
    side=st.sampled_from(["start", "end"]),
)
def test_a_stamp_is_start_or_end_by_what_does_not_overlap(tmp_path_factory, lengths, idle, side):
    """Runs one behind the other: read with the wrong side some would overlap, unless they are all alike."""
    begins = [START + timedelta(seconds=sum(lengths[:i]) + idle * i) for i in range(len(lengths))]
    ends = [b + timedelta(seconds=n) for b, n in zip(begins, lengths, strict=True)]
    rows = [
        f"{(b if side == 'start' else e).timestamp()},r{i},{n},{n * 100}"
        for i, (b, e, n) in enumerate(zip(begins, ends, lengths, strict=True))
    ]
    path = tmp_path_factory.getbasetemp() / "runs.csv"
    path.write_text("\n".join(["timestamp,run_id,duration_s,energy_j", *rows]) + "\n")
    try:
        part = _read(path)
    except LogRefusedError as refusal:
        said = str(refusal)
        part = _read(path, interval_label=side)
        assert "interval_label" in said
    assert part.runs["start_utc"].to_list() == begins
    assert part.runs["end_utc"].to_list() == ends
    assert part.readings["energy_j"].to_list() == [100.0 * n for n in lengths]


@pytest.mark.parametrize(
    ("unit", "joules"), [("J", 36.0), ("kJ", 36e3), ("mJ", 36e-3), ("Wh", 129_600.0), ("kWh", 1.296e8)]
)
def test_energies_in_any_unit(tmp_path, unit, joules):
    path = tmp_path / "runs.csv"
    path.write_text(f"run_id,duration_h,energy ({unit})\na,10,36\n")
    part = _read(path, scope="facility")
    assert part.readings["energy_j"].to_list() == pytest.approx([joules])
    assert part.readings["span_s"].to_list() == [36_000.0]


def test_an_energy_that_no_board_can_use_is_set_aside(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("run_id,duration_s,gpu_energy_j\na,10,3000\nb,10,3000000000\nc,10,-5\n")
    part = _read(path)
    assert part.readings["line"].to_list() == [2]
    assert part.rejects.select("line", "rule").rows() == [(3, "beyond-physical"), (4, "negative")]


def test_runs_without_times_follow_each_other(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("batch_size,runtime_s,avg_power_w,tokens\n8,10.5,100,1000\n16,20.25,110,4000\n")
    part = _read(path, scope="board")
    assert [f.code for f in part.findings] == ["no-times"]
    assert (part.runs["end_utc"] - part.runs["start_utc"]).dt.total_microseconds().to_list() == [10_500_000, 20_250_000]
    assert part.runs["start_utc"][1] == part.runs["end_utc"][0]
    assert part.runs["tokens"].to_list() == [1000.0, 4000.0]
    assert part.readings.select(pl.col("power_w") * pl.col("span_s")).to_series().to_list() == [1050.0, 2227.5]


def test_blank_lines_above_the_titles_are_no_titles(tmp_path):
    """Ten seconds at 5 W and four at 2.5 W; the lines are those of the file."""
    path = tmp_path / "runs.csv"
    path.write_text(
        "\n\ntask_name,Started,Time_Taken_s,CPU_Energy_J\nfit,2026-03-02 10:00:00,10,50\ntest,2026-03-02 10:00:20,4,10\n"
    )
    assert [a.name for a in recognise.claims(text.head(path, "runs.csv"))] == ["run-table"]
    part = _read(path, timezone="UTC")
    assert part.readings.select("line", "energy_j", "span_s").rows() == [(4, 50.0, 10.0), (5, 10.0, 4.0)]
    assert part.runs["run_id"].to_list() == ["fit", "test"]


def test_a_table_of_experiment_runner_may_lack_a_time():
    found = run_titles.understand(["__run_id", "__done", "energy (J)"])
    assert "duration" not in found.roles
    assert run_titles.understand(["__run_id", "__done", "time", "energy (J)"]).roles["duration"] == 2


def test_an_energy_for_each_of_something_is_never_that_of_the_run(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(
        "run_id,batch_size,duration_s,energy/prompt (J),total energy (J)\na,1,100,120.5,12050\nb,2,90,100.5,10050\n"
    )
    assert _read(path, scope="node").readings["energy_j"].to_list() == [12050.0, 10050.0]


def test_a_table_with_energies_for_each_of_something_alone_names_what_it_lacks(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("run_id,batch_size,duration_s,energy/prompt (J)\na,1,100,120.5\nb,2,90,100.5\n")
    with pytest.raises(LogRefusedError, match=r"'energy/prompt \(J\)' give an energy for each.*energy_j"):
        recognise.adapter_for(text.head(path, path.name))


def test_one_row_needs_no_name(tmp_path):
    path = tmp_path / "summary.csv"
    path.write_text("Total Time (s),Total Energy (J),Avg Power (W),Max Power (W)\n10.5,1281.25,122.0,150.8\n")
    assert [a.name for a in recognise.claims(text.head(path, path.name))] == ["run-table"]
    part = _read(path, scope="board")
    assert part.readings["energy_j"].to_list() == [1281.25]
    assert part.readings["span_s"].to_list() == [10.5]


def test_a_log_whose_stamps_have_a_title_of_their_own_is_no_table_of_runs(tmp_path):
    path = tmp_path / "log.csv"
    rows = "".join(f"{1_700_000_000_000 + 20 * i},{120 + i},{2.4 * i:.2f}\n" for i in range(6))
    path.write_text("timestamp_host_epoch_ms,power_watts,integrated_energy_joules\n" + rows)
    assert [a.name for a in recognise.claims(text.head(path, path.name))] == ["meter-csv"]


@pytest.mark.parametrize(
    "header",
    ["elapsed_s,power_w,energy_j", "elapsed_time_s,power_w,phase", "Elapsed (s),Power (W),Energy (J),batch_size"],
)
def test_seconds_that_count_on_are_no_lengths_of_runs(tmp_path, header):
    path = tmp_path / "log.csv"
    last = {"phase": "train", "energy_j": "{}", "batch_size": "32"}[header.rsplit(",", maxsplit=1)[-1]]
    middle = ",{}" if header.count(",") == 3 else ""
    rows = [f"{0.5 * i},{100 + i}{middle.format(50 * i)},{last.format(50 * i)}\n" for i in range(6)]
    path.write_text(header + "\n" + "".join(rows))
    assert [a.name for a in recognise.claims(text.head(path, path.name))] == ["meter-csv"]


def test_elapsed_seconds_of_runs_are_their_lengths(tmp_path):
    path = tmp_path / "sweep.csv"
    rows = ["1980,max,1,301.5,3015.0,10.0", "1410,mid,1,202.5,2430.0,12.0", "900,low,1,150.5,2709.0,18.0"]
    path.write_text("freq_mhz,freq_label,run,avg_power_w,energy_j,elapsed_s\n" + "\n".join(rows) + "\n")
    assert [a.name for a in recognise.claims(text.head(path, path.name))] == ["run-table"]
    part = _read(path, scope="board")
    assert part.readings["span_s"].to_list() == [10.0, 12.0, 18.0]
    assert part.readings["energy_j"].to_list() == [3015.0, 2430.0, 2709.0]


def test_records_whose_seconds_count_on_are_refused_as_runs(tmp_path):
    path = tmp_path / "log.json"
    records = ", ".join(f'{{"elapsed_time_s": {i}, "energy_j": {100 * i}, "phase": "train"}}' for i in range(5))
    path.write_text(f"[{records}]")
    with pytest.raises(LogRefusedError, match=r"'elapsed_time_s' counts on from row to row"):
        _read(path, scope="board")
