"""Generator of docs/lint.md from the rules: `make docs`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from mcpspy.analysis.lint import RULES, LintRule
from mcpspy.analysis.lint.rules import FAMILIES
from mcpspy.ui.report.lint_scan import visible

WIDTH = 120

LONGEST = 400

HEAD = """\
# mcpspy lint

Checks a session for violations of the MCP specification and for common mistakes.
This page is generated from the rules; `mcpspy lint --explain CODE` prints the section of one rule.

```console
$ mcpspy lint weather.jsonl
weather.jsonl:7 ENV101 error: not JSON on stdout
    | DEBUG: 3 stations in cache
weather.jsonl:12 LIFE302 error: progress of tools/call after its response
    | {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":3}}
2 errors in 1 recording
```

Each finding begins with the file of the recording and the line in it (`sed -n 7p weather.jsonl`). The text after `|`
is the offending part. The text format prints at most ten findings per rule and recording; `--all` prints all of them,
and so do the other formats.

```sh
mcpspy lint                                    # the last session
mcpspy lint weather.jsonl recordings/          # files, sessions by name or id, folders
mcpspy lint last --select ENV,SEC              # only these codes or prefixes of codes
mcpspy lint last --ignore DATA205 --select DATA
mcpspy lint last -q 'tool:forecast since:-5m'  # only findings on messages that match the filter (filter.md)
mcpspy lint last --fail-on warning             # exit with 1 for warnings, too
mcpspy lint last --format sarif > lint.sarif   # text, json, sarif, junit, github
mcpspy lint recordings/ --statistics           # the number of findings per rule, as text or JSON
mcpspy lint --explain LIFE302
```

| severity | meaning |
|---|---|
| `error` | the specification requires it (MUST), and some peer fails otherwise |
| `warning` | the specification recommends it (SHOULD), or the message is allowed but nearly always a mistake |
| `info` | worth knowing |

If `--select` and `--ignore` both match a rule, the longer prefix wins.

Each rule applies to the revisions listed with it. mcpspy uses the negotiated revision, or from 2026-07-28 on the
revision in each request. Until the revision is known, only rules for all revisions apply.

Exit codes: 0 no findings at or above `--fail-on` (default `error`); 1 findings; 2 usage error, or not a recording;
3 recording cannot be read.

The letters of a code name the family of the rule, the digits the rule. Codes are never reused for another rule.
`mcpspy show --follow --lint` ([show.md](show.md)) and the terminal UI ([tui.md](tui.md)) report the same findings
live. [lint-findings.md](lint-findings.md) explains findings in sessions of well-known SDKs.

mcpspy reads a recording once, in constant memory. It forgets requests and events more than 4,096 back, so it detects
a second response only if the first is not older. It fetches nothing: an external `$ref` in a schema is reported but
not followed.

## Settings of a project

mcpspy reads the nearest `mcpspy.toml`, or `pyproject.toml` with a table `tool.mcpspy`, in the current folder or above
it, up to a folder with `.git`; without one, the `mcpspy.toml` in the user's config folder. `--config FILE` names
another file. In `mcpspy.toml`, the tables are `[lint]` and `[lint.servers."…"]`.

```toml
[tool.mcpspy.lint]
select = ["ENV", "LIFE", "DATA"]
ignore = ["DATA205"]
fail-on = "warning"

[tool.mcpspy.lint.servers."weather*"]  # sessions with such a name (mcpspy ls)
ignore = ["LIFE402"]
fail-on = "error"
```

The `ignore` of a server is added to the general one; its `select` and `fail-on` replace the general ones. An option on
the command line replaces the same setting, also that of servers.

## Baseline

A baseline is a file of known findings, so that only new ones count, in every format and for the exit code:

```console
$ mcpspy lint recordings/ --baseline lint-baseline.json --update-baseline
no new findings in 15 recordings
lint-baseline.json: 78 findings written (78 new), 0 entries removed
$ mcpspy lint recordings/ --baseline lint-baseline.json
no new findings in 15 recordings
lint-baseline.json: 85 known findings not shown
```

The report lists the entries that no longer occur, of the servers and rules that were checked; `--update-baseline`
removes them. Equal findings are one entry, however often they occur.

Findings are compared by a fingerprint of the session's name, the rule, the sender, the method, its subject (such as the
tool), the message, and the offending part unless that is a whole message. Lines, the order of messages, ids, times,
UUIDs and separate numbers do not count. The JSON format has it as `fingerprint`, SARIF as
`partialFingerprints`.

## Examples

Each rule has examples, which the tests run. `>` is the client, `<` the server. Omitted parts are valid: the member
`"jsonrpc":"2.0"`, the handshake of 2025-11-25, and in 2026-07-28 the `_meta` of requests and `resultType` of results.

| line | |
|---|---|
| `@ 2026-07-28 http` | another revision, or HTTP; `bare`: without a handshake |
| `> {…}`, `< {…}` | a message |
| `>> …`, `<< …` | exactly these bytes; `\\x0d` at the end is CR LF, `\\x04` no line ending |
| `= 200 {…} {…}` | HTTP: the status, and changes to the headers of request and response (`null`: removed) |
| `* exit {…}` | a note of the recording ([format.md](format.md)) |
"""


def page() -> str:
    return HEAD + "".join(_lines())


def _lines() -> Iterator[str]:
    for family, about in FAMILIES.items():
        rules = [rule for rule in RULES if rule.family == family]
        yield f"\n## {family}: {about}\n\n| code | | finding | revisions |\n|---|---|---|---|\n"
        for rule in rules:
            yield f"| [{rule.code}](#{rule.code.lower()}) | {rule.severity} | {_cell(rule.summary)} | {rule.revisions} |\n"
        for rule in rules:
            yield from _rule(rule)


def _rule(rule: LintRule) -> Iterator[str]:
    yield f"\n### {rule.code}\n\n"
    yield _wrapped(f"**{rule.summary}** · {rule.severity} · {rule.revisions} · [specification]({rule.url})")
    yield "\n" + _wrapped(rule.explanation)
    for title, examples in (("Wrong", rule.invalid), ("Right", rule.valid)):
        written = "\n\n".join("\n".join(map(str.strip, example.strip().splitlines())) for example in examples)
        yield f"\n{title}:\n\n```text\n{_short(written)}\n```\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"


def _short(text: str) -> str:
    lines = map(visible, text.split("\n"))
    return "\n".join(line if len(line) <= LONGEST else line[: LONGEST - 1] + "…" for line in lines)
