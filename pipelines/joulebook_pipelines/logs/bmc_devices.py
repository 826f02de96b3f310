"""Which device each sensor of a management controller speaks for; of several that would share one, the first."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from joulebook_pipelines.logs import cells, sensors


@dataclass
class Devices:
    """What was learnt of the sensors of a log so far.

    Parameters
    ----------
    scopes
        Boundary of each device.
    side_unnamed
        Sensors of supplies whose name does not say whether they are an input or an output.
    """

    scopes: dict[str, str] = field(default_factory=dict)
    side_unnamed: set[str] = field(default_factory=set)
    _owner: dict[tuple[str, str], str] = field(default_factory=dict)
    _powers: set[str] = field(default_factory=set)

    def placed(self, raw: pl.DataFrame) -> pl.DataFrame:
        """Add ``device, quantity, canonical``; lines of sensors that say nothing about power, heat or fans fall out."""
        raw = raw.with_columns(pl.col("entity").fill_null(""), pl.col("unit").fill_null(""))
        raw = raw.with_columns(pl.col("name").fill_null(""), turn=pl.lit(0, pl.Int64))
        if raw.select(pl.struct("mark", "name", "entity").is_duplicated().any()).item():
            power = pl.col("unit").str.to_lowercase().is_in(["watts", "watt", "w"])
            turn = pl.int_range(pl.len()).over("mark", "name", "entity")
            raw = raw.with_columns(turn=pl.when(power).then(0).otherwise(turn).cast(pl.Int64))
        key = ["name", "unit", "entity", "turn"]
        rows = []
        speaks = cells.plain_number(pl.col("value")).is_not_null().any()
        seen = raw.group_by(key, maintain_order=True).agg(speaks=speaks)
        for name, unit, entity, turn_, speaks_ in seen.iter_rows():  # one a sensor, not a line
            sensor = self._sensor(name, unit, entity)
            if sensor is not None:
                device = self._own(sensor, name, entity, turn_) if speaks_ else sensor.device
                rows.append((name, unit, entity, turn_, device, sensor.quantity, sensor.unit))
        text = dict.fromkeys(("name", "unit", "entity"), pl.String)
        schema = {**text, "turn": pl.Int64, **dict.fromkeys(("device", "quantity", "canonical"), pl.String)}
        placed = pl.DataFrame(rows, schema=schema, orient="row")
        return raw.join(placed, on=key, how="inner", maintain_order="left")

    def _sensor(self, name: str, unit: str, entity: str) -> sensors.Sensor | None:
        """Return the sensor; where no unit is printed, only that of a name that is known to be a power."""
        sensor = sensors.classify(name, unit, entity)
        if sensor is None:
            bare = unit.lower() not in sensors.FAN_PERCENT and (name in self._powers or sensors.says_power(name))
            found = sensors.classify(name, "Watts", entity) if bare else None
            return None if found is None else sensors.Sensor(found.device, found.scope, found.quantity, "")
        if sensor.quantity == "power_w":
            self._powers.add(name)
        return sensor

    def _own(self, sensor: sensors.Sensor, name: str, entity: str, turn: int) -> str:
        """Return the sensor's device: its own name where another sensor already speaks for that device and quantity."""
        key = f"{name}@{entity}#{turn}"
        first = self._owner.setdefault((sensor.device, sensor.quantity), key)
        device, scope = sensor.device, sensor.scope
        if first != key:
            extra = f"-{entity}" if entity else ""
            device, scope = f"{device}/{sensors.slug(name)}{extra}" + (f"-{turn + 1}" if turn else ""), "part"
        elif sensor.side_unnamed:
            self.side_unnamed.add(name)
        if self.scopes.get(device, "part") == "part":
            self.scopes[device] = scope
        return device
