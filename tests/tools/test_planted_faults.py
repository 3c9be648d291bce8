"""The faults of `tools/planted_faults.py` fit the code, and its table says who notices.

The benchmark itself takes most of an hour: docs/evidence/audit-faults.md has its table.
"""

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dprepro.audit import subjects

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "evidence" / "audit-faults.md"


def load():
    path = ROOT / "tools" / "planted_faults.py"
    spec = importlib.util.spec_from_file_location("planted_faults", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


planted_faults = load()
FAULTS = planted_faults.load_faults()
SOME = FAULTS[0]


def test_every_fault_can_still_be_planted():
    for fault in FAULTS:
        assert fault.planted() != (ROOT / fault.module).read_text(encoding="utf-8")


def test_there_are_many_faults_in_every_package_with_private_methods():
    assert len(FAULTS) >= 60
    packages = {str(Path(fault.module).parent.relative_to("dprepro")) for fault in FAULTS}
    methods = {"dp_ebm", "dp_ebm_plus", "dpboost", "lazybb", "linear_regression", "locally_linear"}
    wanted = {"privacy", "privacy/sampling", "methods/s_bdt", *(f"methods/{m}" for m in methods)}
    assert wanted <= packages
    assert len({fault.module for fault in FAULTS}) >= 30


def test_the_tests_and_audits_of_a_fault_exist():
    known = {name for name, _ in subjects()}
    for fault in FAULTS:
        assert fault.tests
        assert all((ROOT / file).is_file() for file in fault.tests)
        for spec in fault.audit:
            subject, epsilon, trials = spec.split()
            assert subject.partition(":")[0] in known
            assert float(epsilon) > 0
            assert int(trials) >= 40


@pytest.mark.parametrize("old", ["no such text", "import"])
def test_a_fault_that_fits_no_more_is_refused(old):
    with pytest.raises(ValueError, match=r"times in .*, not once: adapt the fault"):
        replace(SOME, old=old).planted()


def test_a_fault_that_is_no_python_is_refused():
    with pytest.raises(ValueError, match="is no Python then"):
        replace(SOME, new=f"{SOME.old} (").planted()


@pytest.mark.parametrize("more", [{"nam": "x"}, {"name": "a"}], ids=["a key", "a name"])
def test_a_file_with_a_wrong_key_or_a_name_twice_is_refused(more, tmp_path):
    entry = {
        "name": "b",
        "what": "",
        "module": "",
        "old": "a",
        "new": "b",
        "seen": True,
        "tests": [],
    }
    (tmp_path / "faults.yaml").write_text(json.dumps([entry | {"name": "a"}, entry | more]))
    with pytest.raises(ValueError, match="wrong or repeated"):
        planted_faults.load_faults(tmp_path)


def test_a_copy_has_the_fault_until_it_is_mended(tmp_path):
    (tmp_path / "from").mkdir()
    module = tmp_path / "from" / "dprepro" / "module.py"
    module.parent.mkdir()
    module.write_text("x = 1\n")
    (tmp_path / "from" / "other").write_text("")
    fault = replace(SOME, module="dprepro/module.py", old="x = 1", new="x = 2")
    scratch = planted_faults.Scratch(str(tmp_path), tmp_path / "from")
    copied = scratch.folder / fault.module
    scratch.plant(fault)
    assert (copied.read_text(encoding="utf-8"), module.read_text(encoding="utf-8")) == (
        "x = 2\n",
        "x = 1\n",
    )
    assert (scratch.folder / "other").is_symlink()
    scratch.mend(fault)
    assert copied.read_text(encoding="utf-8") == "x = 1\n"


def test_the_journal_knows_a_fault_by_all_that_is_said_of_it():
    assert SOME.digest(quick=False) != SOME.digest(quick=True)
    assert SOME.digest(quick=False) != replace(SOME, new="pass").digest(quick=False)
    assert SOME.digest(quick=False) == replace(SOME).digest(quick=False)


def test_the_table_says_who_notices_and_what_nobody_does():
    faults = [replace(SOME, name=name, seen=name != "d") for name in "abcde"]
    journal = {
        "a": {"curator": "BudgetError", "tests": "t::x", "audit": ""},
        "b": {"curator": "", "tests": "t::x", "audit": "laplace: 3 > 1"},
        "c": {"curator": "", "tests": "broken: pytest ends with 4", "audit": ""},
        "d": {"curator": "", "tests": "t::x", "audit": ""},
    }
    text = planted_faults.table(faults, journal)
    rows = dict(line.split("|", 2)[1:] for line in text.splitlines() if line.count("|") == 6)
    assert [rows[f" {name} "].split("|", 1)[1] for name in "abcd"] == [
        " x | x |  |", "  | x | x |", "  |  |  |", "  | x | (no) |",
    ]  # fmt: skip
    assert "4 faults: 3 caught by tests, 1 refused by the curator. Of 2 that" in text
    assert "alone caught 1. Caught by nothing: c.\nNot tried yet: e." in text


def test_the_page_has_the_table_of_the_journal():
    journal = planted_faults.read_journal()
    tried = [fault for fault in FAULTS if fault.name in journal]
    assert len(tried) >= 60
    assert all(journal[fault.name]["digest"] == fault.digest(quick=False) for fault in tried)
    text = planted_faults.table(FAULTS, journal)
    assert text in PAGE.read_text(encoding="utf-8")
    assert "Caught by nothing: none." in text
