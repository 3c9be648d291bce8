"""Configs and cards that ask for too much, or for what nobody means, are refused at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from dprepro.data.card import load_card
from dprepro.experiment.config import load_config
from dprepro.runtime.errors import DpreproError, nearest

VALUES = {
    "dataset": "breast-cancer", "metric": "auc", "methods": "[ebm]", "epsilons": "[1]",
}  # fmt: skip
TEN_THOUSAND = ", ".join(map(str, range(1, 10_001)))


def _config(folder: Path, key: str, value: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text("".join(f"{k}: {v}\n" for k, v in {**VALUES, key: value}.items()))
    return path


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("methods", f"[{{method: ebm, grid: {{a: [{TEN_THOUSAND}], b: [{TEN_THOUSAND}]}}}}]",
         "have 100,000,000 combinations; at most 10,000"),
        ("splits", "1000000000", "less than or equal to 10000"),
        ("splits", "1" + "0" * 90, "less than or equal to 10000"),
        ("folds", "1000000000", "less than or equal to 10000"),
        ("epsilons", f"[{TEN_THOUSAND}]", "come to 250,000 tasks; at most 100,000"),
        ("time_limit", "1e10", "less than or equal to 31536000"),
        ("seed", "1" + "0" * 90, "should be less than"),
        ("splits", "1:30", "valid integer; given '1:30'"),
        ("time_limit", "1_0.5", "a number is needed, not a text; given '1_0.5'"),
        ("epsilons", "['1']", "a number is needed, not a text"),
        ("hypotheses", "yes", "valid boolean; given 'yes'"),
        ("title", '"a\\0b"', "no control characters"),
        ("title", '"\\e[31m"', "no control characters"),
        ("methods", '[{method: ebm, label: "a\\nb"}]', "no line breaks"),
        ("title", "x" * 100_000, "at most 1000 characters"),
        ("dataset", "x" * 900, "no dataset card|unknown dataset|$"),
    ],
)  # fmt: skip
def test_a_config_is_refused_with_its_line(tmp_path, key, value, problem):
    path = _config(tmp_path, key, value)
    if key == "dataset":
        assert load_config(path).dataset == value  # the plan says that there is none
        return
    with pytest.raises(DpreproError, match=problem) as caught:
        load_config(path)
    assert len(str(caught.value)) < 1500


def test_many_mistakes_are_not_all_listed(tmp_path):
    with pytest.raises(DpreproError, match="and 180 more") as caught:
        load_config(_config(tmp_path, "methods", f"[{', '.join(['3'] * 200)}]"))
    assert len(str(caught.value).splitlines()) == 21


CARD = "name: mine\ntask: regression\nfile: a.csv\ntarget: y\ntarget_bounds: [0, 1]\nfeatures:\n"


@pytest.mark.parametrize(
    ("feature", "problem"),
    [
        ("p{1..1000000}: {numeric: [0, 1]}", "more than 20,000 features in all"),
        ("p{1..15000}: {numeric: [0, 1]}\n  q{1..15000}: {numeric: [0, 1]}", "more than 20,000"),
        (f"p{{1..{'9' * 500}}}: {{numeric: [0, 1]}}", "more than 20,000"),
        (f"p{{{'1' * 40}..{'1' * 40}}}: {{numeric: [0, 1]}}", "more than 20,000"),
        ("p: {numeric: [1e-400, 1]}", "too close to 0 for a number"),
        ("p: {numeric: [0, 1e400]}", "too large for a number"),
        ("p: {numeric: [0, .inf]}", "valid number"),
        ("p: {numeric: [-1e308, 1e308]}", "further apart than a number can say"),
    ],
)
def test_a_card_is_refused_with_its_line(tmp_path, feature, problem):
    path = tmp_path / "card.yaml"
    path.write_text(f"{CARD}  {feature}\n")
    with pytest.raises(DpreproError, match=problem) as caught:
        load_card(path)
    assert len(str(caught.value)) < 1500


def test_bounds_of_the_target_must_be_as_far_apart_as_a_number_can_say(tmp_path):
    path = tmp_path / "card.yaml"
    path.write_text(CARD.replace("[0, 1]", "[-1e308, 1e308]") + "  p: {numeric: [0, 1]}\n")
    with pytest.raises(DpreproError, match="further apart"):
        load_card(path)


def test_a_very_long_name_is_compared_with_no_other():
    assert nearest("adul" + "x" * 10**6, ["adult"]) == ""
