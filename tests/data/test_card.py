from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dprepro.data import SYNTHETIC_PREFIX
from dprepro.data.card import Card, card_names, load_card
from dprepro.data.card_parts import BudgetLimit, Source
from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.runtime.errors import DpreproError

FEATURES: dict[str, Any] = {"age": {"numeric": [0, 100]}, "colour": {"categories": ["red", "blue"]}}

NUMBERS: dict[str, Any] = {"task": "regression"}
CLASSES: dict[str, Any] = {"task": "multiclass"}
SHAPE = {"rows": 9, "numeric": 0, "binary": 2, "positives": 3}


def problem(write_card: Callable[..., Path], changes: dict[str, Any], **kwargs: Any) -> str:
    with pytest.raises(DpreproError) as caught:
        load_card(write_card(changes, **kwargs))
    return str(caught.value)


def test_built_in_cards_are_named_as_their_files() -> None:
    assert {"adult", "breast-cancer", "credit", "telco"} <= set(card_names())
    assert [load_card(name).name for name in card_names()] == card_names()


def test_unknown_name_says_what_there_is_and_the_nearest() -> None:
    with pytest.raises(DpreproError, match=r"Allowed: abalone, .* and \d+ more") as told:
        load_card("adlut")
    assert "'adlut'; did you mean 'adult'?" in str(told.value)


def test_a_path_that_is_not_there_is_named_as_a_path() -> None:
    with pytest.raises(DpreproError, match=r"no dataset card at my/card.yaml"):
        load_card("my/card.yaml")


def test_a_path_wins_over_a_name(
    write_card: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_card({"name": "mine"})
    path.rename(path.with_name("adult"))
    monkeypatch.chdir(path.parent)
    assert load_card("adult").name == "mine"


def test_a_folder_of_the_same_name_does_not_hide_a_built_in_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "adult").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_card("adult").name == "adult"


def test_the_shortest_card(make_card: Callable[..., Card], tmp_path: Path) -> None:
    card = make_card()
    assert [source.file for source in card.sources] == ["toy.csv"]
    assert card.features is None
    assert card.folder == tmp_path / "cards"


def test_a_misspelt_key_names_file_line_and_nearest(write_card: Callable[..., Path]) -> None:
    message = problem(write_card, {"positiv": "yes"}, without=("positive",))
    assert "toy.yaml, line" in message
    assert "unknown key; did you mean 'positive'?" in message


def test_a_misspelt_value_lists_the_allowed_ones(write_card: Callable[..., Path]) -> None:
    message = problem(write_card, {"task": "binari"})
    assert "given 'binari'; did you mean 'binary'?" in message
    assert "multiclass" in message
    assert "regression" in message


@pytest.mark.parametrize(
    ("changes", "without", "says"),
    [
        ({}, ("positive",), "needs `positive`"),
        ({}, ("file",), "give `file: path.csv` or a list of `sources`"),
        ({"task": "regression"}, (), "`positive` is for binary tasks"),
        ({"labels": ["no", "maybe"]}, (), "'yes' is not one of"),
        ({"labels": ["no", "maybe", "yes"]}, (), "two labels"),
        ({"target_bounds": [0, 1]}, (), "`target_bounds` is for regression"),
        ({**CLASSES, "features": {"x": {"numeric": [0, 1]}}}, ("positive",), "needs `labels`"),
        *(
            ({**NUMBERS, "target_bounds": bounds}, ("positive",), "finite with lower < upper")
            for bounds in ([1, 1], [2, 1], [0, "inf"])
        ),
        ({**CLASSES, "features": {}}, ("positive",), "needs `labels`"),
        ({**CLASSES, "labels": []}, ("positive",), "two or more different labels, given []"),
        ({**CLASSES, "labels": ["a", "b", "a"]}, ("positive",), "two or more different labels"),
        ({"task": "regression", "features": FEATURES}, ("positive",), "needs `target_bounds"),
        ({"task": "regression", "labels": ["a"]}, ("positive",), "`labels` is for classification"),
        ({"features": FEATURES, "drop": ["age"]}, (), "both `features` and `drop`"),
        ({"features": {"y": {"numeric": [0, 1]}}}, (), "both `features` and `target`"),
        ({"features": FEATURES, "fill": {"agee": "0"}}, (), "did you mean 'age'?"),
        ({"features": {"age": {}}}, (), "either `numeric"),
        ({"features": {"age": {"numeric": [2, 1]}}}, (), "lower <= upper"),
        ({"features": {"c": {"categories": ["a", "a"]}}}, (), "categories repeat"),
        ({"unit": "who"}, (), "give both `unit`"),
        ({"rows_per_unit": 2}, (), "give both `unit`"),
        ({"unit": "who", "rows_per_unit": 0}, (), "rows_per_unit"),
        ({"unit_title": "one of\nthem"}, (), "unit_title"),
        ({"unit_title": "p" * 41}, (), "unit_title"),
        ({"unit": "who", "rows_per_unit": "two"}, (), "rows_per_unit"),
        ({"unit": "who", "rows_per_unit": 10**7}, (), "rows_per_unit"),
        ({"unit": "y", "rows_per_unit": 2}, (), "is the `unit` and under `target`"),
        ({"unit": "age", "rows_per_unit": 2, "features": FEATURES}, (), "under `features`"),
        ({"unit": "who", "rows_per_unit": 2, "drop": ["who"]}, (), "under `drop`"),
        ({"unit": "row", "rows_per_unit": 1}, (), "without it the unit is the row"),
        ({"unit": "who", "rows_per_unit": 1, "sources": [{"sklearn": "wine"}]}, (), "for files"),
        ({"relabel": {"maybe": "yes"}}, (), "`relabel` maps to 'yes', which is not one of"),
        (
            {
                "labels": ["no", "yes"],
                "relabel": {"maybe": "yes"},
                "test": {"sources": [{"file": "a"}], "labels": ["n", "y"]},
            },
            (),
            "`test` has `labels` of its own",
        ),
        (
            {**CLASSES, "test": {"sources": [{"file": "a"}]}},
            ("positive",),
            "`test` needs `labels`",
        ),
        ({"format": {"header": False}}, (), "`columns` must name"),
        ({"format": {"decimal": ",", "thousands": ","}}, (), "cannot have one mark for two"),
        ({"format": {"header": False, "columns": ["a", " a"]}}, (), "`columns` names 'a' twice"),
        ({"format": {"separator": "§"}}, (), "`separator` must be one ASCII character"),
        ({"format": {"separator": '"'}}, (), "`separator` must be one ASCII character"),
        ({"format": {"separator": "\n"}}, (), "`separator` must be one ASCII character"),
        ({"format": {"separator": ";;"}}, (), "at most 1 character; given ';;'"),
        ({"format": {"encoding": "latin-one"}}, (), "'latin-one' is no encoding of text files"),
        ({"format": {"encoding": "latin1x"}}, (), "did you mean 'latin1'?"),
        ({"format": {"encoding": ""}}, (), "'' is no encoding of text files"),
        ({"format": {"encoding": "a\0b"}}, (), "is no encoding of text files"),
        ({"format": {"encoding": "base64"}}, (), "'base64' is no encoding of text files"),
        ({"format": {"encoding": "punycode"}}, (), "'punycode' is no encoding of text files"),
        ({"format": {"encoding": "undefined"}}, (), "'undefined' is no encoding of text files"),
        (
            {"sources": [{"file": "a", "format": {"separator": "§"}}]},
            (),
            "sources[0].format.separator: `sep",
        ),
        ({"sources": [{"file": "a", "openml": 1}]}, (), "found file, openml"),
        ({"sources": [{"sha256": "0" * 64}]}, (), "found none of them"),
        ({"sources": [{"openml": 1, "member": "a"}]}, (), "`member` is for archives"),
        ({"sources": [{"sklearn": "iris", "sha256": "0" * 64}]}, (), "no file to check"),
        ({"sources": [{"sklearn": "irises"}]}, (), "did you mean 'iris'?"),
        ({"sources": [{"http": "ftp://example.org/a"}]}, (), "ftp://example.org/a"),
        ({"sources": [{"file": "a", "sha256": "abc"}]}, (), "sources[0].sha256"),
        ({"sources": [{"pool": [{"file": "a"}]}]}, (), "two sources or more"),
        (
            {"sources": [{"pool": [{"file": "a"}, {"sklearn": "iris"}]}]},
            (),
            "`pool` lists file, http and openml sources",
        ),
        (
            {"sources": [{"pool": [{"file": "a"}, {"fil": "b"}]}]},
            (),
            "unknown key; did you mean 'file'?",
        ),
        ({"sources": [{"synthetic": {**SHAPE, "positives": 9}}]}, (), "fewer than the 9 `rows`"),
        ({"sources": [{"synthetic": {**SHAPE, "binary": 0}}]}, (), "needs features"),
        (
            {"sources": [{"file": "a"}, {"synthetic": SHAPE}]},
            (),
            "needs `task: binary` and two `labels`",
        ),
        (
            {"sources": [{"http": "https://example.org/a"}, {"synthetic": SHAPE}]},
            (),
            "only `file` sources can come before",
        ),
        ({"sources": [{"synthetic": SHAPE}, {"file": "a"}]}, (), "and none after"),
        (
            {"task": "multiclass", "labels": ["a", "b"], "sources": [{"synthetic": SHAPE}]},
            ("positive",),
            "needs `task: binary`",
        ),
        ({"name": "../toy"}, (), "given '../toy'"),
        ({"distinct": {}}, (), "`distinct` is for public rows"),
        (
            {
                "distinct": {"but_for": ["who"]},
                "unit": "who",
                "rows_per_unit": 1,
                "expect": {"values_sha256": "0" * 64},
            },
            (),
            "`distinct` and `unit` exclude each other",
        ),
    ],
)
def test_a_card_that_contradicts_itself_says_where(
    write_card: Callable[..., Path], changes: dict[str, Any], without: tuple[str, ...], says: str
) -> None:
    message = problem(write_card, changes, without=without)
    assert says in message
    assert "toy.yaml" in message


def test_features_keep_their_order_and_kind(make_card: Callable[..., Card]) -> None:
    features = make_card({"features": FEATURES}).features or {}
    assert [feature.named(name) for name, feature in features.items()] == [
        NumericFeature("age", 0.0, 100.0),
        CategoricalFeature("colour", ("red", "blue")),
    ]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ({"file": "a.csv"}, "csv"),
        ({"file": "A.DATA"}, "csv"),
        ({"file": "a.zip", "member": "a.arff"}, "arff"),
        ({"http": "https://example.org/get/a.parquet?download=1"}, "parquet"),
        ({"openml": 5}, "arff"),
        ({"file": "a.bin", "format": {"kind": "parquet"}}, "parquet"),
    ],
)
def test_the_suffix_tells_the_format(
    make_card: Callable[..., Card], source: dict[str, Any], kind: str
) -> None:
    card = make_card({"sources": [source]})
    assert card.format_of(card.sources[0]).kind == kind


def test_an_unknown_suffix_asks_for_the_format(make_card: Callable[..., Card]) -> None:
    with pytest.raises(DpreproError, match=r"format of 'a.bin' by its suffix; add `format"):
        make_card().format_of(Source(file="a.bin"))


def test_fingerprint_ignores_prose_and_the_order_of_sources(
    make_card: Callable[..., Card],
) -> None:
    expect = {"values_sha256": "0" * 64}
    plain = make_card({"expect": expect}).fingerprint()
    prose = {"title": "T", "licence": "L", "citation": "C", "domain_note": "D", "url": "U"}
    assert make_card({"expect": expect, **prose}).fingerprint() == plain
    sources = [{"openml": 3}, {"file": "toy.csv"}]
    assert make_card({"expect": expect, "sources": sources}).fingerprint() == plain


@pytest.mark.parametrize(
    "changes",
    [
        {"target": "z"},
        {"positive": "no"},
        {"labels": ["no", "yes"]},
        {"drop": ["age"]},
        {"missing": ["-"]},
        {"distinct": {}},
        {"distinct": {"but_for": ["age"]}},
        {"complete": True},
        {"fill": {"age": "0"}},
        {"features": FEATURES},
        {"expect": {"values_sha256": "1" * 64}},
    ],
)
def test_fingerprint_changes_with_all_that_determines_values(
    make_card: Callable[..., Card], changes: dict[str, Any]
) -> None:
    base = {"expect": {"values_sha256": "0" * 64}}
    assert make_card({**base, **changes}).fingerprint() != make_card(base).fingerprint()


def test_a_unit_of_measure_is_kept_and_determines_no_value(make_card: Callable[..., Card]) -> None:
    measured = {**FEATURES, "age": {"numeric": [0, 100], "measured_in": " years "}}
    card = make_card({"features": measured})
    assert card.measured_in == {"age": "years"}
    assert card.fingerprint() == make_card({"features": FEATURES}).fingerprint()
    assert make_card({}).measured_in == {}


@pytest.mark.parametrize("unit", ["", "  ", "x" * 101])
def test_a_unit_of_measure_is_a_short_text(write_card: Callable[..., Path], unit: Any) -> None:
    wrong = {"age": {"numeric": [0, 100], "measured_in": unit}}
    assert "measured_in" in problem(write_card, {"features": wrong})


def test_fingerprint_changes_with_bounds_and_the_order_of_columns(
    make_card: Callable[..., Card],
) -> None:
    wider = {**FEATURES, "age": {"numeric": [0, 200]}}
    swapped = dict(reversed(FEATURES.items()))
    prints = {make_card({"features": f}).fingerprint() for f in (FEATURES, wider, swapped)}
    assert len(prints) == 3


def test_without_a_checksum_the_bytes_of_the_file_count(
    make_card: Callable[..., Card], tmp_path: Path, toy_csv: bytes
) -> None:
    card = make_card()
    absent = card.fingerprint()
    (tmp_path / "cards" / "toy.csv").write_bytes(toy_csv)
    whole = card.fingerprint()
    (tmp_path / "cards" / "toy.csv").write_bytes(toy_csv + b"9,red,no\n")
    assert len({absent, whole, card.fingerprint()}) == 3


def test_the_fingerprint_says_that_data_are_synthetic_until_the_file_is_there(
    make_card: Callable[..., Card], tmp_path: Path, toy_csv: bytes
) -> None:
    labels = ["no", "yes"]
    card = make_card({"labels": labels, "sources": [{"file": "toy.csv"}, {"synthetic": SHAPE}]})
    assert card.fingerprint().startswith(SYNTHETIC_PREFIX)
    other = {**SHAPE, "seed": 5}
    reseeded = make_card({"labels": labels, "sources": [{"file": "toy.csv"}, {"synthetic": other}]})
    assert reseeded.fingerprint() != card.fingerprint()
    (tmp_path / "cards" / "toy.csv").write_bytes(toy_csv)
    assert not card.fingerprint().startswith(SYNTHETIC_PREFIX)


def test_the_fingerprint_of_a_private_file_is_a_token_that_comes_again(
    make_card: Callable[..., Card], tmp_path: Path, toy_csv: bytes
) -> None:
    card = make_card()
    assert card.fingerprint().endswith("-none")
    path = tmp_path / "cards" / "toy.csv"
    path.write_bytes(toy_csv)
    whole = card.fingerprint()
    path.write_bytes(toy_csv + b"9,red,no\n")
    edited = card.fingerprint()
    path.write_bytes(toy_csv)
    assert card.fingerprint() == whole
    prefix, settings, token = whole.split("-")
    assert (prefix, len(settings), len(token)) == ("private", 16, 16)
    assert edited.startswith(f"private-{settings}-")  # of what the card says, not of the rows
    assert edited != whole
    assert make_card({"drop": ["age"]}).fingerprint().split("-")[2] == token


SHA = "0" * 64


@pytest.mark.parametrize(
    ("changes", "private"),
    [
        ({}, True),
        ({"expect": {"rows": 3}}, True),
        ({"expect": {"values_sha256": SHA}}, False),
        ({"expect": {"values_sha256": SHA}, "private": "true"}, True),
        ({"sources": [{"file": "toy.csv", "sha256": SHA}]}, False),
        ({"sources": [{"file": "toy.csv", "sha256": SHA}], "private": "true"}, True),
        ({"sources": [{"file": "toy.csv", "sha256": SHA}, {"openml": 3}]}, True),
        ({"sources": [{"openml": 3}]}, True),
        ({"sources": [{"sklearn": "iris"}]}, False),
        ({"sources": [{"pool": [{"file": "a.csv", "sha256": SHA}, {"file": "b.csv"}]}]}, True),
        ({"labels": ["no", "yes"], "sources": [{"file": "no.csv"}, {"synthetic": SHAPE}]}, False),
    ],
)
def test_rows_are_public_where_the_card_says_which_they_are(
    make_card: Callable[..., Card], changes: dict[str, Any], private: bool
) -> None:
    card = make_card(changes)
    assert card.is_private() == private
    assert card.fingerprint().startswith("private-") == private


def test_private_test_rows_make_the_whole_private(write_card: Callable[..., Path]) -> None:
    test = {"sources": [{"file": "test.csv"}]}
    card = load_card(write_card({"expect": {"values_sha256": SHA}, "test": test}))
    assert not card.is_private()
    assert card.is_private(with_test=True)
    assert "+private-" in card.fingerprint(with_test=True)


def test_no_checksum_of_private_rows_enters_their_fingerprint(
    make_card: Callable[..., Card], tmp_path: Path, toy_csv: bytes
) -> None:
    cards = [
        make_card({"private": "true", "expect": {"values_sha256": digit * 64}}) for digit in "01"
    ]
    (tmp_path / "cards" / "toy.csv").write_bytes(toy_csv)
    found = [card.fingerprint() for card in cards]
    settings, tokens = zip(*(name.rsplit("-", 1) for name in found), strict=True)
    assert len(set(settings)) == 1
    assert len(set(tokens)) == 2


def test_a_seal_tells_whether_two_places_have_the_same_data(
    make_card: Callable[..., Card], tmp_path: Path, toy_csv: bytes
) -> None:
    card = make_card()
    path = tmp_path / "cards" / "toy.csv"
    path.write_bytes(toy_csv)
    seal = card.seal("00" * 32)
    assert card.seal("00" * 32) == seal
    assert card.seal("01" * 32) != seal
    assert make_card({"drop": ["age"]}).seal("00" * 32) != seal
    path.write_bytes(toy_csv + b"9,red,no\n")
    assert card.seal("00" * 32) != seal


@pytest.mark.parametrize("others", [[], [{"file": "none.csv", "sha256": SHA}]])
def test_the_bytes_of_a_download_without_a_checksum_count(
    make_card: Callable[..., Card], places: Path, toy_csv: bytes, others: list[dict[str, str]]
) -> None:
    card = make_card({"sources": [*others, {"http": "http://localhost/a/toy.csv"}]})
    assert not card.is_known()
    path = places / "http" / "toy" / "toy.csv"
    path.parent.mkdir(parents=True)
    found = []
    for content in (toy_csv, toy_csv + b"9,red,no\n"):
        path.write_bytes(content)
        assert card.is_known()
        found.append((card.fingerprint(), card.seal("00" * 32)))
    assert not set(found[0]) & set(found[1])
    path.write_bytes(toy_csv)
    assert (card.fingerprint(), card.seal("00" * 32)) == found[0]


def test_only_private_files_without_a_checksum_have_to_be_there(
    make_card: Callable[..., Card], write_card: Callable[..., Path]
) -> None:
    assert not make_card().is_known()
    assert make_card({"sources": [{"file": "toy.csv", "sha256": SHA}]}).is_known()
    assert make_card({"expect": {"values_sha256": SHA}}).is_known()
    assert make_card({"sources": [{"sklearn": "iris"}], "private": "true"}).is_known()
    test = {"sources": [{"file": "test.csv"}]}
    both = load_card(write_card({"expect": {"values_sha256": SHA}, "test": test}))
    assert (both.is_known(), both.is_known(with_test=True)) == (True, False)


def test_without_being_identified_no_private_file_is_read(
    make_card: Callable[..., Card],
    tmp_path: Path,
    toy_csv: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    card = make_card({"test": {"sources": [{"file": "toy.csv"}]}})
    (tmp_path / "cards" / "toy.csv").write_bytes(toy_csv)
    identified = card.fingerprint(with_test=True)
    monkeypatch.setenv("DPREPRO_STATE", "/proc/nope")
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} is read"))
    plain = card.fingerprint(with_test=True, identify=False)
    assert [part[:-5] for part in plain.split("+")] == [
        part.rpartition("-")[0] for part in identified.split("+")
    ]
    assert plain.count("-none") == 2


def test_each_file_of_a_pool_counts_and_so_does_their_order(
    make_card: Callable[..., Card], tmp_path: Path, toy_csv: bytes
) -> None:
    pool = [{"file": "toy.csv"}, {"file": "more.csv"}]
    card = make_card({"sources": [{"pool": pool}]})
    (tmp_path / "cards" / "toy.csv").write_bytes(toy_csv)
    (tmp_path / "cards" / "more.csv").write_bytes(toy_csv + b"9,red,no\n")
    before = card.fingerprint()
    assert make_card({"sources": [{"pool": pool[::-1]}]}).fingerprint() != before
    (tmp_path / "cards" / "more.csv").write_bytes(toy_csv)
    assert card.fingerprint() != before


def test_scikit_learns_data_have_a_fingerprint_without_a_checksum(
    make_card: Callable[..., Card],
) -> None:
    iris, wine = (make_card({"sources": [{"sklearn": name}]}) for name in ("iris", "wine"))
    assert iris.fingerprint() != wine.fingerprint()


def test_the_test_set_is_a_card_of_its_own_with_labels_as_its_file_spells_them() -> None:
    adult = load_card("adult")
    test = adult.test_card
    assert test is not None
    assert (test.name, test.positive, test.labels) == ("adult", ">50K.", ["<=50K.", ">50K."])
    assert (test.test_card, test.features) == (None, adult.features)
    assert adult.fingerprint(with_test=True) == f"{adult.fingerprint()}+{test.fingerprint()}"
    assert load_card("telco").test_card is None


@pytest.mark.parametrize(
    ("labels", "given", "says"),
    [
        (["no", "yes"], ["no."], "pair with those of the card: given 1, and 2 on the card"),
        (["no", "yes"], ["no.", "no."], "different labels, given ['no.', 'no.']"),
        (None, ["no.", "yes."], "the card itself needs `labels`"),
    ],
)
def test_labels_of_a_test_set_must_pair_with_the_cards(
    write_card: Callable[..., Path], labels: list[str] | None, given: list[str], says: str
) -> None:
    changes = {"labels": labels, "test": {"sources": [{"file": "t.csv"}], "labels": given}}
    without = ("labels",) if labels is None else ()
    assert says in problem(write_card, changes, without=without)


def test_a_range_of_names_is_written_out_in_order(make_card: Callable[..., Card]) -> None:
    features = {"age": {"numeric": [0, 1]}, "p{9..11}x": {"numeric": [0, 255]}}
    card = make_card({"features": features})
    assert list(card.features or {}) == ["age", "p9x", "p10x", "p11x"]
    plain = dict.fromkeys(("p9x", "p10x", "p11x"), features["p{9..11}x"])
    same = make_card({"features": {"age": features["age"], **plain}})
    assert same.fingerprint() == card.fingerprint()


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"p{3..1}": {"numeric": [0, 1]}}, "the range must not be decreasing"),
        ({"p2": {"numeric": [0, 1]}, "p{1..3}": {"numeric": [0, 1]}}, "'p2' is described twice"),
    ],
)
def test_ranges_that_make_no_sense_are_refused(
    make_card: Callable[..., Card], features: dict[str, Any], message: str
) -> None:
    with pytest.raises(DpreproError, match=message):
        make_card({"features": features})


@pytest.mark.parametrize("limit", ["{epsilon: 0}", "{epsilon: inf}", "{epsilon: 1, delta: 1}"])
def test_a_budget_limit_that_limits_nothing_is_refused(tmp_path: Path, limit: str) -> None:
    text = "name: a\ntask: regression\nfile: a.csv\ntarget: y\nbudget_limit: "
    path = tmp_path / "card.yaml"
    path.write_text(f"{text}{limit}\n")
    with pytest.raises(DpreproError, match="budget_limit"):
        load_card(path)
    path.write_text(f"{text}{{epsilon: 2, delta: 1e-6}}\n")
    assert load_card(path).budget_limit == BudgetLimit(epsilon=2, delta=1e-6)


def test_reversed_bounds_are_named_by_their_key_alone(write_card: Callable[..., Path]) -> None:
    said = problem(write_card, {"features": {"age": {"numeric": [9, 1]}, "colour": {}}})
    assert "features.age: bounds must be finite with lower <= upper, got [9" in said
    assert "the feature" not in said
