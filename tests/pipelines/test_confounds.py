"""What changed with a variant besides it, as the stages find it among the runs of a store."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import polars as pl

from joulebook_pipelines.stages import comparisons


def test_a_change_that_came_with_another_batch_size_is_told() -> None:
    variants = ["base", "base", "fused", "fused", "again", "again"]
    runs = pl.DataFrame(
        {
            "host": ["n1"] * 6,
            "batch_size": [128.0, 128.0, 256.0, 256.0, 256.0, None],
            "labels": [json.dumps({"variant": v, "batch_size": 1, "repeat": i % 2}) for i, v in enumerate(variants)],
        }
    )
    context = SimpleNamespace(store=SimpleNamespace(runs=lambda: runs))
    entry = SimpleNamespace(order=["base", "fused", "again"])
    (found,) = comparisons._confounds(cast("Any", context), cast("Any", entry))
    assert found.code == "campaign-confounded"
    assert found.subject == "fused"
    assert found.evidence == {"batch_size": ["128", "256"]}
