"""Finished runs on disk."""

import numpy as np
import pytest

from dprepro.audit.trials import Checkpoint
from dprepro.runtime.errors import DpreproError

FACTS = {"subject": "gaussian", "trials": 100}
PRESENT, OUTPUTS = np.array([True, False]), np.array([[0.1, 1e-300], [np.pi, -1e17]])


def filled(path):
    kept = Checkpoint(path, FACTS)
    kept.keep("held-out", 3, PRESENT, OUTPUTS)
    return path


def test_batches_come_back_to_the_last_bit(tmp_path):
    again = Checkpoint(filled(tmp_path / "new" / "a.jsonl"), FACTS)
    outputs, present = again.find("held-out", 3)
    np.testing.assert_array_equal(outputs, OUTPUTS)
    np.testing.assert_array_equal(present, PRESENT)
    assert again.find("held-out", 2) is None
    assert again.find("training", 3) is None


@pytest.mark.parametrize("cut", [1, 20])
def test_a_line_that_a_kill_cut_off_is_dropped_and_written_anew(tmp_path, cut):
    path = filled(tmp_path / "a.jsonl")
    Checkpoint(path, FACTS).keep("held-out", 4, PRESENT, OUTPUTS)
    path.write_bytes(path.read_bytes()[:-cut])
    again = Checkpoint(path, FACTS)
    assert again.find("held-out", 3) is not None
    assert again.find("held-out", 4) is None
    again.keep("held-out", 4, PRESENT, OUTPUTS)
    assert Checkpoint(path, FACTS).find("held-out", 4) is not None


def test_runs_of_another_audit_are_refused(tmp_path):
    path = filled(tmp_path / "a.jsonl")
    with pytest.raises(DpreproError, match="with other options, or of another version: repeat"):
        Checkpoint(path, FACTS | {"trials": 200})
