"""Exact facts about the rows that a card states: a release exists only if they are true."""

from __future__ import annotations

from dprepro.data.card import Card
from dprepro.errors import DpreproError

_IN_WORDS = {
    "rows": "the number of rows in the file",
    "columns": "the number of features",
    "positives": "the number of positive rows",
    "positive_share": "bounds on the share of positive rows",
    "values_sha256": "a checksum of all values",
}
_OF_THE_TABLE = ("rows", "columns")
"""Facts that a card of private rows may state; the statement lists them as public."""


def compared_facts(card: Card) -> list[str]:
    """Return in words what the card states of its rows, and every load compares with them."""
    facts = card.expect.model_dump(exclude_none=True)
    stated = [words for name, words in _IN_WORDS.items() if name in facts]
    if any(part.sha256 is not None for _, part in card.parts):
        stated.append("a checksum of a file")
    return [f"{words}, which the card states and which was compared" for words in stated]


def refuse_exact_facts(card: Card) -> None:
    """Refuse a card by which the existence of a release would disclose more than its statement.

    Raises
    ------
    DpreproError
        If it has `distinct`, by which a row of one unit decides whether that of another counts; or
        if its rows are private and it states a checksum of them, or how many are positive.
    """
    if card.distinct is not None:
        raise DpreproError(
            f"the card of {card.name} has `distinct`: a row would decide whether a row of somebody "
            "else counts, which no epsilon covers. Drop repeated rows from the file by a rule that "
            "looks at one owner at a time, and take `distinct` out of the card"
        )
    if card.is_public:
        return
    facts = card.expect.model_dump(exclude_none=True)
    named = [
        f"`expect: {name}`" for name in _IN_WORDS if name in facts and name not in _OF_THE_TABLE
    ]
    if any(part.sha256 is not None for _, part in card.parts):
        named.append("`sha256`")
    if named:
        raise DpreproError(
            f"the card of {card.name} states {' and '.join(named)} of private rows. A release "
            "exists only if that is true, so it would disclose it, and epsilon does not cover it. "
            "Take it out of the card"
        )
