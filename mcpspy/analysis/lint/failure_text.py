"""Texts of a tool's result that are nothing but an error message or a stack trace.

Their signs must be at the beginning: logs and documentation mention errors, too.
"""

from __future__ import annotations

import re
from typing import Any

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from mcpspy.analysis.lint.event import objects
from mcpspy.core.protocol.message import loads

LONGEST = 600
"""Maximum characters of an error message without a stack trace."""

_REPORTS = frozenset(
    """error errors exception exceptions failure failures log logs console message messages mail email
    emails history comment comments trace traces issue issues incident incidents alert alerts lint""".split()
)
"""Words in names of tools whose results are about errors."""

_QUOTES = frozenset(
    """read search find grep fetch page web url doc docs file files cat query show view content contents note
    notes test tests explain review run exec execute shell command bash terminal""".split()
)
"""Words in names of tools whose results are text of others, or the output of programs."""

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")

_CERTAIN = re.compile(
    r"""(?x)\W{0,4}(?:
    (?:Error|ERROR):\ (?:E[A-Z]{3,14}\b|(?:[45]\d\d|HTTP|MCP|API|Request|Tool|Connection|Cannot|Could\ not|Failed\ to|Unable\ to|Access|Permission|Unauthorized|Unknown\ tool|Invalid)\b)
    | Error\ (?!handl|report|logg|check|track|monitor|mak|rais)[a-z]{3,14}ing\ [^:\n]{1,120}:\ \S
    | E(?:NOENT|AC{2}ES|PERM|EXIST|ISDIR|NOTDIR|CONNREFUSED|CONNRESET|TIMEDOUT|NOTFOUND|PIPE|MFILE):\ \S
    | MCP\ error\ -?\d+
    | Encountered\ an?\ [\w\ ]{0,20}error:\ \S
    | \[SSL:\ CERTIFICATE_VERIFY_FAILED\]
    | Request\ failed\ with\ status\ code\ [45]\d\d
    | HTTP\ (?:[Ee]rror!?|request\ failed)[:,]?\ (?:[Ss]tatus:?\ |with\ status\ )?[45]\d\d
    | (?:Client|Server)\ error\ '[45]\d\d\ [^'\n]{1,60}'\ for\ url
    | Input\ validation\ error:\ \S
    | \d{1,3}\ validation\ errors?\ for\ \w
    | Invalid\ arguments\ for\ tool
    | [Mm]issing\ required\ (?:parameter|argument|field|property|input)s?\b
    | (?:Unknown\ tool:?\ \S+ | Tool\ \S{1,100}\ (?:was\ )?not\ found)\W*$
    | (?:HTTP\ )?Error\ [45]\d\d:\ \S
    | Error:\ [a-z]+(?:_[a-z]+)*_exception\b
    | Access\ denied\ -\ path\ outside
    | (?<=❌\ )[\w\ -]{1,40}[Ee]rror:\ \S
    )"""
)
"""Beginnings of messages that are failures of any tool."""

_LIKELY = re.compile(
    r"""(?x)\W{0,4}(?:
    (?:Error|ERROR|Exception|Fatal|FATAL|fatal|Fatal\ error):\ (?!none\b|no\ errors?\b|null\b|0\b)\S
    | (?:An?\ )?(?i:unexpected|internal|unknown|unhandled)\ (?:server\ )?(?:error|exception)\b
    | An\ (?:error|exception)\ (?:has\ )?(?:occurred|happened)\b
    | (?:\w{1,40}\.){0,4}[A-Z][A-Za-z]{0,60}(?:Error|Exception):\ \S
    | Failed\ to\ (?!reproduce|meet|pass)[a-z]+\b
    | (?:Unable\ to|Could\ not|Cannot|Can't|Couldn't)\ (?:connect|read|open|load|parse|fetch|resolve|access|write|create|delete|update|execute|complete|retrieve|process|authenticate|reach|start|save|send)\b
    | (?:HTTP(?:/\d(?:\.\d)?)?\ )?[45]\d\d:?\ (?:Bad\ Request|Unauthorized|Forbidden|Not\ Found|Method\ Not\ Allowed|Conflict|Unprocessable|Too\ Many\ Requests|Internal\ Server\ Error|Bad\ Gateway|Service\ Unavailable|Gateway\ Time-?out)
    | (?:Permission|Access)\ denied\b
    | (?:Connection\ (?:refused|reset|timed\ out|error) | (?:Request|Operation|Connection)\ timed\ out | Rate\ limit\ exceeded | Authentication\ failed | Unauthorized | Quota\ exceeded)\b
    | [\w./-]{1,60}:\ (?:(?:line\ )?\d{1,6}:\ )?[^:\n]{1,100}:?\ (?:command\ not\ found|No\ such\ file\ or\ directory|Permission\ denied)$
    )"""
)
"""Beginnings of messages that are failures of a tool whose results are not text of others."""

_KEY = r"(?:[Aa][Pp][Ii][ _-]?(?:[Kk]ey|KEY|[Tt]oken)|[Aa]ccess[ _-]?[Tt]oken|[Aa]uth(?:entication|orization)?[ _-][Tt]oken|[Cc]redentials)"

_SERVICE = re.compile(
    rf"""(?x)\W{{0,4}}(?:(?:Error|ERROR|[\w\ -]{{1,30}}\ (?:error|failed))(?:\ \d{{3}})?(?::|\ -)\ )?(?:
    [Pp]lease\ (?:provide|set|configure|add)\ (?:an?\ |your\ )?(?:valid\ )?(?:[\w-]+\ ){{0,2}}{_KEY}\b
    | (?i:invalid|missing|incorrect|expired|revoked|no)\ (?:[\w-]+\ ){{0,2}}{_KEY}(?:\ (?:provided|supplied|given|found|set|configured|in\ the\ \w+))?\ ?(?:$|[.:;,!(\n-])
    | (?:(?:(?:You|you)r|[Tt]he)\ )?(?:[\w-]+\ ){{0,2}}{_KEY}\ (?:is|was|has|are|were)\ (?:not\ |been\ )?(?:valid|invalid|missing|expired|revoked|rejected|incorrect|set|configured|provided|required)\b
    | {_KEY}\ (?:not\ (?:set|configured|provided|found|valid)|required|missing|expired|rejected)\b
    | [A-Z][A-Z0-9]*_[A-Z0-9_]*(?:\ environment\ variable)?\ (?:is\ )?(?:not\ (?:set|configured|defined)|missing|required)\b
    | (?i:(?:api\ )?rate[ -]limit\ (?:exceeded|reached)|(?:\w+\ )?quota\ exceeded|exceeded\ (?:your|the)\ (?:\w+\ )?quota)
    | (?:[Yy]ou(?:'ve|\ have)?\ )?exceeded\ your\ (?:\w+\ ){{0,2}}(?:quota|limit|credits)\b
    | (?i:insufficient\ (?:quota|credits|balance))\b
    )"""
)
"""Beginnings of errors of a service about a key, a quota or a setting: of any tool, as they concern who asks."""

_STATUS = re.compile(
    r"""(?x)\W{0,4}(?:(?:Error|[\w\ -]{1,30}\ (?:error|failed)):?\ )?(?:(?:HTTP(?:/\d(?:\.\d)?)?\ |[Ss]tatus:?\ )?(?:401|403|429)[:,]?\ (?:-\ )?(?i:unauthori[sz]ed|forbidden|too\ many\ requests)
    |(?i:unauthori[sz]ed|authentication\ (?:failed|required)|not\ authenticated|too\ many\ requests|access\ token\ (?:has\ )?expired))\s*(?:$|[.:;,!(-])"""
)
"""Beginnings of a refusal. The result of a tool that reads may be the text of a page with this."""

SHORTEST_PAGE = 300
"""Characters of a text that has more to say than an error of a service."""

_SEARCHES = frozenset("search find query".split())
"""Words in names of tools whose results are lists, and no single text of others."""

_CONTINUED = re.compile(r"\n[ \t]+\S[^\n]*")
"""Lines that continue the one before."""

_TRACE = re.compile(
    r"""(?x)(?:(?:Error|Exception|Failed|❌)[^\n]{0,200}:\n\s{0,4})?(?:
    Traceback\ \(most\ recent\ call\ last\):\n
    | (?:Uncaught\ |Unhandled\ exception\.\ |Exception\ in\ thread\ "[^"\n]{0,80}"\ )?[\w.$]{0,200}(?:Error|Exception)(?:\ \[\w{1,60}\])?(?::[^\n]{0,500})?\n\s{1,16}at\ \S
    | panic:\ [^\n]{1,500}\n(?:\[[^\n]{1,200}\n)?\s{0,4}goroutine\ \d+\ \[
    | (?:\n?thread\ '[^'\n]{1,80}'(?:\ \(\d+\))?\ panicked\ at\ )
    | (?:PHP\ )?Fatal\ error:\ {1,2}Uncaught\ \S
    | [\w./-]{1,200}\.rb:\d{1,6}:in\ [`']
    )"""
)
"""Beginnings of stack traces: Python; JavaScript, Java and .NET; Go; Rust; PHP; Ruby."""

_TRACE_END = re.compile(
    r"\s*(?:[A-Za-z_][\w.]{0,200}(?:: |:?$)|at |\.\.\. \d+ more|Node\.js v|[\])}]|from |exit status|thrown in|note: |\S+\.go:\d|#\d)"
)
"""Last lines of stack traces."""

_SIGNS = tuple(
    sign.encode()
    for sign in (
        *"""rror RROR xception ENOENT EACCES EPERM EEXIST EISDIR ENOTDIR ECONNRE ETIMEDOUT ENOTFOUND EPIPE EMFILE ailed denied
        efused reset exceeded nauthorized Forbidden Conflict Unprocessable Unavailable raceback panicked Uncaught .rb:""".split(),
        *(
            "atal: ",
            "FATAL: ",
            "panic: ",
            "VERIFY_FAILED",
            "nvalid arg",
            "issing required ",
            "Unknown tool",
            "not found",
            "o such file",
            "imed out",
            *"nvalid NVALID xpired ncorrect evoked issing _KEY _TOKEN uota QUOTA redits imit Credentials credentials".split(),
            *(
                *("lease provide", "lease set", "lease configure", "lease add"),
                "ey not ",
                "oken not ",
                "ey required",
                "oken required",
                "No API",
                "No api",
                "ey is ",
                "oken is ",
                "ey was ",
            ),
            *(
                "oken was ",
                "ey has ",
                "oken has ",
                "not set",
                "not configured",
                "not defined",
                "uthentication ",
            ),
            *(
                " authenticated",
                "NAUTHORIZED",
                "FORBIDDEN",
                "forbidden",
                "oo many ",
                "nsufficient",
                "alance",
            ),
        ),
        *("nable to ", "ould not ", "annot ", "an't ", "ouldn't ", "Bad Request", "Not Found", "Not Allowed"),
        *("Too Many", "Bad Gateway", "Gateway Time"),
    )
)
"""Every text that matches `_CERTAIN`, `_LIKELY` or `_TRACE` contains one of these; most texts contain none."""

_find_sign = BytesAhoCorasick(_SIGNS, matchkind=MatchKind.LeftmostFirst).find_matches_as_indexes

_JSON_SIGNS = frozenset(("error", "errors", "success", "ok", "status", "statusCode", "status_code", "code", "isError", "is_error"))  # fmt: skip
_JSON_SIGN = re.compile(f'"(?:{"|".join(_JSON_SIGNS)}|message|detail)"')
_JSON_TEXTS = frozenset(("error", "errors", "message", "detail", "details", "title", "reason", "error_description", "error_message"))  # fmt: skip
_JSON_REST = frozenset(("jsonrpc", "id", "type", "path", "instance", "timestamp", "documentation_url", "doc_url", "request_id", "requestId", "trace_id", "traceId", "hint", "method", "stack", "object", "name", "url", "retry_after", "help", "documentation", "docs"))  # fmt: skip


def is_failure(text: str, tool: str = "") -> bool:
    """Return whether the text of a result of this tool is nothing but an error message or a stack trace."""
    head = text[: LONGEST * 2].lstrip()
    if head[:1] == "{":
        if len(text) > LONGEST * 2 or not _JSON_SIGN.search(head) or _words(tool) & _REPORTS:
            return False
        document = loads(text.encode("utf-8", "replace"))
        return _is_json_failure(document) or _is_json_refusal(document)
    if not _find_sign(head.encode("utf-8", "replace")):
        return False
    if _TRACE.match(head):
        last = text[-LONGEST:].rstrip().rpartition("\n")[2]
        return _TRACE_END.match(last) is not None and not _words(tool) & (_REPORTS | _QUOTES)
    if len(text) > LONGEST:
        return False
    if (lines := text.strip().count("\n")) > 6:
        return False
    if len(text) <= SHORTEST_PAGE and lines <= 2 and _is_refusal(head, tool):
        return True
    if _CERTAIN.match(head):
        words = _words(tool)
        if words & _REPORTS:
            return False
        # A list of found texts has more than one line without an indent; indented lines continue the error.
        is_one_error = bool(words & _SEARCHES) and "\n" not in _CONTINUED.sub("", text.strip())
        return not lines or is_one_error or not words & _QUOTES
    return _LIKELY.match(head) is not None and not _words(tool) & (_REPORTS | _QUOTES)


_PLAIN_BEGIN = frozenset(range(0x21, 0x7F)) - frozenset(b'"\\{')
"""Bytes that are neither white space, nor the beginning of JSON, nor part of an escape or of a character beyond ASCII."""


def may_be_failure(written: bytes, tool: str = "") -> bool:
    """Return False only if `is_failure` is false for the text, as far as its JSON text shows without being decoded.

    No sign has a character that has a shorter escape than its number; a character has at most two bytes in ASCII, and else four.
    A text that is longer than these bytes can only be a stack trace, which has its sign in its first 450 characters.
    """
    head = written[1 : 1 + LONGEST * (2 if written.isascii() else 4)]
    if head[0] in _PLAIN_BEGIN and head.find(b"\\u") < 0 and not _find_sign(head):
        return False
    return is_failure(loads(written), tool)


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}


def _is_refusal(text: str, tool: str) -> bool:
    """Return whether a short text of a tool begins with an error of a service about a key, a quota or a setting."""
    words = _words(tool)
    if words & _REPORTS:
        return False
    is_list = bool(words & _SEARCHES) or not words & _QUOTES
    return _SERVICE.match(text) is not None or (is_list and _STATUS.match(text) is not None)


def words_of(text: str) -> str:
    """Return the words of a failure: its first line, or the error and its description in a JSON object."""
    if not text.lstrip().startswith("{"):
        return text.strip().partition("\n")[0]
    document = loads(text.encode("utf-8", "replace"))
    inner = document.get("error") if isinstance(document, dict) else None
    told = [*_texts(document), *_texts(inner)]
    return ": ".join(dict.fromkeys(told)) or text.strip()


def _texts(document: Any) -> list[str]:
    """Return the texts of an object that tell its failure."""
    if not isinstance(document, dict):
        return []
    return [
        value for name, value in document.items() if name in _JSON_TEXTS and isinstance(value, str) and value
    ]


def _is_json_refusal(document: Any) -> bool:
    """Return whether an object reports that a service refused a key or has no quota, with nothing but plain values beside it."""
    if not isinstance(document, dict):
        return False
    is_alone = not document.keys() - _JSON_SIGNS - _JSON_TEXTS - _JSON_REST and "title" not in document
    if not (document.get("error") or document.get("success") is False or is_alone):
        return False
    rest = [
        value for name, value in document.items() if name not in _JSON_TEXTS and value not in (None, [], {})
    ]
    if any(isinstance(value, dict | list) or len(str(value)) > SHORTEST_PAGE for value in rest):
        return False
    told = [*_texts(document), *_texts(document.get("error"))]
    return any(len(each) <= SHORTEST_PAGE and (_SERVICE.match(each) or _STATUS.match(each)) for each in told)


def _is_json_failure(document: Any) -> bool:
    """Return whether an object reports a failure and nothing else."""
    if not isinstance(document, dict):
        return False
    rest = document.keys() - _JSON_SIGNS - _JSON_TEXTS - _JSON_REST
    if any(document[name] not in (None, [], {}, "") for name in rest):
        return False
    texts = [document.get(name) for name in _JSON_TEXTS]
    if not any(isinstance(value, str | dict | list) and value for value in texts):
        return False
    if document.get("error") or document.get("isError") is True or document.get("is_error") is True:
        return True
    if document.get("success") is False or document.get("ok") is False:
        return True
    if objects(document.get("errors")) and "data" in document:
        return True
    codes = [document.get(name) for name in ("status", "statusCode", "status_code", "code")]
    return any(
        value in ("error", "failed", "fail")
        or (isinstance(value, int | str) and str(value).isdigit() and 400 <= int(value) < 600)
        for value in codes
        if not isinstance(value, bool) and len(str(value)) < 10
    )
