"""One sweep seen at two boundaries: where the sweet spots differ and what tuning at the narrow one costs."""

from __future__ import annotations

from joulebook.findings import Finding, Severity
from joulebook.sweet_spot import SweetSpot
from joulebook.sweet_spot_rules import AS_GOOD_RATIO


def between(narrow: SweetSpot, wide: SweetSpot, *, names: tuple[str, str] = ("board", "node")) -> Finding:
    """Return how the sweet spots of one sweep at two scopes compare.

    Idle power that only the wide scope sees (fans, processors, losses) is paid by time, so the wide optimum lies
    nearer to the fast settings.

    Parameters
    ----------
    narrow, wide
        Sweet spots of the same runs and objective at two scopes.
    names
        The two scopes.

    Returns
    -------
    Finding
        ``sweet-spot-scopes-agree`` or ``sweet-spot-scopes-differ``; ``evidence`` has both settings and ``cost_ratio``:
        what the wide scope loses at the narrow one's best setting.

    Examples
    --------
    >>> import polars as pl
    >>> from joulebook import sweet_spot
    >>> runs = pl.DataFrame({"x": [1.0, 2, 4, 8], "energy_per_token_j": [4.0, 3, 2, 3]})
    >>> spot = sweet_spot.find(runs, objective="energy_per_token_j")
    >>> between(spot, spot).code
    'sweet-spot-scopes-agree'
    """
    both = narrow.settings.select("x", narrow="value").join(wide.settings.select("x", wide="value"), on="x")
    if not both.height:
        message = "No setting was measured at both scopes."
        return Finding("sweet-spot-scopes-refused", Severity.WARNING, " and ".join(names), message)
    subject = " and ".join(names)
    at_narrow = both.sort("narrow").row(0, named=True)
    at_wide = both.sort("wide").row(0, named=True)
    cost = at_narrow["wide"] / at_wide["wide"] - 1
    evidence = {names[0]: at_narrow["x"], names[1]: at_wide["x"], "cost_ratio": cost}
    states = f"({narrow.status} at {names[0]}, {wide.status} at {names[1]})"
    if at_narrow["x"] == at_wide["x"]:
        message = f"The best setting is {at_wide['x']:g} at {names[0]} and at {names[1]} {states}."
        return Finding("sweet-spot-scopes-agree", Severity.NOTE, subject, message, evidence)
    message = (
        f"The best setting is {at_narrow['x']:g} at {names[0]} but {at_wide['x']:g} at {names[1]} {states}: running at "
        f"{at_narrow['x']:g} costs {100 * cost:.1f} % more at {names[1]}. Tune at {names[1]} where the bill counts."
    )
    severity = Severity.WARNING if cost > AS_GOOD_RATIO else Severity.NOTE
    return Finding("sweet-spot-scopes-differ", severity, subject, message, evidence)
