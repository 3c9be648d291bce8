"""DP-LLM, LLM and the network as methods: on tables, with what the configs ask of them."""

import math

import numpy as np
import pytest

from dprepro.data.domain import Domain, NumericFeature
from dprepro.experiment.config import load_config
from dprepro.methods.entry import Setting
from dprepro.methods.registry import get
from dprepro.privacy.subsampling import pld_epsilon
from dprepro.release.planning import planned_ledgers

DOMAIN = Domain((NumericFeature("a", 0, 1), NumericFeature("b", 0, 1)), ("x", "y", "z"))


def setting(epsilon, delta=1e-5, seed=0):
    return Setting("multiclass", epsilon, delta, DOMAIN, seed)


def test_the_private_method_takes_its_budget_and_domain():
    model = get("dp-llm").build(setting(3.0), n_maps=2)
    assert (model.epsilon, model.delta, model.domain) == (3.0, 1e-5, DOMAIN)
    assert model.random_state == 0
    assert model.n_maps == 2


def test_the_network_takes_layers_as_a_list():
    rng = np.random.default_rng(0)
    X = rng.random((200, 2)).astype(np.float32)
    y = (3 * X[:, 0]).astype(int)
    params = {"hidden_layer_sizes": [20, 10], "max_iter": 300, "learning_rate_init": 0.01}
    model = get("mlp").build(setting(math.inf), **params).fit(X, y)
    assert [w.shape for w in model.coefs_] == [(2, 20), (20, 10), (10, 3)]
    assert model.score(X, y) > 0.9


def test_the_ledger_of_images_is_planned_for_their_number_of_rows():
    found = {p.task.label: p.ledger for p in planned_ledgers(load_config("mnist"), epsilons=(2.0,))}
    printed = found["dp-llm"]
    (entry,) = printed.entries
    assert (entry.uses, entry.sampling) == (2400, pytest.approx(500 / 60_000))
    assert entry.noise_multiplier == pytest.approx(1.3)
    assert printed.spent_epsilon() == pytest.approx(pld_epsilon(1.3, 500 / 60_000, 2400, 1e-5))
    assert found["dp-llm-pld"].spent_epsilon() == pytest.approx(2.0, abs=0.002)
    # The random split of a table leaves four fifths of its rows.
    telco = planned_ledgers(load_config("telco"), ("dp-llm",), (1.0,))[0].ledger
    assert telco.entries[0].sampling == pytest.approx(256 / round(0.8 * 7043))
