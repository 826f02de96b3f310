"""Texts of the made-up studies: the fixed parts of study.toml, and a note on how each was made."""

from __future__ import annotations

NODE_STUDY = """\
# A node with two boards trains twice, then two jobs share it. Made by the project's simulator; truth.json holds the
# right answers.
[study]
name = "sample-node"
timezone = "Asia/Shanghai"      # of stamps without an offset
reference_clock = "node"        # the host's own clock

[site]
pue = 1.3
carbon_kg_per_kwh = "grid.csv"  # by hour
price_per_kwh = 0.12
currency = "USD"

[model]
parameters = 1.3e9
layers = 24
hidden = 2048
sequence_length = 2048
peak_flops_per_device = 989e12

[devices]
tdp_w = 700

[[source]]
path = "logs/gpu.csv"

[[source]]
path = "logs/meter.csv"
clock = "meter"
scope = "node"

[[source]]
path = "logs/ipmi.txt"
clock = "bmc"
timezone = "UTC"

[[source]]
path = "logs/emissions.csv"

[[source]]
path = "logs/train.jsonl"

[[source]]
path = "logs/phases.csv"

"""

SWEEP_STUDY = """\
# One board at seven batch sizes, three short runs each. Made by the project's simulator; truth.json holds the answers.
[study]
name = "sample-sweep"
timezone = "UTC"

[site]
pue = 1.2
carbon_kg_per_kwh = 0.35
price_per_kwh = 0.18
currency = "EUR"

[model]
parameters = 3.5e8
peak_flops_per_device = 989e12

[devices]
tdp_w = 700

[[source]]
path = "gpu.csv"

[[source]]
path = "train.jsonl"

"""

SWEEP_TABLE = """\
[[sweep]]
name = "batch"
knob = "batch_size"
runs = "bs*"
scope = "board"
"""

CAMPAIGN_STUDY = """\
# Five changes in a row, four runs each. Made by the project's simulator; truth.json holds the right answers.
[study]
name = "sample-campaign"
timezone = "Europe/Berlin"      # of stamps without an offset
reference_clock = "node"        # the host's own clock

[site]
pue = 1.25
carbon_kg_per_kwh = 0.35
price_per_kwh = 0.18
currency = "EUR"

[model]
parameters = 1.3e9
layers = 24
hidden = 2048
sequence_length = 2048
peak_flops_per_device = 989e12

[devices]
tdp_w = 700

[[source]]
path = "gpu.csv"

[[source]]
path = "meter.csv"
clock = "meter"
scope = "node"

[[source]]
path = "inlet.csv"
device = "inlet"
columns = { time = "time", temperature_c = "inlet_c" }

[[source]]
path = "train.jsonl"

"""

CAMPAIGN_TABLE = """\
[[campaign]]
name = "november"
scope = "node"
metric = "energy_per_token_j"
"""

_HOW = """
Nothing here was measured. `python -m joulebook_pipelines.sample sample_data` writes this folder again, byte for byte.
Power, phases and energies follow from a seed; the logs are what each tool would have written of the same truth, and
`truth.json` holds that truth. Powers are means over cells of {cell}; energies are exact sums of them.
"""

NODE_NOTE = """\
# A node in training

Forty-three minutes of a node with two boards: ten minutes idle, a run of fifteen minutes, three minutes idle, a run of
eight, two minutes idle, two jobs side by side for two and a half, the same again idle. Steps of three seconds wait for
data every tenth step and save every eightieth; boards warm up, fans follow. The two jobs, a board each, write no log.

- `logs/gpu.csv`: one reading a second and board, means over a second, local time of Asia/Shanghai. Seven cells say
  `[N/A]`, nine seconds are missing, the tool was restarted once (header repeated), the last line is cut.
- `logs/meter.csv`: the meter at the wall. Its clock is 71.3 s late and gains 12 ppm.
- `logs/ipmi.txt`: the management controller every five seconds, in whole watts. Its clock is 37.4 s late.
- `logs/emissions.csv`: CodeCarbon 3.3.2, one row a run, stamped in local time at its end.
- `logs/train.jsonl`, `logs/phases.csv`: steps with loss, and phases, from the training script.
- `grid.csv`: how much carbon the site's grid emits, by hour.
""" + _HOW.format(cell="50 ms")

SWEEP_NOTE = """\
# A sweep over batch sizes

One board, seven batch sizes, three runs of two minutes each in a drawn order, 25 seconds idle between. A step has a
fixed part, so small batches use the board badly; the tokens to the target grow with the batch as 1 + b / 90. The runs
are too short to reach the target: `tokens_to_target` in `study.toml` is known from elsewhere.
""" + _HOW.format(cell="100 ms")

CAMPAIGN_NOTE = """\
# A campaign of five changes

A baseline and five changes on top of each other, four runs of some three minutes each, at the boards, at the wall and
with the temperature at the inlet. `rename-buckets` changes nothing. Before `low-precision` the room became 5.5 °C
warmer, so fans drew more: at the node, before and after share no range of temperatures and the effect cannot be told
from that of the room.

- `gpu.csv`: one reading a second and board, no units, local time of Europe/Berlin.
- `meter.csv`: the meter at the wall, in German: semicolons, decimal commas, day first, whole seconds. Its clock is
  23.8 s ahead and loses 9 ppm.
- `inlet.csv`: air at the inlet every 30 seconds.
- `train.jsonl`: steps with loss.
""" + _HOW.format(cell="100 ms")
