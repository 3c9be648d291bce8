"""What a release is going to be and to spend, known before a private row is read."""

from __future__ import annotations

import math
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
from dprepro.data.dataset import missing_files
from dprepro.data.domain import Domain, NumericFeature, TaskKind, sample_features
from dprepro.data.encode import ENCODINGS
from dprepro.estimators.contract import ledger_of, plans_ledger
from dprepro.experiment.config import ExperimentConfig, MethodEntry
from dprepro.experiment.plan import narrow, note_disclosures, plan, setting_of, task_seed
from dprepro.experiment.record import Task
from dprepro.methods import registry
from dprepro.methods.entry import Guarantee, Method, Setting
from dprepro.methods.own import fit_method, note_repeats
from dprepro.privacy.guarantee_status import (
    UNVERIFIED,
    AuthorsWord,
    GuaranteeStatus,
    Noise,
    status_of,
)
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.sampling.sampler import SAMPLING_DISTANCE
from dprepro.release.guarantee_words import USUAL_DELTA
from dprepro.release.progress import shown_steps
from dprepro.release.rows import no_domain
from dprepro.runtime.errors import DEBUG_VARIABLE, DpreproError
from dprepro.runtime.text import shell
from dprepro.runtime.yaml_files import YamlSource

NAME = "release"
"""What model files name as their config."""

LARGE_DELTA = 1e-2
"""A delta from here on is refused, unless the user allows it."""

_LEFT = 20
"""An epsilon so far below the samplers' limit gives them e^-20 of delta: less than is rounded."""

_METRICS = {"binary": "auc", "regression": "rmse", "multiclass": "accuracy"}

DEFAULT_METHOD = "dp-ebm-plus"
"""The method of a release whose user names none."""

# Enough for every bin rule and both labels; what a ledger says does not depend on the rows.
ROWS = 400


def default_delta(card: Card) -> float:
    """Return the delta of a release: the largest power of ten that is at most 1 / (10 n).

    n is the number of rows that the card states (`expect: {rows: n}`) and so makes public.
    A delta of 1 / n would allow to publish one whole row at random (Dwork, Roth 2014, section 2.3).

    Raises
    ------
    DpreproError
        If the card states none: the number of the rows themselves is private.
    """
    rows = card.expect.rows
    if rows is None:
        raise DpreproError(
            f"the card of {card.name} does not state how many rows there are (`expect: {{rows: "
            "N}`), and their number is private: choose --delta, such as 1e-6, well below one "
            "over the number of rows"
        )
    return float(f"1e{-math.ceil(math.log10(10 * rows))}")


def check_delta(card: Card, delta: float, allows_large: bool) -> str:
    """Return what to say of a delta that is larger than is usual; empty if it is not.

    A method that publishes each row as it is with the probability delta keeps (0, delta). So delta
    is held against one over the number of rows where the card states it, and else, as the number of
    the rows themselves is private, against fixed bounds.

    Raises
    ------
    DpreproError
        If it is `LARGE_DELTA` or more, or one over the number of rows that the card states, unless
        `allows_large`.
    """
    rows = card.expect.rows
    large = LARGE_DELTA if rows is None else min(LARGE_DELTA, 1 / rows)
    usual = USUAL_DELTA if rows is None else min(USUAL_DELTA, 1 / (10 * rows))
    if delta <= usual:
        return ""
    of_rows = "the number of rows" if rows is None else f"the {rows:,} rows of the card"
    meaning = (
        f"delta {delta:g} is large: a method may publish each row as it is with that probability, "
        f"and keep such a guarantee. It should be well below one over {of_rows}"
    )
    if delta >= large and not allows_large:
        raise DpreproError(
            f"--{meaning}: choose a smaller one, such as 1e-6, or accept it with "
            "--allow-large-delta. Nothing was spent"
        )
    return meaning


def check_method(card: Card, name: str, allows_floating_point: bool) -> Method:
    """Return the method of this name, if it can make a model for release of such data.

    Raises
    ------
    DpreproError
        If not; the message names the methods that can.
    """
    method = registry.get(name)
    if reason := _unfit(method, card.task, allows_floating_point):
        others = [
            other.name
            for other in registry.all_methods().values()
            if not _unfit(other, card.task, allows_floating_point)
        ]
        raise DpreproError(
            f"{name} {reason}. Methods for a release of {card.task} data: "
            f"{', '.join(others) or 'none'}"
        )
    return method


def _unfit(method: Method, task: TaskKind, allows_floating_point: bool) -> str:
    """Return why a method can make no release, in words; empty if it can."""
    if method.guarantee is Guarantee.NONE:
        return "has no privacy guarantee"
    if method.is_unverified:
        return "keeps no ledger, so nobody can say what it spends"
    if task not in method.tasks:
        return f"is for {', '.join(sorted(method.tasks))}, not for {task}"
    if method.noise is not Noise.EXACT and not allows_floating_point:
        return (
            "draws noise in floating point, whose low bits can disclose what it hides "
            "(--allow-floating-point accepts that)"
        )
    if not isinstance(_example(method, task), AdditiveModel):
        return "makes no additive model, and only these have a model file"
    return ""


def _example(method: Method, task: TaskKind) -> object:
    target = (0.0, 1.0) if task == "regression" else ("0", "1", "2")[: 2 + (task == "multiclass")]
    domain = Domain((NumericFeature("x", 0.0, 1.0),), target)
    return method.build(Setting(task, 1.0, 1e-6, domain, None))


def release_config(
    card: Card,
    place: str,
    method: str,
    epsilon: float,
    delta: float,
    given: ExperimentConfig | None = None,
) -> ExperimentConfig:
    """Return the experiment whose only task is the release: public domain, no seed.

    Parameters
    ----------
    place
        The name of a built-in card, or the path of the card.
    given
        A config that has the parameters of the method, named by its name or label there.

    Raises
    ------
    DpreproError
        If the card has no public domain, or if the config cannot be what a release follows.
    """
    if card.features is None:
        raise DpreproError(no_domain(card))
    entry = MethodEntry(method=method) if given is None else _entry(given, method)
    dataset = place if card.folder is None else str(Path(place).resolve())
    values = {
        "dataset": dataset,
        "metric": _METRICS[card.task],
        "methods": [entry.model_copy(update={"domain": None, "epsilons": None, "delta": None})],
        "epsilons": [epsilon],
        "delta": delta,
        "domain": "public",
        "splits": 1,
        "seed": None,
    }
    config = ExperimentConfig.model_validate(values)
    asked = f"{place} with --epsilon {epsilon:g} --delta {delta:g} --method {shell(method)}"
    asked += "" if given is None else f" --config {shell(given.name)}"
    config._source = _Asked(Path(f"{NAME}.yaml"), "", {}, asked=asked)
    return config


@dataclass(frozen=True)
class _Asked(YamlSource):
    """No file: what a user asked for on the command line, which errors name in a file's place."""

    asked: str = ""

    def where(self, *keys: str | int) -> str:
        """Return the command line, whatever the key."""
        return self.asked


def _entry(given: ExperimentConfig, method: str) -> MethodEntry:
    """Return the entry of a config that is called `method`, if a release can follow it."""
    if given.tuned_on is not None:
        raise DpreproError(
            f"{given.where('tuned_on')}: `dprepro tune` chose these parameters by results on rows, "
            "which epsilon does not cover. Choose parameters without looking at the rows"
        )
    found = [e for e in given.methods if e.label == method]
    found = found or [e for e in given.methods if e.method == method]
    if len(found) != 1:
        labels = ", ".join(e.label for e in given.methods)
        several = "several entries" if found else "no entry"
        raise DpreproError(
            f"{given.name} has {several} called {method!r}: name one label. It has: {labels}"
        )
    entry = found[0]
    if entry.grid:
        raise DpreproError(f"{given.name}: {method} has a `grid`: a release has one value of each")
    if entry.rows_per_unit is not None:
        raise DpreproError(
            f"{given.where('rows_per_unit')}: a release protects whom the card says: remove "
            "`rows_per_unit` here. `unit` and `rows_per_unit` of the card hold"
        )
    if (entry.domain or given.domain) == "observed":
        raise DpreproError(
            f"{given.where('domain')}: `domain: observed` reads bounds and categories from the "
            "rows, which epsilon does not cover: say `domain: public`"
        )
    return entry


def require_sound(ledger: Ledger | None, why_missing: str, allows_floating_point: bool) -> Ledger:
    """Return a ledger that holds.

    Raises
    ------
    DpreproError
        If there is none, or it does not hold, with its reasons; or if it lists floating point and
        that is not allowed.
    """
    if ledger is None:
        raise DpreproError(f"nothing is released without a ledger: {why_missing}")
    if not ledger.holds:
        reasons = [*ledger.unaccounted, *ledger.gaps] or [_overspent(ledger)]
        raise DpreproError(
            f"the stated guarantee, {ledger.budget}, does not hold: {'; '.join(reasons)}. Nothing "
            "was spent"
        )
    if ledger.floating_point and not allows_floating_point:
        raise DpreproError(
            f"noise in floating point: {'; '.join(ledger.floating_point)}. Its low bits can "
            "disclose what it hides. Choose a method with exact noise, or accept that with "
            "--allow-floating-point"
        )
    return ledger


def refuse_refuted(method: str, word: AuthorsWord | None, audits: Path) -> None:
    """Raise DpreproError if an audit in the folder `audits` refutes a method of one's own."""
    if word is AuthorsWord.REFUTED:
        raise DpreproError(
            f"an audit in {audits} refutes what {method} states, and it was an audit of this very "
            "code. Correct the method, or its ledger, and audit it again. Nothing was spent"
        )


def _overspent(ledger: Ledger) -> str:
    spends = f"it spends epsilon {ledger.spent_epsilon():.4g} of {ledger.epsilon:g}"
    if not ledger.is_sampled_exactly or not ledger.is_calibrated:
        return spends
    largest = math.log((ledger.delta or 1.0) / SAMPLING_DISTANCE) - _LEFT
    return (
        f"epsilon {ledger.epsilon:g} is above what the samplers allow, whose draws are exact up to "
        f"a tiny distance. At this delta the largest epsilon is {math.floor(largest)}"
    )


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
    domain = public_domain(card, config.name, data_dir)
    planned = plan(config, data_dir, identify=False)
    chosen = narrow(planned, splits=1, methods=methods, epsilons=epsilons)
    tasks = [p.task for p in chosen if not p.skip]
    if chosen and not tasks:
        raise DpreproError("\n".join(dict.fromkeys(p.skip for p in chosen)))
    rows = round((card.expect.rows or ROWS) * (1 - (0 if all_rows else config.held_out)))
    found = list(_fit_all(tasks, domain, card.task, rows))
    for each in found:
        note_disclosures(each.ledger, each.task, all_rows)
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


def public_domain(card: Card, config: str = "", data_dir: Path | None = None) -> Domain:
    """Return the domain that the card states. Raises DpreproError if it states none."""
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
            planned.note_observed(ledger.unaccounted)
            for text in ledger.floating_point:
                planned.note_floating_point(text)
    return PlannedLedger(task, _unless_empty(task, planned or ledger), model=fitted)


def _unless_empty(task: Task, ledger: Ledger | None) -> Ledger | None:
    return None if status_of(task.epsilon, ledger) is GuaranteeStatus.UNVERIFIED else ledger


def draw_rows(
    domain: Domain, kind: TaskKind, rows: int, generator: np.random.Generator
) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw rows uniformly from a domain; every label and category that fits in occurs."""
    X = sample_features(domain, rows, generator)
    if kind == "regression":
        lower, upper = (float(bound) for bound in domain.target)
        return X, generator.permutation(np.linspace(lower, upper, rows))
    return X, generator.permutation(np.arange(rows) % len(domain.target))
