"""Every cause names its own examples first, and none names a session in which nothing failed."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpspy.analysis.explain import CAUSES, causes
from mcpspy.analysis.explain.causes import AREAS, READ_RULES
from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.examples import HEALTHY
from mcpspy.analysis.explain.claims import CauseKind
from mcpspy.analysis.lint import RULES
from tests.analysis.explain.sessions import explained

WITHOUT_EXAMPLES = {"answer-not-matched", "stream-not-begun"}
"""Causes of messages on several streams, which the notation does not have: rebuilt reports show them (h23, l08)."""


def examples(kind: str) -> Iterator[object]:
    """Yield the examples of all causes, each with its cause."""
    for cause in CAUSES:
        for number, example in enumerate(getattr(cause, kind), 1):
            yield pytest.param(cause, example, id=f"{cause.code}-{number}")


@pytest.mark.parametrize(("cause", "example"), [*examples("positive")])
def test_a_positive_example_names_its_cause_first(cause: CauseKind, example: str) -> None:
    diagnosis = explained(example).diagnosis()
    named = diagnosis.causes or diagnosis.observations
    assert named, example
    assert named[0].code == cause.code, [each.title for each in named]
    assert named[0].next_step
    assert named[0].title in diagnosis.summary or not diagnosis.causes


@pytest.mark.parametrize(("cause", "example"), [*examples("negative")])
def test_a_negative_example_does_not_name_the_cause(cause: CauseKind, example: str) -> None:
    diagnosis = explained(example).diagnosis()
    assert cause.code not in {each.code for each in (*diagnosis.causes, *diagnosis.observations)}


@pytest.mark.parametrize("example", HEALTHY)
def test_no_cause_names_a_session_in_which_nothing_failed(example: str) -> None:
    diagnosis = explained(example).diagnosis()
    assert (diagnosis.causes, diagnosis.observations) == ((), ())


_QUESTION = ex.asked("elicitation/create", message="b", requestedSchema={"type": "object", "properties": {}})


def call_with(**arguments: object) -> str:
    return ex.request("tools/call", name="a", arguments=arguments)


def failed_with(text: str) -> str:
    return ex.done(2, text, isError=True)


def signing_in(*steps: str) -> str:
    """Return a sign-in after which the client is not signed in."""
    offered = {"issuer": ex.ISSUER, "address": ex.ISSUER, "pkce": ["S256"]}
    metadata = ex.oauth("server metadata", 200, 62, **offered, names=["issuer", "registration_endpoint"])
    resource = {"resource": f"{ex.ISSUER}/mcp", "address": ex.ISSUER, "path": "/mcp"}
    return ex.unauthorized(ex.oauth("resource metadata", 200, 61, **resource), metadata, *steps)


def refused(step: str, status: int, words: str, *names: str) -> str:
    error, _, description = words.partition(": ")
    return ex.oauth(step, status, 65, error=error, error_description=description, names=[*names])


def compared(step: str, status: int, words: str = "", **fields: object) -> str:
    """Return a refused step whose values were compared."""
    error, _, description = words.partition(": ")
    return ex.oauth(step, status, 65, error=error, error_description=description, **fields)


def with_token(**fields: object) -> str:
    """Return a refused call whose token was compared."""
    step = ex.oauth("challenge", 401, 3, authorized=True, **fields)
    return ex.session("@ http", ex.request("initialize"), ex.answered(401, ex.WITH_TOKEN), step)


_REGISTERED = ex.oauth("registration", 201, 64, names=["client_name", "redirect_uris"])
_TEMPLATES = ex.result(2, resourceTemplates=[{"name": "a", "uriTemplate": "notes://b/{name}"}])

SIDES = (
    (
        ex.session(
            "@ http",
            *(ex.listed("a"), ex.call(3)),
            ex.answered(401, {}, {"www-authenticate": 'Bearer resource_metadata="http://127.0.0.1:3001/a"'}),
        ),
        "token-missing",
        "",
    ),
    (signing_in(compared("authorize", 400, differs=["redirect_uri"])), "oauth-token", "client"),
    (
        signing_in(_REGISTERED, compared("authorize", 400, "invalid redirect_uri", same=["redirect_uri"])),
        "oauth-token",
        "server",
    ),
    (
        signing_in(compared("authorize", 302, "invalid_scope", same=["scope"])),
        "authorization-refused",
        "server",
    ),
    (
        signing_in(compared("authorize", 302, "invalid_scope", differs=["scope"])),
        "authorization-refused",
        "client",
    ),
    (
        signing_in(compared("authorize", 302, "invalid_target", differs=["resource"], names=["resource"])),
        "authorization-refused",
        "client",
    ),
    (signing_in(compared("token", 400, "invalid_grant", differs=["code_verifier"])), "oauth-token", "client"),
    (
        signing_in(compared("token", 400, "invalid_grant: PKCE failed", same=["code_verifier"])),
        "oauth-token",
        "server",
    ),
    (signing_in(compared("token", 400, "invalid_grant", same=["code_verifier"])), "oauth-token", ""),
    (with_token(differs=["access_token"]), "token-refused", ""),
    (with_token(differs=["audience of the token"]), "token-refused", ""),
    (with_token(expires=1), "token-refused", ""),
    (with_token(expires=1, same=["access_token"]), "token-refused", "client"),
    (ex.first_answer(404, {":path": "/mcp/mcp"}), "posted-elsewhere", ""),
    (ex.first_answer(404, {":path": "/other"}), "posted-elsewhere", "configuration"),
    (ex.first_answer(404, {":path": "/mcp/"}), "wrong-endpoint", ""),
    (
        ex.first_answer(
            401, ex.WITH_TOKEN, {"www-authenticate": 'Bearer error_description="Token is expired"'}
        ),
        "token-refused",
        "",
    ),
    (
        ex.first_answer(401, ex.WITH_TOKEN, {"www-authenticate": 'Bearer error="invalid_token"'}),
        "token-refused",
        "",
    ),
    (signing_in(refused("authorize", 422, "Unrecognized client_id")), "oauth-token", ""),
    (signing_in(refused("authorize", 401, "invalid_client: Unknown client_id")), "oauth-token", "client"),
    (
        signing_in(
            "+ 0.5",
            *(ex.oauth("authorize", 302, number, names=["code_challenge"]) for number in (66, 67)),
            refused("token", 400, "invalid_grant", "code", "code_verifier"),
        ),
        "oauth-token",
        "client",
    ),
    (
        signing_in(
            refused("registration", 400, "invalid_client_metadata: Requested scopes are not valid", "scope")
        ),
        "oauth-registration",
        "",
    ),
    (
        ex.session(
            "@ http",
            *(ex.call(), ex.answered(200, ex.WITH_TOKEN), ex.done()),
            *(
                ex.call(3),
                ex.answered(
                    401, ex.WITH_TOKEN, {"www-authenticate": 'Bearer error_description="Token expired"'}
                ),
            ),
        ),
        "token-refused",
        "",
    ),
    (
        signing_in(
            refused(
                "authorize", 400, "invalid_request: http://localhost:5/cb does not match CIMD redirect_uris"
            )
        ),
        "oauth-token",
        "server",
    ),
    (
        signing_in(refused("authorize", 400, "invalid_client: Unknown client or redirect_uri")),
        "oauth-token",
        "",
    ),
    (signing_in(refused("authorize", 302, "invalid_target", "resource")), "authorization-refused", ""),
    (
        signing_in(refused("authorize", 302, f"invalid_target: {ex.ISSUER}/mcp is unknown", "resource")),
        "authorization-refused",
        "server",
    ),
    (
        signing_in(
            _REGISTERED, refused("authorize", 302, "unauthorized_client: redirect_uri http://127.0.0.1:5")
        ),
        "authorization-refused",
        "server",
    ),
    (
        signing_in(
            refused("authorize", 302, "invalid_request: Missing parameter: code_challenge", "code_challenge")
        ),
        "authorization-refused",
        "server",
    ),
    (
        signing_in(
            refused("token", 401, "invalid_client: client_id is required", "grant_type", "client_secret")
        ),
        "oauth-token",
        "client",
    ),
    (
        signing_in(refused("token", 401, "unauthorized_client: Invalid client_id", "client_id")),
        "oauth-token",
        "",
    ),
    (
        signing_in(
            ex.oauth("token", 200, 65, names=["client_id", "code"]),
            ex.http("GET", 401, 66, {"accept": "text/event-stream"}),
        ),
        "no-token-issued",
        "",
    ),
    (
        ex.session(call_with(path="/x/y"), failed_with("ENOENT: no such file, open '/x/y'")),
        "file-missing",
        "",
    ),
    (
        ex.session(call_with(), failed_with("ENOENT: no such file or directory, open '/x/y'")),
        "file-missing",
        "",
    ),
    (
        ex.session(call_with(url="http://b.c/d"), failed_with("getaddrinfo ENOTFOUND b.c")),
        "name-not-resolved",
        "",
    ),
    (ex.session(call_with(), failed_with("Request failed with status code 403")), "service-refused-key", ""),
    (ex.session(call_with(), failed_with("Invalid date: use YYYY-MM-DD")), "request-failed", ""),
    (ex.session(call_with(), failed_with("'NoneType' object is not iterable")), "request-failed", "server"),
    (ex.session(ex.listed("a"), ex.note("exit", code=None, signal="SIGTERM")), "crash", ""),
    (ex.session(ex.call(), ex.stderr("KeyboardInterrupt"), ex.exited(130)), "crash", ""),
    (
        ex.session(ex.call(), ex.asked("roots/list"), "+ 60", ex.cancelled()),
        "client-did-not-respond",
        "client",
    ),
    (
        ex.session("@ client={}", ex.call(), ex.asked("roots/list"), "+ 60", ex.cancelled()),
        "client-did-not-respond",
        "server",
    ),
    (
        ex.session("@ bare", ex.initialize(), ex.asked("roots/list"), "+ 60", ex.cancelled(1)),
        "client-did-not-respond",
        "server",
    ),
    (ex.session(ex.call(), _QUESTION, ex.END), "client-did-not-respond", ""),
    (ex.session(ex.call(), ex.END), "no-response", ""),
    (ex.session("@ bare", ex.initialize(), ex.cancelled(1), ex.welcome()), "start-slow", ""),
    (ex.not_started("SyntaxError: Unexpected token } in JSON at position 14"), "start-failed", ""),
    (ex.not_started("TypeError: Invalid URL"), "start-failed", ""),
    (
        ex.not_started(
            "ModuleNotFoundError: No module named 'weather_mcp'", 1, '@ bare command=["uvx","weather-mcp"]'
        ),
        "module-missing",
        "server",
    ),
    (
        ex.not_started(
            "npm error notarget No matching version found for @b/c@^9.",
            1,
            '@ bare command=["npx","-y","weather"]',
        ),
        "module-missing",
        "",
    ),
    (
        ex.not_started(
            "Error: ENOENT: no such file or directory, open '/app/b.md'",
            1,
            '@ bare command=["node","/app/c.js"]',
        ),
        "file-missing",
        "",
    ),
    (
        ex.not_started("/bin/sh: 1: uv: not found", 127, '@ bare command=["docker","run","-i","b"]'),
        "command-not-found",
        "",
    ),
    (ex.not_started("Host key verification failed.", 255), "start-failed", ""),
    (
        ex.not_started("called `Result::unwrap()` on an `Err` value: NotPresent"),
        "setting-missing",
        "configuration",
    ),
    (ex.session(call_with(), failed_with("spawn ffmpeg ENOENT")), "program-not-started", ""),
    (
        ex.session(call_with(host="10.0.0.5"), failed_with("connect ECONNREFUSED 10.0.0.5:22")),
        "service-unreachable",
        "",
    ),
    (ex.session(ex.call(), ex.CLIENT_CLOSED, ex.exited(1)), "crash", ""),
    (
        ex.session(
            *(
                '@ bare command=["./mvnw","spring-boot:run"]',
                ex.initialize(),
                "<< [INFO] Scanning for projects...",
            ),
            *(ex.CLIENT_CLOSED, ex.exited(143)),
        ),
        "stdout-noise",
        "configuration",
    ),
    (
        ex.session(
            *('@ bare command=["npx","-y","notes"]', ex.initialize(), "<< added 42 packages in 3s"),
            *(ex.welcome(), ex.CLIENT_CLOSED, ex.exited(0)),
        ),
        "stdout-noise",
        "",
    ),
    (
        ex.session(
            *('@ bare command=["npm","run","start"]', ex.initialize(), "<< Notes server started"),
            *(ex.welcome(), ex.CLIENT_CLOSED, ex.exited(0)),
        ),
        "stdout-noise",
        "server",
    ),
    (
        ex.session(
            *(ex.listed("a"), ex.request("tools/call", 3, name="a")),
            ex.error(
                'Invalid arguments for tool a: [{"expected":"object","code":"invalid_type","path":[]}]',
                -32602,
                3,
            ),
        ),
        "invalid-arguments",
        "",
    ),
    (
        ex.session(
            '@ bare command=["notes","--transport","stdio"]', ex.initialize(), "+ 60", ex.cancelled(1)
        ),
        "nothing-on-stdout",
        "server",
    ),
    (
        ex.session('@ bare command=["notes","--transport=http"]', ex.initialize(), "+ 60", ex.cancelled(1)),
        "nothing-on-stdout",
        "configuration",
    ),
    (
        ex.session("@ bare", ex.request("server/discover", 1), "+ 60", ex.END),
        "nothing-on-stdout",
        "",
    ),
    (
        ex.session('@ bare command=["notes","--sse"]', ex.initialize(), "+ 60", ex.cancelled(1)),
        "nothing-on-stdout",
        "configuration",
    ),
    (
        ex.session(
            ex.listed("a"),
            ex.call(3),
            ex.done(3, "Error: Could not connect to Unity. Ensure the Editor is running"),
        ),
        "error-swallowed",
        "",
    ),
    (
        ex.session(ex.call(), failed_with("Cannot start the callback server: Port 8000 is already in use")),
        "port-in-use",
        "",
    ),
    (
        ex.not_started(
            "sh: /c/_npx/15/node_modules/.bin/notes: Permission denied",
            126,
            '@ bare command=["npx","-y","notes"]',
        ),
        "permission-denied",
        "",
    ),
    (
        ex.not_started(
            "error: Failed to install: torch.whl (torch==2) Caused by: No space left on device (os error 28)"
        ),
        "disk-full",
        "environment",
    ),
    (
        ex.session(
            *(
                ex.request("resources/templates/list"),
                _TEMPLATES,
                ex.request("resources/read", 3, uri="notes://b/c"),
            ),
            ex.error("Unknown resource URI: 'notes://b/c'", -32602, 3),
        ),
        "listed-unknown",
        "server",
    ),
    (
        ex.session(
            *(
                ex.request("resources/templates/list"),
                _TEMPLATES,
                ex.request("resources/read", 3, uri="notes://b/c"),
            ),
            ex.error("Resource not found: notes://b/c", -32002, 3),
        ),
        "listed-unknown",
        "",
    ),
    (
        ex.not_started("IO exception: Could not set lock on file: /home/b/.config/notes/notes.db"),
        "start-failed",
        "",
    ),
    (
        ex.not_started(
            "ModuleNotFoundError: No module named 'mcp.server.fastmcp'",
            1,
            '@ bare command=["uv","run","--with","mcp[cli]","mcp","run","/srv/notes.py"]',
        ),
        "module-missing",
        "server",
    ),
    (
        ex.not_started(
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/c/_npx/4/node_modules/domutils/lib/index.js' imported from "
            "/c/_npx/4/node_modules/htmlparser2/dist/index.js",
            1,
            '@ bare command=["npx","notes"]',
        ),
        "package-broken",
        "",
    ),
    (
        ex.not_started(
            "Error: ENOENT: no such file or directory, stat 'C:\\Notes\\My'",
            1,
            '@ bare command=["npx","-y","files","C:\\\\Notes\\\\My","Own","Texts"]',
        ),
        "file-missing",
        "",
    ),
    (
        ex.not_started(
            "No solution found when resolving tool dependencies: Because only fitz==0.0.0 is available and notes==1.0 depends on "
            "fitz>=0.0.1.",
            1,
            '@ bare command=["uvx","notes"]',
        ),
        "module-missing",
        "",
    ),
    (
        ex.session(
            *(
                "@ http",
                ex.call(),
                ex.done(),
                ex.call(3),
                ex.answered(400, {"mcp-session-id": "s-1"}, "No valid session ID provided"),
            ),
            *(ex.initialize(4), ex.answered(400, {"mcp-session-id": "s-1"}, "No valid session ID provided")),
        ),
        "session-lost",
        "server",
    ),
    (
        ex.session("@ http", ex.call(), ex.answered(202, {}, {"content-type": "application/json"}), ex.END),
        "post-without-response",
        "server",
    ),
    (
        ex.session(
            ex.listed(ex.with_schema(properties={"name": {"type": "string"}})),
            *(ex.call(3), ex.done(3, "Error: Field 'name' is required, but it was missing", isError=True)),
        ),
        "invalid-arguments",
        "server",
    ),
    (
        ex.session(
            "@ bare", ">> {not json", ex.initialize(), ex.stderr("Error: ConnectionClosed"), ex.exited(1)
        ),
        "start-failed",
        "",
    ),
    (
        ex.unauthorized(
            *(ex.METADATA, ex.oauth("authorize", 302, names=["client_id", "response_type", "state"])),
            *(ex.oauth("token", 200, 64, names=["code", "resource"]), ex.request("initialize")),
            ex.answered(
                403,
                ex.WITH_TOKEN,
                {"www-authenticate": 'Bearer error="insufficient_scope", scope="notes:read"'},
            ),
        ),
        "token-refused",
        "client",
    ),
)
"""Sessions, the cause that comes first, and the side: an empty one if the recording does not decide it."""


@pytest.mark.parametrize(("example", "code", "side"), SIDES)
def test_a_side_is_named_only_where_the_session_decides_it(example: str, code: str, side: str) -> None:
    first = explained(example).diagnosis().causes[0]
    assert (first.code, first.side) == (code, side), first.title


def test_every_cause_has_an_example() -> None:
    assert {cause.code for cause in CAUSES if not cause.positive} == WITHOUT_EXAMPLES


def test_every_cause_has_a_summary_and_the_reasons_for_it() -> None:
    for cause in CAUSES:
        assert cause.summary[0].islower()
        assert not cause.summary.endswith(".")
        assert cause.explanation.endswith(".")


def test_every_area_defines_causes() -> None:
    assert {cause.claims.__module__ for cause in CAUSES} == {area.__name__ for area in AREAS}


def rules_in(source: str) -> set[str]:
    return set(re.findall(r"\b(?:AGENT|AUTH|DATA|ENV|EXT|HOST|HTTP|LIFE|MOD|REC|SEC)\d{3}\b", source))


def test_a_cause_declares_the_rules_that_it_names() -> None:
    for cause in CAUSES:
        if cause.claims.__name__ != "claims":  # Made from a row.
            assert rules_in(inspect.getsource(cause.claims)) <= cause.rules, cause.code


def test_the_rules_that_are_checked_are_those_that_the_causes_name() -> None:
    modules = Path(str(causes.__file__)).parent.glob("*.py")
    assert rules_in("".join(path.read_text(encoding="utf-8") for path in modules)) == READ_RULES
    assert {rule.code for rule in RULES} >= READ_RULES


@pytest.mark.parametrize("url", ["https://[your-host]/mcp", "//["])
def test_an_invalid_url_of_a_peer_does_not_end_explain(url: str) -> None:
    resource, named = {"resource": url, "servers": [url]}, {"address": url, "path": "/mcp"}
    for example in (
        ex.unauthorized(ex.oauth("resource metadata", 200, 62, **resource, **named, names=["resource"])),
        ex.first_answer(401, {}, {"www-authenticate": f'Bearer resource_metadata="{url}"'}),
        ex.list_answer(307, {}, {"location": url}),
        ex.session("@ sse bare 2024-11-05", ex.note("sse", event="endpoint", data=url), ex.initialize()),
    ):
        assert all("first page" not in cause.title for cause in explained(example).diagnosis().causes)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("connect ECONNREFUSED 127.0.0.1:5432", "service-unreachable"),
        ("401 Unauthorized: invalid api key", "service-refused-key"),
        ("ENOSPC: no space left on device, write", "disk-full"),
    ],
)
@pytest.mark.parametrize("media_type", ["application/json", "text/event-stream"])
def test_an_error_has_the_same_cause_in_an_event_stream(words: str, code: str, media_type: str) -> None:
    answered = ex.answered(200, {}, {"content-type": media_type})
    diagnosis = explained(ex.session("@ http", ex.call(), answered, failed_with(words))).diagnosis()
    assert diagnosis.causes[0].code == code


def test_an_answer_without_an_id_is_to_the_notification_if_each_request_has_its_own() -> None:
    sent = ex.session("+ 0.01", ex.notified(">", "notifications/x"), ex.request("tools/list"))
    received = ex.session('< {"id":null,"result":{}}', ex.result(tools=[]), ex.END)
    (cause, *_) = (
        explained(ex.session("@ bare", ex.initialize(), ex.welcome(), sent, received)).diagnosis().causes
    )
    assert "had answered a notification" in cause.title
    assert "a notification gets no response" in cause.next_step
