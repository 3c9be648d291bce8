"""A model as one SELECT of SQL, in the dialect of a database."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from itertools import chain
from math import inf, isinf

from dprepro.additive.export.dialects import DIALECTS, Dialect
from dprepro.additive.export.plain import (
    FIRST_REFUSED,
    UNKNOWN,
    CategoricalTerm,
    NumericTerm,
    PairTerms,
    PlainModel,
    free_name,
    plain,
    plain_of_classes,
    refuse_unwritable,
)
from dprepro.additive.model import AdditiveClassifier, AdditiveModel
from dprepro.data.card_parts import MISSING_TEXTS
from dprepro.data.cell_values import number_of
from dprepro.runtime.errors import DpreproError

_COMMENT = """\
-- Predictions of {said_of} that dprepro wrote, for {title}. Numbers are doubles.
-- Missing is NULL, NaN, or one of the texts that stand for it. Columns may have any type.
-- {notes} names the features whose value the model does not know, as `dprepro predict` does.
-- Of a value that `predict` refuses it says {refused}:
-- the row then has no prediction (NULL).
-- To count them: SELECT {notes}, COUNT(*) FROM (this SELECT) AS said GROUP BY {notes}
"""
_LARGEST_EXACT = 2.0**53
# MySQL and BigQuery treat a backslash as the beginning of an escape: a name could end a string.
_REFUSED = "\\"
_SAID, _LIKELY = "prediction", "probability"
_WHY = "which some databases treat as something else than itself"
_OF_NUMBERS = ["below its bounds", "above its bounds", "infinite", "not a number"]
_TEXT, _NUMBER, _PLACE = range(3)
"""Layers of a query; see `Dialect.query`. The first has the text of each column, without blanks
around it where they do not count, the second the number that it says, the third its place: the
position of a category, or minus the position in `UNKNOWN` of what is unknown of it."""


def to_sql(
    model: AdditiveModel, table: str, dialect: str, missing: Collection[str] = MISSING_TEXTS
) -> str:
    """Return a SELECT of all columns of a table and of predictions.

    Predictions come first. Classification: ``prediction`` (a label), ``probability`` (of the second
    class) and ``log_odds``; of several classes ``probability of CLASS`` and ``log_odds of CLASS``
    for each. Regression: ``prediction``, which is clipped where the model has a
    range, and ``sum``. Then ``notes``, as of `dprepro.release.predicting`; a row with a value that
    is refused there has NULLs and a note. If a feature has such a name, the column gets a _ more.

    Raises DpreproError if a name, category or label holds a backslash or a character that cannot be
    printed, if a name is empty, or if the database cannot have or tell apart the names of features.

    Parameters
    ----------
    table
        Its name; it is quoted, so that a dot is a part of it, but for BigQuery.
    dialect
        One of `DIALECTS`.
    missing
        Texts that stand for a missing value, where they are no categories. One that reads as a
        number stands for the number. NaN always does.

    Notes
    -----
    Sums are balanced, (a + b) + (c + d), so that the expression is not deep. Each differs from that
    of `AdditiveModel.scores_of` by rounding alone; where all values are whole numbers of one unit,
    by nothing.
    """
    spoken = DIALECTS[dialect]
    if isinstance(model, AdditiveClassifier) and model.several_classes:
        query = ClassQuery(plain_of_classes(model, missing), model.class_names, spoken)
        check(query.model, table, spoken, query.made)
        return query.text(table)
    known = plain(model, missing)
    check(known, table, spoken)
    return Query(known, spoken).text(table)


class Query:
    """The parts of a query about a model."""

    said_of = "an additive model"

    def __init__(self, model: PlainModel, dialect: Dialect) -> None:
        self._model, self._sql = model, dialect
        self._layers = [self._layers_of(k, term) for k, term in enumerate(model.terms)]

    def text(self, table: str) -> str:
        """Return the query about new rows in a table."""
        sql, model = self._sql, self._model
        names = (*self.score_names, "notes")
        *scores, notes = (sql.name(free_name(name, model.names)) for name in names)
        made = dict(zip([*scores, notes], [*self._scores(), self._notes()], strict=True))
        layers = [
            {name: code for each in self._layers for name, code in each[position].items()}
            for position in (_TEXT, _NUMBER, _PLACE)
        ]
        sources = f"{sql.name(table)} AS t CROSS JOIN (SELECT {sql.blanks()} AS blanks) AS b"
        # The sum before the table's columns: of two of one name databases take the first, or none.
        inner = sql.query(sources, layers, made)
        predictions = self._predictions(*(f"scored.{score}" for score in scores))
        columns = ",\n".join([*predictions, "scored.*"])
        refused = ", ".join(f'"{what}"' for what in UNKNOWN[FIRST_REFUSED:])
        head = _COMMENT.format(said_of=self.said_of, title=sql.title, notes=notes, refused=refused)
        remark = f"-- {sql.remark}\n" if sql.remark else ""
        return f"{head}{remark}SELECT {columns}\nFROM ({inner}) AS scored\n"

    @property
    def score_name(self) -> str:
        """What the column of the score is called."""
        return "sum" if self._model.labels is None else "log_odds"

    @property
    def score_names(self) -> list[str]:
        """What the columns of scores are called."""
        return [self.score_name]

    def _scores(self) -> list[str]:
        return [self._score()]

    def _predictions(self, *scores: str) -> list[str]:
        (score,) = scores
        sql, model = self._sql, self._model
        prediction = sql.name(free_name(_SAID, model.names))
        if model.labels is None:
            predicted = self._exponential(score) if model.log_link else self._clipped(score)
            return [f"{predicted} AS {prediction}"]
        negative, positive = map(sql.text, model.labels)
        probability = sql.name(free_name("probability", model.names))
        zero, one, far = map(sql.number, (0.0, 1.0, -700.0))
        # The argument of EXP is not positive, nor so small that a database ends with an error.
        odds = f"EXP(CASE WHEN ABS({score}) > 700 THEN {far} ELSE -ABS({score}) END)"
        return [
            f"CASE WHEN {score} > {zero} THEN {positive} WHEN {score} <= {zero} THEN {negative} "
            f"END AS {prediction}",
            f"CASE WHEN {score} >= {zero} THEN {one} / ({one} + {odds})\n"
            f" WHEN {score} < {zero} THEN {odds} / ({one} + {odds}) END AS {probability}",
        ]

    def _exponential(self, score: str) -> str:
        """Return the exponential of a score, the score clipped so that no database fails."""
        assert self._model.limits is not None
        least, most = map(self._sql.number, (-700.0, math.log(self._model.limits[1])))
        return (
            f"EXP(CASE WHEN {score} < {least} THEN {least} WHEN {score} > {most} THEN {most} "
            f"ELSE {score} END)"
        )

    def _clipped(self, score: str) -> str:
        if self._model.limits is None:
            return score
        lower, upper = map(self._sql.number, self._model.limits)
        # The smaller and the larger of two values have other names in each database.
        return (
            f"CASE WHEN {score} < {lower} THEN {lower} WHEN {score} > {upper} THEN {upper} "
            f"ELSE {score} END"
        )

    def _score(self) -> str:
        literal = self._sql.number
        parts = [self._at(k, term, literal) for k, term in enumerate(self._model.terms)]
        parts += map(self._pair, self._model.pairs)
        return _balanced([self._sql.number(self._model.intercept), *parts], "+")

    def _notes(self) -> str:
        noted = [self._note(k, term) for k, term in enumerate(self._model.terms)]
        return f"SUBSTR({_balanced(noted, '||')}, 3)" if noted else self._sql.text("")

    def _layers_of(self, k: int, term: NumericTerm | CategoricalTerm) -> list[dict[str, str]]:
        parts = (("x", self._text), ("n", self._number), ("c", self._place))
        return [{f"{sign}{k}": code} if (code := of(k, term)) else {} for sign, of in parts]

    def _text(self, k: int, term: NumericTerm | CategoricalTerm) -> str:
        text = self._sql.as_text(self._column(term))
        is_trimmed = isinstance(term, NumericTerm) or term.ignores_blanks
        return self._sql.exactly(_trimmed(text) if is_trimmed else text)

    def _number(self, k: int, term: NumericTerm | CategoricalTerm) -> str:
        sql, column = self._sql, self._column(term)
        x, kind = sql.refer(f"x{k}", _TEXT, _NUMBER), sql.kind(column)
        if isinstance(term, CategoricalTerm):
            if not (term.numbers or term.missing_numbers):
                return ""
            x = x if term.ignores_blanks else _trimmed(x)
            return f"CASE WHEN {sql.is_number(x)} THEN {sql.read(column, x, kind)} END"
        zero, one = sql.number(0.0), sql.number(1.0)
        return _case(
            [
                f"WHEN {kind} = {sql.text(sql.boolean)} THEN"
                f" CASE {x} WHEN 'true' THEN {one} ELSE {zero} END",
                f"WHEN {sql.is_number(x)} THEN {sql.read(column, x, kind)}",
            ]
        )

    def _place(self, k: int, term: NumericTerm | CategoricalTerm) -> str:
        sql = self._sql
        x, n = (sql.refer(f"{s}{k}", layer, _PLACE) for s, layer in (("x", _TEXT), ("n", _NUMBER)))
        kind = sql.kind(self._column(term))
        if isinstance(term, CategoricalTerm):
            return self._category(term, x, n, kind)
        absent = [f"{x} IS NULL", f"LOWER({x}) IN ('nan', '+nan', '-nan')"]
        if term.missing_texts:
            absent.append(f"{x} IN ({', '.join(map(sql.text, term.missing_texts))})")
        if term.missing_numbers:
            absent.append(f"{n} IN ({', '.join(map(sql.cut, term.missing_numbers))})")
        lower, upper = map(sql.cut, term.bounds)
        zero, one = sql.number(0.0), sql.number(1.0)
        infinite = ", ".join(map(sql.text, _infinities("", "+", "-")))
        return _case(
            [
                self._is_kind(kind, sql.bytes_kinds, "bytes"),
                f"WHEN {' OR '.join(absent)} THEN {_code('missing')}",
                self._is_kind(kind, sql.time_kinds, "a date or time"),
                f"WHEN LOWER({x}) IN ({infinite}) THEN {_code('infinite')}",
                # What is infinite has no difference to itself.
                f"WHEN COALESCE({n} - {n}, {one}) <> {zero} THEN CASE WHEN {sql.is_number(x)} "
                f"THEN {_code('infinite')} ELSE {_code('not a number')} END",
                f"WHEN {n} < {lower} THEN {_code('below its bounds')}",
                f"WHEN {n} > {upper} THEN {_code('above its bounds')}",
            ],
            "0",
        )

    def _category(self, term: CategoricalTerm, x: str, n: str, kind: str) -> str:
        sql, unknown = self._sql, _code("unknown category")
        false, true = (str(code) if code >= 0 else unknown for code in term.booleans)
        rest = [self._is_kind(kind, sql.time_kinds, "a date or time")]
        if term.missing_numbers:
            marks = ", ".join(map(sql.cut, term.missing_numbers))
            rest.append(f"WHEN {n} IN ({marks}) THEN {_code('missing')}")
        absent = [f"WHEN {sql.text(text)} THEN {_code('missing')}" for text in term.missing_texts]
        places = [f"WHEN {sql.text(text)} THEN {k}" for k, text in enumerate(term.categories)]
        otherwise = _case(rest, str(unknown))
        if term.ignores_blanks:
            of_text = _case([*places, *absent], otherwise, x)
        else:  # a mark is one with blanks around it, too
            of_text = _case(places, _case(absent, otherwise, _trimmed(x)), x)
        numbers = [
            f"WHEN {sql.cut(number)} THEN {k if k >= 0 else _code('missing')}"
            for number, k in term.numbers.items()
            if not isinf(number)
        ]
        infinite = [
            f"WHEN LOWER({x}) IN ({', '.join(map(sql.text, _infinities(sign)))}) THEN {k}"
            for number, k in term.numbers.items()
            for sign in (["-" if number < 0 else ""] if isinf(number) else [])
        ]
        is_nothing = f"WHEN LOWER({x}) IN ('nan', '-nan') THEN {_code('missing')}"
        of_number = _case([is_nothing, *infinite], _case(numbers, str(unknown), n))
        return _case(
            [
                self._is_kind(kind, sql.bytes_kinds, "bytes"),
                f"WHEN {x} IS NULL THEN {_code('missing')}",
                f"WHEN {kind} = {sql.text(sql.boolean)} THEN"
                f" CASE {x} WHEN 'true' THEN {true} ELSE {false} END",
                f"WHEN {kind} IN ({', '.join(map(sql.text, sql.numbers))}) THEN {of_number}",
            ],
            of_text,
        )

    def _is_kind(self, kind: str, kinds: Sequence[str], what: str) -> str:
        listed = ", ".join(map(self._sql.text, kinds))
        return f"WHEN {kind} IN ({listed}) THEN {_code(what)}" if kinds else ""

    def _at(
        self, k: int, term: NumericTerm | CategoricalTerm, literal: Callable[[float], str]
    ) -> str:
        """Return a term's value: NULL where the value of the column is refused."""
        sql = self._sql
        place = sql.refer(f"c{k}", _PLACE, _PLACE + 1)
        if isinstance(term, CategoricalTerm):
            cases = [f"WHEN {k} THEN {literal(value)}" for k, value in enumerate(term.values)]
            cases.append(f"WHEN {_code('missing')} THEN {literal(term.missing)}")
            cases.append(f"WHEN {_code('unknown category')} THEN {literal(term.other)}")
            return sql.bound(_case(cases, of=place), self._layers[k])
        number = sql.refer(f"n{k}", _NUMBER, _PLACE + 1)
        # Cuts that change nothing are left out.
        kept = [j for j in range(len(term.cuts)) if term.values[j] != term.values[j + 1]]
        values = [literal(term.values[j]) for j in (0, *(j + 1 for j in kept))]
        tree = self._tree(number, [term.cuts[j] for j in kept], values)
        cases = [
            f"WHEN {place} = {_code('missing')} THEN {literal(term.missing)}",
            f"WHEN {place} > {-FIRST_REFUSED} THEN {tree}",
        ]
        return sql.bound(_case(cases), self._layers[k])

    def _tree(self, number: str, cuts: Sequence[float], values: Sequence[str]) -> str:
        if not cuts:
            return values[0]
        k = len(cuts) // 2
        below = self._tree(number, cuts[:k], values[: k + 1])
        above = self._tree(number, cuts[k + 1 :], values[k + 1 :])
        return f"CASE WHEN {number} < {self._sql.cut(cuts[k])} THEN {below}\n ELSE {above} END"

    def _pair(self, pair: PairTerms) -> str:
        position = {term.name: k for k, term in enumerate(self._model.terms)}
        first, second = (
            self._at(position[side.name], side, lambda value: f"({value:.0f})")
            for side in (pair.first, pair.second)
        )
        cases = [f"WHEN {k} THEN {self._sql.number(v)}" for k, v in enumerate(pair.values)]
        return _case(cases, self._sql.number(0.0), f"({first}\n + {second})")

    def _note(self, k: int, term: NumericTerm | CategoricalTerm) -> str:
        place = self._sql.refer(f"c{k}", _PLACE, _PLACE + 1)
        words = ["missing"] if term.notes_missing else []
        words += _OF_NUMBERS if isinstance(term, NumericTerm) else ["unknown category"]
        words += ["a date or time", "bytes"]
        cases = [
            f"WHEN {_code(what)} THEN {self._sql.text(f'; {term.name}: {what}')}" for what in words
        ]
        return self._sql.bound(_case(cases, "''", place), self._layers[k])

    def _column(self, term: NumericTerm | CategoricalTerm) -> str:
        # With the alias: SQLite treats a quoted name of no column as a text.
        return f"t.{self._sql.name(term.name)}"


class ClassQuery(Query):
    """The parts of a query about a model of several classes.

    Parameters
    ----------
    models
        The sums of each class; they differ in values alone.
    labels
        The names of the classes.

    Attributes
    ----------
    model
        The first of them.
    made
        The names of the columns that are made of labels.
    """

    def __init__(
        self, models: Sequence[PlainModel], labels: Sequence[str], dialect: Dialect
    ) -> None:
        super().__init__(models[0], dialect)
        self.model, self._models, self._labels = models[0], models, labels
        self.made = [f"{what} of {label}" for what in (_LIKELY, "log_odds") for label in labels]

    @property
    def score_names(self) -> list[str]:
        """What the columns of scores are called."""
        return self.made[len(self._labels) :]

    def _scores(self) -> list[str]:
        return [Query(model, self._sql)._score() for model in self._models]

    def _predictions(self, *scores: str) -> list[str]:
        sql, names = self._sql, self._model.names
        one, far, near = map(sql.number, (1.0, 700.0, -700.0))
        cases = [
            f"WHEN {' AND '.join(f'{score} >= {other}' for other in scores if other != score)} "
            f"THEN {sql.text(label)}"
            for score, label in zip(scores, self._labels, strict=True)
        ]
        columns = [f"{_case(cases)} AS {sql.name(free_name(_SAID, names))}"]
        for score, name in zip(scores, self.made, strict=False):
            # No argument of EXP is so large or so small that a database ends with an error.
            gaps = [f"({other} - {score})" for other in scores if other != score]
            odds = [
                f"EXP(CASE WHEN {gap} > {far} THEN {far} WHEN {gap} < {near} THEN {near} "
                f"ELSE {gap} END)"
                for gap in gaps
            ]
            made = sql.name(free_name(name, names))
            likely = f"{one} / {_balanced([one, *odds], '+')}"
            # Scores that are NULL are not equal.
            columns.append(f"CASE WHEN {score} = {score} THEN {likely} END AS {made}")
        return columns


def check(model: PlainModel, table: str, dialect: Dialect, made: Sequence[str] = ()) -> None:
    """Raise `DpreproError` if the database cannot have the names, texts or numbers of a model.

    `made` are names of columns that are made of labels.
    """
    categories = chain.from_iterable(
        term.categories for term in model.terms if isinstance(term, CategoricalTerm)
    )
    absent = chain.from_iterable(term.missing_texts for term in model.terms)
    texts = [table, *model.names, *(model.labels or ()), *made, *categories, *absent]
    refuse_unwritable(texts, "SQL", _REFUSED, _WHY)
    if not table or (dialect.in_names and "`" in table):
        raise DpreproError(
            f"--table {table!r} is no name of a table of new rows: name it with --table NAME"
        )
    _refuse_large_codes(model)
    if not all(model.names):
        raise DpreproError(
            "a feature has an empty name, which no database reads as that of a column: name it in "
            "the data, and fit again; or export the model with --to python, which takes it"
        )
    found: dict[str, str] = {}
    for name in (*model.names, *made):
        if sign := next((sign for sign in name if sign in dialect.in_names), None):
            raise DpreproError(
                f"{dialect.title} has no column that is called {name!r}, as it holds {sign!r}: "
                "rename it in the data, and fit again; or export the model with --to python"
            )
        if (other := found.setdefault(dialect.same_name(name), name)) != name:
            raise DpreproError(
                f"the names of columns {other!r} and {name!r} are one to {dialect.title}, which "
                "ignores capitals or cuts long names: rename one in the data, and fit again; or "
                "export the model with --to python, which tells them apart"
            )


def _refuse_large_codes(model: PlainModel) -> None:
    """Refuse categories that are one number of double precision, in which SQL compares numbers."""
    for term in model.terms:
        if not isinstance(term, CategoricalTerm):
            continue
        found: dict[float, str] = {}
        for name in term.categories:
            number = number_of(name)
            if number is None or not _LARGEST_EXACT <= abs(number) < inf:
                continue
            if (other := found.setdefault(number, name)) != name:
                raise DpreproError(
                    f"the categories {other!r} and {name!r} of {term.name!r} are one number of "
                    "double precision, so that SQL could not tell them apart: write codes of fewer "
                    "than 16 digits to the data, and fit again"
                )


def _code(what: str) -> int:
    """Return the place of a value that is unknown."""
    return -UNKNOWN.index(what)


def _infinities(*signs: str) -> list[str]:
    return [f"{sign}{text}" for sign in signs for text in ("inf", "infinity")]


def _trimmed(text: str) -> str:
    return f"TRIM({text}, b.blanks)"


def _case(cases: Sequence[str], otherwise: str = "", of: str = "") -> str:
    cases = [case for case in cases if case]
    if not cases:
        return otherwise
    return "\n ".join([f"CASE {of}".rstrip(), *cases, f"ELSE {otherwise or 'NULL'} END"])


def _balanced(parts: Sequence[str], between: str) -> str:
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return f"({_balanced(parts[:middle], between)}\n{between} {_balanced(parts[middle:], between)})"
