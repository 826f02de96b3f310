"""Every format that can be read, one module each. To add one: a module with ``ADAPTER``, a line here, a fixture folder."""

from __future__ import annotations

from joulebook_pipelines.adapters import (
    codecarbon,
    ipmitool,
    meter_csv,
    nvidia_smi_csv,
    phases_csv,
    training_jsonl,
)
from joulebook_pipelines.logs.contract import Adapter

ADAPTERS: tuple[Adapter, ...] = (
    codecarbon.ADAPTER,
    ipmitool.ADAPTER,
    meter_csv.ADAPTER,
    nvidia_smi_csv.ADAPTER,
    phases_csv.ADAPTER,
    training_jsonl.ADAPTER,
)
"""In the order of the table of formats."""
