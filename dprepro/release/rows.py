"""The rows of a release: whether they keep to their card, and how the budget book knows them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from dprepro.data import load
from dprepro.data.card import Card
from dprepro.data.dataset import Dataset
from dprepro.data.domain_checks import outside_bounds, refuse_undeclared
from dprepro.data.identity import SAME_EVERYWHERE, file_digest, is_stood_in_for
from dprepro.data.register import token_of
from dprepro.data.verify import values_digest
from dprepro.errors import DpreproError

_UNIT = "unit "


def checked_rows(
    name: str, card: Card, data_dir: Path | None, clips: bool, online: bool = True
) -> Dataset:
    """Return the rows that a card describes, if every value is one that its domain allows.

    Parameters
    ----------
    name
        Of the card, or its path.
    clips
        Whether values beyond their bounds are let through: methods clip them.
    online
        Whether missing files may be downloaded.

    Raises
    ------
    DpreproError
        If the rows cannot be had, are those of a stand-in, or if one of them has a value that the
        card rules out. The message quotes no value and counts no rows.
    """
    if is_stood_in_for(card, data_dir):
        raise DpreproError(
            f"the rows of {card.name} are not here, and a model of its synthetic stand-in says "
            "nothing about them: put the files where the card says"
        )
    dataset = load(name, data_dir, online)
    if dataset.domain is None:
        raise DpreproError(no_domain(card))
    refuse_undeclared(dataset)
    try:
        problems = [] if clips else outside_bounds(dataset, card)
    except ValueError as error:
        raise DpreproError(str(error)) from error
    if problems:
        raise DpreproError("\n  ".join(problems))
    return dataset


def no_domain(card: Card) -> str:
    """Return what to say of a card without a public domain."""
    return (
        f"the card of {card.name} gives no public domain, and bounds or categories that are read "
        "from the rows (`domain: observed`) are not covered by epsilon: add `features` to the "
        "card; `dprepro new dataset` writes a card to fill in"
    )


def identity_of(card: Card, dataset: Dataset, data_dir: Path | None) -> list[str]:
    """Return tokens of the rows: of each file that holds them, and of the values that are in it.

    The values know the rows again after they were written to a file of another format. Then come
    the tokens of units, if the card has any; see `of_units`.
    """
    values = values_digest(_in_order(dataset.X), dataset.y)
    return [
        *files_of(card, data_dir),
        token_of(f"release of values {values}"),
        *_units(card, dataset.units),
    ]


def known_rows(
    name: str, card: Card, data_dir: Path | None
) -> tuple[list[str], Dataset | None, str]:
    """Return the tokens of `identity_of`, the rows, and why there are none; empty if there are.

    Nothing is downloaded. Where the rows are not here, or are none that the card allows, only the
    files are known.
    """
    try:
        dataset = checked_rows(name, card, data_dir, clips=True, online=False)
    except DpreproError as error:
        return files_of(card, data_dir), None, str(error)
    return identity_of(card, dataset, data_dir), dataset, ""


def of_rows(tokens: Iterable[str]) -> set[str]:
    """Return the tokens of files and values: whoever shares one has the same rows."""
    return {token for token in tokens if not token.startswith(_UNIT)}


def of_units(tokens: Iterable[str], kind: Literal["values", "column"]) -> set[str]:
    """Return the tokens of the unit's values, or of the columns that it has in the files."""
    return {token for token in tokens if token.startswith(f"{_UNIT}{kind} ")}


def _units(card: Card, units: np.ndarray | None) -> list[str]:
    if units is None:
        return []
    digest = hashlib.sha256("\0".join(units).encode()).hexdigest()
    raw_names = [{new: old for old, new in source.rename.items()} for source in card.sources]
    columns = sorted({raw.get(str(card.unit), str(card.unit)) for raw in raw_names})
    return [
        f"{_UNIT}values {token_of(f'release of units {digest}')}",
        f"{_UNIT}column {json.dumps(columns)}",
    ]


def files_of(card: Card, data_dir: Path | None) -> list[str]:
    """Return a token of each file of a card that is here, as it is now.

    Tokens are random, and equal for equal contents on this machine; see `dprepro.data.register`.
    """
    contents = []
    for _, part in card.parts:
        if part.kind in SAME_EVERYWHERE:
            contents.append(f"{part.kind} {part.label}")
        elif digest := file_digest(card, part, data_dir):
            contents.append(f"file {digest}")
    return [token_of(f"release of {content}") for content in contents]


def _in_order(X: pd.DataFrame) -> pd.DataFrame:
    """Return the columns in the order of their names: a card may list them in another one."""
    return X[sorted(X.columns)]


def place_of(card: Card, name: str) -> str:
    """Return what the book calls a card: its path, or the name of a built-in card."""
    return name if card.folder is None else str(Path(name).resolve())
