"""``nvidia-smi -q`` as text, once or in a loop (``-l``): reports one after the other, each under its own time."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import damage, local_time, smi_report, stamps, table
from joulebook_pipelines.logs.contract import Adapter, Block, Head, Log, Part

_TITLE = re.compile(r"^=+\s*NVSMI LOG\s*=+\s*$")
_STAMP = re.compile(r"^Timestamp\s+: (.+?)\s*$")
_MARGIN = re.compile(r"^=+\s*NVSMI LOG|^(?:Timestamp|Driver Version|CUDA Version|Attached GPUs|HIC)\b")
"""What a report prints at the margin, cards aside."""

_FOREIGN = re.compile(r"^(#{20}|\+-{20}|\|)")
"""Lines of other outputs in one file with the reports."""


def _sniff(head: Head) -> bool:
    return any(_TITLE.match(line) for line in head.lines)


class _Reader:
    """Reads blocks; the last report of a block waits for the next, as it may go on there."""

    def __init__(self, log: Log, form: stamps.StampForm, clock: local_time.Localiser) -> None:
        self.cards = smi_report.Cards(log)
        self._form, self._clock = form, clock
        self._waiting: pl.DataFrame | None = None
        self._cards_before = 0
        self.driver = ""
        self.foreign = False

    def read(self, block: Block | None) -> Part:
        """Return what a block says; ``None`` at the end of the file."""
        rejects, lines, count = [table.no_rejects()], self._waiting, 0
        if block is not None:
            count = block.count
            block, nul = damage.without_nul(block)
            rejects.append(nul)
            fresh = block.numbered("text")
            if not block.terminated and fresh.height:
                last = fresh.tail(1).rename({"text": "raw"})
                rejects.append(table.whole_lines(last, damage.CUT))
                fresh = fresh.head(fresh.height - 1)
            lines = fresh if lines is None else pl.concat([lines, fresh])
        if lines is None or lines.is_empty():
            return Part(lines=count, rejects=pl.concat(rejects))
        titles = lines.filter(pl.col("text").str.contains(_TITLE.pattern))["line"]
        self._waiting = None
        if block is not None and len(titles):
            self._waiting, lines = lines.filter(pl.col("line") >= titles[-1]), lines.filter(pl.col("line") < titles[-1])
        found, bad_stamps = self._entries(lines)
        if found.is_empty():
            return Part(lines=count, rejects=pl.concat([*rejects, bad_stamps]))
        readings, more, channels = self.cards.read(found)
        return Part(count, readings, pl.concat([*rejects, bad_stamps, more]), channels=channels)

    def _entries(self, lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the entries of reports, and the stamps that could not be read."""
        text = pl.col("text")
        self.foreign = self.foreign or bool(lines.select(text.str.contains(_FOREIGN.pattern).any()).item())
        lines = lines.with_columns(
            title=text.str.contains(_TITLE.pattern), stamp=text.str.extract(_STAMP.pattern, 1),
            bus=text.str.extract(r"^GPU ([0-9A-Fa-f]+:[0-9A-Fa-f]+:[0-9A-Fa-f.]+)\s*$", 1),
            indent=text.str.len_chars() - text.str.strip_chars_start().str.len_chars(),
            blank=text.str.strip_chars() == "",
        )  # fmt: skip
        lines = lines.with_columns(self._clock.utc(lines, stamps.parse(pl.col("stamp"), self._form)))
        bad = lines.filter(pl.col("stamp").is_not_null() & pl.col("ts_utc").is_null())
        report = (pl.col("title") | pl.col("stamp").is_not_null()).cum_sum()
        # A line that begins at the margin ends the card before it; only what is indented belongs to a card.
        margin = (pl.col("indent") == 0) & ~pl.col("blank")
        card = pl.when(pl.col("bus").is_not_null()).then(pl.col("bus").is_not_null().cum_sum() + self._cards_before)
        lines = lines.with_columns(
            report=report, card=pl.when(margin & pl.col("bus").is_null()).then(-1).otherwise(card).forward_fill()
        )
        self._cards_before += int(lines["bus"].is_not_null().sum())
        self._note(lines)
        strange = lines.filter(margin & pl.col("bus").is_null() & ~text.str.contains(_MARGIN.pattern))
        lines = lines.with_columns(pl.col("ts_utc").forward_fill().over("report"), pl.col("bus").forward_fill())
        wanted = _with_keys(lines.filter((pl.col("card") >= 0) & (pl.col("indent") > 0) & ~pl.col("blank")))
        rejected = bad.select(
            "line",
            device=pl.lit(None, pl.String),
            column_name=pl.lit("Timestamp"),
            rule=pl.lit("no-such-time"),
            raw=pl.col("stamp"),
        )
        if not self.foreign and strange.height:
            rejected = pl.concat([rejected, table.whole_lines(strange.rename({"text": "raw"}), "tool-message")])
        return wanted.select(pl.col(c).cast(t) for c, t in smi_report.SCHEMA.items()), rejected

    def _note(self, lines: pl.DataFrame) -> None:
        attached = lines.select(
            pl.col("text").str.extract(r"^Attached GPUs\s+: (\d+)\s*$", 1).cast(pl.Int64).max()
        ).item()
        self.cards.attached = max(self.cards.attached, attached or 0)
        if not self.driver:
            told = lines.select(pl.col("text").str.extract(r"^Driver Version\s+: (\S+)", 1).drop_nulls()).to_series()
            self.driver = str(told[0]) if len(told) else ""


def _with_keys(body: pl.DataFrame) -> pl.DataFrame:
    """Return the lines of cards that are understood, with ``key`` (``section/name``) and ``raw``."""
    text, indent = pl.col("text"), pl.col("indent")
    body = body.with_columns(
        key=text.str.extract(r"^\s*(.+?)\s*(?: : .*| :)?$", 1).str.to_lowercase(),
        raw=text.str.extract(r" : (.*)$", 1).str.strip_chars(),
    )
    # What is least indented without a value opens a section; with one it stands for itself and closes the section.
    opens = pl.when(pl.col("raw").is_null()).then("key").otherwise(pl.lit(""))
    body = body.with_columns(section=pl.when(indent <= 4).then(opens).forward_fill().over("card"))
    inner = pl.concat_str("section", pl.lit("/"), "key")
    path = pl.when(indent == 8).then(inner).when(indent == 4).then("key")
    body = body.with_columns(key=path).filter(pl.col("raw").is_not_null())
    return body.filter(pl.col("key").is_in([*smi_report.KNOWN, *smi_report.NAMING]))


def _parse(log: Log) -> Iterator[Part]:
    samples = [(n, m[1]) for n, line in enumerate(log.head.lines, 1) if (m := _STAMP.match(line))]
    if not samples:
        # In a file of many outputs the first report may begin at the very end of the head.
        for block in log.blocks():
            samples = [(block.first_line + i, m[1]) for i, line in enumerate(block.lines) if (m := _STAMP.match(line))]
            if samples:
                break
    smi_report.refuse_empty(log, [s for _, s in samples])
    form = local_time.form(log, [s for _, s in samples[:50]])
    clock = local_time.localiser(log, form, *samples[0])
    reader = _Reader(log, form, clock)
    for block in log.blocks():
        yield reader.read(block)
    yield reader.read(None)
    findings = reader.cards.findings()
    if reader.foreign:
        findings = (*findings, Finding(
            "other-outputs", Severity.NOTE, log.name,
            "The file holds outputs of other commands as well; only the nvidia-smi -q reports in it are read.",
        ))  # fmt: skip
    yield Part(findings=findings, tool_version=reader.driver)


ADAPTER = Adapter(
    name="nvidia-smi-q",
    title="nvidia-smi -q (text, also looped)",
    yields="board power, limit, utilisation, memory, temperatures and clocks per card",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
