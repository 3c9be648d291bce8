"""Hold a fit against the golden file where last digits may differ: on other processors than x86-64.

Beside its digest a release is described by three numbers for each fitted attribute. They move with
every number that is released, are sums without rounding, and need no other copy of the model.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.golden.digest import digest, released, without_numbers

SAME_BITS = {"x86_64", "AMD64"}
"""Processors, by `platform.machine`, on which the digest of a release must be that of the file."""

TOLERANCE = 1e-9
"""How far a sum may lie from that of the file, as a share of the sum of absolute values.

Functions such as exp are off by 1e-16 on other processors, and what follows from them by 1e-12 at
most. A rounding to a grid that falls the other way moves a sum by 3e-9 or more (`exact.md`), and so
does a change of 1e-4 of one in 10,000 numbers of like size.
"""

_DIGITS = 12
"""Of the sums that the file keeps."""

_LEDGER_DIGITS = 9
"""Of the numbers of a ledger: sensitivities and scales come of roots and exponentials."""


def described(model: Any) -> dict[str, Any]:
    """Return what the golden file keeps of a fitted model, JSON-able.

    ``released`` is the digest of all bits that it releases, ``ledger`` that of its ledger, with
    numbers to nine digits, ``plain`` that of what it releases but for floating-point numbers, and
    ``numbers`` has for each attribute that holds such numbers what `sums` returns.
    """
    parts = released(model)
    plain = {name: without_numbers(value) for name, value in parts.items()}
    return {
        "released": digest(parts),
        "ledger": digest(ledger_text(model.ledger_.summary())),
        "plain": digest({name: text for name, (text, _) in plain.items()}),
        "numbers": {name: sums(values) for name, (_, values) in plain.items() if values.size},
    }


def sums(values: np.ndarray) -> list[float]:
    """Return the sum of numbers, of their absolute values, and of each times a weight of its place.

    Weights are fixed, and between -1 and 1: what changes places is seen.
    """
    words = hashlib.shake_256(b"weights of places").digest(2 * values.size)
    weights = (np.frombuffer(words, "<i2") + 0.5) / 2.0**15
    found = [math.fsum(row) for row in (values, np.abs(values), values * weights)]
    return [float(f"{number:.{_DIGITS}g}") for number in found]


def ledger_text(summary: Mapping[str, Any]) -> str:
    """Return a ledger's summary as JSON, with numbers to nine digits."""

    def shortened(text: str) -> str:
        return f"{float(text):.{_LEDGER_DIGITS}g}"

    return json.dumps(json.loads(json.dumps(summary), parse_float=shortened), sort_keys=True)


def differences(
    stored: Mapping[str, Any], found: Mapping[str, Any], machine: str | None = None
) -> list[str]:
    """Return what of a fit is not as the file says, none where it is as it must be.

    On x86-64 all bits count. Elsewhere sums may differ by `TOLERANCE`, and ``released`` is not
    looked at. `machine` stands for the processor that this runs on.
    """
    if (machine or platform.machine()) in SAME_BITS:
        return [key for key in sorted(stored | found) if stored.get(key) != found.get(key)]
    wrong = [key for key in ("ledger", "plain") if stored[key] != found[key]]
    ours, theirs = found["numbers"], stored["numbers"]
    return wrong + [
        name
        for name in sorted(ours | theirs)
        if name not in ours or name not in theirs or not _near(ours[name], theirs[name])
    ]


def _near(ours: list[float], theirs: list[float]) -> bool:
    within = TOLERANCE * theirs[1]
    return all(abs(a - b) <= within for a, b in zip(ours, theirs, strict=True))
