"""Which device the words of a title are about, and the boundary of its power."""

from __future__ import annotations

import re
from collections.abc import Collection

from joulebook_pipelines.logs.contract import Options

MAIN_DEVICE = {
    "board": "gpu:0",
    "package": "cpu:0",
    "dram": "dram:0",
    "node": "node",
    "rack": "rack",
    "facility": "facility",
}
"""What a file about one thing is about, by its scope; a meter of which nothing is known is ``meter``."""

_PLACES = (
    (r"(?:system )?gpu(?: process)? ?(\d+)$", "gpu:{}", "board"), (r"gpu$|(?:gpu )?board$", "gpu:0", "board"),
    (r"gpu (?:gpu|board accelerator) ?(\d+)$", "gpu:{}", "board"),
    (r"(?:cpu )?socket ?(\d+)$", "cpu:{}", "package"), (r"gpu socket ?(\d+)$", "gpu:socket-{}", "board"),
    (r"(?:cpu )?(?:package|pkg) ?(\d+)$", "cpu:{}", "package"), (r"(?:package|pkg|pck)$", "cpu:0", "package"),
    (r"(?:cpu |ia )?(cores?|uncore|pp0|pp1|ane|igpu)$", "{}", "part"), (r"cpu core ?(\d+)$", "core:{}", "part"),
    (r"cor$", "cores", "part"), (r"ia ?(\d+)$", "cores:{}", "part"),
    (r"(?:gt cores?|gt|gfx|cpu graphics|graphics cores?)$", "igpu", "part"), (r"(?:cpu )?system agent$", "uncore", "part"),
    (r"(?:cpu platform|(?:platform )?psys)$", "platform", "dc"), (r"mem socket ?(\d+)$", "dram:{}", "dram"),
    (r"cpu(?: package)? ?(\d+)$", "cpu:{}", "package"), (r"cpu(?: package)?$", "cpu:0", "package"),
    (r"(?:dram|ram|memory) ?(\d+)$", "dram:{}", "dram"), (r"(?:cpu )?(?:dram|ram|memory)$", "dram:0", "dram"),
    (r"psu ?(\d+) (?:output|out|dc)$", "psu:{}", "dc"), (r"(?:psu|supply) (?:output|out|dc)$", "psu:0", "dc"),
    (r"(?:output|out) (?:psu|supply)$", "psu:0", "dc"), (r"dc(?: output| out)?$", "psu:0", "dc"),
    (r"psu ?(\d+)(?: input| in| ac)?$", "psu:{}", ""),
    (r"(?:wall|mains|plug|steckdose|netz)$", "wall", "node"), (r"(?:dc )?(?:node|server|system|sys|host|machine)$", "node", "node"),
    (r"rack$", "rack", "rack"), (r"(?:facility|building|site)$", "facility", "facility"),
    (r"(?:l|phase) ?([1-6])$", "phase:{}", ""), (r"(?:phase )?([abc])$", "phase:{}", ""),
    (r"(gpu (?:chip|only|core)|mvddc?|mvddci|nvvdd|fbvdd|pcie slot|pcie 12v|src|\d+ pin(?: \d+)?|12vhpwr)$", "{}", "part"),
    (r"fan ?(\d+)$", "fan:{}", "part"), (r"inlet$", "inlet", ""), (r"inlet (?:element )?(\d+)$", "inlet:{}", ""),
    (r"outlet$", "outlet", ""), (r"outlet ?(\d+)$", "outlet:{}", ""),
)  # fmt: skip
BY_HEADER = {"board", "package", "dram", "dc", "part"}
"""Scopes that a title says so plainly that the scope of the whole file does not change them."""

_SOURCE = re.compile(r"^(?:intel )?rapl (?=.)")
"""Counters of a processor that a title names before the domain."""


_FEED = re.compile(r"(?:.+-)?mains?(?:-?[abc\d])?|inlet(?::\d+)?")


def is_feed(device: str) -> bool:
    """Tell whether all that the columns beside it tell comes in here: the legs of a house, the inlets of a rack's strip."""
    return _FEED.fullmatch(device) is not None


def apart(device: str, scope: str, known: Collection[tuple[str, str]]) -> str:
    """Return the name of a device; the output of a supply has its own where the input is in the table as well."""
    both = scope == "dc" and any(d == device and s != scope for d, s in known)
    return f"{device}-out" if both else device


def is_known(about: str) -> bool:
    """Tell whether words name a part of a machine that has a fixed device name."""
    return any(re.fullmatch(pattern, _SOURCE.sub("", about)) for pattern, _, _ in _PLACES)


def of(about: str, options: Options) -> tuple[str, str]:
    """Return device and scope of what a title is about; ``""`` = the meter itself."""
    plain = _SOURCE.sub("", about)
    for pattern, device, scope in _PLACES:
        if match := re.fullmatch(pattern, plain):
            mine = scope if scope in BY_HEADER or options.scope is None else options.scope
            return str(device.format(*match.groups())).replace(" ", "-"), mine
    if about:
        board = re.search(r"\bgpu ?\d+$", about) is not None
        return about.replace(" ", "-"), "board" if board else options.scope or ""
    scope = options.scope or ""
    return options.device or MAIN_DEVICE.get(scope, "meter"), scope
