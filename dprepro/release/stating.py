"""From a model file to its statement: all but the publisher's words follows from that file."""

from __future__ import annotations

import hashlib
import math

from dprepro.additive.bands import bands_in_words
from dprepro.additive.file import LoadedClassifier, LoadedRegressor
from dprepro.additive.intervals import intervals_in_words
from dprepro.data.domain import NumericFeature
from dprepro.errors import DpreproError
from dprepro.estimators.contract import ledger_of
from dprepro.privacy.ledger import ROW, Ledger
from dprepro.privacy.sensitivity import REPLACE_ONE
from dprepro.release.statement import (
    DataDomain,
    Mechanism,
    ModelFile,
    NotCovered,
    Privacy,
    PublicFeature,
    Publisher,
    Registry,
    Spent,
    Statement,
)
from dprepro.release.words import (
    is_bounded,
    neighbours_in_words,
    public_in_words,
    releases_in_words,
    unit_in_words,
)

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
            reads=list(ledger.unpaid),
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
            of_unit=round_up(ledger.spent_epsilon_of_unit()),
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
                *ledger.unpaid,
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
