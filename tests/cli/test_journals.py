import pytest

from dprepro.cli.journals import console, method_titles, read
from dprepro.config import load_config
from dprepro.methods import registry
from tests.report.journals import records, spread, write


def test_builtin_configs_say_how_many_splits_and_which_document(tmp_path):
    config = load_config("adult")
    write(tmp_path, "adult", records(spread(0.9, 0.01, 3)))
    (cell,) = read(tmp_path).cells
    assert cell.planned == config.splits
    assert cell.papers == {config.published.paper}


def test_journals_of_unknown_configs_are_read_without_a_plan(tmp_path):
    write(tmp_path, "mine", records(spread(0.9, 0.01, 3)))
    (cell,) = read(tmp_path).cells
    assert (cell.planned, cell.papers) == (3, None)


def test_what_is_left_out_is_said(tmp_path, capsys):
    write(tmp_path, "mine", [*records([0.9]), *records([0.8], method_version=2)])
    read(tmp_path)
    assert "mine.jsonl: 1 records" in capsys.readouterr().err


@pytest.mark.parametrize("terminal", [True, False])
def test_only_a_terminal_has_a_width_of_its_own(monkeypatch, terminal):
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setenv("FORCE_COLOR" if terminal else "NO_COLOR", "1")
    if not terminal:
        monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert (console().width == 70) is terminal


def test_methods_have_titles():
    assert method_titles()["dp-ebm-joint"] == "DPEBM-Joint"


def test_a_broken_method_of_ones_own_costs_only_the_titles(tmp_path, monkeypatch, capsys):
    registry.all_methods.cache_clear()
    monkeypatch.setenv(registry.PLUGIN_VARIABLE, str(tmp_path / "gone"))
    assert method_titles() == {}
    assert "methods are shown by name" in capsys.readouterr().err
