"""Whether the names on a card are those of its file: the header is read, and no row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from dprepro.data.archives import unzipped, unzipped_stream
from dprepro.data.arff import parse_arff
from dprepro.data.card import Card
from dprepro.data.card_parts import Source
from dprepro.data.cleaning import repeated_names
from dprepro.data.delimited import Records
from dprepro.data.feature_names import one_line
from dprepro.data.formats import dialect_of, index_names, other_kind, parser_problem
from dprepro.data.paths import find_file
from dprepro.runtime.errors import DpreproError, nearest


def header_names(card: Card, data_dir: Path | None = None) -> list[str] | None:
    """Return the names of the columns of a card's first source, as the card calls them.

    Only the header line of a CSV is read, the header of an ARFF file, or the schema of a parquet
    file.

    Returns
    -------
    list of str or None
        None if the file is not on this machine, or is in an archive or of another format.

    Raises
    ------
    DpreproError
        If the file cannot be read.
    """
    source = card.sources[0]
    if source.kind not in ("file", "pool", "join"):
        return None
    parts = source.files if source.join else source.files[:1]  # pooled files have the same columns
    names: list[str] = []
    for part in parts:
        found = _names_of(part, card, data_dir)
        if found is None:
            return None
        names += found
    return [source.rename.get(name, name) for name in names]


def check_names(card: Card, names: list[str]) -> None:
    """Refuse a card whose columns are not those of its file.

    Parameters
    ----------
    names
        What `header_names` returns.

    Raises
    ------
    DpreproError
        With a line for each name on the card that the file lacks, and for each column of the file
        that a card with `features` does not mention.
    """
    problems = list(_problems(card, names))
    if problems:
        raise DpreproError(
            "\n  ".join([f"the card of {card.name} and the header of its file differ:", *problems])
        )


def _problems(card: Card, names: list[str]) -> Iterator[str]:
    roles = {
        "target": [card.target], "unit": [card.unit] if card.unit else [], "drop": card.drop,
        "features": list(card.features or {}), "fill": list(card.fill),
    }  # fmt: skip
    unread = set(card.drop) if card.distinct is None else set()
    if repeated := [n for n in names if names.count(n) > 1 and n not in unread]:
        yield repeated_names(names, repeated)
    said = {name for found in roles.values() for name in found}
    free = [name for name in dict.fromkeys(names) if name not in said]
    for role, found in roles.items():
        for name in found:
            # A column may be dropped from some sources only.
            if name not in names and (role != "drop" or card.features is None):
                yield f"{role}: the file has no column {name!r}{nearest(name, free or names)}"
    for name in free if card.features is not None else ():
        yield (
            f"column {name!r} is not on the card: add it under `features`, or leave it out with "
            "`drop: [...]`"
        )


def _names_of(part: Source, card: Card, data_dir: Path | None) -> list[str] | None:
    if part.file is None or part.member is not None:
        return None
    path = find_file(part.file, card.folder, data_dir)
    settings = card.format_of(part)
    if path is None or settings.kind not in ("csv", "parquet", "arff"):
        return None
    try:
        if settings.kind == "parquet":
            schema = pa.parquet.read_schema(path)
            given = {*(card.features or {}), card.target, card.unit, *card.drop}
            hidden = index_names(schema)
            return [one_line(n) for n in schema.names if n not in hidden or one_line(n) in given]
        with path.open("rb") as opened:
            start = opened.read(64)
            opened.seek(0)
            if said := other_kind(start, settings.kind):
                raise DpreproError(f"not valid {settings.kind}: {said}")
            if settings.kind == "csv":
                file = unzipped_stream(opened)
                return Records(file, dialect_of(settings), block_bytes=2**16).names
            return parse_arff(unzipped(opened.read()), settings.encoding).names
    except OSError as error:
        raise DpreproError(f"{path}: cannot be read: {error.strerror or error}") from error
    except DpreproError as error:
        raise DpreproError(f"{path}: {error}") from None
    except pa.ArrowException as error:
        raise DpreproError(f"{path}: {parser_problem(error)}") from None
