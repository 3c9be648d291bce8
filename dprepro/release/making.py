"""The fit of a release: reserved in the budget book before, settled after."""

from __future__ import annotations

from collections.abc import Callable

from dprepro.additive.model import AdditiveModel
from dprepro.additive.record import ledger_to_json
from dprepro.errors import DpreproError
from dprepro.estimators.contract import ledger_of
from dprepro.privacy.ledger import Ledger, slack
from dprepro.privacy.watching import watching_noise
from dprepro.release.book import Entry, reserve, settle
from dprepro.release.composing import Total
from dprepro.release.likeness import Rows

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
