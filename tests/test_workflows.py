"""The action, the workflows and the page about CI: what a service would run is run here.

Files are compared with the services' schemas, as `make lint` does. Scripts of the action and of
the page run in bash as a service starts it; of dprepro's installation alone nothing is tried.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from dprepro.experiment import local
from dprepro.experiment import run as run_module
from dprepro.runtime.kernels import why_not
from tests.commands import dprepro
from tests.docs.pages import ROOT, blocks, commands
from tests.docs.rules import write_smith
from tests.docs.warm import start
from tests.in_process import InProcess

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
WORKFLOWS = {
    path.name: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
}
PAGE = {block.name: block.text for block in blocks("docs/ci.md") if block.name}
CASES = "6"
"""Cells and claims of the paper that `dprepro new paper` writes."""
OF_PAGE = ".github/workflows/reproduction.yml"
SCHEMAS = {OF_PAGE: "github-workflows", ".gitlab-ci.yml": "gitlab-ci"}


def lint(schema: str, *paths: Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    done = subprocess.run([*command, *map(str, paths)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def linted() -> list[list[str]]:
    """Return the command lines of `make lint` that compare with a schema."""
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    return [shlex.split(line)[1:] for line in lines if "/check-jsonschema " in line]


@pytest.mark.parametrize("options", linted(), ids=lambda options: options[1])
def test_the_files_of_this_repository_are_as_their_schemas_say(options: list[str]) -> None:
    paths = [path for pattern in options[2:] for path in ROOT.glob(pattern)]
    assert paths
    code, said = lint(options[1].removeprefix("vendor."), *paths)
    assert code == 0, said


def test_lint_covers_the_action_and_every_workflow() -> None:
    assert [options[1:] for options in linted()] == [
        ["vendor.github-actions", "action.yml"],
        ["vendor.github-workflows", ".github/workflows/*.yml"],
    ]
    assert {path.suffix for path in (ROOT / ".github" / "workflows").iterdir()} == {".yml"}


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_files_of_the_page_are_as_their_schemas_say(name: str, tmp_path: Path) -> None:
    path = tmp_path / "file.yml"
    path.write_text(PAGE[name])
    assert lint(SCHEMAS[name], path)[0] == 0


@pytest.mark.parametrize(
    ("text", "schema", "old", "new"),
    [
        (
            (ROOT / "action.yml").read_text(encoding="utf-8"),
            "github-actions",
            "using: composite",
            "using: bash",
        ),
        (PAGE[OF_PAGE], "github-workflows", "runs-on:", "runs-onn:"),
        (PAGE[".gitlab-ci.yml"], "gitlab-ci", "reports: {", "report: {"),
    ],
    ids=["action", "workflow", "gitlab"],
)
def test_a_planted_fault_is_found(
    text: str, schema: str, old: str, new: str, tmp_path: Path
) -> None:
    assert old in text
    path = tmp_path / "file.yml"
    path.write_text(text.replace(old, new))
    code, said = lint(schema, path)
    assert code == 1
    assert "Schema validation errors" in said


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, workflow in WORKFLOWS.items():
        for job, content in workflow["jobs"].items():
            yield f"{name}: {job}", content


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the steps of the action, of every workflow and of the page, with where they are."""
    yield from (("action.yml", step) for step in ACTION["runs"]["steps"])
    yield from ((name, step) for name, job in jobs() for step in job["steps"])
    for job in yaml.safe_load(PAGE[OF_PAGE])["jobs"].values():
        yield from (("docs/ci.md", step) for step in job["steps"])


def test_no_script_holds_text_that_a_workflow_was_given() -> None:
    """An expression within a script is put there before bash reads it: who writes it runs it."""
    assert [(place, step["run"]) for place, step in steps() if "${{" in step.get("run", "")] == []


def test_expressions_name_steps_inputs_and_jobs_that_there_are() -> None:
    """What is not there is an empty text to a service, and no error."""
    places = {"action.yml": (ACTION["runs"], ACTION), **{name: (job, {}) for name, job in jobs()}}
    for place, (job, whole) in places.items():
        text = yaml.safe_dump([job, whole.get("outputs")], width=10_000)
        steps_of = {step["id"] for step in job["steps"] if "id" in step}
        assert set(re.findall(r"\bsteps\.([\w-]+)", text)) <= steps_of, place
        assert set(re.findall(r"\binputs\.([\w-]+)", text)) <= set(whole.get("inputs", {})), place
        matrix = job.get("strategy", {}).get("matrix", {})
        keys = set(matrix) - {"include"}
        if not keys:  # each combination is written out
            keys = set.intersection(*map(set, matrix["include"])) if matrix else keys
        assert set(re.findall(r"\bmatrix\.([\w-]+)", text)) <= keys, place


def test_actions_of_others_are_pinned_to_a_major_version() -> None:
    used = {step["uses"] for _, step in steps() if "uses" in step} - {"./", "OWNER/dprepro@main"}
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w-]+/[\w/-]+@v\d+", one)] == []


def test_workflows_may_only_read_and_end() -> None:
    for name, workflow in WORKFLOWS.items():
        assert workflow["permissions"] == {"contents": "read"}, name
        assert workflow["concurrency"]["group"], name
    for name, job in jobs():
        assert 0 < job["timeout-minutes"] <= 120, name
        assert "permissions" not in job, name


def test_the_page_and_the_workflows_give_inputs_that_there_are() -> None:
    ours = [s for _, s in steps() if s.get("uses") in {"./", "OWNER/dprepro@main"}]
    assert ours
    assert [step["with"] for step in ours if not set(step["with"]) <= set(ACTION["inputs"])] == []
    page = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert set(ACTION["inputs"]) <= named


def test_workflows_make_targets_that_there_are() -> None:
    targets = re.findall(
        r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    matrix = WORKFLOWS["ci.yml"]["jobs"]["make"]["strategy"]["matrix"]
    scripts = [step.get("run", "") for _, job in jobs() for step in job["steps"]]
    made = {*matrix["target"], *(one["target"] for one in matrix["include"])}
    made |= {name for script in scripts for name in re.findall(r"^make ([\w-]+)", script)}
    assert made <= set(targets)
    wanted = re.search(
        r"^\$four (.*)$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert wanted is not None
    left_out = {"docs-readme", "docs-others"}  # the two parts of `make docs-test`
    assert set(wanted[1].split()) - left_out - {"kernels"} == made


def test_workflows_try_the_pythons_that_the_project_allows() -> None:
    jobs_of = WORKFLOWS["ci.yml"]["jobs"]
    matrix = jobs_of["make"]["strategy"]["matrix"]
    tried = {*matrix["python"], *(one["python"] for one in matrix["include"])}
    (several,) = [
        s["with"] for s in jobs_of["wheel"]["steps"] if "setup-python" in s.get("uses", "")
    ]
    assert tried == set(several["python-version"].split())
    listed = re.search(
        r"^VERSIONS = (.*)$", (ROOT / ".ci" / "wheel.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert listed is not None
    assert tried == set(re.findall(r"[\d.]+", listed[1]))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """Return a folder with dprepro installed in `dprepro`, and an environment that leads there."""
    temporary = tmp_path_factory.mktemp("runner")
    binaries = temporary / "dprepro" / "bin"
    binaries.mkdir(parents=True)
    python = binaries / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    script = binaries / "dprepro"
    script.write_text(
        f"#!{python}\nimport sys\nfrom dprepro.cli import main\n"
        "if __name__ == '__main__':\n    sys.exit(main())\n"
    )
    for file in (python, script):
        file.chmod(0o755)
    # A test that ran something in this process leaves PYTHONSAFEPATH, which no service sets.
    unwanted = ("GITHUB_", "RUNNER_", "CI_", "PYTEST_", "MAKE", "PYTHONSAFEPATH")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
    kept |= {"PYTHONPATH": str(ROOT), "RUNNER_TEMP": str(temporary), "CI": "true"}
    kept |= {"DPREPRO_STATE": str(temporary / "state"), "COLUMNS": "80"}
    warm = start(script, kept) if sys.platform == "linux" else None
    yield temporary, kept
    if warm is not None:
        warm.terminate()
        warm.wait()


@pytest.fixture(scope="module")
def smith(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the files that the page speaks of, with results."""
    folder = tmp_path_factory.mktemp("smith")
    write_smith(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "LocalExecutor", InProcess)
        patch.setattr(local, "start_ahead", lambda *given: None)
        dprepro("run", folder / "smith.yaml", "--results", folder / "results", "--jobs", 1)
    return {
        str(p.relative_to(folder)): p.read_text(encoding="utf-8")
        for p in folder.rglob("*")
        if p.is_file()
    }


def copied(files: dict[str, str], folder: Path, deviates: bool = False) -> None:
    """Write the files; where they deviate, the paper prints that logistic regression guesses."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    if deviates:
        cells = folder / "smith-2026" / "cells.csv"
        assert "logistic,inf,auc,0.99," in cells.read_text(encoding="utf-8")
        cells.write_text(
            cells.read_text(encoding="utf-8").replace(
                "logistic,inf,auc,0.99,", "logistic,inf,auc,0.50,"
            )
        )


@dataclass
class Runner:
    """Runs scripts of the action in a folder, as a service does; `written` is what they leave."""

    folder: Path
    environment: dict[str, str]
    inputs: dict[str, str]
    written: Path
    said: list[str] = field(default_factory=list)

    def value(self, expression: str) -> str:
        known = {"github.action_path": str(ROOT)}
        known |= {f"inputs.{k}": str(v.get("default", "")) for k, v in ACTION["inputs"].items()}
        known |= {f"inputs.{k}": v for k, v in self.inputs.items()}
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], expression)

    def run(self, name: str) -> int:
        """Run the script of the step with this name and return its status."""
        (step,) = (step for step in ACTION["runs"]["steps"] if step.get("name") == name)
        environment = self.environment | {k: self.value(v) for k, v in step.get("env", {}).items()}
        for kind in ("ENV", "OUTPUT", "PATH", "STEP_SUMMARY"):
            (self.written / kind).touch()
            environment[f"GITHUB_{kind}"] = str(self.written / kind)
        environment |= self.pairs("ENV")
        environment["PATH"] = ":".join([*self.lines("PATH"), environment["PATH"]])
        script = self.written / "script.sh"
        script.write_text(step["run"])
        assert step["shell"] == "bash"
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
            cwd=self.folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.said.append(done.stdout + done.stderr)
        return done.returncode

    def pairs(self, kind: str) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.lines(kind))

    def lines(self, kind: str) -> list[str]:
        path = self.written / kind
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@pytest.fixture
def runner(machine: tuple[Path, dict[str, str]], tmp_path: Path) -> Runner:
    temporary, environment = machine
    folder, written = tmp_path / "work space", tmp_path / "written"
    folder.mkdir()
    written.mkdir()
    (written / "PATH").write_text(f"{temporary}/dprepro/bin\n")  # what installing would write
    return Runner(folder, dict(environment), {"paper": "./smith-2026"}, written)


def test_a_check_that_passes(runner: Runner, smith: dict[str, str]) -> None:
    copied(smith, runner.folder)
    (runner.folder / "results").rename(runner.folder / "my results")
    runner.inputs |= {"run": "smith.yaml\n  --jobs 1", "results": "my results"}
    runner.inputs |= {"junit": "reports/check.xml", "arguments": "--min-splits 2"}
    assert runner.run("Name the caches") == 0
    assert runner.run("Run") == 0, runner.said
    assert "smith: 5 tasks: 5 done before" in runner.said[-1]
    assert not (runner.folder / "results").exists()
    assert runner.run("Check") == 0, runner.said
    assert "::notice title=dprepro check::Check passed" in runner.said[-1]
    assert "::error" not in runner.said[-1]
    assert runner.lines("STEP_SUMMARY")[0] == "## dprepro check: passed"
    suite = ElementTree.parse(runner.folder / "reports" / "check.xml").getroot()
    assert (suite.get("failures"), suite.get("tests")) == ("0", CASES)
    outputs = runner.pairs("OUTPUT")
    assert outputs["exit-code"] == "0"
    assert re.fullmatch(r"[0-9a-f]{16}", outputs["kernels"])
    assert runner.lines("ENV") == [f"DPREPRO_CACHE={outputs['folder']}"]


def test_a_check_that_fails(runner: Runner, smith: dict[str, str]) -> None:
    copied(smith, runner.folder, deviates=True)
    assert runner.run("Check") == 1, runner.said
    errors = [line for line in runner.said[-1].splitlines() if line.startswith("::error ")]
    assert "Check failed" in errors[0]
    assert any("logistic" in line for line in errors[1:])
    assert runner.lines("STEP_SUMMARY")[0] == "## dprepro check: failed"
    suite = ElementTree.parse(runner.folder / "dprepro-check.xml").getroot()
    failed = [c.get("name") for c in suite.iter("testcase") if c.find("failure") is not None]
    assert "breast-cancer, logistic, ε Non-Private, auc" in failed
    assert runner.pairs("OUTPUT") == {"exit-code": "1"}


def test_a_check_against_an_earlier_commit(runner: Runner, smith: dict[str, str]) -> None:
    copied(smith, runner.folder)
    git = "git -c user.name=me -c user.email=me@localhost"
    kept = in_shell(
        f"git init -q; git add -A; {git} commit -qm m", runner.folder, runner.environment
    )
    assert kept.returncode == 0, kept.stdout
    runner.inputs = {"config": "smith", "arguments": "--baseline HEAD"}
    assert runner.run("Check") == 0, runner.said
    assert "::notice title=dprepro check::" in runner.said[-1]
    assert "equivalent" in "".join(runner.lines("STEP_SUMMARY"))


def test_without_results_no_check_passes(runner: Runner) -> None:
    """Not even on the runs that come with dprepro."""
    runner.inputs["paper"] = "dp-llm-2020"
    assert runner.run("Check") == 2
    assert "error: no journals" in runner.said[-1]
    assert "could not be made" in runner.lines("STEP_SUMMARY")[0]
    assert runner.pairs("OUTPUT") == {"exit-code": "2"}
    assert list(runner.folder.iterdir()) == []


def test_inputs_are_words_and_never_run(runner: Runner) -> None:
    evil = "$(touch evil) `touch evil`; touch evil #' \" && touch evil"
    runner.inputs = dict.fromkeys(("run", "results", "config", "paper", "arguments"), evil)
    assert runner.run("Run") == 2, runner.said
    assert runner.run("Check") == 2, runner.said
    assert list(runner.folder.iterdir()) == []


def test_the_job_of_gitlab(runner: Runner, smith: dict[str, str]) -> None:
    """All but the installation, in folders that all may write to, as GitLab makes them."""
    copied(smith, runner.folder)
    (runner.folder / ".cache" / "dprepro" / "kernels").mkdir(parents=True)
    for place in (runner.folder, runner.folder / ".cache", runner.folder / ".cache" / "dprepro"):
        place.chmod(0o777)
    job = yaml.safe_load(PAGE[".gitlab-ci.yml"])["check"]
    lines = [line for line in job["before_script"] if "uv tool" not in line]
    assert len(lines) == len(job["before_script"]) - 2
    environment = runner.environment | {"CI_PROJECT_DIR": str(runner.folder)}
    for name, value in job["variables"].items():
        environment[name] = value.replace("$CI_PROJECT_DIR", str(runner.folder))
    environment["PATH"] = f"{runner.lines('PATH')[0]}:{environment['PATH']}"
    kept = Path(environment["DPREPRO_CACHE"]) / "kernels"
    assert "others may write" in why_not(kept)
    done = in_shell("\n".join([*lines, *job["script"]]), runner.folder, environment)
    assert done.returncode == 0, done.stdout
    assert why_not(kept) == ""
    report = runner.folder / job["artifacts"]["reports"]["junit"]
    assert ElementTree.parse(report).getroot().get("tests") == CASES
    assert all((runner.folder / path).exists() for path in job["cache"]["paths"])
    assert all((runner.folder / path).is_dir() for path in job["artifacts"]["paths"])
    assert (runner.folder / job["cache"]["key"]["files"][0]).is_file()


@pytest.mark.parametrize("deviates", [False, True])
def test_the_rules_for_make(runner: Runner, smith: dict[str, str], deviates: bool) -> None:
    copied(smith, runner.folder, deviates)
    (runner.folder / "check.mk").write_text(PAGE["check.mk"])
    (command,) = [
        line
        for b in blocks("docs/ci.md")
        for line in commands(b.text)
        if line.startswith("make -f")
    ]
    environment = runner.environment | {"DPREPRO": "dprepro"}
    environment["PATH"] = f"{runner.lines('PATH')[0]}:{environment['PATH']}"
    done = in_shell(command, runner.folder, environment)
    assert done.returncode == 2 * deviates, done.stdout
    suite = ElementTree.parse(runner.folder / "check.xml").getroot()
    assert (suite.get("failures") != "0") is deviates


def in_shell(
    script: str, folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script], cwd=folder, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
