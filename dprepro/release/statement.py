"""The statement of a release, in fields: what it guarantees, by which answers, and what not.

All but the publisher's words follows from the model file, and the same statement gives the same
bytes of JSON. The JSON schema of the fields is `statement.schema.json`, beside this file;
`dprepro.release.statement_pages` writes the fields for readers.
"""

from __future__ import annotations

import hashlib
import json
import math
from importlib import resources
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from dprepro.additive.describe import bands_in_words, intervals_in_words, link_in_words
from dprepro.additive.file import LoadedClassifier, LoadedRegressor
from dprepro.data.card_parts import Deployment
from dprepro.data.domain import NumericFeature
from dprepro.estimators.contract import ledger_of
from dprepro.privacy.ledger import ROW, Ledger
from dprepro.privacy.sensitivity import REPLACE_ONE
from dprepro.release.guarantee_words import (
    is_bounded,
    neighbours_in_words,
    public_in_words,
    releases_in_words,
    titled,
    unit_in_words,
)
from dprepro.release.measured import Measured, StatementPart, measured_of
from dprepro.runtime.errors import DpreproError

Relation = Literal["zero-out", "add/remove-one", "replace-one"]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

Loaded = LoadedClassifier | LoadedRegressor

_DIGITS = 6
ACCOUNTANT = "dp_accounting"

_ALWAYS = (
    "Other releases of the same rows: later ones, and those by other tools or on other machines, "
    "which the budget book does not have. Each adds to what is spent.",
    "What the model says of people in general. It can be used to guess the target of somebody who "
    "is not in the table.",
    "How bounds, categories and parameters were chosen. Nobody has checked it. If rows were looked "
    "at for it, no epsilon covers that.",
    "How long the fit took, what it left in memory, and who could read the rows on that machine.",
)
_CLIPS = "That the release exists. It says that the rows have no category that the card rules out."
_REFUSES = (
    "That the release exists. It says that the rows have no value that the card rules out: "
    "otherwise it would have been refused."
)

_PACKAGE = "dprepro.release"
_LATER_OF_PUBLISHER = ("unit_title", "rows", "earlier", "attack", "deployment")
"""Fields that older statements lack; where they say nothing, they are not in the file."""


def _may_lack(schema: dict[str, Any], keys: tuple[str, ...]) -> None:
    schema["required"] = [key for key in schema["required"] if key not in keys]


SCHEMA = "statement.schema.json"


class AuditRecord(StatementPart):
    """What one empirical audit of the method reached; not of this release.

    `lower_bound` is a bound on epsilon from below with the given `confidence`, None if infinite.
    `date` and `dprepro`, the version, are None where the record does not have them. So is
    `method_version`, which is then not in the file.
    """

    model_config = ConfigDict(json_schema_extra=lambda s: _may_lack(s, ("method_version",)))

    subject: str
    epsilon: float
    delta: float
    lower_bound: float | None
    confidence: float
    trials: int | None
    verdict: str
    date: str | None = None
    dprepro: str | None = None
    method_version: int | None = None


class AttackRecord(StatementPart):
    """What an attack showed on models that were fitted as the released one, to no private row.

    Of `shadow_models` fits to `rows` drawn rows, or to rows that the publisher says are public
    (`has_public_rows`, not in the file if they were drawn), with `canary_rows` equal ones of a
    canary or without them, `judged` were guessed at by what the others had taught: `auc` is the
    area under the ROC curve of these guesses, `true_positive_rate` that at `false_positive_rate`,
    and `epsilon_lower_bound` holds with `confidence`; None if infinite. `epsilon` and `delta` are
    what each fit states.
    """

    model_config = ConfigDict(json_schema_extra=lambda s: _may_lack(s, ("has_public_rows",)))

    epsilon: float
    delta: float
    shadow_models: int
    judged: int
    rows: int
    canary_rows: int
    auc: float
    false_positive_rate: float
    true_positive_rate: float
    epsilon_lower_bound: float | None
    confidence: float
    verdict: str
    has_public_rows: bool = False


class Together(StatementPart):
    """What several releases of the same rows spend, at `delta`; `epsilon` is None if infinite.

    `unit` is whose rows that protects, and `relation` says who are neighbours. With `is_parallel`
    the publisher says that nobody is in certain ones of them both: these are not added up. Where
    all are, and in older statements, it is left out.
    """

    model_config = ConfigDict(json_schema_extra=lambda s: _may_lack(s, ("is_parallel",)))

    epsilon: float | None
    delta: float
    unit: str
    relation: Relation
    is_parallel: bool = False


class EarlierRelease(StatementPart):
    """A release that the budget book had before, with the stated privacy parameters.

    `model_sha256` is that of its model file, which its own statement names; None if it was not
    finished, but may have drawn noise. `withdrawn` is the day on which the publisher took it back.
    """

    date: str
    method: str
    epsilon: float
    delta: float
    unit: str
    relation: Relation
    model_sha256: Sha256 | None
    withdrawn: str | None


class Limit(StatementPart):
    """What all releases of a dataset may spend together."""

    epsilon: float
    delta: float


class Publisher(StatementPart):
    """What the publisher says, beside the model file: nothing in that file proves it.

    Attributes
    ----------
    date
        The day of the release.
    dataset, title, licence
        Of the card.
    domain_note
        Why bounds, categories and labels can be known without the rows, in the card's words.
    unit_title
        What the card calls the unit of privacy, such as "patient"; not in the file if it does not.
    rows
        How many rows the files have, if the card states it; else None, and not in the file.
    method, method_version, reference
        Of the method.
    dprepro, commit, is_modified
        Version of the code; the commit where it ran from a checkout, and whether files differed
        from it; None where it did not.
    accountant_version
        Of dp_accounting.
    clips
        Whether values beyond their bounds are clipped; else they prevent a release.
    delta_by_rule
        Whether delta follows from the number of rows that the card states; see
        `dprepro.release.planning.default_delta`.
    compared
        In words, the exact facts about the rows that the card states: a release exists only if
        they are true.
    earlier_releases
        How many earlier releases of these rows the budget book of the publisher's machine has.
    earlier
        These releases, in order; not in the file if there are none, nor in older ones.
    other_people
        How many datasets in the book had rows like these, of which the publisher says that they
        are of other people: they are not counted.
    together
        What the earlier releases and this one spend.
    limit
        What the card allows all releases to spend together; None if it does not say.
    audits
        Of the method, of this version or of one that is not on record.
    attack
        What an attack showed; None, and not in the file, if none was made.
    deployment
        Who releases it, for what and where, from the card; None, and not in the file, if the card
        does not say.
    """

    model_config = ConfigDict(json_schema_extra=lambda s: _may_lack(s, _LATER_OF_PUBLISHER))

    date: str
    dataset: str
    title: str = ""
    licence: str = ""
    domain_note: str = ""
    method: str
    method_version: int
    reference: str
    dprepro: str
    commit: str | None = None
    is_modified: bool | None = None
    accountant_version: str
    clips: bool
    delta_by_rule: bool
    compared: list[str]
    earlier_releases: Annotated[int, Field(ge=0)]
    other_people: Annotated[int, Field(ge=0)] = 0
    together: Together
    limit: Limit | None
    audits: list[AuditRecord] = Field(default_factory=list)
    unit_title: str = ""
    rows: int | None = None
    earlier: list[EarlierRelease] = Field(default_factory=list)
    attack: AttackRecord | None = None
    deployment: Deployment | None = None


class ModelFile(StatementPart):
    """The file that the statement is about."""

    file: Literal["model.json"] = "model.json"
    sha256: Sha256


class PublicFeature(StatementPart):
    """What is taken as public of one feature: its bounds, or all its categories."""

    name: str
    kind: Literal["numeric", "categorical"]
    bounds: tuple[float, float] | None = None
    categories: list[str] | None = None
    may_be_missing: bool
    measured_in: str | None = None


class DataDomain(StatementPart):
    """What the data are about, as far as it is public; `labels` are what its classes are called.

    `link` is that of a model of counts, which adds up the logarithm of its prediction; else it is
    not in the file.
    """

    model_config = ConfigDict(json_schema_extra=lambda s: _may_lack(s, ("link",)))

    task: Literal["binary", "multiclass", "regression"]
    target: str | None
    labels: Annotated[list[str], Field(min_length=2)] | None
    target_bounds: tuple[float, float] | None
    link: Literal["log"] | None = None
    features: list[PublicFeature]


class Spent(StatementPart):
    """The epsilon that the releases add up to, at the stated delta; None if infinite.

    Of one unit and of one row under the stated relation, and of one unit under replace-one.
    """

    of_unit: float | None
    of_row: float | None
    under_replace_one: float | None


class Privacy(StatementPart):
    """The guarantee: privacy parameters, unit of privacy, and who are neighbours.

    With `is_authors_word` the method is the publisher's own: its ledger is the word of its author.
    Statements of other methods leave it out, as older ones do.
    """

    model_config = ConfigDict(json_schema_extra=lambda s: s["required"].remove("is_authors_word"))

    definition: Literal["pure differential privacy", "approximate differential privacy"]
    epsilon: float
    delta: float
    unit: str
    rows_per_unit: int
    relation: Relation
    bounded: Literal["bounded", "unbounded"]
    trust_model: Literal["central"] = "central"
    holds: bool
    is_authors_word: bool = False
    spent: Spent


class Mechanism(StatementPart):
    """One kind of noisy release.

    `sensitivity` is how far one row moves a release, in the norm `norm`; `scale` the standard
    deviation (gaussian) or b (laplace) in the same unit; `uses` how many such releases one row
    takes part in, each with probability `sampling`. All uses together keep (`epsilon`, `delta`).
    """

    mechanism: str
    releases: str
    sensitivity: float
    norm: str
    scale: float
    uses: int
    sampling: float
    epsilon: float
    delta: float


class NotCovered(StatementPart):
    """What the guarantee says nothing about.

    `reads`, `gaps` and `floating_point` are those of the ledger. `always` holds for every release.
    """

    reads: list[str]
    gaps: list[str]
    floating_point: list[str]
    always: list[str]


class Registry(StatementPart):
    """The fields of public registries of deployments, in words."""

    data_domain: str
    unprotected_quantities: str
    unit_of_privacy: str
    neighbours: str
    privacy_parameters: str
    trust_model: str
    accounting: str
    implementation: str
    security: str
    release_frequency: str


class Statement(StatementPart):
    """The whole statement.

    `bands` says how functions of counts are read, what the noise bands of functions are and are
    not, and, where that was released, how near targets are to predictions. `measured` is not in the
    file where nothing was.
    """

    model_config = ConfigDict(json_schema_extra=lambda s: _may_lack(s, ("measured",)))

    format: Literal["dprepro statement"] = "dprepro statement"
    version: Literal[1] = 1
    model: ModelFile
    publisher: Publisher
    data: DataDomain
    privacy: Privacy
    mechanisms: list[Mechanism]
    assumed_public: list[str]
    not_covered: NotCovered
    post_processing: list[str]
    bands: list[str]
    registry: Registry
    measured: Measured | None = None


def state(model: Loaded, content: bytes, publisher: Publisher) -> Statement:
    """Return the statement of a model.

    Parameters
    ----------
    model
        As `load_model` reads it from its file.
    content
        The bytes of that file.

    Raises
    ------
    DpreproError
        If the file has no ledger: then there is nothing to state.
    """
    ledger = ledger_of(model)
    if ledger is None:
        raise DpreproError("the model file has no ledger, so nothing says what it guarantees")
    data, privacy = _data(model), _privacy(ledger)
    return Statement(
        model=ModelFile(sha256=hashlib.sha256(content).hexdigest()),
        publisher=publisher,
        data=data,
        privacy=privacy,
        mechanisms=_mechanisms(ledger),
        assumed_public=list(ledger.assumed_public),
        not_covered=NotCovered(
            reads=list(ledger.unaccounted),
            gaps=list(ledger.gaps),
            floating_point=list(ledger.floating_point),
            always=[
                *([_own(ledger, publisher)] if ledger.code else []),
                *([_one_each(publisher)] if ledger.unit == ROW and publisher.unit_title else []),
                *_ALWAYS,
                _CLIPS if publisher.clips else _REFUSES,
            ],
        ),
        post_processing=list(ledger.post_processing),
        bands=[*link_in_words(model), *bands_in_words(model), *intervals_in_words(model)],
        registry=_registry(ledger, data, publisher),
        measured=measured_of(model),
    )


def _own(ledger: Ledger, publisher: Publisher) -> str:
    """Return what is known of the ledger of a method of the publisher's own."""
    return (
        f"Whether the ledger is right. The method {publisher.method} is the publisher's own, and "
        "its ledger is its author's word: what it releases, how far a row moves that, and that it "
        f"fixes no seed. Its source files have the SHA-256 {ledger.code}."
    )


def _one_each(publisher: Publisher) -> str:
    """Return what a card takes for granted that names owners of rows, and no column of them."""
    return (
        f"Whether each row belongs to another {publisher.unit_title}. The card says so, and "
        "nothing checks it: the guarantee is about one row, and is weaker for the owner of several."
    )


def _data(model: Loaded) -> DataDomain:
    return DataDomain(
        task=model.task,
        target=model.target_name_,
        labels=None if model.labels_ is None else list(model.labels_),
        target_bounds=model.range_ if isinstance(model, LoadedRegressor) else None,
        link="log" if model.has_log_link else None,
        features=[_feature(model, k) for k in range(len(model.bins_))],
    )


def _feature(model: Loaded, k: int) -> PublicFeature:
    feature = model.bins_[k].feature
    name = str(feature.name)
    is_numeric = isinstance(feature, NumericFeature)
    return PublicFeature(
        name=name,
        kind="numeric" if is_numeric else "categorical",
        bounds=(feature.lower, feature.upper) if isinstance(feature, NumericFeature) else None,
        categories=None if isinstance(feature, NumericFeature) else list(feature.categories),
        may_be_missing=feature.missing,
        measured_in=model.measured_in_.get(name),
    )


def _privacy(ledger: Ledger) -> Privacy:
    return Privacy(
        definition=(
            "approximate differential privacy" if ledger.delta else "pure differential privacy"
        ),
        epsilon=ledger.epsilon,
        delta=ledger.delta,
        unit=ledger.unit,
        rows_per_unit=ledger.rows_per_unit,
        relation=ledger.adjacency.value,
        bounded="bounded" if is_bounded(ledger.adjacency) else "unbounded",
        holds=ledger.holds,
        is_authors_word=bool(ledger.code),
        spent=Spent(
            of_unit=round_up(ledger.spent_epsilon()),
            of_row=round_up(ledger.spent_epsilon_of_row()),
            under_replace_one=round_up(ledger.spent_epsilon(REPLACE_ONE)),
        ),
    )


def _mechanisms(ledger: Ledger) -> list[Mechanism]:
    return [
        Mechanism(
            mechanism=entry.mechanism,
            releases=entry.releases,
            sensitivity=entry.sensitivity,
            norm=entry.norm,
            scale=entry.scale,
            uses=entry.uses,
            sampling=entry.sampling,
            epsilon=entry.budget.epsilon,
            delta=entry.budget.delta,
        )
        for entry in ledger.entries
    ]


def _registry(ledger: Ledger, data: DataDomain, publisher: Publisher) -> Registry:
    noise = "exact noise on whole numbers" if ledger.is_sampled_exactly else "floating-point noise"
    title = publisher.unit_title
    return Registry(
        data_domain=(
            f"{publisher.title or publisher.dataset}: {len(data.features)} features, "
            f"{_target_in_words(data)}"
        ),
        unprotected_quantities="; ".join(
            [
                *public_in_words(titled(ledger, title), publisher.compared),
                *ledger.unaccounted,
            ]
        ),
        unit_of_privacy=unit_in_words(ledger.unit, ledger.rows_per_unit, title),
        neighbours="two tables, "
        f"{neighbours_in_words(ledger.adjacency, ledger.unit, title)}: "
        f"{'bounded' if is_bounded(ledger.adjacency) else 'unbounded'} differential privacy",
        privacy_parameters=f"epsilon {ledger.epsilon:g}, delta {ledger.delta:g} for one "
        f"{title or ledger.unit}",
        trust_model="central: one curator reads the rows, and adds noise before anything leaves",
        accounting=f"{ACCOUNTANT} {publisher.accountant_version}: the privacy loss distributions "
        "of all releases, composed",
        implementation=f"dprepro {publisher.dprepro}, {publisher.method} (version "
        f"{publisher.method_version}{', its own code' if ledger.code else ''}), {noise}",
        security="noise from ChaCha20 with a key of the operating system, which was not kept"
        if ledger.is_sampled_exactly
        else "noise of a library, see what is not covered",
        release_frequency="once; "
        + releases_in_words(publisher.earlier_releases, publisher.other_people),
    )


def _target_in_words(data: DataDomain) -> str:
    if data.task == "multiclass":
        return f"{len(data.labels)} classes" if data.labels else "several classes"
    if data.link is not None:
        return "a count as the target"
    return "numeric target" if data.task == "regression" else "two classes"


def round_up(epsilon: float) -> float | None:
    """Return an epsilon as statements have it: rounded up, None for infinity, which JSON lacks."""
    return math.ceil(epsilon * 10**_DIGITS) / 10**_DIGITS if math.isfinite(epsilon) else None


def as_json(statement: Statement) -> str:
    """Return the statement as JSON; `schema` describes it."""
    values = statement.model_dump(mode="json")
    if not statement.privacy.is_authors_word:
        del values["privacy"]["is_authors_word"]
    if statement.measured is None:
        del values["measured"]
    if statement.data.link is None:
        del values["data"]["link"]
    for key in _LATER_OF_PUBLISHER:
        if not values["publisher"][key]:
            del values["publisher"][key]
    attack = values["publisher"].get("attack")
    if attack and not attack["has_public_rows"]:
        del attack["has_public_rows"]
    for audit in values["publisher"]["audits"]:
        if audit["method_version"] is None:
            del audit["method_version"]
    if not statement.publisher.together.is_parallel:
        del values["publisher"]["together"]["is_parallel"]
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def shipped_schema() -> dict[str, Any]:
    """Return the JSON schema of statements, as the package ships it."""
    found: dict[str, Any] = json.loads((resources.files(_PACKAGE) / SCHEMA).read_text("utf-8"))
    return found


def schema_of_fields() -> dict[str, Any]:
    """Return the JSON schema that follows from the fields of `Statement`."""
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return draft | Statement.model_json_schema(mode="serialization")
