"""`dprepro.compare` has the numbers of `dprepro compare`, in frames."""

from __future__ import annotations

import csv
import io
import json
import math

import pandas as pd
import pytest
from typer.testing import CliRunner

from dprepro import DpreproError, compare
from dprepro.cli import app
from dprepro.data import PRIVATE_PREFIX
from dprepro.report import compared
from tests.report.journals import records, write

THREE = ("dp-ebm-gdp", "dp-ebm-sound", "dpboost-sound")
TWO = ("dp-ebm-plus", "dp-ebm-gdp")
COLUMNS = {
    "pairs": compared.PAIR_COLUMNS,
    "over_datasets": compared.OVER_COLUMNS,
    "ranks": compared.RANK_COLUMNS,
    "friedman": compared.FRIEDMAN_COLUMNS,
    "wins": compared.WIN_COLUMNS,
    "splits": compared.SPLIT_COLUMNS,
}


def printed(*arguments, format):
    given = ["compare", *map(str, arguments), "--format", format]
    outcome = CliRunner().invoke(app, given)
    assert outcome.exit_code == 0, outcome.exception
    return outcome.stdout


def same(ours, theirs):
    """Whether a value of a frame is that of a cell of CSV, or of JSON."""
    if pd.isna(ours) or ours is None:
        return theirs in ("", None)
    if isinstance(ours, str | bool):
        return str(ours) == str(theirs)
    return float(ours) == float(theirs)


@pytest.fixture(scope="module")
def many():
    return compare(*THREE, results="shipped", epsilons=[1, 2])


@pytest.fixture(scope="module")
def said():
    levels = ("--epsilon", 1, "--epsilon", 2)
    return json.loads(printed(*THREE, *levels, "--results", "shipped", format="json"))


@pytest.fixture(scope="module")
def two():
    return compare(*TWO, results="shipped")


@pytest.mark.parametrize("name", COLUMNS)
def test_frames_have_the_same_columns_and_dtypes_of_two_and_of_many(many, two, name):
    frames = {"many": many, "two": two}
    for kind, found in frames.items():
        frame = getattr(found, name)
        assert {c: str(dtype) for c, dtype in frame.dtypes.items()} == COLUMNS[name], kind
        assert len(frame) or (kind, name) == ("two", "friedman")


def test_pairs_of_many_are_those_of_csv(many):
    levels = ("--epsilon", 1, "--epsilon", 2)
    text = printed(*THREE, *levels, "--results", "shipped", format="csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    names = {"levels": "epsilon", "splits": "number", "datasets": "number"}
    for frame, there in (
        (many.pairs, [row for row in rows if row["dataset"]]),
        (many.over_datasets, [row for row in rows if not row["dataset"]]),
    ):
        shared = [c for c in frame if names.get(c, c) in rows[0] and c != "epsilon"]
        assert {*shared} >= {"levels", "first", "difference_in_margins", "p_holm", "ci_low", "won"}
        assert len(frame) == len(there) > 0
        for ours, theirs in zip(frame.to_dict("records"), there, strict=True):
            for column in shared:
                assert same(ours[column], theirs[names.get(column, column)]), (column, ours)
    assert many.pairs["sd"].notna().all()


def test_ranks_friedman_and_wins_are_those_of_json(many, said):
    assert len(said["rankings"]) == 3
    assert many.methods == tuple(said["rankings"][-1]["mean_ranks"])
    for ranking in said["rankings"]:
        levels = " ".join(f"{epsilon:g}" for epsilon in ranking["epsilons"])
        own = {
            name: frame[frame["levels"] == levels]
            for name, frame in (("ranks", many.ranks), ("f", many.friedman), ("w", many.wins))
        }
        ranks = own["ranks"].set_index("method")
        assert ranks["rank"].to_dict() == ranking["mean_ranks"]
        assert set(ranks["datasets"]) == {len(ranking["datasets"])}
        (test,) = own["f"].to_dict("records")
        assert {name: test[name] for name in ranking["friedman"]} == ranking["friedman"]
        for row in own["w"].to_dict("records"):
            assert row["share"] == ranking["win_rates"][row["method"]][row["other"]]
        for group in ranking["groups"]:
            letters = [set(ranks["groups"][method]) for method in group]
            assert set.intersection(*letters)
    assert math.isnan(many.ranks["epsilon"].iloc[-1])
    assert set(many.ranks["epsilon"].dropna()) == {1.0, 2.0}


def test_two_methods_have_the_numbers_of_csv_and_json(two):
    rows = list(csv.DictReader(io.StringIO(printed(*TWO, "--results", "shipped", format="csv"))))
    shared = [column for column in two.pairs if column in rows[0]]
    assert {*shared} >= {"mean_first", "difference", "sd", "ci_high", "p", "p_holm", "better"}
    for ours, theirs in zip(two.pairs.to_dict("records"), rows, strict=True):
        assert all(same(ours[column], theirs[column]) for column in shared), ours
        assert same(ours["epsilon"], theirs["epsilon_first"])
    said = json.loads(printed(*TWO, "--results", "shipped", format="json"))
    for ours, theirs in zip(
        two.over_datasets.to_dict("records"), said["across_datasets"], strict=True
    ):
        names = {"p": "p_wilcoxon"}
        shared = [c for c in ours if names.get(c, c) in theirs]
        assert {"epsilon", "p_sign", "won", "tied", "lost", "p"} == {*shared}
        assert all(same(ours[c], theirs[names.get(c, c)]) for c in shared), ours
    assert two.left_out == tuple(said["left_out"])
    assert set(two.notes) < set(said["notes"])
    one = two.wins[two.wins["epsilon"] == 1.0].set_index("method")
    assert one["share"].to_dict() == {"dp-ebm-plus": 1.0, "dp-ebm-gdp": 0.0}
    ranks = two.ranks[two.ranks["epsilon"] == 1.0]
    assert ranks["method"].tolist() == ["dp-ebm-plus", "dp-ebm-gdp"]
    assert ranks["rank"].tolist() == [1.0, 2.0]


def test_margins_of_two_are_those_of_many(many):
    pair = compare("dp-ebm-sound", "dp-ebm-gdp", results="shipped", epsilons=[1, 2])
    keys = ["dataset", "epsilon", "first", "second"]
    shared = pair.pairs.merge(many.pairs, on=keys, suffixes=("", "_many"))
    shared = shared[shared["splits"] == shared["splits_many"]]
    assert len(shared) > 10
    for column in ("difference_in_margins", "difference", "rank_first", "rank_second"):
        assert shared[column].tolist() == pytest.approx(shared[f"{column}_many"].tolist()), column


def test_splits_add_up_to_the_means(many, two):
    for found in (many, two):
        keys = ["dataset", "levels", "method"]
        means = found.splits.groupby(keys)["value"].mean()
        for row in found.pairs.to_dict("records"):
            for side in ("first", "second"):
                at = (row["dataset"], row["levels"], row[side])
                assert means[at] == pytest.approx(row[f"mean_{side}"])


def test_reprs_are_short_and_a_notebook_shows_tables(many, two):
    assert repr(two).startswith("Comparison(dp-ebm-plus minus dp-ebm-gdp: ")
    assert repr(many).startswith("Comparison(epsilons 1, 2, 10 datasets; mean ranks: ")
    assert "pairs shown to differ)" in repr(many)
    for found in (many, two):
        assert len(repr(found)) < 200
        page = found._repr_html_()
        assert page.count("<table") == 2
        assert 1000 < len(page) < 30_000
        assert all(sentence.split(":")[0] in page for sentence in found.summary)


def write_three(folder, **fields):
    lines = [[0.92, 0.93, 0.9], [0.9, 0.9, 0.88], [0.95, 0.97, 0.92]]
    found = [records(v, m, 1.0, **fields) for m, v in zip("abc", lines, strict=True)]
    write(folder, "x", [record for one in found for record in one])


def test_without_names_all_methods_are_compared(tmp_path):
    write_three(tmp_path)
    found = compare(results=tmp_path)
    assert found.methods == ("c", "a", "b")
    assert len(found.pairs) == 3
    assert found.over_datasets.empty
    assert found.ranks["groups"].tolist() != [None] * 3
    assert "<table" in found._repr_html_()
    two = compare("a", "b", results=tmp_path)
    assert two.over_datasets.empty
    assert two.ranks["rank"].tolist() == [1.0, 2.0]


def test_private_and_odd_names_are_told_and_escaped(tmp_path):
    write_three(tmp_path, dataset="a<b", data_fingerprint=f"{PRIVATE_PREFIX}x")
    page = compare("a", "b", "c", results=tmp_path)._repr_html_()
    assert "PRIVATE rows, exact scores that are not for release" in page
    assert "a<b" not in page
    assert "a&lt;b" in page


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a"], "one method, 'a', to compare: name two or more"),
        (["a", "a"], "name two different ones"),
        (["a", "b", "a"], "a named more than once"),
        (["a", "d"], "no finished results of 'd'"),
    ],
)
def test_mistakes_say_what_to_do(tmp_path, names, message):
    write_three(tmp_path)
    with pytest.raises(DpreproError, match=message):
        compare(*names, results=tmp_path)
