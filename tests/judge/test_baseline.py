"""Each verdict on made-up journals, its error rates, and what is refused."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from dprepro.experiment.record import Record
from dprepro.judge.baseline import compare_with_baseline
from dprepro.judge.verdicts import Verdict
from dprepro.results.folder import JournalPlan, read_results
from dprepro.results.margins import margins
from dprepro.results.revision import earlier_results
from dprepro.runtime.errors import DpreproError
from tests.report.journals import records, spread, task, write

RNG = np.random.default_rng(3)
OLD = np.round(RNG.normal(0.85, 0.02, size=10), 6)
"""AUROC on ten splits, whose spread both sides share."""


def compared(folder, now, before, **options):
    """Compare two journals, each given as its records."""
    write(folder / "now", "mine", now)
    write(folder / "before", "mine", before)
    sides = (read_results(folder / name) for name in ("now", "before"))
    widths = margins(options.pop("margin", None))
    return compare_with_baseline(*sides, "before", widths, **options)


def verdict(folder, differences, **options):
    """Return the verdict on one cell with these differences, a split each."""
    report = compared(folder, records(OLD + differences), records(OLD), **options)
    (cell,) = report.cells
    return cell.verdict


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        (np.zeros(10), Verdict.EQUIVALENT),
        (spread(0.001, 0.001, 10), Verdict.EQUIVALENT),
        (spread(0.03, 0.005, 10), Verdict.BETTER),
        (spread(-0.03, 0.005, 10), Verdict.WORSE),
        (spread(-0.004, 0.02, 10), Verdict.INCONCLUSIVE),
        (spread(0.0, 0.05, 10), Verdict.INCONCLUSIVE),  # wide: nothing is shown
        (np.full(10, 0.004), Verdict.EQUIVALENT),  # the same on every split, within .005
        (np.full(10, -0.006), Verdict.WORSE),
        (np.full(10, 0.006), Verdict.BETTER),
    ],
)
def test_each_verdict(tmp_path, differences, expected):
    assert verdict(tmp_path, np.asarray(differences)) is expected


def test_of_an_error_less_is_better(tmp_path):
    old, less = [3.0, 3.1, 3.2, 3.05], [2.0, 2.11, 2.19, 2.05]
    report = compared(tmp_path, records(less, metric="rmse"), records(old, metric="rmse"))
    assert [cell.verdict for cell in report.cells] == [Verdict.BETTER]
    # 2 % of the earlier mean.
    assert report.cells[0].margin == pytest.approx(0.02 * np.mean(old))


def test_a_margin_of_ones_own(tmp_path):
    differences = np.asarray(spread(-0.03, 0.005, 10))
    assert verdict(tmp_path, differences, margin=["auc=0.05"]) is Verdict.EQUIVALENT


def test_where_nothing_changed_but_noise_few_cells_are_worse(tmp_path):
    """Ten cells a run, 40 runs: a run with a false `worse` is at most one in twenty, or so."""
    false = 0
    for _ in range(40):
        sides = []
        shared = RNG.normal(0.85, 0.02, size=(10, 6))
        for _ in range(2):
            values = shared + RNG.normal(0, 0.004, size=shared.shape)
            cells = enumerate(values)
            sides.append([r for k, own in cells for r in records(own, label=f"m{k}")])
        false += bool(compared(tmp_path, *sides).worse)
    assert false <= 4  # the 95 % quantile of so many runs at 5 %


def test_a_loss_larger_than_noise_is_found(tmp_path):
    found = 0
    for _ in range(10):
        values = OLD - 0.03 + RNG.normal(0, 0.004, size=10)
        found += verdict(tmp_path, values - OLD) is Verdict.WORSE
    assert found >= 9


def test_a_cell_that_is_gone_fails_the_check_and_a_new_one_does_not(tmp_path):
    kept, other = records(OLD), records(OLD, epsilon=1.0)
    report = compared(tmp_path, kept, [*kept, *other])
    assert [cell.task.epsilon for cell in report.gone] == [1.0]
    assert not report.passes
    report = compared(tmp_path, [*kept, *other], kept)
    assert (report.new, report.passes) == (1, True)


def test_fits_that_fail_only_now_fail_the_check(tmp_path):
    failed = Record(task(split=9), "failed", message="ValueError: no")
    fewer = [*records(OLD[:9]), failed]
    report = compared(tmp_path, fewer, records(OLD))
    assert [splits for _, splits in report.failing] == [[9]]
    assert not report.passes
    for before in (fewer, records(OLD[:9])):  # it failed before, too, or was not run
        report = compared(tmp_path, fewer, before)
        assert (list(report.failing), report.passes) == ([], True)
    # As many as before, and another one.
    other = [Record(task(split=0), "skipped", message="no module"), *records(OLD)[1:]]
    report = compared(tmp_path, other, fewer)
    assert [splits for _, splits in report.failing] == [[0]]
    # What was not run yet is no failure.
    assert compared(tmp_path, records(OLD[:5]), records(OLD)).passes


def test_a_metric_that_is_gone_fails_the_check(tmp_path):
    both = [replace(r, metrics={**r.metrics, "accuracy": 0.8}) for r in records(OLD)]
    for side in ("now", "before"):
        write(tmp_path / side, "mine", both)
    plan = {"mine": JournalPlan(10, None, metric="auc")}.get
    before = read_results(tmp_path / "before", (), plan)
    write(tmp_path / "now", "mine", records([0.8] * 10, metric="accuracy"))
    report = compare_with_baseline(
        read_results(tmp_path / "now", (), plan), before, "before", margins()
    )
    assert ([cell.metric for cell in report.gone], report.passes) == (["auc"], False)


def test_versions_that_differ_are_named(tmp_path):
    for side, numpy in (("now", "2.0"), ("before", "1.26")):
        environment = {"libraries": {"numpy": numpy}, "python": "3.11.7"}
        write(tmp_path / side, "mine", records(OLD), environment)
    sides = (read_results(tmp_path / name) for name in ("now", "before"))
    report = compare_with_baseline(*sides, "before", margins())
    assert (report.versions, report.passes) == (("numpy 1.26 then, 2.0 now",), True)


def test_where_every_fit_fails_now_the_result_is_gone(tmp_path):
    failed = [Record(task(split=k), "failed", message="ValueError: no") for k in range(10)]
    report = compared(tmp_path, failed, records(OLD))
    assert len(report.gone) == len(report.failing) == 1


def test_other_splits_are_refused_by_name(tmp_path):
    with pytest.raises(DpreproError, match=r"other splits.*\nadult.*seed differs \(2 and 1\)"):
        compared(tmp_path, records(OLD, seed=2), records(OLD))
    with pytest.raises(DpreproError, match="the rows differ"):
        compared(tmp_path, records(OLD, data_fingerprint="other"), records(OLD))


def test_other_settings_are_named_and_compared(tmp_path):
    now = records(OLD, method_version=2, params={"rounds": 5, "bins": 8})
    report = compared(tmp_path, now, records(OLD, params={"rounds": 3}))
    assert list(report.cells[0].changed) == [
        "version of the method 1 before, 2 now",
        "bins not given before, 8 now",
        "rounds 3 before, 5 now",
    ]
    assert report.passes


def test_one_split_says_nothing(tmp_path):
    report = compared(tmp_path, records(OLD[:1]), records(OLD[:1]))
    assert "one split in common" in report.unpaired[0].reason
    assert report.passes


def test_nothing_in_common_is_an_error_that_names_both_sides(tmp_path):
    with pytest.raises(DpreproError, match=r"no cell is both.*adult, b, .*; there, none"):
        compared(tmp_path, records(OLD, label="b"), [])
    with pytest.raises(DpreproError, match="no cell is both"):
        compared(tmp_path, records(OLD), records(OLD), datasets=["nursery"])


class TestRevisions:
    @pytest.fixture
    def repository(self, tmp_path):
        def git(*arguments):
            who = ("-c", "user.email=a@example.org", "-c", "user.name=a")
            command = ["git", "-C", str(tmp_path), *who, *arguments]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            return done.stdout.strip()

        git("init", "--quiet", "--initial-branch", "main")
        # As on Windows: the journal must come out byte for byte all the same.
        (tmp_path / ".gitattributes").write_text("*.jsonl text eol=crlf export-ignore\n")
        folder = tmp_path / "deep" / "results"
        write(folder, "mine", records(OLD))
        (folder / "link.jsonl").symlink_to("/etc/passwd")
        (folder / "notes.txt").write_text("no journal")
        git("add", "-A")
        git("commit", "--quiet", "-m", "one")
        return git, folder

    def test_the_journals_of_a_revision_are_read_as_they_were(self, repository):
        git, folder = repository
        written = (folder / "mine.jsonl").read_bytes()
        write(folder, "mine", records(OLD - 0.1))
        for given in ("main", "HEAD", git("rev-parse", "--short", "HEAD")):
            with earlier_results(given, folder) as (there, name):
                assert [path.name for path in there.iterdir()] == ["mine.jsonl"]
                assert (there / "mine.jsonl").read_bytes() == written
                assert name.startswith(f"{given} (")
        assert not there.exists()

    @pytest.mark.parametrize(
        "given",
        ["--output=stolen", "-h", "HEAD:deep", "HEAD:deep/results/mine.jsonl", "nothing", "", "..",
         "main..HEAD", "HEAD^{tree}"],
    )  # fmt: skip
    def test_what_is_no_revision_is_refused(self, repository, given, monkeypatch):
        _, folder = repository
        monkeypatch.chdir(folder)
        with (
            pytest.raises(DpreproError, match=r"neither a folder nor|no journals"),
            earlier_results(given, folder) as (there, _),
        ):
            read_results(there)
        assert not (folder / "stolen").exists()

    def test_a_revision_without_the_folder_says_so(self, repository, tmp_path):
        _, folder = repository
        with (
            pytest.raises(DpreproError, match="has no journals in elsewhere"),
            earlier_results("HEAD", tmp_path / "elsewhere"),
        ):
            pass
        with (
            pytest.raises(DpreproError, match="the folder of the results itself"),
            earlier_results(str(folder), folder),
        ):
            pass

    def test_outside_of_a_repository_it_says_so(self, tmp_path):
        with (
            pytest.raises(DpreproError, match="is in no git repository"),
            earlier_results("main", tmp_path),
        ):
            pass

    def test_without_git_it_says_so(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", str(tmp_path))
        with (
            pytest.raises(DpreproError, match="git is not installed"),
            earlier_results("main", tmp_path),
        ):
            pass


def test_what_json_has_is_what_was_compared(tmp_path):
    from dprepro.report.baseline import json_of_baseline

    found = json_of_baseline(compared(tmp_path, records(OLD - 0.03), records(OLD)))
    assert found == json.loads(json.dumps(found, allow_nan=False))
    assert found["counts"] == {"equivalent": 0, "better": 0, "worse": 1, "inconclusive": 0}
    (cell,) = found["cells"]
    assert cell["before"] == pytest.approx(np.mean(OLD))
    assert cell["difference"] == pytest.approx(-0.03)
