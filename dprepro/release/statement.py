"""The statement of a release: what it guarantees, in fields that programs can read.

The JSON schema of these fields is `statement.schema.json`, beside this file.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Relation = Literal["zero-out", "add/remove-one", "replace-one"]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


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
    """

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
