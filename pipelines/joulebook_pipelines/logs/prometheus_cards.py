"""Which card and which host a Prometheus series is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from joulebook_pipelines.logs import prometheus_names
from joulebook_pipelines.logs.prometheus_names import Labels, Meaning

_BY_INSTANCE = frozenset({"utilization_ratio", "memory_utilization_ratio", "memory_used_bytes"})
"""What a slice of a card (MIG) has for itself; power, energy, temperature and clocks are the board's."""

_HOSTS = ("Hostname", "hostname", "exported_instance", "node", "nodename", "instance")

_MODELS = ("modelName", "name", "product_name", "gpu_model")


@dataclass(frozen=True)
class Series:
    """Name and labels of a series."""

    name: str
    labels: Labels


class Hosts:
    """Names the host of a series; an address that one exporter calls by name is that host for the others as well."""

    def __init__(self, series: Sequence[Series]) -> None:
        self._names = {
            _address(s.labels): s.labels[key]
            for s in series
            for key in _HOSTS[:-1]
            if s.labels.get(key) and _address(s.labels)
        }

    def of(self, labels: Labels) -> str:
        """Return the host that a series is about, ``""`` where no label tells."""
        named = next((labels[k] for k in _HOSTS[:-1] if labels.get(k)), "")
        return named or self._names.get(_address(labels), _address(labels))


def _address(labels: Labels) -> str:
    return re.sub(r":\d+$", "", labels.get("instance", ""))


class Cards:
    """Numbers the cards: by their own number, else by that of another series with the same identifier, else in order."""

    def __init__(self, series: Sequence[Series], hosts: Hosts) -> None:
        self._hosts = hosts
        self._numbers: dict[tuple[str, str], str] = {}
        self._models: dict[tuple[str, str], str] = {}
        for one in series:
            uuid, number = prometheus_names.card_key(one.labels)
            host = hosts.of(one.labels)
            if uuid and number:
                self._numbers.setdefault((host, uuid), number)
            model = next((one.labels[k] for k in _MODELS if one.labels.get(k)), "")
            if model and (uuid or number) and prometheus_names.looks_known(one.name):
                self._models.setdefault((host, uuid or number), model)

    def name(self, meaning: Meaning, labels: Labels) -> tuple[str, str, str]:
        """Return device, model and identifier of a series; a slice of a card has what is its own."""
        if not meaning.device.startswith("gpu:") or meaning.device[4:5].isdigit():
            return meaning.device, "", ""
        uuid, number = prometheus_names.card_key(labels)
        host = self._hosts.of(labels)
        if not number:
            taken = {n for (h, _), n in self._numbers.items() if h == host}
            free = next(str(i) for i in range(len(taken) + 1) if str(i) not in taken)
            number = self._numbers.setdefault((host, uuid), free)
        model = self._models.get((host, uuid)) or self._models.get((host, number), "")
        part = labels.get("GPU_I_ID", "")
        slice_ = f"/mig:{part}" if part and meaning.quantity in _BY_INSTANCE else ""
        return f"gpu:{number}{meaning.device[4:]}{slice_}", model, uuid
