"""`mcpspy mock`: serve a recording in place of the server it was recorded from."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mcpspy.core.mock.delivery import PROGRESS_GAP
from mcpspy.core.mock.selector import MatchMode, Selector, about, never_sent
from mcpspy.core.mock.steering import MockOptions
from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.core.protocol.spec import INTERNAL_ERROR, METHOD_NOT_FOUND
from mcpspy.core.recording.origin import MOCK
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS, UsageError
from mcpspy.io.mock.loader import RecordingsLoader
from mcpspy.io.mock.stdio import EndedBySignal, end_by_signals, serve
from mcpspy.io.recording.recorder import say
from mcpspy.ui.cli.arguments import (
    ignored_parameter,
    is_folder,
    listen_address,
    read_endpoint,
    read_headers_of,
    recording_path,
    recordings,
)
from mcpspy.ui.cli.options import (
    COMMAND,
    FOLDER,
    HEADERS,
    LAKE,
    ORIGIN,
    SCRIPTS,
    Argument,
    Option,
    Repeated,
    Switch,
    check_interception,
    only_with,
)
from mcpspy.ui.cli.parser import fill, speed, without

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from mcpspy.core.mock.answer_rules import AnswerRules
    from mcpspy.io.intercept.interception import InterceptionOptions
    from mcpspy.io.mock.http import Front
    from mcpspy.io.serving.live_server import LiveServer

EPILOG = """\
examples:
  mcpspy mock weather.jsonl
  mcpspy mock last --match lenient --ignore-path /params/arguments/now
  mcpspy mock probe.jsonl session.jsonl --strict
  mcpspy mock weather.jsonl --http 8809
  mcpspy mock weather.jsonl --script builtin:chaos
  mcpspy mock weather.jsonl --on-miss forward --record more.jsonl -- node server.js
  mcpspy mock --from-listing tools.json --fixtures answers.yaml --http 8809

In a host's config, change the server's command to "mcpspy", and its arguments to "mock"
and the file. The mock serves any recording on stdin and stdout until stdin closes, or
with --http or --listen over HTTP until SIGTERM or Ctrl-C. An unrecorded request gets an
error, and mcpspy prints one line on stderr.

RECORDING is a file, `last`, a session name, the beginning of a session id, or lake:SESSION.

exit codes: 0; 1 with --strict, unrecorded or unused requests; 2 usage error or not a
recording; 3 file or script not readable, or port in use; 143 ended by SIGTERM (stdio)
"""


USAGE = "mcpspy mock [options] [RECORDING…] [-- COMMAND …]"

_FORWARD = "--on-miss forward"

OPTIONS = (
    Argument("recordings", "RECORDING", "recordings to serve; for equal requests the last one wins",
        nargs="*"),
    Option("--from-listing", "LISTING",
        "generate responses from the lists of a session, or of a JSON file such as tools.json",
        excludes=("RECORDING",)),
    Option("--seed", "TEXT", "--from-listing: generate other values (default: 0)", default="0",
        requires="--from-listing"),
    Repeated("--fixtures", "FILE",
        "YAML or JSON with responses written by hand; the first one that matches a request wins"),
    Argument("command", COMMAND, "", nargs="*", requires=_FORWARD),
    Option("--http", "PORT", "serve over HTTP on 127.0.0.1 and this port; 0 selects a free one",
        one_of="addresses"),
    Option("--listen", "HOST:PORT", "serve over HTTP on this address", one_of="addresses"),
    Repeated("--allow-host", "NAME", "HTTP: also accept requests whose Host is NAME",
        requires="--http or --listen"),
    Option("--match", None,
        "exact: equal params (default); lenient: else the most similar request of the same tool or URI; "
        "nearest: or the first of several; tool: those of the tool or URI in order; method: those of the "
        "method in order", choices=[*map(str, MatchMode)], default=str(MatchMode.EXACT)),
    Repeated("--ignore-path", "POINTER", "values that may differ, e.g. /params/arguments/now",
        read=ignored_parameter),
    Option("--on-exhausted", None,
        "response to a request sent more often than recorded: the last one again (default), or a miss",
        choices=["repeat", "error"], default="repeat"),
    Option("--on-miss", None,
        "response to unrecorded requests and answers of the user: error -32603 (default), error -32601, "
        "that of the most similar request, or the real server's response",
        choices=["error", "method-not-found", "nearest", "forward"], default="error"),
    Option("--upstream", "URL", f"{_FORWARD}: URL of the real server", requires=_FORWARD,
        excludes=(COMMAND,)),
    *only_with("--upstream", HEADERS),
    Option("--record", "PATH",
        f"{_FORWARD}: record the real server's session to this new file, or into this folder",
        requires=_FORWARD),
    ORIGIN.but(about="what makes that session (default: mock)", default=MOCK, requires="--record"),
    Option("--speed", "N", "0: respond at once (default), 1: after the recorded latency, 2: after half of it",
        read=speed, default=0.0),
    Switch("--stdout-noise", "stdio: also repeat lines on stdout that were not messages, at their place"),
    Switch("--strict", "exit 1 if a request was not recorded, or a recorded request was not sent"),
    Switch("--merge", "combine recordings of different servers into one server"),
    FOLDER,
    LAKE,
    *SCRIPTS,
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    if not (args.recordings or args.from_listing or args.fixtures):
        raise UsageError("mock: missing RECORDING", "or use --from-listing LISTING, or --fixtures FILE")
    paths: list[Path] = []
    for name in args.recordings:
        folder = recordings([name], args.dir) if is_folder(name, args.dir) else ()
        paths += [path for _, path in folder] or [recording_path(name, args.dir, args.lake)]
    is_http = args.http is not None or args.listen is not None
    if args.stdout_noise and is_http:
        raise UsageError(
            "mock: --stdout-noise is for stdio", "a mock over HTTP has no stdout: remove --http or --listen"
        )
    scripted = _scripted(args)
    if scripted is not None and not is_http:
        _run_scripted(args, scripted, Path(paths[0] if paths else args.from_listing or args.fixtures[0]).stem)
    served = RecordingsLoader(
        paths, args.ignore_path, merge=args.merge, rules=_rules(args, paths), has_noise=args.stdout_noise
    )
    real = _real(args)
    options = MockOptions(
        match=MatchMode(args.match),
        repeats=args.on_exhausted == "repeat",
        miss=METHOD_NOT_FOUND if args.on_miss == "method-not-found" else INTERNAL_ERROR,
        plays_nearest=args.on_miss == "nearest",
        forwards=real is not None,
        speed=args.speed,
        gap=PROGRESS_GAP,
    )
    if is_http:
        selectors, code = _serve_http(served, options, args, real, scripted), 0
    else:
        selectors, code = _serve(served, options, real)
    if args.strict:
        served.recordings()  # The client may have disconnected before the whole file was read.
        if _report_strict(selectors):
            return FINDINGS
    return code


def _rules(args: argparse.Namespace, paths: list[Path]) -> AnswerRules | None:
    """Return the rules of a listing and of fixtures; None without them. Raises UsageError or CannotStart."""
    if not (args.from_listing or args.fixtures):
        return None
    from mcpspy.io.mock.listing import rules_of

    return rules_of(
        args.from_listing,
        args.fixtures,
        paths,
        seed=args.seed,
        find=lambda name: recording_path(name, args.dir, args.lake),
    )


def _real(args: argparse.Namespace) -> LiveServer | None:
    """Return the real server, None without --on-miss forward. Raises UsageError."""
    if args.on_miss != "forward":
        return None
    if not (args.upstream or args.command):
        raise UsageError(
            "mock: --on-miss forward requires one server", "use --upstream URL, or -- COMMAND at the end"
        )
    # Not at the top: without a real server the mock does not wait for asyncio.
    from mcpspy.io.client import ServerAddress, ServerCommand
    from mcpspy.io.serving.live_server import LiveServer
    from mcpspy.io.session_name import session_name

    if args.command:
        return LiveServer(
            ServerCommand(args.command), session_name(args.command), args.record, origin=args.origin
        )
    upstream = read_endpoint("--upstream", args.upstream)
    headers = read_headers_of(args.header, args.header_env)
    return LiveServer(ServerAddress(args.upstream, headers), upstream.host, args.record, origin=args.origin)


def _scripted(args: argparse.Namespace) -> InterceptionOptions | None:
    """Return the options of the scripts; None without scripts. Raises UsageError or CannotStart."""
    if not args.script:
        return None
    from mcpspy.io.stdio.base import RunOptions

    interception = fill(RunOptions([]), args, SCRIPTS).interception
    check_interception(interception)
    return interception


def _run_scripted(args: argparse.Namespace, scripted: InterceptionOptions, name: str) -> NoReturn:
    """Serve on stdio through `mcpspy run`, which runs the scripts and exits like the mock."""
    from mcpspy.io.stdio.base import RunOptions
    from mcpspy.io.stdio.run import run

    options = RunOptions([sys.executable, "-P", "-m", "mcpspy", "mock", *without(SCRIPTS, args.words)])
    options.name, options.recording, options.interception = name, False, scripted
    run(options)


def _in_front(
    host: str, port: int, allowed: list[str], scripted: InterceptionOptions
) -> Callable[[str], Front]:
    """Return a function that starts `mcpspy http` with the scripts in front of the mock's URL."""
    from mcpspy.core.protocol.http_headers import read_upstream
    from mcpspy.io.http.proxy import HttpOptions, proxying

    def start(url: str) -> Front:
        upstream = read_upstream(url)
        assert upstream is not None
        options = HttpOptions(upstream, host, port)
        options.allowed_hosts, options.recording, options.interception = allowed, False, scripted
        return proxying(options)

    return start


def _serve(
    served: RecordingsLoader, options: MockOptions, real: LiveServer | None
) -> tuple[list[Selector], int]:
    end_by_signals()
    try:
        return [serve(served, options, _warn, real)], 0
    except EndedBySignal as ended:
        return [] if ended.selector is None else [ended.selector], 128 + ended.number


def _serve_http(
    served: RecordingsLoader,
    options: MockOptions,
    args: argparse.Namespace,
    real: LiveServer | None,
    scripted: InterceptionOptions | None,
) -> list[Selector]:
    option, text = ("--listen", args.listen) if args.http is None else ("--http", args.http)
    host, port = listen_address(option, text)
    # Not at the top: on stdio the mock does not wait for asyncio.
    import asyncio

    from mcpspy.io.mock import http
    from mcpspy.io.network.listener import listening
    from mcpspy.io.serving.mcp_server import LOOPBACK_HOST

    def read_on() -> bool:
        is_more = served.read_on()
        for line in served.take_warnings():
            _warn(line)
        return is_more

    in_front = None if scripted is None else _in_front(host, port, args.allow_host, scripted)
    where = (host, port) if in_front is None else (LOOPBACK_HOST, 0)
    with listening(*where, "use another port, or 0 for a free one") as listener:
        if host not in LOOPBACK:
            _warn(f"warning: listening on {host}: other machines can read the recording through mcpspy")
        recordings = served.begin()
        for line in served.take_warnings():
            _warn(line)
        allowed = [*args.allow_host, *(() if host in LOOPBACK else (host,))]
        mock = http.Mock(recordings, options, _warn, allowed, real)
        asyncio.run(http.serve(mock, listener, where[0], read_on, in_front))
    return mock.selectors or [Selector(recordings, options.match)]


def _report_strict(selectors: list[Selector]) -> bool:
    """Print unrecorded requests, and recorded requests that were not sent; return whether there are any."""
    misses = [line for selector in selectors for line in selector.misses]
    unused = never_sent(selectors)
    for line in misses:
        _warn(f"strict: {line}")
    for interaction in unused:
        _warn(f"strict: never sent: {about(interaction)}")
    return bool(misses or unused)


def _warn(line: str) -> None:
    say(sanitize(line))
