"""The fit of a release: reserved in the budget book before, settled after, and then stated."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Any

from dprepro import __version__
from dprepro.additive.model import AdditiveModel
from dprepro.additive.record import ledger_to_json
from dprepro.data.card import Card
from dprepro.estimators.contract import ledger_of
from dprepro.experiment.environment import git_state
from dprepro.methods.entry import Method
from dprepro.privacy.ledger import Ledger, slack, watching_noise
from dprepro.release.book import Entry, Total, read_book, reserve, settle
from dprepro.release.likeness import Rows
from dprepro.release.rows import compared_facts
from dprepro.release.statement import Limit, Publisher, Together, round_up
from dprepro.runtime.errors import DpreproError

COUNTS = "its noise was drawn, so its budget counts as spent"


def fit_reserved(
    entry: Entry,
    planned: Ledger,
    fit: Callable[[], AdditiveModel],
    keep: Callable[[AdditiveModel], None],
    rows: Rows | None = None,
) -> tuple[AdditiveModel, Total]:
    """Return the model of `fit`, whose ledger is in the budget book before it draws noise.

    A model that spends what was planned is given to `keep`, which writes it to the disk, before
    the book is used again.

    Beside it is what all releases of its rows then have spent, this one as planned. A fit that
    fails before its first noise is cancelled in the book. Any other counts, also one that is
    interrupted or killed.

    Raises
    ------
    DpreproError
        If the budget does not allow it, or if the fit spends more than was planned.
    """
    total = reserve(entry, planned, rows)
    with watching_noise() as may_have_drawn:
        try:
            model = fit()
        except BaseException:
            # Who else draws, and when, nobody sees.
            if not (may_have_drawn() or (planned.code and planned.floating_point)):
                settle(entry.name, "cancelled")
            raise
    ledger = ledger_of(model)
    if ledger is None:
        raise DpreproError(f"the fit left no ledger, so nothing is written; {COUNTS}")
    spent, most = ledger.spent_epsilon(), planned.spent_epsilon()
    unplanned = ledger.code and set(ledger.floating_point) - set(planned.floating_point)
    as_planned = ledger.holds and spent <= most + slack(most) and not unplanned
    if as_planned:
        keep(model)
    settle(entry.name, "reserved", ledger=ledger_to_json(ledger))
    if not as_planned:
        raise DpreproError(
            f"the fit spends epsilon {spent:.6g}, and {most:.6g} was planned, or its ledger does "
            f"not hold, or lists noise that was not planned: nothing is written; {COUNTS}"
        )
    return model, total


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
