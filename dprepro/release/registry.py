"""A release as a record of the public registry of deployments, and as a model card of hubs.

The registry's schema (commit 3e9c812, July 2026) has no key for who are neighbours, nor for the mu
of a Gaussian guarantee: the details of the unit and of the parameters say them in words.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from dprepro.privacy.sensitivity import Adjacency
from dprepro.release.guarantee_words import odds_in_words, unit_in_words
from dprepro.release.measured import in_short
from dprepro.release.statement import Statement
from dprepro.release.statement_pages import environment

RECORD, MODEL_CARD = "registry.yaml", "README.md"

_SLUG = re.compile(r"[^a-z0-9]+")


def registry_record(statement: Statement) -> dict[str, Any]:
    """Return the record of a release whose publisher says who releases it, and what for.

    It has what is asked for at all three tiers; the third needs the publisher's words about actors
    and reasons. Its status is Draft: the board of the registry decides on all others.
    """
    of, privacy, said = statement.publisher, statement.privacy, statement.registry
    told = of.deployment
    assert told is not None, "texts_for_others asks"
    title = of.title or of.dataset
    rows = "all rows" if statement.measured is None else "rows"
    whom = unit_in_words(privacy.unit, privacy.rows_per_unit, of.unit_title)
    spent = _bounded(privacy.spent.of_unit)
    details = f"{said.privacy_parameters}, stated. Spent: epsilon {spent} for {whom}"
    basic = {
        "name": f"{of.method} of {title}",
        "data_curators": list(told.curators),
        "description": told.description
        or f"An additive model ({of.method}) of {statement.data.target or 'the target'}, fitted to "
        f"{rows} of {title}. {said.data_domain}.",
        "intended_use": told.intended_use,
        "data_product_type": "Machine learning model",
        "data_product_region": told.region,
        "publication_date": of.date,
        "data_product_sector": told.sector,
    }
    deployment = {
        "basic": basic,
        "dp_variant": {
            "variant_name": "Approximate DP" if privacy.delta else "Pure DP",
            "data_domain": "All tables with the features, bounds, categories and labels that are "
            f"public. {said.data_domain}",
            "unprotected_quantities": said.unprotected_quantities,
        },
        "privacy_loss": {
            "privacy_unit": f"{of.unit_title or privacy.unit}-level",
            "privacy_unit_details": f"{said.unit_of_privacy}; {said.neighbours}",
            "privacy_parameters": {"epsilon": privacy.epsilon, "delta": privacy.delta or None},
            "privacy_parameters_details": details,
        },
        "deployment_model": {
            "model_name": "Central",
            "model_name_details": said.trust_model,
            "actors": told.actors,
            "release_type": "One release",
            "release_type_details": said.release_frequency,
            "data_source_type": "Static",
            "access_type": "Non-interactive",
            "access_type_details": "The model is a file; nobody can ask the rows anything.",
        },
        "accounting": {
            "post_processing": _joined(statement.post_processing)
            or "All else in the file is computed from the noisy answers.",
            "composition": said.accounting,
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": "Taken as public, and not accounted for: "
            f"{said.unprotected_quantities}. {of.domain_note or 'No reason is given'}",
            "mechanisms": _joined(
                f"{one.releases}: {one.mechanism}, sensitivity {one.sensitivity:.4g} ({one.norm}), "
                f"scale {one.scale:.4g}, {one.uses} uses"
                for one in statement.mechanisms
            )
            + f". {said.implementation}; {said.security}",
            "justification": told.justification,
        },
        "administrative": {
            "sources": told.sources,
            "notes": f"model.json has the SHA-256 {statement.model.sha256}. `dprepro verify` "
            "derives its statement anew.",
            "registry_authors": list(told.authors or told.curators),
        },
    }
    return {
        "url_slug": _SLUG.sub("-", f"{of.dataset} {of.method} {of.date}".lower()).strip("-"),
        "status": "Draft",
        "tier": 3 if told.actors and told.justification else 2,
        "deployment": _filled(deployment),
    }


def texts_for_others(statement: Statement) -> dict[str, str]:
    """Return by name the record of the registry and the model card, if the card asks for them."""
    if statement.publisher.deployment is None:
        return {}
    record = registry_record(statement)
    text = yaml.safe_dump(record, sort_keys=False, allow_unicode=True)
    if yaml.safe_load(text) != record:  # as with U+0085, which YAML reads as a line break
        text = yaml.safe_dump(record, sort_keys=False)
    return {RECORD: text, MODEL_CARD: _model_card(statement)}


def _model_card(statement: Statement) -> str:
    """Return a model card: a YAML head that hubs read, and what a user of the model must know."""
    is_regression = statement.data.task == "regression"
    head = {
        "library_name": "dprepro",
        "pipeline_tag": f"tabular-{'regression' if is_regression else 'classification'}",
        "tags": ["differential-privacy", "interpretable", "generalized-additive-model", "tabular"],
    }
    page = environment(is_html=False).get_template("model_card.md")
    told = yaml.safe_dump(head, sort_keys=False)
    privacy, title = statement.privacy, statement.publisher.unit_title
    return f"---\n{told}---\n" + page.render(
        s=statement,
        p=privacy,
        of=statement.publisher,
        told=statement.publisher.deployment,
        unit=unit_in_words(privacy.unit, privacy.rows_per_unit, title),
        odds=odds_in_words(
            privacy.epsilon, privacy.delta, Adjacency(privacy.relation), privacy.unit, title
        )[0],
        accuracy=in_short(statement.measured),
    )


def _bounded(epsilon: float | None) -> str:
    return "without a bound" if epsilon is None else f"{epsilon:.4g}"


def _joined(parts: Any) -> str:
    return "; ".join(parts)


def _filled(found: dict[str, Any]) -> dict[str, Any]:
    """Return a mapping without what nobody said."""
    kept = {k: _filled(v) if isinstance(v, dict) else v for k, v in found.items()}
    return {k: v for k, v in kept.items() if v not in (None, "", {}, [])}
