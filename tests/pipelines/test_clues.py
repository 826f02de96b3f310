"""Files that nobody reads are refused with what would help."""

import pytest

from joulebook_pipelines import recognise
from joulebook_pipelines.logs import clues, text
from joulebook_pipelines.logs.contract import Head, Log, LogRefusedError, Options

SB3 = "time/fps,time/iterations,time/time_elapsed,time/total_timesteps,rollout/ep_rew_mean,train/loss\n" + "".join(
    f"{900 - i},{i},{2 * i},{2048 * i},{20 + i},{7.5 - i}\n" for i in range(1, 4)
)
YOLO = "epoch,time,train/box_loss,train/cls_loss,metrics/mAP50(B)\n" + "".join(
    f"{i},{30 * i},1.6,3.2,0.4\n" for i in range(1, 4)
)
SPINUP = "Epoch\tAverageEpRet\tTotalEnvInteracts\tLossPi\tLossV\tTime\n" + "".join(
    f"{i}\t20.1\t{4000 * i}\t-0.02\t400.1\t{3 * i}.1\n" for i in range(3)
)
SB3_PRINTED = "".join(
    "-" * 33
    + f"\n| time/              |          |\n|    iterations      | {i}        |\n|    total_timesteps | {2048 * i}     |\n"
    for i in range(1, 4)
)
CYCLEGAN = "================ Training Loss (Mon Mar  2 10:15:31 2026) ================\n" + "".join(
    f"(epoch: 1, iters: {100 * i}, time: 0.289, data: 0.002) D_A: 0.317 G_A: 0.369 cycle_A: 1.905\n"
    for i in range(1, 4)
)
SPEEDRUN = "".join(
    f"step:{125 * i}/1750 val_loss:4.{9 - i}012 train_time:{11823 * i}ms step_avg:94.58ms\n" for i in range(1, 4)
)


@pytest.mark.parametrize(
    "log",
    [SB3, YOLO, SPINUP, SB3_PRINTED, CYCLEGAN, SPEEDRUN],
    ids=["sb3", "yolo", "spinup", "sb3log", "cyclegan", "speedrun"],
)
def test_a_training_whose_steps_have_no_clock_is_refused_with_the_cure(tmp_path, log):
    path = tmp_path / "progress.log"
    path.write_text(log)
    with pytest.raises(LogRefusedError, match=r"training.*name the run in \[\[run\]\] with start and end"):
        recognise.adapter_for(text.head(path, path.name))


def test_a_text_about_something_else_is_not_called_a_training(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("Please repeat step 1 after step 2.\nThe third epoch of this project begins in 2027.\n")
    with pytest.raises(LogRefusedError, match="leave it out") as refused:
        recognise.adapter_for(text.head(path, path.name))
    assert "training, but" not in str(refused.value)


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (
            "=====\nMLPerf Results Summary\n=====\nSUT name : rig\nSamples per second: 7.5\n",
            "mlperf_log_detail.txt beside it",
        ),
        ("Total Power Usage: 10.5 kWh\n", r"one total \('Total Power Usage: 10.5 kWh'\).*compare it"),
        (
            "CarbonTracker:\nActual consumption for 1 epoch(s):\n\tTime:\t0:10:00\n\tEnergy:\t0.25 kWh\n\tCO2eq:\t10.5 g\n",
            "carbontracker prints for people.*PUE.*log_dir",
        ),
    ],
    ids=["summary", "total", "carbontracker"],
)
def test_what_a_run_summed_up_is_named_as_that(tmp_path, log, said):
    path = tmp_path / "summary.txt"
    path.write_text(log)
    with pytest.raises(LogRefusedError, match=said):
        recognise.adapter_for(text.head(path, path.name))


def test_a_table_whose_rows_do_not_fit_its_titles_is_not_called_empty(tmp_path):
    path = tmp_path / "published.csv"
    path.write_text("time,power (W),Delay\n2026-03-02 10:00:00 UTC\nsome words\n")
    with pytest.raises(LogRefusedError, match=r"no row has the 3 cells of the header in line 1 \(line 2: '2026"):
        list(recognise.named("meter-csv").parse(Log(path, text.head(path, path.name), Options(timezone="UTC"))))


@pytest.mark.parametrize(
    ("log", "cure"),
    [
        ("Scaphandre stdout exporter\nMeasurement step is: 2s\nHost:\t61.2 W from\n", "scaphandre json"),
        ("System info:\nCPU: 5.0 %\tTotal Power: 61.20 Watts\tCPU Power: 61.20 Watts\n", "powerjoular -f"),
        ("        Power Draw                        : 71.20 W\n" * 4, "--query-gpu=timestamp,index,power.draw"),
        ("Runtime: 10.0 s\nDomain PKG:\nEnergy consumed: 612.0 Joules\nPower consumed: 61.2 Watt\n", "energy_j"),
    ],
)
def test_what_tools_print_for_people_is_refused_with_what_to_log_instead(tmp_path, log, cure):
    path = tmp_path / "power.txt"
    path.write_text(log)
    head = text.head(path, path.name)
    with pytest.raises(LogRefusedError) as refused:
        recognise.adapter_for(head)
    assert cure in str(refused.value)


def test_a_name_of_snmp_speaks_of_power() -> None:
    line = "2026-03-02T10:00:00Z PowerNet-MIB::rPDU2DeviceStatusPower.1 = INTEGER: 25\n"
    assert "line 1 speaks of power" in clues.why_unknown(Head("pdu.log", line * 5, "utf-8", True))
