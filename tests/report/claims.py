"""A claim of the first paper: not run, one that fails, and ones that need rounding or noise."""

from dataclasses import replace

from dprepro.judge.check import check_documents
from dprepro.judge.claim_kinds import Finding
from dprepro.judge.claims import Outcome
from dprepro.papers.document import load_documents
from dprepro.results.folder import Results
from dprepro.results.margins import margins

PAPER = load_documents()["dp-ebm-2021"]
REPORT = check_documents([PAPER], Results(()), [], margins())
NOT_RUN = next(found for found in REPORT.claims if found.claim.name == "best-in-all")
FAILED = replace(
    NOT_RUN,
    outcome=Outcome.FAILS,
    published=Finding(True, {}, "best in 35 of 35 settings"),
    measured=Finding(False, {}, "best in 34 of 35 settings; behind on pol at ε=0.5"),
)
ROUNDED = replace(
    NOT_RUN,
    outcome=Outcome.HOLDS,
    measured=Finding(True, {}, "largest loss 0.054 (adult)", is_rounded=True),
)
NOISY = replace(
    NOT_RUN,
    outcome=Outcome.HOLDS,
    measured=Finding(True, {}, "0.743", is_noisy=True, allowed={"ebm": (0.7367, None)}),
)
