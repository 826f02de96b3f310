"""When a tool asked for power and got none: told by the rejects that stand between the readings of a channel."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from joulebook import attempts, schema
from joulebook_pipelines.store_power import SPEAKING, PowerReads, on_reference

FAILED = (
    "empty", "no-value", "not-a-number", "over-range", "error-code", "zero-power", "negative-power", "beyond-physical",
    "beyond-limit", "no-measurement", "discrete-state", "clock-not-set", "tool-message", "wrong-number-of-fields",
)  # fmt: skip
"""Rules of rejects that stand for a reading that was asked for and failed, and not for one that was told twice."""

SHARE = 0.1
"""Where fewer of the attempts failed, the usual step between readings is that of the log; beyond, it may be twice that."""

_FAILED = f"rule in ({', '.join(map(repr, FAILED))})"

_REFUSED = f"""select source_id, device, count(*) as n from rejects
    where {_FAILED} and (device is not null or rule = 'tool-message')
    group by source_id, device"""

_ATTEMPTS_SCHEMA = {"device": pl.String(), "ts_utc": schema.UTC}


class AttemptReads(PowerReads):
    """The question when power was asked for."""

    def attempts(self, run_id: str, scope: str) -> pl.DataFrame:
        """Return ``device, ts_utc``: when power was asked for, with or without success, where that is not told by the readings.

        A refused reading has no stamp in the store, but a place in its file: it is laid evenly between the readings
        around it. Only devices with many refused readings, or with values that are held until the next one, are listed.
        """
        refused = self.once(_REFUSED)
        if refused.is_empty():
            return pl.DataFrame(schema=_ATTEMPTS_SCHEMA)
        chosen = self._used(run_id, scope, None)
        several = chosen["host"].n_unique() > 1
        frames = [pl.DataFrame(schema=_ATTEMPTS_SCHEMA)]
        for row in chosen.iter_rows(named=True):
            stamps = self._asked(row["source_id"], row["device"], refused)
            if stamps is not None:
                name = f"{row['host']}/{row['device']}" if several else row["device"]
                asked = on_reference(stamps.to_frame("ts_utc"), row, (None, None))
                frames.append(asked.select(pl.lit(name).alias("device"), "ts_utc"))
        return pl.concat(frames)

    def _asked(self, source_id: int, device: str, refused: pl.DataFrame) -> pl.Series | None:
        """Return when a channel was asked, on its own clock; ``None`` where its readings tell that well enough."""
        of_source = "select device, n, kind from channels where source_id = ? and n > 0"
        channels = self.sql(of_source, [source_id])
        own = channels.filter(pl.col("device") == device)
        here = refused.filter(pl.col("source_id") == source_id)
        # A message of the tool is about its only device, or about an unknown one of several.
        mine = here.filter((pl.col("device") == device) | (pl.col("device").is_null() & (channels.height == 1)))
        failed = int(mine["n"].sum())
        if own.is_empty() or failed == 0:
            return None
        if own["kind"][0] != "on-change" and failed < SHARE * (own["n"][0] + failed):
            return None
        speaking = " or ".join(f"{c} is not null" for c in SPEAKING if c in self._stored())
        kept = self.sql(
            f"select line, ts_utc from readings where source_id = ? and device = ? and ({speaking}) order by line",
            [source_id, device],
        )
        places = self.sql(
            f"""select line, column_name from rejects where source_id = ? and {_FAILED}
            and (device = ? or (device is null and rule = 'tool-message' and ?)) order by line""",
            [source_id, device, channels.height == 1],
        )
        return attempts.between(kept, places)

    def around(
        self, start_utc: datetime, end_utc: datetime
    ) -> tuple[float | None, float | None, tuple[int, str, int, str, str] | None]:
        """Return how far before and after a window the nearest readings of power are, and what was rejected between them.

        Returns
        -------
        tuple
            Seconds before and after it, ``None`` where there are none; and, of the file with the most rejects in the lines between its
            nearest readings, their number, the path, and line, text and rule of the first; ``None`` where there are none.
        """
        window = [start_utc.isoformat(), end_utc.isoformat()]
        speaking = " or ".join(f"r.{c} is not null" for c in SPEAKING if c in self._stored())
        near = f"""with near as (
            select r.source_id, max(r.ts_utc) filter (ends) as before, arg_max(r.line, r.ts_utc) filter (ends) as before_line,
                min(begin_utc) filter (begins) as after, arg_min(r.line, begin_utc) filter (begins) as after_line
            from (select r.*, r.ts_utc - to_microseconds(cast(coalesce(r.span_s, 0) * 1e6 as bigint)) as begin_utc,
                    r.ts_utc <= cast(? as timestamptz) as ends, begin_utc >= cast(? as timestamptz) as begins
                from aligned_readings r join channels c on c.source_id = r.source_id and c.device = r.device
                where c.scope not in ('', 'part') and ({speaking})) r group by r.source_id)"""
        ends = self.sql(
            f"""{near} select epoch_us(cast(? as timestamptz)) - epoch_us(max(before)) as before_us,
            epoch_us(min(after)) - epoch_us(cast(? as timestamptz)) as after_us from near""", [*window, *window],
        )  # fmt: skip
        rejected = self.sql(
            f"""{near} select count(*) as n, s.path, min(j.line) as line, arg_min(j.raw, j.line) as raw, arg_min(j.rule, j.line) as rule
            from near join rejects j on j.source_id = near.source_id and j.line > least(before_line, after_line)
                and j.line < greatest(before_line, after_line) and {_FAILED}
            join sources s on s.source_id = near.source_id group by s.path order by n desc, s.path limit 1""", window,
        )  # fmt: skip
        before_s, after_s = (None if us is None else us / 1e6 for us in ends.row(0))
        return before_s, after_s, rejected.row(0) if rejected.height else None
