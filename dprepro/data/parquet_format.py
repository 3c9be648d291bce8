"""Parquet as bytes of a table, and what a damaged file would let Arrow do."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from dprepro.data.card_parts import Format
from dprepro.data.delimited import THREADED_BYTES
from dprepro.data.feature_names import one_line
from dprepro.errors import DpreproError


def read_parquet(
    data: bytes, settings: Format, kinds: Mapping[str, Any], missing: Collection[str] = ()
) -> pa.Table:
    """Read a parquet file: its columns as they are stored, each value where it stands.

    A column that pandas stored as an index is read only if `kinds` names it.

    Raises
    ------
    DpreproError
        If its counts do not agree, or if it has text that is not UTF-8. Also if a column is nested
        that `kinds` does not call "unused".
    pyarrow.ArrowException, OSError
        If it is damaged in another way.
    """
    try:
        file = pa.parquet.ParquetFile(pa.BufferReader(data))
        # Before rows are read: a command that ends while Arrow still starts its threads is aborted.
        _refuse_nested(file.schema_arrow, kinds)
        is_large = len(data) > THREADED_BYTES
        table = file.read(use_threads=is_large) if counts_agree(file.metadata) else None
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise
        raise DpreproError("not valid parquet: it has text that is not UTF-8") from None
    if table is None or table.num_rows != file.metadata.num_rows:
        raise DpreproError("not valid parquet: its counts of rows do not agree")
    kept = [k for k, name in enumerate(table.column_names) if name not in index_names(table.schema)
            or one_line(name) in kinds]  # fmt: skip
    table = table.select(kept).replace_schema_metadata()
    for number, name in enumerate(table.column_names):
        column = table.column(number)
        if not is_utf8(column):
            raise DpreproError(f"not valid parquet: column {name!r} has text that is not UTF-8")
        if pa.types.is_float32(column.type) or pa.types.is_float64(column.type):
            # NumPy warns of NaNs with other bits, which a file can hold.
            nan = pa.scalar(math.nan, column.type)
            table = table.set_column(number, name, pc.if_else(pc.is_nan(column), nan, column))
    return table


def index_names(schema: pa.Schema) -> set[str]:
    """Return the columns that are what pandas calls an index: labels of rows, and no values."""
    try:
        stored = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    except ValueError:
        return set()  # whoever wrote it, did not write it as pandas does
    listed = stored.get("index_columns") if isinstance(stored, dict) else None
    return {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()


def _refuse_nested(schema: pa.Schema, kinds: Mapping[str, Any]) -> None:
    for field in schema:
        if _is_nested(field.type) and kinds.get(one_line(field.name)) != "unused":
            raise DpreproError(
                f"column {field.name!r} holds lists or structs, and a value is a number or a text: "
                "write each part to a column of its own in the file, or list the column under "
                "`drop` (with `distinct`, take it out of the file)"
            )


def _is_nested(stored: pa.DataType) -> bool:
    """Whether a value of this type has parts, and is no value of Python that can be compared."""
    if isinstance(stored, pa.FixedShapeTensorType):
        return True
    if pa.types.is_dictionary(stored):
        return _is_nested(stored.value_type)
    return bool(pa.types.is_nested(stored))


def counts_agree(metadata: pa.parquet.FileMetaData) -> bool:
    """Whether the rows of the groups add up to those of the file: Arrow asks for memory by them.

    Both can be wrong alike: then whoever reads sees that there are fewer rows, but not that there
    are more. The counts of values are not looked at. They move Arrow to no such thing, and to ask
    for them ends the process where other parts of the footer are damaged.
    """
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return bool(sum(group.num_rows for group in groups) == metadata.num_rows)


def is_utf8(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether all text of a column is valid UTF-8; true of columns without text."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return True  # a dictionary is looked into as it is read
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
