"""A saved model says where it comes from, and has the names that the card gives."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.bins import numeric_bins
from dprepro.additive.file import load_model, model_to_json
from dprepro.additive.model import AdditiveModel
from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.experiment.config import load_config
from dprepro.experiment.record import Task
from dprepro.release.fitting import choose_one, fit_model
from dprepro.release.provenance import local_notes_path, save_fitted, take_fills, trained_on
from dprepro.report.draw.shapes import columns_of, draw_shapes
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro
from tests.lab import Lab

METHODS = [{"method": "dp-ebm-gdp", "params": {"n_epochs": 2}}, "ebm"]


def fitted(lab: Lab, method: str = "dp-ebm-gdp") -> tuple[AdditiveModel, Task]:
    config = load_config(lab.config(methods=METHODS, epsilons=[4], domain="public"))
    task = choose_one(config, method, split=1)
    return fit_model(config, task), task


def make_public(lab: Lab) -> None:
    import hashlib

    digest = hashlib.sha256((lab.folder / "tiny.csv").read_bytes()).hexdigest()
    card = lab.folder / "tiny.yaml"
    source = f"sources: [{{file: tiny.csv, sha256: {digest}}}]"
    card.write_text(card.read_text(encoding="utf-8").replace("file: tiny.csv", source))


def test_which_private_rows_trained_is_kept_beside_the_file(lab: Lab) -> None:
    model, task = fitted(lab)
    path = lab.folder / "m.json"
    assert save_fitted(model, "lab", task, path, all_rows=False) == lab.folder / "m.local-notes"
    origin = load_model(path).origin_
    assert (origin["rows"], origin["config"], origin["epsilon"]) == ("of one split", "lab", 4.0)
    assert not {"task", "seed", "split", "data_fingerprint"} & set(origin)
    assert trained_on(origin, path) == task.to_json()
    notes = local_notes_path(path)
    assert "Not for release" in json.loads(notes.read_text(encoding="utf-8"))["note"]
    assert stat.S_IMODE(notes.stat().st_mode) == 0o600


def test_of_public_rows_the_file_says_which_trained(lab: Lab) -> None:
    make_public(lab)
    model, task = fitted(lab)
    path = lab.folder / "m.json"
    assert save_fitted(model, "lab", task, path, all_rows=False) is None
    assert load_model(path).origin_ == {"config": "lab", "task": task.to_json()}
    assert trained_on(load_model(path).origin_, path) == task.to_json()
    assert not local_notes_path(path).exists()


def test_a_model_of_all_rows_says_only_what_was_decided_and_has_none_to_score_it(lab: Lab) -> None:
    model, task = fitted(lab)
    path = lab.folder / "m.json"
    assert save_fitted(model, "lab", task, path, all_rows=True) is None
    origin = load_model(path).origin_
    assert (origin["rows"], origin["epsilon"]) == ("all", 4.0)
    assert "fit_epsilon" not in origin  # nothing was measured
    assert not {"task", "seed", "split", "data_fingerprint"} & set(origin)
    with pytest.raises(DpreproError, match=r"all rows, so no test rows are left .* `--split 0`"):
        trained_on(origin, path)


def test_a_model_of_private_rows_without_privacy_is_not_for_release(lab: Lab) -> None:
    model, task = fitted(lab, "ebm")
    path = lab.folder / "m.json"
    save_fitted(model, "lab", task, path, all_rows=True)
    assert load_model(path).origin_["not_for_release"] == "fitted to private rows without privacy"
    assert path.stat().st_mode & 0o777 == 0o600
    out = {ending: lab.folder / f"out.{ending}" for ending in ("html", "py")}
    dprepro("show", path, "--output", out["html"])
    dprepro("export", path, "--to", "python", "--output", out["py"])
    assert {place.stat().st_mode & 0o777 for place in out.values()} == {0o600}
    model, task = fitted(lab)  # with a fixed seed
    save_fitted(model, "lab", task, path, all_rows=True)
    assert load_model(path).origin_["not_for_release"].endswith("its ledger does not hold")
    make_public(lab)
    model, task = fitted(lab, "ebm")
    path = lab.folder / "public.json"
    save_fitted(model, "lab", task, path, all_rows=True)
    assert "not_for_release" not in load_model(path).origin_
    made = lab.folder / "made"
    made.touch()
    assert path.stat().st_mode == made.stat().st_mode


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, "cannot be read .*put the file there, or fit the model again"),
        ("not JSON", "is damaged or belongs to another model"),
        ([], "is damaged"),
        ({"format": "other", "task": {}}, "is damaged"),
        ({"format": "dprepro local notes", "task": {"dataset": "tiny"}}, "another model"),
    ],
)
def test_notes_that_are_missing_or_of_another_model_are_told(
    lab: Lab, change: Any, message: str
) -> None:
    model, task = fitted(lab)
    path = lab.folder / "m.json"
    notes = save_fitted(model, "lab", task, path, all_rows=False)
    assert notes is not None
    notes.unlink()
    if change is not None:
        notes.write_text(change if isinstance(change, str) else json.dumps(change))
    with pytest.raises(DpreproError, match=message):
        trained_on(load_model(path).origin_, path)


def test_an_origin_that_says_nothing_of_rows_names_no_task() -> None:
    assert trained_on({"note": "by hand"}, Path("m.json")) == {}


def test_a_place_that_cannot_be_written_is_told(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    model, task = fitted(lab)
    (lab.folder / "m.local-notes").mkdir()
    with pytest.raises(DpreproError, match=r"cannot write .*m.local-notes"):
        save_fitted(model, "lab", task, lab.folder / "m.json", all_rows=False)


NAMED_METHODS = [
    {"method": "dp-ebm-gdp", "params": {"n_epochs": 2}},
    {"method": "dp-ebm-gdp-indicators", "params": {"n_epochs": 2}},
]


def saved(lab: Lab, method: str = "dp-ebm-gdp", metric: str = "auc", **card: str):
    path = lab.folder / "tiny.yaml"
    text = path.read_text(encoding="utf-8").replace("[-5, 5]}", "[-5, 5], measured_in: metres}")
    text = text.replace("[u, v]}", "[u, v], measured_in: letters}")
    for old, new in card.items():
        text = text.replace(f"{old}:", new)
    path.write_text(text)
    config = load_config(
        lab.config(methods=NAMED_METHODS, epsilons=[4], domain="public", metric=metric)
    )
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
    card.write_text(card.read_text(encoding="utf-8").replace("[u, v]", "[v, z, u]"))
    text = card.read_text(encoding="utf-8")
    assert "measured_in: letters}" in text
    card.write_text(text.replace("measured_in: letters}", "measured_in: letters, ordered: true}"))
    model = saved(lab)
    feature = model.bins_[1].feature
    assert isinstance(feature, CategoricalFeature)
    assert (feature.categories, feature.ordered) == (("v", "z", "u"), True)
    assert '"ordered": true' in (lab.folder / "m.json").read_text(encoding="utf-8")
    (axes,) = draw_shapes(columns_of("model", model), ["b"]).axes
    drawn = [label.get_text() for label in axes.get_xticklabels()]
    assert [name for name in drawn if name in {"u", "v", "z"}] == [
        name for name in ("v", "z", "u") if name in drawn
    ]
    assert {"u", "v"} <= {*drawn}


def test_a_model_of_numbers_has_a_target_and_no_labels(lab: Lab) -> None:
    rows = (
        (lab.folder / "tiny.csv")
        .read_text(encoding="utf-8")
        .replace("yes", "1.5")
        .replace("no", "0.5")
    )
    (lab.folder / "tiny.csv").write_text(rows)
    card = {"task": "task: regression #", "positive": "target_bounds: [0, 2] #"}
    model = saved(lab, metric="rmse", **card)
    assert (model.target_name_, model.labels_) == ("y", None)


def test_missing_values_go_where_the_card_fills_those_of_the_fit(lab: Lab) -> None:
    rows = (lab.folder / "tiny.csv").read_text(encoding="utf-8").splitlines()
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
