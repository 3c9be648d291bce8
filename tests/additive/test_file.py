"""Model files: the same model comes back, others can read it, and nothing broken gets in."""

import json
import math
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dprepro.additive.editing import interpolate, make_monotone, set_value, undo
from dprepro.additive.file import (
    MAX_BYTES,
    load_model,
    model_from_json,
    model_to_json,
    save_model,
)
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm.ebm import EBMClassifier, EBMRegressor
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier
from dprepro.runtime.errors import DpreproError

FEATURES = (
    NumericFeature("age", 0, 80, missing=True),
    CategoricalFeature("c", ("a", "b", "rare")),
)


def table(rows=1500):
    rng = np.random.default_rng(0)
    c = rng.choice(["a", "b", "rare"], rows, p=[0.5, 0.499, 0.001])
    X = pd.DataFrame({"age": rng.uniform(0, 80, rows), "c": c})
    X.loc[rng.random(rows) < 0.1, "age"] = np.nan
    y = (rng.random(rows) < X["age"].fillna(20) / 80).astype(int).to_numpy()
    return X, y


def models():
    X, y = table()
    private = {"random_state": 0, "n_epochs": 30}
    plain = {"random_state": 0, "n_epochs": 30, "outer_bags": 2}
    domain, span = Domain(FEATURES, ("no", "yes")), Domain(FEATURES, (0.2, 0.8))
    named = np.array(["no", "yes"])[y]
    sound = {"sensitivity": "sound", "composition": "joint"}
    return {
        "dp-classifier": DPEBMClassifier(1.0, domain=domain, **private).fit(X, named),
        "dp-regressor": DPEBMRegressor(1.0, domain=span, **private).fit(X, y),
        "sound-regressor": DPEBMRegressor(0.1, domain=span, **private, **sound).fit(X, y),
        "classifier": EBMClassifier(**plain).fit(X, y == 1),
        "regressor": EBMRegressor(**plain).fit(X, y * 1e-7),
        "array": EBMClassifier(**plain).fit(X[["age"]].to_numpy(), y),
    }


MODELS = models()
STRANGE = pd.DataFrame(
    {"age": [np.nan, -5.0, 200.0, 33.0], "c": ["a", "unseen", None, "rare"]}, index=[7, 8, 9, 10]
)


def rows_for(name):
    rows = pd.concat([table()[0], STRANGE])
    return rows[["age"]].to_numpy() if name == "array" else rows


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_predicts_the_same_to_the_bit(name, tmp_path):
    model, rows = MODELS[name], rows_for(name)
    save_model(model, tmp_path / "new" / "model.json", {"split": 3})
    loaded = load_model(tmp_path / "new" / "model.json")
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["model.json"]
    for predict in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, predict):
            expected = getattr(model, predict)(rows)
            np.testing.assert_array_equal(getattr(loaded, predict)(rows), expected)
    assert loaded.origin_ == {"split": 3}
    again = json.loads((tmp_path / "new" / "model.json").read_text(encoding="utf-8"))
    assert model_to_json(loaded) == again


@pytest.mark.parametrize("name", ["dp-classifier", "sound-regressor"])
def test_the_ledger_and_the_noise_come_back(name):
    model = MODELS[name]
    loaded = model_from_json(model_to_json(model))
    assert loaded.ledger_ == model.ledger_
    assert loaded.ledger_.spent_epsilon() == model.ledger_.spent_epsilon()
    for a, b in zip(loaded.shape_noise_, model.shape_noise_, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", MODELS)
def test_fitted_models_and_files_of_them_are_the_same_for_interpret(name):
    pytest.importorskip("interpret.glassbox")
    model, rows = MODELS[name], rows_for(name)
    for each in (model, model_from_json(model_to_json(model))):
        machine = each.to_interpret()
        np.testing.assert_allclose(
            machine.eval_terms(rows), model.contributions(rows), rtol=0, atol=1e-12
        )
        if hasattr(model, "predict_proba"):
            found, expected = machine.predict_proba(rows), model.predict_proba(rows)
        else:
            found, expected = machine.predict(rows), model.predict(rows)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
        assert len(machine.explain_global().data()["scores"]) == len(model.bins_)


def predict_by_the_file_alone(model, row):
    """What the file's own sentence says, with nothing but the standard library."""
    total = model["intercept"] * 2.0 ** model["units"]["intercept"]
    unit = 2.0 ** model["units"]["functions"]
    for feature, x in zip(model["features"], row, strict=True):
        if x is None or x != x:
            b = feature["missing_bin"]
        elif feature["kind"] == "numeric":
            b = sum(cut <= x for cut in feature["cuts"])
        elif x in feature["categories"]:
            b = feature["groups"][feature["categories"].index(x)]
        else:
            b = feature["labels"].index("(other)") if "(other)" in feature["labels"] else None
        total += 0.0 if b is None else feature["values"][b] * unit
    if model["task"] == "binary":
        return 1 / (1 + math.exp(-total))
    return min(max(total, model["range"][0]), model["range"][1]) if model["range"] else total


@pytest.mark.parametrize("name", MODELS)
def test_the_file_can_be_used_without_the_package(name):
    model, rows = MODELS[name], rows_for(name)
    file = json.loads(json.dumps(model_to_json(model)))
    by_hand = [predict_by_the_file_alone(file, row) for row in np.asarray(rows, dtype=object)]
    if file["task"] == "binary":
        np.testing.assert_allclose(by_hand, model.predict_proba(rows)[:, 1], rtol=1e-12)
    else:
        np.testing.assert_allclose(by_hand, model.predict(rows), rtol=1e-9, atol=1e-15)


def test_edits_are_saved_and_can_be_undone_after_loading(tmp_path):
    model = model_from_json(model_to_json(MODELS["dp-classifier"]))
    released = [f.copy() for f in model.shape_functions_]
    make_monotone(model, "age", "decreasing")
    set_value(model, "c", "a", 0.5)
    interpolate(model, "age", 20, 40)
    save_model(model, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert loaded.edits_ == model.edits_
    assert loaded.ledger_.post_processing == model.ledger_.post_processing != []
    while loaded.edits_:
        undo(loaded)
    for a, b in zip(loaded.shape_functions_, released, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_loaded_model_does_not_train():
    loaded = model_from_json(model_to_json(MODELS["regressor"]))
    with pytest.raises(DpreproError, match="fit a new one"):
        loaded.fit(*table())


def test_columns_must_be_those_of_the_fit():
    loaded = model_from_json(model_to_json(MODELS["regressor"]))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(table()[0][["c", "age"]])


@pytest.mark.parametrize("name", MODELS)
def test_a_file_holds_whole_numbers_that_read_back_to_the_bit(name):
    model = MODELS[name]
    file = json.loads(json.dumps(model_to_json(model)))
    numbers = [file["intercept"]]
    for feature in file["features"]:
        numbers += [*feature["values"], *feature["counts"], *(feature["noise"] or [])]
    assert {type(number) for number in numbers} == {int}
    assert max(map(abs, numbers)) >= 2**29
    loaded = model_from_json(file)
    for kind in ("shape_functions_", "bin_counts_", "shape_noise_"):
        for one, other in zip(getattr(loaded, kind) or [], getattr(model, kind) or [], strict=True):
            np.testing.assert_array_equal(one, other)
    assert model_to_json(loaded) == file


@pytest.mark.parametrize("offset", [1e6, 1e9, -1e10])
def test_a_far_intercept_takes_no_digit_of_the_functions(offset):
    X, _ = table()
    target = 0.5 + np.tanh(X["age"].fillna(40).to_numpy() / 40 - 1) / 4
    found = []
    for shift in (0.0, offset):
        domain = Domain(FEATURES, (shift, shift + 1))
        model = DPEBMRegressor(8.0, sensitivity="sound", domain=domain, random_state=0)
        found.append(model.fit(X, np.clip(target, 0, 1) + shift))
    one, other = (model.shape_functions_[0] for model in found)
    assert np.ptp(one) > 0.01
    np.testing.assert_allclose(one, other, atol=1e-3)
    assert found[1].powers_.functions == found[0].powers_.functions


def test_files_of_version_1_are_read_and_saved_as_they_are_now():
    file = model_to_json(MODELS["dp-classifier"])
    unit, of_intercept = (2.0 ** file["units"][name] for name in ("functions", "intercept"))
    old = {**file, "version": 1, "intercept": file["intercept"] * of_intercept + 1e-13}
    del old["units"]
    old["features"] = [
        feature
        | {"values": [value * unit + 1e-13 for value in feature["values"]]}
        | {"noise": [value * unit for value in feature["noise"]]}
        for feature in file["features"]
    ]
    loaded = model_from_json(old)
    assert loaded.intercept_ == old["intercept"]
    assert loaded.shape_functions_[0].tolist() == old["features"][0]["values"]
    saved = model_to_json(loaded)
    assert saved["version"] == 2
    again = model_from_json(saved)
    np.testing.assert_allclose(again.shape_functions_[0], loaded.shape_functions_[0], atol=unit)


def test_the_names_that_the_data_have_come_back(tmp_path):
    model = model_from_json(model_to_json(MODELS["dp-classifier"]))
    assert (model.target_name_, model.labels_, dict(model.measured_in_)) == (None, None, {})
    model.target_name_, model.labels_ = "income", ("<=50K", ">50K")
    model.measured_in_ = {"age": "years"}
    save_model(model, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert (loaded.target_name_, loaded.labels_) == ("income", ("<=50K", ">50K"))
    assert loaded.measured_in_ == {"age": "years"}
    assert loaded.classes_.tolist() == model.classes_.tolist()
    file = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))
    assert (file["target"], file["labels"]) == ("income", ["<=50K", ">50K"])
    assert [feature.get("measured_in") for feature in file["features"]] == ["years", None]
    assert model_to_json(loaded) == file


def test_a_file_without_such_names_is_as_it_was():
    file = model_to_json(MODELS["dp-regressor"])
    assert not {"target", "labels"} & set(file)
    assert not any("measured_in" in feature for feature in file["features"])


# --- broken and hostile files ---------------------------------------------------------------------


def edited():
    model = model_from_json(model_to_json(MODELS["dp-classifier"]))
    set_value(model, "age", 5.0, 1.0)
    make_monotone(model, "age", "increasing")
    return model_to_json(model)


GOOD = edited()


def spoilt(*path, value):
    """A copy of a good file with one value replaced (or removed: value is ...)."""
    file = deepcopy(GOOD)
    target = file
    for step in path[:-1]:
        target = target[step]
    if value is ...:
        del target[path[-1]]
    else:
        target[path[-1]] = value
    return file


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["format"], "pickle", "not a model file"),
        (["version"], 3, "version 3"),
        (["version"], ..., "version None"),
        (["version"], 1, "units are for version 2"),
        (["units"], None, "units are for version 2"),
        (["units", "functions"], 2000, "units.functions"),
        (["features", 0, "values", 0], 0.5, "whole numbers"),
        (["intercept"], 0.5, "whole numbers"),
        (["task"], "regression", "classes are for models of classes"),
        (["classes"], ["yes", "no"], "ascend"),
        (["classes"], ["no", 1], "one type"),
        (["classes"], None, "classes"),
        (["labels"], ["no", "no"], "different names of the classes"),
        (["labels"], ["no"], "labels"),
        (["labels"], ["no", 1], "labels"),
        (["labels"], ["no", "\ud800"], "lone surrogate"),
        (["target"], 3, "target"),
        (["features", 0, "measured_in"], 3, "measured_in"),
        (["range"], [0.0, 1.0], "range"),
        (["intercept"], "0", "intercept"),
        (["intercept"], math.nan, "finite"),
        (["intercept"], True, "intercept"),
        (["intercept"], 10**400, "intercept"),
        (["extra"], 1, "extra"),
        (["features"], [], "features"),
        (["features", 0, "values"], ..., "features.0.numeric.values"),
        (["features", 0, "values", 0], math.inf, "finite"),
        (["features", 0, "values"], [0.0] * 257, "at most 256"),
        (["features", 0, "labels"], ["one"], "have labels"),
        (["features", 0, "counts", 0], -1.0, "counts.0"),
        (["features", 0, "noise"], None, "either every feature has noise or none"),
        (["features", 0, "noise"], [1.0], "have noise"),
        (["features", 0, "cuts"], [3.0, 2.0], "ascend"),
        (["features", 0, "cuts"], [900.0], "between lower and upper"),
        (["features", 0, "cuts"], [1.0], "1 cuts make 2 bins"),
        (["features", 0, "lower"], 99.0, "above upper"),
        (["features", 0, "missing_bin"], 99, "bins end at"),
        (["features", 0, "missing_bin"], -1, "missing_bin"),
        (["features", 0, "kind"], "text", "kind"),
        (["features", 0, "name"], "c", "names repeat"),
        (["features", 1, "groups"], [0, 1], "3 categories, but 2 groups"),
        (["features", 1, "groups", 0], 9, "below the number of bins"),
        (["features", 1, "groups", 0], 0.0, "groups.0"),
        (["features", 1, "categories", 0], "b", "categories repeat"),
        (["edits", 0, "feature"], "height", "neither a feature nor"),
        (["edits", 0, "after", 0], 3, "does not lead to"),
        (["edits", 1, "after", 0], 3, "does not lead to"),
        (["edits", 0, "before"], [0], "does not lead to"),
        (["edits", 0, "action"], "exec", "action"),
        (["ledger"], {}, "entries is missing"),
        (["ledger", "entries"], ..., "entries is missing"),
        (["ledger", "gaps"], ..., "gaps is missing"),
        (["ledger", "delta"], ..., "delta"),
        (["ledger", "entries"], 3, "entries"),
        (["ledger", "entries", 0], 3, "entries"),
        (["ledger", "epsilon"], -1.0, "epsilon must be a number of at least 0"),
        (["ledger", "epsilon"], "1", "epsilon"),
        (["ledger", "adjacency"], "friends", "adjacency"),
        (["ledger", "signed"], True, "unknown key 'signed'"),
        (["ledger", "entries", 0, "note"], "", "unknown key 'note'"),
        (["ledger", "entries", 0, "mechanism"], "magic", "mechanism"),
        (["ledger", "entries", 0, "scale"], 0.0, "out of range"),
        (["ledger", "entries", 0, "scale"], 1e-9, "out of range"),
        (["ledger", "entries", 0, "uses"], 10**9, "more than any promise"),
        (["ledger", "entries", 0, "uses"], 0, "uses must be an integer of at least 1"),
        (["ledger", "entries", 0, "replace_one"], 1e300, "out of range"),
        (["ledger", "entries", 0, "replace_one"], 1e6, "out of range|more than any promise"),
        (["ledger", "entries", 0, "budget"], [1.0], "budget"),
        (["origin"], [], "origin"),
    ],
)
def test_what_is_wrong_is_named(path, value, message):
    with pytest.raises(DpreproError, match=message):
        model_from_json(spoilt(*path, value=value), "model.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[1, 2]", "not a model file"),
        ("{} {}", "not JSON"),
        ('{"format": NaN}', "NaN is no number"),
        ('{"format": -Infinity}', "no number"),
        ('{"format": 1e999}', "too large"),
        ('{"format": ' + "9" * 5000 + "}", "not JSON"),
        ('{"format": 1, "format": 2}', "given twice"),
        ("[" * 100_000, "levels deep"),
        ('{"a":' * 100_000, "levels deep"),
        ("\x00\x01", "not JSON"),
    ],
)
def test_text_that_is_no_model_is_refused(tmp_path, text, message):
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(DpreproError, match=message):
        load_model(path)


def test_files_that_cannot_be_read_or_written_are_named(tmp_path):
    with pytest.raises(DpreproError, match=r"absent\.json: there is no such model file"):
        load_model(tmp_path / "absent.json")
    with pytest.raises(DpreproError, match=r"it is a folder\. Name a model file in it"):
        load_model(tmp_path)
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x80")
    with pytest.raises(DpreproError, match="UTF-8"):
        load_model(tmp_path / "binary.json")
    with (tmp_path / "huge.json").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(DpreproError, match="larger than a file"):
        load_model(tmp_path / "huge.json")
    (tmp_path / "file").write_text("")
    with pytest.raises(DpreproError, match="cannot write"):
        save_model(MODELS["array"], tmp_path / "file" / "model.json")


def test_deep_nesting_inside_a_good_file_is_refused():
    deep = value = []
    for _ in range(900):
        value.append([])
        value = value[0]
    for path in (["origin", "params"], ["ledger", "gaps"], ["features", 0, "values"]):
        with pytest.raises(DpreproError, match="levels deep"):
            model_from_json(spoilt(*path, value=deep))


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just(10**400)
)
JUNK = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


def places(value, path=()):
    """The path of every value in a JSON document, lists sampled by their first entries."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value[:2]):
            yield from places(inner, (*path, i))


def assert_works(model):
    renamed = STRANGE.set_axis([bins.feature.name for bins in model.bins_], axis=1)
    assert len(model.predict(renamed)) == len(STRANGE)
    assert np.isfinite(model.contributions(renamed)).all()


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.sampled_from([p for p in places(GOOD) if p]), JUNK)
def test_any_value_replaced_by_junk_is_refused_or_gives_a_model_that_works(path, junk):
    try:
        model = model_from_json(spoilt(*path, value=junk))
    except DpreproError:
        return
    assert_works(model)
    assert model_to_json(model_from_json(model_to_json(model))) == model_to_json(model)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_text_edit_is_refused_or_gives_a_model_that_works(tmp_path_factory, data):
    text = json.dumps(GOOD)
    start = data.draw(st.integers(0, len(text) - 1))
    length = data.draw(st.integers(0, 30))
    path = tmp_path_factory.mktemp("fuzz") / "model.json"
    path.write_text(text[:start] + data.draw(st.text(max_size=6)) + text[start + length :], "utf-8")
    try:
        model = load_model(path)
    except DpreproError:
        return
    assert_works(model)


def test_the_order_of_categories_is_in_a_file_where_it_means_something(tmp_path):
    made = model_to_json(MODELS["dp-classifier"])
    assert all("ordered" not in feature for feature in made["features"])
    ordered = deepcopy(made)
    ordered["features"][1]["ordered"] = True
    loaded = model_from_json(ordered)
    assert [getattr(bins.feature, "ordered", None) for bins in loaded.bins_] == [None, True]
    assert model_to_json(loaded) == ordered
    assert model_to_json(model_from_json(made)) == made
    ordered["features"][1]["ordered"] = 1
    with pytest.raises(DpreproError, match=r"features\.1\.categorical\.ordered: .* boolean"):
        model_from_json(ordered)
    ordered["features"][0]["ordered"] = True
    with pytest.raises(DpreproError, match=r"features\.0\.numeric\.ordered: Extra inputs"):
        model_from_json(ordered)


@pytest.mark.parametrize("name", ["dp-ebm", "dp-ebm-plus"])
def test_no_fit_depends_on_whether_categories_are_ordered(name):
    X, y = table()
    made = []
    for is_ordered in (False, True):
        features = (FEATURES[0], replace(FEATURES[1], ordered=is_ordered))
        domain = Domain(features, ("no", "yes"))
        kind = DPEBMClassifier if name == "dp-ebm" else DPEBMPlusClassifier
        fitted = kind(1.0, domain=domain, random_state=0, n_epochs=5).fit(X, y)
        made.append(model_to_json(fitted))
    assert made[1]["features"][1].pop("ordered") is True
    assert made[0] == made[1]
