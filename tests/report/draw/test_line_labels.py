"""Names beside the ends of curves: near their ends, in their order, and never on each other."""

import itertools

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.optimize import minimize

from dprepro.report.draw.curves import End, kept_apart, length_of, name_ends, room_for
from dprepro.report.draw.style import looks

LOOK = looks(["dpboost"])["dpboost"]


def test_places_with_room_stay_where_they_are():
    assert kept_apart([0.9, 0.1, 0.5], 0.2) == pytest.approx([0.9, 0.1, 0.5])
    assert kept_apart([], 0.2) == []


def test_names_that_want_one_place_stand_around_it_in_their_order():
    assert kept_apart([0.5, 0.5, 0.5], 0.1) == pytest.approx([0.4, 0.5, 0.6])
    assert kept_apart([0.52, 0.5], 0.1) == pytest.approx([0.56, 0.46])


def test_names_at_an_end_move_inwards():
    assert kept_apart([0.0, 0.0, 0.02], 0.1) == pytest.approx([0.0, 0.1, 0.2])
    assert kept_apart([1.0, 1.0], 0.1) == pytest.approx([0.9, 1.0])


def test_without_room_names_keep_their_gap_and_pass_the_upper_end():
    assert kept_apart([0.5] * 4, 0.5) == pytest.approx([0.0, 0.5, 1.0, 1.5])


@pytest.mark.parametrize("seed", range(6))
def test_no_other_places_move_the_names_less(seed):
    wanted, gap = np.sort(np.random.default_rng(seed).random(6)), 0.12
    found = np.array(kept_apart(list(wanted), gap))
    assert found.min() >= 0
    assert found.max() <= 1 + 1e-12
    assert np.all(np.diff(found) >= gap - 1e-12)
    apart = [
        {"type": "ineq", "fun": lambda x, k=k: x[k + 1] - x[k] - gap}
        for k in range(wanted.size - 1)
    ]
    best = minimize(
        lambda x: np.sum((x - wanted) ** 2), np.linspace(0.1, 0.9, 6), bounds=[(0, 1)] * 6,
        constraints=apart, tol=1e-12,
    )  # fmt: skip
    assert np.sum((found - wanted) ** 2) <= best.fun + 1e-6


def test_room_is_a_line_of_text_for_each_name():
    assert room_for(4) == pytest.approx(4 * 7.5 * 1.25 / 72)


def test_a_name_has_a_leader_to_its_end_if_the_end_is_in_sight():
    axes = Figure(figsize=(4, 4)).subplots()
    axes.set(xlim=(0, 1), ylim=(0, 10))
    ups = [0.0, 10.0, 5.0, 12.0, -1.0]
    name_ends(axes, [End(f"at {up:g}", LOOK, 1.0, up) for up in ups], 3.0)
    places = {text.get_text(): text.get_position() for text in axes.texts}
    assert {place[0] for place in places.values()} == {1.08}
    heights = sorted(place[1] for place in places.values())
    assert all(b - a >= room_for(1) / 3.0 - 1e-9 for a, b in itertools.pairwise(heights))
    assert (heights[0], heights[-1]) == (0.0, pytest.approx(1.0))
    assert places["at 5"][1] == pytest.approx(0.5)
    (leaders,) = axes.collections
    ends = {round(begin[1], 6): end[1] for begin, end in leaders.get_segments()}
    assert ends == {0.0: places["at 0"][1], 1.0: places["at 10"][1], 0.5: places["at 5"][1]}
    assert {begin[0] for begin, _ in leaders.get_segments()} == {1.0}


def test_a_name_takes_the_room_that_it_is_given():
    axes = Figure(figsize=(8, 4)).subplots()
    long = "DP gradient descent (logistic), linear"
    name_ends(axes, [End(name, LOOK, 1.0, 0.5) for name in ("W" * 60, long, "m")], 3.0)
    for text, name in zip(axes.texts, ("W" * 60, long, "m"), strict=True):
        taken = text.get_window_extent().width / axes.figure.dpi
        assert taken == pytest.approx(length_of(name), rel=0.07)
        assert taken < 2.3
