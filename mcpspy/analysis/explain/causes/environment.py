"""Causes outside the protocol that an error names: settings, files, the network.

The same words mean the same, wherever they appear: on stderr of a server that ended, in a tool error, in a JSON-RPC error,
or on stderr while a request had no response.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from mcpspy.analysis.explain.claims import Claim, Explain, Level, cause
from mcpspy.analysis.explain.evidence import (
    EvidenceLine,
    NamedError,
    evidence,
    named_error,
    quote,
    quote_error,
)
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import FailedRequest, ServerEnd, Symptom
from mcpspy.core.session.exchange import State


class Trouble(NamedTuple):
    """A kind of error outside the protocol."""

    code: str
    what: str
    """The trouble, as a clause."""
    next_step: str
    signs: re.Pattern[str]
    side: str = "environment"
    only_at_start: bool = False


TROUBLES = (
    Trouble(
        "system-too-old",
        "the program needs a newer system than this one",
        "use a newer distribution or image, or a build of the program for this system (static, musl, older)",
        re.compile(
            r"GLIBC(?:XX)?_\d|UnsupportedClassVersionError|requires macOS|not a valid Win32 application"
        ),
        "environment",
        only_at_start=True,
    ),
    Trouble(
        "terminal-wanted",
        "the command wants a terminal, and a host gives it pipes",
        "remove -t (--tty) from the arguments of docker or podman, and keep -i; a host starts no terminal",
        re.compile(
            r"(?i)input device is not a TTY|cannot attach stdin to a TTY|stdin is not a (?:tty|terminal)"
        ),
        "configuration",
        only_at_start=True,
    ),
    Trouble(
        "container-failed",
        "the container could not be started",
        "read the end of this error: the image, its entry point or a mount is at fault; the daemon itself runs",
        re.compile(
            r"(?i)OCI runtime|Error response from daemon|failed to create (?:task|shim)|Unable to find image|pull access denied"
        ),
        "configuration",
        only_at_start=True,
    ),
    Trouble(
        "runtime-version",
        "the server needs another version of its runtime",
        "start it with a newer interpreter: give its absolute path in the host's configuration",
        re.compile(
            r"""(?ix)requires[ -]python|python\ .{0,20}(?:or\ (?:newer|later|higher)|is\ required)|unsupported\ engine|EBADENGINE|requires\ node
            |node(?:\.js)?\ (?:v?\d+|version).{0,30}(?:required|or\ (?:newer|later|higher))|the\ engine\ "node"\ is\ incompatible
            |NODE_MODULE_VERSION|ERR_UNKNOWN_BUILTIN_MODULE|does\ not\ satisfy\ python
            |interpreter\ resolved\ to\ python|cannot\ import\ name\ '\w+'\ from\ '(?:typing|asyncio|enum|collections|tomllib|datetime)
            |No\ module\ named\ '(?:tomllib|distutils|imp|asyncore)'|(?:requires|needs|at\ least)\ (?:node|python|java|ruby|bun|deno)\b.{0,20}\d
            |(?:File|Blob|fetch|crypto|WebSocket|ReadableStream|CustomEvent|Headers)\ is\ not\ defined|Object\.groupBy\ is\ not\ a\ function
            |must\ install\ or\ update\ \.NET|net\d\.\d\ .{0,40}not\ found"""
        ),
        "configuration",
        only_at_start=True,
    ),
    Trouble(
        "module-missing",
        "a package that the server needs is not installed",
        "install it into the environment of this command, or start the server with npx -y, uvx or the environment's own"
        " interpreter",
        re.compile(
            r"(?i)No module named|cannot find (?:module '[^/\\.']|package)|ERR_MODULE_NOT_FOUND(?!.*/)|could not determine executable to run"
            r"|npm (?:error|ERR!) (?:code E)?404|No matching distribution|was not found in the package registry|ImportError: "
            r"|NoClassDefFoundError|ClassNotFoundException|error while loading shared libraries|cannot load such file -- [^/]"
            r"|no solution found when resolving|Package .{1,80} does not provide any executables|DLL load failed"
        ),
        "configuration",
        only_at_start=True,
    ),
    Trouble(
        "port-in-use",
        "a port that the server needs is in use",
        "end the other copy of the server, or the other program that has the port, or set another port",
        re.compile(r"(?i)EADDRINUSE|address already in use|Only one usage of each socket address"),
    ),
    Trouble(
        "text-encoding",
        "the server reads or writes text in another encoding than UTF-8",
        "set PYTHONUTF8=1 by env in the host's configuration, or let the server open its streams and files as UTF-8",
        re.compile(
            r"(?i)Unicode(?:Encode|Decode)Error|codec can't (?:en|de)code|'charmap'|illegal multibyte|invalid (?:utf-8|byte sequence)|stream did not contain valid UTF-8"
        ),
        "server",
    ),
    Trouble(
        "disk-full",
        "the disk is full",
        "make room on the disk that the error names",
        re.compile(r"(?i)\bENOSPC\b|no space left on device|disk (?:is )?full|disk quota exceeded|EDQUOT"),
    ),
    Trouble(
        "out-of-memory",
        "the server has no memory left",
        "give it more memory (node: --max-old-space-size), or let it process less at once",
        re.compile(
            r"(?i)heap out of memory|\bOOM\b|MemoryError|OutOfMemoryError|cannot allocate memory|\bENOMEM\b"
        ),
    ),
    Trouble(
        "too-many-files",
        "the server has too many open files",
        "close what is opened, or raise the limit (ulimit -n)",
        re.compile(r"(?i)\bEMFILE\b|too many open files"),
    ),
    Trouble(
        "name-not-resolved",
        "a host name could not be resolved",
        "check the host name in the server's settings, the network and its DNS; in a container, names of other containers"
        " exist only in the same network",
        re.compile(
            r"(?i)\bENOTFOUND\b|EAI_AGAIN|getaddrinfo|name or service not known|temporary failure in name resolution"
            r"|nodename nor servname|no such host|NameResolutionError|could not resolve host|UnknownHostException"
        ),
    ),
    Trouble(
        "tls-failure",
        "a TLS connection could not be made",
        "trust the CA (NODE_EXTRA_CA_CERTS, SSL_CERT_FILE), or correct the host name; the proxy of a company has its own CA",
        re.compile(
            r"(?i)certificate verify failed|self[- ]signed certificate|unable to (?:get|verify).{0,30}certificate|CERT_HAS_EXPIRED"
            r"|ERR_TLS_CERT|hostname mismatch|SSLError|ssl\.SSL|tls: failed to verify|x509: |PKIX path building|DEPTH_ZERO_SELF_SIGNED"
            r"|UNABLE_TO_VERIFY_LEAF|wrong version number|UnknownIssuer"
        ),
    ),
    Trouble(
        "proxy-refused",
        "a proxy between the server and the network refused the connection",
        "set HTTPS_PROXY and NO_PROXY in env of the host's configuration: hosts pass only few variables on",
        re.compile(
            r"(?i)\b407\b.{0,40}proxy|proxy authentication required|ProxyError|tunneling socket could not be established|Tunnel connection failed"
        ),
    ),
    Trouble(
        "rate-limited",
        "another service limits the rate of requests",
        "wait for the time that it names, send fewer requests, or use a key with a higher limit",
        re.compile(
            r"(?i)\brate[ -]?limit|\btoo many requests\b|\b(?:status|http|code|error)\b\W{0,12}429\b|\b429\b\W{0,3}(?:client error|error)|quota (?:has been )?exceeded|exceeded your.{0,20}quota|RESOURCE_EXHAUSTED|throttl"
        ),
    ),
    Trouble(
        "service-refused-key",
        "another service refused the server's credentials",
        "set a valid key or token for the service by env in the host's configuration",
        re.compile(
            r"""(?ix)\b(?:status|http|code|error)\b(?:\s+status)?(?:\s+code)?\W{0,6}40[13]\b|\b40[13]\b\W{0,3}(?:client\ error|unauthori[sz]ed|forbidden)
            |(?:invalid|incorrect|bad|revoked|malformed|expired)\ (?:api[ _-]?key|access[ _-]?token|auth\w*[ _-]?token|token|credentials)\b|bad\ credentials
            |(?:api[ _-]?key|token|credentials?)\ (?:is\ |are\ |has\ |have\ |was\ |were\ )?(?:been\ )?(?:invalid|expired|revoked|rejected|incorrect|not\ valid)
            |(?:jwt|token|session)\ (?:has\ )?expired|authentication\ (?:failed|required)|not\ authenticated|invalid_grant|InvalidClientTokenId|ExpiredToken|unauthori[sz]ed\b"""
        ),
        "configuration",
    ),
    Trouble(
        "setting-missing",
        "a setting that the server needs is missing",
        "set it by env or args in the host's configuration: hosts pass only few variables of your shell on",
        re.compile(
            r"""(?ix)(?:environment\ variable|env(?:ironment)?\ var|api[ _-]?key|access[ _-]?token|token|secret|password|credentials?|settings?|config(?:uration)?|connection\ string|(?-i:[A-Z][A-Z0-9]+_[A-Z0-9_]+)|--[\w-]+)\b.{0,60}
            \b(?:not\ (?:set|found|provided|configured|defined|specified|given)|is\ required|are\ required|must\ be\ (?:set|provided|specified)|missing|undefined|is\ empty|required\b)
            |(?:missing|required|provide|set|specify)\b.{0,40}\b(?:environment\ variable|env\ var|api[ _-]?key|access[ _-]?token|token|credentials|config\w*|(?-i:[A-Z][A-Z0-9]+_[A-Z0-9_]+)\b)
            |(?-i:KeyError:\ '[A-Z][A-Z0-9_]+')|following\ arguments\ are\ required|^usage:\ .*|required\ option|Field\ required|NoCredentialsError|Unable\ to\ locate\ credentials|could\ not\ (?:find|load)\ (?:the\ )?default\ credentials"""
        ),
        "configuration",
    ),
    Trouble(
        "service-unreachable",
        "another program that the server needs cannot be reached",
        "start it, and check its host and port in the server's settings; in a container, localhost is the container itself",
        re.compile(
            r"(?i)ECONNREFUSED|connection refused|ConnectError|could not connect to|cannot connect to|failed to connect|Connection reset by peer|ECONNRESET"
            r"|EHOSTUNREACH|ENETUNREACH|network is unreachable|no route to host|actively refused|docker daemon|ETIMEDOUT|ConnectTimeout|connect timeout"
        ),
    ),
    Trouble(
        "not-executable",
        "a file may not be executed",
        "make the file executable (chmod +x), or start it with its interpreter",
        re.compile(
            r"(?i)spawn \S+ EACCES|: Permission denied$|exec format error|ENOEXEC|bad interpreter|not executable"
        ),
        "configuration",
        only_at_start=True,
    ),
    Trouble(
        "path-not-allowed",
        "a path is outside of the folders that the server may use",
        "add the folder to those that the server may use: on its command line, or as a root of the client, whose roots take"
        " the place of the command line",
        re.compile(
            r"(?i)outside (?:of )?(?:the )?allowed (?:director|folder|path|root)|not (?:in|within|under) (?:the |an? )?(?:allowed|permitted|workspace)"
        ),
        "configuration",
    ),
    Trouble(
        "permission-denied",
        "the server may not use a file or another resource",
        "give the user that starts the server access to it, or set another path",
        re.compile(
            r"(?i)\bEACCES\b|\bEPERM\b|PermissionError|permission denied|operation not permitted|access is denied|read-only file system|EROFS"
        ),
    ),
    Trouble(
        "file-missing",
        "a file or folder that the server needs does not exist",
        "use absolute paths: a host starts servers in its own working directory",
        re.compile(
            r"(?i)can't open file|\bENOENT\b|no such file or directory|FileNotFoundError|cannot find module '?[/\\.]|The system cannot find the"
            r"|unable to access jarfile|cannot load such file -- /|could not find a part of the path|(?:file|directory|path|folder) (?:does not exist|not found)|can't cd to"
        ),
        "configuration",
    ),
)


def trouble_of(text: str, *, at_start: bool) -> Trouble | None:
    """Return the kind of the trouble that an error names."""
    return next(
        (each for each in TROUBLES if (at_start or not each.only_at_start) and each.signs.search(text)), None
    )


class _Named(NamedTuple):
    """A symptom whose error names a trouble."""

    symptom: Symptom
    trouble: Trouble
    about: str
    words: str
    line: EvidenceLine | None


def _named(facts: Facts) -> Iterator[_Named]:
    for symptom in facts.symptoms:
        match symptom:
            case ServerEnd(named=NamedError() as named, error=""):
                if trouble := _trouble_around(facts, named, at_start=not symptom.has_answered):
                    about = "the server ended" if symptom.has_answered else "the server did not start"
                    frame = f" ({named.frame})" if named.frame else ""
                    line = evidence(named.line.place, f"stderr: {named.text}")
                    yield _Named(symptom, trouble, about, f"{named.text}{frame}", line)
            case FailedRequest(effects=[]) if symptom.words and symptom.refusal is None:
                if trouble := trouble_of(symptom.words[:600], at_start=False):
                    yield _Named(symptom, trouble, f"{symptom.about} failed", symptom.words, None)
                    continue
                error = named_error(symptom.stderr, certain=True)
                if error and (trouble := trouble_of(error.text, at_start=False)):
                    line = evidence(error.line.place, f"stderr: {error.text}")
                    words = f"{quote(symptom.words, 80)}; on stderr: {error.text}"
                    yield _Named(symptom, trouble, f"{symptom.about} failed", words, line)
            case FailedRequest(effects=[], state=State.CANCELLED | State.UNANSWERED | State.LATE_OK):
                error = named_error(symptom.stderr, certain=True)
                if error and (trouble := trouble_of(error.text, at_start=False)):
                    line = evidence(error.line.place, f"stderr: {error.text}")
                    yield _Named(symptom, trouble, f"{symptom.about} got no response", error.text, line)


def _trouble_around(facts: Facts, named: NamedError, *, at_start: bool) -> Trouble | None:
    """Return the trouble of the error of a server that ended; the lines before it may name it instead."""
    if (found := trouble_of(named.text, at_start=at_start)) is not None:
        return found
    lines = [line for line in facts.stderr if line.at <= named.line.at + 0.5][-8:]
    return next(
        (found for line in reversed(lines) if (found := trouble_of(line.text, at_start=at_start))), None
    )


def _explains(trouble: Trouble) -> Explain:
    def claims(facts: Facts) -> Iterator[Claim]:
        every = [named for named in _named(facts) if named.trouble is trouble]
        for is_end in (True, False):
            same = [named for named in every if isinstance(named.symptom, ServerEnd) is is_end]
            if not same:
                continue
            symptoms: list[Symptom] = [named.symptom for named in same]
            for named in same:
                if isinstance(named.symptom, ServerEnd):
                    symptoms += named.symptom.during
            others = {named.about for named in same[1:]} - {same[0].about}
            also = f"; also {', '.join(sorted(others)[:3])}" if others else ""
            yield Claim(
                title=f"{same[0].about}: {quote_error(same[0].words)}{also}",
                next_step=_next_step(facts, trouble, same[0]),
                symptoms=symptoms,
                evidence=[named.line for named in same[:2] if named.line is not None],
                side=trouble.side,
                level=Level.EXACT if is_end else Level.SPECIFIC,
            )

    claims.__doc__ = f"{trouble.what[0].upper()}{trouble.what[1:]}: its error says so."
    return claims


def _next_step(facts: Facts, trouble: Trouble, named: _Named) -> str:
    """Return the next step; of a path, also where the server was started, and of a module whose package is there, its version."""
    if trouble.code == "module-missing" and (missing := _MISSING.search(named.words)):
        started = [word for word in facts.header.command or () if missing[1] in re.split(r"[./\\]", word)]
        if started:
            return (
                f"{quote(missing[1], 40)!r} is the program's own package, and is not found from {quote(facts.header.cwd or 'the working directory', 80)}:"
                " give the absolute path of the file, set PYTHONPATH by env, or install the project"
            )
    if trouble.code == "module-missing" and _OTHER_VERSION.search(named.words):
        return (
            "the package is installed in a version that has no such module: start the server with the version that it was"
            " written for (uvx --with 'package<2'), or update the server"
        )
    is_of_folder = trouble.code in ("permission-denied", "file-missing") and _ROOT_PATH.search(named.words)
    is_of_folder = is_of_folder or (trouble.code == "file-missing" and _RELATIVE_PATH.search(named.words))
    if facts.header.cwd is not None and is_of_folder:
        return f"{trouble.next_step}; this server was started in {quote(facts.header.cwd, 80)}"
    return trouble.next_step


_MISSING = re.compile(r"No module named '?([\w-]+)")

_OTHER_VERSION = re.compile(
    r"No module named '\w+\.|cannot import name|does not provide an export|ERR_PACKAGE_PATH_NOT_EXPORTED|was (?:renamed|removed|moved)"
)
"""A part of a package is missing, and not the package."""

_ROOT_PATH = re.compile(r"['\"\s]/[\w.-]+/?['\"\s]?$|Read-only file system")
_RELATIVE_PATH = re.compile(r"['\"\s](?:\./|\.\./)?[\w-]+(?:/[\w.-]+)*\.\w{1,5}\b")


_ERRORS: dict[str, tuple[str, ...]] = {
    "runtime-version": (
        "weather requires Python >=3.14",
        "The module was compiled against a different Node.js version using NODE_MODULE_VERSION 115.",
    ),
    "system-too-old": (
        "/srv/db-mcp: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by /srv/db-mcp)",
        "java.lang.UnsupportedClassVersionError: App has been compiled by a more recent version",
    ),
    "terminal-wanted": ("the input device is not a TTY",),
    "container-failed": (
        "docker: Error response from daemon: failed to create shim task: OCI runtime create failed: exec: permission denied",
    ),
    "module-missing": (
        "ModuleNotFoundError: No module named 'weather'",
        "npm error 404 Not Found - GET - Not found",
        "Because mcp-wether was not found in the package registry and you require it",
    ),
    "port-in-use": ("Error: listen EADDRINUSE: address already in use :::3001",),
    "text-encoding": ("UnicodeDecodeError: 'charmap' codec can't decode byte 0x81 in position 4",),
    "disk-full": ("OSError: [Errno 28] No space left on device",),
    "out-of-memory": ("FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",),
    "too-many-files": ("Error: EMFILE: too many open files",),
    "name-not-resolved": ("Error: getaddrinfo ENOTFOUND api.weather.example",),
    "tls-failure": (
        "ssl.SSLCertVerificationError: certificate verify failed: unable to get local issuer certificate",
    ),
    "proxy-refused": (
        "requests.exceptions.ProxyError: Tunnel connection failed: 407 Proxy Authentication Required",
    ),
    "rate-limited": ("Error: Request failed with status code 429",),
    "service-refused-key": ("Error: Invalid API key provided",),
    "setting-missing": (
        "KeyError: 'WEATHER_API_KEY'",
        "Error: Missing required environment variable: DATABASE_URL",
        "server: error: the following arguments are required: --api-key",
    ),
    "service-unreachable": ("Error: connect ECONNREFUSED 127.0.0.1:5432",),
    "not-executable": ("Error: spawn ./server EACCES",),
    "path-not-allowed": ("Error: Access denied - path outside allowed directories: /a/b not in /srv",),
    "permission-denied": ("PermissionError: [Errno 13] Permission denied: '/data/a.db'",),
    "file-missing": (
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/a.json'",
        "python3: can't open file '/srv/server.py': [Errno 2] No such file or directory",
    ),
}
"""Code of a trouble → errors that name it, from servers that do not start; most may be the error of a tool as well."""


def _at_start(error: str) -> str:
    """Return the session of a server that ends with an error before it answers."""
    line = json.dumps({"text": error})
    return f'@ bare\n> {{"id":1,"method":"initialize","params":{{}}}}\n* stderr {line}\n* exit {{"code":1,"signal":null}}'


for _trouble in TROUBLES:
    cause(
        _trouble.code,
        _trouble.what,
        level=Level.SPECIFIC,
        positive=tuple(map(_at_start, _ERRORS[_trouble.code])),
        negative=_at_start("SyntaxError: invalid syntax"),
    )(_explains(_trouble))
