"""From a config to its tasks, in an order that never changes; and what is said of each beforehand.

A task's seed depends on what the task is, never on when or where it runs. An estimator knows rows:
it is built with the budget of one row of a unit, and the ledger of its fit is then stated for the
unit, with what the estimator cannot know.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np

from dprepro.data.card import Card, load_card
from dprepro.data.domain import Domain, TaskKind
from dprepro.experiment.config import ExperimentConfig, MethodEntry, MetricName
from dprepro.experiment.method_names import names_in_config
from dprepro.experiment.metrics import METRICS, recorded_name, scorer_names
from dprepro.experiment.record import Task
from dprepro.methods import registry
from dprepro.methods.entry import Guarantee, Method, Setting
from dprepro.privacy.budget import ROW, PrivacyBudget, unit_in_words
from dprepro.privacy.sensitivity import ADD_REMOVE
from dprepro.runtime.errors import DpreproError, nearest
from dprepro.runtime.extras import EXTRAS, how_to_install

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


def check_asked(methods: Sequence[str], epsilons: Sequence[float], tasks: Iterable[Task]) -> None:
    """Refuse epsilons of methods, by name or label, that all have no budget.

    `tasks` are those of the whole config.

    Raises DpreproError if a finite epsilon is asked, methods are named, and none of them has tasks
    at one.
    """
    asked = [epsilon for epsilon in epsilons if math.isfinite(epsilon)]
    tasks = list(tasks)
    named = [task for task in tasks if {task.label, task.method} & {*methods}]
    if not asked or not named or any(math.isfinite(task.epsilon) for task in named):
        return
    names = list(dict.fromkeys(task.method for task in named))
    private = list(dict.fromkeys(task.method for task in tasks if math.isfinite(task.epsilon)))
    instead = f", or name a method that has one: {', '.join(private)}" if private else ""
    raise DpreproError(
        f"{' and '.join(names)} {'has' if len(names) == 1 else 'have'} no privacy budget, so "
        f"--epsilon {asked[0]:g} cannot be kept. Leave --epsilon out to train without "
        f"privacy{instead}"
    )


def check_stated(config: ExperimentConfig, position: int, method: Method) -> None:
    """Refuse a config's entry that gives a method without a budget an epsilon or a delta.

    Raises DpreproError; the message names file, line and key.
    """
    if method.takes_epsilon:
        return
    entry = config.methods[position]
    stated = {"epsilons": entry.epsilons, "delta": entry.delta, "by_epsilon": entry.by_epsilon}
    for key, value in stated.items():
        if value:
            raise DpreproError(
                f"{config.where('methods', position, key)}: {method.name} has no privacy budget; "
                f"leave `{key}` out, or choose a private method (`dprepro methods` lists them)"
            )


@dataclass(frozen=True)
class PlannedTask:
    """A task, and why it is skipped (empty: it is run)."""

    task: Task
    skip: str = ""


def plan(
    config: ExperimentConfig,
    data_dir: Path | None = None,
    identify: bool = True,
    try_parameters: bool = True,
) -> list[PlannedTask]:
    """Return every task of a config: by split, then method, then epsilon.

    Within a split, methods that want the same encoding, and the same rows of each unit, follow each
    other, so that a worker encodes the rows once.

    Tasks on private rows name the state of the rows, so that no other state is treated as it. A
    file without a checksum is fetched for that. `identify` false does without: such tasks are to
    look at and to fit, and no record may be written of them. `try_parameters` false leaves to
    `check_parameters` what imports estimators.

    Raises DpreproError if a method, one of its parameters, the dataset, or the metric for its kind
    of task is unknown, if the method refuses a parameter's value, if ``domain: public`` is asked of
    a card without one, or delta is 0 for a method that needs one. The message names file, line and
    key. Also if private rows that are to be named cannot be had.
    """
    card = _card(config)
    _check_metric(config, card)
    if config.evaluation == "test-set" and card.test is None:
        raise DpreproError(
            f"{config.where('evaluation')}: the card of {card.name} names no test set. Add `test` "
            "to the card, or use random splits or folds"
        )
    chosen = [
        (entry, method)
        for position, entries in enumerate(config.methods)
        for method in [_method(config, position, card)]
        for entry in entries.expanded
    ]
    # Stable: the config's order within each. The same rows train for equal bounds.
    chosen.sort(key=lambda pair: (pair[1].encoding, str(pair[0].rows_per_unit)))
    if try_parameters:
        check_parameters(config, card)
    fingerprint = _fingerprint(config, card, data_dir, identify)
    return [
        PlannedTask(
            _task(config, card, entry, method, epsilon, split, fingerprint),
            _reason_to_skip(method, card),
        )
        for split in range(config.splits)
        for entry, method in chosen
        if split < (entry.splits or config.splits)
        for epsilon in method.effective_epsilons(entry.epsilons or config.epsilons)
    ]


def check_parameters(config: ExperimentConfig, card: Card | None = None) -> None:
    """Raise DpreproError if a method has no parameter of a name given, or refuses a value.

    `card` is that of the config, if it was read.
    """
    card = card or _card(config)
    for position, entry in enumerate(config.methods):
        method = registry.get(entry.method)
        _check_names(config, position, method)
        if not _reason_to_skip(method, card):
            _check_values(config, position, method, card)


def asked_metrics(config: ExperimentConfig) -> tuple[str, ...]:
    """Return the metrics that records of a config must have, by the names of records."""
    return tuple(dict.fromkeys(map(recorded_name, (config.metric, *config.metrics))))


def narrow(
    planned: Sequence[PlannedTask],
    splits: int | None = None,
    methods: Sequence[str] = (),
    epsilons: Sequence[float] = (),
) -> list[PlannedTask]:
    """Return the part of a plan that a run asks for.

    Raises DpreproError if a method or an epsilon does not occur in the plan, or if epsilons are
    asked of methods that all have no privacy budget.

    Parameters
    ----------
    splits
        Only the first so many splits.
    methods
        Only these methods, by name, label, or as tables show them; or lists of these between
        commas.
    epsilons
        Only these privacy levels; methods without a budget stay.
    """
    methods = names_in_config(methods, (n for p in planned for n in (p.task.label, p.task.method)))
    grid = sorted({p.task.epsilon for p in planned})
    for epsilon in epsilons:
        if epsilon not in grid:
            allowed = ", ".join(f"{value:g}" for value in grid)
            raise DpreproError(f"no epsilon {epsilon:g} in the config. Allowed: {allowed}")
    wanted = set(methods)
    check_asked(methods, epsilons, [p.task for p in planned])
    return [
        p
        for p in planned
        if (splits is None or p.task.split < splits)
        and (not wanted or p.task.label in wanted or p.task.method in wanted)
        and (not epsilons or p.task.epsilon in epsilons or math.isinf(p.task.epsilon))
    ]


def _card(config: ExperimentConfig) -> Card:
    try:
        return load_card(config.card)
    except DpreproError as error:
        raise DpreproError(f"{config.where('dataset')}: {error}") from error


def _fingerprint(
    config: ExperimentConfig, card: Card, data_dir: Path | None, identify: bool
) -> str:
    with_test = config.evaluation == "test-set"
    if identify and not card.is_known(data_dir, with_test):
        from dprepro.data.dataset import load  # late: with what reads rows

        load(config.card, data_dir, with_test=with_test)
    return card.fingerprint(data_dir, with_test, identify)


def _check_metric(config: ExperimentConfig, card: Card) -> None:
    allowed = [metric for metric in METRICS[card.task] if metric in get_args(MetricName)]
    if config.metric not in allowed:
        raise DpreproError(
            f"{config.where('metric')}: {config.metric!r} does not exist for {card.name}, a "
            f"{card.task} dataset. Allowed: {', '.join(allowed)}"
        )
    for position, name in enumerate(config.metrics):
        _check_more(config.where("metrics", position), name, card)


def _check_more(place: str, name: str, card: Card) -> None:
    """Refuse a metric of the user's choice that does not exist for the kind of task."""
    usual = METRICS[card.task]
    if recorded_name(name) in usual:
        return
    scorers = [scorer for scorer in scorer_names(card.task) if recorded_name(scorer) not in usual]
    if recorded_name(name) not in scorers:
        raise DpreproError(
            f"{place}: {name!r} is no metric of {card.name}, a {card.task} dataset"
            f"{nearest(name, [*usual, *scorers]) or '.'} Allowed: {', '.join(usual)}, which new "
            f"records have anyway, and scikit-learn's scorers: {', '.join(scorers)}"
        )


def _method(config: ExperimentConfig, position: int, card: Card) -> Method:
    """Return the method of an entry, after checking the entry against it and the card."""
    entry = config.methods[position]
    try:
        method = registry.get(entry.method)
    except DpreproError as error:
        raise DpreproError(f"{config.where('methods', position, 'method')}: {error}") from error
    check_stated(config, position, method)
    _check_units(config, position, method, card)
    if card.features is None and (entry.domain or config.domain) == "public":
        keys = ("methods", position, "domain") if entry.domain else ("domain",)
        raise DpreproError(
            f"{config.where(*keys)}: the card of {card.name} gives no public domain; add "
            "`features` to the card, or use `domain: observed` (not covered by epsilon)"
        )
    if method.guarantee is Guarantee.APPROXIMATE and _delta(config, entry) == 0:
        keys = ("delta",) if entry.delta is None else ("methods", position, "delta")
        raise DpreproError(
            f"{config.where(*keys)}: {method.name} promises {method.guarantee.value} and needs a "
            "delta above 0, given 0; 1e-6 is usual"
        )
    return method


def _named(entry: MethodEntry) -> list[tuple[tuple[str | int, ...], str]]:
    """Return every mention of a parameter: the keys that lead there, and its name."""
    return [
        *((("params", name), name) for name in entry.params),
        *((("grid", name), name) for name in entry.grid),
        *((("by_epsilon",), name) for params in entry.by_epsilon.values() for name in params),
    ]


def _check_values(config: ExperimentConfig, position: int, method: Method, card: Card) -> None:
    """Try the values that an entry gives its parameters, each combination once, without rows."""
    entry = config.methods[position]
    epsilons = method.effective_epsilons(entry.epsilons or config.epsilons)
    tried = {
        repr(params): (variant, epsilon, params)
        for variant in entry.expanded
        for epsilon in epsilons
        if (params := {**variant.params, **variant.by_epsilon.get(epsilon, {})})
    }
    for variant, epsilon, params in tried.values():
        budget = PrivacyBudget(epsilon, _used_delta(config, entry, method))
        of_row = method.row_budget(budget, *_unit(variant, card))
        try:
            method.check_values(card.task, of_row.epsilon, params)
        except (ValueError, TypeError) as error:
            named = [k for k, name in _named(entry) if re.search(rf"\b{name}\b", str(error))]
            keys = named[0] if named else ("params",) if entry.params else ()
            raise DpreproError(
                f"{config.where('methods', position, *keys)}: {method.name} refuses its "
                f"parameters: {error}"
            ) from error


def _check_units(config: ExperimentConfig, position: int, method: Method, card: Card) -> None:
    """Refuse rows of units that the card does not know, or that the method promises nothing of."""
    entry = config.methods[position]
    keys = ("rows_per_unit",) if config.rows_per_unit else ("methods", position, "rows_per_unit")
    if card.unit is None and set(entry.rows_per_unit or ()) - {ROW}:
        raise DpreproError(
            f"{config.where(*keys)}: the card of {card.name} names no unit of privacy; add `unit`, "
            "the column that says whose row it is, and `rows_per_unit` to the card"
        )
    for variant in [] if _reason_to_skip(method, card) else entry.expanded:
        unit, rows = _unit(variant, card)
        for epsilon in method.effective_epsilons(entry.epsilons or config.epsilons):
            budget = PrivacyBudget(epsilon, _used_delta(config, entry, method))
            try:
                method.row_budget(budget, unit, rows)
            except ValueError as error:
                only = (
                    ". To change it for this method only, list it under `methods` as "
                    f"`{{method: {method.name}, rows_per_unit: 1}}`"
                )
                raise DpreproError(
                    f"{config.where('methods', position)}: {method.name} at {budget} cannot "
                    f"protect a {unit_in_words(unit, rows)}: {error}"
                    f"{only if config.text else ''}"
                ) from error


def _unit(entry: MethodEntry, card: Card) -> tuple[str, int]:
    """Return whose guarantee an expanded entry states, and how many rows one owner may have."""
    bound = card.rows_per_unit if entry.rows_per_unit is None else entry.rows_per_unit[0]
    if card.unit is None or not isinstance(bound, int):
        return ROW, 1
    return card.unit, bound


def _check_names(config: ExperimentConfig, position: int, method: Method) -> None:
    entry, known = config.methods[position], method.defaults
    for keys, name in _named(entry):
        if name not in known:
            raise DpreproError(
                f"{config.where('methods', position, *keys)}: {method.name} has no "
                f"parameter {name!r}{nearest(name, list(known)) or '.'} "
                f"Allowed: {', '.join(known) or 'none'}"
            )
    for epsilon in entry.by_epsilon:
        grid = method.effective_epsilons(entry.epsilons or config.epsilons)
        if epsilon not in grid:
            raise DpreproError(
                f"{config.where('methods', position, 'by_epsilon')}: {method.name} is not run at "
                f"epsilon {epsilon:g}. It is at: {', '.join(f'{value:g}' for value in grid)}"
            )


def _delta(config: ExperimentConfig, entry: MethodEntry) -> float:
    return float(config.delta if entry.delta is None else entry.delta)


def _used_delta(config: ExperimentConfig, entry: MethodEntry, method: Method) -> float:
    """Return the delta of an entry, 0 where it plays no part: it must not tell tasks apart."""
    uses_delta = method.takes_epsilon and method.guarantee is not Guarantee.PURE
    return _delta(config, entry) if uses_delta else 0.0


def _task(
    config: ExperimentConfig,
    card: Card,
    entry: MethodEntry,
    method: Method,
    epsilon: float,
    split: int,
    fingerprint: str,
) -> Task:
    unit, rows_per_unit = _unit(entry, card)
    return Task(
        dataset=card.name,
        method=method.name,
        label=entry.label,
        params={**entry.params, **entry.by_epsilon.get(epsilon, {})},
        epsilon=float(epsilon),
        delta=_used_delta(config, entry, method),
        split=split,
        seed=config.seed,
        domain=entry.domain or config.domain,
        test_share=config.held_out,
        method_version=method.version,
        data_fingerprint=fingerprint,
        evaluation=config.evaluation,
        tuned=config.tuned_on is not None,
        unit=unit,
        rows_per_unit=rows_per_unit,
    )


def _reason_to_skip(method: Method, card: Card) -> str:
    if card.task not in method.tasks:
        return f"{method.name} is for {', '.join(sorted(method.tasks))}, not for {card.task}"
    # find_spec raises for a submodule of what is not installed, hence the top level.
    needed = (method.requires or "").partition(".")[0]
    if needed and importlib.util.find_spec(needed) is None:
        how = f": {how_to_install(needed)}" if needed in EXTRAS else ""
        return f"{method.name} needs the module {method.requires!r}, which is not installed{how}"
    return ""


def task_seed(task: Task, all_rows: bool = False) -> int | None:
    """Return the estimator's seed (uint32), or None when the config's seed is null.

    It derives from (config seed, dataset, split, method, epsilon). Parameters do not enter, so
    that variants of one method meet the same random numbers. A fit to `all_rows` has noise of its
    own, whatever the task's split.
    """
    if task.seed is None:
        return None
    parts = [f"dataset {task.dataset}", f"method {task.method}", f"epsilon {float(task.epsilon)!r}"]
    if all_rows:
        return int(_sequence(task.seed, 0, [*parts, "all rows"]).generate_state(1)[0])
    return int(_sequence(task.seed, task.split, parts).generate_state(1)[0])


def split_generator(seed: int | None, dataset: str, split: int) -> np.random.Generator:
    """Return the generator that draws a split, from (seed, dataset, split) alone.

    A null seed gives the splits of seed 0: which rows are held out protects nobody.
    """
    return np.random.default_rng(_sequence(seed or 0, split, [f"split of {dataset}"]))


def _sequence(seed: int, split: int, parts: list[str]) -> np.random.SeedSequence:
    return np.random.SeedSequence([seed, split, *(_hash(part) for part in parts)])


def _hash(text: str) -> int:
    # Python's own hash differs from one process to the next.
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


# --- what a task's estimator cannot know, and its ledger has to say -------------------------


def setting_of(
    task: Task, method: Method, kind: TaskKind, domain: Domain, seed: int | None
) -> Setting:
    """Return what a task's method is built with: the budget is that of one row of a unit."""
    of_row = method.row_budget(task.budget, task.unit, task.rows_per_unit)
    return Setting(kind, *of_row, domain, seed)


def note_disclosures(ledger: Ledger | None, task: Task, all_rows: bool = False) -> None:
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
        ledger.unaccounted.append(TUNED)
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

    Raises DpreproError as said, with what to do.
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
