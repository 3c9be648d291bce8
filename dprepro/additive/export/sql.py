"""A model as one SELECT of SQL, for SQLite, DuckDB and PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain

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

_COMMENT = """\
-- Predictions of an additive model that `dprepro export` wrote. Numbers are IEEE doubles.
-- Missing is NULL or one of the texts that stand for it. Columns of features must be numbers or
-- text; text where the model wants numbers must read as numbers.
"""
# MySQL and BigQuery take a backslash for the beginning of an escape: a name could end a string.
_REFUSED = "\\"
_NAN = ("nan", "NaN")
"""What a NaN in a column of doubles reads as text."""
_SAID = "prediction"
_LARGEST_INTEGER = 2**62
_WHY = "which some databases take for something else than itself"


def to_sql(model: AdditiveModel, table: str, missing: Collection[str] = MISSING_TEXTS) -> str:
    """Return a SELECT of all columns of a table and of predictions.

    Classification: ``log_odds``, ``probability`` (of the second class) and ``prediction`` (a
    label). Regression: ``sum`` and ``prediction``, which is clipped where the model has a range. If
    a feature has such a name, the column gets a _ more.

    Parameters
    ----------
    table
        Its name; it is quoted, so that a dot is a part of it.
    missing
        Texts that stand for a missing value, where they are no categories. NaN always does.

    Raises
    ------
    DpreproError
        If a name, category or label holds a backslash or a character that cannot be printed.

    Notes
    -----
    Sums are balanced, (a + b) + (c + d), so that the expression is not deep. Each differs from that
    of `AdditiveModel.scores_of` by rounding alone; where all values are whole numbers of one unit,
    by nothing.
    """
    known = plain(model, missing)
    _check(known, table)
    score = _balanced(
        [_number(known.intercept), *map(_term, known.terms), *map(_pair, known.pairs)]
    )
    if known.labels is None:
        sum_name, prediction = (_name(free_name(name, known.names)) for name in ("sum", _SAID))
        made = [f"{_clipped(f'scored.{sum_name}', known)} AS {prediction}"]
    else:
        sum_name, probability, prediction = (
            _name(free_name(name, known.names)) for name in ("log_odds", "probability", _SAID)
        )
        odds = f"scored.{sum_name}"
        negative, positive = map(_text, known.labels)
        # Either way the argument of EXP is not positive, so that it cannot overflow.
        made = [
            f"CASE WHEN {odds} >= 0 THEN 1e0 / (1e0 + EXP(-{odds}))\n"
            f" ELSE EXP({odds}) / (1e0 + EXP({odds})) END AS {probability}",
            f"CASE WHEN {odds} > 0 THEN {positive} ELSE {negative} END AS {prediction}",
        ]
    columns = ",\n".join(["scored.*", *made])
    return (
        f"{_COMMENT}SELECT {columns}\n"
        f"FROM (SELECT t.*,\n{score} AS {sum_name}\nFROM {_name(table)} AS t) AS scored\n"
    )


def _check(model: PlainModel, table: str) -> None:
    categories = chain.from_iterable(
        term.values for term in model.terms if isinstance(term, CategoricalTerm)
    )
    absent = chain.from_iterable(term.missing_texts for term in model.terms)
    texts = [table, *model.names, *(model.labels or ()), *categories, *absent]
    refuse_unwritable(texts, "SQL", _REFUSED, _WHY)


def _term(term: NumericTerm | CategoricalTerm) -> str:
    return _numeric(term) if isinstance(term, NumericTerm) else _categorical(term)


def _pair(pair: PairTerms) -> str:
    cell = f"({_term(pair.first)}\n + {_term(pair.second)})"
    cases = [f"WHEN {_number(k)} THEN {_number(v)}" for k, v in enumerate(pair.values)]
    return "\n ".join([f"CASE {cell}", *cases, "ELSE 0e0 END"])


def _numeric(term: NumericTerm) -> str:
    column, texts = _column(term.name), dict.fromkeys((*term.missing_texts, *_NAN))
    number = f"CAST({column} AS DOUBLE PRECISION)"
    cases = [
        f"WHEN {number} < {_exact(cut)} THEN {_number(value)}"
        for cut, value in zip(term.cuts, term.values, strict=False)
    ]
    absent = f"{column} IS NULL OR TRIM(CAST({column} AS VARCHAR)) IN ({_texts(texts)})"
    return _case([f"WHEN {absent} THEN {_number(term.missing)}", *cases], _number(term.values[-1]))


def _categorical(term: CategoricalTerm) -> str:
    text = f"CAST({_column(term.name)} AS VARCHAR)"
    text = f"TRIM({text})" if term.ignores_blanks else text
    absent = [f"{_column(term.name)} IS NULL"]
    if term.missing_texts:
        absent.append(f"{text} IN ({_texts(term.missing_texts)})")
    by_value: dict[float, list[str]] = {}
    for category, value in term.values.items():
        by_value.setdefault(value, []).append(category)
    cases = [
        f"WHEN {text} IN ({_texts(categories)}) THEN {_number(value)}"
        for value, categories in by_value.items()
    ]
    missing = f"WHEN {' OR '.join(absent)} THEN {_number(term.missing)}"
    return _case([missing, *cases], _number(term.other))


def _case(cases: Sequence[str], otherwise: str) -> str:
    return "\n ".join(["CASE", *cases, f"ELSE {otherwise} END"])


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
    # With the alias: SQLite takes a quoted name of no column for a text.
    return f"t.{_name(name)}"
