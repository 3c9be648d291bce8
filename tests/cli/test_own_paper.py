"""A paper of one's own: a folder, named by its path in configs and by `--paper`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dprepro import table
from dprepro.cli import app
from dprepro.judge.claims import load_claims
from dprepro.papers import folders
from dprepro.papers.document import select_documents
from dprepro.papers.folders import FOLDER
from dprepro.papers.published_cell import load_published
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro

HEADER = "paper,table,dataset,method,epsilon,metric,mean,std"
PAPER = """\
paper: mine-2026
title: A paper of mine
protocol: {splits: 2, test_share: 0.2, delta: 1.0e-6}
tables:
  "1":
    title: RMSE
    metric: rmse
    datasets: {small: Small}
    columns:
      - {title: Linear, method: dp-linear-fair, nonprivate: linear}
"""
CARD = """\
name: small
title: Progression of diabetes
task: regression
target: target
target_bounds: [0, 400]
sources: [{sklearn: diabetes}]
"""
CONFIG = """\
dataset: small.yaml
metric: rmse
domain: observed
splits: 2
seed: 1
epsilons: [1]
methods: [linear]
published: {paper: ../mypaper, table: "1"}
"""


def write_paper(place: Path) -> None:
    rows = [HEADER, '"mine-2026","1",small,linear,inf,rmse,"55.1",']
    place.mkdir()
    (place / "cells.csv").write_bytes(("\ufeff" + "\r\n".join(rows) + "\r\n").encode())
    (place / "paper.yaml").write_text(PAPER)
    (place / "claims.yaml").write_text("paper: mine-2026\n")


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as a spreadsheet writes it: with a byte order mark, CRLF and quotes."""
    monkeypatch.setattr(folders, "_own", {})
    monkeypatch.chdir(tmp_path)
    write_paper(tmp_path / "mypaper")
    return tmp_path / "mypaper"


def test_results_of_ones_own_are_judged_wherever_the_folder_lies(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("study", "elsewhere"):
        (tmp_path / folder).mkdir()
    (tmp_path / "study/small.yaml").write_text(CARD)
    (tmp_path / "study/small-linear.yaml").write_text(CONFIG)
    results = tmp_path / "results"
    monkeypatch.chdir(tmp_path / "elsewhere")
    dprepro("run", "../study/small-linear.yaml", "--results", results)
    (journal,) = results.glob("*.jsonl")
    assert '"paper":"mine-2026"' in journal.read_text(encoding="utf-8").replace(" ", "")
    mine.rename(tmp_path / "moved")
    (tmp_path / "link").symlink_to(tmp_path / "moved")
    monkeypatch.setattr(folders, "_own", {})
    given = ("--results", results, "--paper", "../link")
    (row,) = [
        r
        for r in json.loads(dprepro("table", *given, "--compare", "--format", "json"))
        if r["published_mean"]
    ]
    assert (row["published_mean"], row["verdict"]) == (55.1, "inconclusive")
    assert "1 of 1 cell judged" in dprepro("check", *given)
    assert dprepro("forensics", *given, "--format", "json").strip() == "[]"
    assert dprepro("cite", "../link") == "@misc{mine-2026,\n  title = {A paper of mine}\n}\n"
    dprepro("report", *given, "--output", tmp_path / "page.html")
    assert "A paper of mine" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journals of a config that answers to the paper, and of one that does not."""
    place = tmp_path_factory.mktemp("study")
    (place / "small.yaml").write_text(CARD)
    (place / "answers.yaml").write_text(CONFIG.replace("../", "./"))
    own = CONFIG.replace("splits: 2", "splits: 3").splitlines(keepends=True)[:-1]
    (place / "own.yaml").write_text("".join(own).replace("[linear]", "[linear, dp-linear-fair]"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folders, "_own", {})
        patch.chdir(place)
        write_paper(place / "mypaper")
        dprepro("run", "answers.yaml", "own.yaml", "--jobs", "1")
    return place / "results"


@pytest.fixture
def ran(mine: Path, journals: Path) -> Path:
    """A copy of these journals beside the paper."""
    return Path(shutil.copytree(journals, mine.parent / "results"))


def test_a_config_that_does_not_name_the_paper_adds_nothing_to_it(ran: Path) -> None:
    given = ("--paper", "./mypaper", "--format", "json")
    alone, both = (
        json.loads(dprepro("table", *given, "--compare", *more))
        for more in (("--config", "answers"), ())
    )
    assert both == alone
    assert [(row["splits"], row["config"]) for row in both if row["mean"]] == [(2, ["answers"])]
    frame = table(results=ran, paper="./mypaper")
    assert frame["method"].tolist() == ["linear"]
    assert frame["config"].tolist() == ["answers"]
    assert frame["splits"].tolist() == [2]
    assert set(table(results=ran)["method"]) == {"linear", "dp-linear-fair"}


def test_check_follows_a_config_to_the_folder_of_its_paper(
    ran: Path, mine: Path, tmp_path: Path
) -> None:
    assert "1 of 1 cell judged" in dprepro("check", "--config", "answers")
    with pytest.raises(DpreproError, match=r"own does not name ./mypaper: add `published: "):
        dprepro("check", "--config", "own", "--paper", "./mypaper")
    mine.rename(tmp_path.parent / f"{tmp_path.name}-moved")
    with pytest.raises(DpreproError, match="answers answers to mine-2026, a paper of your own"):
        dprepro("check", "--config", "answers")


def test_advice_names_the_folder_of_the_paper(ran: Path, mine: Path) -> None:
    entry = "{name: near, section: s, states: x, table: 1, dataset: small, methods: linear, "
    entry += "epsilons: inf, metric: rmse, high: 1}"
    (mine / "claims.yaml").write_text(f"paper: mine-2026\nwithin:\n  - {entry}\n")
    outcome = CliRunner().invoke(app, ["check", "--paper", "./mypaper"])
    assert outcome.exit_code == 1
    assert "./mypaper/deviations.yaml" in outcome.stdout
    assert "library" not in outcome.stdout


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("cells.csv", "std", "sd", "cells.csv:1: the header is"),
        ("cells.csv", "small", "smal", "cells.csv:2: dataset 'smal'; did you mean 'small'"),
        ("cells.csv", "linear", "lineer", "cells.csv:2: method 'lineer'; did you mean 'linear'"),
        ("paper.yaml", "mine-2026", "dp-ebm-2021", "line 1, paper: a paper that comes with"),
        ("paper.yaml", "title: A", "titel: A", "line 2, titel: unknown key"),
        ("paper.yaml", "paper: mine-2026\n", "", "the key `paper`, the name of the paper, is mis"),
    ],
)
def test_a_fault_is_named_with_its_line(
    mine: Path, file: str, old: str, new: str, message: str
) -> None:
    path = mine / file
    path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))
    with pytest.raises(DpreproError, match=message):
        dprepro("check", "--results", "shipped", "--paper", "./mypaper")


def test_all_faulty_rows_are_named_at_once(mine: Path) -> None:
    row = "mine-2026,1,small,linear,inf,rmse,{}\n"
    rows = [row.format(end) for end in ("55.1,", "55.2,", "high,")]
    (mine / "cells.csv").write_text(HEADER + "\n" + "".join(rows))
    with pytest.raises(DpreproError) as caught:
        select_documents("./mypaper")
    assert [line.rpartition("/")[2] for line in str(caught.value).splitlines()] == [
        "cells.csv:3: printed twice: mine-2026 table 1: small, linear, non-private (rmse), "
        "first on line 2; keep one row",
        "cells.csv:4: mean is 'high', which is not a number",
    ]


def test_claims_of_one_name_are_refused_with_the_line_of_the_second(mine: Path) -> None:
    entry = "{name: near, section: s, states: x, table: 1, dataset: small, methods: linear, "
    entry += "epsilons: 1, metric: rmse, low: 1, high: 2}"
    (mine / "claims.yaml").write_text(f"paper: mine-2026\nwithin:\n  - {entry}\n  - {entry}\n")
    select_documents("./mypaper")
    with pytest.raises(DpreproError, match=r"claims.yaml, line 4, .*two claims are called 'near'"):
        load_claims()


def test_unknown_papers_and_folders_without_one_are_refused(mine: Path) -> None:
    with pytest.raises(DpreproError, match="no document 'dp-emb-2021'; did you mean 'dp-ebm-2021'"):
        dprepro("check", "--paper", "dp-emb-2021")
    with pytest.raises(DpreproError, match=r"no folder of a paper: there is no nowhere/paper.yaml"):
        dprepro("check", "--paper", "./nowhere")
    (mine / "cells.csv").unlink()
    with pytest.raises(DpreproError, match=r"cells.csv"):
        dprepro("check", "--paper", "./mypaper")
    assert select_documents(str(FOLDER / "dp-ebm-2021")) == select_documents("dp-ebm-2021")


def test_a_printed_standard_error_counts_by_its_number_of_values(mine: Path) -> None:
    row = "mine-2026,1,small,linear,inf,rmse,55.10,,0.50,25\n"
    (mine / "cells.csv").write_text(f"{HEADER},standard_error,repeats\n{row}")
    select_documents("./mypaper")
    (cell,) = load_published("mine-2026")
    assert (cell.std, cell.sd_half_unit) == pytest.approx((2.5, 0.025))
    assert cell.in_print == "55.10 ± 0.50 SE"
    (mine / "cells.csv").write_text(f"{HEADER},standard_error,repeats\n{row.replace('25', '1')}")
    with pytest.raises(DpreproError, match=r"repeats is '1'; give the number of values, 2 or more"):
        select_documents("./mypaper")
