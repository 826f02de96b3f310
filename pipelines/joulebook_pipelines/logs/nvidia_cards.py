"""Names of the cards of an ``nvidia-smi`` table: by their number, else in the order in which their keys come up; per host."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import polars as pl

from joulebook_pipelines.logs import cells
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
            return raw.with_columns(device=named)
        raw = raw.with_columns(_card=pl.concat_str(text, suffix), _at=suffix)
        for card, at in raw.select("_card", "_at").unique(maintain_order=True).iter_rows():  # one a card, not a row
            self._number(card, at)
        device = pl.col("_card").replace_strict(self.numbers, default=None, return_dtype=pl.String)
        return raw.with_columns(device=device).drop("_card", "_at")

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
