"""What `dprepro table` shows of a config is what `dprepro run` showed, after any edits."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.experiment.config import load_config
from dprepro.experiment.run import Options, Tally, run
from dprepro.methods import registry
from tests.experiment.test_run import Watch
from tests.in_process import in_process
from tests.lab import Lab, lab

__all__ = ["in_process", "lab"]

METHOD = """
import numpy as np
from dprepro.methods.entry import Guarantee, Method


class Tilted:
    def __init__(self, epsilon, seed, tilt=0.0):
        self.epsilon, self.seed, self.tilt = epsilon, seed, tilt

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        noise = np.random.default_rng(self.seed).normal(size=len(X))
        return X["a"].to_numpy() + noise * (self.tilt + 1 / self.epsilon)

    def predict(self, X):
        return (self.decision_function(X) > 0).astype(int)


def build(setting, **params):
    return Tilted(setting.epsilon, setting.seed, **params)


METHODS = [
    Method(
        name="tilted", title="Tilted", tasks=frozenset({"binary"}), guarantee=Guarantee.PURE,
        adjacency="zero-out", assumes=(), reference="", build=build, takes_epsilon=True,
        defaults={"tilt": 0.0},
    )
]
"""
ENTRIES = [
    {"method": "tilted"},
    {"method": "tilted", "params": {"tilt": 1.0}},
    {"method": "tilted", "params": {"tilt": 2.0}},
    {"method": "tilted", "label": "another"},
    {"method": "tilted", "label": "another", "epsilons": [1, 4]},
    "plain",
]


def _label(entry: Any) -> str:
    return entry if isinstance(entry, str) else str(entry.get("label", entry["method"]))


configs = st.fixed_dictionaries(
    {
        "splits": st.integers(1, 3),
        "seed": st.sampled_from([7, 8]),
        "metric": st.sampled_from(["auc", "accuracy"]),
        "epsilons": st.sampled_from([[1], [8], [1, 8]]),
        "methods": st.lists(st.sampled_from(ENTRIES), min_size=1, max_size=3, unique_by=_label),
    }
)
parts = st.sampled_from([{}, {}, {"splits": 1}, {"splits": 2}])


@pytest.fixture
def shop(lab: Lab) -> Lab:
    (lab.folder / "methods" / "tilted.py").write_text(METHOD)
    registry.all_methods.cache_clear()
    return lab


def rows(results: Path) -> dict[tuple[str, float], dict[str, Any]]:
    """Return the rows that `dprepro table` writes as JSON, by label and epsilon."""
    given = ["table", "--config", "lab", "--results", str(results), "--format", "json"]
    outcome = CliRunner().invoke(app, given)
    assert outcome.exit_code == 0, outcome.output
    return {
        (row["method"], math.inf if row["epsilon"] is None else row["epsilon"]): row
        for row in json.loads(outcome.stdout)
    }


def figures(tally: Tally) -> dict[tuple[str, float], Any]:
    return {
        cell: (tally.mean(cell), tally.sd(cell), len(values))
        for cell, values in tally.values.items()
    }


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(edits=st.lists(st.tuples(configs, parts), min_size=2, max_size=4))
@pytest.mark.usefixtures("in_process")
def test_the_table_is_that_of_the_run_to_the_last_digit_after_any_edits(
    shop: Lab, edits: list[tuple[dict[str, Any], dict[str, int]]]
) -> None:
    with tempfile.TemporaryDirectory(dir=shop.folder) as folder:
        for keys, part in edits:
            config = load_config(shop.config(**keys))
            summary = run(config, Options(results=Path(folder), **part), Watch())
            shown = rows(Path(folder))
            assert {
                place: (row["mean"], row["sd"], row["splits"]) for place, row in shown.items()
            } == figures(summary.whole)
            assert {row["planned"] for row in shown.values()} == {config.splits}
            assert {row["metric"] for row in shown.values()} == {config.metric}


def written(results: Path, *names: str) -> list[dict[str, Any]]:
    """Return the rows of `dprepro table` as JSON."""
    given = ["table", *names, "--metric", "auc", "--results", str(results), "--format", "json"]
    outcome = CliRunner().invoke(app, given)
    assert outcome.exit_code == 0, outcome.output
    found: list[dict[str, Any]] = json.loads(outcome.stdout)
    return found


def _exact(row: dict[str, Any]) -> tuple[Any, ...]:
    level = math.inf if row["epsilon"] is None else row["epsilon"]
    return row["method"], level, row["mean"], row["sd"], row["splits"], row["planned"]


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(asked=st.lists(st.tuples(configs, parts), min_size=2, max_size=3))
@example(
    asked=[
        ({"splits": splits, "seed": seed, "epsilons": [1], "methods": ["plain"]}, {})
        for splits, seed in ((2, 7), (3, 7), (2, 8))
    ]
)
@pytest.mark.usefixtures("in_process")
def test_under_its_own_name_a_config_has_what_its_run_printed(
    shop: Lab, asked: list[tuple[dict[str, Any], dict[str, int]]]
) -> None:
    with tempfile.TemporaryDirectory(dir=shop.folder) as folder:
        printed = {}
        for number, (keys, part) in enumerate(asked):
            config = load_config(shop.config(f"c{number}", **{**keys, "metric": "auc"}))
            whole = run(config, Options(results=Path(folder), **part), Watch()).whole
            printed[config.name] = {
                (*cell, *figure, config.splits) for cell, figure in figures(whole).items()
            }
        together = written(Path(folder))
        places = [(row["method"], row["epsilon"], tuple(row["config"])) for row in together]
        assert len(set(places)) == len(places)
        assert {row["dataset"] for row in together} == {"tiny"}
        merged = {name for row in together if len(row["config"]) > 1 for name in row["config"]}
        for name, expected in printed.items():
            assert {_exact(row) for row in written(Path(folder), name)} == expected
            own = {_exact(row) for row in together if row["config"] == [name]}
            assert own <= expected
            assert own == expected or name in merged


@pytest.mark.usefixtures("in_process")
def test_configs_that_share_tasks_and_clash_with_a_third_keep_their_numbers(shop: Lab) -> None:
    printed = {}
    for name, splits, seed in (("c1", 2, 7), ("c2", 3, 7), ("c3", 2, 8)):
        config = load_config(shop.config(name, splits=splits, seed=seed, methods=["tilted"]))
        tally = run(config, Options(results=shop.results), Watch()).whole
        printed[name] = {(*cell, *figure, splits) for cell, figure in figures(tally).items()}
    found = written(shop.results)
    assert {tuple(row["config"]) for row in found} == {("c1",), ("c2",), ("c3",)}
    assert len(found) == 6
    for name, expected in printed.items():
        assert {_exact(row) for row in found if row["config"] == [name]} == expected


@pytest.mark.usefixtures("in_process")
def test_only_methods_and_epsilons_that_were_run_are_shown(shop: Lab) -> None:
    """A run of one of them was one number in a table of empty rows."""
    config = load_config(shop.config(splits=5, methods=["tilted", "plain"]))
    run(config, Options(results=shop.results, methods=("tilted",), epsilons=(1,)), Watch())
    found = {(row["method"], row["epsilon"]): row for row in written(shop.results)}
    assert {place: row["splits"] for place, row in found.items()} == {("tilted", 1.0): 5}
    given = ["table", "lab", "--results", str(shop.results), "--format"]
    for format in ("rich", "markdown", "latex"):
        shown = " ".join(CliRunner().invoke(app, [*given, format]).stdout.split())
        assert "0/5" not in shown
        assert "Left out: 2 cells of which nothing has run yet" in shown
    index = CliRunner().invoke(app, ["table", "--results", str(shop.results)]).stdout
    assert "1 cell)" in index


@pytest.mark.usefixtures("in_process")
def test_what_a_run_has_begun_is_marked_where_it_is_missing(shop: Lab) -> None:
    config = load_config(shop.config(splits=5, methods=["tilted", "plain"]))
    for options in ({"methods": ("tilted",), "epsilons": (1,)}, {"epsilons": (8,), "splits": 1}):
        run(config, Options(results=shop.results, **options), Watch())
    found = {(row["method"], row["epsilon"]): row for row in written(shop.results)}
    assert {place: (row["splits"], row["planned"]) for place, row in found.items()} == {
        ("tilted", 1.0): (5, 5), ("tilted", 8.0): (1, 5), ("plain", None): (1, 5),
    }  # fmt: skip


@pytest.mark.usefixtures("in_process")
def test_a_setting_that_is_taken_back_shows_its_numbers_again(shop: Lab) -> None:
    means = []
    for tilt in (0.0, 3.0, 0.0):
        entry = {"method": "tilted", "params": {"tilt": tilt}}
        config = load_config(shop.config(methods=[entry]))
        summary = run(config, Options(results=shop.results), Watch())
        means.append(rows(shop.results)["tilted", 8.0]["mean"])
        assert means[-1] == summary.whole.mean(("tilted", 8.0))
    assert means[0] == means[2] != means[1]


@pytest.mark.usefixtures("in_process")
def test_a_part_of_the_splits_is_marked_everywhere(shop: Lab) -> None:
    config = load_config(shop.config(splits=10, methods=["tilted"]))
    run(config, Options(results=shop.results, splits=2), Watch())
    assert {(row["splits"], row["planned"]) for row in rows(shop.results).values()} == {(2, 10)}
    given = ["table", "--config", "lab", "--results", str(shop.results), "--format"]
    assert "[2/10" in CliRunner().invoke(app, [*given, "markdown"]).stdout
    assert ",2,10," in CliRunner().invoke(app, [*given, "csv"]).stdout


@pytest.mark.usefixtures("in_process")
def test_a_card_that_is_called_as_a_built_in_one_stands_apart(shop: Lab) -> None:
    card = shop.folder / "tiny.yaml"
    (shop.folder / "adult.yaml").write_text(
        card.read_text(encoding="utf-8").replace("name: tiny", "name: adult")
    )
    config = load_config(shop.config(dataset="./adult.yaml", methods=["tilted"]))
    run(config, Options(results=shop.results), Watch())
    assert {row["dataset"] for row in rows(shop.results).values()} == {
        "adult (your card, not the built-in one)"
    }
    assert {row["paper"] for row in rows(shop.results).values()} == {None}
