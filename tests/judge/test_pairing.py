"""Which results belong together, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dprepro.judge.comparing import pair_results
from dprepro.results.folder import read_results
from dprepro.runtime.errors import DpreproError
from tests.report.journals import records, write

A, B = "dp-ebm-plus", "dp-ebm-gdp"
THREE = [0.9, 0.8, 0.85]


def results(folder, **journals):
    for name, groups in journals.items():
        write(folder, name, [record for group in groups for record in group])
    return read_results(folder)


def pairs(folder, *options, **journals):
    return pair_results(results(folder, **journals), A, B, *options)


def test_missing_splits_leave_those_that_both_have(tmp_path):
    ours = records(THREE, A, 1.0)
    ours[1] = replace(ours[1], status="failed", metrics={}, message="boom")
    found = pairs(tmp_path, c=[ours, records([0.1, 0.2, 0.3, 0.4], B, 1.0)])
    (pair,) = found.pairs
    assert pair.splits == (0, 2)
    assert pair.values == [(0.9, 0.1), (0.85, 0.3)]


def test_methods_may_be_named_by_label_or_by_method(tmp_path):
    found = results(
        tmp_path,
        c=[records(THREE, "mine", 1.0, method=A), records(THREE, "b 1", 1.0, method=B)],
    )
    assert pair_results(found, "mine", B).pairs == pair_results(found, A, "b 1").pairs


def test_a_method_without_privacy_meets_every_level(tmp_path):
    found = pairs(
        tmp_path,
        c=[records(THREE, A, math.inf), records(THREE, B, 1.0), records(THREE, B, 8.0)],
    )
    assert [pair.epsilon for pair in found.pairs] == [1.0, 8.0]
    assert found.left_out == ()
    (alone,) = pair_results(results(tmp_path), A, B, None, [8.0]).pairs
    assert alone.epsilon == 8.0


def test_levels_of_only_one_method_are_named(tmp_path):
    found = pairs(
        tmp_path,
        c=[records(THREE, A, 1.0), records(THREE, A, 4.0), records(THREE, B, 1.0)],
    )
    assert [pair.epsilon for pair in found.pairs] == [1.0]
    assert found.left_out == (f"adult: only {A} has results at epsilon 4",)


def failed(label, dataset):
    found = records(THREE, label, 1.0, dataset=dataset)
    return [replace(r, status="failed", metrics={}, message="boom") for r in found]


def test_a_dataset_on_which_one_method_failed_is_named(tmp_path):
    lost = [records(THREE, A, 1.0, dataset="telco"), failed(B, "telco")]
    both = [records(THREE, A, 1.0), records(THREE, B, 1.0)]
    found = pairs(tmp_path, c=[*both, *lost])
    assert [pair.dataset for pair in found.pairs] == ["adult"]
    assert found.left_out == (f"telco: no fit of {B} finished (3 failed)",)
    # Nobody tried the second on this one.
    alone = records(THREE, A, 1.0, dataset="credit")
    assert pairs(tmp_path, c=[*both, alone]).left_out == ()
    with pytest.raises(DpreproError, match=rf"no fit of {B} finished \(3 failed\)"):
        pairs(tmp_path, c=[both[0], *lost, records(THREE, B, 1.0, dataset="pol")])


def test_results_of_one_config_go_together(tmp_path):
    found = pairs(
        tmp_path,
        one=[records(THREE, A, 1.0), records(THREE, B, 1.0)],
        two=[records(THREE, B, 1.0, domain="public")],
    )
    (pair,) = found.pairs
    assert pair.second.journals == ("one",)


def test_two_configs_with_the_same_splits_do_as_well(tmp_path):
    found = pairs(
        tmp_path,
        one=[records(THREE, A, 1.0, seed=None)],
        two=[records(THREE, B, 1.0, seed=0, domain="public")],  # a null seed: splits of seed 0
    )
    (pair,) = found.pairs
    assert (pair.first.journals, pair.second.journals) == (("one",), ("two",))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"seed": 2}, r"adult: the splits are not the same: seed differs \(1 and 2\)"),
        ({"test_share": 0.3}, r"test_share differs \(0.2 and 0.3\)"),
        ({"test_share": 0.2, "evaluation": "folds"}, r"evaluation differs \(random and folds\)"),
        ({"data_fingerprint": "other", "dataset": "shop"}, "The rows of shop differ"),
    ],
)
def test_other_splits_are_refused_with_what_differs(tmp_path, keys, message):
    dataset = {"dataset": keys.get("dataset", "adult")}
    with pytest.raises(DpreproError, match=message):
        pairs(
            tmp_path,
            one=[records(THREE, A, 1.0, **dataset)],
            two=[records(THREE, B, 1.0, **keys)],
        )


def test_a_dataset_with_other_splits_is_left_out_by_name(tmp_path):
    found = pairs(
        tmp_path,
        one=[records(THREE, A, 1.0), records(THREE, A, 1.0, dataset="telco")],
        two=[records(THREE, B, 1.0), records(THREE, B, 1.0, dataset="telco", seed=3)],
    )
    assert [pair.dataset for pair in found.pairs] == ["adult"]
    (note,) = found.left_out
    assert note.startswith("telco: the splits are not the same: seed differs (1 and 3)")


@pytest.mark.parametrize("splits", [1, 0])
def test_a_single_split_is_refused(tmp_path, splits):
    theirs = records(THREE, B, 1.0)[: splits or None]
    if not splits:
        theirs = [replace(r, task=replace(r.task, split=r.task.split + 3)) for r in theirs]
    with pytest.raises(DpreproError, match=r"(one|no) split in common.* at least two"):
        pairs(tmp_path, c=[records(THREE, A, 1.0), theirs])


def test_unknown_and_equal_names_are_refused(tmp_path):
    found = results(tmp_path, c=[records(THREE, A, 1.0), records(THREE, B, 1.0)])
    with pytest.raises(DpreproError, match="'dp-ebm-pluss'; did you mean 'dp-ebm-plus'"):
        pair_results(found, "dp-ebm-pluss", B)
    with pytest.raises(DpreproError, match="name two different ones"):
        pair_results(found, A, A)


def test_no_dataset_and_no_level_in_common_are_refused(tmp_path):
    groups = [records(THREE, A, 1.0), records(THREE, B, 1.0, dataset="telco")]
    with pytest.raises(DpreproError, match=r"no dataset in common. dp-ebm-plus: adult. dp-ebm-gdp"):
        pairs(tmp_path, c=groups)
    with pytest.raises(DpreproError, match=r"no privacy level .*-plus has results at: epsilon 1\."):
        pairs(tmp_path, c=[records(THREE, A, 1.0), records(THREE, B, 2.0)])
    with pytest.raises(DpreproError, match=r"asked for \(epsilon 4\)\. .* has .*: epsilon 1\."):
        pairs(tmp_path, None, [4.0], c=[records(THREE, A, 1.0), records(THREE, B, 1.0)])


def test_several_settings_are_refused_with_the_choice(tmp_path):
    two = [records(THREE, A, 1.0), records(THREE, B, 1.0, domain="public")]
    with pytest.raises(DpreproError, match=r"of the configs one, two. Choose by"):
        pairs(tmp_path, one=[records(THREE, A, 1.0), records(THREE, B, 1.0)], two=two)
    labels = [records(THREE, f"b {i}", 1.0, method=B, params={"i": i}) for i in range(2)]
    with pytest.raises(DpreproError, match="'dp-ebm-gdp' is a method with several labels on adult"):
        pair_results(results(tmp_path / "x", c=[records(THREE, A, 1.0), *labels]), A, B)


def test_of_several_results_those_with_the_most_splits_count(tmp_path):
    few = [records(THREE[:2], A, 1.0, seed=3), records(THREE[:2], B, 1.0, seed=3)]
    many = [records(THREE, A, 1.0), records(THREE, B, 1.0)]
    for order in ({"few": few, "many": many}, {"many": many, "other": few}):
        found = pair_results(
            results(tmp_path / str(len(order["many"])) / next(iter(order)), **order), A, B
        )
        (pair,) = found.pairs
        assert len(pair.splits) == 3
        (said,) = found.left_out
        assert "fewer splits; choose them by --config" in said
        assert "many" not in said


def test_a_metric_that_one_lacks_is_refused_with_the_reason(tmp_path):
    both = [replace(r, metrics={**r.metrics, "f1": 0.5}) for r in records(THREE, A, 1.0)]
    old = records(THREE, B, 1.0)
    with pytest.raises(DpreproError, match=r"dp-ebm-gdp: no F1. .*`metrics: \[f1\]`.*dprepro run"):
        pairs(tmp_path, "f1", c=[both, old])
    none = [replace(r, absent={"f1": "no labels"}) for r in old]
    with pytest.raises(DpreproError, match=r"dp-ebm-gdp: no F1. no labels"):
        pairs(tmp_path, "f1", c=[both, none])
    with pytest.raises(DpreproError, match="unknown metric"):
        pairs(tmp_path, "f9", c=[both, old])


def test_the_metric_is_the_first_that_both_have(tmp_path):
    ours = [replace(r, metrics={"accuracy": 0.5, "auc": 0.9}) for r in records(THREE, A, 1.0)]
    theirs = [replace(r, metrics={"accuracy": 0.6}) for r in records(THREE, B, 1.0)]
    (pair,) = pairs(tmp_path, c=[ours, theirs]).pairs
    assert pair.metric.name == "accuracy"
    with pytest.raises(DpreproError, match="dp-ebm-gdp: no AUROC"):
        pair_results(results(tmp_path), A, B, "roc_auc")  # scikit-learn's name


def test_what_is_the_same_everywhere_is_said_once(tmp_path):
    groups = [
        records(THREE, label, epsilon, dataset=dataset)
        for label in (A, B)
        for epsilon in (1.0, 4.0)
        for dataset in ("adult", "telco")
    ]
    with pytest.raises(DpreproError) as caught:
        pairs(tmp_path, "f1", c=groups)
    (line,) = str(caught.value).splitlines()
    assert line.startswith("adult (epsilon 1, 4), telco (epsilon 1, 4): dp-ebm-plus and dp-ebm-gdp")


def test_a_published_test_set_is_the_same_whatever_the_seeds(tmp_path):
    fixed = {"evaluation": "test-set", "test_share": 0.0}
    found = pairs(
        tmp_path,
        one=[records(THREE, A, 1.0, **fixed)],
        two=[records(THREE, B, 1.0, seed=9, **fixed)],
    )
    assert len(found.pairs) == 1


def test_a_dataset_without_a_shared_level_is_left_out_by_name(tmp_path):
    telco = {"dataset": "telco"}
    found = pairs(
        tmp_path,
        c=[
            *(records(THREE, label, 1.0) for label in (A, B)),
            records(THREE, A, 1.0, **telco),
            records(THREE, B, 4.0, **telco),
        ],
    )
    assert [pair.dataset for pair in found.pairs] == ["adult"]
    assert found.left_out == (
        f"telco: only {A} has results at epsilon 1",
        f"telco: only {B} has results at epsilon 4",
    )
