"""Settings with which every method fits in little time; what is tested does not depend on them."""

from __future__ import annotations

from typing import Any

from dprepro.methods.entry import Method

FEW: dict[str, Any] = {
    "n_epochs": 10, "n_estimators": 10, "n_trees": 10, "trees_per_ensemble": 5, "epochs": 1,
    "m": 3, "teachers": 10, "partitions": 2, "steps": 10,
}  # fmt: skip


def quick(method: Method) -> dict[str, Any]:
    """Return parameters for few rounds of whatever the method repeats."""
    return {name: value for name, value in FEW.items() if name in method.defaults}
