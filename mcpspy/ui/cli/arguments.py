"""Values of the command line: recordings, filters, addresses, HTTP headers, request parameters.

Parameters are JSON, `key=value`, `a.b=value`, `@FILE` or `-`; later ones are merged over earlier ones. Environment
variables keep secrets out of the command line; no error shows their values.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from mcpspy.core.jsontools import Pointer, pointer
from mcpspy.core.protocol.http_headers import Upstream, read_upstream
from mcpspy.core.recording.decode import Header
from mcpspy.core.redact.display import redacted_url
from mcpspy.core.regex import AllowUnsafe, refuse
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording.catalog import sessions
from mcpspy.io.recording.lookup import find
from mcpspy.io.recording.piped import STDIN, copy_of, is_piped
from mcpspy.io.recording.reader import summarize
from mcpspy.io.recording.runs import RUN, find_run

if TYPE_CHECKING:
    import argparse

    from mcpspy.core.query.parser import Query

HINT = """use '{"name":"echo"}', name=echo, arguments.text=hi, @params.json or - for stdin"""
LONGEST = 60
"""Characters of a value that an error shows."""

_UNQUOTED = (
    'a shell removes double quotes: put the word in single quotes, \'arguments={"message":"hi"}\', '
    "or use arguments.message=hi; for a text that begins so, use a JSON string: 'KEY=\"[draft]\"'"
)
IN_LAKE = "lake:"
"""Start of the name of a session in a lake."""

_UNSET = "hosts set it by env in their config"
_VARIABLE = re.compile(r"\$\{(\w+)\}")


def recordings(names: list[str], folder: str | None) -> Iterator[tuple[str, Path]]:
    """Yield each recording once, with its name on the command line; those of a folder or run oldest first.

    Raise UsageError for a name that is not a recording.
    """
    yielded: set[Path] = set()
    for name in names or ["last"]:
        found = [name]
        if name.startswith(RUN):
            found = [str(summary.path) for summary in find_run(name, folder).sessions]
        elif is_folder(name, folder):
            found = [str(Path(name) / summary.path.name) for summary in reversed(sessions(name))]
            if not found:
                raise UsageError(
                    sanitize(f"{name}: this folder contains no recordings"),
                    "record one with mcpspy run -- COMMAND",
                )
        for session in found:
            path = session_path(session, folder)
            if path not in yielded:
                yielded.add(path)
                yield "stdin" if session == STDIN else session, path


@contextmanager
def sessions_of_host(args: argparse.Namespace, report: Callable[[str], None]) -> Iterator[None]:
    """Have the sessions of the machine of `--ssh`, if it is given, in the folder `args.dir` of this one.

    `report` is called, in another thread, when the connection changes. Raises CannotStart or UsageError.
    """
    if args.ssh is None:
        yield
        return
    from mcpspy.io.remote.mirror import Mirror

    with Mirror(args.ssh, args.dir, report) as mirror:
        args.dir = str(mirror.folder)
        yield


def session_path(name: str, folder: str | None, *, follows: bool = False, lake: str | None = None) -> Path:
    """Return the file of a session on the command line, for `-` a copy of stdin. Raise UsageError or CannotStart."""
    return copy_of(name, follows=follows) if is_piped(name) else recording_path(name, folder, lake)


def recording_path(name: str, folder: str | None, lake: str | None) -> Path:
    """Return the file of a session, for `lake:SESSION` a copy from the lake. Raise UsageError or CannotStart.

    `lake` is the lake on the command line, None for that of the environment.
    """
    if not name.startswith(IN_LAKE):
        return find(name, folder)
    from mcpspy.io.lake.fetch import fetched

    return fetched(lake or os.environ.get("MCPSPY_LAKE"), name.removeprefix(IN_LAKE))


def is_folder(name: str, folder: str | None) -> bool:
    """Return whether a name on the command line is that of a folder, and not of a session."""
    if not name.strip() or not Path(name).is_dir():  # The path of an empty name is the working folder.
        return False
    with suppress(UsageError):
        return Path(find(name, folder)).is_dir()
    return True


def query_of(text: str | None, *, linted: bool = False, allow_unsafe: AllowUnsafe = refuse) -> Query | None:
    """Return the parsed filter, None without one; raise UsageError with the position of the error.

    `linted` allows terms that match findings.
    """
    from mcpspy.core.query.parser import parse  # Not every command has a filter.

    with filter_errors():
        return None if text is None else parse(text, linted=linted, allow_unsafe=allow_unsafe)


@contextmanager
def filter_errors(page: str = "docs/filter.md") -> Iterator[None]:
    """Return a context manager that raises QueryError with the position in `--filter`, and the page about it."""
    from mcpspy.core.query.lexer import QueryError

    try:
        yield
    except QueryError as error:
        raise error.located("--filter", f"see {page}") from None


def title_of(name: str) -> str:
    """Return the title of a session by its name on the command line; a file name loses its suffix."""
    return Path(name).stem if name.endswith(".jsonl") else name


def counted_back(query: Query | None, path: Path, header: Header) -> None:
    """Set the end of the recording in a filter that counts back from it."""
    if query is not None and query.is_relative_to_end:
        query.end = summarize(path, header, counts=False).last


def listen_address(option: str, text: str) -> tuple[str, int]:
    """Return host and port of `PORT`, `:PORT`, `HOST:PORT` or `[::1]:PORT`; loopback without a host."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if port.isdecimal() and int(port) > 65535:
        raise UsageError(f"{option} {text}: not a valid port", "use 1 to 65535, or 0 for a free one")
    if not port.isdecimal():
        raise UsageError(
            f"{option} {text}: not a valid {'port' if option == '--http' else 'address'}",
            "use a number, such as 8809" if option == "--http" else "use HOST:PORT",
        )
    return host, int(port)


def age(text: str) -> float:
    """Return the seconds of `12h`, `30d` or `8w`; raise UsageError."""
    from mcpspy.core.query.sessions import read_age

    if seconds := read_age(text):
        return seconds
    raise UsageError("not an age", "use 12h, 30d or 8w")


def read_header(option: str, text: str) -> tuple[str, str]:
    """Return name and value; raise UsageError, which names the option but not the value: it may be a secret."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip() or "\n" in text or "\r" in text:
        raise UsageError(f"{option}: not a valid header", "use 'Name: value'")
    return name.strip(), filled(f"{option} {name.strip()}", value).strip()


def read_headers_of(
    headers: Iterable[str], variables: Iterable[str], bearer: str | None = None
) -> tuple[tuple[str, str], ...]:
    """Return the headers of `--header`, `--header-env` and `--bearer-env`; raise UsageError."""
    found = [read_header("--header", text) for text in headers]
    found += map(_header_of_variable, variables)
    if bearer is not None:
        found.append(("Authorization", f"Bearer {variable_of('--bearer-env', bearer)}"))
    return tuple(found)


def _header_of_variable(text: str) -> tuple[str, str]:
    name, equals, variable = (part.strip() for part in text.partition("="))
    if not equals or not name or ":" in name or not variable:
        raise UsageError("--header-env: not a header and a variable", "use NAME=VARIABLE")
    return name, variable_of(f"--header-env {name}", variable)


def variable_of(option: str, variable: str) -> str:
    """Return the value of an environment variable; raise UsageError, which does not show the value."""
    value = os.environ.get(variable)
    if value is None:
        raise UsageError(f"{option}: environment variable {variable} is not set", _UNSET)
    if "\n" in value.strip() or "\r" in value.strip():
        raise UsageError(f"{option}: environment variable {variable} has several lines", "use one line")
    return value.strip()


def read_endpoint(option: str, url: str, typed: str | None = None) -> Upstream:
    """Return the server of a URL; raise UsageError with the option and the URL as typed, before expansion."""
    upstream = read_upstream(url)
    if upstream is None:
        raise UsageError(
            f"{option} {redacted_url(typed or url)}: not a server URL", "use http://localhost:3001/mcp"
        )
    return upstream


def shown_url(text: str) -> str:
    """Return a URL as typed, but with each variable that is a URL replaced by its value: others may be secrets."""
    return _VARIABLE.sub(lambda found: _url_in(found[1]) or found[0], text)


def _url_in(variable: str) -> str:
    value = os.environ.get(variable, "")
    return value if "://" in value else ""


def filled(option: str, text: str) -> str:
    """Return the text with each `${NAME}` replaced by that environment variable."""
    missing = [variable for variable in _VARIABLE.findall(text) if variable not in os.environ]
    if missing:
        raise UsageError(f"{option}: environment variable {missing[0]} is not set", _UNSET)
    return _VARIABLE.sub(lambda found: os.environ[found[1]], text)


def ignored_parameter(text: str) -> Pointer:
    """Return a JSON pointer below /params that a mock ignores; raise UsageError."""
    try:
        tokens = pointer(text)
    except ValueError as error:
        raise UsageError(str(error), "use /params/arguments/now") from None
    if tokens[0] != "params":
        raise UsageError("only pointers below /params are compared", "use /params/arguments/now")
    return tokens


def read_parameters(words: list[str]) -> dict[str, Any] | None:
    """Return the merged object of all words; None without any. Raises UsageError or CannotStart."""
    if not words:
        return None
    found: dict[str, Any] = {}
    for word in words:
        if word == "-":
            _merge(found, _object(sys.stdin.read(), "stdin"))
        elif word.startswith("@"):
            _merge(found, _object(_read(word[1:]), word[1:]))
        elif word.lstrip().startswith(("{", "[")):
            _merge(found, _object(word, "PARAMS"))
        else:
            _set(found, word)
    return found


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except ValueError as error:
        raise UsageError(
            f"send: {where}: not JSON: {error}", _UNQUOTED if where == "PARAMS" else HINT
        ) from None
    if not isinstance(value, dict):
        raise UsageError(f"send: {where}: not a JSON object", HINT)
    return value


def _set(found: dict[str, Any], word: str) -> None:
    path, equals, text = word.partition("=")
    keys = path.split(".")
    if not equals or not all(keys):
        raise UsageError(f"send: {word}: not a parameter", HINT)
    at = found
    for key in keys[:-1]:
        inner = at.setdefault(key, {})
        if not isinstance(inner, dict):
            raise UsageError(f"send: {word}: {key} is not an object", HINT)
        at = inner
    at[keys[-1]] = _value(path, text)


def _value(name: str, text: str) -> Any:
    """Return the parsed value of JSON; return other text unchanged. Raise UsageError for damaged JSON."""
    is_typed = not text.startswith("@")
    text = text if is_typed else _read(text[1:])
    try:
        return orjson.loads(text)
    except ValueError as error:
        if is_typed and text.lstrip().startswith(("{", "[")):
            shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
            raise UsageError(
                sanitize(f"send: {name}={shown}: begins like JSON, but is not JSON: {error}"), _UNQUOTED
            ) from None
        return text


def _merge(found: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        inner = found.get(key)
        if isinstance(inner, dict) and isinstance(value, dict):
            _merge(inner, value)
        else:
            found[key] = value


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"send: {file}: not UTF-8", "save it as UTF-8") from None
    except OSError as error:
        raise CannotStart(f"send: {file}: {error.strerror}", "check the path") from None
