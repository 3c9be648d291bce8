"""Values that are missing in the rows, although the card says that none is."""

from __future__ import annotations

from dprepro.data.dataset import Dataset
from dprepro.errors import DpreproError


def undeclared(dataset: Dataset) -> list[str]:
    """Return the features with missing values that the card does not allow; none without a domain.

    This reads the rows: say it to their holder only.
    """
    features = dataset.domain.features if dataset.domain else ()
    return [f.name for f in features if not f.missing and dataset.X[f.name].isna().any()]


def in_words(names: list[str]) -> str:
    """Say which features lack values that the card promises, and what to do."""
    return (
        f"values are missing in {', '.join(names)}, and the card does not allow it: add "
        f"`missing: true` to the feature, as in {names[0]}: {{..., missing: true}}, or name a "
        "value under `fill`"
    )


def refuse_undeclared(dataset: Dataset) -> None:
    """Refuse rows with missing values that the card does not allow.

    Raises
    ------
    DpreproError
        The message names the features, and quotes and counts no rows.
    """
    names = undeclared(dataset)
    if names:
        raise DpreproError(f"{dataset.name}: {in_words(names)}")
