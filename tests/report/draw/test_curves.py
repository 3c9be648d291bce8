import math
from dataclasses import replace

import pytest

from dprepro.data import PRIVATE_PREFIX
from dprepro.papers.document import Column, load_documents
from dprepro.report.draw.curves import Curve, Panel, Point, build_panels
from dprepro.report.layout.tables import Entry, Group, ResultTable, build_tables
from dprepro.results.folder import Results
from dprepro.results.metrics import METRICS
from dprepro.runtime.errors import DpreproError
from tests.report.journals import cell, spread

PAPER = load_documents()["dp-ebm-2021"]
INF = math.inf


def panels(*cells, methods=()):
    return build_panels(build_tables(Results(cells), [PAPER], compare=True), methods)


def measured(mean, epsilon, label="dp-ebm-gdp-2021", splits=25, **fields):
    return cell(spread(mean, 0.005, splits), label=label, epsilon=epsilon, **fields)


ADULT = (measured(0.87, 0.5), measured(0.89, 4.0), measured(0.92, INF, "ebm"))


def test_a_curve_holds_measured_and_published_points_in_order_of_epsilon():
    (panel,) = panels(*ADULT)
    (gdp,) = [c for c in panel.curves if c.method == "dp-ebm-gdp-2021"]
    assert [p.epsilon for p in gdp.measured] == [0.5, 4.0, INF]
    assert [p.mean for p in gdp.measured] == pytest.approx([0.87, 0.89, 0.92])
    assert gdp.measured[0].sd == pytest.approx(0.005)
    assert [p.epsilon for p in gdp.published] == [0.5, 1.0, 2.0, 4.0, 8.0, INF]
    assert gdp.published[0] == Point(0.5, 0.875, 0.005)


def test_methods_that_were_not_run_have_published_points_only():
    (panel,) = panels(*ADULT)
    assert [c.method for c in panel.curves] == [
        "dpboost-2021",
        "dp-logistic",
        "dp-ebm-classic-2021",
        "dp-ebm-gdp-2021",
    ]
    boost = panel.curves[0]
    assert (boost.measured, len(boost.published)) == ((), 6)
    assert boost.published[-1].mean == 0.928, "LightGBM stands at the end of DPBoost"


def test_every_published_cell_becomes_a_point():
    cells = [measured(0.8, 1.0, dataset=d) for d in PAPER.tables["2"].datasets]
    cells += [
        measured(5.0, 1.0, metric="rmse", dataset=dataset) for dataset in PAPER.tables["3"].datasets
    ]
    found = panels(*cells)
    assert [panel.metric.name for panel in found] == ["auc"] * 4 + ["rmse"] * 4
    points = {
        (panel.dataset, point) for panel in found for c in panel.curves for point in c.published
    }
    assert points == {(c.dataset, Point(c.epsilon, c.mean, c.std)) for c in PAPER.cells()}


def test_methods_can_be_chosen():
    (panel,) = panels(*ADULT, methods=["dp-ebm-gdp-2021"])
    assert [curve.method for curve in panel.curves] == ["dp-ebm-gdp-2021"]
    assert panels(*ADULT, methods=["dpebm-gdp (2021 code)"]) == [panel]
    with pytest.raises(DpreproError, match="did you mean 'dp-ebm-gdp-2021'"):
        panels(*ADULT, methods=["dp-ebm-gpd"])


def test_a_panel_without_a_chosen_method_is_left_out():
    other = measured(0.5, 1.0, "mine", dataset="shop")
    assert [p.dataset for p in panels(*ADULT, other, methods=["mine"])] == ["shop"]


def test_datasets_that_nobody_printed_have_no_published_points():
    (panel,) = panels(measured(0.5, 1.0, dataset="shop"))
    assert [(len(c.measured), len(c.published)) for c in panel.curves] == [(1, 0)]


def test_failed_cells_give_no_point():
    (panel,) = panels(*ADULT, cell([], "auc", label="dp-ebm-classic-2021", epsilon=1.0))
    (classic,) = [c for c in panel.curves if c.method == "dp-ebm-classic-2021"]
    assert [p.epsilon for p in classic.measured] == [INF]


def test_notes_warn_of_fewer_splits_and_of_private_data():
    assert panels(*ADULT)[0].notes == ()
    (few,) = panels(measured(0.87, 0.5, splits=3))
    assert few.notes == ("some points have fewer splits than planned",)
    (private,) = panels(measured(0.8, 0.5, dataset="healthcare"))
    assert private.notes == ("published: real patient data that was never released",)


@pytest.mark.parametrize(
    ("metric", "means", "logarithmic"),
    [
        ("rmse", (1.0, 9.9), False),
        ("rmse", (1.0, 10.1), True),
        ("rmse", (0.0, 10.1), False),
        ("auc", (0.05, 0.95), False),
    ],
)
def test_losses_over_more_than_a_decade_are_logarithmic(metric, means, logarithmic):
    ours, theirs = (Point(1.0, mean, None) for mean in means)
    curve = Curve("m", "M", (ours,), (theirs,))
    assert Panel("d", "D", METRICS[metric], (curve,)).is_logarithmic is logarithmic


def test_tables_that_print_the_same_dataset_are_told_apart_and_single_points_left_out():
    table = ResultTable("t", METRICS["auc"], (Column(title="a", method="a"),), (), "p", "2")
    results = [cell([0.8, 0.9], label="a", epsilon=epsilon) for epsilon in (1.0, 2.0)]
    rows = [(Entry("a", result.task.epsilon, result),) for result in results]
    whole, single = (Group("adult", "Adult", 3, tuple(chosen)) for chosen in (rows, rows[:1]))
    found = build_panels(
        [
            replace(table, groups=(whole,)),
            replace(table, groups=(single,), table="4"),
            replace(table, groups=(whole,), table="figure-2"),
        ]
    )
    assert [panel.title for panel in found] == ["Adult (Table 2)", "Adult (figure-2)"]
    assert [panel.table for panel in found] == ["2", "figure-2"]
    (alone,) = build_panels([replace(table, groups=(single,))])
    assert (alone.title, alone.table) == ("Adult", "")


def test_a_picture_of_private_rows_says_so():
    (panel,) = panels(measured(0.88, 1.0, data_fingerprint=f"{PRIVATE_PREFIX}abc"))
    assert panel.title.endswith(" (PRIVATE)")
    assert "PRIVATE rows: exact scores, not for release" in panel.notes
