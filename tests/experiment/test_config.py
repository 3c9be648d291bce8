from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from dprepro.experiment.config import TunedOn, config_names, load_config, load_experiments
from dprepro.papers.published_cell import FOLDER
from dprepro.runtime.errors import DpreproError

VALID = """\
title: a test
dataset: adult
metric: auc
epsilons: [0.5, 1]
methods:
  - dp-ebm-gdp
  - {method: dp-logistic, label: other, params: {tol: 1e-3}, domain: public, delta: 0}
"""


def _write(folder: Path, text: str, name: str = "mine") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return path


def test_a_valid_config_is_typed_and_defaults_are_filled_in(tmp_path: Path) -> None:
    config = load_config(_write(tmp_path, VALID))
    assert config.name == "mine"
    assert config.text == VALID
    assert config.epsilons == (0.5, 1.0)
    assert (config.splits, config.test_share, config.domain) == (25, 0.2, "observed")
    first, second = config.methods
    assert (first.method, first.label, first.params) == ("dp-ebm-gdp", "dp-ebm-gdp", {})
    assert (second.label, second.domain, second.delta) == ("other", "public", 0.0)
    assert second.params == {"tol": 0.001}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("metric: auc", "metrik: auc", "line 3, metrik: unknown key; did you mean 'metric'?"),
        ("metric: auc", "metric: auk", "line 3, metric: given 'auk'; did you mean 'auc'? Allowed"),
        ("metric: auc\n", "", "metric: missing"),
        ("label: other", "lable: x", "line 7, methods[1].lable: unknown key; did you mean 'label'"),
        ("domain: public", "domain: privat", "line 7, methods[1].domain: given 'privat'"),
        ("label: other", "label: dp-ebm-gdp", "two methods are labelled 'dp-ebm-gdp'"),
        ("[0.5, 1]", "[0.5, -1]", "line 4, epsilons[1]: input should be greater than 0; given -1"),
        ("[0.5, 1]", "[0.5, .inf]", "epsilons[1]: input should be a finite number"),
        ("[0.5, 1]", "[true]", "epsilons[0]: a number is needed, not true or false; given True"),
        ("[0.5, 1]", "[1, 1.0]", "line 4, epsilons: a value is given twice"),
        ("[0.5, 1]", "[]", "line 4, epsilons: at least one entry is needed"),
        ("delta: 0", "delta: 1", "methods[1].delta: input should be less than 1; given 1"),
        ("title: a test", "title: t\nsplits: 2.5", "line 2, splits: "),
        ("title: a test", "title: t\nsplits: 0", "line 2, splits: "),
        ("title: a test", "title: t\ntest_share: 1", "line 2, test_share: "),
        ("title: a test", "title: t\nhypotheses: 1", "line 2, hypotheses: "),
        ("label: other", "splits: 0", "line 7, methods[1].splits: "),
        ("title: a test", "title: t\nseed: -1", "line 2, seed: "),
        ("title: a test", "title: t\ntime_limit: 0", "line 2, time_limit: "),
        ("title: a test", "title: t\npublished: {papr: x}", "published.papr: unknown key"),
        ("[0.5, 1]", "0.5", "line 4, epsilons: a list is needed; given 0.5"),
        (
            "title: a test",
            "title: t\npublished: {paper: p, table: 2, looks: [5, 4]}",
            "published.looks: numbers of splits are needed in ascending order",
        ),
        (
            "title: a test",
            "title: t\npublished: {paper: p, table: 2, looks: [4, 7]}",
            "the last of the `looks` of `published`, 7, must be `splits`",
        ),
        ("title: a test", "title: t\npublished: x", "published: a mapping of keys to values is"),
        ("title: a test", "title: t\ninclude: adult", "line 2, include: a list"),
    ],
)
def test_mistakes_are_named_with_line_key_and_remedy(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    assert old in VALID
    path = _write(tmp_path, VALID.replace(old, new))
    with pytest.raises(DpreproError, match=re.escape(expected)) as caught:
        load_config(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "place", "given"),
    [
        ("params: {tol: .inf}", "params.tol", "inf"),
        ("params: {tol: -.Inf}", "params.tol", "-inf"),
        ("params: {tol: .nan}", "params.tol", "nan"),
        ("params: {a: [1, {b: .inf}]}", "params.a[1].b", "inf"),
        ("grid: {tol: [1, .inf]}", "grid.tol[1]", "inf"),
        ("grid: {a: [[1, .nan]]}", "grid.a[0][1]", "nan"),
        ("by_epsilon: {1: {tol: .inf}}", "by_epsilon[1].tol", "inf"),
        ("by_epsilon: {0.5: {tol: .inf}}", "by_epsilon.0.5.tol", "inf"),
    ],
)
def test_parameters_that_are_not_finite_are_named_with_line_and_key(
    tmp_path: Path, keys: str, place: str, given: str
) -> None:
    """scikit-learn takes an infinite C, but no record can: each run ended in an internal error."""
    path = _write(tmp_path, VALID.replace("params: {tol: 1e-3}", keys))
    with pytest.raises(DpreproError) as caught:
        load_config(path)
    assert str(caught.value) == (
        f"{path}, line 7, methods[1].{place}: a record cannot hold a number that is not finite; "
        f"give a large number in its place, or leave the parameter out; given {given}"
    )


def test_every_parameter_that_is_not_finite_is_told(tmp_path: Path) -> None:
    path = _write(tmp_path, VALID.replace("{tol: 1e-3}", "{tol: .inf, a: [.nan, 1, .inf]}"))
    with pytest.raises(DpreproError) as caught:
        load_config(path)
    assert [line.split(": ")[0].split(".")[-1] for line in str(caught.value).splitlines()] == [
        "tol", "a[0]", "a[2]",
    ]  # fmt: skip


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    path = _write(tmp_path, VALID.replace("auc", "auk").replace("[0.5, 1]", "[0]"))
    with pytest.raises(DpreproError) as caught:
        load_config(path)
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize("text", ["", "- a\n", "just words\n"])
def test_what_is_no_mapping_is_told_the_keys(tmp_path: Path, text: str) -> None:
    with pytest.raises(DpreproError, match="a config is a mapping with the keys title, dataset"):
        load_config(_write(tmp_path, text))


def test_a_null_seed_is_kept(tmp_path: Path) -> None:
    assert load_config(_write(tmp_path, VALID + "seed: null\n")).seed is None
    assert load_config(_write(tmp_path, VALID)).seed == 0


def test_what_a_config_was_tuned_on_is_typed(tmp_path: Path) -> None:
    text = VALID + "tuned_on: {dataset: adult, evaluation: folds, seed: null, splits: 3}\n"
    assert load_config(_write(tmp_path, text)).tuned_on == TunedOn(
        dataset="adult", evaluation="folds", seed=None, splits=3
    )
    assert load_config(_write(tmp_path, VALID)).tuned_on is None
    for wrong, message in (
        ("{dataset: adult, sed: 1}", r"tuned_on\.sed: unknown key; did you mean 'seed'"),
        ("{seed: 1}", r"tuned_on\.dataset: missing"),
        ("{dataset: adult, splits: none}", r"tuned_on\.splits: .*given 'none'"),
        ("{dataset: adult, evaluation: fold}", r"given 'fold'; did you mean 'folds'"),
        ("adult", r"tuned_on: a mapping of keys"),
    ):
        with pytest.raises(DpreproError, match=message):
            load_config(_write(tmp_path, VALID + f"tuned_on: {wrong}\n"))


def test_a_table_number_may_stand_without_quotes(tmp_path: Path) -> None:
    config = load_config(_write(tmp_path, VALID + "published: {paper: dp-ebm-2021, table: 2}\n"))
    assert config.published is not None
    assert config.published.table == "2"


def test_a_dataset_is_a_name_or_a_path_from_the_configs_folder(tmp_path: Path) -> None:
    assert load_config(_write(tmp_path, VALID)).card == "adult"
    for given in ("cards/x.yaml", "x.yaml"):
        config = load_config(_write(tmp_path, VALID.replace("adult", given)))
        assert Path(config.card) == tmp_path / given


def test_an_unknown_name_says_the_nearest() -> None:
    with pytest.raises(DpreproError, match=r"no config 'adullt'.*did you mean 'adult', .* or .*\?"):
        load_config("adullt")


@pytest.mark.parametrize("name", [".", "", "/", ".."])
def test_a_path_without_a_name_is_no_config(name: str) -> None:
    with pytest.raises(DpreproError, match="no config"):
        load_config(name)


@pytest.mark.parametrize("suffix", [".yaml", ".yml"])
def test_a_file_that_was_named_without_its_suffix_is_proposed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"mine{suffix}").write_text(VALID)
    with pytest.raises(DpreproError, match=f"no config 'mine'.*; did you mean 'mine{suffix}'\\?"):
        load_config("mine")


def test_a_file_wins_over_a_built_in_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "adult").write_text(VALID)
    monkeypatch.chdir(tmp_path)
    assert load_config("adult").title == "a test"


def test_included_configs_come_first_and_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        _write(tmp_path, VALID, name)
    _write(tmp_path, "title: both\ninclude: [one.yaml, two.yaml]\n", "both")
    path = _write(tmp_path, VALID + "include: [both.yaml, two.yaml, quickstart]\n", "all")
    names = [config.name for config in load_experiments(path)]
    assert names == ["one", "two", "quickstart", "all"]
    assert [c.name for c in load_experiments(path, tmp_path / "one.yaml")] == names


def test_a_config_of_includes_only_is_no_experiment(tmp_path: Path) -> None:
    path = _write(tmp_path, "include: [adult, telco]\n")
    assert [config.name for config in load_experiments(path)] == ["adult", "telco"]
    with pytest.raises(
        DpreproError, match="no experiment of its own; it only includes adult, telco"
    ):
        load_config(path)


def test_a_circle_of_includes_is_an_error(tmp_path: Path) -> None:
    _write(tmp_path, "include: [b.yaml]\n", "a")
    path = _write(tmp_path, "include: [a.yaml]\n", "b")
    with pytest.raises(DpreproError, match=r"circle: b\.yaml -> a\.yaml -> b\.yaml"):
        load_experiments(path)


@pytest.mark.parametrize("name", ["adult", "Adult"])
def test_two_configs_of_one_name_would_share_a_journal(tmp_path: Path, name: str) -> None:
    """In capitals, too: where names of files differ by them, results can move to where not."""
    path = _write(tmp_path, VALID, name)
    with pytest.raises(DpreproError, match=r"would share one journal, adult\.jsonl"):
        load_experiments(path, "adult")


def test_table_2_configs_are_the_papers_protocol() -> None:
    for name in ("adult", "telco", "credit"):
        config = load_config(name)
        assert config.dataset == name
        assert config.epsilons == (0.5, 1, 2, 4, 8)
        assert (config.splits, config.test_share, config.delta) == (25, 0.2, 1e-6)
        assert config.metric == "auc"
        assert {"dp-ebm-gdp", "dp-ebm-classic", "dp-logistic"} <= {m.label for m in config.methods}


def _printed_for_lazybb(dataset: str) -> dict[float, dict[str, float]]:
    with (FOLDER / "lazybb-2022" / "hyperparameters.csv").open() as file:
        return {
            float(row["epsilon"]): {
                "density": float(row["kappa"]),
                "learning_rate": float(row["lambda"]),
                "rounds": int(row["tau"]),
            }
            for row in csv.DictReader(file)
            if row["dataset"] == dataset
        }


@pytest.mark.parametrize("dataset", ["adult", "cod-rna", "mushroom"])
def test_lazybb_runs_with_the_hyper_parameters_printed_for_each_epsilon(dataset: str) -> None:
    printed = _printed_for_lazybb(dataset)
    config = load_config(f"lazybb-{dataset}")
    assert config.epsilons == tuple(sorted(printed))
    entries = [m for m in config.methods if m.method.startswith("lazybb-1r")]
    if dataset != "adult":
        entries += load_config(f"lazybb-{dataset}-sparsity").methods
    assert [m.label for m in entries if m.by_epsilon == printed] == [m.label for m in entries]


@pytest.mark.parametrize("dataset", ["adult", "telco", "credit", "healthcare"])
def test_lazybb_and_dp_llm_stand_in_table_2_with_settings_that_their_papers_print(
    dataset: str,
) -> None:
    """Those of 1-Rules on Adult, the row of the largest epsilon up to ours."""
    config = load_config(dataset)
    entries = {entry.label: entry for entry in config.methods}
    assert {"dp-llm", "llm", "lazybb-topdown", "boosted-1r", "boosted-topdown"} <= entries.keys()
    rules, printed = entries["lazybb-1r"], _printed_for_lazybb("adult")
    for epsilon in config.epsilons:
        ours = {**rules.params, **rules.by_epsilon.get(epsilon, {})}
        row = printed[max(level for level in printed if level <= epsilon)]
        assert ours == {"margin": "agreements", **row}
    assert entries["lazybb-topdown"].params == next(
        m.params for m in load_config("lazybb-adult").methods if m.label == "lazybb-topdown"
    )


def test_built_in_configs_are_listed() -> None:
    assert {"quickstart", "adult", "telco", "credit"} <= set(config_names())


@pytest.mark.parametrize("given", ["0", "rows", "true", "1000001"])
def test_a_wrong_number_of_rows_per_unit_is_one_clear_line(tmp_path: Path, given: str) -> None:
    path = _write(tmp_path, f"{VALID}rows_per_unit: [row, 1, {given}]\n")
    with pytest.raises(DpreproError) as caught:
        load_config(path)
    (line,) = str(caught.value).splitlines()
    assert "allowed are `row`, or a whole number from 1 to 1000000; given" in line


def test_an_unknown_config_names_the_nearest_and_not_all() -> None:
    with pytest.raises(
        DpreproError, match=r"did you mean 'adult'.*\? `dprepro configs` lists"
    ) as e:
        load_config("adlut")
    assert len(str(e.value)) < 200


class TestMethodsForIncludedConfigs:
    @pytest.fixture
    def written(self, tmp_path):
        def write(text):
            path = tmp_path / "mine.yaml"
            path.write_text(text)
            return path

        return write

    def test_they_stand_in_the_place_of_those_there(self, written):
        path = written("title: Mine\ninclude: [adult, telco]\nmethods: [dp-ebm-plus]\n")
        found = load_experiments(path)
        assert [config.name for config in found] == ["mine-adult", "mine-telco"]
        for config, name in zip(found, ("adult", "telco"), strict=True):
            theirs = load_config(name)
            assert [entry.label for entry in config.methods] == ["dp-ebm-plus"]
            same = ("dataset", "metric", "epsilons", "delta", "splits", "seed", "evaluation")
            assert [getattr(config, key) for key in same] == [getattr(theirs, key) for key in same]
            assert config.published is None
            assert not config.is_builtin

    def test_a_card_beside_the_included_config_is_found(self, written, tmp_path):
        (tmp_path / "there").mkdir()
        text = "dataset: ./card.yaml\nmetric: auc\nepsilons: [1]\nmethods: [ebm]\n"
        (tmp_path / "there" / "one.yaml").write_text(text)
        (found,) = load_experiments(written("include: [there/one.yaml]\nmethods: [ebm]\n"))
        assert Path(found.card).resolve() == (tmp_path / "there" / "card.yaml").resolve()

    def test_mistakes_are_said_with_their_line(self, written):
        path = written("include: [adult]\nmethods:\n  - {method: ebm, colour: red}\n")
        with pytest.raises(DpreproError, match=r"mine\.yaml, line 3, methods\[0\]\.colour"):
            load_experiments(path)

    def test_it_is_no_experiment_of_its_own(self, written):
        with pytest.raises(DpreproError, match="describes no experiment of its own"):
            load_config(written("include: [adult]\nmethods: [ebm]\n"))
