"""A release from a card to its folder: planned, reserved in the budget book, fitted and stated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from dprepro import __version__
from dprepro.additive.file import rehearsing
from dprepro.additive.model import AdditiveModel
from dprepro.additive.record import ledger_to_json
from dprepro.data.card import Card, load_card
from dprepro.data.dataset import Dataset
from dprepro.estimators.contract import ledger_of
from dprepro.experiment.config import ExperimentConfig, load_config
from dprepro.experiment.environment import git_state
from dprepro.experiment.record import Task
from dprepro.experiment.worker import DataRef, TableRef, open_table
from dprepro.methods.entry import Method
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.guarantee_status import AuditVerdict, AuthorsWord
from dprepro.privacy.ledger import Ledger, slack, tracking_noise
from dprepro.release import planning
from dprepro.release.budget_book import (
    Ahead,
    Entry,
    Total,
    look_ahead,
    new_name,
    read_book,
    reserve,
    settle,
)
from dprepro.release.fitting import fit_model, of_table
from dprepro.release.folder import (
    MODEL,
    Page,
    StagingFolder,
    refuse_existing,
    rehearse,
    with_ledger,
)
from dprepro.release.guarantee_words import (
    mixed_in_words,
    neighbours_in_words,
    public_in_words,
    titled,
    unit_in_words,
)
from dprepro.release.joint_budget import PARALLEL
from dprepro.release.measuring import Measuring, divided, none_of
from dprepro.release.planning import public_domain
from dprepro.release.population_overlap import Rows, holds_most_of
from dprepro.release.progress import shown_progress
from dprepro.release.provenance import save_fitted, take_card
from dprepro.release.rows import (
    checked_rows,
    compared_facts,
    files_of,
    identity_of,
    place_of,
    refuse_exact_facts,
)
from dprepro.release.statement import (
    AttackRecord,
    AuditRecord,
    EarlierRelease,
    Limit,
    Publisher,
    Statement,
    Together,
    round_up,
)
from dprepro.release.table_rows import checked_table, of_files
from dprepro.rows.folder import deletion_at_the_end, release_in
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.terminal import error_console
from dprepro.runtime.threads import granted

_NO_DEPLOYMENT = (
    "{card} does not say who releases the model, and what for, which --registry needs: add to it\n"
    'deployment: {{curators: ["..."], intended_use: "...", region: "..."}}\n'
    "Further keys are sector, description, actors, justification, sources and authors"
)
COUNTS = "its noise was drawn, so its budget counts as spent"


@dataclass(frozen=True)
class Request:
    """What is asked for: the options of `dprepro release`.

    Attributes
    ----------
    card, config
        Names or paths; `config` has the parameters of `method`.
    method
        None: `planning.DEFAULT_METHOD`.
    delta
        None: that of `planning.default_delta`.
    output
        The folder to write; None: that of the card's name.
    clips
        Whether values beyond their bounds are clipped, and not refused.
    other_people
        Whether the owner of the data says that nobody in the rows is in an earlier release with
        rows that look like these, or of the same card.
    audits
        The folder of results of audits.
    needs_registry
        Whether a card that does not say who releases the model, and what for, is refused.
    measure
        The share of epsilon that is spent on how well the model predicts held-out rows; None:
        nothing is measured.
    attack
        How many shadow models are attacked before anything is spent; None: none.
    attack_rows
        A file of public rows that they are fitted to; None: rows are drawn.
    table
        A table of rows in the place of the card's files, which is read in chunks.
    store, encrypts
        The folder that keeps its rows during the fit, that of `output` and ".store" unless given,
        and whether they are encrypted there.
    """

    card: str
    epsilon: float
    delta: float | None = None
    method: str | None = None
    config: str | None = None
    output: Path | None = None
    clips: bool = False
    allows_floating_point: bool = False
    allows_no_export: bool = False
    allows_large_delta: bool = False
    other_people: bool = False
    audits: Path = Path("results")
    data_dir: Path | None = None
    needs_registry: bool = False
    measure: float | None = None
    attack: int | None = None
    attack_rows: Path | None = None
    table: Path | None = None
    store: Path | None = None
    encrypts: bool = False


@dataclass(frozen=True, repr=False)
class Plan:
    """A release before anything is spent: what it is going to be, and what it would add to.

    Attributes
    ----------
    place
        The folder to write.
    largest
        The largest model that domain and settings allow, of no row, for the rehearsal.
    entry
        Of the budget book, without its ledger.
    beware
        What to say of a delta that is larger than is usual; empty if it is not.
    word
        What is known of the ledger of a method of the publisher's own; None of other methods.
    measuring
        How it is measured; None if it is not.
    dataset, table
        The rows: in memory, or in a table that is read in chunks; the other one is None.
    is_begun
        Whether it goes on with a release that was interrupted, whose budget counts already.
    """

    asked: Request
    card: Card
    place: Path
    experiment: ExperimentConfig
    task: Task
    method: Method
    ledger: Ledger
    largest: AdditiveModel
    dataset: Dataset | None
    table: TableRef | None
    rows: Rows
    entry: Entry
    is_begun: bool
    ahead: Ahead
    beware: str
    word: AuthorsWord | None
    measuring: Measuring | None

    def lines(self) -> dict[str, str]:
        """Return what is going to be spent, on whom, and what is then spent in all, by headings."""
        card, ledger, ahead, limit = self.card, self.ledger, self.ahead, self.card.budget_limit
        by_rule, title = self.asked.delta is None, card.unit_title or ""
        rule = " (largest power of ten up to 1 / (10 n), n of the card)" if by_rule else ""
        noise = "floating-point" if ledger.floating_point else "exact"
        total, how = ahead.total, "added up"
        if total.by_accountant:
            how = "composed by dp_accounting"
        how += PARALLEL if total.is_parallel else ""
        mixed = mixed_in_words((e.spent.adjacency for e in ahead.earlier), ledger.adjacency)
        lines = {
            "Release": f"all rows of {self._of_what()}, to {self.place}",
            "Goes on": self.is_begun
            and "with the release that was interrupted: its budget counts already, and is not "
            "charged again",
            "Method": f"{self.method.name}{self._params_in_words()}, {noise} noise, no seed",
            "Spends": f"epsilon {ledger.spent_epsilon():.4g} of the stated {ledger.epsilon:g}",
            "Measures": "" if self.measuring is None else self.measuring.in_words(),
            "Delta": f"{ledger.delta:g}{rule}",
            "Protects": unit_in_words(ledger.unit, ledger.rows_per_unit, title),
            "Compares": f"two tables, {neighbours_in_words(ledger.adjacency, ledger.unit, title)}",
            "Public": "; ".join(public_in_words(titled(ledger, title), compared_facts(card))),
            "Attack": self._attack_in_words(),
            "Before": f"{len(ahead.earlier)} release(s) of these rows in the budget book",
            "Alike": ahead.like
            and f"{ahead.like}. They are counted together; if all of these rows are other "
            "people's, say --other-people",
            "Others": ahead.other_people
            and f"said to be other people, so not counted with them: {ahead.other_people}",
            "In all": f"{total.budget}, {total.adjacency}, {how}{mixed and f'; {mixed}'}",
            "Limit": "none on the card"
            if limit is None
            else f"epsilon {limit.epsilon:g}, delta {limit.delta:g}",
            "Word": f"its ledger is its author's word: a method of your own, {self.word}"
            if self.word is not None
            else "",
            "Beware": self.beware,
        }
        return {name: text for name, text in lines.items() if text}

    def _of_what(self) -> str:
        title = self.card.title or self.card.name
        return title if self.table is None else f"{self.table.path}, by the card of {title}"

    def _params_in_words(self) -> str:
        """Return the parameters that a config gives, such as `loss: poisson`."""
        told = ", ".join(f"{key}: {value}" for key, value in self.task.params.items())
        return f" with {told}" if told else ""

    def _attack_in_words(self) -> str:
        if self.asked.attack is None:
            return ""
        fitted = f"on {self.asked.attack} models that are fitted like this one, before it,"
        if self.asked.attack_rows is None:
            return f"{fitted} to drawn rows"
        return (
            f"{fitted} to rows of {self.asked.attack_rows}: taken as public, as you say; epsilon "
            "covers nothing of them, nor that fewer than half of them are in the table"
        )


def plan_release(asked: Request, word_of: Callable[[str, str | None], AuthorsWord | None]) -> Plan:
    """Plan a release. The rows are read, and nothing is drawn, written or entered.

    Parameters
    ----------
    word_of
        Says of a method and the digest of its code what audits know of the author's word.

    Raises
    ------
    DpreproError
        If the release is not possible or not allowed; the message says what to change.
    """
    card = load_card(asked.card)
    refuse_exact_facts(card, own_table=asked.table is not None)
    if asked.needs_registry and card.deployment is None:
        raise DpreproError(_NO_DEPLOYMENT.format(card=asked.card))
    place = asked.output or Path(f"{card.name}-release")
    refuse_existing(place)
    table = _table_of(asked, place)
    if asked.attack_rows is not None and asked.attack is None:
        raise DpreproError("--attack-rows are for an attack: add --attack, such as --attack 200")
    if not 0 < asked.epsilon < float("inf"):
        raise DpreproError(f"--epsilon must be a finite number above 0, given {asked.epsilon:g}")
    if asked.delta is not None and not 0 <= asked.delta < 1:
        raise DpreproError(f"--delta must lie from 0 to below 1, given {asked.delta:g}")
    delta, beware = asked.delta, ""
    if delta is None:
        delta = planning.default_delta(card)
    else:
        beware = planning.check_delta(card, delta, asked.allows_large_delta)
    given = None if asked.config is None else load_config(asked.config)
    name = asked.method or planning.DEFAULT_METHOD
    follow = partial(planning.release_config, card, asked.card, name, given=given)
    experiment = follow(asked.epsilon, delta)
    floats = asked.allows_floating_point
    method = planning.check_method(card, experiment.methods[0].method, floats)
    measuring = None
    if asked.measure is not None:
        of_all = PrivacyBudget(asked.epsilon, delta)
        measuring = Measuring.of(card, method, of_all, asked.measure)
        experiment = follow(*measuring.of_fit)
    largest: list[AdditiveModel] = []
    with rehearsing(largest.append):
        (planned,) = planning.planned_ledgers(experiment, data_dir=asked.data_dir, all_rows=True)
    ledger = planning.require_sound(planned.ledger, planned.why_missing, floats)
    word = word_of(method.name, ledger.code)
    planning.refuse_refuted(method.name, word, asked.audits)
    task, dataset = planned.task, None
    with shown_progress(error_console(), "reading the rows"):
        if table is None:
            dataset = checked_rows(asked.card, card, asked.data_dir, asked.clips)
            tokens = identity_of(card, dataset, asked.data_dir)
            rows = Rows(dataset, asked.other_people)
        else:
            task = of_table(task)
            opened = open_table(task, DataRef.of(experiment), table)
            tokens, rows = checked_table(opened, card, asked.clips, asked.other_people)
    entry, is_begun = _begun(table, ledger, Entry(
        name=new_name(), date=_today(), dataset=card.name, card=place_of(card, asked.card),
        rows=tokens, method=method.name, ledger={}, limit=card.budget_limit,
    ))  # fmt: skip
    model = with_ledger(largest[0] if largest else planned.model, ledger)
    take_card(model, card)
    if measuring is not None and dataset is not None:
        measuring.complete(model, none_of(dataset))
        ledger = planning.require_sound(ledger_of(model), "", floats)
    return Plan(
        asked, card, place, experiment, task, method, ledger, model, dataset, table, rows, entry,
        is_begun, look_ahead(entry, ledger, rows), beware, word, measuring,
    )  # fmt: skip


def _table_of(asked: Request, place: Path) -> TableRef | None:
    """Return the table that is given, and where its rows are kept.

    Raises DpreproError on options that need the rows in memory, or a table that is not given.
    """
    if asked.table is None:
        if asked.store is not None or asked.encrypts:
            raise DpreproError("--store and --encrypt are about the rows of --table: name a table")
        return None
    for option, value in (("--measure", asked.measure), ("--attack-rows", asked.attack_rows)):
        if value is not None:
            raise DpreproError(
                f"{option} needs the rows in memory, and those of --table are read in chunks: "
                f"leave {option} out, or release from the files of the card, without --table. "
                "Nothing was spent"
            )
    store = asked.store or place.with_name(f"{place.name}.store")
    return TableRef(asked.table, store.expanduser(), asked.encrypts)


def _begun(table: TableRef | None, ledger: Ledger, entry: Entry) -> tuple[Entry, bool]:
    """Return the entry, with the name of the interrupted release whose rows lie in the store.

    Beside it is whether that one counts: its noise may have been drawn. The answers in the store
    are those that it has paid for, and none is drawn again.

    Raises
    ------
    DpreproError
        If another release lies there, or one that the book does not list as begun.
    """
    name = "" if table is None or table.encrypted else release_in(table.store or Path())
    if not name:
        return entry, False
    found = next((e for e in read_book().entries if e.name == name), None)
    same = (
        found is not None
        and found.status != "released"
        and (found.rows, found.method) == (entry.rows, entry.method)
        and _guarantee(found.spent) == _guarantee(ledger)
    )
    if found is None or not same:
        raise DpreproError(
            f"{table and table.store} is left of another release, or of one that the budget book "
            "does not list as begun: of other rows, another method, epsilon or delta. Give the "
            "same options to go on with it, or name another folder with --store. What it spent "
            "stays spent. Nothing else was spent and nothing was written"
        )
    return entry.model_copy(update={"name": name}), found.counts


def _guarantee(ledger: Ledger) -> tuple[object, ...]:
    return ledger.budget, ledger.unit, ledger.rows_per_unit, ledger.adjacency


def _today() -> str:
    return datetime.now(timezone.utc).date().isoformat()


def publish(plan: Plan, audits: list[AuditRecord], page: Page, jobs: int = 1) -> Statement:
    """Rehearse a planned release, reserve its budget, fit its model, and write its folder.

    Parameters
    ----------
    audits
        What is on record of the method.
    page
        Makes the page of the model.
    jobs
        Threads that share the rows; they change no result.

    Raises
    ------
    DpreproError
        If any of it fails; the message says what is written and whether the budget counts.
    KeyboardInterrupt
        With what is written, if it is interrupted.
    """
    asked, entry = plan.asked, plan.entry
    found = None if asked.attack is None else _attacked(plan, asked.attack, jobs)
    publisher = partial(
        publisher_of, plan.card, plan.method, date=entry.date, audits=audits, clips=asked.clips,
        delta_by_rule=asked.delta is None, attack=found,
    )  # fmt: skip
    first = publisher(**spent_with(plan.ahead.earlier, plan.ahead.total))
    folder = StagingFolder(plan.place, page)

    def save(model: AdditiveModel) -> None:
        save_fitted(
            model, plan.experiment.name, plan.task, folder.folder / MODEL, all_rows=True,
            own_table=plan.table is not None,
        )  # fmt: skip

    def keep(model: AdditiveModel) -> None:
        try:
            if not set(_files(plan)) <= set(entry.rows):
                raise DpreproError("the files of the rows changed during the release")
            folder.make_way()
            save(model)
        except DpreproError as error:
            raise DpreproError(f"{error}. Nothing is written; {COUNTS}") from error
        folder.is_kept = True

    def fit() -> AdditiveModel:
        fitted = partial(fit_model, plan.experiment, plan.task, asked.data_dir, all_rows=True)
        if plan.measuring is None or plan.dataset is None:
            return fitted(dataset=plan.dataset, table=plan.table)
        training, held_out = divided(plan.dataset, plan.task.unit, plan.task.rows_per_unit)
        model = fitted(dataset=training)
        plan.measuring.complete(model, held_out)
        return model

    try:
        # What a fit to a table has had lies in its store until the release is there as a whole.
        with folder, deletion_at_the_end("" if asked.encrypts else entry.name):
            rehearse(folder, lambda: save(plan.largest), first, exports=not asked.allows_no_export)
            what = f"fitting {entry.method} to all rows"
            with granted(jobs), shown_progress(error_console(), what):
                _, total = fit_reserved(
                    entry, plan.ledger, fit, keep, plan.rows, is_begun=plan.is_begun
                )
            statement = folder.state(publisher(**of_the_book(entry, total)))
            folder.publish()
            settle(
                entry.name,
                "released",
                folder=str(plan.place.resolve()),
                model_sha256=statement.model.sha256,
            )
            return statement
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_written(folder) + _goes_on(plan)) from None
    except DpreproError as error:
        if folder.is_published or folder.is_kept:
            raise DpreproError(f"{error}. {_written(folder)}") from error
        raise


def _files(plan: Plan) -> list[str]:
    """Return tokens of the files of the rows, as they are now."""
    if plan.table is None:
        return files_of(plan.card, plan.asked.data_dir)
    return of_files(open_table(plan.task, DataRef.of(plan.experiment), plan.table))


def _goes_on(plan: Plan) -> str:
    """Return whether the same command goes on where a release was interrupted, in words."""
    store = None if plan.table is None or plan.table.encrypted else plan.table.store
    if store is None or not release_in(store):
        return ""
    return f". The same command goes on with what is in {store}, which is private"


def _attacked(plan: Plan, models: int, jobs: int) -> AttackRecord:
    """Return what an attack on models like that of the release shows; no row of it is in them."""
    from dprepro.release.attack import (
        attack,
        read_public_rows,
        shadows_of,
    )  # the engine of audits, for few releases

    domain = public_domain(plan.card)
    public = None
    if plan.asked.attack_rows is not None:
        public = read_public_rows(plan.asked.attack_rows, plan.card)
        if plan.dataset is not None and holds_most_of(plan.dataset, *public):
            raise DpreproError(
                f"half or more of the rows of {plan.asked.attack_rows} are rows of the release, "
                "which are not public; or values are so few that rows of other people are equal. "
                "Give other rows, or leave --attack-rows out: rows are then drawn. Nothing was "
                "spent and nothing was written"
            )
    shadows = shadows_of(plan.task, plan.card.task, domain, np.random.default_rng(), public)
    with shown_progress(error_console(), f"attacking {models} shadow models"):
        found = attack(shadows, models, jobs)
    if AuditVerdict(found.verdict).is_refuted:
        raise DpreproError(
            f"an attack on {models} models like this one refutes the guarantee: epsilon is "
            f"{found.epsilon_lower_bound} at least, and {found.epsilon:g} is stated. Nothing was "
            "spent and nothing was written. Report it, with the method and its parameters"
        )
    return found


def _written(folder: StagingFolder) -> str:
    if folder.is_published:
        return f"{folder.place} is written; the book counts it, and may list it as not finished"
    if folder.is_kept:
        return (
            f"{folder.place} is not written, and its budget counts as spent; the model lies in "
            f"{folder.folder}"
        )
    return "nothing is written"


def fit_reserved(
    entry: Entry,
    planned: Ledger,
    fit: Callable[[], AdditiveModel],
    keep: Callable[[AdditiveModel], None],
    rows: Rows | None = None,
    is_begun: bool = False,
) -> tuple[AdditiveModel, Total]:
    """Return the model of `fit`, whose ledger is in the budget book before it draws noise.

    A model that spends what was planned is given to `keep`, which writes it to the disk, before
    the book is used again.

    Beside it is what all releases of its rows then have spent, this one as planned. A fit that
    fails before its first noise is cancelled in the book. Any other counts, also one that is
    interrupted or killed. One that `is_begun` counts whatever happens: it may have drawn noise
    before.

    Raises
    ------
    DpreproError
        If the budget does not allow it, or if the fit spends more than was planned.
    """
    total = reserve(entry, planned, rows)
    with tracking_noise() as may_have_drawn:
        try:
            model = fit()
        except BaseException:
            # Who else draws, and when, nobody sees.
            unseen = planned.code and planned.floating_point
            if not (is_begun or may_have_drawn() or unseen):
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
        unit_title=card.unit_title or "", rows=card.expect.rows, deployment=card.deployment,
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
    return spent_with(book.earlier_than(entry), total, len(entry.other_people))


def spent_with(earlier: Sequence[Entry], total: Total, other_people: int = 0) -> dict[str, object]:
    """Return the fields of `Publisher` for the earlier releases, and what all spend.

    `other_people` is the number of releases that are said to be of other people.
    """
    epsilon, delta = total.budget
    together = Together(
        epsilon=round_up(epsilon), delta=delta, unit=total.unit, relation=total.adjacency.value,
        is_parallel=total.is_parallel,
    )  # fmt: skip
    return {
        "earlier_releases": len(earlier), "earlier": [_named(each) for each in earlier],
        "other_people": other_people, "together": together,
    }  # fmt: skip


def _named(entry: Entry) -> EarlierRelease:
    ledger = entry.spent
    return EarlierRelease(
        date=entry.date, method=entry.method, epsilon=ledger.epsilon, delta=ledger.delta,
        unit=ledger.unit, relation=ledger.adjacency.value,
        model_sha256=entry.model_sha256 or None,
        withdrawn=entry.withdrawn.date if entry.withdrawn else None,
    )  # fmt: skip
