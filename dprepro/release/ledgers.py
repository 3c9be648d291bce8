"""The ledger of a planned fit, without touching the private rows."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from dprepro.additive.model import AdditiveModel
from dprepro.data.card import Card, load_card
from dprepro.data.domain import Domain, TaskKind, draw_features
from dprepro.data.encode import ENCODINGS
from dprepro.data.loading import missing_files
from dprepro.estimators.contract import ledger_of, plans_ledger
from dprepro.experiment.config import ExperimentConfig
from dprepro.experiment.ledger_disclosures import note_circumstances, setting_of
from dprepro.experiment.plan import narrow, plan, task_seed
from dprepro.experiment.record import Task
from dprepro.methods import registry
from dprepro.methods.entry import Method, Setting
from dprepro.methods.own import fit_method, note_repeats
from dprepro.privacy.guarantee_status import UNVERIFIED, Standing, standing_of
from dprepro.privacy.ledger import Ledger
from dprepro.release.progress import shown_steps
from dprepro.runtime.errors import DEBUG_VARIABLE, DpreproError
from dprepro.runtime.text import shell

# Enough for every bin rule and both labels; what a ledger says does not depend on the rows.
ROWS = 400


@dataclass(frozen=True)
class PlannedLedger:
    """The ledger that a task of a config would leave.

    None if its method keeps none that names a release, or if its fit failed: see `error`. The
    `model` is that of the fit to drawn rows, if there was one.
    """

    task: Task
    ledger: Ledger | None
    error: str = ""
    model: object = None

    @property
    def why_missing(self) -> str:
        """Why there is no ledger."""
        return self.error or UNVERIFIED


def planned_ledgers(
    config: ExperimentConfig,
    methods: tuple[str, ...] = (),
    epsilons: tuple[float, ...] = (),
    data_dir: Path | None = None,
    all_rows: bool = False,
) -> list[PlannedLedger]:
    """Return the ledger of every private method of a config at every epsilon.

    It is that of a fit to the training rows of a split, or to `all_rows`.

    A method that keeps none is unverified: its ledger is None. So is that of one whose fit fails,
    with the error: the rows it saw are made up, so its text quotes no private one.

    Each comes from a real fit, on rows drawn at random from the public domain of the card: noise
    and sensitivities depend on the features and the settings, not on the private rows. Where they
    depend on the number of rows, which the card states, the model plans its ledger for it
    (`PlansLedger`) without a fit.

    Raises
    ------
    DpreproError
        If the card gives no public domain to draw from (the message says whether its rows can be
        had, but none is read), if there is no ledger at all, or on what `plan` and `narrow` refuse.
    """
    card = load_card(config.card)
    domain = _domain(card, config.name, data_dir)
    planned = plan(config, data_dir, identify=False)
    chosen = narrow(planned, splits=1, methods=methods, epsilons=epsilons)
    tasks = [p.task for p in chosen if not p.skip]
    if chosen and not tasks:
        raise DpreproError("\n".join(dict.fromkeys(p.skip for p in chosen)))
    rows = round((card.expect.rows or ROWS) * (1 - (0 if all_rows else config.held_out)))
    found = list(_fit_all(tasks, domain, card.task, rows))
    for each in found:
        note_circumstances(each.ledger, each.task, all_rows)
    if tasks and not found:
        names = " and ".join(dict.fromkeys(task.method for task in tasks))
        raise DpreproError(
            f"{names}: no ledger, as nothing is spent without a privacy budget. Choose a private "
            "method, or leave --method out to see those of all"
        )
    if found and all(each.ledger is None for each in found):
        reasons = dict.fromkeys(f"{p.task.method}: {p.why_missing}" for p in found)
        raise DpreproError("\n".join(reasons))
    return found


def _domain(card: Card, config: str, data_dir: Path | None) -> Domain:
    """Return the card's domain."""
    target = card.public_target
    if not card.features or not target:
        raise _no_domain(card, config, data_dir)
    return Domain(tuple(f.named(name) for name, f in card.features.items()), target)


def _no_domain(card: Card, config: str, data_dir: Path | None) -> DpreproError:
    reason, first = "", ""
    if places := missing_files(card, data_dir):
        reason = (
            f", and these are not here: {card.title or card.name}. The card names no download, and "
            f"there is no file at {' or '.join(map(str, places))}"
        )
        first = "put the file there and "
    return DpreproError(
        f"the card of {card.name} gives no public domain, so its ledger needs its "
        f"rows{reason}; add `features` (and `labels` for more than two classes) to the card, "
        f"or {first}run `dprepro run {shell(config)}`: the journal holds the ledgers"
    )


def _fit_all(
    tasks: list[Task], domain: Domain, kind: TaskKind, rows: int
) -> Iterator[PlannedLedger]:
    X, y = draw_rows(domain, kind, ROWS, np.random.default_rng(0))
    observed = Domain.observe(X, y, kind)
    for task in shown_steps("ledger of", tasks, lambda task: task.budget.name(task.label)):
        method = registry.get(task.method)
        if not method.takes_epsilon:
            continue
        known = domain if task.domain == "public" else observed
        try:
            setting = setting_of(task, method, kind, known, task_seed(task))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                planned = _fit(task, method, setting, X, y, rows)
        except (Exception, SystemExit) as error:  # one method must not hide the others
            if os.environ.get(DEBUG_VARIABLE):
                traceback.print_exception(error)
            said = f"its fit on random rows fails: {type(error).__name__}: {error}"
            planned = PlannedLedger(task, None, said)
        yield planned


def _fit(
    task: Task, method: Method, setting: Setting, X: pd.DataFrame, y: np.ndarray, rows: int
) -> PlannedLedger:
    model = method.build(setting, **task.params)
    planned = model.planned_ledger(rows) if plans_ledger(model) else None
    if planned is not None and not (method.code or isinstance(model, AdditiveModel)):
        return PlannedLedger(task, _unless_empty(task, planned))
    encoded = ENCODINGS[method.encoding](setting.domain).transform(X)
    fitted = fit_method(method, setting, task.params, encoded, y)
    ledger = ledger_of(fitted)
    if method.code and ledger is not None:
        note_repeats(ledger, method, setting, task.params, encoded, y)
        if planned is not None:  # no plan can say what a fit shows
            if type(planned) is not Ledger:
                return PlannedLedger(task, None)
            planned.code = ledger.code
            planned.note_observed(ledger.unpaid)
            for text in ledger.floating_point:
                planned.note_floating_point(text)
    return PlannedLedger(task, _unless_empty(task, planned or ledger), model=fitted)


def _unless_empty(task: Task, ledger: Ledger | None) -> Ledger | None:
    return None if standing_of(task.epsilon, ledger) is Standing.UNVERIFIED else ledger


def draw_rows(
    domain: Domain, kind: TaskKind, rows: int, generator: np.random.Generator
) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw rows uniformly from a domain; every label and category that fits in occurs."""
    X = draw_features(domain, rows, generator)
    if kind == "regression":
        lower, upper = (float(bound) for bound in domain.target)
        return X, generator.permutation(np.linspace(lower, upper, rows))
    return X, generator.permutation(np.arange(rows) % len(domain.target))
