"""Commands on a card with a unit of privacy: they bound its rows and say whose epsilon it is."""

import json

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from tests.experiment.test_train_test_rows import FITTED, config, owned
from tests.in_process import in_process
from tests.lab import lab

__all__ = ["in_process", "lab", "owned"]


def invoke(*arguments, width=200):
    result = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": str(width)})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_a_fitted_model_says_what_a_unit_and_what_a_row_spends(owned):
    config(owned, seed=None, epsilons=[1])
    model = owned.folder / "model.json"
    command = ["fit", owned.folder / "lab.yaml", "--method", "dp-ebm-plus", "--output", model]
    said = "(epsilon 1, delta 1e-06) per who with at most 2 rows (per row: epsilon 0.968"
    output = invoke(*command)
    assert said in output
    assert "the ledger says that this guarantee holds" in output
    saved = json.loads(model.read_text())
    assert (saved["ledger"]["unit"], saved["ledger"]["rows_per_unit"]) == ("who", 2)
    assert (saved["origin"]["unit"], saved["origin"]["rows_per_unit"]) == ("who", 2)
    assert " per who with at most 2 rows" in invoke("edit", model)
    invoke(*command, "--split", "0")
    scored = invoke("score", model, owned.folder / "lab.yaml", "--json")
    scores = json.loads(scored[scored.index("{") :])
    assert 0 < scores["model"]["auc"] < 1


@pytest.mark.usefixtures("in_process")
def test_a_run_and_its_table_say_whose_epsilon_it_is(owned):
    config(owned, rows_per_unit=["row", 2], epsilons=[1], splits=1)
    command = ["run", owned.folder / "lab.yaml", "--results", owned.results, "--jobs", 1]
    said = "Epsilon is per who with at most 2 rows, or per row: the label says which."
    assert said in invoke(*command)
    table = invoke("table", "--results", owned.results, "--config", "lab")
    assert f"tiny: {said}" in table
    rows = json.loads(
        invoke("table", "--results", owned.results, "--config", "lab", "--format", "json")
    )
    found = {(row["unit"], row["rows_per_unit"]) for row in _rows(rows)}
    assert found == {("row", 1), ("who", 2)}


def _rows(values):
    """Return every dict with a unit, wherever it stands."""
    if isinstance(values, dict):
        return ([values] if "unit" in values else []) + _rows(list(values.values()))
    return [row for value in values for row in _rows(value)] if isinstance(values, list) else []


def test_a_planned_ledger_has_a_line_for_a_row(owned):
    config(owned, epsilons=[1], methods=[{**FITTED, "label": "plus"}])
    overview = invoke("ledger", owned.folder / "lab.yaml")
    lines = {line.rsplit(maxsplit=1)[0].strip(): line.split()[-1] for line in overview.splitlines()
             if "per " in line}  # fmt: skip
    spent = {name.partition("add/remove-one, ")[2]: float(at) for name, at in lines.items() if at}
    assert spent["per who with at most 2 rows"] == pytest.approx(1, rel=1e-3)
    # Another row of its unit trains in its place: next to two rows, the whole unit.
    assert 0.9 < spent["per row"] < 1


def test_a_description_names_the_unit(owned):
    card = owned.folder / "tiny.yaml"
    assert "who with at most 2 rows (20 of them)" in invoke("data", "describe", card)
    described = json.loads(invoke("data", "describe", card, "--json"))
    assert (described["unit"], described["rows_per_unit"], described["units"]) == ("who", 2, 20)


@pytest.mark.parametrize("pairs", [0, 2])
@pytest.mark.parametrize("chunk", [7, 10**6])
def test_a_table_in_chunks_gives_the_model_of_its_rows_in_memory(owned, pairs, chunk, monkeypatch):
    """Same rows of each unit, same bits, same ledger: with pairs, too."""
    plus = {"method": "dp-ebm-plus", "params": {"n_epochs": 4, "pairs": pairs}}
    config(owned, methods=[plus], seed=5, epsilons=[4])
    mine = owned.folder / "mine.csv"
    command = ["fit", owned.folder / "lab.yaml", "--method", "dp-ebm-plus", "--output"]
    invoke(*command, owned.folder / "whole.json")
    (owned.folder / "tiny.csv").rename(mine)
    monkeypatch.setattr("dprepro.rows.table.CHUNK_ROWS", chunk)
    invoke(*command, owned.folder / "chunks.json", "--table", mine)
    whole, chunks = (
        json.loads((owned.folder / f"{name}.json").read_text()) for name in ("whole", "chunks")
    )
    assert chunks["origin"].pop("table").startswith("of the user's own")
    assert (chunks["ledger"]["unit"], chunks["ledger"]["rows_per_unit"]) == ("who", 2)
    assert whole == chunks


def test_all_rows_of_a_table_train_if_the_config_says_row(owned):
    config(owned, rows_per_unit="row", seed=5, epsilons=[4])
    command = ["fit", owned.folder / "lab.yaml", "--method", "dp-ebm-plus", "--output"]
    invoke(*command, owned.folder / "whole.json")
    invoke(*command, owned.folder / "chunks.json", "--table", owned.folder / "tiny.csv")
    whole, chunks = (
        json.loads((owned.folder / f"{name}.json").read_text()) for name in ("whole", "chunks")
    )
    del chunks["origin"]["table"]
    assert chunks["ledger"].get("unit", "row") == "row"
    assert whole == chunks


def test_a_fit_that_was_killed_goes_on_with_the_rows_that_it_had(owned, monkeypatch):
    """Its key is secret and new for each fit: answers about other rows must not be mixed."""
    from dprepro.rows.answer_log import KeptAnswers
    from dprepro.rows.folder import value_of

    config(owned, seed=None, epsilons=[1])
    store = owned.folder / "m.json.store"
    command = ["fit", owned.folder / "lab.yaml", "--method", "dp-ebm-plus", "--table",
               owned.folder / "tiny.csv", "--output", owned.folder / "m.json"]  # fmt: skip
    keep, left = KeptAnswers.keep, [4]

    def stop(*given):
        keep(*given)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(KeptAnswers, "keep", stop)
        CliRunner().invoke(app, [*map(str, command)])
    kept = value_of((store / "store.json").read_bytes())["identity"]["table"]["units"]
    assert (kept["most"], len(bytes.fromhex(kept["key"]))) == (2, 32)
    answers = (store / "answers.jsonl").read_bytes()
    seen = []
    monkeypatch.setattr(KeptAnswers, "close", _noting(seen, KeptAnswers.close, store))
    assert "this guarantee holds" in invoke(*command)
    assert seen[0].startswith(answers)
    assert not store.exists()
    assert kept["key"] not in (owned.folder / "m.json").read_text()


def _noting(seen, close, store):
    def noted(self):
        close(self)
        seen.append((store / "answers.jsonl").read_bytes())

    return noted
