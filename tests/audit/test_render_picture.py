"""Both distributions in one picture."""

import numpy as np
import pytest

from dprepro.audit import audit, find_case
from dprepro.audit.render import draw, write_picture
from dprepro.runtime.errors import DpreproError


@pytest.fixture(scope="module")
def results():
    return [audit(find_case(name, epsilon=4.0), 400, seed=0) for name in ("gaussian", "laplace")]


def test_each_result_has_a_panel_with_both_worlds_and_the_threshold(results):
    figure = draw(results)
    for axis, result in zip(figure.axes, results, strict=True):
        assert f"{result.subject}\nepsilon >= {result.lower_bound:.2f}" in axis.get_title()
        labels = axis.get_legend_handles_labels()[1]
        assert set(labels) == {"without the canary", "with the canary", "threshold"}
        (line,) = axis.get_lines()
        assert line.get_xdata()[0] == pytest.approx(result.evidence.threshold)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_nothing_is_cut_off(results, number):
    figure = draw((2 * results)[:number])
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    assert min(box.x0, box.y0) >= 0
    assert box.x1 <= figure.get_figwidth()
    assert box.y1 <= figure.get_figheight()


def test_a_picture_has_the_size_asked_for(results):
    assert draw(results, (3.3, 2.4)).get_size_inches().tolist() == [3.3, 2.4]
    assert draw(results).get_size_inches().tolist() == pytest.approx([8.4, 3.1])


def test_histograms_hold_all_held_out_runs(results):
    axis = draw(results[:1]).axes[0]
    area = sum(patch.get_width() * patch.get_height() for patch in axis.patches[:-1])
    assert area == pytest.approx(1.0)


def test_constant_scores_can_be_drawn():
    constant = audit(find_case("dpboost"), 60, seed=0)
    assert len(np.unique(constant.evidence.scores)) == 2
    assert "EXCEEDED" in draw([constant]).axes[0].get_title()


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_same_results_give_the_same_bytes(ending, results, tmp_path):
    paths = [tmp_path / "new" / f"{name}.{ending}" for name in ("a", "b")]
    for path in paths:
        write_picture(results, path)
    first, second = (path.read_bytes() for path in paths)
    assert first == second
    assert len(first) > 5000


def test_other_formats_are_refused(results, tmp_path):
    with pytest.raises(DpreproError, match=r"pictures end in \.png or \.svg"):
        write_picture(results, tmp_path / "a.gif")
