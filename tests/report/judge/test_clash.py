import math
from dataclasses import replace

import pytest

from dprepro.report.judge.answers import choose
from dprepro.report.judge.clash import Clash, apart_notes, clash_notes
from tests.report.journals import cell

PLACE = ("dp-ebm-2021", "2")


def named(journal, **fields):
    return replace(cell([0.8, 0.9], **fields), journals=(journal,))


def test_what_is_only_planned_does_not_stand_apart():
    planned = replace(named("a"), values={}, planned=5)
    assert apart_notes([planned, named("b")]) == []


def test_why_results_stand_apart_is_said_once_for_a_label():
    cells = [
        named(journal, label="q", epsilon=epsilon, params=params)
        for epsilon in (1, 8)
        for journal, params in (("q", {}), ("tuned", {"max_bins": 8}))
    ]
    assert apart_notes(cells) == [
        "adult, q at epsilon 1, 8: q and tuned differ in their settings (max_bins default or 8), "
        "and stand apart"
    ]


def test_a_clash_names_settings_parameters_and_configs():
    clash = choose(
        [named("a"), named("b", domain="public", params={"max_bins": 8}), named("c", seed=None)]
    )
    assert clash.mark == "3 results"
    assert clash.differences == (
        "seed 1 or 1 or None, domain observed or public or observed, "
        "max_bins default or 8 or default"
    )
    text = str(clash)
    assert text.startswith("adult, dp-ebm-gdp-2021: 3 results with different settings (")
    assert "in a and b and c. Choose one with --config a" in text


@pytest.mark.parametrize(
    ("epsilons", "levels"), [([0.5, 4], " at epsilon 0.5, 4:"), ([math.inf], "dp-ebm-gdp-2021: 2")]
)
def test_levels_that_clash_alike_are_said_once(epsilons, levels):
    clashes = [
        Clash((named("a", epsilon=epsilon), named("b", epsilon=epsilon, seed=2)))
        for epsilon in epsilons
    ]
    (note,) = clash_notes(clashes)
    assert levels in note


def test_labels_that_clash_are_said_one_by_one():
    clashes = [
        Clash((named("a", label=label), named("b", label=label, seed=2))) for label in ("x", "y")
    ]
    assert [note.partition(":")[0] for note in clash_notes(clashes)] == [
        "adult, x at epsilon 0.5",
        "adult, y at epsilon 0.5",
    ]
