"""Low bits and model files tell nothing, unless a fault is planted."""

import numpy as np
import pytest

from dprepro.audit import AuditVerdict, audit, find_case, subjects
from dprepro.methods.dp_ebm.curator import DPEBMCurator
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.query import NoisyAnswer

CASES = [name for name, _ in subjects() if name.endswith(("/bits", "/file"))]
BITS = ["dp-ebm-sound/bits", "dpboost-sound/bits"]
"""Whether a double can be noise depends on the digits of the scale: these scales leave many out."""


def verdict(name, trials=60):
    return audit(find_case(name), trials, seed=1).verdict


def in_floating_point(monkeypatch):
    rng = np.random.default_rng(0)
    for kind, draw in (("gaussian", rng.normal), ("laplace", rng.laplace)):
        monkeypatch.setattr(
            NoiseSource,
            f"add_{kind}",
            lambda self, exact, scale, unit=1.0, draw=draw: (
                exact * unit + draw(0.0, scale, exact.shape)
            ),
        )


def hash_in_the_ledger(monkeypatch):
    start = DPEBMCurator.__init__

    def disclosing(self, rows, domain, loss, settings, ledger, *more):
        start(self, rows, domain, loss, settings, ledger, *more)
        text = f"table {hash(self._exact.open().targets.tobytes()):x}"
        ledger.assumed_public.append(text)

    monkeypatch.setattr(DPEBMCurator, "__init__", disclosing)
    monkeypatch.setattr("dprepro.privacy.private_rows.may_open", lambda _: True)


def no_noise_in_the_first_histogram(monkeypatch):
    noisy = DPEBMCurator.cell_counts

    def exact(self, query):
        release = noisy(self, query)
        if query.feature:
            return release
        return NoisyAnswer(self._exact.open().answer(query).numbers * 1.0, release.scale)

    monkeypatch.setattr(DPEBMCurator, "cell_counts", exact)
    monkeypatch.setattr("dprepro.privacy.private_rows.may_open", lambda _: True)


@pytest.mark.parametrize("name", ["dp-ebm-sound/bits", "dp-ebm-plus/bits"])
def test_neither_table_is_ruled_out_by_whole_counts_more_often_than_the_other(name):
    """Some whole numbers are no product of a double and the scale, whatever the rows are."""
    case = find_case(name)
    wrong = right = 0.0
    for present in (True, False):
        found = np.array([case.fit(present, seed).ruled_out for seed in range(40)])
        with_row, without = found[..., 0].sum(), found[..., 1].sum()
        wrong += without if present else with_row
        right += with_row if present else without
    assert right > 0
    assert abs(wrong - right) < 3 * np.sqrt(wrong + right)


def test_the_right_table_is_ruled_out_by_exact_leaves_as_well():
    """So that a double cannot be NumPy's noise says nothing."""
    case = find_case("dpboost-sound/bits")
    right = [case.fit(True, seed).ruled_out[0, 0] for seed in range(12)]
    assert 0 < np.sum(right) < 12


@pytest.mark.parametrize("name", BITS)
def test_floating_point_rules_out_the_wrong_table_and_never_the_right_one(name, monkeypatch):
    in_floating_point(monkeypatch)
    case = find_case(name)
    for present in (True, False):
        ruled_out = np.sum([case.fit(present, seed).ruled_out for seed in range(6)], axis=(0, 1))
        right, wrong = ruled_out if present else ruled_out[::-1]
        assert right == 0
        assert wrong > 0


def test_no_word_is_in_all_model_files_of_one_table_until_its_hash_is_in_the_ledger(monkeypatch):
    def of_their_table():
        case = find_case("dp-ebm-sound/file")
        fits = [(present, seed) for present in (True, False) for seed in range(6)]
        return [case.observe(case.fit(*fit))[0 if fit[0] else 1] for fit in fits]

    assert min(of_their_table()) == 0
    hash_in_the_ledger(monkeypatch)
    assert min(of_their_table()) >= 1


def test_an_exact_count_tells_though_its_unit_depends_on_noise(monkeypatch):
    def counts(words):
        return [word for word in words if word.startswith("/features/0/counts/")]

    sound = find_case("dp-ebm-sound/file").fit._telling
    assert counts(sound.present) == counts(sound.absent) == []
    no_noise_in_the_first_histogram(monkeypatch)
    telling = find_case("dp-ebm-sound/file").fit._telling
    assert counts(telling.present)
    assert counts(telling.absent)


@pytest.mark.audits
@pytest.mark.parametrize("name", sorted({*CASES}))
def test_bits_and_files_are_within_what_is_stated(name):
    assert not verdict(name, 200).is_refuted


@pytest.mark.audits
@pytest.mark.parametrize("name", BITS)
def test_low_bits_of_floating_point_exceed_it(name, monkeypatch):
    in_floating_point(monkeypatch)
    assert verdict(name, 1500) is AuditVerdict.EXCEEDED


@pytest.mark.audits
def test_a_hash_in_the_file_exceeds_it(monkeypatch):
    hash_in_the_ledger(monkeypatch)
    assert verdict("dp-ebm-sound/file") is AuditVerdict.EXCEEDED
