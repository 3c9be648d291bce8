from matplotlib.figure import Figure

from dprepro.methods import registry
from dprepro.report.draw import style
from dprepro.report.draw.style import looks, metric_label, open_frame, with_dashes
from dprepro.results.margins import METRICS


def test_a_method_looks_the_same_whatever_stands_beside_it():
    alone, among = looks(["dpboost"]), looks(["mine", "dp-ebm-gdp", "dpboost"])
    assert alone["dpboost"] == among["dpboost"]
    assert looks(["mine"])["mine"] == looks(["dpboost", "mine"])["mine"]


def test_every_built_in_method_has_a_look_of_its_own():
    names = [*registry.all_methods(), "one of mine", "another"]
    assert set(registry.all_methods()) <= set(style._METHODS)
    found = looks(names)
    assert len({(look.colour, look.marker) for look in found.values()}) == len(names)


def test_labels_that_ask_for_one_look_get_two(monkeypatch):
    monkeypatch.setattr(style.zlib, "crc32", lambda _: 5)
    found = looks(["a", "b", style._METHODS[6]])
    assert len({(look.colour, look.marker) for look in found.values()}) == 3


def test_levels_of_one_method_differ_in_their_lines_alone():
    first, second = with_dashes(["dp-llm", "dp-llm"])
    assert (first.colour, first.marker) == (second.colour, second.marker)
    assert first.dash != second.dash


def test_each_level_of_a_method_has_a_line_of_its_own_as_long_as_there_are_some():
    dashes = [str(look.dash) for look in with_dashes(["dp-llm"] * 6)]
    assert len(set(dashes)) == 5
    assert dashes[5] == dashes[0]


def test_a_label_whose_place_is_taken_gets_the_next_one(monkeypatch):
    monkeypatch.setattr(style.zlib, "crc32", lambda _: 60)
    found = looks(["a", "b"])
    assert (found["a"], found["b"]) == (style._look(60), style._look(61))
    found = looks([*style._METHODS, *(f"mine {k}" for k in range(20))])
    assert len(set(map(str, found.values()))) == 63


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
