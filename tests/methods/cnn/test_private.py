"""The network with DP-SGD: what it states, what it learns, and that a seed repeats it."""

import sys

import numpy as np
import pytest

from dprepro.audit import find_case
from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.cnn.estimator import DPConvolutionalNetwork
from dprepro.methods.cnn.network import LEAST_SIDE, NETWORKS, side_of
from dprepro.runtime.errors import DpreproError
from tests.methods.cnn.test_estimator import images

PIXELS = tuple(NumericFeature(f"p{k}", 0, 2) for k in range(256))
DOMAIN = Domain(PIXELS, ("lower", "upper"))
FEW = {"epochs": 4, "batch_size": 32, "domain": DOMAIN}


def test_without_pytorch_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(DpreproError, match=r"needs PyTorch: pip install 'dprepro\[torch\]'"):
        DPConvolutionalNetwork(**FEW).fit(*images())


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", 0), ("delta", 1), ("network", "deep"), ("clip_norm", 0), ("noise_multiplier", -1)],
)
def test_parameters_out_of_range_are_named(name, value):
    with pytest.raises(ValueError, match=name):
        DPConvolutionalNetwork(**{name: value}).check_parameters()


def test_the_printed_epsilon_follows_from_the_settings_of_the_tutorial():
    """Figure 8 prints 1.19; no row is read, and PyTorch is not needed."""
    model = DPConvolutionalNetwork(1.19, 1e-5, noise_multiplier=1.3)
    ledger = model.planned_ledger(60_000)
    (entry,) = ledger.entries
    assert (entry.mechanism, entry.uses, entry.sensitivity) == ("gaussian", 3525, 1.5)
    assert entry.scale == pytest.approx(1.3 * 1.5)
    assert entry.sampling == pytest.approx(256 / 60_000)
    assert ledger.within_budget
    # `dp_accounting` finds less than the moments accountant, from which print has it.
    assert ledger.spent_epsilon() == pytest.approx(0.866, abs=5e-4)
    assert ledger.floating_point
    assert ledger.adjacency == "zero-out"
    assert round(model._plan(60_000) and model.figures_["moments_epsilon"], 2) == 1.19


def test_noise_that_is_not_enough_is_seen_by_the_ledger():
    model = DPConvolutionalNetwork(0.5, 1e-5, noise_multiplier=1.3)
    assert not model.planned_ledger(60_000).within_budget


def test_without_a_multiplier_the_least_noise_that_keeps_the_budget_is_found():
    model = DPConvolutionalNetwork(2.0, 1e-5)
    spent = model.planned_ledger(60_000).spent_epsilon()
    assert 1.99 < spent <= 2.0


@pytest.mark.parametrize(("name", "parameters"), [("small", 26_010), ("large", 431_080)])
def test_the_networks_have_the_parameters_that_the_paper_counts(name, parameters):
    torch = pytest.importorskip("torch")
    network = NETWORKS[name](torch, 28, 10)
    assert sum(p.numel() for p in network.parameters()) == parameters


@pytest.mark.parametrize("name", NETWORKS)
def test_it_learns_and_a_seed_repeats_it_whatever_pytorch_drew_before(name):
    torch = pytest.importorskip("torch")
    settings = {**FEW, "network": name, "epsilon": 50.0, "learning_rate": 0.1}
    model = DPConvolutionalNetwork(**settings, random_state=3).fit(*images(400))
    X, y = images(seed=1)
    assert model.score(X, y) > 0.9
    found = model.predict_proba(X)
    torch.manual_seed(5)
    state = torch.get_rng_state()
    again = DPConvolutionalNetwork(**settings, random_state=3).fit(*images(400))
    np.testing.assert_array_equal(again.predict_proba(X), found)
    assert torch.equal(torch.get_rng_state(), state)
    other = DPConvolutionalNetwork(**settings, random_state=4).fit(*images(400))
    assert not np.array_equal(other.predict_proba(X), found)
    assert model.ledger_.within_budget


def test_labels_that_occur_are_not_covered_by_epsilon():
    pytest.importorskip("torch")
    model = DPConvolutionalNetwork(**{**FEW, "domain": None}).fit(*images())
    assert any("labels that occur" in read for read in model.ledger_.unaccounted)
    assert "labels" not in model.ledger_.assumed_public


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_an_audit_fits_it_to_images_that_it_reads(task):
    case = find_case("dp-cnn", task, epsilon=4.0)
    assert side_of(case.fit.__self__.present[0].shape[1], "it") == LEAST_SIDE
    pytest.importorskip("torch")
    observed = [case.observe(case.fit(present, 0)) for present in (True, False)]
    assert np.isfinite(observed).all()
    assert observed[0] != observed[1]
