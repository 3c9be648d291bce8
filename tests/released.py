"""What a fitted additive model publishes, to compare models of tables that differ in one row."""

from typing import Any

import numpy as np
import pandas as pd

ROWS = 12


def table(rows: int = ROWS) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Return some rows and one more, the last, and both kinds of targets."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "x": np.append(rng.random(rows), np.nan),
            "z": np.append(rng.normal(size=rows), 1.3),
            "c": np.append(rng.choice(["a", "b"], rows), "d"),
        }
    )
    y = np.append((X["z"][:rows] > 0) * 1.0, 1.0)
    return X, {"labels": y.astype(int), "numbers": 3 * y + 0.1 * X["z"].to_numpy()}


def published(model: Any) -> dict[str, Any]:
    return {
        "ledger": model.ledger_.summary(),
        "bins": [(bins.labels, bins.missing_bin) for bins in model.bins_],
        "numbers": [
            np.concatenate([bins.cuts for bins in model.bins_]),
            np.concatenate([bins.groups for bins in model.bins_]),
            np.concatenate(model.bin_counts_),
            np.concatenate(model.shape_noise_),
            np.append(np.concatenate(model.shape_functions_), model.intercept_),
            *(numbers.ravel() for term in model.pairs_ for numbers in (term.values, term.noise)),
        ],
    }


def same(one: dict[str, Any], other: dict[str, Any], atol: float) -> bool:
    """Say whether two models as `published` returns them agree."""
    if len(one["numbers"]) != len(other["numbers"]):
        return False
    pairs = zip(one["numbers"], other["numbers"], strict=True)
    return (
        one["ledger"] == other["ledger"]
        and one["bins"] == other["bins"]
        and all(a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=atol) for a, b in pairs)
    )
