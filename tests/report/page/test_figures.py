"""The page's first figure: a dot for each judged cell, a row for each document."""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from dprepro.additive.file import save_model
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.judge.check import check_documents
from dprepro.methods.dp_ebm.ebm import EBMClassifier
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier
from dprepro.report.draw.files import Workers
from dprepro.report.page import figures
from dprepro.report.page.figures import MODELS, begin_shapes, draw_overview, figure_groups
from dprepro.results.folder import Results
from dprepro.results.margins import margins
from dprepro.runtime.errors import DpreproError
from tests.report.page.judged import judged, score_of

NUMBER, LETTER = NumericFeature("x & y", 0, 1), CategoricalFeature("c", ("a", "b"))


def save(folder, name, features, origin, epsilon=1.0):
    random = np.random.default_rng(0)
    drawn = {"x & y": random.random(200), "c": random.choice(["a", "b"], 200)}
    X = pd.DataFrame({feature.name: drawn[feature.name] for feature in features})
    model = DPEBMClassifier(
        epsilon=epsilon, delta=1e-6, domain=Domain(features, ("0", "1")), n_epochs=3
    )
    model.fit(X, random.choice(["0", "1"], 200))
    save_model(model, folder / MODELS / f"{name}.json", origin)


def groups(folder):
    with Workers() as workers:
        report = check_documents([], Results(()), [], margins())
        return figure_groups([], report, begin_shapes(folder, workers), workers)


def test_numeric_functions_of_saved_models_stand_below_each_other_by_dataset(tmp_path):
    task = {"dataset": "adult", "label": "DP-EBM"}
    save(tmp_path, "weak", (NUMBER, LETTER), {"task": task}, epsilon=4.0)
    save(tmp_path, "strong", (NUMBER, LETTER), {"task": task}, epsilon=0.5)
    (group,) = groups(tmp_path)
    (figure,) = group.figures
    assert figure.caption == "x & y on adult: DP-EBM, ε=4, DP-EBM, ε=0.5"
    assert figure.dataset == "adult"
    assert figure.svg.count("x &amp; y</text>") == 1  # below both


def test_a_model_of_all_rows_is_named_by_its_dataset_too(tmp_path):
    origin = {"config": "mine", "dataset": "shop", "label": "ours", "rows": "all"}
    save(tmp_path, "m", (NUMBER,), origin)
    (group,) = groups(tmp_path)
    assert group.figures[0].caption == "x & y on shop: ours, ε=1"


def test_a_wide_model_gets_its_most_important_features_and_the_rest_is_counted(tmp_path):
    bins = {"missing": False, "missing_bin": None, "labels": ["a", "b"], "counts": [1.0, 1.0]}
    bins |= {"noise": None, "kind": "numeric", "lower": 0.0, "upper": 2.0, "cuts": [1.0]}
    save(tmp_path, "m", (NUMBER,), {"task": {"dataset": "x" * 10**5, "label": "y" * 10**5}})
    path = tmp_path / MODELS / "m.json"
    file = json.loads(path.read_text(encoding="utf-8"))
    features = [{**bins, "name": f"f{k}", "values": [-float(k), float(k)]} for k in range(500)]
    path.write_text(json.dumps({**file, "features": features}))
    (group,) = groups(tmp_path)
    assert [figure.caption.split()[0] for figure in group.figures] == [
        f"f{k}" for k in range(499, 487, -1)
    ]
    assert "12 of 500 features" in group.notes[0]
    assert "--feature" in group.notes[0]
    assert len(group.figures[0].caption) < 300


def test_of_many_saved_models_the_most_private_are_drawn(tmp_path):
    task = {"dataset": "adult", "label": "DP-EBM"}
    for epsilon in range(1, 9):
        save(tmp_path, f"m{epsilon}", (NUMBER,), {"task": task}, epsilon=float(epsilon))
    (group,) = groups(tmp_path)
    (figure,) = group.figures
    assert figure.caption.count("DP-EBM") == 6
    assert figure.caption.endswith("ε=1")
    assert "6 of 8 functions of saved models are drawn, those of the most private" in group.notes[0]


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (DPEBMClassifier, "PRIVATE rows, its ledger does not hold: not for release"),
        (EBMClassifier, "PRIVATE rows, fitted without privacy: not for release"),
    ],
)
def test_a_model_that_is_not_for_release_is_called_so(tmp_path, model, says):
    X = pd.DataFrame({"x & y": np.linspace(0, 1, 60)})
    fitted = model(n_epochs=2, random_state=0).fit(X, np.arange(60) % 2)
    for name, origin in (("m", {"not_for_release": "-"}), ("n", {})):
        save_model(fitted, tmp_path / MODELS / f"{name}.json", origin)
    (group,) = groups(tmp_path)
    marked, plain = (figure.caption for figure in group.figures)
    assert marked.endswith(f"({says})")
    assert says in group.figures[0].svg
    assert "PRIVATE" not in plain


@pytest.mark.parametrize("origin", [{}, {"task": None}, {"task": "<b>"}])
def test_a_model_of_unknown_origin_goes_by_its_file(tmp_path, origin):
    save(tmp_path, "mine", (LETTER,), origin)
    (group,) = groups(tmp_path)
    (figure,) = group.figures
    assert figure.caption == "c on mine: mine, ε=1"


def test_a_file_that_is_no_model_is_named(tmp_path):
    (tmp_path / MODELS).mkdir()
    (tmp_path / MODELS / "broken.json").write_text("{}")
    with pytest.raises(DpreproError, match=r"broken\.json"):
        groups(tmp_path)


def test_without_models_nothing_that_trains_is_loaded(tmp_path):
    code = (
        "import sys; from pathlib import Path; from dprepro.report.page.figures import *;"
        "from dprepro.judge.check import CheckReport; workers = Workers();"
        f"shapes = begin_shapes(Path({str(tmp_path)!r}), workers);"
        "print(figure_groups([], CheckReport([], {}), shapes, workers));"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    groups, modules = done.stdout.splitlines()
    assert groups == "[]"
    assert not {"sklearn", "numba", "dprepro.methods.dp_ebm"} & set(modules.split())


def test_the_overview_is_drawn_where_a_cell_was_judged(monkeypatch):
    monkeypatch.setattr(figures, "draw_overview", lambda report: None)
    assert figures.overview(object()) is None
    monkeypatch.setattr(figures, "draw_overview", lambda report: Figure(figsize=(2, 1)))
    figure = figures.overview(object())
    assert figure.svg.startswith("<svg")
    assert "by document" in figure.caption
    assert figure.caption in figure.svg


@pytest.fixture
def report(monkeypatch):
    """A report of two documents with judged cells, and of one whose cells are all open."""
    monkeypatch.setattr(figures, "normal_score", score_of)
    first = [judged(s, is_different=abs(s) > 3) for s in (5.0, 0.1, -0.1, 20.0, -30.0, 0.6)]
    last = [judged(0.1, is_different=False)] * 12
    nothing = [judged(1.0, is_different=False, is_final=False)]
    nothing += [judged(1.0, is_different=False, compared=False)]
    cells = {"first": first, "open": nothing, "last": last}
    return SimpleNamespace(
        papers=list(cells), of_paper=lambda p: SimpleNamespace(verdicts=cells[p])
    )


def dots(figure):
    """Return (marker, x, y) of all dots, "o" for rings and "." for discs, as they were drawn."""
    lines = [line for line in figure.axes[0].lines if line.get_marker() in "o^"]
    return [
        (
            "."
            if line.get_markeredgewidth() == 0 and line.get_marker() == "o"
            else line.get_marker(),
            float(x),
            float(y),
        )
        for line in lines
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]


def test_each_cell_is_a_dot_at_its_score_by_verdict(report):
    found = dots(draw_overview(report))
    first = [(marker, x) for marker, x, y in found if y > -0.3]
    assert first == [(".", 0.0), (".", 0.5), ("o", 0.0), ("^", -8.0), ("^", 5.0), ("^", 8.0)]


def test_dots_of_one_score_stand_on_each_other_and_stay_in_their_row(report):
    found = dots(draw_overview(report))
    heights = [y for _, x, y in found if y > -0.3 and x == 0.0]
    np.testing.assert_allclose(sorted(heights), [0.0, 0.55 / 9])
    rest = [y for _, _, y in found if y < -0.3]
    np.testing.assert_allclose(rest, -1 + 0.55 * np.arange(12) / 12)


def test_rows_are_named_with_their_counts_and_open_documents_have_none(report):
    figure = draw_overview(report)
    (axes,) = figure.axes
    shown = {text.get_text(): text.get_position() for text in axes.texts}
    assert shown == {
        "first: 6 cells, 3 different": (-8.5, 0.62),
        "last: 12 cells, 0 different": (-8.5, pytest.approx(-0.38)),
    }
    assert axes.get_xlim() == (-8.6, 8.6)
    low, high = axes.get_ylim()
    assert (low, high) == (pytest.approx(-1.15), 0.95)
    assert figure.get_figheight() == pytest.approx(2 * 0.62 + 0.6)


def test_the_axis_says_that_its_ends_hold_all_beyond(report):
    (axes,) = draw_overview(report).axes
    assert list(axes.get_xticks()) == [-8, -4, -2, 0, 2, 4, 8]
    names = [tick.get_text() for tick in axes.get_xticklabels()]
    assert names == ["≤ -8", "-4", "-2", "0", "2", "4", "≥ 8"]
    assert "measured minus published" in axes.get_xlabel()
    assert [name for name, spine in axes.spines.items() if spine.get_visible()] == ["bottom"]
    assert list(axes.get_yticks()) == []
    band = axes.patches[0]
    assert (band.get_x(), band.get_x() + band.get_width()) == (-1.96, pytest.approx(1.96))


def test_without_a_judged_cell_there_is_no_figure(report):
    report.papers = ["open"]
    assert draw_overview(report) is None
