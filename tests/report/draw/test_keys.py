"""The legend: entries flow in rows as wide as the figure, and none is cut."""

import pytest
from matplotlib.figure import Figure

from dprepro.report.draw.keys import EDGE, Key, draw_legend, set_out
from dprepro.report.draw.style import Look, text_width

LOOK = Look("#0072B2", "-", "o")


def keys(*texts):
    return [Key(text, LOOK) for text in texts]


def said(legend):
    return [[text for _, _, text, _ in row] for row in legend.rows]


def test_entries_fill_rows_in_their_order():
    legend = set_out(keys("one", "two", "three", "four"), 2.2, 8.0, None)
    assert [text for row in said(legend) for text in row] == ["one", "two", "three", "four"]
    assert 1 < len(legend.rows) < 4
    assert legend.height == pytest.approx(len(legend.rows) * 1.3 * 8 / 72)
    assert said(set_out(keys("one", "two", "three", "four"), 7.0, 8.0, None)) == [
        ["one", "two", "three", "four"]
    ]


def test_an_entry_as_wide_as_the_figure_becomes_smaller_before_it_is_shortened():
    name = "DP gradient descent (logistic), linear"
    ((((_, _, text, size),),)) = set_out(keys(name), 2.2, 8.0, None).rows
    assert text == name
    assert 5.6 <= size < 8.0
    ((((_, _, text, size),),)) = set_out(keys("W" * 60), 2.2, 8.0, None).rows
    assert text.endswith("…")
    assert text_width(text, size) < 2.2


def test_letters_are_smaller_where_the_legend_would_fill_the_figure():
    many = keys(*(f"a method of some length {k}" for k in range(8)))
    free, given, least = (set_out(many, 3.3, 7.0, height) for height in (None, 2.4, 1.2))
    assert free.points == 7.0
    assert given.points == pytest.approx(6.3)
    assert given.height < 0.36 * 2.4
    assert least.points == pytest.approx(5.6)
    assert set_out(many, 3.3, 7.0, 9.0).points == 7.0


def test_each_kind_of_sample_stands_before_its_words():
    figure = Figure(figsize=(3.3, 1.0))
    entries = [*keys("a line"), Key("a bar", bar=0.7), Key("a ring", ring=True, bar=4.0)]
    legend = set_out(entries, 3.3, 8.0, None)
    draw_legend(figure, legend, legend.height + EDGE)
    assert [text.get_text() for text in figure.texts] == ["a line", "a bar", "a ring"]
    line, marker, bar, dot, pale, ring = figure.artists
    assert (line.get_marker(), marker.get_linestyle()) == ("", "None")
    assert line.get_color() == marker.get_color() == LOOK.colour
    assert len(set(bar.get_ydata())) == 2
    assert dot.get_marker() == ring.get_marker() == "o"
    assert ring.get_markerfacecolor() == "none"
    assert pale.get_alpha() < 1
