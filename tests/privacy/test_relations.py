"""Every curator works under the relations that it states, and lists what was read of the domain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sklearn.base import clone

from dprepro.methods.lazybb.curator import ExactCurator
from dprepro.privacy.curator_base import Curator
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.query import SensitivityError
from dprepro.privacy.sensitivity import ADD_REMOVE, REPLACE_ONE, ZERO_OUT, Adjacency
from tests.privacy.curators import FITS, LABELS, NUMERIC, Fit, curator_classes, table

WRONG = [
    pytest.param(name, relation, id=f"{name}-{relation}")
    for name, fit in FITS.items()
    for relation in Adjacency
    if relation not in fit.curator.relations
]


@pytest.mark.parametrize(("name", "relation"), WRONG)
def test_no_fit_starts_under_a_relation_that_its_curator_does_not_state(
    name: str, relation: Adjacency, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Ledger.__post_init__

    def misstated(ledger: Ledger) -> None:
        begin(ledger)
        ledger.adjacency = relation

    monkeypatch.setattr(Ledger, "__post_init__", misstated)
    with pytest.raises(SensitivityError, match=rf"guarantee under {relation}: state"):
        FITS[name].fit(*table())


def test_every_curator_that_has_a_fit_states_a_relation() -> None:
    assert len({fit.curator for fit in FITS.values()}) == 20 + ("dp-cnn" in FITS)
    assert all(fit.curator.relations for fit in FITS.values())
    assert all(made.relations <= set(Adjacency) for made in curator_classes())


def test_a_curator_class_without_relations_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="under which relations"):
        type("Silent", (Curator,), {})
    with pytest.raises(TypeError, match="under which relations"):
        type("Wordy", (Curator,), {"relations": ["zero-out"]})


class ZeroOut(Curator):
    relations = frozenset({ZERO_OUT})


class Either(ZeroOut):
    relations = frozenset({ZERO_OUT, ADD_REMOVE})


def test_the_error_says_which_relations_are_allowed() -> None:
    with pytest.raises(SensitivityError, match="state add/remove-one or zero-out"):
        Either(Ledger(1.0, 0.0, REPLACE_ONE), None, ())
    assert Either(Ledger(1.0, 0.0, "add/remove-one"), None, ())


# --- an observed domain ---------------------------------------------------------------------------

READS = ("bounds of x", "range of the target")


def observed(fit: Fit) -> Fit:
    """Return the fit with a domain that was read from the rows."""
    model: Any = clone(fit.model)
    domain = model.domain or (LABELS if fit.rows.__name__ == "_boolean" else NUMERIC)
    model.set_params(domain=replace(domain, observed=READS))
    if "observed" in model.get_params():
        model.set_params(observed=True)
    return replace(fit, model=model)


# The toys read what they need themselves, and the exact learner keeps no ledger.
WITH_DOMAIN = [
    name
    for name, fit in FITS.items()
    if "domain" in fit.model.get_params() and fit.curator is not ExactCurator
]


@pytest.mark.parametrize("name", WITH_DOMAIN)
def test_what_was_read_of_the_domain_is_listed_first(name: str) -> None:
    """No estimator lists it: the curators do."""
    public, read = FITS[name].fit(*table()).ledger_, observed(FITS[name]).fit(*table()).ledger_
    rest = [text for text in public.unaccounted if text != "labels that occur"]
    assert not {*READS} & {*rest}
    assert read.unaccounted == [*READS, *rest]
    assert not read.holds


@pytest.mark.parametrize("name", ["dp-bag", "dp-llm"])
def test_a_planned_ledger_lists_it_too(name: str) -> None:
    X, y = table()
    fit = observed(FITS[name])
    assert fit.model.planned_ledger(len(X)).unaccounted == fit.fit(X, y).ledger_.unaccounted


def test_a_method_that_forgets_to_list_its_reads_lists_them_all_the_same() -> None:
    ledger = Ledger(1.0, 0.0, ZERO_OUT, unaccounted=["the mean"])
    ZeroOut(ledger, 3, READS)
    assert ledger.unaccounted[:3] == [*READS, "the mean"]
    assert "fixed seed" in ledger.unaccounted[3]
    ZeroOut(ledger, None, READS)
    assert ledger.unaccounted.count(READS[0]) == 1
    with pytest.raises(TypeError, match="observed"):
        ZeroOut(ledger, None)  # type: ignore[call-arg]
