"""How each database writes what a query of a model needs: names, literals, types, numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from dprepro.data.cell_values import BLANKS

NUMBER = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"
"""A text that is a number, as `dprepro.data.cell_values` reads one."""

_LARGEST_INTEGER = 2**62
_CODES = sorted(map(ord, BLANKS))

Layers = Sequence[Mapping[str, str]]


class Dialect(ABC):
    """What is common to databases; each method returns a piece of SQL.

    Columns may have any type, which the query finds out itself: all are read by way of their text,
    as databases with static types refuse a query that could convert a date to a number.
    """

    title: ClassVar[str]
    remark: ClassVar[str] = ""
    """What a user of this database must know, for the head of a query."""
    numbers: ClassVar[tuple[str, ...]]
    """Kinds of columns that hold numbers; see `kind`."""
    bytes_kinds: ClassVar[tuple[str, ...]]
    time_kinds: ClassVar[tuple[str, ...]]
    boolean: ClassVar[str] = "boolean"
    in_names: ClassVar[str] = ""
    """Characters that no name of a column can have."""
    fence: ClassVar[str] = ""
    """What keeps the database from computing an inner query anew wherever it is used."""
    text_type: ClassVar[str] = "VARCHAR"

    def name(self, name: str) -> str:
        """Return an identifier."""
        return '"' + name.replace('"', '""') + '"'

    def same_name(self, name: str) -> str:
        """Return what is equal for names that the database cannot tell apart."""
        # It ignores the capitals of ASCII.
        return "".join(c.lower() if c.isascii() else c for c in name)

    def text(self, text: str) -> str:
        """Return a literal of a text."""
        return "'" + text.replace("'", "''") + "'"

    def number(self, value: float) -> str:
        """Return a literal of a double: without an exponent, databases make it a decimal."""
        text = repr(float(value))
        text = text if "e" in text else f"{text}e0"
        return f"({text})" if value < 0 else text

    def cut(self, value: float) -> str:
        """Return the very double, to compare numbers with."""
        return self.number(value)

    def blanks(self) -> str:
        """Return a text of all characters that are blanks around a text."""
        return " || ".join(f"CHR({code})" for code in _CODES)

    def as_text(self, column: str) -> str:
        """Return the text of a value."""
        return f"CAST({column} AS {self.text_type})"

    def exactly(self, text: str) -> str:
        """Return a text that equals others by its characters alone, whatever the column says."""
        return f'({text} COLLATE "C")'

    @abstractmethod
    def kind(self, column: str) -> str:
        """Return the name of a column's type in small letters, without `(4,1)` and the like."""

    @abstractmethod
    def is_number(self, text: str) -> str:
        """Return whether a text is a number; see `NUMBER`."""

    @abstractmethod
    def read(self, column: str, text: str, kind: str) -> str:
        """Return the double that a text says that is a number, NULL or infinite if too large."""

    def refer(self, name: str, layer: int, at: int) -> str:
        """Return what an expression of layer `at` calls one of an earlier layer; see `query`."""
        return f"l{layer}.{name}"

    def bound(self, code: str, layers: Layers) -> str:
        """Return an expression that refers to `layers` of one feature alone, as part of `made`."""
        return code

    def query(self, sources: str, layers: Layers, made: Mapping[str, str]) -> str:
        """Return a SELECT of `made`, and of all columns of t, whose rows `layers` add to.

        A layer is a few expressions by names. They are computed once for each row, and those of
        later layers, and of `made`, refer to them.
        """
        joined = "".join(
            f"\n{self.layer(', '.join(_named(layer)))} AS l{k}"
            for k, layer in enumerate(layers)
            if layer
        )
        said = ",\n".join(_named(made))
        return f"SELECT {said},\nt.*\nFROM {sources}{joined}{self.fence}"

    def layer(self, listed: str) -> str:
        """Return what adds columns to each row; they may be computed of those before them."""
        return f"CROSS JOIN LATERAL (SELECT {listed}{self.fence})"


def _named(layer: Mapping[str, str]) -> list[str]:
    return [f"{code} AS {name}" for name, code in layer.items()]


class _Postgresql(Dialect):
    title = "PostgreSQL"
    remark = "A long query is compiled before it begins, which can take minutes: SET jit = off."
    numbers = ("smallint", "integer", "bigint", "numeric", "real", "double precision")
    bytes_kinds = ("bytea",)
    time_kinds = (
        "date", "interval", "time without time zone", "time with time zone",
        "timestamp without time zone", "timestamp with time zone",
    )  # fmt: skip
    fence = "\nOFFSET 0"

    def same_name(self, name: str) -> str:
        return name.encode()[:63].decode(errors="ignore")

    def number(self, value: float) -> str:
        # A literal with an exponent is a decimal here.
        return f"'{float(value)!r}'::float8"

    def blanks(self) -> str:
        # Characters that the server has in a database in UTF-8 alone are no blanks in others.
        listed = ", ".join(f"({code})" for code in _CODES)
        return (
            f"(SELECT STRING_AGG(CHR(code), '') FROM (VALUES {listed}) AS v(code)"
            " WHERE code < 128 OR BIT_LENGTH(CHR(233)) = 16)"
        )

    def kind(self, column: str) -> str:
        return f"CAST(PG_TYPEOF({column}) AS VARCHAR)"

    def is_number(self, text: str) -> str:
        return f"{text} ~ '{NUMBER}'"

    def read(self, column: str, text: str, kind: str) -> str:
        # The server ends with an error where a double overflows, or becomes 0: decimals do not.
        decimal = f"CAST({text} AS NUMERIC)"
        return (
            f"CASE WHEN {kind} = 'real' THEN CAST(CAST({text} AS REAL) AS DOUBLE PRECISION)\n"
            f" WHEN {kind} = 'double precision' OR (LENGTH({text}) < 300 AND {text} !~ '[eE]')"
            f" THEN CAST({text} AS DOUBLE PRECISION)\n"
            f" WHEN {text} ~ '^[+-]?[0.]+([eE]|$)' THEN {self.number(0)}\n"
            f" WHEN {text} ~ '[eE]-0*[1-9][0-9]{{4}}' THEN {self.number(0)}\n"
            f" WHEN {text} ~ '[eE][+]?0*[1-9][0-9]{{4}}' THEN NULL\n"
            f" WHEN ABS({decimal}) > 1.797693134862315808e308 THEN NULL\n"
            f" WHEN ABS({decimal}) < 2.4703282292062328e-324 THEN {self.number(0)}\n"
            f" ELSE CAST({text} AS DOUBLE PRECISION) END"
        )


class _Duckdb(Dialect):
    title = "DuckDB"
    remark = "It may take texts of a CSV for dates: cast such a column to text."
    numbers = (
        "tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger",
        "ubigint", "uhugeint", "bignum", "varint", "float", "double", "decimal",
    )  # fmt: skip
    bytes_kinds = ("blob",)
    time_kinds = (
        "date", "interval", "time", "time with time zone", "timestamp", "timestamp_s",
        "timestamp_ms", "timestamp_ns", "timestamp with time zone",
    )  # fmt: skip

    def kind(self, column: str) -> str:
        return f"LOWER(SPLIT_PART(TYPEOF({column}), '(', 1))"

    def is_number(self, text: str) -> str:
        return f"REGEXP_MATCHES({text}, '{NUMBER}')"

    def read(self, column: str, text: str, kind: str) -> str:
        return (
            f"CASE WHEN {kind} = 'float' THEN CAST(TRY_CAST({text} AS FLOAT) AS DOUBLE)"
            f" ELSE TRY_CAST({text} AS DOUBLE) END"
        )


class _Sqlite(Dialect):
    title = "SQLite"
    remark = "It needs its mathematical functions (EXP)."
    numbers = ("integer", "real")
    bytes_kinds = ("blob",)
    time_kinds = ()
    fence = "\nLIMIT -1 OFFSET 0"
    text_type = "TEXT"

    def cut(self, value: float) -> str:
        """Return the very double: SQLite can misread a literal's last bit.

        A whole number below 2^53, divided by a power of two, is exact. Where the power is too large
        for an integer of 64 bits, the literal has to do.
        """
        numerator, denominator = value.as_integer_ratio()
        if denominator == 1 or denominator > _LARGEST_INTEGER:
            return self.number(value)
        return f"({numerator}e0 / {denominator}e0)"

    def blanks(self) -> str:
        return f"CHAR({', '.join(map(str, _CODES))})"

    def exactly(self, text: str) -> str:
        return f"({text} || '')"  # what is computed has no collation

    def kind(self, column: str) -> str:
        return f"TYPEOF({column})"

    def is_number(self, text: str) -> str:
        # A text compares with a number as a number if it is one, and else is the larger.
        return f"(LTRIM({text}, '0123456789+-.eE') = '' AND {text} <= CAST(9e999 AS REAL))"

    def read(self, column: str, text: str, kind: str) -> str:
        return (
            f"CASE WHEN {kind} IN ('integer', 'real') THEN CAST({column} AS REAL)"
            f" ELSE CAST({text} AS REAL) END"
        )

    def refer(self, name: str, layer: int, at: int) -> str:
        return f"l{at - 1}.{name}"

    def bound(self, code: str, layers: Layers) -> str:
        """Return a query within a row, layer in layer: SQLite has no LATERAL."""
        inner = ""
        for k, layer in enumerate(layers):
            listed = ", ".join([*([f"l{k - 1}.*"] if inner else []), *_named(layer)])
            source = f"\nFROM {inner}" if inner else ""
            inner = f"(SELECT {listed}{source} LIMIT 1 OFFSET 0) AS l{k}"
        return f"(SELECT {code}\nFROM {inner})"

    def query(self, sources: str, layers: Layers, made: Mapping[str, str]) -> str:
        return super().query(sources, [], made)


class _Bigquery(Dialect):
    title = "BigQuery"
    numbers = ("int64", "float64", "numeric", "bignumeric")
    bytes_kinds = ("bytes",)
    time_kinds = ("date", "datetime", "interval", "time", "timestamp")
    in_names = '!"$()*,./;?@[]^`{}~'
    boolean = "bool"
    text_type = "STRING"

    def name(self, name: str) -> str:
        return f"`{name}`"  # a table's name may have dots; none has such quotes

    def text(self, text: str) -> str:
        return "'" + text.replace("'", "\\'") + "'"

    def blanks(self) -> str:
        return f"CODE_POINTS_TO_STRING([{', '.join(map(str, _CODES))}])"

    def as_text(self, column: str) -> str:
        return f"SAFE_CAST({column} AS STRING)"

    def exactly(self, text: str) -> str:
        return f"COLLATE({text}, '')"

    def kind(self, column: str) -> str:
        return f"LOWER(REGEXP_EXTRACT(TYPEOF({column}), '^[A-Z0-9]+'))"

    def is_number(self, text: str) -> str:
        return f"REGEXP_CONTAINS({text}, '{NUMBER}')"

    def read(self, column: str, text: str, kind: str) -> str:
        return f"SAFE_CAST({text} AS FLOAT64)"

    def layer(self, listed: str) -> str:
        return f"CROSS JOIN UNNEST([STRUCT({listed})])"


class _Snowflake(Dialect):
    title = "Snowflake"
    remark = (
        "Names are quoted, and so compared with their capitals. To find columns that were created "
        "without quotes: ALTER SESSION SET QUOTED_IDENTIFIERS_IGNORE_CASE = TRUE"
    )
    numbers = ("integer", "decimal", "double")
    bytes_kinds = ("binary",)
    time_kinds = ("date", "time", "timestamp_ltz", "timestamp_ntz", "timestamp_tz")

    def number(self, value: float) -> str:
        # A literal with an exponent is a decimal here.
        return f"'{float(value)!r}'::DOUBLE"

    def exactly(self, text: str) -> str:
        return f"COLLATE({text}, '')"

    def kind(self, column: str) -> str:
        return f"LOWER(TYPEOF(TO_VARIANT({column})))"

    def is_number(self, text: str) -> str:
        return f"REGEXP_LIKE({text}, '{NUMBER}')"

    def read(self, column: str, text: str, kind: str) -> str:
        # The text of a double has fewer digits than the double.
        return (
            f"CASE WHEN {kind} IN ('integer', 'decimal', 'double')"
            f" THEN AS_DOUBLE(TO_VARIANT({column})) ELSE TRY_TO_DOUBLE({text}) END"
        )


DIALECTS: dict[str, Dialect] = {
    "postgresql": _Postgresql(),
    "sqlite": _Sqlite(),
    "duckdb": _Duckdb(),
    "bigquery": _Bigquery(),
    "snowflake": _Snowflake(),
}
"""The databases that a model can be written for."""

TESTED_DIALECTS = ("postgresql", "sqlite", "duckdb")
"""Those whose queries are run in tests; the others' are parsed, and run in translation."""
