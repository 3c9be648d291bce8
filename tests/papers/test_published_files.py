"""Papers that were added as data alone: every cell against the file that it was taken from."""

import csv
import os
from decimal import Decimal
from pathlib import Path

import pytest

from dprepro.judge.verdicts import Verdict, judge_cells, printed_sample
from dprepro.papers.document import load_documents
from dprepro.papers.published_cell import FOLDER
from dprepro.results.folder import assemble, read_results
from dprepro.results.margins import margins

FILES = Path(os.environ.get("DPREPRO_DATA", "")).parent / "published"
ROOT = Path(__file__).resolve().parents[2]
PRIVATREE = load_documents()["privatree-2023"]


def rows(path):
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.skipif(not FILES.is_dir(), reason="no ../published beside $DPREPRO_DATA")
def test_every_accuracy_of_privatree_is_a_cell_digit_by_digit():
    """Data under their printed names; two methods have names that say what they are."""
    ours = {
        "privatree*": "privatree-exact-quantiles",
        "diffprivlib-logistic-regression": "diffprivlib-logistic",
    }
    printed = {}
    for row in rows(FILES / "privatree_2023.csv"):
        if row["metric"] == "accuracy" and row["mean"]:
            name = row["dataset"] + " (mixed)" * (row["group"] == "numerical+categorical")
            method = ours.get(row["method"], row["method"])
            error = (row["standard_error"], row["folds"] if row["standard_error"] else "")
            place = (row["table"], name, method, row["epsilon"])
            printed[place] = (row["mean"], "", *error)
    cells = {}
    for row in rows(FOLDER / "privatree-2023" / "cells.csv"):
        layout = PRIVATREE.tables[row["table"]]
        place = (row["table"], layout.datasets[row["dataset"]], row["method"], row["epsilon"])
        cells[place] = (row["mean"], row["std"], row["standard_error"], row["repeats"])
    assert len(cells) == 362
    assert cells == printed
    sets = {layout: len(PRIVATREE.tables[layout].datasets) for layout in PRIVATREE.tables}
    assert sets == {"VI": 29, "VII": 29, "VIII": 13}


@pytest.mark.skipif(not FILES.is_dir(), reason="no ../published beside $DPREPRO_DATA")
def test_every_error_of_dp_xgboost_is_a_cell():
    """Errors in whole per cent are accuracies of two digits; data under names that say more."""
    ours = {"synthetic-cls": "synthetic-labels", "synthetic-reg": "synthetic-numbers"}
    printed = {}
    for row in rows(FILES / "dp_xgboost_2022.csv"):
        is_error = row["metric"] == "error_rate_pct"
        mean = f"{1 - int(row['mean']) / 100:.2f}" if is_error else row["mean"]
        metric = "accuracy" if is_error else "rmse"
        place = (ours.get(row["dataset"], row["dataset"]), row["method"], row["epsilon"], metric)
        printed[place] = (mean, row["std"])
    cells = {
        (c["dataset"], c["method"], c["epsilon"], c["metric"]): (c["mean"], c["std"])
        for c in rows(FOLDER / "dp-xgboost-2022" / "cells.csv")
    }
    assert len(cells) == 35
    assert cells == printed


@pytest.mark.skipif(not FILES.is_dir(), reason="no ../published beside $DPREPRO_DATA")
def test_every_figure_of_dp_gbdt_but_percentage_errors_is_a_cell_digit_by_digit():
    """Errors in per cent are accuracies; a table is a file, a column the switches of its rows."""
    names = {"adult": "adult-45222", "yearMSD-10000": "year-msd-10000"}
    columns = {("false", "true"): "filtering", ("true", "false"): "clipping"}
    files, printed, left_out = {}, {}, 0
    for row in rows(FILES / "dp_gbdt_2021.csv"):
        if row["metric"] == "mape_pct":
            left_out += 1
            continue
        switches = (row["leaf_clipping"], row["gradient_filtering"])
        method = "-".join([
            f"dp-gbdt-{columns.get(switches, 'both')}",
            *["equal"] * (row["balanced_partition"] == "true"),
            *["rejection"] * (row["tree_rejection"] == "true"),
        ])  # fmt: skip
        mean, std = Decimal(row["mean"]), Decimal(row["std"])
        if row["metric"] == "error_rate_pct":
            mean, std = 1 - mean / 100, std / 100
        method = "gbdt" if row["method"] == "gbdt" else method
        data = names.get(row["dataset"], row["dataset"])
        figures = files.setdefault(row["source_file"], {})
        figures[data, method, row["epsilon"]] = (mean, std)
    for row in rows(FOLDER / "dp-gbdt-2021" / "cells.csv"):
        figures = printed.setdefault(row["table"], {})
        place = (row["dataset"], row["method"], row["epsilon"])
        figures[place] = (Decimal(row["mean"]), Decimal(row["std"]))
    assert (len(files), left_out, sum(map(len, printed.values()))) == (19, 256, 1025)
    assert all(figures in printed.values() for figures in files.values())


def test_a_standard_error_over_folds_is_judged_as_one():
    """The variance of the printed mean is the square of the printed error, not a fifth of it."""
    (tree,) = (
        c
        for c in PRIVATREE.cells()
        if (c.table, c.dataset, c.method) == ("VI", "breast-w", "decision-tree")
    )
    assert (tree.repeats, tree.in_print) == (5, "0.950 ± 0.007 SE")
    sample = printed_sample(tree, PRIVATREE)
    assert sample.sd == pytest.approx(0.007 * 5**0.5)
    assert sample.sd**2 * sample.weight == pytest.approx(0.007**2)
    other = PRIVATREE.protocol.model_copy(update={"splits": 200})
    more = PRIVATREE.model_copy(update={"protocol": other})
    assert printed_sample(tree, more).weight == pytest.approx(1 / 5)


OF_TWO = ("breast-w", "vote-complete")


def test_what_dprepro_lacks_is_printed_only_until_it_is_run():
    nothing = judge_cells(PRIVATREE, assemble([]), margins())
    found = {v.verdict for v in nothing if v.published.method == "bdpt"}
    assert found == {Verdict.IMPOSSIBLE}
    assert {v.note for v in nothing if v.published.method == "bdpt"} == {
        "printed only: dprepro has no such method"
    }
    runnable = [v.published for v in nothing if v.verdict is Verdict.NOT_RUN]
    assert len({c.dataset for c in runnable}) == 12
    assert {c.method for c in runnable} == {"decision-tree", "diffprivlib-tree", "privatree"}
    # Of nine sets three methods, of three privatree alone; of six accuracies beside guarantees.
    assert len(runnable) == 9 * (2 + 2 + 2) + 3 * 2 + 6 * 2
    runnable = [c for c in runnable if c.method != "privatree" and c.dataset in OF_TWO]
    # As if dprepro lacked what it has: results that answer are judged, unless nobody can run them.
    results = read_results(ROOT / "results", ["privatree-breast-w", "privatree-vote"])
    (entry, *_) = PRIVATREE.impossible
    for until_run, expected in ((True, Verdict.INCONCLUSIVE), (False, Verdict.IMPOSSIBLE)):
        lacking = entry.model_copy(update={"methods": None, "until_run": until_run})
        paper = PRIVATREE.model_copy(update={"impossible": [lacking]})
        assert {v.verdict for v in judge_cells(paper, results, margins(), runnable)} == {expected}
