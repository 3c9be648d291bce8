"""What an estimator cannot know and its ledger has to say: whose rows they are, how it was chosen.

An estimator knows rows. It is built with the budget of one row of a unit, and the ledger of its fit
is then stated for the unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dprepro.data.domain import Domain, TaskKind
from dprepro.experiment.config import ExperimentConfig
from dprepro.experiment.record import Task
from dprepro.methods.entry import Method, Setting
from dprepro.privacy.sensitivity import ADD_REMOVE
from dprepro.privacy.units import ROW
from dprepro.runtime.errors import DpreproError

if TYPE_CHECKING:
    from dprepro.privacy.ledger import Ledger

TUNED = "parameters: `dprepro tune` chose those of the config by results on the rows of `tuned_on`"
SPLIT = (
    "which rows of the file train: add/remove-one holds for the table of training rows alone, "
    "since with one row more in the file another split of all the others is drawn"
)
STRATA = (
    "which rows of the file train: stratified splits follow from all labels of the file, so the "
    "promise holds for the table of training rows alone"
)
NAMES = (
    "which units of the file train: that follows from the names and the number of all of them, so "
    "the promise holds for the table of training rows alone"
)
OWNERS = (
    "which unit owns a row: the guarantee is about all rows under one name, so a person under two "
    "names gets less"
)

_ROWS = "number of rows"
"""As methods list it among what they take as public."""


def setting_of(
    task: Task, method: Method, kind: TaskKind, domain: Domain, seed: int | None
) -> Setting:
    """Return what a task's method is built with: the budget is that of one row of a unit."""
    of_row = method.row_budget(task.budget, task.unit, task.rows_per_unit)
    return Setting(kind, *of_row, domain, seed)


def note_circumstances(ledger: Ledger | None, task: Task, all_rows: bool = False) -> None:
    """Add to the ledger of a fit, if there is one, whose rows they are and how they were chosen.

    The fit knows rows, and was calibrated for one of them; the guarantee is stated for a unit.
    Parameters that were tuned are a read that epsilon does not cover. That a split trains is no
    read of its training rows, for which every promise is made; but which rows these are follows
    from the number of rows in the file, and only add/remove-one protects that: hence an assumption.
    Stratified splits follow from the labels of other rows, and splits of units from the names of
    other units, which every relation protects.
    """
    if ledger is None:
        return
    if task.unit != ROW:
        ledger.state_per_unit(task.unit, task.rows_per_unit, task.budget)
        ledger.assumed_public.append(OWNERS)
        if ledger.adjacency != ADD_REMOVE:
            _note_used_rows(ledger)
    if task.tuned:
        ledger.unpaid.append(TUNED)
    if not all_rows:
        ledger.assumed_public += _behind_split(task, ledger.adjacency)


def _behind_split(task: Task, adjacency: str) -> list[str]:
    """Say what a neighbour of the file would change in which rows train."""
    if task.evaluation == "test-set":
        return []
    by_number = adjacency == ADD_REMOVE
    by_names = task.unit != ROW and not by_number
    by_labels = task.evaluation == "stratified"
    named = ((SPLIT, by_number), (NAMES, by_names), (STRATA, by_labels))
    return [text for text, counts in named if counts]


def _note_used_rows(ledger: Ledger) -> None:
    """Say which number of rows is public: a unit may have more rows in the file than are used."""
    others = [text for text in ledger.assumed_public if text != _ROWS]
    used = f"{_ROWS} that are used (at most {ledger.rows_per_unit} of each {ledger.unit})"
    ledger.assumed_public[:] = [*others, used]


def check_tuned_splits(config: ExperimentConfig) -> None:
    """Refuse to score a tuned config on the splits that its parameters were chosen by.

    The donors' own test rows chose nothing. Splits and folds of one seed come from the same
    permutations, a null seed draws those of seed 0, and every run begins with split 0: so the seed
    decides. What the dataset is called does not: a renamed card, or a file with a row more, holds
    the rows that chose, so any config with `tuned_on` counts until a person takes that out.

    Raises
    ------
    DpreproError
        As said, with what to do.
    """
    tuned = config.tuned_on
    if tuned is None or config.evaluation == "test-set":
        return
    if (tuned.seed or 0) == (config.seed or 0):
        null = " (as a null seed draws them, too)" if None in (tuned.seed, config.seed) else ""
        raise DpreproError(
            f"{config.where('tuned_on')}: the parameters were chosen by their scores on splits of "
            f"seed {tuned.seed or 0}{null}, so scores on these splits are too good. Give the "
            "config another `seed`, or use --allow-tuned-splits. Splits of another seed still hold "
            "some of the rows that chose; only the donors' test set does not. If this dataset "
            f"shares no row with {tuned.dataset}, remove `tuned_on`"
        )
