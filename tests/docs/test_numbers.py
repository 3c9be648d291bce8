"""Numbers in sentences and tables of the documents are those of the committed journals."""

from __future__ import annotations

import csv
import json
import lzma
import math
import re
import statistics
from functools import cache

import pytest
from scipy.stats import ttest_rel

from dprepro.experiment.config import load_config
from dprepro.papers.published_cell import load_published
from dprepro.results.folder import ResultCell, read_results
from tests.docs.pages import ROOT

PLUS_ROWS = {
    "Adult, AUROC": "plus-adult",
    "Telco, AUROC": "plus-telco",
    "Credit fraud, AUROC": "plus-credit",
    "California housing, RMSE": "plus-cal-housing",
    "Elevators, RMSE": "plus-elevators",
    "Pol, RMSE": "plus-pol",
    "Wine, RMSE": "plus-wine",
}


@cache
def cells(folder: str, config: str) -> dict[tuple[str, float], ResultCell]:
    """Return the cells of one committed journal by label and epsilon."""
    found = read_results(ROOT / folder, [config]).cells
    return {(cell.task.label, cell.task.epsilon): cell for cell in found}


def sentences(page: str) -> str:
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def rows(page: str, after: str) -> list[list[str]]:
    """Return the cells of the first table after some words of a page, without its head."""
    lines = (ROOT / page).read_text(encoding="utf-8").split(after)[1].splitlines()
    last = next((i for i, line in enumerate(lines) if i and line.startswith("#")), len(lines))
    table = [line for line in lines[:last] if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def rounds_to(value: float, stated: str) -> bool:
    """Say whether a number rounds to a stated one."""
    text = stated.replace(",", "")
    decimals = len(text.split(".")[1]) if "." in text else 0
    # Means in thousands are printed in tens.
    unit = 10.0 if "," in stated else 10.0**-decimals
    return abs(value - float(text)) <= 0.5 * unit * (1 + 1e-9)


def edit_changes(label: str, epsilon: float) -> list[float]:
    found = cells("results/editing", "adult-monotone")
    edited, released = found[label, epsilon], found["as released", epsilon]
    return [a - b for a, b in zip(edited.values["auc"], released.values["auc"], strict=True)]


def test_the_readme_says_what_the_edit_costs():
    said = r"edit changes test AUROC by (\S+) at epsilon 1 \(25 splits\)"
    stated = re.search(said, sentences("README.md"))
    changes = edit_changes("age rises", 1.0)
    assert len(changes) == 25
    assert rounds_to(statistics.fmean(changes), stated[1])


def test_the_readme_says_how_good_dp_ebm_plus_is():
    stated = re.search(
        r"AUROC (\S+) against (\S+) at 0.5, (\S+) against (\S+) at 8", sentences("README.md")
    )
    found = cells("results", "plus-adult")
    keys = [(m, e) for e in (0.5, 8.0) for m in ("dp-ebm-plus", "dp-ebm-gdp")]
    for key, number in zip(keys, stated.groups(), strict=True):
        assert rounds_to(found[key].mean("auc"), number), key


def test_the_page_of_papers_says_what_the_code_of_lazybb_spends():
    text = sentences("docs/papers.md")
    spent = re.search(r"accuracy is (\S+) and it spends epsilon (\d+)\.", text)
    kept = re.search(r"spends 0\.02 and reaches (\S+) \(5 trees", text)
    code = [c for c in cells("results", "lazybb-adult-code").values() if c.task.epsilon == 0.02]
    assert any(
        rounds_to(c.mean("accuracy"), spent[1]) and rounds_to(c.spent_epsilon or 0, spent[2])
        for c in code
    )
    others = [
        *cells("results", "lazybb-adult-others").values(),
        *cells("results", "lazybb-adult").values(),
        *code,
    ]
    sound = [c for c in others if c.task.method == "lazybb-topdown" and c.task.epsilon == 0.02]
    assert any(rounds_to(c.mean("accuracy"), kept[1]) for c in sound)


@pytest.mark.parametrize("dataset", PLUS_ROWS)
def test_the_table_of_dp_ebm_plus_is_that_of_its_journals(dataset):
    table = rows("docs/evidence/dp-ebm-plus-tables.md", "## AUROC and RMSE")
    start = [row[0] for row in table].index(dataset)
    found = cells("results", PLUS_ROWS[dataset])
    metric = "auc" if "AUROC" in dataset else "rmse"
    for row, method in zip(table[start : start + 2], ("dp-ebm-gdp", "dp-ebm-plus"), strict=True):
        for epsilon, stated in zip((0.1, 0.5, 1.0, 2.0, 4.0, 8.0), row[2:], strict=True):
            cell = found[method, epsilon]
            assert cell.splits(metric) == 25
            assert rounds_to(cell.mean(metric), stated), (method, epsilon, cell.mean(metric))


@pytest.mark.parametrize("dataset", PLUS_ROWS)
def test_the_table_of_pairs_is_that_of_its_journals(dataset):
    table = rows("docs/evidence/dp-ebm-plus-pairs.md", "# Pairs of features")
    start = [row[0] for row in table].index(dataset)
    found = cells("results", PLUS_ROWS[dataset])
    metric = "auc" if "AUROC" in dataset else "rmse"
    alone, paired, chances = table[start : start + 3]
    for place, epsilon in enumerate((0.1, 0.5, 1.0, 2.0, 4.0, 8.0), start=2):
        both = [found[label, epsilon] for label in ("dp-ebm-plus", "dp-ebm-plus-pairs")]
        for cell, row in zip(both, (alone, paired), strict=True):
            assert cell.splits(metric) == 25
            assert rounds_to(cell.mean(metric), row[place])
        first, second = (cell.values[metric] for cell in both)
        if list(first) == list(second):
            assert chances[place] == "same"
        else:
            assert float(chances[place]) == float(f"{ttest_rel(first, second).pvalue:.0e}")


@pytest.mark.parametrize("dataset", PLUS_ROWS)
def test_the_table_of_dp_ebm_plus_shows_the_best_rival(dataset):
    table = rows("docs/evidence/dp-ebm-plus-tables.md", "## AUROC and RMSE")
    start = [row[0] for row in table].index(dataset)
    shown = {row[1]: row[2:] for row in table[start : start + 6]}
    found = cells("results", PLUS_ROWS[dataset])
    metric, best = ("auc", max) if "AUROC" in dataset else ("rmse", min)
    for place, epsilon in enumerate((0.1, 0.5, 1.0, 2.0, 4.0, 8.0)):
        means = {
            label: cell.mean(metric)
            for (label, e), cell in found.items()
            if e == epsilon and cell.task.method != "dp-ebm-plus" and cell.splits(metric) == 25
        }
        name = best(means, key=means.get)
        assert shown["which"][place] == name
        assert rounds_to(means[name], shown["best rival"][place].strip("*"))


def test_the_table_of_edits_is_that_of_its_journal():
    table = rows("docs/evidence/shapes.md", "The table shows what an edit costs in accuracy")
    assert len(table) == 4
    for epsilon, released, *edits in table:
        mean = cells("results/editing", "adult-monotone")["as released", float(epsilon)].mean("auc")
        assert rounds_to(mean, released)
        for label, stated in zip(("age rises", "education and hours rise"), edits, strict=True):
            changes = edit_changes(label, float(epsilon))
            change, error = stated.split(" ± ")
            assert rounds_to(statistics.fmean(changes), change)
            assert rounds_to(statistics.stdev(changes) / len(changes) ** 0.5, error)


def test_the_table_of_locally_linear_maps_is_that_of_its_journals():
    table = rows("docs/evidence/llm.md", "# Locally linear maps")
    assert len(table) >= 5
    for data, epsilon, _, stated, seeds, verdict in table[:5]:
        found = cells("results", data.lower())
        key = ("llm", float("inf")) if epsilon == "none" else ("dp-llm", float(epsilon))
        mean, deviation = stated.split(" ± ")
        assert found[key].splits("accuracy") == int(seeds)
        assert rounds_to(found[key].mean("accuracy"), mean), key
        assert rounds_to(found[key].sd("accuracy"), deviation), key
        assert recorded("dp-llm-2020")[(data.lower(), *key)] == verdict


SETTINGS = {"lazybb-1r": 539, "lazybb-topdown": 40, "lazybb-1r-approx": 539}
"""How many settings the grid of each method has."""
FOLDS = 5


@cache
def trials() -> dict[tuple[str, str, float], dict[str, list[float]]]:
    """Return the whole pieces of grids: by journal, method and epsilon, then setting, accuracies.

    The journals are large, and reading them as a table would take ten times as long.
    """
    pieces: dict[tuple[str, str, float], dict[str, list[float]]] = {}
    for path in sorted((ROOT / "results/trials").glob("*.jsonl.xz")):
        journal = path.name.removesuffix(".jsonl.xz")
        for line in lzma.decompress(path.read_bytes()).decode().splitlines():
            if not line.startswith('{"kind":"record"'):
                continue
            record = json.loads(line)
            method, _, setting = record["task"]["label"].partition(" ")
            found = pieces.setdefault((journal, method, record["task"]["epsilon"]), {})
            found.setdefault(setting, []).append(record["metrics"]["accuracy"])
    return {
        key: found
        for key, found in pieces.items()
        if [len(values) for values in found.values()] == [FOLDS] * SETTINGS[key[1]]
    }


def test_the_table_of_grids_has_every_whole_piece_and_its_best_setting():
    table = rows("results/trials/README.md", "## What the grids show")
    assert len(trials()) == 3 * 13
    assert sorted((row[0], row[1], float(row[2])) for row in table) == sorted(trials())
    for journal, method, epsilon, best, stated, error in (row[:6] for row in table):
        found = trials()[journal, method, float(epsilon)]
        mean = statistics.fmean(found[named(best)])
        assert mean == max(map(statistics.fmean, found.values()))
        assert rounds_to(mean, stated)
        assert rounds_to(statistics.stdev(found[named(best)]) / FOLDS**0.5, error)


def test_the_table_of_grids_says_where_the_printed_settings_stand():
    printed = load_config("lazybb-adult").methods[0].by_epsilon  # Table 8
    table = rows("results/trials/README.md", "## What the grids show")
    assert any(row[6] for row in table)
    for journal, method, epsilon, best, _, _, setting, stated, rank, is_within in table:
        assert bool(setting) == (method == "lazybb-1r")
        if not setting:
            continue
        found = trials()[journal, method, float(epsilon)]
        assert {k: float(v) for k, v in (x.split("=") for x in named(setting).split())} == (
            printed[float(epsilon)]
        )
        ours, first = statistics.fmean(found[named(setting)]), found[named(best)]
        error = statistics.stdev(first) / FOLDS**0.5
        assert rounds_to(ours, stated)
        assert int(rank) == 1 + sum(statistics.fmean(values) > ours for values in found.values())
        assert is_within == ("yes" if statistics.fmean(first) - ours <= error else "no")


def named(setting: str) -> str:
    """Return a setting of the table, such as ``25, 0.45, 0.35``, as labels have it."""
    rounds, learning_rate, density = setting.split(", ")
    return f"rounds={rounds} learning_rate={learning_rate} density={density}"


def test_the_table_of_the_convolutional_network_is_that_of_its_journals():
    table = rows("docs/evidence/llm.md", "## The convolutional network")
    assert [row[0] for row in table] == ["MNIST", "Fashion-MNIST"]
    for data, _, stated, seeds, verdict in table:
        found = cells("results", data.lower())["cnn", float("inf")]
        mean, deviation = stated.split(" ± ")
        assert found.splits("accuracy") == int(seeds)
        assert rounds_to(found.mean("accuracy"), mean)
        assert rounds_to(found.sd("accuracy"), deviation)
        assert recorded("dp-llm-2020")[data.lower(), "cnn", math.inf] == verdict


@pytest.mark.parametrize(
    ("value", "stated", "fits"),
    [(0.8985, "0.898", True), (0.8986, "0.898", False), (76_549, "76,550", True),
     (76_556, "76,550", False), (-0.00044, "-0.0004", True), (51.4, "51", True)],
)  # fmt: skip
def test_a_number_rounds_to_a_stated_one(value, stated, fits):
    assert rounds_to(value, stated) == fits


UNIT_BOUNDS = ("unit=row", "rows_per_unit=1", "rows_per_unit=2", "rows_per_unit=5")


@pytest.mark.parametrize(
    ("config", "metric", "after"),
    [
        ("unit-diabetes", "auc", "Diabetes 130-US hospitals"),
        ("unit-parkinson", "rmse", "Parkinson's telemonitoring"),
    ],
)
def test_what_the_honest_unit_costs(config, metric, after):
    found = cells("results", config)
    stated = 0
    for method, epsilon, *means in rows("docs/evidence/units.md", after):
        for bound, mean in zip(UNIT_BOUNDS, means, strict=True):
            cell = found.get((f"{method} {bound}", level(epsilon)))
            assert (cell is None) == (not mean)
            if cell is not None:
                assert rounds_to(cell.mean(metric), mean), (method, epsilon, bound)
                assert cell.splits(metric) == 5
                stated += 1
    assert stated == len(found)


def test_the_table_of_s_bdt_is_that_of_its_journals_and_of_what_is_printed():
    printed = {(c.dataset, c.epsilon, c.metric): c for c in load_published("sbdt-2024")}
    table = rows("docs/evidence/rivals-sbdt.md", "## Results beside the printed ones")
    assert len(table) == len(printed) == 15
    for dataset, metric, epsilon, stated, *means in table:
        name = {"Adult": "adult-complete", "Abalone": "abalone"}[dataset]
        key = {"AUROC": "auc", "accuracy": "accuracy", "RMSE": "rmse"}[metric]
        cell = printed.pop((name, float(epsilon), key))
        assert rounds_to(cell.mean, stated)
        found = cells("results", f"sbdt-{dataset.lower()}")
        for method, mean in zip(("s-bdt", "s-bdt-sound", "dp-ebm-plus"), means, strict=True):
            assert rounds_to(found[method, float(epsilon)].mean(key), mean), (method, epsilon)
    assert not printed


@cache
def recorded(paper: str) -> dict[tuple[str, str, float], str]:
    """Return the recorded verdicts on the cells of a document: by dataset, method and epsilon."""
    with (ROOT / "results/verdicts.csv").open() as file:
        return {
            (row["dataset"], row["method"], float(row["epsilon"] or "inf")): row["verdict"]
            for row in csv.DictReader(file)
            if row["verdict"] and row["paper"] == paper
        }


def level(stated: str) -> float:
    return math.inf if stated == "none" else float(stated)
