"""Rankings in terminals, for papers, as CSV and as JSON, and as pictures."""

from __future__ import annotations

import csv
import io
import itertools
import json

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from pylatexenc.latexwalker import LatexWalker
from rich.console import Console

from dprepro.data import PRIVATE_PREFIX
from dprepro.judge.ranking import rank_methods
from dprepro.report.draw.ranks import draw_ranks, draw_wins
from dprepro.report.ranking import write_rankings
from dprepro.report.sheet import Sheet
from dprepro.results.folder import read_results
from dprepro.runtime.errors import DpreproError
from tests.report.journals import records, write

NAMES = ["dp-ebm-plus", "dp-ebm-gdp", "a-method-with-a-very-long-name-of-its-own"]


def ranked(folder, datasets=9, levels=(1.0,), names=NAMES, **keys):
    """Rank methods that lie 0.02 apart on each dataset; the last two take turns."""
    lines = [
        record
        for epsilon, number in itertools.product(levels, range(datasets))
        for place, name in enumerate(names)
        for record in records(
            [0.9 - 0.02 * min(place, 1) + 0.001 * (place > 1) * (-1) ** number * (number + 1) + step
             for step in (0.0, 0.001 * (place + 1), 0.002)],
            name, epsilon, dataset=f"d{number}", **keys,
        )
    ]  # fmt: skip
    write(folder, "c", lines)
    return rank_methods(read_results(folder), names)


def text(found, width=80):
    console = Console(file=io.StringIO(), width=width, _environ={})
    console.print(write_rankings(found, "table", False))
    return console.file.getvalue()


def said(found):
    return " ".join(text(found).split())


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("datasets", [1, 3, 9])
def test_no_line_is_longer_than_the_terminal_and_nothing_is_cut(tmp_path, width, datasets):
    printed = text(ranked(tmp_path, datasets, (0.5, 1.0)), width)
    assert max(map(len, printed.splitlines())) <= width
    assert "…" not in printed
    assert "\x1b" not in printed


def test_methods_that_are_not_told_apart_share_a_letter(tmp_path):
    lines = text(ranked(tmp_path)).splitlines()
    (first, second) = (next(x for x in lines if f" {name} " in x) for name in NAMES[:2])
    assert first.split() == ["dp-ebm-plus", "1.00", "a"]
    assert second.split()[-1] == "b"
    assert "not shown to differ, which is not equal" in said(ranked(tmp_path / "x"))


def test_too_few_datasets_are_said_to_show_nothing(tmp_path):
    printed = said(ranked(tmp_path, 3))
    assert "Fewer than 5 datasets have no power to show a difference" in printed
    assert "That does not make the methods equal" in printed
    assert "Iman" not in printed
    assert "groups" not in printed


def test_it_is_said_how_many_datasets_would_decide_a_pair(tmp_path):
    printed = said(ranked(tmp_path, 5))
    assert "Friedman test of equal ranks" in printed
    assert "no signed-rank test has p below 0.062, for 3 pairs 0.19" in printed
    assert "It would take 7 datasets" in printed


def test_one_dataset_is_said_to_be_one(tmp_path):
    printed = said(ranked(tmp_path, 1))
    assert "one dataset, d0 (AUROC). Ranks are over its 3 splits" in printed
    assert "nothing about other datasets" in printed
    assert "AUROC (higher is better): first minus second" in printed


def test_private_rows_and_what_is_left_out_are_named(tmp_path):
    found = ranked(tmp_path, 2, data_fingerprint=f"{PRIVATE_PREFIX}x")
    assert "d0, d1: PRIVATE rows, exact scores" in said(found)
    write(tmp_path, "more", records([0.5, 0.6, 0.7], NAMES[0], 1.0, dataset="alone"))
    write(tmp_path, "most", records([0.5, 0.6, 0.7], NAMES[1], 1.0, dataset="alone"))
    found = rank_methods(read_results(tmp_path), NAMES)
    assert f"Left out: alone, without results of {NAMES[2]}." in said(found)


def test_csv_has_a_row_for_each_pair_on_each_dataset_and_over_them(tmp_path):
    found = ranked(tmp_path, 6, (0.5, 1.0))
    rows = list(csv.DictReader(io.StringIO(write_rankings(found, "csv", False))))
    assert len(rows) == 3 * 3 * (6 + 1)  # rankings, pairs, datasets and all of them
    over = [row for row in rows if not row["dataset"]]
    assert {row["epsilon"] for row in over} == {"0.5", "1", "0.5 1"}
    pair = found.main.pairs[0]
    (row,) = [r for r in over if r["epsilon"] == "0.5 1" and r["second"] == pair.second
              and r["first"] == pair.first]  # fmt: skip
    assert float(row["difference_in_margins"]) == pair.typical
    assert float(row["rank_first"]) == found.main.mean_ranks[pair.first]
    splits = list(csv.DictReader(io.StringIO(write_rankings(found, "csv", True))))
    assert len(splits) == 3 * 6 * 3 * 3  # rankings, datasets, methods, splits


def test_json_is_strict_and_has_all(tmp_path):
    found = ranked(tmp_path, levels=(0.5, 1.0))
    document = json.loads(write_rankings(found, "json", False), parse_constant=pytest.fail)
    assert [ranking["epsilons"] for ranking in document["rankings"]] == [[0.5], [1.0], [0.5, 1.0]]
    main = document["rankings"][-1]
    assert main["mean_ranks"] == dict(found.main.mean_ranks)
    assert main["groups"] == [list(group) for group in found.main.groups]
    assert main["win_rates"][NAMES[0]][NAMES[1]] == 1.0
    assert main["friedman"]["p"] == found.main.friedman.p
    assert len(main["datasets"]) == 9
    assert "splits" not in document


def test_papers_get_tables_with_rules_or_pipes(tmp_path):
    found = ranked(tmp_path)
    latex = write_rankings(found, "latex", False)
    LatexWalker(latex, tolerant_parsing=False).get_latex_nodes()
    assert latex.count(r"\toprule") == latex.count(r"\bottomrule") == 3
    assert r"$\varepsilon$ 1" in latex
    markdown = write_rankings(found, "markdown", False)
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert sum(line.startswith("| dp-ebm-plus |") for line in rows) == 3  # its rank, and two pairs
    assert "- Epsilon 1: 9 datasets" in markdown


MANY = [f"method-number-{number}" for number in range(14)]


@pytest.mark.parametrize("draw", [draw_ranks, draw_wins])
@pytest.mark.parametrize(("datasets", "names"), [(9, NAMES), (3, NAMES), (1, NAMES), (1, MANY)])
@pytest.mark.parametrize("sheet", [Sheet(), Sheet(7.0, 5.0, 10.0)], ids=["column", "page"])
def test_pictures_have_their_size_and_no_label_hides_another(
    tmp_path, draw, datasets, names, sheet
):
    figure = draw(ranked(tmp_path, datasets, names=names).main, sheet)
    assert figure.get_figwidth() == pytest.approx(sheet.width or 3.3)
    assert sheet.height in (None, figure.get_figheight())
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = [
        words.get_window_extent(canvas.get_renderer())
        for words in figure.findobj(Text)
        if words.get_text() and words.get_visible()
    ]
    assert len(boxes) > len(names)
    whole = figure.bbox
    for box in boxes:
        assert whole.x0 <= box.x0 <= box.x1 <= whole.x1
        assert whole.y0 <= box.y0 <= box.y1 <= whole.y1
    overlaps = [
        1 for one, other in itertools.combinations(boxes, 2)
        if one.shrunk(0.98, 0.7).overlaps(other.shrunk(0.98, 0.7))
    ]  # fmt: skip
    assert not overlaps


@pytest.mark.parametrize("draw", [draw_ranks, draw_wins])
def test_letters_of_ranks_grow_and_what_has_no_room_says_so(tmp_path, draw):
    ranking = ranked(tmp_path, 3).main
    sizes = [
        max(words.get_fontsize() for words in draw(ranking, Sheet(font=points)).axes[0].texts)
        for points in (7.0, 9.0)
    ]
    assert sizes[1] > sizes[0]
    with pytest.raises(DpreproError, match=r"3.3 x 1 inches have no room .* 3.3x\S+ would do"):
        draw(ranking, Sheet(3.3, 1.0, 12.0))


def test_a_diagram_has_a_bar_for_each_group_of_several(tmp_path):
    tested, untested = (ranked(tmp_path / str(n), n).main for n in (9, 3))
    bars = [
        [line for line in draw_ranks(ranking).axes[0].lines if line.get_linewidth() > 2]
        for ranking in (tested, untested)
    ]
    assert [len(found) for found in bars] == [sum(len(g) > 1 for g in tested.groups), 0]
    assert len(bars[0]) == 1
    assert any("no bars" in words.get_text() for words in draw_ranks(untested).findobj(Text))
