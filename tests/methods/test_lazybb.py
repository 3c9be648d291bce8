"""LazyBB in the registry: what each entry promises is what its estimator's ledger says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.data.encode import BooleanEncoder
from dprepro.methods.entry import Guarantee, Setting
from dprepro.methods.lazybb import METHODS
from dprepro.methods.registry import get

RNG = np.random.default_rng(0)
DOMAIN = Domain((NumericFeature("x", 0, 1), CategoricalFeature("c", ("a", "b", "c"))), ("0", "1"))
X = pd.DataFrame({"x": RNG.random(600), "c": RNG.choice(["a", "b", "c"], 600)})
Y = ((X["x"] > 0.6) ^ (RNG.random(600) < 0.1)).to_numpy().astype(int)
PRIVATE = [m.name for m in METHODS if m.guarantee is not Guarantee.NONE]
CODE = "lazybb-topdown-2022-code"
EXACT = [m.name for m in METHODS if not m.takes_epsilon]


def fitted(name: str, *, domain: Domain = DOMAIN, seed: int | None = None, **params: Any) -> Any:
    method = get(name)
    epsilon, delta = (2.0, 1e-5) if method.takes_epsilon else (math.inf, 0.0)
    model = method.build(Setting("binary", epsilon, delta, domain, seed), **params)
    return model.fit(BooleanEncoder(domain).transform(X), Y)


@pytest.mark.parametrize("name", PRIVATE)
def test_the_ledger_keeps_the_promise_of_the_registry(name: str) -> None:
    method, ledger = get(name), fitted(name).ledger_
    pure = method.guarantee is Guarantee.PURE
    assert (ledger.epsilon, ledger.delta) == (2.0, 0.0 if pure else 1e-5)
    assert ledger.adjacency == method.adjacency
    assert ledger.holds


@pytest.mark.parametrize("name", EXACT)
def test_methods_without_a_promise_have_no_ledger_and_no_parameters_of_noise(name: str) -> None:
    assert get(name).guarantee is Guarantee.NONE
    assert not set(get(name).defaults) & {"calibration", "composition", "label_share"}
    assert not hasattr(fitted(name), "ledger_")


@pytest.mark.parametrize("name", [*PRIVATE, CODE, *EXACT])
def test_every_default_is_the_estimators_and_can_be_given(name: str) -> None:
    defaults = dict(get(name).defaults)
    default, given = fitted(name, seed=1), fitted(name, seed=1, **defaults)
    encoded = BooleanEncoder(DOMAIN).transform(X)
    np.testing.assert_array_equal(
        default.decision_function(encoded), given.decision_function(encoded)
    )
    assert {key: default.get_params()[key] for key in defaults} == defaults


def test_a_pure_method_takes_no_composition() -> None:
    compositions = {name: "composition" in get(name).defaults for name in PRIVATE}
    assert compositions == {name: name.endswith("-approx") for name in PRIVATE}


def test_the_authors_noise_promises_nothing_and_its_ledger_says_why() -> None:
    ledger = fitted(CODE).ledger_
    assert get(CODE).guarantee is Guarantee.NONE
    assert ledger.gaps == [
        "noise divided by zeta twice, as in the authors' code: beyond the budget"
    ]
    assert not ledger.holds
    assert ledger.spent_epsilon() > 10 * ledger.epsilon


def test_an_observed_domain_is_unpaid() -> None:
    observed = Domain.observe(X, Y, "binary")
    assert fitted("lazybb-1r", domain=observed).ledger_.unaccounted == list(observed.observed)


def test_one_round_is_the_single_rule() -> None:
    encoded = BooleanEncoder(DOMAIN).transform(X)
    boosted, single = fitted("boosted-1r", rounds=1), fitted("one-rule")
    np.testing.assert_array_equal(
        boosted.decision_function(encoded), single.decision_function(encoded)
    )
