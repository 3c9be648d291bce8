"""What the page of a model holds, without a browser."""

import json
import re

import numpy as np
import pytest

from dprepro.additive.editing import set_value
from dprepro.additive.file import file_text, model_from_json, model_to_json, save_model
from dprepro.additive.shapes import importance, shapes_of
from dprepro.report.ledgers import verdict
from dprepro.report.model_page import content_of, embedded, model_page, with_holes
from dprepro.runtime.errors import DpreproError
from tests.report.model_page.models import model, of_classes, of_counts, paired, regression, values

HOSTILE = (
    "</script><script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=2">',
    "</style></svg><b id=hacked><!--",
    "{{ 7 * 7 }} \u2028 \x00 \x1b ]]> @@@ \\u003c '",
)


def hostile():
    """Return a model file whose every text of its author is hostile."""
    script, image, closing, odd = HOSTILE
    made = values(target=script, labels=[image, closing], origin={script: odd, "dataset": image})
    made["ledger"] |= {"unpaid": [script], "gaps": [closing], "assumed_public": [odd]}
    city, age, visits = made["features"]
    city |= {"name": script, "categories": [*HOSTILE], "labels": [*HOSTILE, "(other)"]}
    age |= {"name": odd, "measured_in": closing, "labels": [image, *age["labels"][1:]]}
    visits |= {"name": closing}
    edit = {"feature": closing, "action": "set", "detail": script, "before": [1, 2]}
    return made | {"edits": [edit | {"after": visits["values"]}]}


def data_of(page):
    """Return what the script of a page works with."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(text)


def test_functions_are_ordered_by_their_mean_absolute_contribution():
    data = data_of(model_page(model(), "a model"))
    made = model()
    sizes = [
        (np.abs(f) * c).sum() / c.sum()
        for f, c in zip(made.shape_functions_, made.bin_counts_, strict=True)
    ]
    np.testing.assert_allclose(data["importance"], sizes, rtol=1e-12)
    assert data["order"] == [1, 0, 2]
    assert sizes[1] > sizes[0] > sizes[2]


def test_importance_without_counts_weighs_all_bins_alike():
    made = model()
    made.bin_counts_[2] = np.zeros(2)
    assert importance(shapes_of(made)[2]) == 12 * 2.0**-28


def test_importance_of_several_classes_is_the_mean_over_them():
    made = model_from_json(of_classes(4))
    data = data_of(model_page(made, "a model"))
    sizes = [
        (np.abs(f).mean(axis=1) * c).sum() / c.sum()
        for f, c in zip(made.shape_functions_, made.bin_counts_, strict=True)
    ]
    np.testing.assert_allclose(data["importance"], sizes, rtol=1e-12)
    assert data["classes"] == ["rank 0", "rank 1", "rank 2", "rank 3"]
    assert data_of(model_page(model(), "a model"))["classes"] == []


def test_pieces_and_values_are_the_file_to_the_byte(tmp_path):
    for made in (values(), regression(), of_counts(), paired(), hostile()):
        loaded = model_from_json(made)
        set_value(loaded, str(loaded.bins_[2].feature.name), 0.9, 0.125)
        save_model(loaded, tmp_path / "model.json")
        data = data_of(model_page(loaded, "a model"))
        filled = [*data["values"], data["edits"]]
        depths = [3] * len(data["values"]) + [1]
        spelled = [
            json.dumps(part, indent=1, ensure_ascii=False).replace("\n", "\n" + " " * depth)
            for part, depth in zip(filled, depths, strict=True)
        ]
        text = "".join(
            piece + part for piece, part in zip(data["pieces"], [*spelled, ""], strict=True)
        )
        assert text == (tmp_path / "model.json").read_text(encoding="utf-8")


def test_pairs_are_shown_after_features_and_said_in_words():
    page = model_page(model_from_json(paired()), "a model")
    data = data_of(page)
    assert [pair["name"] for pair in data["pairs"]] == ["city & age", "age & visits"]
    assert [pair["places"] for pair in data["pairs"]] == [[0, 1], [1, 2]]
    assert data["pairs"][1]["sides"][1] == ["few", "many"]
    assert data["values"][3:] == [pair["values"] for pair in paired()["pairs"]]
    assert sorted(data["order"]) == [0, 1, 2]
    assert 'id="pairs-list"' in page
    assert "its 3 features, and 2 of pairs of them" in page
    without = model_page(model(), "a model")
    assert 'id="pairs-list"' not in without
    assert "of pairs of them" not in without


def test_a_text_that_looks_like_a_hole_is_none():
    made = values(origin={"dataset": "@@"})
    pieces = with_holes(made)
    assert len(pieces) == len(made["features"]) + 2
    assert sum(map(len, pieces)) < len(file_text(made))
    assert '"@@"' in pieces[-1]


@pytest.mark.parametrize(
    ("made", "axis"),
    [
        (values(), "log odds of >50K"),
        (values(labels=None), "log odds of class 1.0"),
        (regression(), "rent"),
        (regression() | {"target": None}, "the target"),
        (of_counts(), "logarithm of visits"),
        (of_classes(3), "log odds of a class over the geometric mean of all"),
    ],
)
def test_the_axis_has_the_names_of_the_data(made, axis):
    assert content_of(model_from_json(made), "t", "model.json").axis == axis


def test_a_page_of_counts_says_that_functions_multiply():
    said = (
        "The sum, with the intercept, is the logarithm of visits. The prediction is the "
        "exponential of the sum, so each function multiplies it: where a function adds 0.3 to the "
        "logarithm of visits, the prediction is 1.35 times as large."
    )
    page = model_page(model_from_json(of_counts()), "a model")
    assert said in page
    assert "What each feature adds to the logarithm of visits:" in page
    assert "exponential of the sum" not in model_page(model_from_json(regression()), "a model")


def test_the_guarantee_comes_first_and_the_ledger_is_folded():
    made = model()
    page = model_page(made, "a model")
    assert verdict(made.ledger_) in page
    assert "Spent epsilon, by dp_accounting: 0.5 of the stated 1" in page
    assert page.index('id="guarantee"') < page.index("<details") < page.index('id="functions"')
    assert "<li>the labels</li>" in page
    assert "sums of residuals" in page[: page.index("</details>")]
    assert 'class="outcome holds" id="guarantee"' in page


def test_a_model_without_a_ledger_or_not_for_release_says_so():
    page = model_page(model(ledger=None, origin={"not_for_release": "fitted without privacy"}), "m")
    assert "The file has no ledger: it promises no privacy." in page
    assert "Not for release: fitted without privacy." in page
    assert 'class="outcome holds"' not in page
    assert "Not for release" not in model_page(model(), "m")


def test_the_page_needs_nothing_beside_it_and_is_the_same_each_time():
    page = model_page(model(), "a model")
    assert page == model_page(model(), "a model")
    assert len(page) < 150_000
    assert "<noscript>" in page
    addresses = re.findall(r'(?:src|href|action)="([^"]*)"|url\(([^)]*)\)', page)
    assert all("".join(address).startswith("#") for address in addresses)
    assert re.findall(r"https?://[^\"]*", page) == ["http://www.w3.org/2000/svg"]  # a name of SVG
    names = re.findall(r' id="([^"]*)"', page)
    assert len(names) == len(set(names))


def test_hostile_names_stay_text():
    page = model_page(model_from_json(hostile()), HOSTILE[0])
    assert page.count("<script") == 2  # the data, and the script that reads it
    assert "<img" not in page
    assert "<b id=" not in page
    assert "\x00" not in page
    assert data_of(page)["edits"][0]["detail"] == HOSTILE[0]


def test_embedded_values_hold_no_sign_of_markup_and_come_back():
    text = embedded({"<!--": ["</script>", "&amp;", "\u2028", "é"]})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"<!--": ["</script>", "&amp;", "\u2028", "é"]}


def test_what_no_file_can_hold_is_refused():
    deep = {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": 1}}}}}}}}}
    with pytest.raises(DpreproError, match="cannot show the model: nested more than 8 levels"):
        model_page(model(), "a model", origin=deep)


def test_the_origin_of_a_fitted_model_goes_into_its_page():
    made = model()
    data = data_of(model_page(made, "m", "people.json", {"dataset": "shop"}))
    assert '"dataset": "shop"' in data["pieces"][-1]
    assert data["file"] == "people-edited.json"
    assert model_to_json(made)["origin"]["dataset"] == "people"
