r"""Labels of a series as the texts of Prometheus write them: ``{gpu="0", pod="a\"b"}``."""

from __future__ import annotations

import re

LABELS = r'\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\}'
"""Matches the labels of a series, whatever their values hold."""

_LABEL = re.compile(r'([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


def labels(text: str | None) -> dict[str, str]:
    r"""Return the labels of a text.

    Examples
    --------
    >>> labels('{gpu="0", pod="a\\"b"}')
    {'gpu': '0', 'pod': 'a"b'}
    """
    return {k: re.sub(r'\\[\\n"]', lambda m: _ESCAPES[m[0]], v) for k, v in _LABEL.findall(text or "")}
