"""What a card may say of how a text file is written: separators and encodings."""

from __future__ import annotations

import codecs
import encodings.aliases
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from dprepro.errors import nearest

_NO_SEPARATORS = '"\r\n\0'
# Python encodes names of the internet with them, and Arrow does not know the first.
_OF_NAMES = ("punycode", "idna")


def _check_separator(mark: str) -> str:
    if not mark.isascii() or mark in _NO_SEPARATORS:
        raise ValueError(
            "`separator` must be one ASCII character, and no quote or line break, such as "
            '`separator: ";"`. Write the file with another one'
        )
    return mark


def _check_encoding(name: str) -> str:
    try:
        "a".encode(name)  # raises for codecs that are not from text to bytes, too
        known = codecs.lookup(name).name not in _OF_NAMES
    except (LookupError, ValueError):
        known = False
    if not known:
        names = [alias.replace("_", "-") for alias in encodings.aliases.aliases]
        raise ValueError(
            f"{name!r} is no encoding of text files that Python knows{nearest(name, names) or '.'} "
            "Usual ones are utf8, latin-1 and cp1252. `iconv -f OLD -t utf8` writes a file as "
            "UTF-8, which needs no `encoding`"
        )
    return name


Separator = Annotated[
    str, StringConstraints(min_length=1, max_length=1), AfterValidator(_check_separator)
]
Encoding = Annotated[str, AfterValidator(_check_encoding)]
