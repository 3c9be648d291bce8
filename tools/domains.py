"""Domains drawn at random, to the edges: a fit can be kept, or is refused before its noise.

`python -m tools.domains FIRST LAST METHOD ...` tries the domains of these seeds, and prints
what was found. `tests/release/test_kept.py` tries some of them.
"""

from __future__ import annotations

import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import pandas as pd

from dprepro.additive.export.plain import to_python
from dprepro.additive.export.sql import to_sql
from dprepro.additive.file import encoded, model_from_text, rehearsing
from dprepro.additive.model import AdditiveModel
from dprepro.data.domain import CategoricalFeature, Domain, Feature, NumericFeature
from dprepro.data.encode import ENCODINGS
from dprepro.methods import registry
from dprepro.methods.entry import Setting
from dprepro.privacy.ledger import tracking_noise
from dprepro.report.model_page import model_page
from dprepro.runtime.errors import DpreproError

LARGEST, LEAST = sys.float_info.max, 5e-324
BOUNDS = (
    (1.7e18, 1.7e18 + 256), (1e15, 1e15 + 1), (0.0, LEAST), (-LEAST, LEAST), (0.0, 1e-310),
    (1.0, float(np.nextafter(1, 2))), (-8e307, 8e307), (0.0, LARGEST), (LEAST, LARGEST),
    (1e-300, 1e300), (-1e300, -1e-300), (1e300, 1e300), (0.0, 0.0), (-LARGEST, -LARGEST),
    (0.0, 1.0), (-1e-5, 1e12), (float(np.nextafter(LARGEST, 0)), LARGEST), (2.0**53, 2.0**53 + 2),
    (-1e300, 1e300), (0.1, 0.3), (18.0, 100.0),
)  # fmt: skip
"""Bounds of features and of targets."""

NAMES = ("", " ", "a|b", "=1+1", "\x1b[31m", "\u202e", "n" * 500, "x" * 10_001, "A", "a",
         "a & b", "b", "(other)", "(missing)", "'; drop", "\n", "0", "nan")  # fmt: skip
CATEGORIES = (1, 1, 2, 2, 3, 20, 255, 256, 257, 300)
FEATURES = (1, 1, 1, 2, 2, 3, 5)
ROWS = (2, 3, 10, 60, 300)
EPSILONS = (1e-6, 1e-3, 0.1, 1.0, 8.0, 50.0)


def drawn(seed: int, task: str, large: bool) -> Domain:
    """Return a domain; a `large` one has thousands of features, or of categories."""
    rng = np.random.default_rng([seed, 1])
    size = int(rng.choice(FEATURES))
    categories: tuple[int, ...] = CATEGORIES
    if large:
        size = int(rng.choice([1, 1_000, 3_000]))
        categories = (2,) if size > 1 else (2_000, 70_000, 100_001)
    features: list[Feature] = []
    for k in range(size):
        name = str(rng.choice(NAMES)) if rng.random() < 0.15 and not large else f"f{k}"
        missing = bool(rng.random() < 0.3)
        if rng.random() < (0.3 if size > 1 or not large else 1.0):
            number = int(rng.choice(categories))
            texts = [f"c{i}" for i in range(number)]
            if number and rng.random() < 0.2:
                texts[0] = str(rng.choice(NAMES))
            features.append(CategoricalFeature(name, tuple(texts), missing))
        else:
            features.append(NumericFeature(name, *_bounds(rng), missing))
    target: Any = ("no", "yes") if task == "binary" else _bounds(rng)
    return Domain(tuple(features), target)


def _bounds(rng: np.random.Generator) -> tuple[float, float]:
    if rng.random() < 0.5:
        return BOUNDS[int(rng.integers(len(BOUNDS)))]
    ends = np.ldexp(rng.normal(size=2), rng.integers(-1070, 1023, 2))
    if rng.random() < 0.3:
        ends[1] = np.nextafter(ends[0], np.inf)
    lower, upper = sorted(float(end) for end in ends)
    return lower, upper


def params_of(method: str, domain: Domain, rng: np.random.Generator) -> dict[str, Any]:
    """Return parameters of a small fit; some ask for pairs, monotone functions, many bins."""
    if method != "dp-ebm-plus":
        found: dict[str, Any] = {"n_epochs": int(rng.integers(1, 4))}
        if rng.random() < 0.5:
            found["max_bins"] = int(rng.choice([1, 2, 128, 256]))
    else:
        found = {"n_epochs": int(rng.integers(1, 5))}
        if rng.random() < 0.2:
            return {"n_epochs": 3, "pairs": int(rng.integers(1, 4))}
    if rng.random() < 0.2:
        feature = domain.features[int(rng.integers(len(domain.features)))]
        name = "unknown" if rng.random() < 0.2 else feature.name
        found["monotone"] = {name: str(rng.choice(["increasing", "decreasing"]))}
    return found


def tried(seed: int, method: str, large: bool = False) -> str:
    """Fit to a drawn domain; return "kept" or why it was refused before its noise.

    Raises
    ------
    AssertionError
        If noise was drawn for a model that cannot be kept, shown or exported.
    """
    rng = np.random.default_rng([seed, 0])
    found = registry.get(method)
    # Targets of other methods of DP-EBM have a gap in their ledger: they are not released.
    with_targets = method in ("dp-ebm-plus", "dp-ebm-sound")
    task: Any = "regression" if with_targets and rng.random() < 0.5 else "binary"
    domain = drawn(seed, task, large)
    params = params_of(method, domain, rng)
    epsilon = float(rng.choice(EPSILONS))
    rows = int(rng.choice(ROWS)) if not large else 3
    try:
        X, y = _rows(domain, task, rows, rng)
    except ValueError as error:
        return f"no rows: {error}"
    largest: list[AdditiveModel] = []
    model = None
    with tracking_noise() as may_have_drawn, warnings.catch_warnings(), rehearsing(largest.append):
        warnings.simplefilter("ignore")
        try:
            model = found.build(Setting(task, epsilon, 1e-5, domain, None), **params)
            model.fit(encoded_rows := ENCODINGS[found.encoding](domain).transform(X), y)
        except (ValueError, DpreproError) as error:
            if may_have_drawn():
                raise AssertionError("it has spent, and nothing is kept") from error
            return str(error)
    assert isinstance(model, AdditiveModel)
    data = encoded(model, "kept")
    # A lone category may have the longer name of others.
    assert _size(model) <= _size(largest[0]) + 16 * len(model.bins_)
    loaded = model_from_text(data)
    np.testing.assert_array_equal(loaded.predict(encoded_rows), model.predict(encoded_rows))
    if encoded(loaded, "again", {}) != encoded(model, "once", {}):
        raise AssertionError("another file")
    if not large:
        assert model_page(loaded, "title", "model.json")
    for export in (lambda model: to_sql(model, "rows", "postgresql"), to_python):
        assert _exported(export, largest[0]) == _exported(export, model)
    return "kept"


def _size(model: AdditiveModel) -> int:
    """Return how many bytes a file has, without its ledger."""
    bare = copy(model)
    del bare.ledger_
    return len(encoded(bare, "model"))


def _exported(export: Callable[[AdditiveModel], str], model: AdditiveModel) -> str:
    try:
        assert export(model)
    except DpreproError as error:
        return str(error)
    return "exported"


def _rows(
    domain: Domain, task: str, rows: int, rng: np.random.Generator
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows of a domain, a third of them at its bounds, some values missing where allowed."""
    columns: dict[str, Any] = {}
    for feature in domain.features:
        if isinstance(feature, NumericFeature):
            ends = np.array([feature.lower, feature.upper], dtype=float)
            values = ends[0] + rng.random(rows) * (ends[1] - ends[0])
            values = np.where(rng.random(rows) < 0.3, rng.choice(ends, rows), values)
            values = np.clip(values, *ends)
            columns[feature.name] = np.where(
                feature.missing & (rng.random(rows) < 0.2), np.nan, values
            )
        else:
            texts = np.array([*feature.categories, None], dtype=object)
            last = len(texts) - (0 if feature.missing else 1)
            if last == 0:
                raise ValueError("a feature without categories")
            columns[feature.name] = texts[rng.integers(0, last, rows)]
    X = pd.DataFrame(columns)
    if len(X.columns) < len(domain.features):
        raise ValueError("names repeat")
    if task == "binary":
        return X, np.arange(rows) % 2
    lower, upper = (float(bound) for bound in domain.target)
    return X, np.clip(lower + rng.random(rows) * (upper - lower), lower, upper)


def main(first: int, last: int, methods: list[str]) -> None:
    """Try the domains of seeds from `first` to below `last`, each with one of the methods."""
    counts: Counter[str] = Counter()
    begun = time.process_time()
    for seed in range(first, last):
        method = methods[seed % len(methods)]
        try:
            outcome = tried(seed, method, large=seed % 500 == 499)
        except Exception as error:
            outcome = "FAILED"
            traceback.print_exc(limit=-4)
            print(
                f"FAILED seed {seed} {method}: {type(error).__name__}: {str(error)[:600]}",
                flush=True,
            )
        counts[outcome if outcome in ("kept", "FAILED") else "refused: " + outcome[:60]] += 1
        if (seed + 1 - first) % 100 == 0 or seed + 1 == last:
            spent = time.process_time() - begun
            summary = {"kept": counts["kept"], "FAILED": counts["FAILED"]}
            summary["refused"] = counts.total() - sum(summary.values())
            print(
                f"{seed + 1 - first} domains ({first} to {seed}), {spent:.0f} s: {summary}",
                flush=True,
            )
    for outcome, count in counts.most_common(40):
        print(f"{count:6} {outcome!r}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
