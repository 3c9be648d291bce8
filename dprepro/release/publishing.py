"""What the publisher of a release says of it, beside the model file."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from dprepro import __version__
from dprepro.data.card import Card
from dprepro.errors import DpreproError
from dprepro.experiment.environment import git_state
from dprepro.methods.registry import Method
from dprepro.release.book import Entry, read_book
from dprepro.release.composing import Total
from dprepro.release.exact_facts import compared_facts
from dprepro.release.statement import Limit, Publisher, Together
from dprepro.release.stating import round_up


def publisher_of(card: Card, method: Method, **said: Any) -> Publisher:
    """Return what a statement says beside the model; `said` are its fields that are not here."""
    git = git_state() or {}
    limit = card.budget_limit
    return Publisher(
        dataset=card.name, title=card.title, licence=card.licence,
        domain_note=" ".join(card.domain_note.split()), method=method.name,
        method_version=method.version, reference=method.reference, dprepro=__version__,
        commit=git.get("commit"), is_modified=git.get("dirty"),
        accountant_version=metadata.version("dp-accounting"), compared=compared_facts(card),
        limit=None if limit is None else Limit(epsilon=limit.epsilon, delta=limit.delta), **said,
    )  # fmt: skip


def of_the_book(entry: Entry, total: Total) -> dict[str, object]:
    """Return the fields of `Publisher` that the budget book has.

    Parameters
    ----------
    entry
        The release, which was entered. Releases that were entered later do not count.
    total
        What it and all earlier ones spend together.

    Raises
    ------
    DpreproError
        If the book cannot be used, or does not have the release.
    """
    book = read_book()
    entered = [e for e in book.entries if e.name == entry.name and e.counts]
    if not entered:
        raise DpreproError("the budget book does not have this release any more")
    (entry,) = entered
    known = [e.name for e in book.of(entry.card, entry.rows, entry.like) if e.counts]
    return spent_with(known.index(entry.name), total, len(entry.other_people))


def spent_with(earlier: int, total: Total, other_people: int = 0) -> dict[str, object]:
    """Return the fields of `Publisher` for so many earlier releases, and what all spend.

    `other_people` is the number of releases of alike rows that are said to be of other people.
    """
    epsilon, delta = total.budget
    together = Together(
        epsilon=round_up(epsilon), delta=delta, unit=total.unit, relation=total.adjacency.value
    )
    return {"earlier_releases": earlier, "other_people": other_people, "together": together}
