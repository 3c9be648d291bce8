"""A task, the record that a finished task leaves, and the line of a journal that holds it.

A line is strict JSON whose last fields tie it to what stands before it:

    {"kind":"record", ... ,"format":3,"after":"5e6f7a8b","crc32":"0f1e2d3c"}

`crc32` is zlib's, of all bytes of the line before `,"crc32"`. Any flipped bit makes it wrong.
`after` is the `crc32` of the line before, which covers that line's `after` in turn. So a line that
is deleted, doubled or moved leaves one that does not follow. The first line that has an `after`
states the CRC of all bytes before it instead: 00000000 where it begins the journal.

Lines of 0.2.0 have no `after` (format 2), those of 0.1.0 none of the three fields (format 1). They
are read, and stay as they are.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from json import JSONDecoder, JSONEncoder
from typing import Any, Literal, get_args

from dprepro.data import SYNTHETIC_PREFIX, says_private
from dprepro.experiment.config import Evaluation
from dprepro.privacy.budget import ROW, PrivacyBudget
from dprepro.privacy.guarantee_status import is_unverified

Status = Literal["ok", "failed", "skipped"]

_TOKEN = "data_fingerprint and key: equal ones in two journals say that no row changed"
_REASONS = ("absent: why a metric cannot be had of these rows",)
_EXACT: Mapping[str, tuple[str, ...]] = {
    "ok": (
        "metrics: scores on test rows, and what the method says of its own fit",
        "seconds: how long it took",
        _TOKEN,
    ),
    "failed": ("status and message: that and how it failed", _TOKEN),
    "skipped": (_TOKEN,),
}


_STATUSES = get_args(Status)
_EVALUATIONS = get_args(Evaluation)
_NUMBER = (float, int)
_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(
        ("dataset", "method", "label", "domain", "data_fingerprint", "evaluation", "unit"), (str,)
    ),
    **dict.fromkeys(("split", "method_version", "rows_per_unit"), (int,)),
    **dict.fromkeys(("delta", "test_share"), _NUMBER),
    "params": (dict,),
    "epsilon": (*_NUMBER, type(None)),
    "seed": (int, type(None)),
    "tuned": (bool,),
}
_FIELDS = frozenset(
    ("kind", "key", "task", "status", "metrics", "seconds", "ledger", "message", "absent", "exact")
)
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_SPLIT = '"split":'
_MOST_KNOWN = 10_000
_known: dict[str, tuple[str, str]] = {}
"""By all fields of a task but the split, its canonical JSON before and after the split.

The tasks of a cell share it: making it anew for each would be a fifth of reading a journal.
"""


@dataclass(frozen=True)
class Task:
    """One method on one split of one dataset at one privacy level.

    `epsilon` is ``inf`` and `delta` 0.0 for non-private methods. `seed` is the config's seed
    (None: the operating system's entropy); the task's own seed derives from it. `evaluation` is
    how test rows are chosen (see `dprepro.experiment.splits`); `test_share` is then 1 / number of
    folds, or 0 for the donors' own test set, the same in every split. `tuned`: the config's
    parameters were chosen by `dprepro tune`, as its `tuned_on` says. `unit` is whose epsilon it is:
    "row", or the card's column; then at most `rows_per_unit` rows of each unit train.
    """

    dataset: str
    method: str
    label: str
    params: Mapping[str, Any]
    epsilon: float
    delta: float
    split: int
    seed: int | None
    domain: Literal["public", "observed"]
    test_share: float
    method_version: int
    data_fingerprint: str
    evaluation: Evaluation = "random"
    tuned: bool = False
    unit: str = ROW
    rows_per_unit: int = 1

    @property
    def budget(self) -> PrivacyBudget:
        """The stated epsilon and delta."""
        return PrivacyBudget(self.epsilon, self.delta)

    @cached_property
    def key(self) -> str:
        """A stable identifier of 16 hex digits: equal tasks, and only those, share it.

        It is kept: commands ask for the keys of all records of all journals several times.
        """
        before, after = self._around_split()
        return hashlib.sha256(f"{before}{self.split}{after}".encode()).hexdigest()[:16]

    @property
    def cell(self) -> str:
        """All fields but the split, as a string: tasks of one cell share it, and no others."""
        return "".join(self._around_split())

    def _around_split(self) -> tuple[str, str]:
        """Return the canonical JSON of `to_json` before and after the number of the split."""
        said = repr([vars(self)[name] for name in _BUT_THE_SPLIT])
        found = _known.get(said)
        if found is None:
            # Behind the split stand numbers and one string, whose quotes are escaped.
            text, _, rest = _canonical(self.to_json()).rpartition(_SPLIT)
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            found = _known[said] = f"{text}{_SPLIT}", rest.removeprefix(str(self.split))
        return found

    @property
    def is_synthetic(self) -> bool:
        """Whether it ran on a stand-in for data that nobody released."""
        return self.data_fingerprint.startswith(SYNTHETIC_PREFIX)

    @property
    def is_private(self) -> bool:
        """Whether it ran on private rows, the donors' own test rows included."""
        return says_private(self.data_fingerprint)

    def to_json(self) -> dict[str, Any]:
        """Return a dict that strict JSON can hold: an infinite epsilon becomes None."""
        values = dict(vars(self))  # `asdict` copies deeply, which costs most of reading a journal
        values.pop("key", None)  # no field: `key` is kept there
        values["params"] = dict(self.params)
        if self.evaluation == "random":
            del values["evaluation"]  # so that keys from before there was a choice stay valid
        if not self.tuned:
            del values["tuned"]  # the same
        if (self.unit, self.rows_per_unit) == (ROW, 1):
            del values["unit"], values["rows_per_unit"]  # the same
        values["epsilon"] = None if math.isinf(self.epsilon) else self.epsilon
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Task:
        """Read what `to_json` wrote.

        Raises KeyError, TypeError, ValueError if a field is missing, unknown, of another type, or
        beyond what a task can say.
        """
        for name, value in values.items():
            if type(value) not in _TYPES[name]:
                raise TypeError(f"{name} is {value!r}")
        epsilon = values["epsilon"]
        task = cls(**{**values, "epsilon": math.inf if epsilon is None else float(epsilon)})
        if not (
            task.epsilon > 0
            and 0 <= task.delta < 1
            and 0 <= task.test_share < 1
            and task.split >= 0
            and task.rows_per_unit >= 1
            and task.domain in ("public", "observed")
            and task.evaluation in _EVALUATIONS
        ):
            raise ValueError("a value of the task is beyond what tasks can say")
        return task


_BUT_THE_SPLIT = tuple(each.name for each in fields(Task) if each.name != "split")


@dataclass(frozen=True)
class Record:
    """A finished task.

    Attributes
    ----------
    task, status
        What was run, and how it ended.
    metrics
        By name: those of `dprepro.experiment.metrics.METRICS`, those that the config asks for, and
        what the estimator says of itself (its ``figures_``); empty unless ok. Records of earlier
        versions have fewer.
    absent
        By name of a metric that the config asks for and that cannot be had, the reason.
    seconds
        Wall time by phase (``fit``, ``predict``); the only part that differs between two runs.
    ledger
        `Ledger.summary()` of the fitted estimator; None for non-private methods.
    message
        The error (failed) or the reason (skipped), else empty.
    exact
        In words, what of it is an exact function of private rows, which no epsilon covers; empty
        for public data.
    """

    task: Task
    status: Status
    metrics: Mapping[str, float] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    ledger: Mapping[str, Any] | None = None
    message: str = ""
    absent: Mapping[str, str] = field(default_factory=dict)

    def lacks(self, metrics: Collection[str]) -> list[str]:
        """Return which of `metrics` a finished record says nothing of, not even why."""
        if self.status != "ok":
            return []
        return [name for name in metrics if name not in self.metrics and name not in self.absent]

    @property
    def is_unverified(self) -> bool:
        """Whether it finished at a privacy level, and nothing says what it spent."""
        return self.status == "ok" and is_unverified(self.task.epsilon, self.ledger)

    @property
    def exact(self) -> tuple[str, ...]:  # noqa: D102 - see the class
        if not self.task.is_private:
            return ()
        return (*_EXACT[self.status], *(_REASONS if self.absent else ()))

    def to_json(self) -> dict[str, Any]:
        """Return one journal line as a dict; ``exact`` is in it where there is something to say."""
        absent = {"absent": dict(self.absent)} if self.absent else {}
        named = {"exact": list(self.exact)} if self.exact else {}
        return {
            "kind": "record",
            "key": self.task.key,
            "task": self.task.to_json(),
            "status": self.status,
            "metrics": dict(self.metrics),
            "seconds": {k: round(v, 4) for k, v in self.seconds.items()},
            "ledger": self.ledger,
            "message": self.message,
            **absent,
            **named,
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Record:
        """Read what `to_json` wrote.

        Raises KeyError, TypeError, ValueError if a field is missing, unknown, of another type or
        value, or if the key is not the task's.
        """
        if unknown := line.keys() - _FIELDS:
            raise ValueError(f"unknown fields: {', '.join(sorted(unknown))}")
        record = cls(
            task=Task.from_json(line["task"]),
            status=line["status"],
            metrics=line["metrics"],
            seconds=line["seconds"],
            ledger=line["ledger"],
            message=line["message"],
            absent=line.get("absent", {}),
        )
        if record.status not in _STATUSES:
            raise ValueError(f"status is {record.status!r}")
        for figures in (record.metrics, record.seconds):
            for name, value in figures.items():
                if type(value) not in _NUMBER or not math.isfinite(value):
                    raise ValueError(f"{name} is {value!r}")
        if record.ledger is not None and type(record.ledger) is not dict:
            raise TypeError("ledger is no object")
        if type(record.message) is not str or type(record.absent) is not dict:
            raise TypeError("message is no text, or absent no object")
        if line["key"] != record.task.key:
            raise ValueError(f"its key is {line['key']!r}, and that of its task {record.task.key}")
        return record


FORMAT = 3
OF_THE_LINE = ("format", "after", "crc32")
"""Fields that say nothing of an experiment."""
NOT_NEXT = (
    "it is not what was written after the line before it: lines were deleted, added, moved or "
    "changed here"
)

_AFTER, _MARK, _TAIL = b',"format":%d,"after":"' % FORMAT, b',"crc32":"', b'"}'
_SEALED = len(_MARK) + 8 + len(_TAIL)
_CHAINED = len(_AFTER) + 8 + 1 + _SEALED
_STATED = slice(len(_AFTER) - _CHAINED, len(_AFTER) + 8 - _CHAINED)
_CRC = slice(-8 - len(_TAIL), -len(_TAIL))
_read = JSONDecoder().raw_decode
_write = JSONEncoder(allow_nan=False, separators=(",", ":")).encode


class DamagedLineError(ValueError):
    """A line is not as it was written."""


def written(fields: Mapping[str, Any], before: bytes | bytearray = b"") -> bytes:
    """Return a line of the current format, with its newline.

    Raises ValueError if a value is NaN or infinite, which strict JSON lacks.

    Parameters
    ----------
    before
        All that the journal holds: whole lines.
    """
    last = bytes(before[before.rfind(b"\n", 0, -1) + 1 : -1])
    link = last[_CRC] if is_chained(last) else b"%08x" % zlib.crc32(before)
    return _chained(_write(fields).encode()[:-1], link)


def chained_anew(lines: list[bytes]) -> bytes:
    """Return lines, without their newlines, each of which follows the one before it.

    Those before the first that is chained stay as they are, and so do the fields of all.
    """
    done = bytearray()
    link = b""
    for line in lines:
        if not link and not is_chained(line):
            done += line + b"\n"
            continue
        made = _chained(_bare(line), link or b"%08x" % zlib.crc32(done))
        link = made[:-1][_CRC]
        done += made
    return bytes(done)


def tie_of(line: bytes) -> tuple[int, str]:
    """Return the format of a line, without its newline, and what it states of the line before."""
    if is_chained(line):
        return FORMAT, line[_STATED].decode()
    return (2 if _is_sealed(line) else 1), ""


def tied(fields: Mapping[str, Any], version: int, after: str) -> bytes:
    """Return a line as one of any format, with its newline; see `tie_of`."""
    line = _write(fields).encode()
    if version == FORMAT:
        return _chained(line[:-1], after.encode())
    return line + b"\n" if version == 1 else _sealed(b'%b,"format":%d' % (line[:-1], version))


def _chained(head: bytes, link: bytes) -> bytes:
    return _sealed(b'%b%b%b"' % (head, _AFTER, link))


def _sealed(head: bytes) -> bytes:
    return b"%b%b%08x%b\n" % (head, _MARK, zlib.crc32(head), _TAIL)


def _bare(line: bytes) -> bytes:
    """Return a line up to the fields that tie it, or to its last brace."""
    if is_chained(line):
        return line[:-_CHAINED]
    return line[: -_SEALED - len(b',"format":2')] if _is_sealed(line) else line.rstrip()[:-1]


def _is_sealed(line: bytes) -> bool:
    return line[-_SEALED : len(_MARK) - _SEALED] == _MARK


def is_chained(line: bytes) -> bool:
    """Whether a line, without its newline, states what stands before it."""
    return line[-_CHAINED : len(_AFTER) - _CHAINED] == _AFTER and _is_sealed(line)


class Chain:
    """Tells of one line after the other whether it follows those before it.

    Attributes
    ----------
    is_begun
        Whether a line was chained: all lines before it are covered, and all later ones have to be.
    """

    def __init__(self) -> None:
        self.is_begun = self._is_lost = False
        self._link = b""
        self._crc = 0

    def follows(self, line: bytes) -> bool:
        """Take in the next line, without its newline."""
        is_lost, self._is_lost = self._is_lost, False
        if not is_chained(line):
            self._crc = zlib.crc32(b"\n", zlib.crc32(line, self._crc))
            return is_lost or not self.is_begun
        expected = self._link if self.is_begun else b"%08x" % self._crc
        self.is_begun, self._link = True, line[_CRC]
        return is_lost or line[_STATED] == expected

    def lose(self) -> None:
        """Let any line follow the one taken in last, which is damaged, with what it states."""
        self._is_lost = True


def parsed(line: bytes) -> dict[str, Any]:
    """Return the fields of a line without its newline; `OF_THE_LINE` are taken out.

    Raises DamagedLineError if the line does not agree with its CRC, or has lost it. Raises
    ValueError, RecursionError if the line is no JSON object, or its format is not known.
    """
    has_crc = _is_sealed(line)
    if has_crc and line[_CRC] != b"%08x" % zlib.crc32(line[:-_SEALED]):
        raise DamagedLineError("it does not agree with its checksum")
    text = line.decode()
    fields, end = _read(text)
    if text[end:].strip() or type(fields) is not dict:
        raise ValueError("it is no JSON object")
    if not has_crc and not fields.keys().isdisjoint(OF_THE_LINE):
        raise DamagedLineError("its checksum is damaged")
    if has_crc:
        version = fields.pop("format", None)
        if version not in (2, FORMAT):
            raise ValueError(f"its format is {version}, and this dprepro reads 1 to {FORMAT}")
        if is_chained(line) != (version == FORMAT):
            raise ValueError(f"it does not end as lines of format {version} do")
        fields.pop("after", None)
        del fields["crc32"]
    return fields
