"""Names of the cards of an ``nvidia-smi`` table: by their number, else in the order in which their keys come up; per host."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import cells, stamps, ticks
from joulebook_pipelines.logs.contract import Log, LogRefusedError
from joulebook_pipelines.logs.nvidia_query import Layout
from joulebook_pipelines.logs.plain import Rows


@dataclass
class Cards:
    """Names the card of each row and keeps which were seen.

    Parameters
    ----------
    layout
        The columns; its ``key`` tells cards apart, its ``host`` the machines.
    only
        The device of a table about one card.
    home
        The host whose cards need no ``@host``: that of a table about one machine, as far as its beginning tells.
    """

    layout: Layout
    only: str
    home: str = ""
    numbers: dict[str, str] = field(default_factory=dict)
    bearers: dict[str, str] = field(default_factory=dict)
    moved: list[tuple[int, str, str, str]] = field(default_factory=list)
    of_host: dict[str, int] = field(default_factory=dict)

    def of_words(self, rows: Rows) -> pl.Series | None:
        """Return the device of each plain row; ``None`` where a card has no number."""
        key = self.layout.key
        if key is None:
            return pl.Series("device", [self.only]).new_from_index(0, rows.frame.height)
        occurring = rows.occurring(key)
        if key != self.layout.index:
            for text in occurring:
                self._number(text, "")
            return rows.word(key, self.numbers).alias("device")
        if not all(re.fullmatch(r"[0-9]+", text) for text in occurring):
            return None
        if self.layout.uuid:
            pairs = rows.together(key, self.layout.uuid)
            if not all(self._borne(f"gpu:{i}", u) for i, u in pairs):
                return None
        return rows.word(key, {text: f"gpu:{text}" for text in occurring}).alias("device")

    def of_cells(self, raw: pl.DataFrame) -> pl.DataFrame:
        """Return the rows with ``device``, null where the number of the card cannot be read."""
        key = self.layout.key
        suffix = self._suffix() if self.layout.host else pl.lit("")
        if key is None:
            return raw.with_columns(device=pl.concat_str(pl.lit(self.only), suffix))
        text = pl.col(key).str.strip_chars()
        if key == self.layout.index:
            named = pl.when(text.str.contains(r"^\d+$")).then(pl.concat_str(pl.lit("gpu:"), text, suffix))
            return self._by_bearer(raw.with_columns(device=named))
        raw = raw.with_columns(_card=pl.concat_str(text, suffix), _at=suffix)
        for card, at in raw.select("_card", "_at").unique(maintain_order=True).iter_rows():  # one a card, not a row
            self._number(card, at)
        device = pl.col("_card").replace_strict(self.numbers, default=None, return_dtype=pl.String)
        return raw.with_columns(device=device).drop("_card", "_at")

    def _by_bearer(self, raw: pl.DataFrame) -> pl.DataFrame:
        """Return the rows with the number that their card had first: numbers move at a reboot, a card's uuid does not."""
        if self.layout.uuid is None:
            return raw
        uuid = pl.col(self.layout.uuid).str.strip_chars(' "')
        told = raw.filter(pl.col("device").is_not_null() & ~uuid.str.to_lowercase().is_in(cells.MISSING))
        pairs = told.group_by("device", u=uuid).agg(pl.col("line").min()).sort("line")
        for device, bearer, line in pairs.iter_rows():  # one a card and number, not a row
            if not self._borne(device, bearer):
                if bearer not in self.numbers:
                    suffix = device[device.find("@") :] if "@" in device else ""
                    free = next(
                        n for i in range(len(self.bearers) + 1) if (n := f"gpu:{i}{suffix}") not in self.bearers
                    )
                    self.numbers[bearer], self.bearers[free] = free, bearer
                self.moved.append((line, device, bearer, self.numbers[bearer]))
        first = uuid.replace_strict(self.numbers, default=None, return_dtype=pl.String)
        return raw.with_columns(device=pl.when(pl.col("device").is_not_null()).then(pl.coalesce(first, "device")))

    def _borne(self, device: str, bearer: str) -> bool:
        """Tell whether a number stands for the card that it stood for first; one that is new stands for the card beside it."""
        if bearer not in self.numbers and device not in self.bearers:
            self.numbers[bearer], self.bearers[device] = device, bearer
        return self.numbers.get(bearer) == device

    def findings(self, name: str) -> tuple[Finding, ...]:
        """Return what a whole pass has shown about the numbers of the cards."""
        if not self.moved:
            return ()
        line, device, bearer, first = self.moved[0]
        return (Finding(
            "cards-renumbered", Severity.WARNING, name,
            f"From line {line} on, number {device.removeprefix('gpu:')} is another card ({bearer}): numbers moved, as they do at a reboot "
            f"or with another order of visible devices. Cards are told apart by their uuid and keep their first number ({first}).",
            {"line": line, "number": device, "uuid": bearer, "device": first},
        ),)  # fmt: skip

    def _number(self, card: str | None, suffix: str) -> None:
        if card is not None and card not in self.numbers:
            self.numbers[card] = f"gpu:{self.of_host.get(suffix, 0)}{suffix}"
            self.of_host[suffix] = self.of_host.get(suffix, 0) + 1

    def _suffix(self) -> pl.Expr:
        host = pl.col(self.layout.host or "").fill_null("").str.strip_chars(' "').str.head(80)
        return pl.when((host == "") | (host == self.home)).then(pl.lit("")).otherwise(pl.concat_str(pl.lit("@"), host))


def _telling_apart(layout: Layout, told: Callable[[str | None], list[str]]) -> Layout:
    """Return the columns with the key that tells most cards apart; the number of the card wins where none tells more.

    A process that may see one card calls each of them 0, and so do several machines: the number alone would make one card of all.
    """
    if layout.host is not None:
        return layout
    indexes = [c for c in (layout.index, *layout.further_indexes) if c]
    others = [c for c in (layout.uuid, layout.bus, layout.serial) if c]
    if not indexes or len(indexes) + len(others) < 2:
        return layout
    best = max((*indexes, *others), key=lambda column: len(set(told(column))))
    if best in indexes:
        return replace(layout, index=best)
    return replace(
        layout, index=None,
        uuid=layout.uuid if best == layout.uuid else None, bus=layout.bus if best == layout.bus else None,
    )  # fmt: skip


def settled(log: Log, layout: Layout, rows: list[list[str]]) -> tuple[Layout, Cards]:
    """Return the columns as they can be used, and what names the cards.

    Parameters
    ----------
    rows
        Cells of the first rows: serial numbers that boards do not tell are no key; one host alone is not part of a name.

    Raises
    ------
    LogRefusedError
        Several hosts share the table and study.toml tells cards apart by their order only.
    """

    def told(column: str | None) -> list[str]:
        at = layout.names.index(column) if column else 0
        return [r[at].strip(' "') for r in rows] if column else []

    if any(t.lower() in cells.MISSING for t in told(layout.serial)):
        layout = replace(layout, serial=None)
    layout = _telling_apart(layout, told)
    hosts = {h for h in told(layout.host) if h}
    if len(hosts) > 1 and layout.key is None and len(log.options.devices) > 1:
        raise LogRefusedError(
            f"{log.name}: lines of several hosts ({', '.join(sorted(hosts)[:4])}) and no column names the card, so that the order of "
            "lines tells nothing; split the file by host, or log again with index in the query"
        )
    only = log.options.device or (log.options.devices or ("gpu:0",))[0]
    return layout, Cards(layout, only, hosts.pop() if len(hosts) == 1 else "")


def refuse_hidden(log: Log, layout: Layout, form: stamps.StampForm, rows: list[list[str]]) -> None:
    """Refuse a table in which several lines share each sampling round and nothing tells their cards apart.

    Raises
    ------
    LogRefusedError
        It is so; what may be added is said.
    """
    at = layout.names.index(layout.time)
    for of_host in _by_host(layout, rows):
        _refuse_many(log, layout, form, [r[at] for r in of_host])


def _by_host(layout: Layout, sample: list[list[str]]) -> list[list[list[str]]]:
    """Return the rows of each host."""
    if layout.host is None:
        return [sample]
    at = layout.names.index(layout.host)
    return [[r for r in sample if r[at] == host] for host in dict.fromkeys(r[at] for r in sample)]


def _refuse_many(log: Log, layout: Layout, form: stamps.StampForm, samples: list[str]) -> None:
    if layout.key or log.options.devices or log.options.device:
        return
    parsed = (
        pl.DataFrame({"t": samples}, schema={"t": pl.String})
        .select(stamps.parse(pl.col("t").str.strip_chars(' "'), form))
        .to_series()
        .drop_nulls()
    )
    count = ticks.lines_per_tick(parsed.to_physical().cast(pl.Int64).to_list())
    if count > 1:
        names = ", ".join(f'"gpu:{i}"' for i in range(count))
        raise LogRefusedError(
            f"{log.name}: {count} lines share each sampling round but no column names the card; add devices = [{names}] to this "
            '[[source]] if the lines of a round always come in that order, device = "gpu:0" if they are of one card, or log again with '
            "index in the query"
        )
