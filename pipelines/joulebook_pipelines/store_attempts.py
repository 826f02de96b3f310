"""When a tool asked for power and got none: told by the rejects that stand between the readings of a channel."""

from __future__ import annotations

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
