"""The runs of an unfinished audit on disk: what was run before a kill is not run again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dprepro.errors import DpreproError


class KeptRuns:
    """A file of finished batches, one JSON line each; the first line says of which audit.

    A line that a kill cut off is dropped, and its batch run again.

    Parameters
    ----------
    path
        Is made, with its folder, if it is not there.
    facts
        JSON-able: what the audit is of. Runs of another audit are no evidence for this one.

    Raises
    ------
    DpreproError
        If the file is of another audit.
    """

    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        self._path = path
        self._done: dict[tuple[str, int], tuple[np.ndarray, np.ndarray]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = path.read_bytes() if path.exists() else b""
        lines = whole[: whole.rfind(b"\n") + 1].splitlines()
        if not lines:
            path.write_text(json.dumps(dict(facts)) + "\n")
            return
        if json.loads(lines[0]) != dict(facts):
            raise DpreproError(
                f"{path} holds runs of an audit with other options, or of another version: repeat "
                "the options to continue it, or delete the file to start anew"
            )
        for line in map(json.loads, lines[1:]):
            self._done[line["part"], line["batch"]] = (
                np.array(line["outputs"], dtype=np.float64),
                np.array(line["present"], dtype=bool),
            )
        with path.open("r+b") as file:
            file.truncate(whole.rfind(b"\n") + 1)

    def find(self, part: str, batch: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return outputs, float64 (N, d), and worlds, bool (N,), of a batch; None if not run."""
        return self._done.get((part, batch))

    def keep(self, part: str, batch: int, present: np.ndarray, outputs: np.ndarray) -> None:
        """Append a finished batch."""
        line = {
            "part": part, "batch": batch,
            "present": present.astype(int).tolist(), "outputs": outputs.tolist(),
        }  # fmt: skip
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self._done[part, batch] = outputs, present
