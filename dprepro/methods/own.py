"""Methods of one's own: which code they are, and what their fits show beside their author's word.

A method of this package keeps a ledger that tests hold against its curator. Nobody has tested a
user's: what its ledger lists is its author's word. What can be seen from outside is entered there:
the code it is the word of, noise that does not come from our samplers, a seed, and fits that repeat
themselves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dprepro.estimators.contract import Estimator, finest_outputs, ledger_of
from dprepro.methods.plugins import PACKAGE_FILE
from dprepro.privacy.ledger import tracking_sources

if TYPE_CHECKING:
    from dprepro.methods.entry import Method, Setting
    from dprepro.privacy.ledger import Ledger, TrackedSource

NOT_OURS = "its noise, if there is any, does not come from dprepro's samplers"
REPEATS = (
    "fits without a seed to the same rows predict the same: there is no noise, or a seed is fixed "
    "in the method"
)
_FITS = 10
"""Fits that have to agree. Noise of which only a sign is left repeats itself in one of 512."""


def code_of(path: Path, helpers: Iterable[Path]) -> str:
    """Return the SHA-256, in hex, of a user's file or package, and of the files that help others.

    Tests, files called ``test_*.py``, are no part of it.
    """
    folder = path.parent.parent if path.name == PACKAGE_FILE else path.parent
    places = {path, *helpers}
    for place in tuple(places):
        if place.name == PACKAGE_FILE:
            places |= set(place.parent.rglob("*.py"))
    digest = hashlib.sha256()
    for place in sorted(places):
        if not place.name.startswith("test_"):
            content = place.read_bytes()
            digest.update(f"{place.relative_to(folder).as_posix()}\n{len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


def fit_method(
    method: Method, setting: Setting, params: Mapping[str, Any], X: Any, y: Any
) -> Estimator:
    """Return the estimator of a method, fitted. Of a user's own, its ledger says so.

    It then names the code, a seed that was given, and each answer whose noise we did not see drawn
    by our samplers. Raises what the method raises.
    """
    estimator = method.build(setting, **params)
    if not method.code:
        estimator.fit(X, y)
        return estimator
    with tracking_sources() as sources:
        estimator.fit(X, y)
    if (ledger := ledger_of(estimator)) is not None:
        ledger.code = method.code
        if not any(text.startswith("fixed seed") for text in ledger.unaccounted):
            ledger.note_seed(setting.seed)
        _note_noise(ledger, sources)
    return estimator


def _note_noise(ledger: Ledger, sources: Iterable[TrackedSource]) -> None:
    ours = [entry for source in sources for entry in source.drawn_for(ledger)]
    for entry in ledger.entries:
        if entry in ours:
            ours.remove(entry)
        elif not any(text.startswith(entry.releases) for text in ledger.floating_point):
            ledger.note_floating_point(f"{entry.releases}: {NOT_OURS}")


def note_repeats(
    ledger: Ledger, method: Method, setting: Setting, params: Mapping[str, Any], X: Any, y: Any
) -> None:
    """List it as not covered by epsilon if fits repeat themselves to the bit, without a seed.

    Fits are repeated only where noise does not come from our samplers. Labels, and other whole
    numbers, may be the same whatever the noise, so they show nothing.
    """
    if not any(text.endswith(NOT_OURS) for text in ledger.floating_point):
        return
    unseeded, first = replace(setting, seed=None), None
    for _ in range(_FITS):
        found = np.asarray(finest_outputs(fit_method(method, unseeded, params, X, y), X))
        first = found if first is None else first
        if found.dtype.kind != "f" or not np.array_equal(found, first, equal_nan=True):
            return
    ledger.note_observed([REPEATS])
