import numpy as np
from rich.console import Console

from dprepro.additive.shapes import Shape
from dprepro.report.write.ledgers import bins, model_overview, scores

SHAPE = Shape(
    name="age [years]",
    labels=("[-inf, 30)", "[30, inf)"),
    edges=np.array([0.0, 30.0, 90.0]),
    values=np.array([-0.5, 0.25]),
    released=np.array([-0.5, 0.125]),
    counts=np.array([60.0, 40.4]),
    noise=np.array([0.01, 0.03]),
)


def shown(renderable) -> str:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_the_overview_has_a_line_a_feature_and_the_edits_in_order():
    text = shown(model_overview([SHAPE], "m.json", -1.25, ["age: set x", "age: set [y]"]))
    (line,) = [line for line in text.splitlines() if line.startswith(" age [years]")]
    assert line.split()[2:] == ["2", "-0.5", "0.25", "0.02", "yes"]
    assert "Intercept: -1.25" in text
    assert text.index("1. age: set x") < text.index("2. age: set [y]")
    assert "Edits: none" in shown(model_overview([SHAPE], "m.json", 0.0, []))


def test_bins_show_what_was_released_only_where_it_was_moved():
    first, second = shown(bins(SHAPE)).splitlines()[2:4]
    assert first.split() == ["[-inf,", "30)", "-0.5", "0.01", "60"]
    assert second.split() == ["[30,", "inf)", "0.25", "0.125", "0.03", "40"]


def test_scores_have_a_row_a_model():
    text = shown(scores({"model": {"auc": 0.91234567}, "as released": {"auc": 0.9}}))
    assert [line.split() for line in text.splitlines()] == [
        ["auc"],
        ["model", "0.91235"],
        ["as", "released", "0.9"],
    ]
