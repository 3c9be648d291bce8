"""Looks of lines: no two of a picture are alike, and variants of a method belong together."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from dprepro.methods import registry
from dprepro.report.draw import style
from dprepro.report.draw.style import (
    Look,
    family_of,
    grey_looks,
    looks,
    metric_label,
    open_frame,
)
from dprepro.results.margins import METRICS


def lab(colour):
    """Return a colour in CIELAB, where a distance of 2 can just be seen."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt(np.array(to_xyz) @ linear / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distances(colours):
    return [np.linalg.norm(lab(a) - lab(b)) for a, b in combinations(colours, 2)]


def test_no_two_colours_are_alike():
    colours = [shade for shades in style._HUES for shade in shades]
    assert min(distances(colours)) > 20
    assert min(distances([shades[0] for shades in style._HUES])) > 35
    white = lab("white")
    assert min(np.linalg.norm(white - lab(colour)) for colour in colours) > 25


@pytest.mark.parametrize(
    "labels",
    [
        ["dpboost", "dp-ebm-gdp", "dp-ebm-classic", "dp-logistic", "dp-llm", "a", "b", "c"],
        ["dp-ebm-gdp", "dp-ebm-gdp-25", "dp-ebm-gdp-2021", "dp-ebm-gdp-x", "s-bdt", "s-bdt-sound"],
        [f"dp-llm n_maps={k}" for k in range(8)],
        ["a", "a-1", "b", "b-1", "c", "c-1", "d", "d-1"],
        ["a", *(f"b {k}" for k in range(7))],
    ],
    ids=["methods", "variants", "parameters", "pairs", "one-and-seven"],
)
def test_eight_labels_have_eight_colours_and_markers(labels):
    found = looks(labels)
    assert list(found) == labels
    for part in ("colour", "marker"):
        assert len({getattr(look, part) for look in found.values()}) == len(labels)
    assert not any(look.is_grey for look in found.values())


def hue_of(look):
    return next(k for k, shades in enumerate(style._HUES) if look.colour in shades)


def test_a_method_and_its_variants_have_one_hue_and_differ_in_dash():
    found = looks(["dp-ebm-gdp-25", "dp-ebm-gdp", "dp-ebm-gdp-2021", "dpboost"])
    variants = [found[name] for name in ("dp-ebm-gdp", "dp-ebm-gdp-25", "dp-ebm-gdp-2021")]
    assert len({hue_of(look) for look in variants}) == 1
    assert len({str(look.dash) for look in variants}) == 3
    assert variants[0] == Look(style.ORANGE, "-", "s"), "the method itself has the plain hue"
    assert hue_of(found["dpboost"]) != hue_of(variants[0])


def test_variants_of_one_method_alone_have_hues_of_their_own():
    found = looks(["dp-llm n_maps=1", "dp-llm n_maps=3"])
    assert len({hue_of(look) for look in found.values()}) == 2


def test_more_than_three_of_a_family_take_a_further_hue():
    found = looks(["a", "a-1", "a-2", "a-3", "b"])
    hues = [hue_of(look) for look in found.values()]
    assert hues[0] == hues[1] == hues[2] != hues[3]
    assert len(set(hues)) == 3
    assert len({str(look.dash) for name, look in found.items() if name != "b"}) == 4


def test_a_method_has_the_hue_that_it_has_elsewhere_where_no_other_does():
    alone = hue_of(looks(["dpboost"])["dpboost"])
    assert hue_of(looks(["mine", "dp-ebm-gdp", "dpboost"])["dpboost"]) == alone
    assert hue_of(looks(["mine"])["mine"]) == alone, "a name takes the next hue where it must"
    assert hue_of(looks(["mine", "dpboost"])["mine"]) == alone + 1


def test_the_family_of_a_label_is_the_method_that_it_begins_with():
    assert family_of("dp-ebm-gdp-2021") == "dp-ebm-gdp"
    assert family_of("dp-ebm-plus unit=row") == "dp-ebm-plus"
    assert family_of("dp-llm-pld") == "dp-llm"
    assert family_of("dp-ebm-2022") == "dp-ebm-2022"
    assert family_of("mine-2") == "mine-2"
    assert family_of("mine-2", ["mine"]) == "mine"
    assert family_of("1r-delta density=0.1", ["1r density=0.1"]) == "1r"
    assert set(style._FAMILIES) <= set(registry.all_methods())


def test_families_can_be_given():
    found = looks(["x", "y", "z"], ["dp-llm", "dp-llm", "s-bdt"])
    assert hue_of(found["x"]) == hue_of(found["y"]) != hue_of(found["z"])


def test_grey_looks_are_told_apart_only_where_they_are_named():
    labels = [f"m{k}" for k in range(24)]
    named = grey_looks(labels, True)
    assert len({(str(look.dash), look.marker) for look in named.values()}) == 24
    assert all(look.is_grey for look in named.values())
    assert {look.marker for look in grey_looks(labels, False).values()} == {""}


def test_an_open_frame_has_no_line_above_and_to_the_right():
    axes = Figure().subplots()
    open_frame(axes, grid=True)
    assert [name for name, spine in axes.spines.items() if spine.get_visible()] == [
        "left",
        "bottom",
    ]
    assert any(line.get_visible() for line in axes.get_ygridlines())
    assert axes.get_axisbelow() is True
    bare = Figure().subplots()
    open_frame(bare)
    assert not any(line.get_visible() for line in bare.get_ygridlines())


def test_the_label_of_a_metric_says_which_way_is_better():
    assert metric_label(METRICS["auc"]) == "AUROC (higher is better)"
    assert metric_label(METRICS["rmse"]) == "RMSE (lower is better)"
