"""A stranger's terminal: a fresh clone of the checkout, and commands that share one environment."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sysconfig
import time
import venv
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path

from tests.docs.pages import ROOT, Block, commands
from tests.docs.rules import EXTRAS, NOT_RUN, RULES, Rule, write_short_configs
from tests.docs.warm import start

LIMIT = 480
"""Seconds that one command may take."""


class Session:
    """A clone of what is committed, with a .venv that has this interpreter's libraries.

    `make install` finds its stamps and installs nothing: that `.ci/run` has done for real. A
    command sees what commands before it have exported, as in a terminal.
    """

    def __init__(self, folder: Path, page: str, data: Path, *, warm: bool = False) -> None:
        """Clone into an empty folder; `page` says whose rules hold, and may be changed later.

        `warm`: the command line starts with its libraries loaded, see `tests.docs.warm`.
        """
        self.page, self.folder, self.output = page, folder / "dprepro", ""
        clone = ["git", "clone", "--quiet", str(ROOT), str(self.folder)]
        subprocess.run(clone, check=True, capture_output=True)
        _link_environment(self.folder)
        write_short_configs(self.folder)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.state = folder / "environment.sh"
        kept = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
        kept |= {"DPREPRO_DATA": str(data), "COLUMNS": "80", "MPLBACKEND": "agg"}
        kept["DPREPRO_STATE"] = str(folder / "private-state")  # a reader's, with nothing released
        self.environment = {k: v for k, v in kept.items() if not k.startswith("PYTEST_")}
        self.left_running: list[subprocess.Popen[bytes]] = []
        if warm:
            script = self.folder / ".venv" / "bin" / "dprepro"
            self.left_running.append(start(script, self.environment))

    def do(self, block: Block) -> None:
        """Do what a block says, with what its rules add; one of text, an output, is left alone."""
        extras = [extra for extra in EXTRAS if extra.block == block.name]
        for extra in extras:
            if extra.before:
                extra.before(self.folder)
        if any(block.text.startswith(other.begins) for other in NOT_RUN):
            return
        if block.language == "sh":
            self._run_block(block)
        elif block.name:
            self.write(block)
        elif block.language == "pycon":
            assert ">>>" in block.text
            self.run(f".venv/bin/python -m doctest -o ELLIPSIS {self._written(block, '.txt')}")
        elif block.language == "python":
            self.run(f".venv/bin/python {self._written(block, '.py')}")
        elif block.language == "":
            paths = re.findall(r"^[\w./]+|(?<=  )[\w.]+/(?=  )", block.text, re.MULTILINE)
            assert paths
            assert [path for path in paths if not (self.folder / path).exists()] == []
        else:
            assert block.language == "text", f"{block.language!r} is neither run nor in NOT_RUN"
        for extra in extras:
            for command in extra.then:
                self.run(command)

    def _written(self, block: Block, ending: str) -> str:
        file = self.folder / f"block-{block.line}{ending}"
        file.write_text(block.text)
        return file.name

    def _run_block(self, block: Block) -> None:
        """Run every command of a shell block; `output` is then all that they printed."""
        self.output, failures = "", []
        for command in commands(block.text):
            try:
                self.output += self.run(command)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                failures.append(str(error))  # the others are tried all the same
        assert not failures, "\n\n".join(failures)

    def write(self, block: Block) -> None:
        """Write a block that names a file to that file; others are left alone."""
        if block.name:
            file = self.folder / block.name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)

    def run(self, command: str) -> str:
        """Run a command by its rule, if it has one, and return what it printed.

        Raises AssertionError where it ends with another status than the rule's, usually 0, or lacks
        what the rule says it shows.
        """
        rule = rule_of(self.page, command)
        line = command
        for old, new in rule.replace:
            assert old in line, f"{command}: its rule replaces {old!r}, which is not in it"
            line = line.replace(old, new)
        line = f"{line} {rule.append}".strip().replace("{port}", str(self.port))
        if rule.background:
            return self._leave_running(line, rule.background)
        script = f'. "{self.state}"\n' if self.state.exists() else ""
        script += f"{line}\nstatus=$?\nexport -p > {shlex.quote(str(self.state))}\nexit $status"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
        )
        assert done.returncode == rule.status, (
            f"$ {line}\n{done.stdout}\nended with {done.returncode}"
        )
        absent = [words for words in rule.shows if words not in done.stdout]
        assert not absent, f"$ {line}\n{done.stdout}\ndoes not show {absent}"
        return done.stdout

    def _leave_running(self, line: str, wanted: str) -> str:
        log = self.folder.parent / f"{len(self.left_running)}.log"
        script = f'. "{self.state}"; exec {line}'
        with log.open("wb") as sink:
            process = subprocess.Popen(
                ["bash", "-c", script],
                cwd=self.folder,
                env=self.environment,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.left_running.append(process)
        until = time.monotonic() + 60
        while wanted not in log.read_text(encoding="utf-8"):
            assert process.poll() is None, f"$ {line}\n{log.read_text()}\nended"
            assert time.monotonic() < until, f"$ {line}\n{log.read_text()}\nnever says {wanted!r}"
            time.sleep(0.1)
        return log.read_text(encoding="utf-8")

    def close(self) -> None:
        """End what was left running."""
        for process in reversed(self.left_running):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.left_running:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def rule_of(page: str, command: str) -> Rule:
    """Return the rule of a command of a page: to run as it stands where there is none."""
    return next((r for r in RULES.get(page, ()) if r.command == command), Rule(command))


def _link_environment(clone: Path) -> None:
    venv.EnvBuilder(with_pip=False).create(clone / ".venv")
    names = {"base": str(clone / ".venv"), "platbase": str(clone / ".venv")}
    libraries = Path(sysconfig.get_path("purelib", vars=names))
    # The clone stands before the libraries, where an installed dprepro may lie.
    (libraries / "clone.pth").write_text(f"{clone}\n{sysconfig.get_path('purelib')}\n")
    binaries = clone / ".venv" / "bin"
    for script in entry_points(group="console_scripts"):
        if script.name in {"dprepro", "dask"}:
            file = binaries / script.name
            file.write_text(
                f"#!{binaries / 'python'}\nimport sys\nfrom {script.module} import {script.attr}\n"
                # Dask's workers import this file again.
                f"if __name__ == '__main__':\n    sys.exit({script.attr}())\n"
            )
            file.chmod(0o755)
    for stamp in (".installed", ".installed-dev"):
        (clone / ".venv" / stamp).touch()
