"""Machine code that reads plain rows: numbers, stamps and words at fixed places, one pass over the bytes.

A row that holds anything else (another number of cells, a quote, a cell that is no number) is not judged here: reading
stops in front of it. The decimals are exact: digits up to 2**53 divided by a power of ten up to 10**22 round once
(Clinger 1990, doi:10.1145/93542.93557).
"""

from __future__ import annotations

import numpy as np
from numba import njit

SKIPPED, NUMBER, STAMP, WORD, LABEL = range(5)
"""What a cell is: passed over, a number with or without its unit, a stamp, one of a few words, always the same text."""

MOST_WORDS = 64
"""Distinct texts of a column that are told apart; cards, states and marks are fewer."""

LONGEST_WORD = 64

_SPACE, _QUOTE, _MINUS, _POINT, _ZERO, _NEWLINE, _Z = 32, 34, 45, 46, 48, 10, 90
_EXACT = 2**53
_TENS = 10.0 ** np.arange(23)
_WHOLE_TENS = 10 ** np.arange(13)
_LENGTH_OF_STAMP = 19
_NO_MINUTE = -(2**62)
_DAYS_OF_MONTH = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
_DAYS_BEFORE_1970 = 719_468  # from 0000-03-01, where the count of days begins


@njit(nogil=True, cache=True)
def _byte(data: np.ndarray, at: int) -> int:
    """Return a byte; a place without sign spares the question whether to count from the end, a quarter of all the time."""
    return int(data[np.uint64(at)])


@njit(nogil=True, cache=True)
def _skip_spaces(data: np.ndarray, at: int) -> int:
    while _byte(data, at) == _SPACE:  # the line end that stands last stops it
        at += 1
    return at


@njit(nogil=True, cache=True)
def _number(data: np.ndarray, at: int) -> tuple[int, float]:
    """Return the place behind a decimal number and its value; -1 where there is none that is surely exact."""
    negative = _byte(data, at) == _MINUS
    at += negative
    behind, mantissa = at, 0
    at, mantissa = _more_digits(data, at, mantissa)
    digits, decimals = at - behind, 0
    if _byte(data, at) == _POINT:
        behind = at + 1
        at, mantissa = _more_digits(data, behind, mantissa)
        decimals = at - behind
        digits += decimals
    if digits == 0 or digits > 18 or mantissa > _EXACT:
        return -1, 0.0
    value = mantissa / _TENS[decimals] if decimals else np.float64(mantissa)
    return at, -value if negative else value


@njit(nogil=True, cache=True)
def _more_digits(data: np.ndarray, at: int, mantissa: int) -> tuple[int, int]:
    """Return the place behind digits, and what they make of the number before them; what is no digit stops it."""
    while True:
        digit = _byte(data, at) - _ZERO
        if digit < 0 or digit > 9:
            return at, mantissa
        mantissa = mantissa * 10 + digit
        at += 1


@njit(nogil=True, cache=True)
def _digits(data: np.ndarray, at: int, count: int) -> int:
    """Return ``count`` digits as a number, or something far below 0."""
    value = 0
    for i in range(at, at + count):
        digit = _byte(data, i) - _ZERO
        if digit < 0 or digit > 9:
            return -1_000_000
        value = value * 10 + digit
    return value


@njit(nogil=True, cache=True)
def _day(year: int, month: int, day: int) -> int:
    """Return the days since 1970 of a date of the Gregorian calendar; below -10**6 where there is no such date."""
    if month < 1 or month > 12 or day < 1 or year < 1:
        return -10_000_000
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > _DAYS_OF_MONTH[month - 1] + (leap and month == 2):
        return -10_000_000
    # Years that begin in March have their leap day at the end, so whole years and months can be counted.
    shifted, since_march = (year, month - 3) if month > 2 else (year - 1, month + 9)
    days = shifted * 365 + shifted // 4 - shifted // 100 + shifted // 400
    return days + (153 * since_march + 2) // 5 + day - 1 - _DAYS_BEFORE_1970


@njit(nogil=True, cache=True)
def _minute(data: np.ndarray, at: int, places: np.ndarray, between: np.ndarray) -> int:
    """Return the minutes since 1970 of a stamp of 19 characters, or something far below 0."""
    for i in range(_LENGTH_OF_STAMP):
        if between[i] and _byte(data, at + i) != between[i]:
            return _NO_MINUTE
    hour, minute = _digits(data, at + places[3], 2), _digits(data, at + places[4], 2)
    days = _day(_digits(data, at + places[0], 4), _digits(data, at + places[1], 2), _digits(data, at + places[2], 2))
    known = days > -1_000_000 and 0 <= hour <= 23 and 0 <= minute <= 59
    return (days * 24 + hour) * 60 + minute if known else _NO_MINUTE


@njit(nogil=True, cache=True)
def _same_minute(data: np.ndarray, at: int, before: int) -> bool:
    """Tell whether all but the second of a stamp, which comes last, is as in one before: so are nearly all stamps of a poller.

    All bytes are compared without a question after each, which machines do at once.
    """
    other = np.uint8(0)
    for i in range(_LENGTH_OF_STAMP - 2):
        other |= data[np.uint64(at + i)] ^ data[np.uint64(before + i)]
    return other == 0


@njit(nogil=True, cache=True)
def _stamp(data: np.ndarray, at: int, minute: int, second_at: int, aware: bool) -> tuple[int, int]:
    """Return the place behind a stamp of 19 characters, whose minute is known, and digits of a second; and its microseconds."""
    second = _digits(data, at + second_at, 2)
    if minute == _NO_MINUTE or second < 0 or second > 59:
        return -1, 0
    at += _LENGTH_OF_STAMP
    fraction = 0
    if _byte(data, at) == _POINT:
        begin = at + 1
        at, fraction = _more_digits(data, begin, 0)
        if at - begin > 18:
            return -1, 0
        # what is finer than a microsecond is cut off
        fraction = (
            fraction * _WHOLE_TENS[6 - (at - begin)] if at - begin <= 6 else fraction // _WHOLE_TENS[at - begin - 6]
        )
    if aware:
        if at >= len(data) or _byte(data, at) != _Z:
            return -1, 0
        at += 1
    return at, (minute * 60 + second) * 1_000_000 + fraction


@njit(nogil=True, cache=True)
def _behind_text(data: np.ndarray, at: int, texts: np.ndarray, which: int, length: int) -> int:
    """Return the place behind one of some texts if it stands here, else the same place."""
    if length == 0 or at + length > len(data):
        return at
    for i in range(length):
        if _byte(data, at + i) != texts[which, i]:
            return at
    return at + length


@njit(nogil=True, cache=True)
def _end_of_cell(data: np.ndarray, at: int, separator: int, ends: np.ndarray) -> int:
    """Return where a cell ends, at a separator or a line end, or -1 where it holds what must be looked at."""
    while not ends[_byte(data, at)]:
        at += 1
    return at if _byte(data, at) == separator or _byte(data, at) == _NEWLINE else -1


@njit(nogil=True, cache=True)
def _expected_word(
    data: np.ndarray, begin: int, end: int, column: int, known: np.ndarray, lengths: np.ndarray, states: np.ndarray
) -> tuple[int, int]:
    """Return the place behind the word that follows the last one, and its number, where it stands here; else -1.

    Pollers write their devices in turn. All bytes are compared without a question after each, which machines do at once.
    """
    at = states[column, 1] + 1 if states[column, 1] + 1 < states[column, 0] else 0
    length = lengths[column, at]
    behind = begin + length
    if length == 0 or behind >= len(data) or _byte(data, behind) != end:
        return -1, -1
    other = np.uint8(0)
    for i in range(length):
        other |= known[column, np.uint64(at), np.uint64(i)] ^ data[np.uint64(begin + i)]
    if other:
        return -1, -1
    states[column, 1] = at
    return behind, int(at)


@njit(nogil=True, cache=True)
def _word(
    data: np.ndarray, begin: int, end: int, column: int, known: np.ndarray, lengths: np.ndarray, states: np.ndarray
) -> int:
    """Return the number of a text among those known, a new one where it is new, -1 where there is no room."""
    while end > begin and _byte(data, end - 1) == _SPACE:
        end -= 1
    length, count, at = end - begin, states[column, 0], states[column, 1]
    for _ in range(count):
        at = at + 1 if at + 1 < count else 0
        same = lengths[column, at] == length
        for i in range(length if same else 0):
            if known[column, at, i] != _byte(data, begin + i):
                same = False
                break
        if same:
            states[column, 1] = at
            return int(at)
    if count >= MOST_WORDS or length > LONGEST_WORD or length == 0:
        return -1
    for i in range(length):
        known[column, count, i] = data[begin + i]
    lengths[column, count], states[column, 0], states[column, 1] = length, count + 1, count
    return int(count)


@njit(nogil=True, cache=True)
def rows(  # noqa: C901, PLR0912 (a call for each word takes a third longer)
    data: np.ndarray, at: int, row: int, separator: int, kinds: np.ndarray, texts: np.ndarray, text_lengths: np.ndarray,
    places: np.ndarray, between: np.ndarray, aware: bool, known: np.ndarray, word_lengths: np.ndarray, states: np.ndarray,
    stamps: np.ndarray, numbers: np.ndarray, words: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """Read rows from a place on until one does not fit.

    Parameters
    ----------
    data
        Bytes that end with a line end.
    at, row
        Where to begin to read, and the first row to write.
    kinds
        What each cell is.
    texts, text_lengths
        Per cell the unit that may follow its number, or the label that it is.
    places, between, aware
        Offsets of year, month, day, hour, minute and second in a stamp, the bytes that stand between them, and whether
        a Z ends it.
    known, word_lengths, states
        Per column of words: those seen so far, and their number and the last one. Added to.
    stamps, numbers, words
        Written to: microseconds, one line a column of numbers, one line a column of words.

    Returns
    -------
    tuple
        The number of rows written so far, and the place of the first line that was not read.
    """
    ends = np.zeros(256, dtype=np.uint8)
    for byte in (separator, _NEWLINE, _QUOTE, 0):
        ends[byte] = 1
    before, minute = -1, _NO_MINUTE
    while at < len(data):
        begin, number, word = at, 0, 0
        for cell in range(len(kinds)):
            end = separator if cell + 1 < len(kinds) else _NEWLINE
            kind = kinds[cell]
            at = _skip_spaces(data, at)
            if kind == NUMBER:
                at, numbers[number, row] = _number(data, at)
                number += 1
                if at >= 0 and _byte(data, at) != end:
                    at = _behind_text(data, _skip_spaces(data, at), texts, cell, text_lengths[cell])
            elif kind == STAMP:
                if at + _LENGTH_OF_STAMP >= len(data):
                    return row, begin
                if before < 0 or not _same_minute(data, at, before):
                    minute = _minute(data, at, places, between)
                    # where the second does not stand last, each is read whole
                    before = at if minute != _NO_MINUTE and places[5] == _LENGTH_OF_STAMP - 2 else -1
                at, stamps[row] = _stamp(data, at, minute, places[5], aware)
            elif kind == LABEL:
                first, at = at, _behind_text(data, at, texts, cell, text_lengths[cell])
                at = at if at > first else -1
            elif kind == WORD:
                first = at
                at, found = _expected_word(data, first, end, word, known, word_lengths, states)
                if found < 0:
                    at = _end_of_cell(data, first, separator, ends)
                    found = _word(data, first, at, word, known, word_lengths, states) if at >= 0 else -1
                    at = at if found >= 0 else -1
                words[word, row] = max(found, 0)
                word += 1
            else:
                at = _end_of_cell(data, at, separator, ends)
            at = _skip_spaces(data, at) if at >= 0 else len(data)
            if at >= len(data) or _byte(data, at) != end:
                return row, begin
            at += 1
        row += 1
    return row, at
