"""Plain sentences about a guarantee, for statements and questions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from dprepro.privacy.ledger import ROW, Ledger
from dprepro.privacy.sensitivity import ADD_REMOVE, REPLACE_ONE, ZERO_OUT, Adjacency

_NEIGHBOURS = {
    ADD_REMOVE: "one with and one without {rows}",
    ZERO_OUT: "one with {rows} and one with nothing in their place ({number} is public)",
    REPLACE_ONE: "which differ in {rows} ({number} is public)",
}
_MECHANISMS = {
    "gaussian": "normally distributed noise (Gaussian mechanism)",
    "laplace": "Laplace distributed noise (Laplace mechanism)",
    "exponential": "random choice (exponential mechanism)",
    "permute-and-flip": "random choice (permute-and-flip mechanism)",
    "cited": "as the cited source says",
}
_LARGEST_AS_NUMBER = 10.0
USUAL_DELTA = 1e-4
"""A delta above this is warned of where the number of rows is not known."""


def is_bounded(adjacency: Adjacency) -> bool:
    """Whether neighbours have the same number of rows, which is then public.

    NIST SP 800-226 calls this bounded differential privacy.
    """
    return adjacency is not ADD_REMOVE


def unit_in_words(unit: str, rows_per_unit: int) -> str:
    """Return whom the guarantee protects: "one row", or one unit with the rows that are used."""
    return "one row" if unit == ROW else f"one {unit}, of which up to {rows_per_unit} rows are used"


def rows_in_words(unit: str) -> str:
    """Return by what neighbours differ."""
    return f"a certain {ROW}" if unit == ROW else f"all rows of a certain {unit}"


def neighbours_in_words(adjacency: Adjacency, unit: str) -> str:
    """Return which two tables the guarantee compares."""
    number = "the number of rows" if unit == ROW else "the number of rows that are used"
    return _NEIGHBOURS[Adjacency(adjacency)].format(rows=rows_in_words(unit), number=number)


def mixed_in_words(earlier: Iterable[Adjacency], own: Adjacency) -> str:
    """Say why releases with several neighbouring relations cost more; empty if all have one."""
    others = sorted({relation.value for relation in earlier})
    if set(others) <= {own.value}:
        return ""
    return (
        f"earlier releases have {' and '.join(others)} neighbours and this one {own}, so all are "
        f"counted under {REPLACE_ONE}, which costs more"
    )


def public_in_words(ledger: Ledger, compared: Sequence[str]) -> list[str]:
    """Return all that a release takes as public, each thing once."""
    public = [*ledger.assumed_public, *compared]
    if not any("bounds" in text for text in public):
        public.append("names, bounds and categories of the card")
    return public


def spent_in_words(unit: str, relation: Adjacency, delta: float) -> list[str]:
    """Return what a large delta means, and the epsilons that a statement has beside the stated."""
    said = []
    if delta > USUAL_DELTA:
        said.append(
            f"The delta is large. A method may publish each row as it is with the probability "
            f"{delta:g}, and keep such a guarantee. Delta should be well below one over the number "
            "of rows."
        )
    if unit != ROW:
        said.append(
            f"The epsilon for each row is about one row of a {unit} by itself. It counts an "
            f"exchange: if a row goes, another of the same {unit} may train in its place. So it "
            "can be more than the mechanisms below say of one row that comes or goes."
        )
    if relation is not REPLACE_ONE:
        said.append(
            "The epsilon under replace-one is about two other tables, one of which has another "
            f"{unit} in the place of a certain one. That counts as one that goes and one that "
            "comes, so it is larger. It is not the stated guarantee: it is there to compare with "
            "texts that state replace-one."
        )
    return said


def mechanism_in_words(mechanism: str) -> str:
    """Return the kind of noise for readers who know no mechanism by name."""
    return _MECHANISMS[mechanism]


def number(epsilon: float | None) -> str:
    """Return an epsilon as text; None is an infinite one."""
    return "unbounded" if epsilon is None else f"{epsilon:.4g}"


def factor(epsilon: float) -> str:
    """Return e^epsilon as text, rounded up to two decimals; as a power where it is large."""
    if epsilon > _LARGEST_AS_NUMBER:
        return f"e^{epsilon:g}"
    return f"{math.ceil(math.exp(epsilon) * 100) / 100:,.2f}"


def releases_in_words(earlier: int, other_people: int = 0) -> str:
    """Return which release of its rows this is, by the budget book."""
    others = (
        "" if other_people == 0 else
        f"; it also has rows like these in {other_people} other dataset(s), not counted, since the "
        "publisher says that they are of other people"
    )  # fmt: skip
    if earlier == 0:
        return (
            f"the first release of these rows in the budget book of the publisher's machine{others}"
        )
    known = "1 earlier release" if earlier == 1 else f"{earlier} earlier releases"
    return f"the budget book of the publisher's machine has {known} of these rows{others}"
