"""A saved model has the names that the card gives to target, classes and units of measure."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.bins import numeric_bins
from dprepro.additive.file import load_model, model_to_json
from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.experiment.config import load_config
from dprepro.release.fitting import choose_one, fit_model
from dprepro.release.provenance import save_fitted, take_fills
from dprepro.report.draw.shapes import column_of, draw_shapes
from tests.lab import Lab

METHODS = [
    {"method": "dp-ebm-gdp", "params": {"n_epochs": 2}},
    {"method": "dp-ebm-gdp-indicators", "params": {"n_epochs": 2}},
]


def saved(lab: Lab, method: str = "dp-ebm-gdp", metric: str = "auc", **card: str):
    path = lab.folder / "tiny.yaml"
    text = path.read_text().replace("[-5, 5]}", "[-5, 5], measured_in: metres}")
    text = text.replace("[u, v]}", "[u, v], measured_in: letters}")
    for old, new in card.items():
        text = text.replace(f"{old}:", new)
    path.write_text(text)
    config = load_config(lab.config(methods=METHODS, epsilons=[4], domain="public", metric=metric))
    task = choose_one(config, method)
    model = fit_model(config, task, all_rows=True)
    save_fitted(model, "lab", task, lab.folder / "m.json", all_rows=True)
    return load_model(lab.folder / "m.json")


@pytest.mark.parametrize(
    ("positive", "labels"),
    [
        ("labels: ['yes', 'no']\npositive:", ("no", "yes")),
        ("labels: ['no', 'yes']\npositive:", ("no", "yes")),
        ("positive:", ("not yes", "yes")),
    ],
)
def test_labels_are_those_of_the_card_the_negative_one_first(
    lab: Lab, positive: str, labels: tuple[str, str]
) -> None:
    model = saved(lab, positive=positive)
    assert (model.target_name_, model.labels_) == ("y", labels)
    assert model.measured_in_ == {"a": "metres", "b": "letters"}


def test_features_that_a_method_made_have_no_unit_of_the_card(lab: Lab) -> None:
    model = saved(lab, "dp-ebm-gdp-indicators")
    assert [bins.feature.name for bins in model.bins_] == ["a", "b = u", "b = v"]
    assert model.measured_in_ == {"a": "metres"}


def test_the_order_of_categories_goes_from_the_card_into_file_and_pictures(lab: Lab) -> None:
    assert "ordered" not in json.dumps(model_to_json(saved(lab))["features"])
    card = lab.folder / "tiny.yaml"
    card.write_text(card.read_text().replace("[u, v]", "[v, z, u]"))
    text = card.read_text()
    assert "measured_in: letters}" in text
    card.write_text(text.replace("measured_in: letters}", "measured_in: letters, ordered: true}"))
    model = saved(lab)
    feature = model.bins_[1].feature
    assert isinstance(feature, CategoricalFeature)
    assert (feature.categories, feature.ordered) == (("v", "z", "u"), True)
    assert '"ordered": true' in (lab.folder / "m.json").read_text()
    (axes,) = draw_shapes([column_of("model", model)], ["b"]).axes
    drawn = [label.get_text() for label in axes.get_xticklabels()]
    assert [name for name in drawn if name in {"u", "v", "z"}] == [
        name for name in ("v", "z", "u") if name in drawn
    ]
    assert {"u", "v"} <= {*drawn}


def test_a_model_of_numbers_has_a_target_and_no_labels(lab: Lab) -> None:
    rows = (lab.folder / "tiny.csv").read_text().replace("yes", "1.5").replace("no", "0.5")
    (lab.folder / "tiny.csv").write_text(rows)
    card = {"task": "task: regression #", "positive": "target_bounds: [0, 2] #"}
    model = saved(lab, metric="rmse", **card)
    assert (model.target_name_, model.labels_) == ("y", None)


def test_missing_values_go_where_the_card_fills_those_of_the_fit(lab: Lab) -> None:
    rows = (lab.folder / "tiny.csv").read_text().splitlines()
    rows[1:5] = [",u,yes", "1.5,,no", ",,yes", "1.5,v,no"]
    (lab.folder / "tiny.csv").write_text("\n".join(rows) + "\n")
    model = saved(lab, features="fill: {a: '1.5', b: v}\nfeatures:")
    new = pd.DataFrame({"a": [np.nan, 1.5], "b": [None, "v"]})
    filled, given = model.contributions(new)
    assert filled.tolist() == given.tolist()
    assert np.ptp(model.shape_functions_[0]) > 0 < np.ptp(model.shape_functions_[1])


def test_a_bin_for_missing_values_alone_is_not_filled() -> None:
    bins = numeric_bins(NumericFeature("a", 0, 9, missing=True), np.array([3.0]), 2)
    model = SimpleNamespace(bins_=[bins])
    take_fills(model, {"a": "1"})
    assert model.bins_[0].missing_bin == 2
