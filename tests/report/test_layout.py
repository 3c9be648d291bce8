""""""

import math
from dataclasses import replace

import pytest

from dprepro.data import PRIVATE_PREFIX, SYNTHETIC_PREFIX
from dprepro.judge.verdicts import Verdict
from dprepro.papers.document import load_documents
from dprepro.report.layout import build_tables, unprinted_tables
from dprepro.results.folder import ResultCell, Results
from dprepro.runtime.errors import DpreproError
from tests.report.journals import cell, spread, task

DOCUMENTS = list(load_documents().values())


def measured(mean, label="dp-ebm-gdp-2021", epsilon=1.0, metric="auc", splits=25, **fields):
    values = spread(mean, 0.005 * mean, splits)
    return cell(values, metric, label=label, epsilon=epsilon, **fields)


def tables(*cells, **options):
    return build_tables(Results(cells), DOCUMENTS, **options)


def only_table(*cells, **options):
    (table,) = tables(*cells, **options)
    return table


def best(row):
    return [entry.label for entry in row if entry.is_best]


ADULT = [
    measured(0.87, "dp-ebm-classic-2021"),
    measured(0.88, "dp-ebm-gdp-2021"),
    measured(0.92, "ebm", math.inf),
    measured(0.6, "logistic", math.inf),
    measured(0.47, "dp-logistic", delta=0.0),
]


def test_columns_stand_in_printed_order_and_others_follow():
    table = only_table(measured(0.5, "mine"), *ADULT)
    titles = [column.title for column in table.columns]
    assert titles == [
        "Logistic regression",
        "DPEBM-Classic (2021 code)",
        "DPEBM-GDP (2021 code)",
        "mine",
    ]
    assert (table.paper, table.table, table.metric.name) == ("dp-ebm-2021", "2", "auc")


def test_the_non_private_row_is_last_and_shared():
    (group,) = only_table(*ADULT, measured(0.86, epsilon=0.5)).groups
    assert [row[0].epsilon for row in group.rows] == [0.5, 1.0, math.inf]
    assert [entry.label for entry in group.rows[-1]] == ["logistic", "ebm", "ebm"]


def test_datasets_stand_in_printed_order():
    table = only_table(measured(0.8, dataset="telco"), measured(0.9, dataset="adult"))
    assert [(g.dataset, g.title) for g in table.groups] == [
        ("adult", "Adult-Income"),
        ("telco", "Telco-Churn"),
    ]


def test_the_best_of_a_row_is_the_highest_auroc():
    (group,) = only_table(*ADULT).groups
    assert [best(row) for row in group.rows] == [["dp-ebm-gdp-2021"], ["ebm", "ebm"]]


def test_the_best_of_a_row_is_the_lowest_rmse():
    fields = {"metric": "rmse", "dataset": "wine-white"}
    table = only_table(
        measured(0.8, "dp-ebm-gdp-2021", **fields), measured(0.9, "dp-ebm-classic-2021", **fields)
    )
    assert best(table.groups[0].rows[0]) == ["dp-ebm-gdp-2021"]
    assert table.table == "3"


def test_ties_at_the_printed_precision_are_all_best():
    (group,) = only_table(measured(0.8891), measured(0.8894, "dp-ebm-classic-2021")).groups
    assert best(group.rows[0]) == ["dp-ebm-classic-2021", "dp-ebm-gdp-2021"]


def test_a_single_method_has_no_best():
    (group,) = only_table(measured(0.9)).groups
    assert best(group.rows[0]) == []


def test_incomplete_cells_cannot_be_best():
    (group,) = only_table(
        measured(0.95, splits=3), measured(0.8, "dp-ebm-classic-2021"), measured(0.7, "dp-logistic")
    ).groups
    assert best(group.rows[0]) == ["dp-ebm-classic-2021"]
    gdp = group.rows[0][-1]
    assert (gdp.result.splits("auc"), gdp.planned) == (3, 25)


def test_failed_methods_keep_their_column():
    broken = ResultCell(task("broken", 1.0), ("t",), {}, failed=25, planned=25)
    table = only_table(measured(0.9), broken)
    assert [column.title for column in table.columns] == ["DPEBM-GDP (2021 code)", "broken"]


def test_comparing_adds_what_is_printed_but_not_measured():
    plain = only_table(measured(0.887, epsilon=2.0))
    table = only_table(measured(0.887, epsilon=2.0), compare=True)
    assert len(plain.columns) == 1
    assert len(table.columns) == 4
    assert [group.dataset for group in table.groups] == ["adult"]  # no row of what was not measured
    (group,) = table.groups
    assert [row[0].epsilon for row in group.rows] == [0.5, 1, 2, 4, 8, math.inf]
    verdicts = {e.label: e.verdict.verdict for e in group.rows[2]}
    assert verdicts["dp-ebm-gdp-2021"] is Verdict.EQUIVALENT
    assert verdicts["dpboost-2021"] is Verdict.NOT_RUN
    assert all(e.verdict is None for row in plain.groups[0].rows for e in row)


def test_every_printed_cell_of_a_dataset_stands_in_the_compared_table():
    (group,) = only_table(measured(0.887), compare=True).groups
    shown = {(e.label, e.epsilon): e.verdict.published for row in group.rows for e in row}
    printed = [c for c in DOCUMENTS[0].cells() if c.dataset == "adult"]
    assert sorted(shown, key=str) == sorted(((c.method, c.epsilon) for c in printed), key=str)
    assert all(shown[c.method, c.epsilon] == c for c in printed)


@pytest.mark.parametrize(
    ("dataset", "metric", "mean", "decimals"),
    [
        ("adult", "auc", 0.875, 3),
        ("cal-housing", "rmse", 85652.0, 0),
        ("elevators", "rmse", 0.006, 3),
        ("prices", "rmse", 4321.0, 0),
        ("prices", "rmse", 4.321, 3),
        ("prices", "rmse", 0.004321, 6),
    ],
)
def test_digits_are_the_printed_ones_or_four_significant(dataset, metric, mean, decimals):
    table = only_table(measured(mean, metric=metric, dataset=dataset))
    assert table.groups[0].decimals == decimals


def test_another_metric_can_be_asked_for():
    both = ResultCell(
        task(epsilon=1.0, dataset="telco"),
        ("t",),
        {"auc": (0.9, 0.8), "accuracy": (0.7, 0.6)},
        planned=2,
    )
    table = only_table(both, metric="accuracy")
    assert (table.metric.name, table.paper) == ("accuracy", None)
    assert table.title.startswith("Accuracy of")
    with pytest.raises(DpreproError, match="The results have: accuracy, auc"):
        tables(both, metric="rmse")
    with pytest.raises(DpreproError, match=r"no result has the metric 'rmse'\. The results"):
        tables(both, metric="rmse")
    with pytest.raises(DpreproError, match="'acuracy'; did you mean 'accuracy'"):
        tables(both, metric="acuracy")
    absent = replace(both, absent={"log_loss": "no probabilities"})
    with pytest.raises(DpreproError, match=r"'log_loss' \(no probabilities\)"):
        tables(absent, metric="log_loss")


def test_datasets_can_be_chosen():
    cells = [measured(0.9), measured(0.8, dataset="telco")]
    table = only_table(*cells, datasets=["telco"])
    assert [group.dataset for group in table.groups] == ["telco"]
    with pytest.raises(DpreproError, match="did you mean 'telco'"):
        tables(*cells, datasets=["tleco"])


def test_results_of_the_papers_delta_are_preferred_and_others_still_shown():
    other = measured(0.7, delta=1e-5)
    (group,) = only_table(other).groups
    assert group.rows[0][0].result is other
    (group,) = only_table(other, measured(0.88)).groups
    assert group.rows[0][0].result.task.delta == 1e-6


def test_two_settings_under_one_label_are_marked_and_end_nothing():
    table = only_table(measured(0.9), measured(0.8, domain="public"), measured(0.7, "dpboost-2021"))
    first, second = table.groups[0].rows[0]
    assert first.result.mean("auc") == pytest.approx(0.7)
    assert (second.result, second.clash.mark) == (None, "2 results")
    assert "domain observed or public" in table.notes[-1]


def test_results_of_the_config_that_answers_to_the_table_are_preferred():
    paper, slides = "replication-slides-2025", frozenset({"replication-slides-2025"})
    other = replace(measured(0.5, "ebm", math.inf, splits=3, seed=2), papers=slides)
    ours = replicated(0.99, "ebm", math.inf, "non-dp-models")
    (table,) = tables(ours, other, tables=[(paper, "non-dp-models")])
    ((entry,),) = table.groups[0].rows
    assert (entry.result, entry.clash) == (ours, None)


def own(mean, label, epsilon, journal="mine", **fields):
    """A cell of a config that answers to nothing printed."""
    found = measured(mean, label, epsilon, **fields)
    return replace(found, journals=(journal,), papers=frozenset())


def test_a_config_of_ones_own_stands_apart_from_the_papers_and_under_its_own_names():
    paper = frozenset({"dp-ebm-2021"})
    theirs = replace(measured(0.875), papers=paper, tables=frozenset({("dp-ebm-2021", "2")}))
    printed, mine = tables(
        theirs, own(0.8, "dp-ebm-gdp-2021", 1.0, params={"max_bins": 8}), own(0.9, "ebm", math.inf)
    )
    assert [e.result for e in printed.groups[0].rows[0]] == [theirs]
    assert mine.paper is None
    assert [column.title for column in mine.columns] == ["dp-ebm-gdp-2021", "ebm"]
    private, plain = mine.groups[0].rows
    assert [e.label for e in plain] == ["dp-ebm-gdp-2021", "ebm"]
    assert (plain[0].result, private[1].result) == (None, None)
    assert plain[1].result.mean("auc") == pytest.approx(0.9)


def test_printed_tables_can_be_chosen():
    cells = [measured(0.9), measured(0.9, dataset="wine-white", metric="rmse")]
    (table,) = tables(*cells, tables=[("dp-ebm-2021", "3")])
    assert table.table == "3"
    with pytest.raises(DpreproError, match=r"Table 2 of lazybb-2022 prints; there are results of"):
        tables(*cells, tables=[("lazybb-2022", "2")])


def test_the_notes_name_what_the_printed_table_does_not_have():
    table = only_table(measured(0.5, "mine"), *ADULT)
    assert table.notes == ("Table 2 of dp-ebm-2021 does not print: mine.",)
    assert only_table(*ADULT).notes == ()


def test_when_nothing_has_finished_the_reasons_are_given():
    broken = ResultCell(task(), ("t",), {}, failed=2, messages=("ValueError: no",))
    assert only_table(broken).groups[0].rows[0][0].result is broken
    unprinted = ResultCell(task(dataset="mine"), ("t",), {}, failed=2, messages=("no luck",))
    with pytest.raises(DpreproError, match=r"no task has finished yet\. no luck"):
        tables(unprinted)
    with pytest.raises(DpreproError, match="`dprepro run` runs them"):
        tables()


def test_what_no_document_prints_can_be_left_out():
    cells = [measured(0.9), measured(0.9, dataset="mine")]
    assert len(tables(*cells)) == 2
    assert only_table(*cells, unprinted=False).paper == "dp-ebm-2021"
    broken = ResultCell(task(dataset="mine"), ("t",), {}, failed=2, messages=("no luck",))
    with pytest.raises(DpreproError, match="there are results of mine"):
        tables(cells[1], broken, unprinted=False)
    with pytest.raises(DpreproError, match=r"no task has finished yet\. no luck"):
        tables(broken, unprinted=False)


def test_synthetic_data_are_named_in_the_heading_and_never_judged():
    made_up = measured(0.8, dataset="healthcare", data_fingerprint=f"{SYNTHETIC_PREFIX}abc")
    table = only_table(made_up, *ADULT, compare=True)
    assert [g.title for g in table.groups] == ["Adult-Income", "Healthcare (SYNTHETIC data)"]
    shown = [e for row in table.groups[1].rows for e in row if e.result]
    assert [e.result.mean("auc") for e in shown] == [pytest.approx(0.8)]
    verdicts = {e.verdict.verdict for row in table.groups[1].rows for e in row if e.verdict}
    assert verdicts == {Verdict.IMPOSSIBLE}


def test_private_rows_are_named_in_the_heading():
    private = measured(0.8, dataset="healthcare", data_fingerprint=f"{PRIVATE_PREFIX}abc-def")
    public, mine = only_table(private, *ADULT).groups
    assert public.title == "Adult-Income"
    assert mine.title == "Healthcare (PRIVATE)"


def test_results_that_answer_to_another_document_stay_out():
    other = replace(measured(0.7, label="stranger"), papers=frozenset({"another"}))
    free = replace(measured(0.6, label="mine"), papers=frozenset())
    ours = replace(measured(0.8), papers=frozenset({"dp-ebm-2021"}))
    labels = {
        table.paper: [column.method for column in table.columns]
        for table in tables(ours, other, free)
        if table.paper or "another" not in table.title
    }
    assert labels == {"dp-ebm-2021": ["dp-ebm-gdp-2021"], None: ["mine"]}


def test_a_table_with_two_metrics_is_shown_as_two():
    paper = load_documents()["dp-ebm-2021"]
    layout = paper.tables["2"].model_copy(update={"also": ["accuracy"]})
    paper = paper.model_copy(update={"tables": {"2": layout}})
    both = replace(measured(0.8), values={"auc": (0.8, 0.9), "accuracy": (0.7, 0.8)})
    shown = build_tables(Results([both]), [paper])
    assert [table.metric.name for table in shown] == ["auc", "accuracy"]
    assert len(build_tables(Results([both]), [paper], metric="accuracy")) == 1


def test_methods_that_no_layout_names_are_headed_by_their_titles():
    names = {"dp-ebm-joint": "DPEBM-Joint", "mine": "Mine", "coarse mine": "Never"}
    methods = {
        "dp-ebm-joint": "dp-ebm-joint",
        "mine max_bins=8": "mine",
        "coarse": "dp-ebm-joint",
    }
    cells = [measured(0.8, label, method=method) for label, method in methods.items()]
    table = only_table(*cells, titles=names)
    assert [column.title for column in table.columns] == [
        "DPEBM-Joint",
        "Mine max_bins=8",
        "coarse",
    ]
    assert [column.method for column in table.columns] == list(methods)


def test_a_label_is_no_method_that_happens_to_be_called_so():
    names = {"ebm-tuned": "EBM, tuned", "logistic": "Logistic regression (as published)"}
    other = measured(0.8, "ebm-tuned", math.inf, method="logistic")
    assert [column.title for column in only_table(other, titles=names).columns] == ["ebm-tuned"]
    mine = own(0.8, "logistic", math.inf, dataset="shop")
    assert [column.title for column in only_table(mine, titles=names).columns] == ["logistic"]


def test_each_of_several_results_wants_the_splits_of_the_printed_table():
    table = only_table(measured(0.9, splits=3), measured(0.8, domain="public"))
    ((entry,),) = table.groups[0].rows
    assert [cell.planned for cell in entry.clash.cells] == [25, 25]


def replicated(mean, label, epsilon, *answered):
    paper = "replication-slides-2025"
    own = {(paper, table) for table in answered}
    found = measured(mean, label, epsilon, delta=0.0, splits=3)
    return replace(found, papers=frozenset({paper}), tables=frozenset(own))


def test_results_stand_in_the_table_that_their_config_answers_to():
    shown = tables(
        replicated(0.93, "ebm", math.inf, "non-dp-models"),
        replicated(0.92, "mine", math.inf, "non-dp-models"),
        replicated(0.87, "dp-ebm-gdp-2021", 0.5, "adult-recreated"),
        replicated(0.84, "toy-dp-ebm", 4.0, "custom-vs-official"),
        replicated(0.88, "dp-ebm-gdp-2021", 4.0, "custom-vs-official", "adult-recreated"),
    )
    entries = {
        t.table: {(e.label, e.epsilon) for g in t.groups for row in g.rows for e in row if e.result}
        for t in shown
    }
    assert entries == {
        "non-dp-models": {("ebm", math.inf), ("mine", math.inf)},
        "adult-recreated": {("dp-ebm-gdp-2021", 0.5), ("dp-ebm-gdp-2021", 4.0)},
        "custom-vs-official": {("toy-dp-ebm", 4.0), ("dp-ebm-gdp-2021", 4.0)},
    }
    titles = {t.table: [column.title for column in t.columns] for t in shown}
    assert titles["non-dp-models"] == ["EBM", "mine"]
    assert "0.873" in shown[1].notes[0]


def test_a_lone_non_private_twin_gets_one_column():
    (group,) = only_table(measured(0.92, "ebm", math.inf)).groups
    assert [[entry.label for entry in row] for row in group.rows] == [["ebm"]]


def test_a_compared_table_says_which_columns_were_chosen_by_looking_at_print():
    boosted = measured(0.6, "dpboost-2021", delta=0.0)
    note = (
        "Settings or rows chosen by looking at printed numbers, of so many: dpboost-2021 (of 39), "
        "dp-ebm-gdp-2021 (of 2). They agree more easily: `dprepro forensics --held-out`."
    )
    given = (boosted, measured(0.88), measured(0.47, "dp-logistic", delta=0.0))
    assert note in only_table(*given, compare=True).notes
    assert note not in only_table(*given).notes
    plain = only_table(measured(0.47, "dp-logistic", delta=0.0), compare=True)
    assert not any("chosen" in line for line in plain.notes)


def test_what_answers_to_nothing_printed_gets_tables_of_its_own_by_metric():
    mine = [
        measured(0.9, dataset="mine"),
        measured(0.95, "ebm", math.inf, dataset="mine"),
        measured(4321.0, metric="rmse", dataset="prices"),
    ]
    paper, auc, rmse = tables(*ADULT, *mine)
    assert paper.paper == "dp-ebm-2021"
    assert (auc.paper, auc.title) == (None, "AUROC of results without a printed counterpart")
    assert (rmse.metric.name, rmse.groups[0].dataset) == ("rmse", "prices")


def test_configs_of_ones_own_that_clash_are_shown_apart():
    first = own(0.8, "dp-ebm-gdp-2021", 1.0, "a", dataset="shop")
    second = own(0.9, "dp-ebm-gdp-2021", 1.0, "b", dataset="shop", params={"max_bins": 8})
    shared = replace(own(0.7, "dpboost-2021", 1.0, dataset="shop"), journals=("a", "b"))
    table = only_table(first, second, shared)
    assert [group.title for group in table.groups] == ["shop (a)", "shop (b)"]
    shown = [[e.result for e in group.rows[0]] for group in table.groups]
    assert shown == [[first, shared], [second, shared]]
    assert table.notes == (
        "shop, dp-ebm-gdp-2021 at epsilon 1: a and b differ in their settings "
        "(max_bins default or 8), and stand apart",
    )


def test_the_metric_is_the_configs_where_nothing_is_printed():
    both = replace(
        own(0.9, "mine", 1.0, dataset="shop"), values={"auc": (0.9,), "accuracy": (0.7,)}
    )
    assert only_table(replace(both, metric="accuracy")).metric.name == "accuracy"
    assert only_table(both).metric.name == "auc"


def test_a_result_without_a_number_stands_beside_the_finished_ones_of_its_dataset():
    finished = own(0.9, "mine", 1.0, dataset="shop")
    failed = replace(
        ResultCell(task("broken", 1.0, dataset="shop"), ("mine",), {}, failed=3, planned=3),
        papers=frozenset(),
    )
    (table,) = unprinted_tables([finished, failed], None, {})
    assert [column.method for column in table.columns] == ["mine", "broken"]
    assert unprinted_tables([failed], None, {}) == []


def test_results_without_the_metric_are_named_with_what_to_do():
    both = {"auc": (0.9,), "brier_score": (0.1,)}
    has = replace(own(0.9, "mine", 1.0, dataset="shop"), values=both)
    old = own(0.8, "old", 1.0, dataset="shop")
    none = replace(own(0.8, "rules", 1.0, dataset="shop"), absent={"brier_score": "no odds"})
    other = own(0.8, "old", 1.0, dataset="elsewhere")
    (table,) = unprinted_tables([has, old, none, other], "brier_score", {})
    assert table.title == "Brier score of results without a printed counterpart"
    assert table.notes == (
        "Without Brier score: old on shop. Records of earlier runs have fewer metrics: with "
        "`metrics: [brier_score]` in its config, `dprepro run CONFIG` runs them again",
        "Without Brier score: rules on shop (no odds).",
    )


def test_a_scorer_has_a_table_like_any_metric():
    cell = replace(own(0.9, "mine", 1.0, dataset="shop"), values={"median_absolute_error": (1.5,)})
    (table,) = unprinted_tables([cell], "median_absolute_error", {})
    assert (table.metric.title, table.metric.higher_is_better) == ("Median absolute error", False)


def test_nothing_is_advised_about_a_metric_that_is_recorded_wherever_it_can_be():
    both = replace(
        own(0.9, "mine", 1.0, dataset="shop"), values={"auc": (0.9,), "log_loss": (0.5,)}
    )
    (table,) = unprinted_tables([both, own(0.8, "rules", 1.0, dataset="shop")], "log_loss", {})
    assert table.notes == ("Without Log loss: rules on shop.",)


def unfinished(metric="", dataset="shop", papers=()):
    """Return a result without a number."""
    return replace(
        ResultCell(task("broken", 1.0, dataset=dataset), ("mine",), {}, failed=3, metric=metric),
        papers=frozenset(papers),
    )


def methods(found):
    return {table.title: [column.method for column in table.columns] for table in found}


def test_a_result_without_a_number_stands_in_the_table_of_its_configs_metric():
    by_auc = own(0.9, "mine", 1.0, dataset="shop")
    by_accuracy = replace(by_auc, values={"accuracy": (0.7,)}, metric="accuracy")
    first, second = (
        f"{name} of results without a printed counterpart" for name in ("AUROC", "Accuracy")
    )
    both = [by_auc, by_accuracy]
    assert methods(unprinted_tables([*both, unfinished("accuracy")], None, {})) == {
        first: ["mine"], second: ["mine", "broken"]
    }  # fmt: skip
    assert methods(unprinted_tables([*both, unfinished()], None, {})) == {
        first: ["mine", "broken"], second: ["mine"]
    }  # fmt: skip


def test_a_result_without_a_number_gets_a_table_where_none_has_its_dataset_or_documents():
    finished = own(0.9, "mine", 1.0, dataset="shop")
    alone = {"AUROC of results without a printed counterpart": ["mine"]}
    elsewhere = unfinished("rmse", dataset="prices")
    assert methods(unprinted_tables([finished, elsewhere], None, {})) == {
        **alone, "RMSE of results without a printed counterpart": ["broken"]
    }  # fmt: skip
    assert methods(unprinted_tables([finished, elsewhere], "auc", {})) == alone
    assert methods(unprinted_tables([finished, unfinished(dataset="prices")], None, {})) == alone
    of_papers = unfinished("auc", papers=("b", "a"))
    assert methods(unprinted_tables([finished, of_papers], None, {})) == {
        **alone, "AUROC of the configs of a, b, not printed there": ["broken"]
    }  # fmt: skip
