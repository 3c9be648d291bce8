"""The statement of a release for readers: its parts in words, as Markdown and as HTML.

Both pages show the same sections, one after another; the first of them is for everybody. What they
say is plain text: the templates escape it and lay it out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dprepro.privacy.ledger import ROW
from dprepro.privacy.sensitivity import REPLACE_ONE, Adjacency
from dprepro.release.evidence_words import HEADS as AUDIT_HEADS
from dprepro.release.evidence_words import (
    anonymity_in_words,
    attack_in_words,
    audit_rows,
    audits_in_words,
)
from dprepro.release.guarantee_words import (
    factor,
    is_bounded,
    mechanism_in_words,
    neighbours_in_words,
    number,
    odds_in_words,
    public_of_title,
    releases_in_words,
    unit_in_words,
)
from dprepro.release.joint_budget import PARALLEL
from dprepro.release.measured import heads, in_short, in_words, table
from dprepro.release.statement import ACCOUNTANT, PublicFeature, Statement
from dprepro.runtime.text import markdown

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_PACKAGE = "dprepro.release"
_UNSAID = "the card does not say"
_HYPHENED = re.compile(r"((?<!\S)[^\s-]{1,12}(?:-[^\s-]{1,12})(?!\S))")


@dataclass(frozen=True)
class Text:
    """A paragraph. `lead` stands before it in bold; one with `warns` is set apart."""

    text: str
    lead: str = ""
    warns: bool = False
    kind: Literal["text"] = "text"


@dataclass(frozen=True)
class Items:
    """A list; each item has a lead in bold, which may be empty, and a text."""

    items: tuple[tuple[str, str], ...]
    kind: Literal["items"] = "items"


@dataclass(frozen=True)
class Table:
    """A table called `label`. The first cell of a row is its head; `heads` may be empty.

    The columns below the heads in `numbers` are set to the right.
    """

    label: str
    rows: tuple[tuple[str, ...], ...]
    heads: tuple[str, ...] = ()
    numbers: frozenset[str] = frozenset()
    kind: Literal["table"] = "table"


@dataclass(frozen=True)
class Section:
    """A part of the page; a heading and what stands below it."""

    heading: str
    blocks: tuple[Text | Items | Table, ...]


def sections(statement: Statement) -> list[Section]:
    """Return the parts of the page. The first, without a heading, is what everybody should read."""
    parts = [
        _first_page(statement),
        _all_releases(statement),
        _readings(statement),
        _mechanisms(statement),
        _measured(statement),
        _functions(statement),
        _public(statement),
        _not_covered(statement),
        _points(statement),
        _audits(statement),
        _attack(statement),
        _anonymity(statement),
        _file(statement),
    ]
    return [part for part in parts if part.blocks]


def as_markdown(statement: Statement) -> str:
    """Return the statement as a page of Markdown. Names and notes of a card are escaped."""
    return _rendered(statement, "statement.md").rstrip("\n") + "\n"


def as_html(statement: Statement) -> str:
    """Return the statement as one HTML file, with no script and no address of anything outside."""
    return _rendered(statement, "statement.html")


def environment(is_html: bool) -> Environment:
    """Return what renders the templates of a release; in Markdown, all texts are escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # not all that states writes

    environment = Environment(
        loader=PackageLoader(_PACKAGE, "template"),
        autoescape=is_html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=None if is_html else _shown,
    )
    environment.filters |= {"factor": factor, "g": _short, "whole": _whole}
    return environment


def _rendered(statement: Statement, name: str) -> str:
    page = environment(name.endswith(".html")).get_template(name)
    of = statement.publisher
    return page.render(title=of.title or of.dataset, sections=sections(statement))


def _first_page(statement: Statement) -> Section:
    of, privacy, data = statement.publisher, statement.privacy, statement.data
    told, whose = of.deployment, _whose(statement)
    who = "" if told is None else f" by {_listed(told.curators)}"
    used = "all rows"
    if privacy.unit != ROW:
        most = privacy.rows_per_unit
        used = f"at most {most} row{'s' if most > 1 else ''} of each {whose}"
    if statement.measured is not None:
        used += f", but for those of about {statement.measured.held_out:.0%}, chosen by chance,"
    blocks: list[Text | Items | Table] = [
        Text(
            f"The file {statement.model.file}, a model that predicts "
            f"{data.target or 'the target'}{', a count,' if data.link else ''} from "
            f"{len(data.features)} features, was released{who} on {of.date}. It was fitted to "
            f'{used} in the table "{of.title or of.dataset}".',
            "What was released.",
        )
    ]
    if privacy.is_authors_word:
        blocks.append(
            Text(
                "The method is the publisher's own. What this page says of what it releases, and "
                "so this guarantee, is the word of the method's author, by its ledger.",
                warns=True,
            )
        )
    if privacy.holds:
        blocks.append(
            Text(
                f"The release shows only so much about whether any one {whose} was in the "
                "table, and about what the table says of them, as epsilon and delta below allow. "
                "This limit holds even against somebody who knows all other rows."
                + _of_size(statement),
                "What it guarantees, and about whom.",
            )
        )
    else:
        blocks.append(
            Text(
                "The guarantee that is stated below does not hold. The section on what is not "
                "covered says why.",
                warns=True,
            )
        )
    blocks += [
        Text(
            f"It is no promise that nothing can be learned about one {whose}: what the model "
            "shows of people in general can be guessed of everybody, in the table or not. It "
            "covers no other release of these rows, and it does not say that the model is right "
            "or fair.",
            "What it does not guarantee.",
        ),
        Table("The guarantee", tuple(_guarantee(statement))),
    ]
    if privacy.holds:
        said = odds_in_words(
            privacy.epsilon, privacy.delta, Adjacency(privacy.relation), privacy.unit, of.unit_title
        )
        blocks += [Text(said[0], "What that means."), *map(Text, said[1:])]
    blocks.append(Table("Who is responsible", tuple(_responsible(statement))))
    return Section("", tuple(blocks))


def _of_size(statement: Statement) -> str:
    """Return what the guarantee leaves out if the number of rows is public."""
    if statement.publisher.rows is None and not is_bounded(Adjacency(statement.privacy.relation)):
        return ""
    return (
        " It does not cover the number of rows in the table, which is public: somebody who knows "
        "all other rows could count them, and so tell whether rows are missing."
    )


def _guarantee(statement: Statement) -> list[tuple[str, str]]:
    """Return the one epsilon that is stated, and what it is about."""
    of, privacy = statement.publisher, statement.privacy
    relation = Adjacency(privacy.relation)
    rows = (
        "all; the card does not state how many"
        if of.rows is None
        else f"{of.rows:,} in the table, a number that is public"
    )
    verdict = "holds" if privacy.holds else "does not hold"
    if privacy.is_authors_word:
        verdict += ", by its author's word"
    return [
        ("Epsilon", _short(privacy.epsilon)),
        ("Delta", _short(privacy.delta)),
        ("Unit of privacy", unit_in_words(privacy.unit, privacy.rows_per_unit, of.unit_title)),
        (
            "Neighbours",
            f"two tables, {neighbours_in_words(relation, privacy.unit, of.unit_title)}: "
            f"{privacy.relation}",
        ),
        ("Rows", rows),
        ("Method", f"{of.method}, version {of.method_version}"),
        (
            "By its ledger",
            f"the guarantee {verdict}: {ACCOUNTANT} adds up all noisy answers in the file",
        ),
    ]


def _responsible(statement: Statement) -> list[tuple[str, str]]:
    """Return who, why, what for, where and until when, as far as the card says it."""
    told = statement.publisher.deployment
    said = {} if told is None else told.model_dump()
    withdraws = f"If one {_whose(statement)} withdraws"
    return [
        *([("What it is", told.description)] if told is not None and told.description else []),
        ("Who releases it", _listed(said.get("curators") or [_UNSAID])),
        ("Whom to ask", said.get("contact") or _UNSAID),
        ("What for", said.get("intended_use") or _UNSAID),
        ("Why with this guarantee", said.get("justification") or _UNSAID),
        ("Where", said.get("region") or _UNSAID),
        ("Since when", statement.publisher.date),
        ("To be used until", said.get("until") or f"{_UNSAID}; the guarantee itself does not end"),
        (withdraws, said.get("withdrawal") or f"{_UNSAID}; what that can mean stands below"),
        ("How well it predicts", in_short(statement.measured)),
    ]


def _all_releases(statement: Statement) -> Section:
    of, privacy, all_of = statement.publisher, statement.privacy, statement.publisher.together
    whose = _whose(statement)
    differ = ", as the neighbours of the releases differ"
    spend = "With this one they spend" if of.earlier_releases else "It spends"
    counted = of.unit_title if all_of.unit == privacy.unit and of.unit_title else all_of.unit
    items = [
        ("", f"{_sentence(releases_in_words(of.earlier_releases, of.other_people))}."),
        (
            "",
            f"{spend}, for each {counted}: epsilon {number(all_of.epsilon)} at delta "
            f"{_short(all_of.delta)} ({all_of.relation}"
            f"{differ if all_of.relation != privacy.relation else ''}"
            f"{PARALLEL if all_of.is_parallel else ''})."
            + (
                " That is the same noise, read at the delta of the limit."
                if all_of.delta != privacy.delta and not of.earlier_releases
                else ""
            ),
        ),
        (
            "",
            "The card sets no limit for all releases together."
            if of.limit is None
            else "The card limits what all releases spend together: epsilon "
            f"{_short(of.limit.epsilon)}, delta {_short(of.limit.delta)}. Only the owner of the "
            "data can raise that.",
        ),
        (
            f"If one {whose} withdraws:",
            "a file that others have cannot be called back, and keeps its guarantee towards them. "
            "A model without their rows is a further release, which spends more of the limit.",
        ),
    ]  # fmt: skip
    blocks: list[Text | Items | Table] = [Items(tuple(items))]
    if of.earlier:
        heads = ("Earlier release", "Epsilon", "Delta", "Method", "SHA-256 of its model")
        rows = tuple(
            (
                f"{e.date}{', withdrawn on ' + e.withdrawn if e.withdrawn else ''}",
                f"{_short(e.epsilon)}{'' if e.unit == privacy.unit else f' for each {e.unit}'}",
                _short(e.delta),
                e.method,
                f"{e.model_sha256[:12]}…" if e.model_sha256 else "not finished, but counts",
            )
            for e in of.earlier
        )
        blocks.append(Table("Earlier releases", rows, heads, frozenset(heads[1:3])))
    return Section("All releases of these rows", tuple(blocks))


def _readings(statement: Statement) -> Section:
    """Return what else is said of the same noise, each with who needs it."""
    of, privacy, whose = statement.publisher, statement.privacy, _whose(statement)
    spent, rows = privacy.spent, []
    rows.append(
        (
            f"Epsilon spent, for each {whose}",
            number(spent.of_unit),
            f"To see that the noise keeps what is stated: {ACCOUNTANT} adds up all noisy answers.",
        )
    )
    if privacy.unit != ROW:
        rows.append(
            (
                "Epsilon spent, for each row",
                number(spent.of_row),
                "To compare with releases that protect one row. It counts an exchange: if a row "
                f"goes, another of the same {whose} may train in its place. So it can be more than "
                "the mechanisms below say of one row that comes or goes.",
            )
        )
    if privacy.relation != REPLACE_ONE:
        rows.append(
            (
                f"Epsilon spent, for each {whose} under replace-one",
                number(spent.under_replace_one),
                f"To compare with texts that state replace-one, where another {whose} stands in "
                "the place of one. That counts as one that goes and one that comes, so it is "
                "larger. It is not the stated guarantee.",
            )
        )
    rows.append(
        (
            "Epsilon spent by all releases of these rows",
            f"{number(of.together.epsilon)} at delta {_short(of.together.delta)}",
            "To judge a further release: this sum is what the limit of the card is about.",
        )
    )
    mu = gaussian_mu(statement)
    if mu is not None:
        rows += [
            (
                "mu, Gaussian differential privacy",
                f"{_up(mu)}",
                "To add up releases whose noise is Gaussian: their mu add up as squares. It "
                "determines epsilon at every delta.",
            ),
            (
                "rho, zero-concentrated differential privacy",
                f"{_up(mu * mu / 2)}",
                "To compare with releases that state rho, which add up. It is mu squared, halved.",
            ),
        ]
    return Section(
        "Other readings of epsilon",
        (
            Text(
                "They describe the same noise, and none replaces the epsilon above. Each is there "
                "for one purpose."
            ),
            Table("Readings", tuple(rows), ("Reading", "Value", "When one needs it")),
        ),
    )


def gaussian_mu(statement: Statement) -> float | None:
    """Return the mu of the release for its unit, if all its noise is Gaussian on all rows.

    The answers of `uses` each have mu = rows_per_unit sensitivity / scale, and mu of all is the
    root of the sum of squares (Dong, Roth and Su, 2022, Corollary 2.1).
    """
    privacy = statement.privacy
    if any(m.mechanism != "gaussian" or m.sampling != 1 for m in statement.mechanisms):
        return None
    if not statement.mechanisms or not privacy.holds:
        return None
    squares = (m.uses * (m.sensitivity / m.scale) ** 2 for m in statement.mechanisms)
    return privacy.rows_per_unit * math.sqrt(math.fsum(squares))


def _mechanisms(statement: Statement) -> Section:
    of = statement.publisher
    heads = ("Answer", "Noise", "Sensitivity", "Scale", "Uses", "By itself")
    rows = tuple(
        (
            _sentence(m.releases),
            _sentence(mechanism_in_words(m.mechanism)),
            f"{_short(m.sensitivity)} ({m.norm})",
            _short(m.scale),
            f"{m.uses}",
            f"epsilon\u00a0{_short(m.epsilon)}, delta\u00a0{_short(m.delta)}",
        )
        for m in statement.mechanisms
    )
    blocks: list[Text | Items | Table] = [
        Text(
            f"Method: {of.method}, version {of.method_version} ({of.reference}). All else in the "
            "file is computed from these noisy answers. Sensitivity is how far one row moves an "
            'answer. "By itself" is what all uses of an answer would spend if nothing else were '
            "released, for one row that comes or goes: it shows which answer costs most."
        ),
        Table("Mechanisms", rows, heads, frozenset(heads[2:5])),
    ]
    if statement.post_processing:
        done = ((f"After the fit, at no cost: {text}.") for text in statement.post_processing)
        blocks.append(_list(done))
    return Section("What is released, mechanism by mechanism", tuple(blocks))


def _measured(statement: Statement) -> Section:
    found = statement.measured
    blocks: tuple[Text | Items | Table, ...] = ()
    if found is not None:
        label = statement.data.labels[1] if statement.data.labels else ""
        columns = heads(found, label)
        groups = Table("Groups", tuple(table(found)), columns, frozenset(columns[1:]))
        blocks = (_list(in_words(found, label)), groups)
    return Section("How well it predicts, and for whom", blocks)


def _functions(statement: Statement) -> Section:
    blocks = (_list(statement.bands),) if statement.bands else ()
    return Section("How to read the functions of the model", blocks)


def _public(statement: Statement) -> Section:
    of, data = statement.publisher, statement.data
    unit, whose = statement.privacy.unit, _whose(statement)
    texts = [*public_of_title(statement.assumed_public, unit, whose), *of.compared]
    if of.attack is not None and of.attack.has_public_rows:
        texts.append(
            "other rows, which models were fitted to that were attacked; and that fewer than half "
            "of them are, value for value, in the table, which was compared"
        )
    if of.delta_by_rule:
        texts.append(
            "delta is the largest power of ten that is at most 1 / (10 n). So it tells the order "
            "of magnitude of n, the number of rows, which the card states"
        )
    target = f"target: {data.target or 'not named'}"
    if data.labels:
        target += f", with the labels {_listed(data.labels)}"
    if data.target_bounds:
        lower, upper = map(_short, data.target_bounds)
        target += f", {'a count ' if data.link else ''}from {lower} to {upper}"
    texts += [target, "names, bounds and categories of the features:"]
    features = tuple(
        (f.name, _domain_in_words(f), "yes" if f.may_be_missing else "no") for f in data.features
    )
    return Section(
        "What is taken as public, and why",
        (
            _list(texts),
            Table("Features", features, ("Feature", "Public values", "May be missing")),
            Text(f"The publisher's reason: {of.domain_note or 'none is given.'}"),
        ),
    )


def _not_covered(statement: Statement) -> Section:
    found = statement.not_covered
    texts = [
        *(f"Read without noise: {text}" for text in found.reads),
        *(f"Gap in the proof: {text}" for text in found.gaps),
        *(
            f"Floating point, whose low bits can disclose more: {text}"
            for text in found.floating_point
        ),
        *found.always,
    ]
    return Section("What is not covered by epsilon", (_list(texts),))


def _points(statement: Statement) -> Section:
    """Return what NIST SP 800-226 asks, point by point, and what is not known here."""
    of, privacy, said = statement.publisher, statement.privacy, statement.registry
    told, whose = of.deployment, _whose(statement)
    floating, gaps = statement.not_covered.floating_point, statement.not_covered.gaps
    kinds = sorted({mechanism_in_words(m.mechanism) for m in statement.mechanisms})
    moved = (
        "Values beyond their bounds are moved to the nearest bound."
        if of.clips
        else "A table with values beyond their bounds is refused."
    )
    bound = (
        ""
        if privacy.unit == ROW
        else f" Of one {whose} at most {privacy.rows_per_unit} rows count, so those with many "
        "weigh less than in the table."
    )
    actors = f"Who runs it, {_UNSAID}."
    if told is not None:
        actors = told.actors or f"It is released by {_listed(told.curators)}."
    sources = told.sources if told is not None and told.sources else _UNSAID
    points = [
        (
            "Privacy parameters",
            f"{_sentence(privacy.definition)}: epsilon {_short(privacy.epsilon)}, delta "
            f"{_short(privacy.delta)}. Spent: epsilon {number(privacy.spent.of_unit)}.",
        ),
        (
            "Unit of privacy",
            f"{_sentence(said.unit_of_privacy)}. Compared are {said.neighbours}.",
        ),
        ("Other releases", f"{_sentence(said.release_frequency)}."),
        (
            "Mechanisms",
            f"{_sentence(_listed(kinds))}. Accounting: {said.accounting}. Known gaps in the proof: "
            f"{len(gaps) or 'none'}.",
        ),
        (
            "Implementation",
            f"{said.implementation}. Sums and noise are "
            + ("floating-point numbers, whose low bits can disclose more" if floating else
               "whole numbers, so no rounding discloses a row")
            + f"; no random seed was fixed. {_sentence(said.security)}.",
        ),
        (
            "Accuracy",
            f"{_sentence(in_short(statement.measured))}.",
        ),
        (
            "Bias",
            f"{moved}{bound} Noise hides small groups and rare categories: their effects can be "
            "missing from the model, which may serve them worse. Whether the rows represent the "
            "people whom the model is used for, and whether they were recorded without prejudice, "
            "is not known here.",
        ),
        (
            "Trust model",
            "Central: one curator reads the rows, and adds noise before anything leaves. Whoever "
            "runs it sees the rows. " + actors,
        ),
        (
            "Query model",
            "One release, which is a file: nobody can ask the rows a question through it.",
        ),
        (
            "Side channels",
            "Time and memory of the fit are out of scope. They show on the publisher's machine, "
            "and are not in the file.",
        ),
        (
            "Data security and access",
            "Who could read the rows on that machine, how they are kept and when they are deleted "
            "is not known here. The budget book and the register of rows can be read by their "
            "owner alone.",
        ),
        (
            "Data collection",
            "How the rows were collected, with whose consent, and who else has them is not known "
            f"here. Where more is written: {sources}. Licence: {of.licence or _UNSAID}.",
        ),
    ]  # fmt: skip
    return Section(
        "Point by point, as NIST SP 800-226 asks",
        (Table("Points of NIST SP 800-226", tuple(points)),),
    )


def _audits(statement: Statement) -> Section:
    audits, (first, *others) = statement.publisher.audits, audits_in_words(statement.publisher)
    blocks: list[Text | Items | Table] = [Text(first)]
    if audits:
        columns = frozenset(AUDIT_HEADS[1:5])
        table = Table("Audits", tuple(audit_rows(audits)), AUDIT_HEADS, columns)
        blocks += [*map(Text, others), table]
    return Section("Audits of the method", tuple(blocks))


def _attack(statement: Statement) -> Section:
    found = statement.publisher.attack
    blocks = () if found is None else tuple(map(Text, attack_in_words(found)))
    return Section("An attack on models like this one", blocks)


def _anonymity(statement: Statement) -> Section:
    items = anonymity_in_words(statement.privacy, _whose(statement))
    return Section("Evidence for an assessment of anonymity", (Items(tuple(items)),))


def _file(statement: Statement) -> Section:
    of = statement.publisher
    changed = " with changes" if of.is_modified else ""
    commit = f", commit {of.commit}{changed}" if of.commit else ""
    return Section(
        "The file that this page is about",
        (
            Text(
                f"{statement.model.file} with the SHA-256 {statement.model.sha256}, and no other. "
                "dprepro verify compares both, and derives this page anew. It was written by "
                f"dprepro {of.dprepro}{commit}. statement.json has all of this for programs."
            ),
        ),
    )


def _whose(statement: Statement) -> str:
    return statement.publisher.unit_title or statement.privacy.unit


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else "".join(names)


def _list(texts: Any) -> Items:
    return Items(tuple(("", text) for text in texts))


def _shown(value: Any) -> Any:
    return markdown(value) if isinstance(value, str) else value


def _whole(text: str) -> Markup:
    """Return text as HTML in which no line breaks within a short word, such as 1e-07."""
    from markupsafe import Markup, escape

    parts = [
        f'<span class="w">{escape(part)}</span>' if _HYPHENED.fullmatch(part) else escape(part)
        for part in _HYPHENED.split(text)
    ]
    return Markup("").join(Markup(part) for part in parts)


def _domain_in_words(feature: PublicFeature) -> str:
    if feature.bounds is not None:
        lower, upper = feature.bounds
        return f"{lower:g} to {upper:g} {feature.measured_in or ''}".strip()
    return ", ".join(f'"{category}"' for category in feature.categories or ())


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _short(value: float) -> str:
    return f"{value:.4g}"


def _up(value: float) -> str:
    """Return a positive number with four digits, rounded up."""
    digits = 3 - math.floor(math.log10(value))
    return f"{math.ceil(value * 10**digits - 1e-9) / 10**digits:.4g}"
