"""Ledgers as tables and as JSON, and saved models as tables: their features, bins and scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Context
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.text import Text

from dprepro.privacy.budget import ROW, unit_in_words
from dprepro.privacy.guarantee_status import AuthorsWord, GuaranteeStatus
from dprepro.privacy.sampling.sampler import SAMPLING_DISTANCE
from dprepro.privacy.sensitivity import REPLACE_ONE
from dprepro.privacy.subsampling import moments_epsilon
from dprepro.results.margins import level as heading_of
from dprepro.runtime.terminal import BareTable, Renderable, below, counted, indented
from dprepro.runtime.text import visible

if TYPE_CHECKING:
    from dprepro.additive.shapes import Shape
    from dprepro.privacy.ledger import Ledger
    from dprepro.release.planning import PlannedLedger

Words = Callable[[str, str], AuthorsWord | None]
"""What audits say of a method and its code."""

_OF_CODE = 12
"""Digits of a SHA-256 that are shown."""
_AFTER_AUDITS = {
    AuthorsWord.NOT_AUDITED: "it is not audited",
    AuthorsWord.AUDITED: "an audit of this code found no violation, which is not a proof",
    AuthorsWord.REFUTED: "an audit of this code refutes it",
}
_TOO_LARGE = "epsilon too large for the samplers' distance"


def _no_words(method: str, code: str) -> AuthorsWord | None:
    return None


def ledger_json(planned: PlannedLedger) -> dict[str, Any]:
    """Return one ledger in full, JSON-able; without one, that it is unverified, or the error."""
    task, ledger = planned.task, planned.ledger
    place = {"dataset": task.dataset, "method": task.label, "domain": task.domain}
    if ledger is None:
        why = {"error": planned.error} if planned.error else {"unverified": True}
        return {**place, **why, "epsilon": task.epsilon, "delta": task.delta}
    return {**place, **ledger_values(ledger)}


def ledger_values(ledger: Ledger) -> dict[str, Any]:
    """Return a ledger in full, JSON-able."""
    return {
        **ledger.summary(),
        "moments_epsilon": _by_moments(ledger),
        "assumed_public": list(ledger.assumed_public),
        "entries": [
            {
                "mechanism": entry.mechanism,
                "releases": entry.releases,
                "sensitivity": entry.sensitivity,
                "norm": entry.norm,
                "scale": entry.scale,
                "uses": entry.uses,
                "sampling": entry.sampling,
                "budget": list(entry.budget),
            }
            for entry in ledger.entries
        ],
    }


def ledger_overview(ledgers: Sequence[PlannedLedger], words: Words = _no_words) -> Renderable:
    """Return the spent epsilon of each method and level, and why a guarantee does not hold.

    `words` says what audits say of a method and the code of its ledger; see `AuthorsWord`.
    """
    levels = sorted({planned.task.epsilon for planned in ledgers})
    title = "Spent epsilon, at the stated delta"
    headings = [heading_of(level) for level in levels]
    table = BareTable(["method", "neighbours"], headings, title, is_flush=True)
    reasons: list[str] = []
    for label in dict.fromkeys(p.task.label for p in ledgers):
        own = [p for p in ledgers if p.task.label == label]
        found = {p.task.epsilon: p.ledger for p in own if p.ledger}
        missing = {p.task.epsilon: p for p in own if not p.ledger}
        reasons += dict.fromkeys(f"{label}: {p.why_missing}" for p in missing.values())
        if missing:
            table.add_row(label, "?", *(_state(missing.get(level)) for level in levels))
        if not found:
            continue
        some = next(iter(found.values()))
        spent = {level: ledger.spent_epsilon() for level, ledger in found.items()}
        table.add_row(label, _neighbours(some), *(_at(spent, level) for level in levels))
        if some.unit != ROW:
            spent = {level: ledger.spent_epsilon_of_row() for level, ledger in found.items()}
            of_row = f"{some.adjacency}, per {ROW}"
            table.add_row("", of_row, *(_at(spent, level) for level in levels))
        if some.adjacency != REPLACE_ONE:
            spent = {level: ledger.spent_epsilon(REPLACE_ONE) for level, ledger in found.items()}
            neighbours = _neighbours(some, REPLACE_ONE)
            table.add_row("", neighbours, *(_at(spent, level) for level in levels))
        broken = next((ledger for ledger in found.values() if not ledger.holds), None)
        said = _promise(broken or some, words(own[0].task.method, some.code))
        reasons.append(f"{label}: the stated guarantee {said}")
    return below(table, "", *reasons)


def _neighbours(ledger: Ledger, adjacency: str | None = None) -> str:
    asked = adjacency or ledger.adjacency.value
    return f"{asked},{_per_unit(ledger)}" if ledger.unit != ROW else asked


def _per_unit(ledger: Ledger) -> str:
    if ledger.unit == ROW:
        return ""
    return f" per {unit_in_words(ledger.unit, ledger.rows_per_unit)}"


def _state(missing: PlannedLedger | None) -> str:
    if missing is None:
        return ""
    return "failed" if missing.error else str(GuaranteeStatus.UNVERIFIED)


def _at(spent: Mapping[float, float], level: float) -> str:
    return _number(spent[level]) if level in spent else ""


def detail(planned: PlannedLedger, words: Words = _no_words) -> Renderable:
    """Return one planned ledger in full; `words` is that of `ledger_overview`."""
    task = planned.task
    place = f" on {task.dataset}"
    if planned.ledger is None:
        return below(_headed(task.label, f"{place}: {planned.why_missing}\n"))
    word = words(task.method, planned.ledger.code)
    return ledger_in_full(planned.ledger, task.label, place, word)


def _headed(of: str, rest: str) -> Text:
    return Text.assemble((visible(of), "bold"), visible(rest))


def ledger_in_full(
    ledger: Ledger, of: str, place: str = "", word: AuthorsWord | None = None
) -> Renderable:
    """Return one ledger in full: answers, assumptions, uncovered reads, gaps, and the verdict.

    `of` says whose ledger it is, and `place`, which follows it, of which data or file. `word` is
    what audits say of its code if it is of a method of one's own, as far as is known.
    """
    promise = f"{ledger.budget}{_per_unit(ledger)}, {ledger.adjacency} neighbours"
    heads = answer_heads(ledger)
    table = BareTable(heads[:2], heads[2:], wraps=True, is_flush=True)
    for row in answers(ledger):
        table.add_row(*row)
    parts: list[Renderable] = [_headed(of, f"{place}: {promise}"), indented(table)]
    if ledger.unit != ROW:
        parts.append("  Sensitivity, and what an answer spends by itself: of one row")
    for heading, lines in said_beside(ledger):
        parts.append(f"  {heading}: " + ("; ".join(lines) if lines else "none"))
    if ledger.is_sampled_exactly:
        parts.append(f"  Samplers: {_sampling(ledger)}")
    parts.append(f"  {spending(ledger)}")
    by_moments = _by_moments(ledger)
    if by_moments is not None:
        parts.append(f"  Spent epsilon, by the moments accountant: {_number(by_moments)}")
    parts.append(f"  The stated guarantee {_promise(ledger, word)}\n")
    return below(*parts)


def _promise(ledger: Ledger, word: AuthorsWord | None) -> str:
    """Return whether and why not a guarantee holds, and whose word that is."""
    holds = (
        str(GuaranteeStatus.HOLDS)
        if ledger.holds
        else f"{GuaranteeStatus.FAILS}: {_why_not(ledger)}"
    )
    if not ledger.code:
        return holds
    found = "" if word is None else f"; {_AFTER_AUDITS[word]}"
    return (
        f"{holds}{', says its author' * ledger.holds}. The method is one's own (code "
        f"{ledger.code[:_OF_CODE]}): its ledger is its author's word, and nobody has checked it"
        f"{found}"
    )


def said_beside(ledger: Ledger) -> list[tuple[str, list[str]]]:
    """Return what a ledger says beside its answers: headings, each with its lines."""
    return [
        ("Taken as public", ledger.assumed_public),
        ("Read, but not covered by epsilon", ledger.unaccounted),
        ("Gaps in the proof", ledger.gaps),
        ("Floating point, where real arithmetic is taken as given", ledger.floating_point),
        ("Edits after the fit, which cost no budget", ledger.post_processing),
    ]


def spending(ledger: Ledger) -> str:
    """Return in a line what one ledger spends of what it states."""
    return (
        f"Spent epsilon, by dp_accounting: {_number(ledger.spent_epsilon())} of the stated "
        f"{ledger.epsilon:g}{_per_unit(ledger)}{_of_row(ledger)}; under replace-one "
        f"{_number(ledger.spent_epsilon(REPLACE_ONE))}"
    )


def verdict(ledger: Ledger) -> str:
    """Return in a line what one ledger promises, and whether and why not that holds."""
    whose = f"{_per_unit(ledger)}{_of_row(ledger)}"
    promise = f"{ledger.budget}{whose}, {ledger.adjacency} neighbours"
    whose_word = ", its author's word," if ledger.code else ""
    says = f"the ledger{whose_word} says that this guarantee"
    if ledger.holds:
        given = ", in real arithmetic (it lists floating point)" if ledger.floating_point else ""
        return f"{promise}: {says} {GuaranteeStatus.HOLDS}{given}"
    reasons = [*ledger.unaccounted, *ledger.gaps]
    if ledger.is_empty:
        reasons.append("it names no answer")
    if not ledger.samplers_suffice:
        reasons.append(_TOO_LARGE)
    if not ledger.within_budget:
        reasons.append(f"it spends epsilon {_number(ledger.spent_epsilon())}")
    return f"{promise}: {says} {GuaranteeStatus.FAILS}: {'; '.join(reasons)}"


def _of_row(ledger: Ledger) -> str:
    if ledger.unit == ROW:
        return ""
    return f" (per row: epsilon {_number(ledger.spent_epsilon_of_row())})"


def _sampling(ledger: Ledger) -> str:
    distance = f"2^{math.log2(SAMPLING_DISTANCE):g}"
    added = float(Context(prec=1, rounding=ROUND_CEILING).create_decimal(ledger.sampling_delta))
    return (
        f"exact up to a distance of {distance} in total variation, which adds at most {added:g} to "
        "delta"
    )


def _by_moments(ledger: Ledger) -> float | None:
    """Return what the moments accountant states; None unless there is one answer, on samples."""
    if len(ledger.entries) != 1 or ledger.entries[0].sampling == 1:
        return None
    (entry,) = ledger.entries
    return moments_epsilon(entry.noise_multiplier, entry.sampling, entry.uses, ledger.delta)


def answer_heads(ledger: Ledger) -> list[str]:
    """Return the headings of `answers`."""
    sampled = ["sampled with"] if _is_sampled(ledger) else []
    return ["answer", "noise", "sensitivity", "scale", "uses", *sampled, "by itself"]


def answers(ledger: Ledger) -> list[list[str]]:
    """Return a row for each noisy answer of a ledger."""
    sampled = _is_sampled(ledger)
    return [
        [
            entry.releases,
            entry.mechanism,
            f"{entry.sensitivity:.4g} ({entry.norm})",
            f"{entry.scale:.5g}" if entry.scale else "-",
            f"{entry.uses:,}",
            *([f"{entry.sampling:.4g}"] if sampled else []),
            f"({entry.budget.epsilon:.4g}, {entry.budget.delta:.2g})",
        ]
        for entry in ledger.entries
    ]


def _is_sampled(ledger: Ledger) -> bool:
    return any(entry.sampling < 1 for entry in ledger.entries)


def _why_not(ledger: Ledger) -> str:
    reasons = []
    if ledger.unaccounted:
        reasons.append(f"{counted(len(ledger.unaccounted), 'read')} not covered by epsilon")
    if ledger.gaps:
        reasons.append(counted(len(ledger.gaps), "gap"))
    if ledger.is_empty:
        reasons.append("no answer named")
    if not ledger.samplers_suffice:
        reasons.append(_TOO_LARGE)
    if not ledger.within_budget:
        reasons.append("overspent")
    return ", ".join(reasons)


def _number(epsilon: float) -> str:
    return f"{epsilon:.4g}" if math.isfinite(epsilon) else "inf"


def model_overview(
    shapes: Sequence[Shape], title: str, intercept: float | np.ndarray, edits: Iterable[str]
) -> Renderable:
    """Return a table of the features, the intercept, and the edits in their order.

    Of several classes lowest and highest are those of all, and the intercepts are float64 (S,).
    """
    heads = ("bins", "lowest", "highest", "noise (median)", "edited")
    table = BareTable(["feature"], heads, title)
    for shape in shapes:
        table.add_row(
            shape.name,
            str(shape.counts.size),
            f"{shape.values.min():.4g}",
            f"{shape.values.max():.4g}",
            "" if shape.noise is None else f"{np.median(shape.noise):.3g}",
            "yes" if shape.is_edited else "",
        )
    lines = [f"  {number}. {edit}" for number, edit in enumerate(edits, start=1)]
    said = (
        "Intercepts: " + ", ".join(map("{} {:.4g}".format, shapes[0].classes, intercept))
        if isinstance(intercept, np.ndarray)
        else f"Intercept: {intercept:.4g}"
    )
    return below(table, said, "Edits:" if lines else "Edits: none", *lines)


def bins(shape: Shape) -> Renderable:
    """Return a table of the bins of one feature: value, released value, noise, rows.

    Of several classes a line for each bin and class.
    """
    if shape.classes:
        return _bins_of_classes(shape)
    table = BareTable(["bin"], ["value", "released", "noise (sd)", "rows"], shape.name)
    for b, label in enumerate(shape.labels):
        moved = shape.values[b] != shape.released[b]
        table.add_row(
            label,
            f"{shape.values[b]:.4g}",
            f"{shape.released[b]:.4g}" if moved else "",
            "" if shape.noise is None else f"{shape.noise[b]:.3g}",
            f"{shape.counts[b]:.0f}",
        )
    return table


def _bins_of_classes(shape: Shape) -> Renderable:
    table = BareTable(["bin", "class"], ["value", "noise (sd)", "rows of the bin"], shape.name)
    for b, s in np.ndindex(shape.values.shape):
        table.add_row(
            "" if s else shape.labels[b],
            shape.classes[s],
            f"{shape.values[b, s]:.4g}",
            "" if shape.noise is None else f"{shape.noise[b, s]:.3g}",
            "" if s else f"{shape.counts[b]:.0f}",
        )
    return table


def scores(found: Mapping[str, Mapping[str, float]]) -> Renderable:
    """Return a table of metrics, a row for each model."""
    names = list(next(iter(found.values())))
    table = BareTable([""], names)
    for title, metrics in found.items():
        table.add_row(title, *(f"{metrics[name]:.5g}" for name in names))
    return table
