"""JSON of other tools: read strictly in shape, and kept verbatim where it is a peer's.

Owns that a message inside a document stays as it is there (`1.0`, escapes, big
integers, keys that come twice), and that what cannot be read is one line: what
it was taken for, and what is wrong or missing.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from msgspec import DecodeError, Raw
from msgspec.json import Decoder

from mcpspy.errors import UsageError

T = TypeVar("T")

_BOM = b"\xef\xbb\xbf"

_SPACE = re.compile(rb'("(?:[^"\\]|\\.)*")|[ \t\r\n]+', re.DOTALL)

_MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,12}))?\s*([Zz]|[+-]\d\d:?\d\d)?", re.ASCII
)
"""A date and time of RFC 3339. One without its zone is taken for UTC."""

HALF = "half a file? Save it again, or let its tool finish"


def read(data: bytes, shape: type[T], what: str) -> T:
    """Return the document as `shape`; raise UsageError with what it was taken for, and what is wrong."""
    try:
        return Decoder(shape).decode(data.removeprefix(_BOM))
    except (DecodeError, UnicodeError) as error:
        cut = "truncated" in str(error)
        raise UsageError(f"{what}, but {_lower(error)}", HALF if cut else "see docs/import.md") from None
    except RecursionError:
        raise UsageError(f"{what}, but nested too deep to be read") from None


def read_lines(
    data: bytes, shape: type[T], what: str, otherwise: Callable[[bytes], T] | None = None
) -> Iterator[tuple[int, T]]:
    """Yield number and entry of each line that is not blank; raise UsageError for one that is none.

    `otherwise` is asked for a line that is no JSON, and raises ValueError if it has no answer either.
    """
    decode = Decoder(shape).decode
    lines = data.removeprefix(_BOM).split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = decode(line)
        except (DecodeError, UnicodeError) as error:
            try:
                entry = _other(line, otherwise)
            except (ValueError, RecursionError):
                cut = number == len(lines)
                wrong = f"its last line, {number}, is cut off" if cut else f"line {number}: {_lower(error)}"
                raise UsageError(f"{what}, but {wrong}", HALF if cut else "see docs/import.md") from None
        except RecursionError:
            raise UsageError(f"{what}, but line {number} is nested too deep to be read") from None
        yield number, entry


def _other(line: bytes, otherwise: Callable[[bytes], T] | None) -> T:
    if otherwise is None:
        raise ValueError
    return otherwise(line)


def compact(raw: Raw | bytes) -> bytes:
    """Return JSON without the white space between its tokens, and otherwise as it is."""
    data = bytes(raw)
    return _SPACE.sub(rb"\1", data) if b"\n" in data else data


def moment(text: str, what: str) -> float:
    """Return seconds since 1970; raise UsageError in the name of `what`."""
    found = _MOMENT.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            f"{what}, but {text[:40]!r} is no date and time", "it should be as RFC 3339 has them"
        )
    *date, fraction, zone = found.groups()
    try:
        seconds = calendar.timegm((*map(int, date), 0, 0, 0))
    except (ValueError, OverflowError):
        raise UsageError(f"{what}, but {text[:40]!r} is no date of any calendar") from None
    offset = 0
    if zone and zone not in "Zz":
        hours, minutes = int(zone[1:3]), int(zone[-2:])
        offset = (hours * 60 + minutes) * (-60 if zone[0] == "-" else 60)
    return seconds - offset + (float(f"0.{fraction}") if fraction else 0.0)


def _lower(error: Exception) -> str:
    said = str(error)
    return said[:1].lower() + said[1:]
