import math
from dataclasses import replace

from dprepro.report.layout.tables import unprinted_tables
from dprepro.results.folder import ResultCell
from tests.report.journals import task
from tests.report.layout.test_tables import ADULT, measured, only_table, own, tables


def test_what_answers_to_nothing_printed_gets_tables_of_its_own_by_metric():
    mine = [
        measured(0.9, dataset="mine"),
        measured(0.95, "ebm", math.inf, dataset="mine"),
        measured(4321.0, metric="rmse", dataset="prices"),
    ]
    paper, auc, rmse = tables(*ADULT, *mine)
    assert paper.paper == "dp-ebm-2021"
    assert (auc.paper, auc.title) == (None, "AUROC of results that no printed table has")
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
    assert table.title == "Brier score of results that no printed table has"
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
        f"{name} of results that no printed table has" for name in ("AUROC", "Accuracy")
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
    alone = {"AUROC of results that no printed table has": ["mine"]}
    elsewhere = unfinished("rmse", dataset="prices")
    assert methods(unprinted_tables([finished, elsewhere], None, {})) == {
        **alone, "RMSE of results that no printed table has": ["broken"]
    }  # fmt: skip
    assert methods(unprinted_tables([finished, elsewhere], "auc", {})) == alone
    assert methods(unprinted_tables([finished, unfinished(dataset="prices")], None, {})) == alone
    of_papers = unfinished("auc", papers=("b", "a"))
    assert methods(unprinted_tables([finished, of_papers], None, {})) == {
        **alone, "AUROC of the configs of a, b, not printed there": ["broken"]
    }  # fmt: skip
