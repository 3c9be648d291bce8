"""A model as one SELECT of SQL, for SQLite, DuckDB and PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import chain
from math import inf, isinf

from dprepro.additive.export.plain import (
    CategoricalTerm,
    NumericTerm,
    PairTerms,
    PlainModel,
    free_name,
    plain,
    refuse_unwritable,
)
from dprepro.additive.model import AdditiveModel
from dprepro.data.card_parts import MISSING_TEXTS
from dprepro.data.cell_values import BLANKS, number_of
from dprepro.runtime.errors import DpreproError

_COMMENT = """\
-- Predictions of an additive model that `dprepro export` wrote. Numbers are IEEE doubles.
-- Missing is NULL, NaN, or one of the texts that stand for it. Columns may have any type. Where the
-- model wants a number, and a row has a text that is none, or an infinite value, DuckDB and
-- PostgreSQL end with an error; SQLite has none, and predicts NULL.
-- The slashes and stars are no mistake: SQLite does not nest comments and so reads the first of two
-- ways to write a thing, the other databases nest them and read the second.
"""
_LONG_NAMES = """\
-- Names here are longer than PostgreSQL's 63 bytes and differ only behind them. It cannot tell them
-- apart, and says "ambiguous".
"""
_LONGEST_NAME = 63
_LARGEST_EXACT = 2.0**53
# MySQL and BigQuery treat a backslash as the beginning of an escape: a name could end a string.
_REFUSED = "\\"
_SAID = "prediction"
_LARGEST_INTEGER = 2**62
_WHY = "which some databases treat as something else than itself"
_DIGITS = "'0123456789'"
# The first seven letters of types that hold numbers, in the three databases.
_NUMBERS = (
    "integer", "smallin", "bigint", "numeric", "real", "double", "double ", "decimal", "float",
    "tinyint", "hugeint", "utinyin", "usmalli", "uintege", "ubigint", "uhugein", "bignum", "varint",
)  # fmt: skip
# Of types that databases write in ways of their own.
_OTHERS = "'date', 'interva', 'bytea', 'blob'"


def _either(sqlite: str, others: str) -> str:
    """Return code of which SQLite reads one part, and databases that nest comments the other.

    What SQLite reads must hold no sign of a comment, and so no name.
    """
    return f"/* /* */ {sqlite} -- */ {others}\n"


_FOUR_BYTES = _either("'integer'", "'float'")
_TYPE_OF = _either("TYPEOF", "PG_TYPEOF")
_AS_STORED = _either("COALESCE", "CONCAT")
"""A function that gives a column as it is in SQLite, where texts lose digits, and else as text."""

# All rows, in words that keep a database from computing the sum anew wherever it is used.
_ONCE = "LIMIT " + _either("-1 OFFSET 0", "ALL")

# A text that equals another only by its characters, whatever the column says of its collation.
_EXACTLY = _either("COLLATE BINARY", 'COLLATE "C"')
_CODES = sorted(map(ord, BLANKS))
# Characters that PostgreSQL has in a database in UTF-8 alone are no blanks in others.
_CONSTANTS = (
    "(SELECT '," + ",".join(_NUMBERS) + ",' AS numbers,\n "
    + _either(
        f"CHAR({', '.join(map(str, _CODES))}) AS blanks",
        "STRING_AGG(CHR(code), '') AS blanks FROM (VALUES "
        f"{', '.join(f'({code})' for code in _CODES)}) AS v(code) "
        "WHERE code < 128 OR BIT_LENGTH(CHR(233)) = 16",
    )
    + ") AS b"
)  # fmt: skip


def to_sql(model: AdditiveModel, table: str, missing: Collection[str] = MISSING_TEXTS) -> str:
    """Return a SELECT of all columns of a table and of predictions.

    Predictions come first. Classification: ``prediction`` (a label), ``probability`` (of the second
    class) and ``log_odds``. Regression: ``prediction``, which is clipped where the model has a
    range, and ``sum``. If a feature has such a name, the column gets a _ more.

    Raises DpreproError if a name, category or label holds a backslash or a character that cannot be
    printed, if a name is empty, or if names of features differ in case alone.

    Parameters
    ----------
    table
        Its name; it is quoted, so that a dot is a part of it.
    missing
        Texts that stand for a missing value, where they are no categories. One that reads as a
        number stands for the number. NaN always does.

    Notes
    -----
    Sums are balanced, (a + b) + (c + d), so that the expression is not deep. Each differs from that
    of `AdditiveModel.scores_of` by rounding alone; where all values are whole numbers of one unit,
    by nothing.
    """
    known = plain(model, missing)
    _check(known, table)
    alike = _cut_alike(known.names)
    parts = [*map(_term, known.terms), *map(_pair, known.pairs), *(f"f.{_name(n)}" for n in alike)]
    score = _balanced([_number(known.intercept), *parts])
    if known.labels is None:
        sum_name, prediction = (_name(free_name(name, known.names)) for name in ("sum", _SAID))
        made = [f"{_clipped(f'scored.{sum_name}', known)} AS {prediction}"]
    else:
        sum_name, probability, prediction = (
            _name(free_name(name, known.names)) for name in ("log_odds", "probability", _SAID)
        )
        odds = f"scored.{sum_name}"
        negative, positive = map(_text, known.labels)
        # Either way the argument of EXP is not positive, so that it cannot overflow, nor NULL.
        made = [
            f"CASE WHEN {odds} > 0 THEN {positive} WHEN {odds} <= 0 THEN {negative} END "
            f"AS {prediction}",
            f"CASE WHEN {odds} >= 0 THEN 1e0 / (1e0 + EXP(-{odds}))\n"
            f" WHEN {odds} < 0 THEN EXP({odds}) / (1e0 + EXP({odds})) END AS {probability}",
        ]
    columns = ",\n".join([*made, "scored.*"])
    constants = _CONSTANTS
    if alike:
        zeros = ", ".join(f"0e0 AS {_name(name)}" for name in known.names)
        constants += f" CROSS JOIN (SELECT {zeros}) AS f"
    # The sum before the table's columns: of two of one name databases take the first, or none.
    query = (
        f"{_COMMENT}{_LONG_NAMES if alike else ''}SELECT {columns}\n"
        f"FROM (SELECT {score} AS {sum_name},\nt.*\n"
        f"FROM {_name(table)} AS t CROSS JOIN {constants}\n{_ONCE}) AS scored\n"
    )
    return re.sub("\n+", "\n", query)


def _check(model: PlainModel, table: str) -> None:
    categories = chain.from_iterable(
        term.values for term in model.terms if isinstance(term, CategoricalTerm)
    )
    absent = chain.from_iterable(term.missing_texts for term in model.terms)
    texts = [table, *model.names, *(model.labels or ()), *categories, *absent]
    refuse_unwritable(texts, "SQL", _REFUSED, _WHY)
    if not table:
        raise DpreproError("the table of new rows has an empty name: name it with --table NAME")
    _refuse_large_codes(model)
    if not all(model.names):
        raise DpreproError(
            "a feature has an empty name, which no database reads as that of a column: name it in "
            "the data, and fit again; or export the model with --to python, which takes it"
        )
    found: dict[str, str] = {}
    for name in model.names:
        # Databases that ignore case do so for the letters of ASCII.
        key = "".join(c.lower() if c.isascii() else c for c in name)
        if (other := found.setdefault(key, name)) != name:
            raise DpreproError(
                f"the names of features {other!r} and {name!r} differ in case alone, and SQLite "
                "and DuckDB treat them as one column: rename one in the data, and fit again; or "
                "export the model with --to python, which tells them apart"
            )


def _refuse_large_codes(model: PlainModel) -> None:
    """Refuse categories that are one number of double precision, in which SQL compares numbers."""
    for term in model.terms:
        if not isinstance(term, CategoricalTerm):
            continue
        found: dict[float, str] = {}
        for name in term.values:
            number = number_of(name)
            if number is None or not _LARGEST_EXACT <= abs(number) < inf:
                continue
            if (other := found.setdefault(number, name)) != name:
                raise DpreproError(
                    f"the categories {other!r} and {name!r} of {term.name!r} are one number of "
                    "double precision, so that SQL could not tell them apart: write codes of fewer "
                    "than 16 digits to the data, and fit again"
                )


def _cut_alike(names: Sequence[str]) -> list[str]:
    """Return the names that PostgreSQL, which cuts long ones, treats as those before them."""
    cut = [name.encode()[:_LONGEST_NAME] for name in names]
    return [name for k, name in enumerate(names) if cut[k] in cut[:k]]


def _term(term: NumericTerm | CategoricalTerm) -> str:
    return _numeric(term) if isinstance(term, NumericTerm) else _categorical(term)


def _pair(pair: PairTerms) -> str:
    cell = f"({_term(pair.first)}\n + {_term(pair.second)})"
    cases = [f"WHEN {_number(k)} THEN {_number(v)}" for k, v in enumerate(pair.values)]
    return "\n ".join([f"CASE {cell}", *cases, "ELSE 0e0 END"])


def _numeric(term: NumericTerm) -> str:
    column = _column(term.name)
    text, kind = _trimmed(column), _kind(column)
    false, true = map(_number, (term.at(0.0), term.at(1.0)))
    absent = [f"{text} IS NULL", f"LOWER({text}) = 'nan'", _is_negative_nan(text, kind)]
    if term.missing_texts:
        absent.append(f"{text} IN ({_texts(term.missing_texts)})")
    steps = _steps(term.cuts, term.values)
    exact, read = (
        _case(
            [f"WHEN {number} IN ({', '.join(map(_exact, term.missing_numbers))}) THEN {missing}"]
            if term.missing_numbers
            else [],
            _tree(number, *steps),
        )
        for number, missing in (
            (_stored_number(column), _number(term.missing)),
            (_read_number(text), _number(term.missing)),
        )
    )
    number, failure = _read_number(text), _failure(term.name, text, "numbers", "text or infinities")
    return _case(
        [
            f"WHEN {' OR '.join(absent)} THEN {_number(term.missing)}",
            f"WHEN {kind} = 'boolean' THEN CASE {text} WHEN 'true' THEN {true} ELSE {false} END",
            f"WHEN NOT ({_is_number(text)}) THEN {failure}",
            f"WHEN {_has_stored_number(kind)} THEN {exact}",
            # A text of a number that is too large: what is infinite has no difference to itself.
            f"WHEN COALESCE({number} - {number}, 1e0) <> 0e0 THEN {failure}",
        ],
        read,
    )


def _categorical(term: CategoricalTerm) -> str:
    column = _column(term.name)
    # In SQLite a text that is not computed has the collation of its column.
    text = _trimmed(column) if term.ignores_blanks else f"(CAST({column} AS VARCHAR) || '')"
    kind, missing, other = _kind(column), _number(term.missing), _number(term.other)
    number = (
        f"CASE WHEN {_has_stored_number(kind)} THEN {_stored_number(column)} "
        f"ELSE {_read_number(text)} END"
    )
    numbers = [
        f"WHEN {_exact(n)} THEN {_number(value)}"
        for n, value in term.numbers.items()
        if not isinf(n)
    ]
    of_numbers = _case(numbers, other, number) if numbers else other
    infinite = "".join(
        f"WHEN LOWER({text}) IN ('{sign}inf', '{sign}infinity') THEN {_number(value)} "
        for n, value in term.numbers.items()
        for sign in (["-" if n < 0 else ""] if isinf(n) else [])
    )
    false, true = map(_number, term.booleans)
    values = {**dict.fromkeys(term.missing_texts, term.missing), **term.values}
    texts = [f"WHEN {_text(text)} THEN {_number(value)}" for text, value in values.items()]
    failure = _failure(term.name, text, "texts", "dates, times or bytes: cast them to text")
    rest = [f"WHEN {kind} IN ({_OTHERS}) OR {kind} LIKE 'time%' THEN {failure}"]
    if term.missing_numbers:
        marks = ", ".join(map(_exact, term.missing_numbers))
        spelled = f"CASE WHEN {_is_number(text)} THEN {_read_number(text)} IN ({marks}) END"
        rest.append(f"WHEN {spelled} THEN {missing}")
    otherwise = _case(rest, other)
    return _case(
        [
            f"WHEN {text} IS NULL THEN {missing}",
            f"WHEN b.numbers LIKE '%,' || {kind} || ',%' THEN CASE "
            f"WHEN LOWER({text}) IN ('nan', '-nan') THEN {missing} {infinite}ELSE {of_numbers} END",
            f"WHEN {kind} = 'boolean' THEN CASE {text} WHEN 'true' THEN {true} ELSE {false} END",
        ],
        _case(texts, otherwise, f"{text} {_EXACTLY}") if texts else otherwise,
    )


def _trimmed(column: str) -> str:
    return f"TRIM(CAST({column} AS VARCHAR), b.blanks)"


def _kind(column: str) -> str:
    """Return an expression of the beginning of a type's name, without `(4,1)` and the like."""
    return f"LOWER(SUBSTR(CAST({_TYPE_OF}({column}) AS VARCHAR), 1, 7))"


def _is_negative_nan(text: str, kind: str) -> str:
    """Return whether it is a NaN as DuckDB writes many of them; as a text it is no number."""
    return f"({text} = '-nan' AND {kind} IN ('float', 'double'))"


def _has_stored_number(kind: str) -> str:
    """Return whether `_stored_number` is the number: text says no more, or something else."""
    return f"{kind} IN ('real', {_FOUR_BYTES})"


def _stored_number(column: str) -> str:
    """Return the number of SQLite's own types, and of types of four bytes elsewhere."""
    return f"CAST({_AS_STORED}({column}, '') AS REAL)"


def _read_number(text: str) -> str:
    return f"CAST({text} AS DOUBLE PRECISION)"


def _is_number(text: str) -> str:
    """Return whether a text is a number, as far as the databases would not find out by a cast.

    Only signs of numbers are in it, it ends with a digit, and so does what is before an exponent.
    SQLite compares a text with a number as a number if it can, and else a text is the larger one.
    """
    return (
        f"LTRIM({text}, '0123456789+-.eE') = '' AND RTRIM({text}, {_DIGITS}) <> {text} "
        f"AND LOWER({text}) NOT LIKE '%.e%' AND {text} NOT LIKE '+-%' "
        f"AND {text} {_either('<= CAST(9e999 AS REAL)', f'<> {_text(str())}')}"
    )


def _failure(name: str, text: str, wanted: str, found: str) -> str:
    """Return an expression that is an error where a database has one, and NULL in SQLite."""
    message = _text(f"column {name} is to hold {wanted}, but holds {found}")
    # With something of the row: what is constant would be computed, and fail, before any row.
    return _either("NULL", f"CAST({message} || SUBSTR({text}, 1, 0) AS DOUBLE PRECISION)")


def _steps(
    cuts: Sequence[float], values: Sequence[float]
) -> tuple[Sequence[float], Sequence[float]]:
    """Return cuts and values without the cuts that change nothing."""
    kept = [k for k in range(len(cuts)) if values[k] != values[k + 1]]
    return [cuts[k] for k in kept], [values[0], *(values[k + 1] for k in kept)]


def _tree(number: str, cuts: Sequence[float], values: Sequence[float]) -> str:
    """Return the value at a number; few comparisons, as each reads the number anew."""
    if not cuts:
        return _number(values[0])
    k = len(cuts) // 2
    below = _tree(number, cuts[:k], values[: k + 1])
    above = _tree(number, cuts[k + 1 :], values[k + 1 :])
    return f"CASE WHEN {number} < {_exact(cuts[k])} THEN {below}\n ELSE {above} END"


def _case(cases: Sequence[str], otherwise: str, of: str = "") -> str:
    if not cases:
        return otherwise
    return "\n ".join([f"CASE {of}".rstrip(), *cases, f"ELSE {otherwise} END"])


def _clipped(score: str, model: PlainModel) -> str:
    if model.limits is None:
        return score
    lower, upper = map(_number, model.limits)
    # The smaller and the larger of two values have other names in each database.
    return (
        f"CASE WHEN {score} < {lower} THEN {lower} WHEN {score} > {upper} THEN {upper} "
        f"ELSE {score} END"
    )


def _balanced(parts: Sequence[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return f"({_balanced(parts[:middle])}\n+ {_balanced(parts[middle:])})"


def _number(value: float) -> str:
    """Return a literal of a double: without an exponent, some databases make it a decimal."""
    text = repr(float(value))
    text = text if "e" in text else f"{text}e0"
    return f"({text})" if value < 0 else text


def _exact(value: float) -> str:
    """Return an expression of the very double, for cuts: SQLite can misread a literal's last bit.

    A whole number below 2^53, divided by a power of two, is exact. Where the power is too large for
    an integer of 64 bits, the literal has to do.
    """
    numerator, denominator = value.as_integer_ratio()
    if denominator == 1 or denominator > _LARGEST_INTEGER:
        return _number(value)
    return f"({numerator}e0 / {denominator}e0)"


def _texts(texts: Collection[str]) -> str:
    return ", ".join(map(_text, texts))


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _column(name: str) -> str:
    # With the alias: SQLite treats a quoted name of no column as a text.
    return f"t.{_name(name)}"
