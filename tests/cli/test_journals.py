from dataclasses import replace

from dprepro.cli.journals import method_titles, read
from dprepro.config import load_config
from dprepro.errors import DpreproError
from dprepro.experiment.plan import plan
from dprepro.experiment.record import Record
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


def test_what_no_longer_counts_is_left_out_without_a_word(tmp_path, capsys):
    write(tmp_path, "mine", [*records([0.9]), *records([0.8], method_version=2)])
    (cell,) = read(tmp_path).cells
    assert cell.values["auc"] == (0.8,)
    assert capsys.readouterr() == ("", "")


def test_the_plan_of_a_built_in_config_counts_where_its_journal_states_none(tmp_path):
    wanted = [planned.task for planned in plan(load_config("mnist-maps"))]
    old = replace(wanted[0], params={"n_maps": 77})
    lines = [Record(task, "ok", {"accuracy": 0.9}) for task in (*wanted[:2], old)]
    write(tmp_path, "mnist-maps", lines)
    found = {cell.task.key for cell in read(tmp_path).cells}
    assert found == {task.key for task in wanted[:2]}
    write(tmp_path, "mnist-maps", lines[2:])  # another config of that name
    assert {cell.task.key for cell in read(tmp_path).cells} == {old.key}


def test_a_plan_that_only_the_data_tell_is_left_to_the_records(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "dprepro.experiment.plan.plan", lambda config: (_ for _ in ()).throw(DpreproError("none"))
    )
    write(tmp_path, "adult", records(spread(0.9, 0.01, 3)))
    (cell,) = read(tmp_path).cells
    assert (cell.planned, cell.papers) == (25, {"dp-ebm-2021"})


def test_methods_have_titles():
    assert method_titles()["dp-ebm-joint"] == "DPEBM-Joint"


def test_a_broken_method_of_ones_own_costs_only_the_titles(tmp_path, monkeypatch, capsys):
    registry.all_methods.cache_clear()
    monkeypatch.setenv(registry.PLUGIN_VARIABLE, str(tmp_path / "gone"))
    assert method_titles() == {}
    assert "methods are shown by name" in capsys.readouterr().err
