"""A guarantee in words of readers: whom it protects, which tables it compares, what it limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy

from dprepro.privacy.ledger import ROW, Ledger
from dprepro.privacy.sensitivity import ADD_REMOVE, REPLACE_ONE, ZERO_OUT, Adjacency

_NEIGHBOURS = {
    ADD_REMOVE: "one with and one without {rows}",
    ZERO_OUT: "one with {rows} and one with nothing in their place ({number} is public)",
    REPLACE_ONE: "which differ in {rows} ({number} is public)",
}
_ELSE = {
    ADD_REMOVE: "had not been in the table",
    ZERO_OUT: "had been left empty",
    REPLACE_ONE: "had held other values",
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


def unit_in_words(unit: str, rows_per_unit: int, title: str = "") -> str:
    """Return whom the guarantee protects: "one row", or one unit with the rows that are used.

    `title` is what the card calls the unit, such as "patient"; else its column names it.
    """
    if unit == ROW:
        return f"one {title}, to whom one row belongs" if title else "one row"
    rows = "one is used" if rows_per_unit == 1 else f"up to {rows_per_unit} are used"
    return f"one {title or unit}, of whose rows {rows}"


def titled(ledger: Ledger, title: str) -> Ledger:
    """Return a ledger to be shown: `title`, unless empty, is what its unit is called."""
    if not title or ledger.unit == ROW:
        return ledger
    shown = copy(ledger)
    shown.unit = title
    shown.assumed_public = public_of_title(ledger.assumed_public, ledger.unit, title)
    return shown


def public_of_title(texts: Iterable[str], unit: str, title: str) -> list[str]:
    """Return what is taken as public, with `title` for the column of the unit."""
    return [text.replace(f"of each {unit}", f"of each {title}") for text in texts]


def rows_in_words(unit: str, title: str = "") -> str:
    """Return by what neighbours differ."""
    if unit == ROW:
        return f"the row of one {title}" if title else f"a certain {ROW}"
    return f"all rows of one {title or unit}"


def neighbours_in_words(adjacency: Adjacency, unit: str, title: str = "") -> str:
    """Return which two tables the guarantee compares."""
    number = "the number of rows" if unit == ROW else "the number of rows that are used"
    return _NEIGHBOURS[Adjacency(adjacency)].format(rows=rows_in_words(unit, title), number=number)


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


def odds_in_words(
    epsilon: float, delta: float, relation: Adjacency, unit: str, title: str = ""
) -> list[str]:
    """Return what (epsilon, delta) limits: a sentence, an example of it, and a warning if needed.

    The definition is P(S | one table) <= e^epsilon P(S | the other) + delta for every set S of
    files, so also for the set that leads somebody to a conclusion. Nothing of the kind holds for
    the odds after a release unless delta is 0. The example takes S as the files by which a test
    of membership says yes: with a false positive rate a, its true positive rate is at most
    min(e^epsilon a + delta, 1 - (1 - a - delta) / e^epsilon).
    """
    spare = f", plus {delta:g} (delta, {_one_in(delta)})" if delta else ""
    rows = "one row" if unit == ROW and not title else f"the rows of one {title or unit}"
    said = [
        "Whatever anybody concludes from the release, and whatever else they know: they come to "
        f"this conclusion with a probability that is at most {factor(epsilon)} times (e^epsilon) "
        f"what it would be if {rows}, whichever, {_ELSE[relation]}{spare}. The same holds the "
        "other way round. The closer that factor is to 1, the less the release shows of anyone.",
        "For example: a test that takes somebody who is not in the table for a member of it with "
        "a probability of 5\u00a0% recognises a member with a probability of at most "
        f"{_percent(recognised(epsilon, delta, 0.05))}. A guess that knows nothing has 5\u00a0%, "
        "and a test that knows all has 100\u00a0%.",
    ]
    if delta > USUAL_DELTA:
        said.append(
            f"The delta is large. A method may publish each row as it is with the probability "
            f"{delta:g}, and keep such a guarantee. Delta should be well below one over the number "
            "of rows."
        )
    return said


def recognised(epsilon: float, delta: float, wrong: float) -> float:
    """Return the largest true positive rate of a test of membership.

    `wrong` is its false positive rate, from 0 to 1.
    """
    shrunk = math.exp(-epsilon)
    by_growth = wrong / shrunk + delta if shrunk else 1.0
    return max(0.0, min(by_growth, 1 - (1 - wrong - delta) * shrunk, 1.0))


def _percent(share: float) -> str:
    return f"{math.ceil(share * 10_000 - 1e-9) / 100:g}\u00a0%"


def _one_in(probability: float) -> str:
    return f"1 in {math.floor(1 / probability * (1 + 1e-9)):,}"


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
