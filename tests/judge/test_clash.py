import math
from dataclasses import replace

import pytest

from dprepro.judge.cell_matching import Clash, apart_notes, choose, clash_notes
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


@pytest.mark.parametrize("seeds", [(2, 3), (3, 2)])
def test_settings_that_differ_are_those_of_the_first_level(seeds):
    pairs = [
        (named("a", label="q", epsilon=epsilon), named("b", label="q", epsilon=epsilon, seed=seed))
        for epsilon, seed in zip((0.5, 4), seeds, strict=True)
    ]
    (clash,) = clash_notes([Clash(pair) for pair in pairs])
    (apart,) = apart_notes([cell for pair in pairs for cell in pair])
    for note in (clash, apart):
        assert note.startswith("adult, q at epsilon 0.5, 4: ")
        assert f"(seed 1 or {seeds[0]})" in note


def test_results_at_one_level_alone_stand_apart_as_well():
    (note,) = apart_notes([named("a", label="q"), named("b", label="q", seed=2)])
    assert note.startswith(
        "adult, q at epsilon 0.5: a and b differ in their settings (seed 1 or 2)"
    )


def test_results_in_several_configs_can_be_chosen_by_the_first():
    both = replace(named("a"), journals=("first", "second"))
    text = str(Clash((both, named("b", seed=2))))
    assert "in first+second and b. Choose one with --config first," in text
