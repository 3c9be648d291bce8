"""Planned ledgers: those of the real fits, without the real rows."""

from dataclasses import replace

import numpy as np
import pytest

from dprepro.data.dataset import load
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.experiment.config import load_config
from dprepro.experiment.plan import SPLIT, note_disclosures
from dprepro.methods import registry
from dprepro.methods.entry import Setting
from dprepro.privacy.sensitivity import REPLACE_ONE
from dprepro.release.planning import draw_rows, planned_ledgers
from dprepro.runtime.errors import DpreproError
from tests.private_table import rows_of, write_table

SPENT = {
    "dp-ebm-gdp": [0.437, 0.876, 1.757, 3.526, 7.080],
    "dp-ebm-classic": [0.162, 0.331, 0.678, 1.397, 2.916],
}
SPENT_UNDER_REPLACE_ONE = {
    "dp-ebm-gdp": [0.915, 1.848, 3.761, 7.752, 16.26],
    "dp-ebm-classic": [0.339, 0.693, 1.426, 2.975, 6.362],
}


@pytest.mark.parametrize("method", list(SPENT))
def test_what_the_published_adult_columns_really_spend(method):
    found = planned_ledgers(load_config("adult"), methods=(method,))
    assert [p.task.epsilon for p in found] == [0.5, 1, 2, 4, 8]
    assert [p.ledger.spent_epsilon() for p in found] == pytest.approx(SPENT[method], abs=1e-3)
    replaced = [p.ledger.spent_epsilon(REPLACE_ONE) for p in found]
    assert replaced == pytest.approx(SPENT_UNDER_REPLACE_ONE[method], rel=1e-3)


def test_a_planned_ledger_is_the_fitted_one(data_dir):
    config = load_config("telco")
    telco = load("telco", data_dir)
    domains = {"observed": Domain.observe(telco.X, telco.y, "binary"), "public": telco.domain}
    compared = set()
    for planned in planned_ledgers(config, epsilons=(1.0,)):
        method, kind = registry.get(planned.task.method), planned.task.domain
        if method.encoding != "frame":
            continue
        model = method.build(Setting("binary", 1.0, 1e-6, domains[kind], 0))
        note_disclosures(model.fit(telco.X, telco.y).ledger_, planned.task)
        assert model.ledger_ == planned.ledger
        compared.add(kind)
    assert compared == {"observed", "public"}


def test_methods_without_a_budget_have_no_ledger():
    labels = {p.task.label for p in planned_ledgers(load_config("adult"), epsilons=(1.0,))}
    assert "ebm" not in labels
    assert "dp-logistic-fair" in labels


def test_a_method_whose_extra_is_not_installed_is_named(monkeypatch):
    lacking = replace(registry.get("dp-cnn"), requires="surely_not_installed")
    monkeypatch.setattr("dprepro.methods.registry.get", lambda name: lacking)
    with pytest.raises(DpreproError, match="dp-cnn needs the module 'surely_not_installed'"):
        planned_ledgers(load_config("fashion-mnist-cnn"), methods=("dp-cnn",))


def test_without_a_public_domain_it_says_what_to_do(tmp_path):
    (tmp_path / "rows.csv").write_text("x,y\n1,a\n2,b\n")
    (tmp_path / "card.yaml").write_text(
        "name: mine\ntask: binary\nfile: rows.csv\ntarget: y\npositive: a\n"
    )
    (tmp_path / "mine.yaml").write_text(
        "dataset: card.yaml\nmetric: auc\nsplits: 1\nseed: 1\nepsilons: [1]\ndelta: 1e-6\n"
        "methods: [dp-ebm-gdp]\n"
    )
    with pytest.raises(DpreproError, match="gives no public domain"):
        planned_ledgers(load_config(str(tmp_path / "mine.yaml")))


def test_drawn_rows_lie_in_the_domain_and_show_every_label():
    domain = Domain(
        (NumericFeature("x", -1, 3), CategoricalFeature("c", ("a", "b", "d"))), ("0", "1", "2")
    )
    X, y = draw_rows(domain, "multiclass", 90, np.random.default_rng(0))
    assert X["x"].between(-1, 3).all()
    assert set(X["c"]) == {"a", "b", "d"}
    assert set(y) == {0, 1, 2}
    X, y = draw_rows(
        Domain(domain.features, (5.0, 7.0)), "regression", 30, np.random.default_rng(0)
    )
    assert (y.min(), y.max()) == (5.0, 7.0)


def test_a_fit_to_all_rows_does_not_assume_which_rows_train(tmp_path):
    config = load_config(write_table(tmp_path, "binary", rows_of("binary", 4)))
    (of_split,) = planned_ledgers(config)
    (of_all,) = planned_ledgers(config, all_rows=True)
    assert SPLIT in of_split.ledger.assumed_public
    assert of_all.ledger.assumed_public == [
        text for text in of_split.ledger.assumed_public if text != SPLIT
    ]
