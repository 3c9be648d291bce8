"""Texts in model files: what cannot be saved again is refused, what is quoted is cut."""

import json
import re
from copy import deepcopy

import numpy as np
import pytest

from dprepro.additive.editing import set_value
from dprepro.additive.file import load_model, model_from_json, model_to_json, save_model
from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier
from dprepro.runtime.errors import DpreproError


def edited():
    random = np.random.default_rng(0)
    domain = Domain((NumericFeature("age", 0, 80),), ("0", "1"))
    model = DPEBMClassifier(1.0, domain=domain, random_state=0, n_epochs=3)
    model.fit(random.uniform(0, 80, (200, 1)), random.choice(["0", "1"], 200))
    set_value(model, "age", 5.0, 1.0)
    return model_to_json(model)


GOOD = edited()


def spoilt(*path, value):
    """Return a copy of a good file with one value replaced."""
    file = target = deepcopy(GOOD)
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    return file


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        (["origin"], {"note": "a \ud800"}, "model.origin.note"),
        (["origin"], {"\udfff": 1}, "model.origin"),
        (["origin"], {"params": [{"a": ["\ud800"]}]}, "model.origin.params.0.a.0"),
        (["ledger", "gaps"], ["\ud800"], "model.ledger.gaps.0"),
        (["features", 0, "name"], "\ud800", "model.features.0.name"),
        (["\ud800"], 1, "model"),
    ],
)
def test_half_characters_are_refused_before_they_spoil_a_save(tmp_path, path, value, place):
    file = tmp_path / "model.json"
    file.write_text(json.dumps(spoilt(*path, value=value)))
    with pytest.raises(DpreproError, match=f": {re.escape(place)}: holds .* a lone surrogate"):
        load_model(file)


def test_a_pair_of_surrogates_is_a_character(tmp_path):
    (tmp_path / "m.json").write_text(json.dumps(spoilt("origin", value={"note": "\U0001f600"})))
    assert "\\ud83d" in (tmp_path / "m.json").read_text(encoding="utf-8")
    save_model(load_model(tmp_path / "m.json"), tmp_path / "m.json")
    assert load_model(tmp_path / "m.json").origin_ == {"note": "\U0001f600"}


def test_a_model_with_half_a_character_is_not_saved(tmp_path):
    model = model_from_json(deepcopy(GOOD))
    with pytest.raises(DpreproError, match=r"cannot save .*model\.origin\.note"):
        save_model(model, tmp_path / "m.json", {"note": "\ud800"})
    assert not list(tmp_path.iterdir())


LONG = "\x1b[31m" + 10**6 * "z"


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (["version"], LONG, "use the release of dprepro that wrote it"),
        (["version"], [LONG], "use the release of dprepro that wrote it"),
        ([LONG], 1, "Extra inputs are not permitted"),
        (["features", 0, "kind"], LONG, "numeric"),
        (["ledger", LONG], 1, "allowed: "),
        (["ledger", "entries", 0], {**GOOD["ledger"]["entries"][0], "releases": LONG, "uses": 0},
         "uses must be an integer of at least 1"),
        (["edits", 0, "feature"], LONG[:9999], "which is neither a feature"),
    ],
)  # fmt: skip
def test_what_a_message_quotes_of_a_file_is_short_and_harmless(path, value, reason):
    with pytest.raises(DpreproError, match=reason) as raised:
        model_from_json(spoilt(*path, value=value), "model.json")
    message = str(raised.value)
    assert len(message) < 500
    assert "\x1b" not in message


def test_a_version_too_deep_to_quote_is_refused():
    deep = []
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(DpreproError, match="levels deep"):
        model_from_json({**GOOD, "version": deep})


@pytest.mark.parametrize(
    ("unknown", "end"), [(10_000, "and 9995 more"), (10_001, "10,001 fields are unknown, ")]
)
def test_of_many_wrong_fields_a_few_are_named_or_all_are_counted(unknown, end):
    file = GOOD | {f"key {k}": 1 for k in range(unknown)}
    with pytest.raises(DpreproError) as caught:
        model_from_json(file, "m.json")
    assert end in str(caught.value)
    assert len(str(caught.value)) < 1000
