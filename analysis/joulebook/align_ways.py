"""Whether stamps that slip are those of a free sampler or hide lost samples: the power of the other log decides."""

from __future__ import annotations

from itertools import product

from joulebook import align_model, align_rows
from joulebook.align_model import Fit
from joulebook.align_signal import Pair, Signal

LEAST_GAIN = 10.0
"""Log-likelihood that reading a log as a free sampler's must gain."""


def likeliest(fasts: Pair, slows: Pair, first: Fit) -> tuple[Signal, Signal]:
    """Return the logs read in the way under which they explain each other best.

    Parameters
    ----------
    fasts, slows
        The finer and the coarser log, each as it stands and, where it may be one, as a free sampler.
    first
        The fit of both as they stand.

    Returns
    -------
    fast, slow : Signal
        As they stand, unless another way is clearly likelier.
    """
    best, most = (fasts[0], slows[0]), -1.0
    for fast, slow in product(*([s for s in pair if s is not None] for pair in (fasts, slows))):
        few = align_rows.thin(slow)
        fit = align_model.fit(
            fast, few, first.sensor, shift_s=first.shift_s, drift=first.drift, anchor_s=first.anchor_s
        )
        plain = fast is fasts[0] and slow is slows[0]
        if fit is not None and fit.gain > 0 and fit.llr > most + (0.0 if plain else LEAST_GAIN):
            best, most = (fast, slow), fit.llr
    return best
