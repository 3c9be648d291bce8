"""Names and types of the columns of a file: all that a new card takes from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from dprepro.data.card_parts import MISSING_TEXTS
from dprepro.data.formats import csv_header, parser_problem
from dprepro.errors import DpreproError

Kind = Literal["numeric", "text"]

_PARQUET = (".parquet", ".pq")
_TEXT = (".csv", ".data", ".txt", ".tsv")
_SEPARATORS = (",", ";", "\t", "|")
_WITH_COMMAS = r"^[+-]?[0-9][0-9.,]*([eE][+-]?[0-9]+)?$"
"""A number with a decimal comma, or with marks for thousands, or without any."""


@dataclass(frozen=True)
class Columns:
    """What a file says of itself.

    Attributes
    ----------
    kinds
        By name, in the order of the file.
    separator
        Of the fields of a CSV; a comma for other files.
    doubtful
        Names that occur as a value of their own column, too: then the first line may be a row.
    with_commas
        Names of text columns of a CSV that would be numeric but for commas within the numbers.
    """

    kinds: Mapping[str, Kind]
    separator: str = ","
    doubtful: tuple[str, ...] = ()
    with_commas: tuple[str, ...] = ()


def read_columns(path: Path) -> Columns:
    """Return the columns of a CSV file with a header, or of a parquet file.

    Types of a CSV follow from its values: a column is numeric if every value that is not missing
    reads as a number.

    Raises
    ------
    DpreproError
        If the file cannot be read, or its first line does not hold names. No value is quoted.
    """
    suffix = path.suffix.lower()
    if suffix not in (*_PARQUET, *_TEXT):
        raise DpreproError(
            f"{path}: a file that ends in .csv or .parquet is needed (also {', '.join(_TEXT[1:])})"
        )
    try:
        if suffix in _PARQUET:
            found = Columns(_kinds(pa.parquet.read_schema(path)))
        else:
            found = _of_csv(path)
    except OSError as error:
        raise DpreproError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (pa.ArrowException, UnicodeError) as error:
        raise DpreproError(f"{path}: {parser_problem(error)}") from None
    _check_names(path, list(found.kinds))
    return found


def _of_csv(path: Path) -> Columns:
    data = path.read_bytes()
    first_line = data[: data.find(b"\n") + 1] or data
    separator = max(_SEPARATORS, key=lambda mark: first_line.count(mark.encode()))
    parse = pa.csv.ParseOptions(delimiter=separator)
    names = csv_header(data, "utf8", parse)
    _check_names(path, [name.strip() for name in names])
    table = pa.csv.read_csv(
        pa.BufferReader(data),
        parse_options=parse,
        convert_options=pa.csv.ConvertOptions(
            null_values=[blank + text for text in MISSING_TEXTS for blank in ("", " ")]
        ),
    )
    doubtful = tuple(name for name in table.column_names if _occurs(name, table[name]))
    kinds = _kinds(table.schema)
    commas = (name for name in table.column_names if _has_commas(table[name]))
    return Columns(kinds, separator, doubtful, tuple(name.strip() for name in commas))


def _has_commas(column: pa.ChunkedArray) -> bool:
    """Whether all texts of a column are numbers, some with a comma for decimals or thousands."""
    if not pa.types.is_string(column.type):
        return False
    texts = pc.unique(pc.utf8_trim_whitespace(column.drop_null()))
    texts = texts.filter(pc.invert(pc.is_in(texts, pa.array(MISSING_TEXTS, pa.string()))))
    numbers = pc.match_substring_regex(texts, _WITH_COMMAS)
    return bool(pc.all(numbers).as_py() and pc.any(pc.match_substring(texts, ",")).as_py())


def _occurs(name: str, column: pa.ChunkedArray) -> bool:
    """Whether a name is a value of a column, whatever its case and the blanks around it."""
    texts = pc.utf8_lower(pc.utf8_trim_whitespace(column.cast(pa.string())))
    return name.strip().lower() in texts.unique().to_pylist()


def _kinds(schema: pa.Schema) -> dict[str, Kind]:
    kinds: dict[str, Kind] = {}
    for field in schema:
        is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        is_number = is_number or pa.types.is_decimal(field.type)
        kinds[field.name.strip()] = "numeric" if is_number else "text"
    return kinds


def _check_names(path: Path, names: list[str]) -> None:
    if not names or len(set(names)) < len(names) or any(_is_value(name) for name in names):
        raise DpreproError(
            f"{path}: its first line does not hold a different name for each column. If it is a "
            "row, put a line with the names before it"
        )


def _is_value(name: str) -> bool:
    """Whether a name is more likely a value of a row."""
    try:
        float(name)
    except ValueError:
        return name in MISSING_TEXTS
    return True
