"""Words that meters of other languages use in their titles, as the English ones that the rest of the reading knows."""

from __future__ import annotations

import re
import unicodedata

_SIGNS = {
    "功率因数": "power factor", "功率因數": "power factor", "力率": "power factor", "有功功率": "active power",
    "无功功率": "reactive", "無效功率": "reactive", "無効電力": "reactive", "视在功率": "apparent", "視在功率": "apparent",
    "皮相電力": "apparent", "消費電力量": "energy", "積算電力量": "energy counter", "電力量": "energy", "消費電力": "power",
    "有効電力": "active power", "总功率": "total power", "功率": "power", "電力": "power", "电力": "power", "用电量": "energy",
    "耗电量": "energy", "电能": "energy", "電能": "energy", "电量": "energy", "能耗": "energy", "电压": "voltage", "電壓": "voltage",
    "電圧": "voltage", "电流": "current", "電流": "current", "温度": "temperature", "溫度": "temperature", "累计": "cumulative",
    "累計": "cumulative", "积算": "cumulative", "積算": "cumulative", "总": "total", "合計": "total", "最大": "max", "最小": "min",
    "平均": "average", "上限": "limit", "日期时间": "datetime", "日期時間": "datetime", "年月日": "date", "日期": "date",
    "日付": "date", "日時": "datetime", "时间": "time", "時間": "time", "时刻": "time", "時刻": "time", "设备": "device",
    "設備": "device", "装置": "device", "単位": "unit", "单位": "unit", "值": "value", "値": "value", "전력량": "energy",
    "전력": "power", "시간": "time", "시각": "time", "날짜": "date", "Σ": " sum ", "∑": " sum ",
}  # fmt: skip
"""Chinese, Japanese and Korean write no blanks between words, so these are looked for anywhere, the longest first."""

_WORDS = {
    "мощность": "power", "активная": "active", "время": "time", "дата": "date", "энергия": "energy", "напряжение": "voltage",
    "ток": "current", "температура": "temperature", "moc": "power", "teho": "power", "effekt": "power", "výkon": "power",
    "potência": "power", "ativa": "active", "activa": "active", "attiva": "active", "czynna": "active",
    "energi": "energy", "energii": "energy", "énergie": "energy", "czas": "time", "tidpunkt": "timestamp", "tidspunkt": "timestamp",
    "aika": "time", "čas": "time", "napięcie": "voltage", "prąd": "current", "spenning": "voltage", "spänning": "voltage",
    "spanning": "voltage", "tensão": "voltage", "tensión": "voltage", "tensione": "voltage", "tension": "voltage", "courant": "current",
    "corriente": "current", "corrente": "current", "stroom": "current", "ström": "current", "température": "temperature",
    "temperatura": "temperature",
    "вт": "W", "квт": "kW", "мвт": "MW", "втч": "Wh", "квтч": "kWh", "дж": "J", "кдж": "kJ", "ва": "VA", "счётчик": "counter",
    "счетчик": "counter", "потребление": "consumption", "мощности": "power", "энергии": "energy",
}  # fmt: skip

_ANY_SIGN = re.compile("|".join(map(re.escape, sorted(_SIGNS, key=len, reverse=True))))


def english(title: str) -> str:
    """Return a title with the words that are known in English; wide letters and signs become plain ones.

    Examples
    --------
    >>> english("有功功率（kW）"), english("Moc czynna [W]"), english("PΣ"), english("Энергия, кВт·ч")
    ('active power (kW)', 'power active [W]', 'P sum', 'energy, kWh')
    """
    if title.isascii() and not _words_of(title) & _WORDS.keys():
        return title
    # The sign for micro and the superscripts stay as they are: units are written with them.
    plain = "".join(unicodedata.normalize("NFKC", c) if c not in "µ²³" else c for c in title)
    plain = re.sub(r"(?i)(?<![^\W\d_])(к?вт)\s*[·*⋅-]\s*ч", r"\1ч", plain)
    plain = _ANY_SIGN.sub(lambda m: f" {_SIGNS[m[0]]} ", plain)
    plain = re.sub(r"[^\W\d_]+", lambda m: _WORDS.get(m[0].casefold(), m[0]), plain)
    return re.sub(r"(?<=\() +| +(?=\))", "", " ".join(plain.split()))


def _words_of(title: str) -> set[str]:
    return set(re.findall(r"[a-z]+", title.casefold()))
