"""What a fit without any relation tells: nothing, and no error."""

import numpy as np

from joulebook import align_evidence


def test_no_gain_has_no_shares() -> None:
    f = np.sin(np.arange(100.0))
    share, se = align_evidence.beyond(f, np.zeros(100), 0.0)
    assert not share.any()
    assert not se.any()


def test_a_load_seen_everywhere_is_seen_without_its_strongest_places() -> None:
    f = np.sin(np.arange(400.0))
    share, _ = align_evidence.beyond(f, np.zeros(400), 2.0)
    np.testing.assert_allclose(share, 1.0, rtol=1e-9)
