"""Text that others wrote, on its way to readers: a function for each format that it goes into.

Names, labels, titles and messages can hold anything. In every format they come out as themselves:
no character ends a cell, begins a command or a formula, or steers a terminal.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from typing import Any

# What no XML document may hold. Journals can.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# File systems take 255 bytes; a prefix, a digest and an ending need some.
_LONGEST_FILE_NAME = 100
_DEVICE = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9¹²³])(\..*)?", re.IGNORECASE)
"""Windows takes these for devices, whatever ending they have."""

# Controls, ends of lines other than \n, signs that turn the direction of what follows, halves of
# characters, and what YAML does not take.
_BEYOND_ASCII = "\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\uff00\ufffe\uffff"
_STEERING = re.compile(f"[\x00-\x08\x0b-\x1f{_BEYOND_ASCII}]")
_UNQUOTABLE = re.compile(f"[{_BEYOND_ASCII}]")

_OF_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#~&$])")
# What would begin a list or be a line across.
_BEGINS_BLOCK = re.compile(r"^(\d*)([-+.)])(?=[-+ ]|$)")

_OF_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    # Without brackets of their own: BibTeX counts those behind a backslash, too.
    "{": r"\textbraceleft{}",
    "}": r"\textbraceright{}",
    # Signs of other kinds stand in their places in LaTeX's first encoding of fonts.
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r'\texttt{"}',
    "`": r"\textasciigrave{}",
    # Behind the end of a row either would be read as its argument.
    "[": "{[}",
    "*": "{*}",
    "²": r"\textsuperscript{2}",
    "±": r"$\pm$",
    "ε": r"$\varepsilon$",
    "∞": r"$\infty$",
    "†": r"$\dagger$",
    "…": r"\ldots{}",
    **{character: "\\" + character for character in "&%$#_"},
}
# Two of these are set as one sign.
_LIGATURE = re.compile(r"(?<=-)(?=-)|(?<=')(?=')|(?<=,)(?=,)")

# What a spreadsheet reads as the beginning of a formula, and with an apostrophe before it as text.
_FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")


def visible(text: str) -> str:
    r"""Return `text` with what steers a terminal as Python writes it, such as ``\x1b``.

    Line breaks (``\n``), tabs and letters of all scripts stay as they are.
    """
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """Return `text` as a line: what is white is one blank, and the rest as `visible` has it.

    Such a line can be a comment of YAML or LaTeX.
    """
    return visible(" ".join(text.split()))


def markdown(text: str) -> str:
    """Return `text` so that Markdown shows it as it is, in one line, in tables and lists, too."""
    line = _OF_MARKDOWN.sub(r"\\\1", one_line(text))
    return _BEGINS_BLOCK.sub(r"\1\\\2", line)


def markdown_table(
    heads: Sequence[str], rows: Iterable[Iterable[str]], numbers: Collection[str] = ()
) -> str:
    """Return a table of Markdown, in lines of fields that are Markdown already.

    The fields below the heads in `numbers` are set to the right.
    """
    rules = ["---:" if head in numbers else "---" for head in heads]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rules, *rows))


def latex(text: str) -> str:
    r"""Return `text` so that LaTeX prints it as it is, in one line; also for a field of BibTeX.

    An apostrophe is set as LaTeX sets it. Letters beyond Latin need XeLaTeX or LuaLaTeX, and a font
    that has them.
    """
    parts = _LIGATURE.sub("\0", one_line(text))
    return "".join(_OF_LATEX.get(sign, sign) for sign in parts).replace("\0", "{}")


def csv_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV, below the names of the first one's fields; no line break at the end.

    A text that a spreadsheet would compute as a formula gets an apostrophe before it: one that is
    no number and begins with = + - @, a tab or a line break, also behind apostrophes. Whoever takes
    one apostrophe away from such a cell has the text itself.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _guarded(value) for name, value in row.items()} for row in rows)
    return text.getvalue().removesuffix("\n")


def _guarded(value: Any) -> Any:
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def json_text(value: Any, indent: int | None = 1) -> str:
    r"""Return plain values as strict JSON, readable in all scripts; what steers as ``\u202e``.

    Of one text: as YAML in double quotes, too.
    """
    text = json.dumps(value, indent=indent, allow_nan=False, ensure_ascii=False)
    return _UNQUOTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def shell(*words: object) -> str:
    """Return words of a command so that a shell reads each as one word."""
    return shlex.join(map(str, words))


def legible(text: str) -> str:
    """Return `text` with every character that XML forbids replaced by U+FFFD."""
    return _FORBIDDEN.sub("\ufffd", text)


def plain(text: str) -> str:
    """Return `text` so that matplotlib reads no formula into it and can write it as XML."""
    return visible(text).replace("$", r"\$")


def html_table(
    heads: Sequence[object],
    rows: Iterable[Sequence[object]],
    caption: str = "",
    notes: Iterable[str] = (),
) -> str:
    """Return a table for a notebook, a caption above it and notes below; all texts are escaped."""

    def line(cells: Iterable[object], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"

    above = f"<p>{escape(caption)}</p>" if caption else ""
    below = "".join(f"<li>{escape(note)}</li>" for note in notes)
    body = "".join(line(cells, "td") for cells in rows)
    return (
        f"<div>{above}<table><thead>{line(heads, 'th')}</thead><tbody>{body}</tbody></table>"
        f"{f'<ul>{below}</ul>' if below else ''}</div>"
    )


MOST_NAMED = 12
"""Names in a message that says which there are: it also has the nearest to what was given."""


def in_short(names: Sequence[str], most: int = 6) -> str:
    """Return names with commas; of more than `most` the first, and how many more there are.

    Examples
    --------
    >>> in_short(["age", "sex", "city"], 2)
    'age, sex and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def shortened(text: str, longest: int) -> str:
    """Return `text` as one line of at most `longest` characters, an ellipsis for what is cut."""
    line = one_line(text[: 10 * longest])
    return line if len(line) <= longest else line[: longest - 1] + "…"


def file_names(texts: Iterable[str]) -> list[str]:
    """Return a name for each text that is safe in a path, short, and unlike the others.

    A text that is such a name stays as it is. Of any other, what can stay is followed by a digest,
    so that it keeps its name whatever stands beside it. Capital letters tell no two names apart, as
    they do not on every file system. Names that Windows refuses are none.
    """
    names: list[str] = []
    taken: set[str] = set()
    for text in texts:
        name = "".join(c if c.isalnum() or c in "-_." else "_" for c in text).lstrip(".")
        name = name.encode()[:_LONGEST_FILE_NAME].decode(errors="ignore").rstrip(".")
        if _DEVICE.fullmatch(name):
            name = f"_{name}"
        if name != text or name.casefold() in taken:
            digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
            name = f"{name}-{digest[:8]}"
        while name.casefold() in taken:
            name += "_"
        taken.add(name.casefold())
        names.append(name)
    return names
