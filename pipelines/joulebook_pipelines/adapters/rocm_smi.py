"""``rocm-smi`` and ``amd-smi``: tables (``--csv``) and JSON, with a time column or a collector's stamps between the rounds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

import polars as pl

from joulebook_pipelines.logs import amd_names, entries, stamp_lines, stamps, table
from joulebook_pipelines.logs.contract import Adapter, Channel, Head, Log, LogRefusedError, Part

_TOOL = re.compile(r"^\s*[\[\]{}\"]|^\s*(?:device|gpu|card\d+)\b")
"""Lines of the tools themselves: they hold no collector's stamp."""

_CURE = (
    "rocm-smi prints no times; put one before each round (date -Is; rocm-smi --showpower --csv), or log with "
    "amd-smi monitor --csv, whose rows carry a timestamp"
)


def _cells(line: str) -> list[str]:
    return [c.strip().strip('"').lower() for c in line.split(",")]


def _header_at(lines: tuple[str, ...]) -> int | None:
    for at, line in enumerate(lines[:60]):
        cells = _cells(line)
        if (
            ({"device", "gpu"} & set(cells))
            and amd_names.chosen(cells)
            and not any(c in {"uuid", "name"} for c in cells)
        ):
            return at
    return None


def _is_json(head: Head) -> bool:
    text = head.text
    if not re.search(r"^\s*[{\[]", text, re.MULTILINE):
        return False
    rocm = re.search(r'"card\d+"\s*:\s*\{', text) and re.search(r'"[^"]*(?:\([WC%]\)|\(uJ\)|\(C\))"\s*:', text)
    amd = re.search(r'"gpu"\s*:\s*\d+', text) and re.search(r'"(?:socket_power|power_usage)"\s*:', text)
    return bool(rocm or amd)


def _sniff(head: Head) -> bool:
    return _header_at(head.lines) is not None or _is_json(head)


def _parse(log: Log) -> Iterator[Part]:
    if _header_at(log.head.lines) is None:
        found, count, naming, odd = _from_json(log)
    else:
        found, count, naming, odd = _from_table(log)
    readings, rejects = entries.gather(found, dict.fromkeys(found["device"].unique(), "board"))
    rejects = pl.concat([odd, rejects])
    channels = tuple(_channel(log, d, readings, naming.get(d, {})) for d in found["device"].unique(maintain_order=True))
    yield Part(count, readings, rejects, channels=channels, findings=amd_names.dies(log.name, rejects, readings))


def _channel(log: Log, device: str, readings: pl.DataFrame, naming: Mapping[str, str]) -> Channel:
    mine = readings.filter(pl.col("device") == device)
    powered = "power_w" in mine.columns and mine["power_w"].null_count() < mine.height
    counted = "energy_counter_j" in mine.columns and mine["energy_counter_j"].null_count() < mine.height
    model = next((naming[k] for k in amd_names.MODEL if naming.get(k)), "")
    uuid = next((naming[k] for k in amd_names.IDENTITY if naming.get(k)), "")
    window_s = log.options.window_s
    kind = "counter" if counted and not powered else "instant" if window_s is None else "mean"
    return Channel(device, "board", model, uuid, kind, window_s)


class _Times:
    """The time of each round: in a column of its own, else a collector's."""

    def __init__(self, log: Log, samples: list[str], line: int) -> None:
        self.collector = None
        self._form, self._clock = None, stamps.Localiser(None)
        numbers = [s for s in samples if re.fullmatch(r"\d+(\.\d+)?", s)]
        samples = numbers if len(numbers) * 2 > len(samples) else samples
        if samples:
            try:
                self._form = stamps.detect(samples, day_first=log.options.day_first)
            except stamps.StampError as error:
                raise LogRefusedError(f"{log.name}: {error}") from None
            if self._form.pattern == "relative":
                raise LogRefusedError(
                    f"{log.name}:{line}: the times ({samples[0]!r}) count from an unknown start; log again with real ones"
                )
            self._clock = stamps.localiser(self._form, log.options, log.name, line, samples[0])
            return
        self.collector = stamp_lines.find(log.head.lines, log.options, log.name, _TOOL)
        if self.collector is None:
            raise LogRefusedError(
                f"{log.name}: its rounds carry no time, and without times there is no energy; {_CURE}"
            )

    def utc(self, texts: pl.Series) -> pl.Series:
        """Return UTC stamps of texts; null where one cannot be read."""
        frame = texts.to_frame("t")
        if self.collector is not None:
            return self.collector.clock.to_utc(
                frame.select(self.collector.naive(pl.col("t")).alias("ts_utc")).to_series()
            )
        assert self._form is not None
        return self._clock.to_utc(frame.select(stamps.parse(pl.col("t"), self._form).alias("ts_utc")).to_series())


def _from_table(log: Log) -> tuple[pl.DataFrame, int, dict[str, dict[str, str]], pl.DataFrame]:
    """Return entries, lines, what names the cards, and rejects of whole lines of a table."""
    at = _header_at(log.head.lines) or 0
    titles = [c.strip().strip('"') for c in log.head.lines[at].split(",")]
    names = [t.lower() for t in titles]
    columns = [f"c{i}" for i in range(len(names))]
    time = next((c for c, n in zip(columns, names, strict=True) if n in amd_names.TIMES), None)
    place = next(c for c, n in zip(columns, names, strict=True) if n in {"device", "gpu"})
    rows = [
        c
        for line in log.head.lines[at + 1 : at + 200]
        if len(c := line.split(",")) == len(names) and _cells(line) != names
    ]
    samples = [r[columns.index(time)].strip().strip('"') for r in rows] if time else []
    times = _Times(log, [s for s in samples if re.match(r"\d", s)], at + 2)
    frames, odd, count, mark = [], [table.no_rejects()], 0, None
    for block in log.blocks():
        count += block.count
        if b"\x00" in block.data:
            block, nul = table.without_nul(block)
            odd.append(nul)
        raw = table.split(block, columns, ",", quoted=b'"' in block.data)
        head = (
            pl.concat_list(pl.all().exclude("line"))
            .list.eval(pl.element().str.strip_chars(' "').str.to_lowercase())
            .list.join(",")
        )
        frame, others = raw.frame.filter(head != ",".join(names)), raw.odd
        if times.collector is not None:
            stamp, rest, _ = times.collector.split(pl.col("raw"))
            is_mark = stamp.is_not_null() & (rest.str.strip_chars() == "")
            marks = others.with_columns(mark=stamp).filter(is_mark).select("line", "mark")
            others = others.filter(~is_mark.fill_null(value=False))
            frame = frame.join_asof(marks.sort("line"), on="line", strategy="backward").with_columns(
                pl.col("mark").fill_null(pl.lit(mark, pl.String))
            )
            mark = marks["mark"][-1] if marks.height else mark
        row = pl.col("raw").str.contains(r"^\s*(?:card\d|\d)")
        rule = pl.when(row).then(pl.lit("wrong-number-of-fields")).otherwise(pl.lit("tool-message"))
        odd.append(table.whole_lines(others, rule))
        if not block.terminated and frame.height and frame["line"][-1] == block.first_line + block.count - 1:
            last = frame.tail(1).select("line", raw=pl.concat_str(columns, separator=",", ignore_nulls=True))
            odd.append(table.whole_lines(last, "last-line-cut"))
            frame = frame.head(frame.height - 1)
        frames.append(frame)
    whole = pl.concat(frames, how="diagonal")
    stamp_column = time or "mark"
    whole = whole.with_columns(times.utc(whole[stamp_column].str.strip_chars(' "').fill_null("")).alias("ts_utc"))
    devices = {t: amd_names.card(t) for t in whole[place].str.strip_chars(' "').unique()}
    whole = whole.with_columns(
        device=pl.col(place).str.strip_chars(' "').replace_strict(devices, default=None, return_dtype=pl.String)
    )
    nameless = whole.filter(pl.col("device").is_null()).select(
        "line", raw=pl.concat_str(columns, separator=",", ignore_nulls=True)
    )
    odd.append(table.whole_lines(nameless, "no-such-device"))
    whole = whole.filter(pl.col("device").is_not_null())
    if time:
        bad = whole.filter(pl.col("ts_utc").is_null())
        stamp_field = table.Field(time, titles[columns.index(time)], "ts_utc")
        odd.append(table.cell_rejects(bad, stamp_field, pl.lit("no-such-time")))
    read = amd_names.chosen(names)
    longs = []
    for quantity, name in read.items():
        column = columns[names.index(name)]
        wanted = (
            whole if quantity == "power_w" else whole.filter(pl.col(column).fill_null("").str.strip_chars(' "') != "")
        )
        longs.append(_long(wanted, column, titles[names.index(name)], quantity, amd_names.QUANTITIES[name][1]))
    found = pl.concat(longs).sort("row", maintain_order=True)
    naming: dict[str, dict[str, str]] = {}
    for name in {*amd_names.MODEL, *amd_names.IDENTITY} & set(names):
        told = whole.select("device", v=pl.col(columns[names.index(name)]).str.strip_chars(' "')).unique(
            "device", keep="first"
        )
        for device, value in told.iter_rows():  # one row a card
            naming.setdefault(device, {})[name] = value
    return found, count, naming, pl.concat(odd)


def _long(rows: pl.DataFrame, column: str, header: str, quantity: str, unit: str) -> pl.DataFrame:
    return rows.select(
        row=pl.col("line").cast(pl.Int64), line=pl.col("line").cast(pl.Int64), device="device", ts_utc="ts_utc",
        quantity=pl.lit(quantity), header=pl.lit(header), unit=pl.lit(unit),
        raw=pl.col(column).fill_null("").str.strip_chars(' "()'),
    )  # fmt: skip


def _documents(log: Log, text: str) -> Iterator[tuple[int, object, str, str]]:
    """Yield line, document, its text, and what stands before it."""
    decoder, at = json.JSONDecoder(), 0
    while (begin := _opening(text, at)) is not None:
        try:
            document, end = decoder.raw_decode(text, begin)
        except (json.JSONDecodeError, RecursionError) as error:
            line = text.count("\n", 0, getattr(error, "pos", begin)) + 1
            raise LogRefusedError(
                f"{log.name}:{line}: not whole JSON: the output was cut or damaged; log it again"
            ) from None
        yield text.count("\n", 0, begin) + 1, document, text[begin:end], text[at:begin]
        at = end


def _opening(text: str, at: int) -> int | None:
    found = re.compile(r"^[ \t]*(?=[{\[])", re.MULTILINE).search(text, at)
    return found.end() if found else None


def _from_json(log: Log) -> tuple[pl.DataFrame, int, dict[str, dict[str, str]], pl.DataFrame]:
    """Return entries, lines, what names the cards, and rejects of whole lines of JSON documents."""
    text = log.whole_text()
    rows: list[tuple[int, int, str, str, str, str, str, str]] = []
    naming: dict[str, dict[str, str]] = {}
    own: list[str] = []
    before: list[tuple[int, str]] = []
    for number, (line, document, said, prose) in enumerate(_documents(log, text)):
        marks = [p.strip() for p in prose.split("\n") if p.strip()]
        before += [(line - 1, m) for m in marks]
        cursor = 0
        for device, flat, stamp in _cards(document):
            own.append(stamp)
            begin = _begin(said, device, cursor)
            lowered = {k.lower(): (k, v) for k, v in flat.items()}
            told = amd_names.chosen(lowered)
            for quantity, name in told.items():
                key, value = lowered[name]
                at = max(said.find(f'"{key}"', begin), 0)
                cursor = max(cursor, at)
                rows.append(
                    (
                        number,
                        said.count("\n", 0, at) + line,
                        device,
                        quantity,
                        name,
                        key,
                        value,
                        stamp or (marks[-1] if marks else ""),
                    )
                )
            naming.setdefault(
                device, {k: v for k, (_, v) in lowered.items() if k in {*amd_names.MODEL, *amd_names.IDENTITY}}
            )
    if not rows:
        raise LogRefusedError(f"{log.name}: no card in it has a quantity that is read")
    stamped = [s for s in own if s]
    times = _Times(log, stamped[:200] if len(stamped) * 2 > len(own) else [], rows[0][1])
    frame = pl.DataFrame(
        rows, schema=("doc", "line", "device", "quantity", "name", "header", "raw", "stamp"), orient="row",
    )  # fmt: skip
    stamp = frame["stamp"]
    if times.collector is not None:
        # The last stamp in front of a document is its time, as it comes from the line before.
        stamp = frame.select(times.collector.split(pl.col("stamp"))[0].alias("stamp")).to_series()
    units = {k: u for k, (_, u) in amd_names.QUANTITIES.items()}
    found = frame.with_columns(
        times.utc(stamp.fill_null("")).alias("ts_utc"), row=pl.struct("doc", "device").rle_id().cast(pl.Int64),
        unit=pl.col("name").replace_strict(units, return_dtype=pl.String), raw=pl.col("raw").str.strip_chars(" ()"),
    ).select(pl.col(c).cast(t) for c, t in entries.SCHEMA.items())  # fmt: skip
    total = text.count("\n") + (not text.endswith("\n"))
    return found, total, naming, table.no_rejects()


def _cards(document: object) -> Iterator[tuple[str, dict[str, str], str]]:
    """Yield device, flat values and own stamp of each card of a document."""
    if isinstance(document, list):
        for item in document:
            yield from _cards(item)
    elif isinstance(document, dict):
        stamp = next(
            (str(v) for k, v in document.items() if k.lower() in amd_names.TIMES and not isinstance(v, dict | list)), ""
        )
        if isinstance(document.get("gpu"), int | str) and (device := amd_names.card(str(document["gpu"]))):
            yield device, dict(_flat(document)), stamp
            return
        for key, value in document.items():
            if isinstance(value, dict) and (device := amd_names.card(key)):
                flat = dict(_flat(value))
                mine = next((v for k, v in flat.items() if k.lower() in amd_names.TIMES), "")
                yield device, flat, mine or stamp
            elif isinstance(value, list):
                for inner, flat, mine in _cards(value):
                    yield inner, flat, mine or stamp


def _flat(thing: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the leaves of a card; amd-smi's ``{"value": 36, "unit": "W"}`` is one leaf."""
    for key, value in thing.items():
        if isinstance(value, dict) and "value" in value and "unit" in value:
            yield key, f"{value['value']} {value['unit']}"
        elif isinstance(value, dict):
            yield from _flat(value)
        elif not isinstance(value, list):
            yield key, str(value)


def _begin(said: str, device: str, after: int) -> int:
    """Return where a card begins in the text of a document, from a place on."""
    number = device.removeprefix("gpu:")
    found = re.compile(rf'"(?:card|gpu){number}"\s*:|"gpu"\s*:\s*"?{number}\b').search(said, after)
    return found.start() if found else after


ADAPTER = Adapter(
    name="rocm-smi",
    title="rocm-smi and amd-smi (CSV and JSON)",
    yields="board power or energy counter, limit, utilisation, memory, temperatures and clocks per card",
    sniff=_sniff,
    parse=_parse,
)
