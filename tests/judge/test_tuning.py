import math
import re
from dataclasses import replace

import pytest
import yaml

from dprepro.experiment.config import TunedOn, load_config
from dprepro.judge.tuning import check_tunable, choose_settings, part_of, tuned_config
from dprepro.results.folder import JournalPlan, read_results
from dprepro.runtime.errors import DpreproError
from tests.report.journals import records, spread, write

CONFIG = """\
title: trié
dataset: adult
metric: accuracy
epsilons: [1, 4]
splits: 2
evaluation: folds
methods:
  - method: lazybb-1r
    params: {density: 0.3}
    by_epsilon: {4: {learning_rate: 0.2}}
    grid: {rounds: [5, 9]}
  - {method: boosted-1r, grid: {rounds: [3, 7]}}
  - dp-one-rule
"""
MEANS = {("lazybb-1r", 5, 1.0): 0.8, ("lazybb-1r", 9, 1.0): 0.7, ("lazybb-1r", 5, 4.0): 0.6,
         ("lazybb-1r", 9, 4.0): 0.9, ("boosted-1r", 3, math.inf): 0.5,
         ("boosted-1r", 7, math.inf): 0.5}  # fmt: skip


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "tried.yaml"
    path.write_text(CONFIG)
    return load_config(path)


def results(folder, means=MEANS, splits=2):
    lines = [
        record
        for (method, rounds, epsilon), mean in means.items()
        for record in records(
            spread(mean, 0.01, splits), f"{method} rounds={rounds}", epsilon, "accuracy"
        )
    ]
    write(folder, "tried", lines)
    return read_results(folder, plan_of={"tried": JournalPlan(2, None)}.get)


def test_the_best_setting_wins_at_each_epsilon_and_the_first_of_equals(config, tmp_path):
    found = choose_settings(config, results(tmp_path))
    assert [(c.label, c.epsilon, c.params, c.tried) for c in found] == [
        ("lazybb-1r", 1.0, {"rounds": 5}, 2),
        ("lazybb-1r", 4.0, {"rounds": 9}, 2),
        ("boosted-1r", math.inf, {"rounds": 3}, 2),
    ]


def test_settings_that_differ_in_the_last_bits_of_a_mean_are_equal(config, tmp_path):
    auc = {("lazybb-1r", 5): [0.3, 0.3], ("lazybb-1r", 9): [0.3, 0.1 + 0.2]}
    path = tmp_path / "near"
    lines = [
        record
        for (method, rounds), values in auc.items()
        for epsilon in (1.0, 4.0)
        for record in records(values, f"{method} rounds={rounds}", epsilon, "accuracy")
    ]
    write(path, "tried", lines)
    found = choose_settings(
        part_of(config, ["lazybb-1r"]),
        read_results(path, plan_of={"tried": JournalPlan(2, None)}.get),
    )
    assert [(c.params, c.mean) for c in found] == [({"rounds": 5}, 0.3)] * 2


def test_the_tuned_config_runs_the_winners_and_says_what_is_not_paid(config, tmp_path):
    text = tuned_config(config, choose_settings(config, results(tmp_path)), "adult")
    assert "not covered by epsilon" in text.splitlines()[0]
    path = tmp_path / "tuned.yaml"
    path.write_text(text)
    first, second, third = load_config(path).methods
    assert first.by_epsilon == {1.0: {"rounds": 5}, 4.0: {"learning_rate": 0.2, "rounds": 9}}
    assert (first.params, first.grid) == ({"density": 0.3}, {})
    assert second.params == {"rounds": 3}
    assert third.method == "dp-one-rule"
    assert yaml.safe_load(text)["evaluation"] == "folds"
    assert text.splitlines()[1] == "title: trié"  # as the user wrote it, and first
    assert "rows_per_unit" not in text  # nothing that nobody set


@pytest.mark.parametrize(
    ("keys", "test_share"),
    [("evaluation: folds", None), ("", 0.2), ("test_share: 0.3\nseed: null", 0.3)],
)
def test_the_tuned_config_says_what_it_was_tuned_on(tmp_path, keys, test_share):
    path = tmp_path / "tried.yaml"
    path.write_text(CONFIG.replace("evaluation: folds", keys))
    config = load_config(path)
    path.write_text(tuned_config(config, choose_settings(config, results(tmp_path)), "adult"))
    seed = None if "null" in keys else 0
    evaluation = "folds" if "folds" in keys else "random"
    assert load_config(path).tuned_on == TunedOn(
        dataset="adult", evaluation=evaluation, seed=seed, splits=2, test_share=test_share
    )


def test_a_part_is_chosen_and_written_without_the_rest(config, tmp_path):
    part = part_of(config, ["lazybb-1r"], [4.0])
    found = choose_settings(part, results(tmp_path, {k: MEANS[k] for k in MEANS if k[2] == 4.0}))
    assert [(c.label, c.epsilon, c.params) for c in found] == [("lazybb-1r", 4.0, {"rounds": 9})]
    path = tmp_path / "tuned.yaml"
    path.write_text(tuned_config(part, found, "adult"))
    tuned = load_config(path)
    assert tuned.epsilons == (4.0,)
    (entry,) = tuned.methods
    assert entry.by_epsilon == {4.0: {"learning_rate": 0.2, "rounds": 9}}
    assert part_of(config) == config


def test_a_part_keeps_the_levels_of_a_method_that_has_its_own(tmp_path):
    path = tmp_path / "tried.yaml"
    path.write_text(
        CONFIG.replace("    grid: {rounds: [5", "    epsilons: [2, 4]\n    grid: {rounds: [5")
    )
    config = load_config(path)
    assert part_of(config, epsilons=[4.0]).methods[0].epsilons == (4.0,)
    assert part_of(config, epsilons=[4.0]).epsilons == (4.0,)
    assert part_of(config, epsilons=[1.0, 2.0]).methods[0].epsilons == (2.0,)


def test_the_least_wins_where_less_is_better(config, tmp_path):
    lines = [
        record
        for rounds, loss in ((5, 0.5), (9, 0.4))
        for record in records([loss, loss], f"lazybb-1r rounds={rounds}", 1.0, "log_loss")
    ]
    write(tmp_path, "tried", lines)
    found = read_results(tmp_path, plan_of={"tried": JournalPlan(2, None)}.get)
    part = part_of(config.model_copy(update={"metric": "log_loss"}), ["lazybb-1r"], [1.0])
    (choice,) = choose_settings(part, found)
    assert (choice.params, choice.mean) == ({"rounds": 9}, pytest.approx(0.4))


def test_a_part_that_is_not_there_is_refused(config):
    with pytest.raises(DpreproError, match=r"'lazyb-1r' in the config; did you mean 'lazybb-1r'\?"):
        part_of(config, ["lazyb-1r"])
    with pytest.raises(DpreproError, match=r"no epsilon 2 in the config\. Allowed: 1, 4"):
        part_of(config, epsilons=[2.0])


def test_a_method_with_fewer_splits_is_finished_with_them(config, tmp_path):
    config = config.model_copy(
        update={"methods": tuple(e.model_copy(update={"splits": 1}) for e in config.methods)}
    )
    assert len(choose_settings(config, results(tmp_path, splits=1))) == 3


def test_an_unfinished_setting_stops_the_choice(config, tmp_path):
    with pytest.raises(DpreproError, match="rounds=5, epsilon 1, has not finished all 2 splits"):
        choose_settings(config, results(tmp_path, splits=1))


def test_what_cannot_be_tuned_is_refused(config, tmp_path):
    path = tmp_path / "held.yaml"
    path.write_text(CONFIG.replace("evaluation: folds", "evaluation: test-set"))
    with pytest.raises(DpreproError, match="tune with `evaluation: folds`"):
        check_tunable(load_config(path))
    path.write_text(CONFIG + "tuned_on: {dataset: adult}\n")
    with pytest.raises(DpreproError, match="tuned_on: this config is tuned already"):
        check_tunable(load_config(path))
    path.write_text(re.sub(r"(, |\n    )grid: {.*?}", "", CONFIG))
    with pytest.raises(DpreproError, match="no method has a `grid`"):
        check_tunable(load_config(path))


def test_parameters_are_chosen_for_one_bound_on_the_rows_of_a_unit(tmp_path):
    path = tmp_path / "tried.yaml"
    path.write_text(CONFIG + "rows_per_unit: [1, 2]\n")
    with pytest.raises(DpreproError, match="several bounds on the rows of a unit"):
        check_tunable(load_config(path))
    path.write_text(CONFIG.replace("grid: {rounds: [3, 7]}", "rows_per_unit: [1, 2]"))
    with pytest.raises(DpreproError, match="several bounds"):  # of one method
        check_tunable(load_config(path))
    path.write_text(CONFIG + "rows_per_unit: 2\n")
    one = load_config(path)
    check_tunable(one)
    assert [entry.rows_per_unit for entry in one.methods] == [(2,)] * 3
    assert one.methods[0].expanded[0].label == "lazybb-1r rounds=5"


def test_a_metric_that_a_setting_cannot_have_is_named(config, tmp_path):
    lines = [
        replace(record, metrics={"auc": 0.9}, absent={"accuracy": "no labels"})
        for record in records([0.9, 0.9], "lazybb-1r rounds=5", 1.0)
    ]
    write(tmp_path, "tried", lines)
    found = read_results(tmp_path, plan_of={"tried": JournalPlan(2, None)}.get)
    with pytest.raises(DpreproError, match="rounds=5 has no Accuracy to be chosen by: no labels"):
        choose_settings(config, found)
