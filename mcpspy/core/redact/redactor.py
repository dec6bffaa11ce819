"""Redact the lines of a recording.

The theory of operation is at the top of the package.

If redaction of an entry fails, the entry is lost and a note records that: neither a bug in mcpspy nor
a message that triggers it may let a secret through. Envelopes, and all bytes of messages that are not
secret, stay unchanged. Never raises for the content of a line.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64

from mcpspy.core.redact.prefilter import AT_SIGN, B64, LONG, builtin_prefilter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mcpspy.core.recording.encode import Value
    from mcpspy.core.redact.config import RedactionRules
    from mcpspy.core.redact.prefilter import Hit, Prefilter
    from mcpspy.core.redact.private_keys import PrivateKeyBlocks
    from mcpspy.core.redact.walker import ByteEdit

    Found = Callable[[str, str], None]
    """Called for each secret with its rule and its JSON pointer into the message."""

LARGE = 1 << 22
"""Bytes above which a message is read as plain text: parsing it would block for a second."""

JOINED = 1 << 16
"""Bytes of lines that are joined and checked at once; a longer line is checked in its buffers."""

_MSG = b',"msg":'
_B64 = b',"b64":"'
_RAW = b',"raw":"'


class Redactor:
    """Redacts one recording. `key` is generated for it and never stored."""

    def __init__(self, key: bytes, rules: RedactionRules | None = None, found: Found | None = None) -> None:
        self._key = key
        self._custom_rules = rules
        self._found = found
        self._prefilter = rules.prefilter if rules is not None else builtin_prefilter()
        self._is_thorough = rules is not None and rules.is_thorough
        self._blocks: PrivateKeyBlocks | None = None
        """The keys that arrive line by line; None until the first one begins."""
        self._asked: set[bytes] = set()
        """Names of fields in which a form asked for a password (`walker`): their answers contain no literal."""
        self.lost = 0
        """Entries that could not be redacted."""

    def lines(self, data: bytes) -> bytes:
        """Return whole lines, redacted: nearly always unchanged."""
        if self._blocks is not None and self._is_in_block():
            return self._lines_in_block(data)
        if self._is_thorough:
            return b"".join(map(self._line, _lines(data)))
        if self._asked and self._is_answer(data):
            lines = _lines(data)
            return b"".join(self._line(line) if self._is_answer(line) else self._hits(line) for line in lines)
        return self._hits(data)

    def _is_answer(self, data: bytes) -> bool:
        """Return True if data may contain the answer to a form that asked for a password."""
        return any(b'"%b"' % name in data for name in self._asked)

    def _hits(self, data: bytes) -> bytes:
        """Return lines, of which those with hits are redacted."""
        # Most data is short: without a call of `find`.
        prefilter = self._prefilter
        matches = (
            prefilter.exact(data.lower(), overlapping=True) if len(data) < LONG else prefilter.find(data)
        )
        if not matches and AT_SIGN not in data and data.isascii():
            return data
        pieces: list[bytes] = []
        done = 0
        hits = self._prefilter.ordered(data, matches)
        del matches  # It is as large as the lines if every word is a hit.
        for hit in hits:
            place = hit[0]
            if place >= done and self._is_suspect(data, hit):
                start = data.rfind(b"\n", done, place) + 1 or done
                end = data.find(b"\n", place) + 1 or len(data)
                pieces += (data[done:start], self._line(data[start:end]))
                done = end
                if self._is_in_block():
                    pieces.append(self._lines_in_block(data[done:]))
                    done = len(data)
        return b"".join([*pieces, data[done:]]) if done else data

    def _is_in_block(self) -> bool:
        return self._blocks is not None and self._blocks.is_open

    def _lines_in_block(self, data: bytes) -> bytes:
        """Return lines while a key is unfinished, of which any line of its stream may be a part."""
        assert self._blocks is not None
        lines = _lines(data)
        for number, line in enumerate(lines):
            if not self._blocks.is_open:
                return b"".join(lines[:number]) + self.lines(b"".join(lines[number:]))
            if self._blocks.concerns(line) or self._is_thorough or self._prefilter.hits(line):
                lines[number] = self._line(line)
        return b"".join(lines)

    def buffers(self, buffers: Iterable[bytes | bytearray]) -> Iterator[bytes | bytearray]:
        """Yield redacted lines from buffers. No part of a line is yielded before its end is known."""
        pending: list[bytes | bytearray] = []
        size = whole = joined = 0
        for buffer in buffers:
            pending.append(buffer)
            size += len(buffer)
            if buffer[-1:] == b"\n":
                if size < JOINED:
                    whole, joined = len(pending), size
                    continue
                line = pending[whole:] if size - joined >= JOINED else []
                if head := pending[: whole if line else None]:
                    yield self.lines(b"".join(head))
                pending.clear()
                yield from self._large(line)
                size = whole = joined = 0
        if pending:
            yield self.lines(b"".join(pending))

    def header(self, fields: Mapping[str, Value]) -> dict[str, Value]:
        """Return the fields of a header, redacted: mainly the server's command."""
        values = [
            " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            for value in fields.values()
        ]
        words = "\n".join(values).encode("utf-8", "surrogateescape")
        if self._custom_rules is None and not is_suspect_command(words, self._prefilter):
            return dict(fields)
        from mcpspy.core.redact.command_line import command

        rules = self._rules()
        redacted: dict[str, Value] = {}
        for name, value in fields.items():
            if isinstance(value, str):
                redacted[name] = command([value], rules, self._mask, self._report)[0]
            elif isinstance(value, list | tuple) and all(isinstance(word, str) for word in value):
                redacted[name] = command(list(map(str, value)), rules, self._mask, self._report)
            else:
                redacted[name] = value
        return redacted

    def message(self, data: bytes) -> bytes:
        """Return a message, redacted; as plain text if it is not JSON."""
        hits = self._prefilter.hits(data)
        if (
            self._is_thorough
            or (self._asked and self._is_answer(data))
            or (hits and any(self._is_suspect(data, hit) for hit in hits))
        ):
            return self._read(data)
        return data

    def _read(self, data: bytes) -> bytes:
        """Return a message with hits, redacted."""
        return self._text(data) if len(data) > LARGE else self._walked(data, note=False)

    def _is_suspect(self, data: bytes, hit: Hit) -> bool:
        if hit[1] == B64:
            return True
        from mcpspy.core.redact.text import is_suspect

        try:
            return is_suspect(data, hit, self._rules())
        except Exception:  # Reading the line will fail too, which loses this line only.
            return True

    def _line(self, line: bytes) -> bytes:
        try:
            if self._is_in_block() or b"-----BEGIN" in line:
                line = self._keys().redacted(line)
            return self._entry(line)
        except Exception as error:  # No error may let the line through.
            return self.left_out(line, type(error).__name__)

    def left_out(self, line: bytes, why: str) -> bytes:
        """Return the note in place of a line that cannot be redacted, with its LF."""
        self.lost += 1
        at = line[5:].partition(b",")[0] if line.startswith(b'{"t":') else b"0"
        at = at if at.replace(b".", b"", 1).isdigit() else b"0"
        return b'{"t":%b,"note":"lost","entries":1,"why":"could not be redacted: %b"}\n' % (at, why.encode())

    def _entry(self, line: bytes) -> bytes:
        from mcpspy.core.recording.encode import splice_raw
        from mcpspy.core.recording.strict_json import flaw

        head, found, rest = line.partition(_MSG)
        if found and b'"note":' not in head:
            end = rest.rfind(b"}")
            data = rest[:end]
            redacted = self._read(data)
            if redacted != data and (why := flaw([redacted])):  # Redacted as text.
                return b"".join(splice_raw(head + b",", [redacted], why))
            return b"".join((head, found, redacted, rest[end:]))
        head, found, rest = line.partition(_RAW)
        if found and b'"note":' not in head and rest.lstrip(b" ").startswith((b"{", b"[")):
            # It may be a message for a tolerant reader, into which custom pointers lead.
            from orjson import loads

            try:
                entry = loads(line)
                data = entry["raw"].encode()
            except ValueError:  # Not written by mcpspy.
                return self._text(line)
            redacted = self._read(data)
            head = head.partition(b',"why":')[0] + b","
            return line if redacted == data else b"".join(splice_raw(head, [redacted], entry.get("why", "")))
        head, found, rest = line.partition(_B64)
        if found and rest.endswith(b'"}\n'):
            data = a2b_base64(rest[:-3])
            if not self._is_thorough and not self._prefilter.hits(data):
                return line
            text = self._text(data)
            return line if text == data else b"".join((head, found, b2a_base64(text, newline=False), b'"}\n'))
        return self._walked(line, note=True)

    def _walked(self, data: bytes, *, note: bool) -> bytes:
        """Return a message, or a whole line with `note`, redacted; as plain text if it is not JSON."""
        from mcpspy.core.redact.walker import InvalidJson, JsonWalker

        has_pointers = self._found is not None
        try:
            edits = JsonWalker(
                self._rules(), self._mask, note=note, has_pointers=has_pointers, asked=self._asked
            ).edits(data)
        except InvalidJson:
            return self._text(data)
        return self._edited(data, edits)

    def _keys(self) -> PrivateKeyBlocks:
        if self._blocks is None:
            from mcpspy.core.redact.private_keys import PrivateKeyBlocks

            self._blocks = PrivateKeyBlocks(self._mask, lambda: self._report("private-key", ()))
        return self._blocks

    def _text(self, data: bytes) -> bytes:
        from mcpspy.core.redact.text import UnescapedText
        from mcpspy.core.redact.walker import DEEPEST, text_edits

        def mask(secret: bytes) -> bytes:
            return self._mask(UnescapedText(secret).text)

        depth = 1 if len(data) <= LARGE else DEEPEST + 1  # No JSON in a large text is parsed.
        return self._edited(data, text_edits(data, self._rules(), mask, depth=depth))

    def _large(self, line: list[bytes | bytearray]) -> Iterator[bytes | bytearray]:
        """Yield a long line, without joining it if it has no hits."""
        if not line or (not self._is_in_block() and self._is_clean(line)):
            yield from line
        else:
            data = b"".join(line)
            line.clear()
            yield self.lines(data)

    def _is_clean(self, line: list[bytes | bytearray]) -> bool:
        if self._is_thorough:
            return False
        if _B64 not in line[0]:
            return not self._prefilter.is_hit(line)
        try:
            return not self._prefilter.is_hit(map(a2b_base64, line[1:-1]))
        except ValueError:  # A buffer does not end at a multiple of 4.
            return False

    def _rules(self) -> RedactionRules:
        """Return the rules; the built-in ones are imported on first use."""
        if self._custom_rules is None:
            from mcpspy.core.redact.config import RedactionRules

            self._custom_rules = RedactionRules()
        return self._custom_rules

    def _mask(self, secret: bytes) -> bytes:
        from mcpspy.core.redact.placeholder import placeholder

        return placeholder(secret, self._key)

    def _edited(self, data: bytes, edits: list[ByteEdit]) -> bytes:
        from mcpspy.core.redact.walker import apply

        for edit in edits if self._found is not None else ():
            self._report(edit.rule, edit.pointer)
        return apply(data, edits)

    def _report(self, rule: str, pointer: tuple[str, ...]) -> None:
        if self._found is not None:
            spelled = "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in pointer)
            self._found(rule, spelled)


def is_suspect_command(words: bytes, prefilter: Prefilter) -> bool:
    """Return False if command lines and URLs certainly contain no secret; imports nothing."""
    return bool(prefilter.hits(words)) or (b"://" in words and (b"?" in words or b"#" in words))


def _lines(data: bytes) -> list[bytes]:
    """Split at LF only, and keep it."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines
