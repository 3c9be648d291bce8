"""The rows of a release from a table that is read in chunks, checked and known again as others are.

No more than a chunk of them is in memory; of each cell four bytes are kept, see `KeptDigests`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from dprepro.data.card import Card
from dprepro.data.dataset import Dataset, outside_bounds, refuse_undeclared_missing
from dprepro.release.population_overlap import KeptDigests, Rows
from dprepro.release.rows import UnitTokens, ValuesDigest, file_token
from dprepro.rows.card_table import CardTable
from dprepro.rows.readers import TableError
from dprepro.rows.table import report
from dprepro.runtime.errors import DpreproError


def checked_table(
    table: CardTable, card: Card, clips: bool, are_others: bool = False
) -> tuple[list[str], Rows]:
    """Return tokens of a table, and its rows as the book compares them, if the card allows each.

    The tokens are those of the files and values as `identity_of` gives them, so that the same rows
    are known again wherever they lie.

    Parameters
    ----------
    clips, are_others
        See `checked_rows` and `Rows`.

    Raises
    ------
    DpreproError
        If the table cannot be read or changes meanwhile, if it has a value that the card rules
        out, or if rows or features are not as many as the card states. The message quotes no value
        and counts no rows.
    """
    parents = () if table.encrypted or table.store is None else table.store.parents
    kept = KeptDigests(next((folder for folder in parents if folder.is_dir()), None))
    values, units = ValuesDigest(), UnitTokens(card)
    problems: dict[str, None] = {}
    before, files = table.identity(), of_files(table)
    for dataset in _chunks(table, card):
        refuse_undeclared_missing(dataset)
        if not clips:
            problems |= dict.fromkeys(outside_bounds(dataset, card))
        kept.add(dataset)
        values.add(dataset)
        units.add(dataset.units)
        report("reading rows", kept.size, table.known_rows)
    if table.identity() != before:
        raise TableError(
            "the table changed while it was read: let nothing write to it during a release"
        )
    if problems:
        raise DpreproError("\n  ".join(problems))
    _compare_facts(card, kept.size)
    return [*files, values.token(), *units.tokens()], Rows(kept, are_others)


def of_files(table: CardTable) -> list[str]:
    """Return a token of each file of a table, as it is now, as `files_of` gives it."""
    return [file_token(_sha256(path)) for path in table.paths]


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    except OSError as error:
        raise TableError(f"cannot read {path}: {error.strerror or error}") from error
    return digest.hexdigest()


def _chunks(table: CardTable, card: Card) -> Iterator[Dataset]:
    for rows in table.cleaned():
        yield Dataset(card.name, rows.X, rows.y, card.task, table.domain, "", "", units=rows.units)


def _compare_facts(card: Card, rows: int) -> None:
    """Raise DpreproError unless the facts that the card states are true of a table."""
    expect, columns = card.expect, len(card.features or {})
    wrong = [
        f"{name}: expected {stated:,}, found another"
        for name, stated, found in (
            ("rows", expect.rows, rows),
            ("columns", expect.columns, columns),
        )
        if stated not in (None, found)
    ]
    if wrong:
        raise DpreproError(
            f"this is not the table that card {card.name!r} describes ({'; '.join(wrong)})"
        )
