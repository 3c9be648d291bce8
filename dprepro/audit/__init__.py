"""Empirical audits: what the outputs of a method prove about the epsilon it spends."""

from dprepro.audit.auditing import OneRunResult, audit, audit_in_one_run
from dprepro.audit.result import AuditResult, AuditVerdict
from dprepro.audit.subjects import (
    find_case,
    find_one_run_case,
    one_run_names,
    one_run_subjects,
    stands_for,
    subjects,
)

__all__ = [
    "AuditResult",
    "AuditVerdict",
    "OneRunResult",
    "audit",
    "audit_in_one_run",
    "find_case",
    "find_one_run_case",
    "one_run_names",
    "one_run_subjects",
    "stands_for",
    "subjects",
]
