"""Words of titles, in the languages of meters: which of them is a time, a power, a counter, a filler."""

from __future__ import annotations

TIME = {
    "time", "timestamp", "timestamps", "datetime", "zeit", "zeitstempel", "ts", "epoch", "unix", "unixtime", "utc",
    "horodatage", "horodate", "tijd", "tijdstip", "when", "logged", "measured", "changed",
}  # fmt: skip
DATE = {"date", "datum", "dato", "data", "jour", "day", "tag", "fecha", "pvm", "päivämäärä"}  # fmt: skip
CLOCK = {"uhrzeit", "heure", "hora", "ora", "klokkeslett", "godzina", "kello", "hour", "stunde"}  # fmt: skip
START = {"start", "from", "von", "begin", "beginn", "since"}  # fmt: skip
END = {"end", "to", "bis", "until", "ende", "stop"}  # fmt: skip
OTHER_TIMES = {"created", "updated", "createdat", "updatedat", "step", "steps", "epochs", "count"}
RELATIVE = {"elapsed", "seconds", "sec", "secs", "relative"}  # fmt: skip
MONTHS = {"period", "month", "billing period", "billing month", "usage month", "year month", "monat", "mois"}
TIME_UNITS = {
    "s": "s", "sec": "s", "secs": "s", "seconds": "s", "ms": "ms", "msec": "ms", "millis": "ms", "milliseconds": "ms",
    "us": "us", "µs": "us", "usec": "us", "microseconds": "us", "ns": "ns", "nanoseconds": "ns", "min": "min",
    "mins": "min", "minutes": "min", "h": "h", "hours": "h",
}  # fmt: skip
"""Units of a time axis in numbers, as titles write them."""

OWN_UNITS = {
    "apower": ("power_w", "W", ""), "act_power": ("power_w", "W", ""), "total_act_power": ("power_w", "W", ""),
    "a_act_power": ("power_w", "W", ""), "b_act_power": ("power_w", "W", ""), "c_act_power": ("power_w", "W", ""),
    "aenergy.total": ("energy_j", "Wh", "counter"),
    "total_act_energy": ("energy_j", "Wh", "interval"), "power.draw": ("power_w", "W", ""),
    "power.draw.instant": ("power_w", "W", ""), "power.draw.average": ("power_w", "W", ""),
    "total_aprt_power": ("apparent_power_va", "VA", ""), "a_aprt_power": ("apparent_power_va", "VA", ""),
    "b_aprt_power": ("apparent_power_va", "VA", ""), "c_aprt_power": ("apparent_power_va", "VA", ""),
    "aprt_power": ("apparent_power_va", "VA", ""),
}  # fmt: skip
"""Titles that one tool alone writes, in a unit that its manual states: Shelly's interface, NVIDIA's ``power.draw``."""

VALUE = {"value", "wert", "valor", "valeur", "messwert"}  # fmt: skip
UNIT = {"unit", "units", "einheit", "unite", "unidad"}  # fmt: skip
CARDS = ("npu", "npuid", "card", "accelerator", "aip", "hpu", "dcu", "mlu", "tpu", "ipu", "xpu")
"""What makers of accelerators other than graphics cards call them."""

DEVICE = {
    "device", "sensor", "meter", "plug", "outlet", "channel", "kanal", "gerat", "geraet", "socket", "gpu", "node",
    "circuit", "entity", "host", "hostname", "server", "machine", "gpuid", "deviceid", "dev", *CARDS,
}  # fmt: skip
POWER = {
    "power", "pwr", "watt", "watts", "leistung", "wirkleistung", "puissance", "potencia", "potenza", "vermogen",
    "p",
}  # fmt: skip
ENERGY = {
    "energy", "energie", "energia", "verbrauch", "consumption", "zahlerstand", "zaehlerstand", "kwh", "wh", "wp",
}  # fmt: skip
COUNTER = {
    "total", "counter", "cumulative", "cumul", "cumulated", "zahlerstand", "zaehlerstand", "reading", "meter",
    "lifetime", "register", "gesamt", "index", "accumulated", "accum",
}  # fmt: skip
HOW = {"integrated", "since", "start", "reset", "calculated", "computed", "derived", "running", "joule", "joules"}
"""Words of an energy's title that say how it came about, not of what it is."""
INTERVAL = {"interval", "usage", "consumption", "verbrauch", "per", "hourly", "delta", "period", "used", "consumed"}  # fmt: skip
FILLER = {
    "draw", "used", "usage", "in", "active", "real", "reading", "ac", "instant", "instantaneous", "avg", "average",
    "mean", "current", "now", "measured", "import", "counter", "cumulative", "interval", "consumption", "ges",
    "value", "readings", "of", "act", "wirk", "momentan", "aktuelle", "aktuell", "global", "total", "sum", "gesamt",
    "all", "overall", "summe", "mittel", "per", "delta", "apower", "aenergy", "emeter", "get", "realtime", "consumed", "tot", "sigma",
    "cur", "last",
}  # fmt: skip
TOTAL = {
    "total", "sum", "gesamt", "all", "overall", "summe", "ges", "tot", "sigma",
}  # fmt: skip

NOT_A_READING = {
    "max", "maximum", "min", "minimum", "std", "stddev", "peak", "rated", "nominal", "co2", "cost", "price", "carbon",
    "emissions",
    "efficiency", "error", "target", "estimated", "forecast", "threshold", "available", "freq", "frequency", "level",
    "update",
    "samples", "count", "unit", "units", "percentiles", "percentile", "saving", "savings", "pct", "percent", "status",
    "state", "mode", "id", "norm", "edp", "production", "produced", "export", "exported", "returned", "injected", "einspeisung",
    "fundamental", "fund", "ret", "percentage", "euro", "eur", "usd", "gbp", "kosten",
}  # fmt: skip
SECONDARY = {
    "voltage": ("voltage_v", ""), "spannung": ("voltage_v", ""), "volt": ("voltage_v", "V"),
    "volts": ("voltage_v", "V"),
    "current": ("current_a", ""), "strom": ("current_a", ""), "intensity": ("current_a", ""),
    "pf": ("power_factor_ratio", "1"), "powerfactor": ("power_factor_ratio", "1"),
    "cosphi": ("power_factor_ratio", "1"),
    "apparent": ("apparent_power_va", ""), "scheinleistung": ("apparent_power_va", ""),
    "reactive": ("reactive_power_var", ""), "blindleistung": ("reactive_power_var", ""),
    "temperature": ("temperature_c", ""), "temp": ("temperature_c", ""), "temperatur": ("temperature_c", ""),
}  # fmt: skip
SYMBOLS = {"i", "u", "s", "q", "lambda", "temp", "urms", "irms"}
"""Letters that name a quantity and no place."""
