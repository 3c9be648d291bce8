"""What many methods have in common, which choice is complete, and what is said to be left out."""

from __future__ import annotations

import math

import pytest

from dprepro.data import SYNTHETIC_PREFIX
from dprepro.judge.blocks import collect_blocks, lacking, largest_complete
from dprepro.results.folder import read_results
from dprepro.runtime.errors import DpreproError
from tests.report.journals import records, write

SCORES = [0.9, 0.8, 0.85]


def journal(folder, name, *groups):
    write(folder, name, [record for group in groups for record in group])


def collected(folder, *names, **options):
    return collect_blocks(read_results(folder), names, **options)


def places(blocks):
    return {(block.dataset, block.epsilon): sorted(block.cells) for block in blocks}


def test_methods_of_one_dataset_and_level_make_a_block(tmp_path):
    journal(tmp_path, "c", *(records(SCORES, n, e) for n in "ab" for e in (0.5, 1.0)))
    blocks, problems = collected(tmp_path, "a", "b", epsilons=[1.0])
    assert places(blocks) == {("adult", 1.0): ["a", "b"]}
    assert blocks[0].splits(["a", "b"]) == (0, 1, 2)
    assert problems == []


def test_a_method_without_privacy_belongs_to_each_level_unless_all_are_meant(tmp_path):
    journal(
        tmp_path, "c",
        *(records(SCORES, n, e) for n in "ab" for e in (0.5, 1.0)),
        *(records(SCORES, n, math.inf) for n in ("x", "y")),
    )  # fmt: skip
    named, _ = collected(tmp_path, "a", "b", "x")
    assert places(named) == {("adult", e): ["a", "b", "x"] for e in (0.5, 1.0)}
    every, _ = collected(tmp_path, "a", "b", "x", "y", is_all=True)
    assert places(every)["adult", math.inf] == ["x", "y"]
    assert places(every)["adult", 1.0] == ["a", "b"]


def test_the_most_methods_with_the_same_splits_stand_together(tmp_path):
    journal(tmp_path, "c", *(records(SCORES, n, 1.0) for n in "ab"))
    journal(tmp_path, "d", records(SCORES, "c", 1.0, seed=7))
    blocks, problems = collected(tmp_path, "a", "b", "c")
    assert places(blocks) == {("adult", 1.0): ["a", "b"]}
    assert "adult: the splits of c are not those of the others" in problems
    assert "c: in no block with another method" in problems


def test_of_several_results_those_of_the_config_with_most_methods_are_taken(tmp_path):
    journal(tmp_path, "many", *(records(SCORES, n, 1.0) for n in "abc"))
    journal(tmp_path, "few", records([0.1] * 9, "a", 1.0, params={"other": 1}))
    blocks, problems = collected(tmp_path, "a", "b", "c")
    assert blocks[0].values("a", (0, 1, 2)) == SCORES
    (said,) = problems
    assert said.startswith("adult: results of the configs few, which have fewer")


def test_what_could_be_either_is_left_out_and_named(tmp_path):
    journal(
        tmp_path, "c",
        *(records(SCORES, n, 1.0, method="twice") for n in ("one", "two")),
        *(records(SCORES, n, 1.0) for n in "abc"),
    )  # fmt: skip
    blocks, problems = collected(tmp_path, "twice", "a", "b", "c")
    assert places(blocks) == {("adult", 1.0): ["a", "b", "c"]}
    assert "adult: 'twice' is a method with several labels: one, two. Name one of them" in problems


def test_a_metric_that_some_lack_leaves_them_out(tmp_path):
    journal(
        tmp_path, "c",
        *(records(SCORES, n, 1.0) for n in "ab"), records(SCORES, "c", 1.0, "accuracy"),
    )  # fmt: skip
    blocks, problems = collected(tmp_path, "a", "b", "c", metric="auc")
    assert places(blocks) == {("adult", 1.0): ["a", "b"]}
    assert problems[0].startswith("adult: no AUROC of c")


def test_a_method_without_two_splits_in_common_is_left_out(tmp_path):
    journal(tmp_path, "c", *(records(SCORES, n, 1.0) for n in "ab"), records([0.5], "c", 1.0))
    blocks, problems = collected(tmp_path, "a", "b", "c")
    assert places(blocks) == {("adult", 1.0): ["a", "b"]}
    assert any(said.startswith("adult: c: not two finished splits") for said in problems)


def test_stand_ins_do_not_count_beside_real_data(tmp_path):
    fake = {"dataset": "shop", "data_fingerprint": f"{SYNTHETIC_PREFIX}x"}
    journal(
        tmp_path, "c",
        *(records(SCORES, n, 1.0) for n in "ab"), *(records(SCORES, n, 1.0, **fake) for n in "ab"),
    )  # fmt: skip
    blocks, problems = collected(tmp_path, "a", "b")
    assert [block.dataset for block in blocks] == ["adult"]
    assert problems == ["shop: SYNTHETIC data, a random stand-in"]


def test_an_unknown_name_among_many_is_refused_with_the_nearest(tmp_path):
    journal(tmp_path, "c", *(records(SCORES, n, 1.0) for n in ("alpha", "beta", "gamma")))
    with pytest.raises(DpreproError, match="'gama'; did you mean 'gamma'"):
        collected(tmp_path, "alpha", "beta", "gama")


def incomplete(folder, **held):
    """Return blocks at one level: by dataset, a letter for each method that has results."""
    groups = [
        records(SCORES, name, 1.0, dataset=dataset)
        for dataset, names in held.items()
        for name in names
    ]
    journal(folder, "c", *groups)
    return collected(folder, *sorted(set("".join(held.values()))))[0]


def test_the_largest_complete_set_has_the_most_degrees_of_freedom(tmp_path):
    blocks = incomplete(tmp_path, one="abcd", two="abc", three="abc", four="ab")
    names, kept = largest_complete(blocks)
    assert names == ("a", "b", "c")  # 2 x 2 degrees of freedom; all four methods would have none
    assert [block.dataset for block in kept] == ["one", "two", "three"]
    assert list(lacking(names, kept, blocks)) == [
        "d, without results on two, three",
        "four, without results of c",
    ]


def test_of_equally_large_sets_more_methods_are_kept(tmp_path):
    names, kept = largest_complete(incomplete(tmp_path, one="abcd", two="abcd", three="abc"))
    assert (len(names), len(kept)) == (3, 3)  # 4 degrees of freedom, not 3
    held = dict.fromkeys(("one", "two", "three"), "abcde") | {"four": "abc", "five": "abc"}
    names, kept = largest_complete(incomplete(tmp_path / "x", **held))
    assert (len(names), len(kept)) == (5, 3)  # both have 8


def test_of_one_dataset_all_its_methods_are_kept_and_two_are_too_few(tmp_path):
    assert largest_complete(incomplete(tmp_path, one="abcd", two="ab"))[0] == tuple("abcd")
    assert largest_complete(incomplete(tmp_path / "x", one="ab", two="ab")) == ((), [])
