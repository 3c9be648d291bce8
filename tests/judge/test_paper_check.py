"""A paper of a user's own: a folder anywhere, opened by its path, and judged like ours."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dprepro import table, verdicts
from dprepro.cli import app
from dprepro.experiment.config import load_config
from dprepro.judge.paper_check import check_paper
from dprepro.papers import folders
from dprepro.papers.document import select_documents
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro

CONFIG = """\
dataset: breast-cancer
metric: auc
published: {paper: %s, table: 1}
epsilons: [1]
delta: 1e-6
splits: 5
test_share: 0.2
seed: 1
domain: public
methods: [dp-ebm-gdp, logistic]
"""


@pytest.fixture
def paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new paper as `dprepro new paper` writes it, in the working folder."""
    monkeypatch.setattr(folders, "_own", {})
    monkeypatch.chdir(tmp_path)
    assert "Check it: dprepro paper check ./smith-2026" in dprepro("new", "paper", "smith-2026")
    return Path("smith-2026")


def spoil(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new))


def test_a_new_paper_is_sound_and_its_results_are_judged_from_any_folder(
    paper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "smith-2026 is sound: 4 printed cells, 1 claim" in dprepro("paper", "check", paper)
    (Path("configs")).mkdir()
    Path("configs/own.yaml").write_text(CONFIG % "../smith-2026")
    dprepro("run", "configs/own.yaml", "--jobs", 1)
    table = dprepro("table", "1", "--paper", "./smith-2026", "--compare", "--format", "csv")
    assert ",0.95," in table
    assert ",inconclusive," in table
    monkeypatch.chdir("configs")
    said = dprepro(
        "check", "--results", "../results", "--paper", "../smith-2026", "--format", "json"
    )
    found = json.loads(said)
    assert {cell["paper"] for cell in found["cells"]} == {"smith-2026"}
    verdicts = {cell["method"]: cell["verdict"] for cell in found["cells"]}
    assert verdicts["dp-ebm-gdp"] not in {"not run", "incomplete"}
    assert verdicts["dp-logistic-fair"] == "not run"
    assert "above-nine-tenths" in json.dumps(found["claims"])


def test_all_faults_of_a_paper_are_listed_with_their_lines(paper: Path) -> None:
    spoil(paper / "cells.csv", "breast-cancer,ebm", "brest-cancer,ebm")
    spoil(paper / "cells.csv", "0.90,", "0,90,")
    spoil(paper / "cells.csv", "inf,auc,0.99,", "inf,acu,0.99,")
    spoil(paper / "claims.yaml", "low: 0.9", "lowest: 0.9")
    said = CliRunner().invoke(app, ["paper", "check", str(paper)])
    assert said.exit_code == 1
    for part in (
        "cells.csv:3: dataset 'brest-cancer'; did you mean 'breast-cancer'?",
        "cells.csv:4: 8 fields expected",
        "cells.csv:5: unknown metric 'acu'",
        "within[0].lowest: unknown key",
        "smith-2026: 5 faults",
    ):
        assert part in said.output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: shutil.rmtree(folder), "no folder of a paper: there is no"),
        (lambda folder: (folder / "paper.yaml").unlink(), "no folder of a paper"),
        (lambda folder: (folder / "cells.csv").unlink(), r"cells\.csv"),
        (lambda folder: (folder / "paper.yaml").write_text("- a"), "the key `paper`"),
        (
            lambda folder: spoil(folder / "paper.yaml", "paper: smith-2026", "paper: sbdt-2024"),
            "give yours another name",
        ),
        (lambda folder: spoil(folder / "paper.yaml", "tables:", "tabels:"), "did you mean"),
        (lambda folder: (folder / "cells.csv").write_text("a,b\n1,2\n"), "the header is"),
        (lambda folder: (folder / "cells.csv").write_bytes(b"\xff\xfe\x00"), r"cells\.csv"),
    ],
)
def test_a_folder_that_is_no_paper_is_refused_where_it_is_opened(
    paper: Path, change, message
) -> None:
    change(paper)
    with pytest.raises(DpreproError, match=message):
        dprepro("check", "--paper", f"./{paper}")


def test_line_ends_and_a_mark_at_the_beginning_are_no_part_of_a_cell(paper: Path) -> None:
    text = (paper / "cells.csv").read_text(encoding="utf-8")
    (paper / "cells.csv").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    found = check_paper(str(paper))
    assert (found.faults, sum(found.cells.values())) == ([], 4)


def test_a_config_names_its_paper_by_name_or_by_a_path_from_its_folder(paper: Path) -> None:
    Path("own.yaml").write_text(CONFIG % "./smith-2026")
    config = load_config("own.yaml")
    assert config.published is not None
    assert config.published.paper == "smith-2026"
    for given, message in (
        ("dp-emb-2021", "line 3, published.paper: no document 'dp-emb-2021'; did you mean 'dp-ebm"),
        ("./other", "line 3, published.paper: .*no folder of a paper"),
        ("dp-ebm-2021", "line 3, published.table: dp-ebm-2021 has no table '1'"),
    ):
        Path("own.yaml").write_text(CONFIG % given)
        with pytest.raises(DpreproError, match=message):
            load_config("own.yaml")


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        (
            "dataset: breast-cancer\n    methods: dp-ebm-gdp",
            "dataset: brest-cancer\n    methods: [dp-ebm-gpd, ebm]",
            (
                "dataset 'brest-cancer'; did you mean 'breast-cancer'?",
                "method 'dp-ebm-gpd'; did you mean 'dp-ebm-gdp'?",
            ),
        ),
        ('table: "1"', 'table: "11"', ("table '11'; did you mean '1'?",)),
        ("metric: auc", "metric: acu", ("metric 'acu'; did you mean 'auc'?",)),
    ],
)
def test_a_claim_on_cells_that_are_not_printed_names_places_of_the_layout(
    paper: Path, old: str, new: str, messages: tuple[str, ...]
) -> None:
    spoil(paper / "claims.yaml", old, new)
    line = "line 7, within[0]: claim above-nine-tenths: "
    faults = check_paper(str(paper)).faults
    assert len(faults) == len(messages)
    for fault, message in zip(faults, messages, strict=True):
        assert line + message in fault
    with pytest.raises(DpreproError, match=f"claim above-nine-tenths: {messages[0][:12]}"):
        dprepro("check", "--results", "shipped", "--paper", "./smith-2026")


def test_a_name_is_compared_with_those_of_papers_that_were_opened(paper: Path) -> None:
    select_documents(f"./{paper}")
    assert select_documents("smith-2026")[0].paper == select_documents("smith")[0].paper
    with pytest.raises(DpreproError, match=r"did you mean 'smith-2026'\? .*sbdt-2024, smith-2026,"):
        select_documents("smiht-2026")


def test_a_run_for_a_paper_of_ones_own_says_how_to_name_it(
    paper: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("own.yaml").write_text(CONFIG % "./smith-2026")
    dprepro("run", "own.yaml", "--splits", 1, "--method", "logistic", "--jobs", 1)
    said = "own answers to smith-2026, a paper of your own: add --paper ./smith-2026"
    for command in (["table"], ["table", "--compare"], ["table", "own"]):
        found = CliRunner().invoke(app, command)
        assert (found.exit_code, said in found.stderr) == (0, True)
    with pytest.raises(DpreproError, match=f"no result for a printed cell. {said}"):
        dprepro("check")
    assert "answers to" not in CliRunner().invoke(app, ["table", "--paper", "./smith-2026"]).stderr
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    with pytest.raises(DpreproError, match="add --paper and the path of its folder"):
        dprepro("check", "--results", "../results")


def test_python_takes_the_folder_of_a_paper(paper: Path) -> None:
    Path("own.yaml").write_text(CONFIG % "./smith-2026")
    dprepro("run", "own.yaml", "--method", "logistic", "--jobs", 1)
    for given in ("./smith-2026", paper.resolve()):
        found = table("own", paper=given)
        assert found[["paper", "published_mean"]].values.tolist() == [["smith-2026", 0.99]]
        judged = verdicts("results", given)
        assert judged.report.papers == ["smith-2026"]
        assert judged.counts["not run"] == 3
    with pytest.raises(DpreproError, match="no folder of a paper"):
        verdicts("results", "./nowhere")


def test_names_that_dprepro_does_not_know_are_noted_as_they_may_be_labels(paper: Path) -> None:
    for file in ("paper.yaml", "cells.csv", "claims.yaml"):
        spoil(paper / file, "dp-ebm-gdp", "theirs")
    said = dprepro("paper", "check", paper)
    assert "Note: paper.yaml: no method is called theirs" in said
    assert "is sound" in said


def test_a_standard_error_is_printed_and_counts_as_the_spread_of_its_repeats(paper: Path) -> None:
    (paper / "cells.csv").write_text(
        "paper,table,dataset,method,epsilon,metric,mean,std,standard_error,repeats\n"
        "smith-2026,1,breast-cancer,dp-ebm-gdp,1,auc,0.950,,0.003,25\n"
        "smith-2026,1,breast-cancer,ebm,inf,auc,0.990,0.004,,\n"
    )
    (paper / "claims.yaml").unlink()
    assert check_paper(str(paper)).faults == []
    one, other = folders_cells(paper)
    assert one.std == pytest.approx(0.015)
    assert (one.in_print, other.in_print) == ("0.950 ± 0.003 SE", "0.990 ± 0.004")
    spoil(paper / "cells.csv", "0.003,25", "0.003,1")
    spoil(paper / "cells.csv", "0.004,,", "0.004,0.001,25")
    faults = check_paper(str(paper)).faults
    assert [fault.split(": ", 2)[0][-1] for fault in faults] == ["2", "3"]


def folders_cells(paper: Path):
    from dprepro.papers.published_cell import read_cells

    return read_cells(paper / "cells.csv")[0]
