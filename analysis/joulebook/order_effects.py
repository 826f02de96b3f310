"""What a change is worth on average over the orders in which changes were tried."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from joulebook.findings import Finding, Severity

State = frozenset[str]


@dataclass(frozen=True)
class OrderEffects:
    """Effects averaged over orders.

    Parameters
    ----------
    effects
        ``change``, ``effect`` (mean of after − before, unit of the value), ``effect_ratio`` (from the mean of the log
        ratios), ``effect_lo``, ``effect_hi`` (least and largest over the steps tried: not a confidence interval but
        what the order makes of it). Effects add up, ratios multiply up, to last against first.
    orders
        Orders that the states tried allow.
    complete
        Whether they are all orders: the mean is the Shapley value then.
    findings
        What is missing.
    """

    effects: pl.DataFrame
    orders: int
    complete: bool
    findings: tuple[Finding, ...] = ()


def average(states: pl.DataFrame) -> OrderEffects:
    """Return each change's effect averaged over all orders that run through the states tried.

    The mean goes over orders, not over steps: each order from no change to all of them counts once. With every
    subset of the changes tried, this is the Shapley value.

    Parameters
    ----------
    states
        ``changes`` (list of the changes in force, empty for the baseline) and ``value`` (positive mean of the metric);
        rows of one state are averaged.

    Returns
    -------
    OrderEffects
        Without rows where no order leads from the baseline to all changes.

    Raises
    ------
    ValueError
        A column is missing or a value is not positive.

    References
    ----------
    Shapley, A value for n-person games, Contributions to the Theory of Games II (1953) 307-317,
    doi:10.1515/9781400881970-018.

    Examples
    --------
    >>> done = average(pl.DataFrame({"changes": [[], ["a"], ["b"], ["a", "b"]], "value": [10.0, 8.0, 9.0, 6.0]}))
    >>> done.effects.select("change", "effect").rows()
    [('a', -2.5), ('b', -1.5)]
    """
    value = _values(states)
    last = frozenset[str]().union(*value) if value else frozenset[str]()
    names = sorted(last)
    paths_to, paths_from = _paths(value, last)
    orders = paths_to.get(last, 0) if frozenset() in value and last in value else 0
    if orders == 0:
        missing = "no state without a change" if frozenset() not in value else f"no order leads to {', '.join(names)}"
        message = f"Effects cannot be averaged over orders: {missing}."
        finding = Finding("order-average-refused", Severity.WARNING, "order", message)
        return OrderEffects(_frame([]), 0, False, (finding,))
    rows = []
    for change in names:
        steps = [
            (paths_to[s] * paths_from[s | {change}], value[s], value[s | {change}])
            for s in value
            if change not in s and paths_to.get(s, 0) and paths_from.get(s | {change}, 0)
        ]
        mean = math.fsum(n * (after - before) for n, before, after in steps) / orders
        ratio = math.expm1(math.fsum(n * math.log(after / before) for n, before, after in steps) / orders)
        ratios = [after / before - 1 for _, before, after in steps]
        rows.append((change, mean, ratio, min(ratios), max(ratios)))
    complete = orders == math.factorial(len(names))
    return OrderEffects(_frame(rows), orders, complete, () if complete else (_partial(orders, names),))


def _values(states: pl.DataFrame) -> dict[State, float]:
    """Return the mean value of each state."""
    missing = [c for c in ("changes", "value") if c not in states.columns]
    if missing:
        raise ValueError(f"states has no column {', '.join(missing)}; it has {', '.join(states.columns)}")
    bad = states.filter(~(pl.col("value") > 0))
    if bad.height:
        raise ValueError(
            f"value = {bad['value'][0]} of state {bad['changes'][0].to_list()}: positive values are allowed"
        )
    keyed = states.select(pl.col("changes").cast(pl.List(pl.String)).list.unique().list.sort(), "value")
    means = keyed.group_by("changes", maintain_order=True).agg(pl.col("value").mean())
    return {frozenset(changes): value for changes, value in means.iter_rows()}


def _paths(value: dict[State, float], last: State) -> tuple[dict[State, int], dict[State, int]]:
    """Return how many orders lead to each state from the baseline, and from it to the last, through states tried."""
    by_size = sorted(value, key=len)
    there: dict[State, int] = {}
    for state in by_size:
        there[state] = 1 if not state else sum(there.get(state - {c}, 0) for c in state)
    back: dict[State, int] = {}
    for state in reversed(by_size):
        back[state] = 1 if state == last else sum(back.get(state | {c}, 0) for c in last - state)
    return there, back


def _partial(orders: int, names: list[str]) -> Finding:
    every = math.factorial(len(names))
    message = (
        f"The states tried allow {orders} of {every} orders of {', '.join(names)}; effects hold for "
        f"{'this order' if orders == 1 else 'the mean of these'} and another order may share them out otherwise."
    )
    return Finding("order-average-partial", Severity.NOTE, "order", message, {"orders": orders, "all_orders": every})


def _frame(rows: list[tuple[str, float, float, float, float]]) -> pl.DataFrame:
    schema = {"change": pl.String} | dict.fromkeys(("effect", "effect_ratio", "effect_lo", "effect_hi"), pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row")
