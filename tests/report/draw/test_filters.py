"""Pixels become images, other columns bars; both say what was predicted and how heavy a map is."""

import numpy as np
import pytest

from dprepro.inspect.pictured import Explained, Explanations
from dprepro.report.draw.filters import draw_filters


def explanations(names, panels=2):
    rng = np.random.default_rng(0)
    models = tuple(
        Explained(
            title, ("a", "b"), rng.normal(size=(2, panels, len(names))), (("0.90", "0.10"),) * 2
        )
        for title in ("dp-llm, ε=2", "llm")
    )
    return Explanations(rng.random((2, len(names))), tuple(names), ("a", "a"), models)


def test_pixels_are_drawn_as_images():
    figure = draw_filters(explanations([f"pixel{k}" for k in range(1, 10)]))
    images = [axes for axes in figure.axes if axes.images]
    assert len(images) == 2 * (1 + 2 * 2)
    assert {axes.images[0].get_array().shape for axes in images} == {(3, 3)}
    filters = [axes.images[0] for axes in images if axes.get_title().startswith("0.")]
    assert all(image.norm.vmin == -image.norm.vmax for image in filters)
    assert [text.get_text() for text in figure.texts] == ["dp-llm, ε=2", "llm"]


@pytest.mark.parametrize("count", [5, 40])
def test_other_columns_are_drawn_as_bars_the_strongest_of_each_row(count):
    found = explanations([f"column {k}" for k in range(count)])
    figure = draw_filters(found)
    assert len(figure.axes) == 4
    assert all(len(axes.patches) == min(count, 12) for axes in figure.axes)
    assert "says a, weight 0.90" in figure.axes[0].get_title()
    strongest = np.abs(np.stack([m.vectors[0, 0] / np.abs(m.vectors[0, 0]).max()
                                 for m in found.models])).max(axis=0).argmax()  # fmt: skip
    assert figure.axes[0].get_yticklabels()[-1].get_text() == f"column {strongest}"
