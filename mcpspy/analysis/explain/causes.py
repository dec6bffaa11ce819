"""The known causes, in order: a cause comes before those that it usually brings about.

Signs of a cause are codes of lint rules, texts on stderr, HTTP statuses and error messages.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class CauseKind(NamedTuple):
    title: str
    next_step: str
    codes: tuple[str, ...] = ()
    """Lint rules whose findings are signs of it."""


CAUSES: dict[str, CauseKind] = {
    "command-not-found": CauseKind(
        "the server's command was not found",
        "use the absolute path of the command in the host's configuration: a host that is started from the desktop has"
        " another PATH than a shell",
    ),
    "permission-denied": CauseKind(
        "the server's command may not be executed",
        "make the file executable (chmod +x), or start it with its interpreter",
    ),
    "module-missing": CauseKind(
        "a package or file that the server needs is not installed",
        "install it into the environment of this command, or start the server with npx -y, uvx or the environment's own"
        " interpreter",
    ),
    "runtime-version": CauseKind(
        "the server needs another version of its runtime",
        "start it with a newer interpreter: give its absolute path in the host's configuration",
    ),
    "configuration-missing": CauseKind(
        "a setting or environment variable that the server needs is missing",
        "set it by env in the host's configuration: hosts pass only few variables on",
    ),
    "start-failed": CauseKind(
        "the server ended before it answered",
        "run its command in a terminal, and read what it prints on stderr",
        ("LIFE407",),
    ),
    "tls-failure": CauseKind(
        "the connection to the server failed in TLS",
        "trust the server's CA with --cacert FILE, or correct the host name in the URL",
    ),
    "upstream-unreachable": CauseKind(
        "the server cannot be reached",
        "check that it runs, its host and port, and the proxy variables (HTTPS_PROXY, NO_PROXY)",
    ),
    "authorization": CauseKind(
        "the server refused the request for lack of authorization",
        "sign in again or send a valid token; a server that checks the audience of tokens needs mcpspy exec instead of"
        " mcpspy http",
        ("HTTP502", "AUTH101", "AUTH102", "AUTH103", "AUTH201", "AUTH203", "AUTH204"),
    ),
    "session-lost": CauseKind(
        "the server does not know the session any more, and the client continued with it",
        "the client must send initialize again after a 404; keep the server's sessions over restarts, or make it stateless",
        ("HTTP205",),
    ),
    "version-mismatch": CauseKind(
        "client and server have no common revision of the protocol",
        "update the older side; the revisions are in the request and the response of initialize",
        ("LIFE114", "HOST303"),
    ),
    "wrong-endpoint": CauseKind(
        "the URL is not an MCP endpoint",
        "correct the path of the URL: most servers use /mcp, those of 2024-11-05 use /sse",
        ("HTTP307",),
    ),
    "mcpspy-rule": CauseKind(
        "a rule or a viewer of mcpspy changed, held or dropped messages",
        "remove --rule, --rules and --call-timeout, and try again",
    ),
    "crash": CauseKind(
        "the server ended in the middle of the session",
        "the last lines on stderr say where; replay the session against the server to see it again",
        ("LIFE403", "LIFE404", "LIFE401"),
    ),
    "message-cut": CauseKind(
        "a message was cut before its end",
        "send fewer bytes in one message, or use a library without a limit of the line",
        ("ENV119",),
    ),
    "stdout-noise": CauseKind(
        "the server writes text to stdout that is not a message",
        "write logs to stderr; mcpspy run --stdout-noise drop keeps them from the client",
        ("ENV101", "ENV102", "ENV103", "ENV118", "ENV110", "ENV111"),
    ),
    "http-error": CauseKind(
        "the server answers with an HTTP error",
        "read the server's own log at this time; retry later after 429 or 503",
        ("HTTP308", "HTTP303", "HTTP304"),
    ),
    "timeout": CauseKind(
        "the client gave up waiting",
        "make the call faster, report progress, or raise the timeout of the host",
        ("HOST301",),
    ),
    "no-response": CauseKind(
        "a request got no response",
        "look where the server waits at this request, for example with a debugger or py-spy; replay it alone with"
        " mcpspy send",
        ("LIFE201",),
    ),
    "result-too-large": CauseKind(
        "a result is too large for the host",
        "return less: pages, a summary, or a resource link",
        ("HOST201",),
    ),
    "schema-dropped": CauseKind(
        "the host does not offer tools of this server to its model",
        "correct the definition that the evidence quotes; mcpspy lint --host all checks every host",
        ("HOST101", "HOST102", "HOST106", "HOST107", "DATA201", "DATA202", "DATA103"),
    ),
    "capability-missing": CauseKind(
        "a feature is used that the other side did not declare",
        "declare the capability in the handshake, or do not use it",
        ("LIFE106", "LIFE115", "MOD305", "DATA603"),
    ),
    "unlisted-tool": CauseKind(
        "a tool was called that the server does not offer",
        "the host has an old list, or the model invented the name: list the tools again",
        ("DATA307",),
    ),
    "invalid-arguments": CauseKind(
        "arguments do not fit the tool's schema",
        "say in the description of the tool what the arguments mean, and make the schema as strict as the tool",
        ("DATA301", "DATA101"),
    ),
    "method-not-found": CauseKind(
        "the receiver does not know the method",
        "check the method's name, the revision and the declared capabilities",
        ("LIFE108", "LIFE109"),
    ),
    "error-swallowed": CauseKind(
        "a tool failed, but its result reports a success",
        "set isError: true in the result, or raise an error in the handler",
        ("AGENT103", "DATA306"),
    ),
    "request-failed": CauseKind(
        "a request failed", "read the error; mcpspy show -v prints the whole message"
    ),
    "invalid-result": CauseKind(
        "a response has a form that clients reject",
        "correct the result that the evidence quotes",
        (
            "DATA102",
            "DATA302",
            "DATA303",
            "DATA304",
            "DATA401",
            "DATA402",
            "DATA403",
            "DATA406",
            "ENV108",
            "ENV105",
        ),
    ),
    "list-changed-ignored": CauseKind(
        "the client did not list the tools again after they changed",
        "restart the server in the host; not every host follows notifications/tools/list_changed",
        ("LIFE113", "HOST302"),
    ),
    "downgrade": CauseKind(
        "the server answered with an older revision than the client asked for",
        "update the server's SDK: features of the newer revision are not available in this session",
        ("MOD106",),
    ),
    "retries": CauseKind(
        "the same failing or repeated call was sent again and again",
        "say in the result what to do instead",
        ("AGENT101", "AGENT102", "AGENT104"),
    ),
    "handshake": CauseKind(
        "the handshake is not complete",
        "send initialize, wait for its result, then send notifications/initialized",
        ("LIFE101", "LIFE102", "LIFE103", "LIFE105"),
    ),
    "orphaned-process": CauseKind(
        "the server did not end when the client closed its stdin",
        "end the server at the end of stdin, also its threads and child processes",
        ("LIFE402",),
    ),
    "records-lost": CauseKind(
        "a part of the session was not recorded",
        "make room on the disk, or raise --max-body: messages were forwarded, but some are missing here",
        ("REC101",),
    ),
    "protocol-violation": CauseKind(
        "a message violates the protocol",
        "mcpspy lint --hints explains each finding",
    ),
}

BY_RULE = {code: name for name, kind in CAUSES.items() for code in kind.codes}
"""Lint rule → the cause of which its finding is a sign."""

START_SIGNS = {
    "command-not-found": re.compile(
        r"(?i)command not found|not recognized as an internal|: not found$|No such file or directory: '?(?:npx|uvx|node|python)"
        r"|spawn \S+ ENOENT|env: .{1,60}: No such file"
    ),
    "permission-denied": re.compile(r"(?i)permission denied|operation not permitted|spawn \S+ EACCES"),
    "runtime-version": re.compile(
        r"(?i)requires[ -]python|python .{0,20}(?:or (?:newer|later|higher)|is required)|unsupported engine|requires node"
        r"|node(?:\.js)? (?:v?\d+|version).{0,30}(?:required|or (?:newer|later|higher))|the engine \"node\" is incompatible"
        r"|NODE_MODULE_VERSION|ERR_UNKNOWN_BUILTIN_MODULE|UnsupportedClassVersionError|GLIBC_\d|does not satisfy Python|interpreter resolved to Python"
        r"|cannot import name '\w+' from '(?:typing|asyncio|enum|collections|tomllib|datetime)"
        r"|No module named '(?:tomllib|distutils|imp|asyncore)'"
    ),
    "module-missing": re.compile(
        r"(?i)No module named|cannot find (?:module|package)|ERR_MODULE_NOT_FOUND|could not determine executable to run"
        r"|npm (?:error|ERR!) 404|No matching distribution|was not found in the package registry|ImportError: "
        r"|can't open file|NoClassDefFoundError|error while loading shared libraries|no such file or directory"
    ),
    "configuration-missing": re.compile(
        r"(?i)(?:environment variable|env(?:ironment)? var|api[ _-]?key|token|setting|config\w*).{0,80}"
        r"(?:not set|required|missing|not found|undefined|must be)|(?:missing|required).{0,40}(?:environment variable|api[ _-]?key"
        r"|token|config\w*)|KeyError: '[A-Z][A-Z0-9_]+'"
    ),
}
"""Cause → lines on stderr of a server that did not start. A missing file of the server itself is a missing module."""

TLS = re.compile(r"(?i)certificate|\bssl\b|\btls\b|hostname mismatch|handshake failure|self[- ]signed")
REVISION = re.compile(r"(?i)(?:protocol|unsupported|revision|mcp)[ -]?version|version .{0,30}not supported")
GAVE_UP = re.compile(r"(?i)time[d -]*out|deadline|aborted")
