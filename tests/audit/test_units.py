"""All noisy answers of DP-EBM+ about a patient with several rows keep to the patient's epsilon."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dprepro.audit import AuditVerdict, audit
from dprepro.audit.case import AuditSetting, Case
from dprepro.audit.transcript import ExactlyOverheard
from dprepro.methods import registry
from dprepro.methods.dp_ebm_plus import audit as cases
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.gdp import mu_of

STATED = PrivacyBudget(8.0, 1e-6)
ROWS = 3
TASKS = pytest.mark.parametrize("task", ["binary", "regression"])


def patient(task, budget, trials=2):
    """Return the case of `all_answers`, whose canary is a patient with equal rows.

    The fits are calibrated for a row with this budget, and state the guarantee of the patient.
    """
    setting = AuditSetting("dp-ebm-plus", task, *budget)
    pair = cases._pair(setting)
    frame, y = pair.present
    more = [*range(len(y)), *[len(y) - 1] * (ROWS - 1)]
    present = (pd.DataFrame(frame.iloc[more].reset_index(drop=True)), y[more])
    overheard = ExactlyOverheard(replace(pair, present=present), cases._knows, cases._entry_of)

    def fit(is_present, seed):
        outcome = overheard(is_present, seed)
        outcome.ledger_.state_per_unit("patient", ROWS, STATED)
        return outcome

    return Case("dp-ebm-plus/patient", task, "a patient", fit, cases._evidence, trials)


@TASKS
def test_the_rows_of_a_patient_come_to_all_of_mu_and_no_more(task):
    of_row = registry.get("dp-ebm-plus").row_budget(STATED, "patient", ROWS)
    outcomes = [patient(task, of_row).fit(seed % 2 == 0, seed) for seed in range(6)]
    found = np.sqrt([outcome.mu_squared for outcome in outcomes])
    assert (found <= mu_of(*STATED) * (1 + 1e-5)).all()
    # Where one label is rare rows are few: then a patient's code may be shorter than the bound.
    # A target at the end of its range is half of it from the middle, and where the sizes of
    # residuals are lost in noise the intercept is hardly clipped: of its 5/17 of the epochs' 0.96
    # of mu^2 a patient has 0.4 or more on average.
    of_numbers = math.sqrt(1 - 5 / 17 * 0.96 * 0.6)
    assert found.mean() > (0.95 if task == "binary" else of_numbers) * mu_of(*STATED)
    assert all(outcome.ledger_.within_budget for outcome in outcomes)


@TASKS
def test_noise_for_a_row_alone_would_show_a_patient_and_the_ledger_says_so(task):
    outcome = patient(task, STATED).fit(True, 0)
    # Less than 3: some answers about targets are clipped further out than a patient's are.
    assert np.sqrt(outcome.mu_squared) > (2.9 if task == "binary" else 2.8) * mu_of(*STATED)
    assert not outcome.ledger_.within_budget


def test_an_audit_tells_a_patient_that_is_protected_from_one_that_is_not():
    of_row = registry.get("dp-ebm-plus").row_budget(STATED, "patient", ROWS)
    kept, broken = (audit(patient("binary", budget), 120, seed=1) for budget in (of_row, STATED))
    assert kept.verdict is not AuditVerdict.EXCEEDED
    assert kept.lower_bound <= STATED.epsilon
    assert broken.verdict is AuditVerdict.EXCEEDED
