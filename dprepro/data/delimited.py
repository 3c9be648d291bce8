"""Delimited text, such as CSV, as records: by RFC 4180, whatever the size of a record.

Arrow parses. What it would pass over in silence is found here before: a quote that is never closed,
text after a closing quote, and a number of records other than that of line ends outside of quotes.
Each is refused with its line. Arrow gets whole records alone, so that no block ends within a cell.

`benchmarks/reading.py` times other readers, of which DuckDB alone refuses an unclosed quote.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from dprepro.data.card_parts import one_line
from dprepro.data.decoding import BadRecordError, NotTextError, Utf8Stream, line_ends

BLOCK_BYTES = 2**20
"""Bytes that are parsed at a time, or one record if that is longer."""

THREADED_BYTES = 8 * BLOCK_BYTES
"""Blocks beyond it are parsed by several threads."""

MOST_RECORD_BYTES = 2**28
"""Of one record: a quote that is never closed must not fill the memory."""

FIELDS = pa.string()
"""The type of a column whose fields are read as they are."""

TEXT = pa.dictionary(pa.int32(), pa.string())
"""The same for few different ones."""

NUMBERS = pa.float64()
"""The type of a column of numbers."""

_LF, _CR, _EOF = b"\n", b"\r", b"\x1a"
_SEP_LINE = re.compile(rb"sep=([,;:|^~\t ])[ \t]*(?:\r\n|\r|\n)", re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """How fields are parted.

    Attributes
    ----------
    separator
        One ASCII character.
    quotes
        Those that may enclose a field. Within a field, its quote is doubled.
    escape
        What makes the next character of a quoted field an ordinary one; None: nothing does.
    comment
        How lines begin that are no records; None: no line does.
    missing
        The text of a field without quotes that stands for a missing value; None: no text does.
    names
        The names of the columns; None: the first line has them.
    replaces_names
        Whether there is a first line with names, and `names` stands in its place.
    encoding
        Of the bytes. A byte order mark overrules it.
    """

    separator: str = ","
    quotes: str = '"'
    escape: str | None = None
    comment: str | None = None
    missing: str | None = None
    names: tuple[str, ...] | None = None
    replaces_names: bool = False
    encoding: str = "utf8"


COMMAS = Dialect()
"""A CSV with a header."""


@dataclass(repr=False)
class _Block:
    """Whole records as UTF-8: `records` of them, the first in line `line` of the file.

    `raw` is what they were in the file, where they fill `lines` lines.
    """

    data: bytes
    raw: bytes
    records: int
    line: int
    lines: int
    quote: str | None = None


@dataclass
class Records:
    """The records of a delimited text, read once from its beginning to its end.

    Raises BadRecordError if the first record cannot be read, or there is none.

    Parameters
    ----------
    stream
        Bytes of the file.
    dialect
        How they are parted.
    first_line
        The number of the first line in the file, for messages.
    block_bytes
        See `BLOCK_BYTES`.

    Attributes
    ----------
    names
        The names of the columns, without blanks around them; they may repeat or be empty.
    """

    stream: BinaryIO
    dialect: Dialect
    first_line: int = 1
    block_bytes: int = BLOCK_BYTES
    names: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self._text = Utf8Stream(self.stream, self.dialect.encoding)
        self._rest, self._line, self._ended = b"", self.first_line, False
        self._empty_line = 0
        self._separator = self.dialect.separator
        if self.dialect.names is not None and not self.dialect.replaces_names:
            self.names = [one_line(name) for name in self.dialect.names]
            self._skip_sep_line()
            return
        header = self._header()
        self.names = [one_line(name) for name in header]
        if self.dialect.names is not None:
            if len(self.dialect.names) != len(header):
                raise BadRecordError(
                    f"line {self._line - 1}: it has {len(header)} names, and `columns` names "
                    f"{len(self.dialect.names)}: give a name for each column, in order"
                )
            self.names = [one_line(name) for name in self.dialect.names]

    def tables(
        self,
        wanted: Mapping[int, pa.DataType],
        missing: Collection[str] = (),
        use_threads: bool = True,
    ) -> Iterator[pa.Table]:
        """Yield the records block by block, with the columns at the positions `wanted`, in order.

        Raises BadRecordError if a record has another number of fields than there are names, or
        cannot be read.

        Parameters
        ----------
        wanted
            `FIELDS`, `TEXT` or `NUMBERS` for each position. Columns of numbers are `FIELDS` in a
            block in which some cell is neither a number nor one of `missing`. A field without
            quotes that says `Dialect.missing` is null; every other text is what it is, also the
            empty one.
        missing
            Texts that are null in columns of numbers.
        """
        while (block := self._next()) is not None:
            yield self._parse(block, wanted, missing, use_threads)

    def _parse(
        self,
        block: _Block,
        wanted: Mapping[int, pa.DataType],
        missing: Collection[str],
        use_threads: bool,
    ) -> pa.Table:
        texts = {k: FIELDS if kind == NUMBERS else kind for k, kind in wanted.items()}
        # In parts of it, of which several can be parsed at a time; a record may be longer than one.
        # A process that ends while Arrow still starts threads is aborted: little needs none.
        is_large = use_threads and len(block.data) > THREADED_BYTES
        in_parts = is_large and not _is_cut_in_crlf(block.data, BLOCK_BYTES)
        for part in (BLOCK_BYTES, None) if in_parts else (None,):
            for types in (wanted, texts) if texts != wanted else (wanted,):
                with suppress(pa.ArrowInvalid):
                    table = self._arrow(block, types, missing, part)
                    if table.num_rows == block.records and not _has_odd_nan(table):
                        return table
        # By the thorough reader, which names the line that is wrong, if one is.
        block, rest = self._thorough(block.raw, block.line, True)
        assert not rest
        try:
            table = self._arrow(block, texts, missing)
        except pa.ArrowInvalid as error:
            raise BadRecordError(
                f"line {block.line} or a later one cannot be read ({type(error).__name__})"
            ) from None
        if table.num_rows != block.records:
            raise BadRecordError(
                f"line {block.line} or a later one: the parser does not find as many records as "
                "there are line ends outside of quotes"
            )
        return table

    def _arrow(
        self,
        block: _Block,
        wanted: Mapping[int, pa.DataType],
        missing: Collection[str],
        part: int | None = None,
    ) -> pa.Table:
        names = [str(k) for k in range(len(self.names))]
        asked = {str(k): kind for k, kind in wanted.items()}
        if not asked:  # Arrow would read all columns, and say of none how many rows there are
            return pa.table({"": pa.nulls(block.records)})
        if not block.records:
            return pa.table({name: pa.array([], kind) for name, kind in asked.items()})
        mark = self.dialect.missing
        return pa.csv.read_csv(
            pa.BufferReader(block.data),
            read_options=pa.csv.ReadOptions(
                column_names=names,
                block_size=part or len(block.data) + 1,
                use_threads=part is not None,
            ),
            parse_options=pa.csv.ParseOptions(
                delimiter=self._separator,
                quote_char=block.quote or False,
                newlines_in_values=block.quote is not None,
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=asked,
                include_columns=list(asked),
                null_values=list(missing) if mark is None else [mark],
                strings_can_be_null=mark is not None,
                quoted_strings_can_be_null=mark is None,
            ),
        )

    def _next(self) -> _Block | None:
        """Return the next block of whole records; None at the end."""
        least, goes_on = self.block_bytes, False
        while True:
            self._fill(len(self._rest) + least, goes_on)
            if not self._rest:
                return None
            found, rest = self._records(self._rest, self._line, self._ended)
            if found is not None and (found.data or len(rest) < len(self._rest)):
                self._line += found.lines
                self._rest = rest
                if found.records:
                    return found
                if self._ended and not rest:
                    return None
                continue
            assert not self._ended, "what is left is a record, or refused"
            if len(self._rest) > MOST_RECORD_BYTES:
                raise BadRecordError(
                    f"line {self._line}: a record that begins here is longer than "
                    f"{MOST_RECORD_BYTES // 2**20} MiB: is a quote in it never closed?"
                )
            goes_on = True
            least = max(self.block_bytes, len(self._rest))  # so that the work stays linear

    def _records(self, data: bytes, line: int, is_last: bool) -> tuple[_Block | None, bytes]:
        """Return the whole records that `data` begins with, and the bytes after them."""
        if is_last and data.rstrip(b"\r\n").endswith(_EOF):
            data = data.rstrip(b"\r\n")[:-1]  # how DOS ended a file
        if not data:
            return _Block(b"", b"", 0, line, 0), b""
        found = self._quick(data, line, is_last)
        if found is not None:
            return found
        block, rest = self._thorough(data, line, is_last)
        return (block if block.data or len(rest) < len(data) else None), rest

    def _quick(self, data: bytes, line: int, is_last: bool) -> tuple[_Block | None, bytes] | None:
        """As `_records`, where nothing has to be rewritten; None where the thorough reader must."""
        dialect = self.dialect
        has_comment = bool(dialect.comment) and _has_comment(data, str(dialect.comment).encode())
        first, others = dialect.quotes[0], dialect.quotes[1:]
        if any(quote.encode() in data for quote in others) or (
            dialect.escape and dialect.escape.encode() in data
        ):
            return None
        if dialect.missing and re.search(
            rb"[ \t]%(m)b|%(m)b[ \t]" % {b"m": re.escape(dialect.missing.encode())}, data
        ):
            return None
        if b"\0" in data:
            return None
        has_quotes = first.encode() in data
        if (has_quotes and has_comment) or self._is_one_column:
            return None
        buffer = np.frombuffer(data, np.uint8)
        quotes = np.empty(0, np.int64)
        if has_quotes:
            quotes = np.flatnonzero(buffer == ord(first))
            if not _is_well_formed(buffer, quotes, self._separator):
                return None
            if is_last and len(quotes) % 2:
                return None
        elif _CR not in data and not data.startswith(_LF) and b"\n\n" not in data:
            return self._plain_lines(data, line, is_last, has_comment)
        all_ends = _ends(data, buffer, is_last)
        ends = all_ends[np.searchsorted(quotes, all_ends) % 2 == 0]
        if len(ends) == 0 and not is_last:
            return None, data
        stop = len(data) if is_last else int(ends[-1]) + 1
        lines = int(np.searchsorted(all_ends, stop))
        raw = whole = data[:stop]
        if has_comment:
            whole = self._without_comments(raw)
            buffer = np.frombuffer(whole, np.uint8)
            ends = _ends(whole, buffer, is_last=True)
        starts = np.concatenate([[0], ends + 1])
        lengths = np.append(ends, len(whole)) - starts
        lengths -= _before_crlf(buffer, ends, len(lengths))
        count = int(np.count_nonzero(lengths > 0))
        return _Block(whole, raw, count, line, lines, first if has_quotes else None), data[stop:]

    def _plain_lines(
        self, data: bytes, line: int, is_last: bool, has_comment: bool
    ) -> tuple[_Block | None, bytes]:
        """As `_quick`, of lines that end with LF, none of them empty, without a quote."""
        end = len(data) if is_last else data.rfind(_LF) + 1
        if end == 0:
            return None, data
        raw = data if end == len(data) else data[:end]
        whole = self._without_comments(raw) if has_comment else raw
        lines = raw.count(_LF)
        count = whole.count(_LF) if has_comment else lines
        count += bool(whole) and not whole.endswith(_LF)
        return _Block(whole, raw, count, line, lines), data[end:]

    @property
    def _is_one_column(self) -> bool:
        """Whether an empty line could be a record: then the thorough reader looks at each."""
        return len(self.names) == 1

    def _without_comments(self, data: bytes) -> bytes:
        mark = re.escape(str(self.dialect.comment).encode())
        return re.sub(rb"(?<![^\r\n])%b[^\r\n]*(?:\r\n|\r|\n|\Z)" % mark, b"", data)

    def _thorough(self, data: bytes, line: int, is_last: bool) -> tuple[_Block, bytes]:
        """As `_records`, field by field; the result is written anew as RFC 4180 wants it."""
        reader = _FieldReader(self.dialect, self._separator)
        written: list[bytes] = []
        place, first, width = 0, line, len(self.names)
        while place < len(data):
            found = reader.record(data, place, line, is_last)
            if found is None:
                break
            fields, stop = found
            if fields is not None:
                if self._empty_line and width == 1:
                    raise BadRecordError(
                        f"line {self._empty_line} is empty, and the table has one column: take "
                        'the line out, or write a missing value as ""'
                    )
                if len(fields) != width:
                    raise BadRecordError(_wrong_number(line, len(fields), width, self._separator))
                written.append(self._separator.encode().join(fields) or b'""')
            elif reader.comment is None or not data.startswith(reader.comment, place):
                self._empty_line = self._empty_line or line
            line += line_ends(data[place:stop])
            place = stop
        text = b"\n".join(written) + (_LF if written else b"")
        quote = '"' if b'"' in text else None
        block = _Block(text, data[:place], len(written), first, line - first, quote)
        return block, data[place:]

    def _skip_sep_line(self) -> None:
        """Take a first line such as ``sep=;``, which Excel writes, as what it says."""
        if self.dialect.quotes != '"' or self.first_line != 1:
            return
        self._fill(8)
        if found := _SEP_LINE.match(self._rest):
            self._separator = found[1].decode("ascii", "replace")
            self._rest = self._rest[found.end() :]
            self._line += 1

    def _fill(self, least: int, goes_on: bool = False) -> None:
        """Read on; what is no text is met where what comes before it is not whole (`goes_on`)."""
        while len(self._rest) < least and not self._ended:
            if self._text.is_broken and self._rest and not goes_on:
                return
            try:
                piece = self._text.read(least - len(self._rest))
            except NotTextError as error:
                line = self._line + line_ends(self._rest)
                raise BadRecordError(f"line {line}{error}") from None
            self._ended = not piece and not self._text.is_broken
            self._rest += piece

    def _header(self) -> list[str]:
        self._skip_sep_line()
        least, goes_on = min(self.block_bytes, 2**16), False
        reader = _FieldReader(self.dialect, self._separator)
        while True:
            self._fill(least, goes_on)
            place = 0
            while place < len(self._rest):
                found = reader.record(self._rest, place, self._line, self._ended)
                if found is None:
                    break
                fields, stop = found
                self._line += line_ends(self._rest[place:stop])
                place = stop
                if fields is not None:
                    self._rest = self._rest[place:]
                    return [_unquoted(each) for each in fields]
            self._rest = self._rest[place:]
            if self._ended:
                raise BadRecordError(
                    "the file is empty: its first line should name the columns"
                    if not self._rest.strip()
                    else "the first line cannot be read"
                )
            least, goes_on = 2 * max(least, len(self._rest)), True


def line_of(stream: BinaryIO, dialect: Dialect, record: int, first_line: int = 1) -> int:
    """Return the line of the file in which a record begins; they are numbered from 0.

    Raises ValueError if there are fewer records.
    """
    records = Records(stream, dialect, first_line)
    reader = _FieldReader(dialect, records._separator)
    while (block := records._next()) is not None:
        if record >= block.records:
            record -= block.records
            continue
        place, line = 0, block.line
        while place < len(block.raw):
            found = reader.record(block.raw, place, line, is_last=True)
            assert found is not None  # records of a block are whole
            fields, stop = found
            if fields is not None and record == 0:
                return line
            record -= fields is not None
            line += line_ends(block.raw[place:stop])
            place = stop
    raise ValueError("there is no such record")


class _FieldReader:
    """Reads one record after the other, field by field."""

    def __init__(self, dialect: Dialect, separator: str) -> None:
        self._dialect = dialect
        self._separator = separator.encode()
        sep = re.escape(self._separator)
        blank = (
            rb"[ \t]" if separator not in " \t" else (rb"[ ]" if separator == "\t" else rb"[\t]")
        )
        self._opening = re.compile(blank + rb"*([%b])" % re.escape(dialect.quotes).encode())
        self._body = {
            quote.encode(): re.compile(_body(quote, dialect.escape)) for quote in dialect.quotes
        }
        self._closing = re.compile(blank + rb"*(?:(%b)|(\r\n|\r|\n)|\Z)" % sep)
        self._plain = re.compile(rb"[^%b\r\n]*" % sep)
        self._empty = re.compile(
            rb"[ \t]*(\r\n|\r|\n|\Z)" if separator != "\t" else rb"[ ]*(\r\n|\r|\n|\Z)"
        )
        self.comment = dialect.comment.encode() if dialect.comment else None

    def record(
        self, data: bytes, start: int, line: int, is_last: bool
    ) -> tuple[list[bytes] | None, int] | None:
        """Return the fields of the record at `start`, as RFC 4180 writes them, and where it ends.

        None in the place of the fields: the line is empty or a comment. None at all: the record
        does not end within `data`, and more is to come.
        """
        if self.comment is not None and data.startswith(self.comment, start):
            return self._line_end(data, start, is_last)
        empty = self._empty.match(data, start)
        if empty:
            if not empty[1] and not is_last:
                return None  # what follows the blanks is not known yet
            stop = self._after(data, empty.end(), is_last)
            return None if stop is None else (None, stop)
        fields: list[bytes] = []
        place = start
        while True:
            found = self._field(data, place, start, line, is_last)
            if found is None:
                return None
            text, place, at_end = found
            fields.append(text)
            if at_end:
                stop = self._after(data, place, is_last)
                return None if stop is None else (fields, stop)

    def _after(self, data: bytes, stop: int, is_last: bool) -> int | None:
        """Return where the next line begins; None if the last byte is half of a line end."""
        if stop == len(data) and data[stop - 1 : stop] == _CR and not is_last:
            return None
        return stop

    def _line_end(self, data: bytes, start: int, is_last: bool) -> tuple[None, int] | None:
        found = re.compile(rb"\r\n|\r|\n").search(data, start)
        if found is None:
            return (None, len(data)) if is_last else None
        stop = self._after(data, found.end(), is_last)
        return None if stop is None else (None, stop)

    def _field(
        self, data: bytes, place: int, start: int, line: int, is_last: bool
    ) -> tuple[bytes, int, bool] | None:
        """Return a field, where the next begins, and whether it is the last of the record."""
        opening = self._opening.match(data, place)
        if opening is None:
            return self._unquoted(data, place, line, start, is_last)
        quote = opening[1]
        body = self._body[quote].match(data, opening.end())
        assert body is not None
        if body.end() == len(data) or (body.end() == len(data) - 1 and not is_last):
            if body.end() == len(data):  # no closing quote so far
                if not is_last:
                    return None
                opened = line + line_ends(data[start:place])
                raise BadRecordError(
                    f"line {opened}: a quote ({quote.decode()}) opens a field here and is never "
                    "closed, so that all that follows would be one field. Close it, or double a "
                    "quote that belongs to the text and enclose the field in quotes"
                )
            return None
        closing = self._closing.match(data, body.end() + 1)
        if closing is None or (closing.end() == len(data) and not is_last):
            if closing is not None:
                return None
            opened = line + line_ends(data[start:place])
            raise BadRecordError(
                f"line {opened}: text stands after the closing quote ({quote.decode()}) of a field "
                "that opens here. A quote within a quoted field is doubled; is one missing?"
            )
        text = self._escaped(body[0], quote)
        return b'"' + text.replace(b'"', b'""') + b'"', closing.end(), closing[1] is None

    def _escaped(self, text: bytes, quote: bytes) -> bytes:
        """Return what a quoted field says."""
        text = text.replace(quote + quote, quote)
        if self._dialect.escape is None:
            return text
        return re.sub(rb"\\(u[0-9A-Fa-f]{4}|.)", _resolved, text, flags=re.DOTALL)

    def _unquoted(
        self, data: bytes, place: int, line: int, start: int, is_last: bool
    ) -> tuple[bytes, int, bool] | None:
        plain = self._plain.match(data, place)
        assert plain is not None
        stop = plain.end()
        if stop == len(data) and not is_last:
            return None
        # Blanks are of the text, so that it is the same in a block that needs no thorough reader;
        # only a mark is known by having none.
        text = plain[0] if self._dialect.missing is None else plain[0].strip(b" \t")
        if b"\0" in text:
            raise BadRecordError(
                f"line {line + line_ends(data[start:place])}: a NUL byte is no text. If the file "
                "was saved as UTF-16, say so on its card: `format: {encoding: utf-16-le}`"
            )
        if b'"' in text:
            text = b'"' + text.replace(b'"', b'""') + b'"'
        if stop == len(data):
            return text, stop, True
        if data.startswith(self._separator, stop):
            return text, stop + len(self._separator), False
        return text, stop + (2 if data.startswith(b"\r\n", stop) else 1), True


def _body(quote: str, escape: str | None) -> bytes:
    """Return the pattern of what a quoted field holds, up to its closing quote."""
    q = re.escape(quote.encode())
    if escape is None:
        return rb"[^%(q)b]*(?:%(q)b%(q)b[^%(q)b]*)*" % {b"q": q}
    e = re.escape(escape.encode())
    return rb"(?:[^%(q)b%(e)b]+|%(e)b.|%(q)b%(q)b)*" % {b"q": q, b"e": e}


def _resolved(found: re.Match[bytes]) -> bytes:
    said = found[1]
    if said[:1] == b"u" and len(said) == 5:
        return chr(int(said[1:], 16)).encode("utf-8", "replace")
    return {b"n": b"\n", b"t": b"\t", b"r": b"\r"}.get(said, said)


def _unquoted(written: bytes) -> str:
    if written.startswith(b'"'):
        written = written[1:-1].replace(b'""', b'"')
    return written.decode()


def _wrong_number(line: int, found: int, wanted: int, mark: str) -> str:
    more = ""
    if found == wanted + 1:
        more = (
            " If it is so in every line, the first field is a name of the row, as R writes them: "
            f"put a name before the first one in line 1, such as `row{mark}`, and drop that column"
        )
    return (
        f"line {line}: Expected {wanted} columns, got {found}. Every line needs as many fields as "
        "there are names; a text with a separator in it needs quotes, and so does a number with a "
        f"decimal comma where commas part the fields.{more}"
    )


def _has_odd_nan(table: pa.Table) -> bool:
    """Whether a number is NaN, which Arrow makes of the text ``nan(a)``, too."""
    numbers = (column for column in table.columns if column.type == NUMBERS)
    return any(pc.any(pc.is_nan(column)).as_py() for column in numbers)


def _has_comment(data: bytes, mark: bytes) -> bool:
    return data.startswith(mark) or _LF + mark in data or _CR + mark in data


def _ends(data: bytes, buffer: np.ndarray, is_last: bool) -> np.ndarray:
    """Return the positions of the last bytes of line ends, int64."""
    if _CR not in data:
        return np.flatnonzero(buffer == 10)
    is_lf, is_cr = buffer == 10, buffer == 13
    is_cr[:-1] &= ~is_lf[1:]
    if not is_last and len(is_cr):
        is_cr[-1] = False  # an LF may follow
    return np.flatnonzero(is_lf | is_cr)


def _before_crlf(buffer: np.ndarray, ends: np.ndarray, lines: int) -> np.ndarray:
    """Return 1 for each line that ends with CRLF, of which CR is no content; int64 (lines,)."""
    found = np.zeros(lines, np.int64)
    inner = ends > 0
    crlf = np.zeros(len(ends), bool)
    crlf[inner] = (buffer[ends[inner]] == 10) & (buffer[ends[inner] - 1] == 13)
    found[: len(ends)] = crlf
    return found


def _is_cut_in_crlf(data: bytes, part: int) -> bool:
    """Whether a part of so many bytes ends between CR and LF, where Arrow leaves the LF out.

    It treats it as the rest of a line end, also within quotes.
    """
    if b"\r\n" not in data:
        return False
    return any(data.startswith(b"\r\n", stop - 1) for stop in range(part, len(data), part))


def _is_well_formed(buffer: np.ndarray, quotes: np.ndarray, separator: str) -> bool:
    """Whether every quote opens a field, closes one, or is one of two that stand for one.

    Then whether a byte lies within quotes follows from the number of quotes before it.
    """
    limits = np.zeros(256, bool)
    limits[[10, 13, ord(separator)]] = True
    opening, closing = quotes[::2], quotes[1::2]
    doubled = opening[1:] == closing[: len(opening) - 1] + 1
    opens = limits[buffer[np.maximum(opening - 1, 0)]] | (opening == 0)
    opens[1:] |= doubled
    closes = limits[buffer[np.minimum(closing + 1, len(buffer) - 1)]]
    closes |= closing == len(buffer) - 1
    closes[: len(doubled)] |= doubled
    return bool(opens.all() and closes.all())
