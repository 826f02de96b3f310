"""The account of damage is complete: from it and the damaged text the original comes back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulebook import synthetic_damage

LOG = "time, power\n" + "".join(f"{k}, {100 + k}.5\n" for k in range(60))


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_account_explains_every_line(seed: int, drop: int, duplicate: int, garble: int) -> None:
    damaged = synthetic_damage.apply(LOG, seed=seed, drop=drop, duplicate=duplicate, garble=garble)
    original, now = LOG.splitlines(), damaged.text.splitlines()
    kinds = damaged.account["kind"].to_list()
    assert [kinds.count(k) for k in ("dropped", "duplicated", "garbled")] == [drop, duplicate, garble]
    assert len(now) == len(original) - drop + duplicate
    assert damaged.account["line"].drop_nulls().to_list() == list(range(1, len(now) + 1))
    assert set(damaged.account["original_line"]) == set(range(1, len(original) + 1))
    for was, line, kind, column, raw in damaged.account.iter_rows():
        if kind == "dropped":
            assert line is None
        elif kind == "garbled":
            cells, old = now[line - 1].split(","), original[was - 1].split(",")
            assert cells[column].strip() == raw
            cells[column] = old[column]
            assert cells == old
        else:
            assert now[line - 1] == original[was - 1]


def test_only_the_named_columns_are_garbled() -> None:
    damaged = synthetic_damage.apply(LOG, seed=1, garble=30, columns=(1,))
    assert damaged.account["column"].drop_nulls().unique().to_list() == [1]
    assert damaged.text.startswith("time, power\n")


def test_too_much_damage_is_refused() -> None:
    with pytest.raises(ValueError, match="61 lines shall be hit, but only 60"):
        synthetic_damage.apply(LOG, seed=1, drop=61)
    with pytest.raises(ValueError, match="characters is -1"):
        synthetic_damage.cut(LOG, characters=-1)
