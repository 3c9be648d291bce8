from matplotlib.figure import Figure

from dprepro.report.draw.style import looks, metric_label, open_frame
from dprepro.report.read.metrics import METRICS


def test_each_title_has_one_look_and_no_two_look_alike():
    found = looks(["a", "b", "a", "c", "d", "e", "f", "g", "h"])
    assert list(found) == list("abcdefgh")
    assert len({(look.colour, look.dash, look.marker) for look in found.values()}) == 8


def test_an_open_frame_has_no_line_above_and_to_the_right():
    axes = Figure().subplots()
    open_frame(axes, grid=True)
    assert [name for name, spine in axes.spines.items() if spine.get_visible()] == [
        "left",
        "bottom",
    ]
    assert any(line.get_visible() for line in axes.get_ygridlines())


def test_the_label_of_a_metric_says_which_way_is_better():
    assert metric_label(METRICS["auc"]) == "AUROC (higher is better)"
    assert metric_label(METRICS["rmse"]) == "RMSE (lower is better)"
