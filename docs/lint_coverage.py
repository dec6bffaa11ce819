"""Generator of docs/lint-coverage.md: the requirements of the specification, the rules for them, and their recall."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterator

from mcpspy.analysis.lint.rule import SPECIFICATION
from mcpspy.core.protocol.spec import REVISIONS
from tests.analysis.lint.corpus import TRANSPORTS, Requirement, Violation, requirements, violations
from tests.analysis.lint.extension_corpus import pairs
from tests.analysis.lint.extension_corpus import requirements as extension_requirements

ABOUT = """# Coverage of the specification

`mcpspy lint` compared with the specification: every MUST, MUST NOT, SHOULD and SHOULD NOT on the pages of the five
revisions, and the shapes of their schemas. Equal requirements of several revisions are one row. A rule finds
violations in a recording; a requirement without rules cannot be decided from the messages, for the reason given.

The rows are `tests/analysis/lint/requirements.toml`. `tests/analysis/lint/violations.toml` has violations of each
decidable requirement, written from the specification, which are played in every revision that has it and over every
transport; a test runs the rules on them. `docs/make.py` generates this page from both.
"""


EXTENSIONS = """
## Extensions

The pages of the final extensions, of Server Cards, of the authorization extensions with DPoP, and of the draft of
Events; and requirements of the core whose violations were missed until then.
`tests/analysis/lint/extension_violations.toml` has violations of each decidable requirement, written from the
specifications, each with a twin: the same recording without the violation, in which no rule may find anything. Those of
Tasks, MCP Apps, Skills and the core are older than the rules, the others are not: only the
[unseen ones](#measured-with-unseen-violations) are a measure of what else is found. `before` is the number that the
rules found on 2026-11-28, before those for extensions were written.

| | violations | before | found | recall | clean twins |
|---|---|---|---|---|---|
"""

BEFORE = {"tasks": 8, "ui": 0, "skills": 0, "card": 0, "auth": 0, "events": 0, "core": 11}
"""Violations that the rules found on 2026-11-28 before those for extensions were written."""

UNSEEN = """
## Measured with unseen violations

On 2026-11-28, 166 violations of 2026-07-28 and of the final extensions were written as recordings from the pages
of the specification alone, each with a clean twin, and then compared with the rules for the first time. This is
how many the rules found then, and how many they find since. Four more turned out to be no violations that a
recording can decide, and do not count: a cursor that the server may have lost, a task of another session, a tool
with an app for a host without apps, and a directory that has changed since the skill was listed.

| | violations | found at first | found since |
|---|---|---|---|
| core | 82 | 77 (93.9%) | 82 |
| Streamable HTTP | 17 | 16 (94.1%) | 17 |
| Tasks | 22 | 22 (100.0%) | 22 |
| MCP Apps | 15 | 15 (100.0%) | 15 |
| Skills | 30 | 28 (93.3%) | 30 |
| all | 166 | 158 (95.2%) | 166 |

One of the eight crashed lint (a `blob` that is not ASCII), and one finding in the twins was wrong (a WAVE file
taken for WebP). The others: an error for an unsupported revision without its list or its status, the closure of a
subscription with the wrong id, a notification after it, a prompt without a required argument, nested skills, a
file read as a directory.

Then 113 more were written in the same way, in four rounds, 51 of them of the draft of Events. Three do not count:
an empty `contents` (the resource may be empty), an invalid `x-mcp-header` on stdio, where it has no effect, and
times of a task in the wrong order, which no page forbids.

| | violations | found at first | found since |
|---|---|---|---|
| final extensions, Server Cards and core | 59 | 57 (96.6%) | 59 |
| Events, before it had rules | 20 | 0 (0.0%) | 20 |
| Events, with the rules for the first 20 | 15 | 8 (53.3%) | 15 |
| Events, with the rules for these 35 | 16 | 12 (75.0%) | 16 |

The two of 59 were the output of a tool whose result is that of a task: wrong, or missing. No twin had a wrong
finding but those with a webhook: its secret, which the server needs, was taken for one in clear text (SEC301). The
text of Events is the design sketch of its working group. Webhooks themselves, which are sent to another address,
have their rule (EXT511) since then.
"""

REAL = """
## Real servers

On 2026-11-28, 45 servers from the package registries, in 108 sessions on stdio with the Python SDKs 1.30
(2025-11-25, 2025-06-18) and 2.3 (which chooses the revision): everything is listed, and each tool that changes
nothing is called once with arguments made from its schema. The machine was busy and had no network. Each of the
200 findings was judged by its kind, and some by their messages: none is known to be wrong. Three that were wrong
before (SEC301 in the pages of MCP Apps) led to a change of the rule, and a refused ping to LIFE205.
[lint-findings.md](lint-findings.md#real-servers) has other servers, also over HTTP.

| servers | findings | verdict |
|---|---|---|
| `bmi-calculator` 0.2.2, `calculator` 0.2.1, `converter` 0.2.0, `shell` 1.1.14, `sqlite` 2025.4.25, `text-editor` 1.0.2 | LIFE401 18 | right: they end with an exception under a newer SDK than theirs |
| `decisions` 1.0.2 | AGENT103 6, LIFE106 3, LIFE205 2 | right: `{"error": …}` without `isError`, and ping refused with -32601 |
| `duckduckgo` 0.7.0 | AGENT103 3, LIFE107 2 | right: log messages of a server that does not declare `logging` |
| `mathematics` 2.3.1 | AGENT103 15, LIFE106 6, LIFE402 1 | right: it asks clients for input that did not declare `elicitation` |
| `slack` 2025.4.25, `wikipedia` 2.0.1 | AGENT103 18, LIFE106 3 | right: `{"error": …}` without `isError` |
| `word` 1.1.11 | AGENT103 15, AGENT105 3, ENV101 12, LIFE404 1 | right: text on stdout, failures without `isError`, exit code 1 |
| `code-runner` 0.1.8 | ENV101 2, LIFE106 3 | right: text on stdout |
| `gitlab` 2025.4.25 | DATA202 18, LIFE106 3 | right: an inputSchema without `type` |
| `filesystem` 2026.8.31 | LIFE117 2, LIFE106 3 | right: embedded resources without the capability |
| `everything` 2026.8.31 | DATA706 2, LIFE402 2, SEC301 2 | right: a tool that must be a task, called as none; `get-env` returns keys |
| `excel` 2.2.2, `hashlib` 0.1.2 | DATA301 9, AGENT105 3, SEC301 6, LIFE402 2 | right: arguments made from the schema's short forms; a password in arguments |
| `pandoc` 0.11.1, `time` 2026.10.19 | LIFE106 3, LIFE402 2 | right: SIGTERM 2 s after stdin was closed |
| the 16 servers of MCP Apps 2.0.3 and 2.0.4, `brave-search`, `everart`, `github`, `google-maps`, `memory`, `sequential-thinking` | LIFE106 30 | right: the script lists what the server does not declare |
| `creator` 0.1.3, `fetch` 2026.10.24, `git` 2026.10.19 | none | |

Later on that day, 47 servers in TypeScript, Go, Rust and Python: 331 sessions, 189 of them over HTTP, with four
clients in four revisions: the Python SDKs 2.3 (which chooses the revision) and 1.30 (2025-06-18, 2025-11-25), the
TypeScript SDKs 2.4 (which chooses it) and 1.32 (2025-03-26, 2025-11-25), and twice with the client of FastMCP. They
list and read everything, complete, subscribe, and call up to five tools, also with progress, with a cancellation,
without the required arguments, and one that does not exist. 34 sessions could not begin, as the server refused or
ended. 684 findings: 539 on the two calls that are wrong on purpose (DATA301, DATA307) or on the polls of one client
(DATA712, HTTP104), the others below. Wrong were SEC203 in the icons of `gitlab` (15 findings) and a second finding on
the body of a 202 (3); both rules were changed, and are not counted. The verdict on a host was `works` with a server
that had ended before it listed a tool; now it is `unknown`.

| server | transport | sessions | other findings | verdict |
|---|---|--:|---|---|
| 16 servers of MCP Apps 2.0.3 and 2.0.4 (TypeScript) | stdio, HTTP | 112 | `pdf`: LIFE402 3, LIFE201 1, ENV119 1 | right: a call waits 30 s, also after stdin is closed; the client leaves amid a page of 1.6 MB |
| `@antv/mcp-server-chart` 0.9.10 | stdio, HTTP | 7 | DATA603 7 | right: -32601 for an unknown tool |
| `@currents/mcp` 2.1.1 | stdio, gateway | 7 | AGENT103 21 | right: a failure as text, without `isError` |
| `@mapbox/mcp-server` 0.2.0 | stdio, gateway | 7 | AGENT103 42 | right: it writes `is_error`, not `isError` |
| `@hubspot/mcp-server` 0.4.0 | stdio, gateway | 7 | DATA603 14 | right: it declares resources, and refuses their methods |
| `xcodebuildmcp` 2.7.0 | stdio, gateway | 7 | DATA603 14 | right: it declares `resources.subscribe`, and refuses it |
| `@shopify/dev-mcp` 1.16.0 | stdio, gateway | 7 | SEC205 7 | right: "MUST be called before any other" |
| `@cyanheads/git-mcp-server` 2.15.3 | stdio, HTTP | 7 | HTTP302 3 | right: `null` as the body of a 202 |
| `@aashari/boilerplate-mcp-server` 3.2.0, `mcp-server-code-runner` 0.1.8 | stdio, HTTP | 14 | ENV101 6 | right: text on stdout |
| `@wonderwhy-er/desktop-commander` 0.2.52, `@mui/mcp` 0.1.5 | stdio, gateway | 14 | LIFE402 6 | right: they end by SIGTERM, 2 s after stdin was closed |
| `@executeautomation/playwright-mcp-server` 1.0.12 | stdio, HTTP | 7 | LIFE201 2 | right: the client leaves amid a call, without a cancellation |
| `obsidian-mcp-server` 2.0.7, `mcp-server-sqlite-npx` 0.8.0, `@heroku/mcp-server` 1.2.8, `@upstash/mcp-server` 0.3.0 | stdio, gateway | 28 | LIFE401 12 | right: they end with code 1 instead of an answer |
| `kubernetes-mcp-server` 0.0.67 (Go) | stdio, HTTP | 7 | none | |
| `mcp-grafana` 2.1.1 (Go) | stdio, HTTP | 7 | none | |
| `jmrplens-gitlab-mcp-server` 3.3.0 (Go) | stdio, HTTP | 7 | none | |
| `docling-rs-mcp` 2.52.7 (Rust) | stdio, HTTP | 7 | MOD103 3 | right: no `serverInfo` in 2026-07-28, an info |
| `cnb-rs-mcp` 1.3.0 (Rust) | stdio, gateway | 7 | LIFE201 1, LIFE401 1, LIFE202 1 | right: it ends at a first message other than `initialize`; the client leaves amid a call |
| `fastmcp` 4.1.4 with `fastmcp-tasks` 4.1.4 (Python), tools as tasks and skills as resources | stdio, HTTP | 9 | DATA712 40, HTTP104 20 | right: its client polls after 0.3 s or less, where 5 s are asked for, and sends no `Mcp-Name` |
| `@brave/brave-search-mcp-server` 2.1.4, `airtable-mcp-server` 1.14.0 | stdio, HTTP | 14 | none | |
| `@eslint/mcp` 0.3.13, `exa-mcp-server` 3.4.1, `mcp-excalidraw-server` 2.0.0, `mcp-server-commands` 0.5.0, `@postman/postman-mcp-server` 2.13.0, `@sentry/mcp-server` 0.36.0, `@supabase/mcp-server-supabase` 0.13.0 | stdio, gateway | 49 | none | |

`gateway` is supergateway 4.0.0 over HTTP, for servers that have only stdio.

5,931 requests, results and notifications of these sessions were also validated with the JSON Schemas of the
specification. Each message that they reject has a finding.
"""

AREAS = {
    "tasks": "Tasks",
    "ui": "MCP Apps",
    "skills": "Skills",
    "card": "Server Cards",
    "auth": "authorization, DPoP",
    "events": "Events (draft)",
    "core": "core",
}


def page() -> str:
    return "".join(_lines())


def _lines() -> Iterator[str]:
    rows, cases = list(requirements().values()), violations()
    decidable = [row for row in rows if row.rules]
    yield f"{ABOUT}\n## Recall\n\n"
    yield (
        f"{sum(row.keywords for row in rows):,} key words are {len(rows)} requirements; {len(decidable)} of them "
        "can be decided.\n\n"
    )
    yield "| | violations | found | recall |\n|---|---|---|---|\n"
    yield _recall("all", cases)
    yield _recall("requirements in words", [case for case in cases if not _is_shape(case)])
    yield _recall("shapes of the schemas", [case for case in cases if _is_shape(case)])
    yield from _recalls(cases, REVISIONS, lambda case: (case.revision,))
    yield from _recalls(cases, TRANSPORTS, lambda case: (case.transport,))
    families = sorted({code.rstrip("0123456789") for row in rows for code in row.rules})
    yield from _recalls(cases, families, lambda case: {code.rstrip("0123456789") for code in case.expected})
    yield "\n`http` is Streamable HTTP, `sse` the HTTP+SSE of 2024-11-05. A violation counts for each family with a rule for it.\n"
    open_ids = sorted({case.requirement.id for case in cases if case.is_open})
    yield (
        "\n"
        + textwrap.fill(
            f"Violations of these requirements are not all found: {', '.join(open_ids) or 'none'}.", 120
        )
        + "\n"
    )
    yield "\n## Requirements\n\n| requirement | | page | revisions | rules, or why not decidable |\n|---|---|---|---|---|\n"
    for row in rows:
        yield _row(row)
    yield from _extensions()
    yield UNSEEN
    yield REAL


def _extensions() -> Iterator[str]:
    yield EXTENSIONS
    for area, title in AREAS.items():
        of_area = [pair for pair in pairs() if pair.requirement.area == area]
        found = sum(pair.is_found for pair in of_area)
        clean = sum(pair.is_clean for pair in of_area)
        yield (
            f"| {title} | {len(of_area)} | {BEFORE[area]} | {found} | {found / len(of_area):.1%} | {clean} |\n"
        )
    yield "\n| requirement | | page | rules, or why not decidable |\n|---|---|---|---|\n"
    for row in extension_requirements().values():
        codes = ", ".join(f"[{code}](lint.md#{code.lower()})" for code in row.rules)
        yield f"| {row.text} | {row.level} | [{row.where}]({row.url}) | {codes or row.undecidable} |\n"


def _is_shape(case: Violation) -> bool:
    return case.requirement.keywords == 0


def _recalls(
    cases: tuple[Violation, ...],
    names: tuple[str, ...] | list[str],
    of: Callable[[Violation], Collection[str]],
) -> Iterator[str]:
    for name in names:
        yield _recall(name, [case for case in cases if name in of(case)])


def _recall(name: str, cases: tuple[Violation, ...] | list[Violation]) -> str:
    found = sum(not case.is_open for case in cases)
    return f"| {name} | {len(cases):,} | {found:,} | {found / len(cases):.1%} |\n"


def _row(row: Requirement) -> str:
    last = row.where[-1]
    codes = ", ".join(f"[{code}](lint.md#{code.lower()})" for code in row.rules)
    revisions = " ".join(row.revisions) if row.revisions != REVISIONS else "all"
    title = last.partition("/")[2] or "overview"
    return f"| {row.text} | {row.level} | [{title}]({SPECIFICATION}{last}) | {revisions} | {codes or row.undecidable} |\n"
