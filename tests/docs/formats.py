"""The tables of keys in docs/formats, which follow from the JSON Schemas.

`python -m tests.docs.formats` writes them anew (`make docs-outputs`).
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from dprepro.release.json_schemas import json_schema
from tests.docs.pages import ROOT

PAGES = sorted((ROOT / "docs" / "formats").glob("*.md"))
PLACE = re.compile(r"(<!-- keys: (\w+)(?: (\w+))? -->\n).*?(?=<!-- end of keys -->)", re.DOTALL)


def renewed(text: str) -> str:
    """Return a page with the tables that the schemas give."""
    return PLACE.sub(lambda found: f"{found[1]}\n{table(found[2], found[3])}\n", text)


def table(name: str, part: str | None) -> str:
    """Return the keys of a schema, or of one of its parts, as a Markdown table."""
    whole = json_schema(name)
    described = whole["$defs"][part] if part else whole
    described = next((one for one in described.get("anyOf", []) if "properties" in one), described)
    keys = described["properties"]
    needed = set(described.get("required", ()))
    if part is None and name == "config":
        needed = set(whole["anyOf"][0]["required"])
    lines = ["| key | value | default | meaning |", "| --- | --- | --- | --- |"]
    for key, value in keys.items():
        default = "needed" if key in needed else _default(value.get("default"))
        lines.append(f"| `{key}` | {_kind(value)} | {default} | {_escaped(value)} |")
    if not any("description" in value for value in keys.values()):
        lines = [line.rsplit(" | ", 1)[0] + " |" for line in lines]
    text = described.get("description", "")
    return "\n".join([*([f"{text}\n"] if text else []), *lines, ""])


def _escaped(value: dict[str, Any]) -> str:
    return str(value.get("description", "")).replace("|", "\\|")


def _default(value: Any) -> str:
    if value in (None, "", []) or isinstance(value, dict):
        return ""
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _kind(value: dict[str, Any]) -> str:
    """Say in a few words what a key takes."""
    if "$ref" in value:
        return "any" if value["$ref"].endswith("JsonValue") else "mapping"
    if "anyOf" in value or "oneOf" in value:
        kinds = [_kind(one) for one in value.get("anyOf") or value["oneOf"]]
        return " or ".join(dict.fromkeys(kind for kind in kinds if kind != "null"))
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    if "enum" in value:
        names = [f"`{name}`" for name in value["enum"]]
        return " or ".join(names) if len(names) <= 10 else "a built-in name"
    kind = value.get("type", "any")
    if isinstance(kind, list):
        return "text" if "string" in kind else "number or null"
    if kind == "array":
        items = value.get("prefixItems") or [value.get("items", {})]
        named = " or ".join(dict.fromkeys(map(_kind, items)))
        return f"two of {named}" if len(items) == 2 else f"list of {named}"
    words = {
        "string": "text",
        "integer": "whole number",
        "object": "mapping",
        "boolean": "true or false",
    }
    return words.get(kind, kind)


def main() -> int:
    """Write all tables."""
    for page in PAGES:
        page.write_text(renewed(page.read_text(encoding="utf-8")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
