import json
import math
import subprocess
import sys

import pytest
import yaml
from typer.testing import CliRunner

from dprepro.cli import app, main
from dprepro.judge.deviations import load_claim_deviations
from dprepro.papers.document import load_documents
from dprepro.runtime.errors import DpreproError
from tests.report.journals import records, spread, write

GOOD, BAD = 0.875, 0.8


def check(*arguments):
    outcome = CliRunner().invoke(app, ["check", *map(str, arguments)], env={"COLUMNS": "180"})
    if outcome.exception and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    return outcome.exit_code, outcome.stdout


@pytest.fixture
def explained(tmp_path):
    entry = {
        "paper": "dp-ebm-2021",
        "tables": "2",
        "datasets": "adult",
        "methods": "dp-ebm-gdp-2021",
    }
    entry |= {"epsilons": 0.5, "expected": "worse", "reason": "the formula asks for more noise"}
    entry["evidence"] = [{"file": "README.md", "shows": "the table"}]
    path = tmp_path / "deviations.yaml"
    reviewed = [known.model_dump() for known in load_claim_deviations()]
    path.write_text(yaml.safe_dump({"deviations": [entry], "claims": reviewed}))
    return path


def journal(folder, mean, splits=25):
    write(folder / "results", "mine", records(spread(mean, 0.005, splits)))
    return "--results", folder / "results"


def test_a_cell_as_printed_passes(tmp_path):
    code, text = check(*journal(tmp_path, GOOD))
    assert code == 0
    assert "184 cells: 1 equivalent, 160 not run, 23 impossible" in text
    assert (
        "Check passed for what was run: 1 of 776 cells judged (1 equivalent); not run: 775 cells, "
        in text
    )


def test_an_unexplained_deviation_exits_with_1(tmp_path):
    code, text = check(*journal(tmp_path, BAD))
    assert code == 1
    assert "deviations without an explanation: 1" in text


def test_an_explained_deviation_exits_with_0_and_its_reason(tmp_path, explained):
    code, text = check(*journal(tmp_path, BAD), "--deviations", explained, "--details")
    assert code == 0
    assert "the formula asks for more noise" in text


def test_a_stale_explanation_is_reported(tmp_path, explained):
    code, text = check(*journal(tmp_path, GOOD), "--deviations", explained)
    assert code == 0
    assert "stale explanation: dp-ebm-2021 table 2: adult, dp-ebm-gdp-2021" in text


def test_cells_that_were_not_run_are_named_and_fail_on_request(tmp_path):
    one_column = ["--dataset", "adult", "--method", "dp-ebm-gdp-2021"]
    mine = [*journal(tmp_path, GOOD), *one_column]
    said = "1 of 5 cells judged (1 equivalent); not run: 4 cells, adult dp-ebm-gdp-2021 (4)."
    code, text = check(*mine)
    assert (code, f"Check passed for what was run: {said}" in text) == (0, True)
    code, text = check(*mine, "--require-all")
    assert (code, f"Check failed, since --require-all was given: {said}" in text) == (1, True)
    few = [*journal(tmp_path, GOOD, splits=3), *one_column]
    code, text = check(*few, "--require-all")
    assert code == 1
    assert "0 of 5 cells judged; not run: 4 cells, adult dp-ebm-gdp-2021 (4); " in text
    assert "incomplete: 1 cell, adult dp-ebm-gdp-2021." in text


def test_incomplete_cells_are_judged_on_request(tmp_path):
    arguments = journal(tmp_path, BAD, splits=3)
    assert check(*arguments)[0] == 0
    assert check(*arguments, "--min-splits", 3)[0] == 1


def test_a_wider_margin_makes_a_difference_equivalent(tmp_path):
    assert check(*journal(tmp_path, BAD), "--margin", "auc=0.1")[0] == 0


def test_json_tells_the_same(tmp_path):
    code, text = check(*journal(tmp_path, BAD), "--format", "json", "--paper", "dp-ebm-2021")
    outcome = json.loads(text)
    assert (code, outcome["passes"], outcome["counts"]["worse"]) == (1, False, 1)
    assert (outcome["judged"], len(outcome["unfinished"])) == (1, 160)
    assert "dp-ebm-2021 table 2: adult, dp-ebm-gdp-2021, epsilon 1" in outcome["unfinished"]
    assert len(outcome["cells"]) == 184
    assert "rerun" not in outcome


def false_claim(folder):
    """Journals of non-private models in which LightGBM is behind the EBM everywhere."""
    values = {"auc": {"ebm": 0.9, "lightgbm": 0.8}, "rmse": {"ebm": 1.0, "lightgbm": 2.0}}
    lines = [
        record
        for layout in load_documents()["dp-ebm-2021"].tables.values()
        for dataset in layout.datasets
        for label, mean in values[layout.metric].items()
        for record in records(spread(mean, 0.01), label, math.inf, layout.metric, dataset=dataset)
    ]
    write(folder / "results", "mine", lines)
    wide = [w for name in values for w in ("--margin", f"{name}=1e9")]
    return ["--results", folder / "results", *wide]


def test_a_claim_that_does_not_hold_exits_with_1_until_it_is_explained(tmp_path):
    arguments = false_claim(tmp_path)
    code, text = check(*arguments)
    assert code == 1
    assert "claims that do not hold: 1" in text
    entry = {"paper": "dp-ebm-2021", "claim": "lightgbm-ahead", "reason": "our EBM is better"}
    entry["evidence"] = [{"file": "README.md", "shows": "the table"}]
    path = tmp_path / "deviations.yaml"
    reviewed = [known.model_dump() for known in load_claim_deviations()]
    path.write_text(yaml.safe_dump({"deviations": [], "claims": [entry, *reviewed]}))
    code, text = check(*arguments, "--deviations", path, "--format", "json")
    (found,) = [c for c in json.loads(text)["claims"] if c["claim"] == "lightgbm-ahead"]
    assert code == 0
    assert found["explanation"] == "our EBM is better Evidence: README.md (the table)."
    assert found["measured"]["figures"] == {"ahead": 0, "datasets": 7}


def test_verbose_shows_every_cell(tmp_path):
    arguments = journal(tmp_path, GOOD)
    assert "0.8750 ± 0.0050" not in check(*arguments)[1]
    assert "0.8750 ± 0.0050" in check(*arguments, "--verbose")[1]


def test_a_config_is_judged_on_what_its_results_touch(tmp_path):
    arguments = [*journal(tmp_path, GOOD), "--config", "mine", "--details"]
    text = check(*arguments)[1]
    mapped = text.split("dp-ebm-2021, Table 2")[1].split("\n\n")[0]
    assert "adult" in mapped
    assert "telco" not in text.split("Claims")[0]
    assert not {"lazybb-2022", "dp-llm-2020", "Table 3"} & set(text.split(", "))
    assert "22 cells: 1 equivalent" not in text
    assert "23 cells: 1 equivalent, 22 not run" in text
    assert "Left out, on other data" in text
    whole = check(*arguments, "--all")[1]
    assert "184 cells: 1 equivalent" in whole
    assert "lazybb-2022, 85 cells" in whole
    assert "Left out" not in whole


def test_the_counts_stand_at_the_end_of_the_details_too(tmp_path):
    for more in ([], ["--config", "mine"]):
        lines = check(*journal(tmp_path, GOOD), "--details", *more)[1].splitlines()
        end = lines[-len(load_documents()) - 3 :]
        assert any(line.startswith("dp-ebm-2021, ") and "1 equivalent" in line for line in end)
        assert lines[0].startswith("Check passed for what was run: 1 of ")
        assert lines[0] in end


@pytest.mark.parametrize("columns", ["60", "80", "180"])
def test_by_default_a_check_is_one_screen(tmp_path, columns):
    lines = [
        record
        for label in ("dp-ebm-gdp-2021", "dp-ebm-classic-2021", "dpboost-2021", "dp-logistic")
        for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0)
        for record in records(spread(0.7, 0.005, 25), label, epsilon)
    ]
    write(tmp_path / "results", "mine", lines)
    given = ["check", "--results", str(tmp_path / "results")]
    text = CliRunner().invoke(app, given, env={"COLUMNS": columns}).stdout
    assert len(text.splitlines()) <= 25
    assert "more: --details" in text, "what has no room is counted"
    assert text.startswith("Check failed")
    assert "dp-ebm-2021, 184 cells: " in text
    assert "no explanation" in " ".join(text.split())


def test_quiet_is_one_line_if_all_is_well(tmp_path):
    code, text = check(*journal(tmp_path, GOOD), "--quiet")
    assert (code, text.count("\n")) == (0, 1)
    assert text.startswith("Check passed for what was run: 1 of 776 cells judged")
    code, text = check(*journal(tmp_path, BAD), "--quiet")
    assert code == 1
    assert "worse: adult, dp-ebm-gdp-2021, ε 0.5, auc (dp-ebm-2021, Table 2)" in text
    for other in (["--format", "json"], ["--details"], ["--verbose"]):
        with pytest.raises(DpreproError, match="--quiet prints one line"):
            check(*journal(tmp_path, GOOD), "--quiet", *other)


@pytest.mark.parametrize(
    ("form", "failed"),
    [("junit", "<failure "), ("github", "::error title=worse"), ("markdown", "check: failed")],
)
def test_formats_of_ci_have_the_same_exit_code(tmp_path, form, failed):
    given = ("--format", form, "--paper", "dp-ebm-2021")
    code, text = check(*journal(tmp_path, GOOD), *given)
    assert (code, failed in text) == (0, False)
    code, text = check(*journal(tmp_path, BAD), *given)
    assert (code, failed in text) == (1, True)


def test_a_cell_can_be_asked_for(tmp_path, explained):
    asked = ["--dataset", "adult", "--method", "dp-ebm-gdp-2021", "--deviations", explained]
    text = check(*journal(tmp_path, BAD), *asked)[1]
    block = text.split("worse: adult, dp-ebm-gdp-2021, ε 0.5, auc (dp-ebm-2021, Table 2)")[1]
    block = block.split("not run:")[0]
    for line in ("Published", "0.875 ± 0.005", "Measured", "0.8000 ± 0.0050", "95 % interval"):
        assert line in block
    assert "Cause           the formula asks for more noise" in block
    assert "dprepro forensics --dataset adult --method dp-ebm-gdp-2021" in block
    assert "Chosen          from 2 settings, by printed numbers: the gaps" in block
    assert text.count("not run: adult") == 4
    assert "dp-ebm-2021, 5 cells: 1 worse, 4 not run" in text


def test_asking_for_what_is_not_printed_is_an_error(tmp_path):
    arguments = journal(tmp_path, GOOD)
    with pytest.raises(DpreproError, match=r"--dataset: no printed cell has 'adlt'; did you mean"):
        check(*arguments, "--dataset", "adlt")
    with pytest.raises(DpreproError, match="--method: no printed cell has 'mine'"):
        check(*arguments, "--method", "mine")
    with pytest.raises(DpreproError, match=r"no cell is printed of dataset adult and method dp-l"):
        check(*arguments, "--dataset", "adult", "--method", "dp-linear")
    with pytest.raises(DpreproError, match="no result for these cells"):
        check(*arguments, "--dataset", "telco")
    with pytest.raises(DpreproError, match="give them without"):
        check(*arguments, "--record", "--dataset", "adult")


def test_mistakes_are_errors(tmp_path):
    with pytest.raises(DpreproError, match="did you mean 'dp-ebm-2021'"):
        check(*journal(tmp_path, GOOD), "--paper", "dp-ebm-2012")
    with pytest.raises(DpreproError, match="cannot be read"):
        check(*journal(tmp_path, GOOD), "--deviations", tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("mean", "arguments", "code"),
    [(GOOD, [], 0), (BAD, [], 1), (GOOD, ["--margin", "auc=wide"], 2)],
)
def test_exit_codes_of_the_program(tmp_path, monkeypatch, capsys, mean, arguments, code):
    given = ["dprepro", "check", *map(str, journal(tmp_path, mean)), *arguments]
    monkeypatch.setattr("sys.argv", given)
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert (ended.value.code or 0) == code, said
    assert ("error:" in said) is (code == 2)
    assert "Traceback" not in said


def test_the_exit_code_is_that_of_the_process(tmp_path):
    command = [sys.executable, "-m", "dprepro", "check", *journal(tmp_path, BAD)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (1, "")


def test_the_help_gives_an_example():
    assert "Example: dprepro check" in check("--help")[1]


def test_nothing_to_judge_is_not_a_pass(tmp_path):
    write(tmp_path / "results", "mine", records(spread(GOOD, 0.005, 25), label="no-such-column"))
    with pytest.raises(DpreproError, match="hold no result for"):
        check("--results", tmp_path / "results")


def test_with_nothing_to_judge_nothing_is_shown(tmp_path):
    write(tmp_path / "results", "mine", records(spread(GOOD, 0.005, 25), label="no-such-column"))
    outcome = CliRunner().invoke(app, ["check", "--results", str(tmp_path / "results")])
    assert isinstance(outcome.exception, DpreproError)
    assert outcome.stdout == ""


def test_an_inconclusive_cell_says_what_else_shows_a_difference(tmp_path, explained):
    entries = yaml.safe_load(explained.read_text(encoding="utf-8"))
    entries["deviations"][0]["expected"] = "inconclusive"
    explained.write_text(yaml.safe_dump(entries))
    given = (*journal(tmp_path, 0.8705), "--deviations", explained)
    code, text = check(*given, "--details")
    assert code == 0
    part = text.split("Inconclusive here, and known to differ by other evidence")[1]
    assert "adult dp-ebm-gdp-2021 0.5: the formula asks for more noise" in part
    _, text = check(*given, "--dataset", "adult", "--method", "dp-ebm-gdp-2021")
    assert "Differs         the formula asks for more noise" in text
    found = json.loads(check(*given, "--format", "json")[1])
    assert found["known"] == ["dp-ebm-2021 table 2: adult, dp-ebm-gdp-2021, epsilon 0.5"]
    assert (found["explained"], found["cause_unknown"]) == (0, [])
