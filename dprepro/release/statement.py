"""The statement of a release: what it guarantees, in fields, in words, and as text.

All but the publisher's words follows from the model file, and the same statement gives the same
bytes of Markdown, HTML and JSON. The JSON schema of the fields is
`statement.schema.json`, beside this file.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dprepro.additive.describe import bands_in_words, intervals_in_words
from dprepro.additive.file import LoadedClassifier, LoadedRegressor
from dprepro.data.card_parts import Deployment
from dprepro.data.domain import NumericFeature
from dprepro.estimators.contract import ledger_of
from dprepro.privacy.ledger import ROW, Ledger
from dprepro.privacy.sensitivity import ADD_REMOVE, REPLACE_ONE, ZERO_OUT, Adjacency
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.text import markdown

if TYPE_CHECKING:
    from jinja2 import Environment

Relation = Literal["zero-out", "add/remove-one", "replace-one"]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

_NEIGHBOURS = {
    ADD_REMOVE: "one with and one without {rows}",
    ZERO_OUT: "one with {rows} and one with nothing in their place ({number} is public)",
    REPLACE_ONE: "which differ in {rows} ({number} is public)",
}
_MECHANISMS = {
    "gaussian": "normally distributed noise (Gaussian mechanism)",
    "laplace": "Laplace distributed noise (Laplace mechanism)",
    "exponential": "random choice (exponential mechanism)",
    "permute-and-flip": "random choice (permute-and-flip mechanism)",
    "cited": "as the cited source says",
}
_LARGEST_AS_NUMBER = 10.0
USUAL_DELTA = 1e-4
"""A delta above this is warned of where the number of rows is not known."""

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
SCHEMA = "statement.schema.json"


class _Part(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        json_schema_serialization_defaults_required=True,
    )


class AuditRecord(_Part):
    """What one empirical audit of the method reached; not of this release.

    `lower_bound` is a bound on epsilon from below with the given `confidence`, None if infinite.
    `date` and `dprepro`, the version, are None where the record does not have them.
    """

    subject: str
    epsilon: float
    delta: float
    lower_bound: float | None
    confidence: float
    trials: int | None
    verdict: str
    date: str | None = None
    dprepro: str | None = None


class Together(_Part):
    """What several releases of the same rows spend, at `delta`; `epsilon` is None if infinite.

    `unit` is whose rows that protects, and `relation` says who are neighbours.
    """

    epsilon: float | None
    delta: float
    unit: str
    relation: Relation


class Limit(_Part):
    """What all releases of a dataset may spend together."""

    epsilon: float
    delta: float


class Publisher(_Part):
    """What the publisher says, beside the model file: nothing in that file proves it.

    Attributes
    ----------
    date
        The day of the release.
    dataset, title, licence
        Of the card.
    domain_note
        Why bounds, categories and labels can be known without the rows, in the card's words.
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
    other_people
        How many datasets in the book had rows like these, of which the publisher says that they
        are of other people: they are not counted.
    together
        What the earlier releases and this one spend.
    limit
        What the card allows all releases to spend together; None if it does not say.
    audits
        Of the method, from the results that come with the code.
    deployment
        Who releases it, for what and where, from the card; None, and not in the file, if the card
        does not say.
    """

    model_config = ConfigDict(json_schema_extra=lambda s: s["required"].remove("deployment"))

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
    deployment: Deployment | None = None


class ModelFile(_Part):
    """The file that the statement is about."""

    file: Literal["model.json"] = "model.json"
    sha256: Sha256


class PublicFeature(_Part):
    """What is taken as public of one feature: its bounds, or all its categories."""

    name: str
    kind: Literal["numeric", "categorical"]
    bounds: tuple[float, float] | None = None
    categories: list[str] | None = None
    may_be_missing: bool
    measured_in: str | None = None


class DataDomain(_Part):
    """What the data are about, as far as it is public."""

    task: Literal["binary", "regression"]
    target: str | None
    labels: tuple[str, str] | None
    target_bounds: tuple[float, float] | None
    features: list[PublicFeature]


class Spent(_Part):
    """The epsilon that the releases add up to, at the stated delta; None if infinite.

    Of one unit and of one row under the stated relation, and of one unit under replace-one.
    """

    of_unit: float | None
    of_row: float | None
    under_replace_one: float | None


class Privacy(_Part):
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


class Mechanism(_Part):
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


class NotCovered(_Part):
    """What the guarantee says nothing about.

    `reads`, `gaps` and `floating_point` are those of the ledger. `always` holds for every release.
    """

    reads: list[str]
    gaps: list[str]
    floating_point: list[str]
    always: list[str]


class Registry(_Part):
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


class Statement(_Part):
    """The whole statement.

    `bands` says what the noise bands of functions are and are not, and, where that was released,
    how near targets are to predictions.
    """

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


def is_bounded(adjacency: Adjacency) -> bool:
    """Whether neighbours have the same number of rows, which is then public.

    NIST SP 800-226 calls this bounded differential privacy.
    """
    return adjacency is not ADD_REMOVE


def unit_in_words(unit: str, rows_per_unit: int) -> str:
    """Return whom the guarantee protects: "one row", or one unit with the rows that are used."""
    return "one row" if unit == ROW else f"one {unit}, of which up to {rows_per_unit} rows are used"


def rows_in_words(unit: str) -> str:
    """Return by what neighbours differ."""
    return f"a certain {ROW}" if unit == ROW else f"all rows of a certain {unit}"


def neighbours_in_words(adjacency: Adjacency, unit: str) -> str:
    """Return which two tables the guarantee compares."""
    number = "the number of rows" if unit == ROW else "the number of rows that are used"
    return _NEIGHBOURS[Adjacency(adjacency)].format(rows=rows_in_words(unit), number=number)


def mixed_in_words(earlier: Iterable[Adjacency], own: Adjacency) -> str:
    """Say why releases with several neighbouring relations cost more; empty if all have one."""
    others = sorted({relation.value for relation in earlier})
    if set(others) <= {own.value}:
        return ""
    return (
        f"earlier releases have {' and '.join(others)} neighbours and this one {own}, so all are "
        f"counted under {REPLACE_ONE}, which costs more"
    )


def public_in_words(ledger: Ledger, compared: Sequence[str]) -> list[str]:
    """Return all that a release takes as public, each thing once."""
    public = [*ledger.assumed_public, *compared]
    if not any("bounds" in text for text in public):
        public.append("names, bounds and categories of the card")
    return public


def spent_in_words(unit: str, relation: Adjacency, delta: float) -> list[str]:
    """Return what a large delta means, and the epsilons that a statement has beside the stated."""
    said = []
    if delta > USUAL_DELTA:
        said.append(
            f"The delta is large. A method may publish each row as it is with the probability "
            f"{delta:g}, and keep such a guarantee. Delta should be well below one over the number "
            "of rows."
        )
    if unit != ROW:
        said.append(
            f"The epsilon for each row is about one row of a {unit} by itself. It counts an "
            f"exchange: if a row goes, another of the same {unit} may train in its place. So it "
            "can be more than the mechanisms below say of one row that comes or goes."
        )
    if relation is not REPLACE_ONE:
        said.append(
            "The epsilon under replace-one is about two other tables, one of which has another "
            f"{unit} in the place of a certain one. That counts as one that goes and one that "
            "comes, so it is larger. It is not the stated guarantee: it is there to compare with "
            "texts that state replace-one."
        )
    return said


def mechanism_in_words(mechanism: str) -> str:
    """Return the kind of noise for readers who know no mechanism by name."""
    return _MECHANISMS[mechanism]


def number(epsilon: float | None) -> str:
    """Return an epsilon as text; None is an infinite one."""
    return "unbounded" if epsilon is None else f"{epsilon:.4g}"


def factor(epsilon: float) -> str:
    """Return e^epsilon as text, rounded up to two decimals; as a power where it is large."""
    if epsilon > _LARGEST_AS_NUMBER:
        return f"e^{epsilon:g}"
    return f"{math.ceil(math.exp(epsilon) * 100) / 100:,.2f}"


def releases_in_words(earlier: int, other_people: int = 0) -> str:
    """Return which release of its rows this is, by the budget book."""
    others = (
        "" if other_people == 0 else
        f"; it also has rows like these in {other_people} other dataset(s), not counted, since the "
        "publisher says that they are of other people"
    )  # fmt: skip
    if earlier == 0:
        return (
            f"the first release of these rows in the budget book of the publisher's machine{others}"
        )
    known = "1 earlier release" if earlier == 1 else f"{earlier} earlier releases"
    return f"the budget book of the publisher's machine has {known} of these rows{others}"


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
                *_ALWAYS,
                _CLIPS if publisher.clips else _REFUSES,
            ],
        ),
        post_processing=list(ledger.post_processing),
        bands=[*bands_in_words(model), *intervals_in_words(model)],
        registry=_registry(ledger, data, publisher),
    )


def _own(ledger: Ledger, publisher: Publisher) -> str:
    """Return what is known of the ledger of a method of the publisher's own."""
    return (
        f"Whether the ledger is right. The method {publisher.method} is the publisher's own, and "
        "its ledger is its author's word: what it releases, how far a row moves that, and that it "
        f"fixes no seed. Its source files have the SHA-256 {ledger.code}."
    )


def _data(model: Loaded) -> DataDomain:
    is_regression = isinstance(model, LoadedRegressor)
    return DataDomain(
        task="regression" if is_regression else "binary",
        target=model.target_name_,
        labels=model.labels_,
        target_bounds=model.range_ if isinstance(model, LoadedRegressor) else None,
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
    rows = "a row" if ledger.unit == ROW else f"a {ledger.unit}"
    return Registry(
        data_domain=(
            f"{publisher.title or publisher.dataset}: {len(data.features)} features, "
            f"{'numeric target' if data.task == 'regression' else 'two classes'}"
        ),
        unprotected_quantities="; ".join(
            [
                *public_in_words(ledger, publisher.compared),
                *ledger.unaccounted,
            ]
        ),
        unit_of_privacy=unit_in_words(ledger.unit, ledger.rows_per_unit),
        neighbours="two tables, "
        f"{neighbours_in_words(ledger.adjacency, ledger.unit)}: "
        f"{'bounded' if is_bounded(ledger.adjacency) else 'unbounded'} differential privacy",
        privacy_parameters=f"epsilon {ledger.epsilon:g}, delta {ledger.delta:g} for {rows}",
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


def round_up(epsilon: float) -> float | None:
    """Return an epsilon as statements have it: rounded up, None for infinity, which JSON lacks."""
    return math.ceil(epsilon * 10**_DIGITS) / 10**_DIGITS if math.isfinite(epsilon) else None


def as_json(statement: Statement) -> str:
    """Return the statement as JSON; `schema` describes it."""
    values = statement.model_dump(mode="json")
    if not statement.privacy.is_authors_word:
        del values["privacy"]["is_authors_word"]
    if statement.publisher.deployment is None:
        del values["publisher"]["deployment"]
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def as_markdown(statement: Statement) -> str:
    """Return the statement as a page of Markdown. Names and notes of a card are escaped."""
    return environment(False).get_template("statement.md").render(_context(statement))


def as_html(statement: Statement) -> str:
    """Return the statement as one HTML file, with no script and no address of anything outside."""
    return environment(True).get_template("statement.html").render(_context(statement))


def shipped_schema() -> dict[str, Any]:
    """Return the JSON schema of statements, as the package ships it."""
    found: dict[str, Any] = json.loads((resources.files(_PACKAGE) / SCHEMA).read_text("utf-8"))
    return found


def schema_of_fields() -> dict[str, Any]:
    """Return the JSON schema that follows from the fields of `Statement`."""
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return draft | Statement.model_json_schema(mode="serialization")


def environment(is_html: bool) -> Environment:
    """Return what renders the templates of a release; in Markdown, texts of a card are escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # not all that states writes

    environment = Environment(
        loader=PackageLoader(_PACKAGE, "template"),
        autoescape=is_html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=None if is_html else _shown,
    )
    environment.filters |= {
        "number": number,
        "factor": factor,
        "domain": _domain_in_words,
        "g": _short,
        "mechanism": mechanism_in_words,
        "sentence": _sentence,
    }
    return environment


def _context(statement: Statement) -> dict[str, Any]:
    privacy = statement.privacy
    return {
        "s": statement,
        "p": privacy,
        "unit": unit_in_words(privacy.unit, privacy.rows_per_unit),
        "certain": f"a certain {privacy.unit}",
        "neighbours": neighbours_in_words(Adjacency(privacy.relation), privacy.unit),
        "spent": spent_in_words(privacy.unit, Adjacency(privacy.relation), privacy.delta),
        "of": statement.publisher,
        "t": statement.publisher.together,
        "releases": releases_in_words(
            statement.publisher.earlier_releases, statement.publisher.other_people
        ),
        "registry": [
            (name.replace("_", " ").capitalize(), value) for name, value in statement.registry
        ],
    }


def _shown(value: Any) -> Any:
    return markdown(value) if isinstance(value, str) else value


def _domain_in_words(feature: Any) -> str:
    if feature.bounds is not None:
        lower, upper = feature.bounds
        return f"{lower:g} to {upper:g} {feature.measured_in or ''}".strip()
    return ", ".join(f'"{category}"' for category in feature.categories or ())


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _short(value: float) -> str:
    return f"{value:.4g}"
