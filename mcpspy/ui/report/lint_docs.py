"""docs/lint.md, generated from the rules: `make docs`."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint import RULES, LintRule
from mcpspy.analysis.lint.rules import FAMILIES
from mcpspy.ui.report.lint_scan import visible

LONGEST = 400

HEAD = """\
# mcpspy lint

Says what a session does that the protocol does not allow, or that mostly turns out to be a mistake.
This page is written from the rules themselves; `mcpspy lint --explain CODE` prints the part of it that is about one.

```console
$ mcpspy lint weather.jsonl
weather.jsonl:7 ENV101 error: not JSON on stdout
    | DEBUG: 3 stations in cache
weather.jsonl:12 LIFE302 error: progress of tools/call after its answer
    | {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":3}}
2 errors in 1 recording
```

A line says where: the file of the recording, and its line there (`sed -n 7p weather.jsonl`). The text after `|` is
the offending part. Of one rule ten findings are shown; `--all` shows all of them, and so do the other formats.

```sh
mcpspy lint                                    # the last session
mcpspy lint weather.jsonl recordings/          # files, sessions by name or id, folders
mcpspy lint last --select ENV,SEC              # only these: codes, or how they begin
mcpspy lint last --ignore DATA205 --select DATA
mcpspy lint last -q 'tool:forecast since:-5m'  # only findings on what the filter finds (filter.md)
mcpspy lint last --fail-on warning             # exit with 1 for warnings, too
mcpspy lint last --format sarif > lint.sarif   # text, json, sarif, junit, github
mcpspy lint --explain LIFE302
```

`error`: the specification says MUST, and some peer will fail over it. `warning`: it says SHOULD, or what is done is
allowed and nearly always a mistake. `info`: worth knowing. Of two options that name the same rule, the longer one counts.

Each rule holds for the revisions it names, and looks at the revision that the two have agreed on (or, from 2026-07-28 on,
that a request says of itself). Until that is known, only rules that hold for all revisions look.

Exit codes: 0 nothing at or above `--fail-on` (default `error`); 1 findings; 2 usage, or not a recording; 3 cannot be read.

What a code says: its letters are the family, its number the rule. Codes are never given to another rule.
The same is said as it happens by `mcpspy show --follow --lint` ([show.md](show.md)) and by the terminal UI ([tui.md](tui.md)).
Findings that sessions of well-known SDKs have, and why, are in [lint-findings.md](lint-findings.md).

A recording of any length is read once, in memory that does not grow; requests and events of more than 4,096 ago are
forgotten, so an answer that comes twice is known as such only near the first. Nothing is ever fetched: a `$ref` that
leads out of its schema is told, and not followed.

## The examples

Each rule carries examples; the tests run them. `>` is the client, `<` the server. What an example leaves out is as it should be:
`"jsonrpc":"2.0"`, the handshake of 2025-11-25 before it, in 2026-07-28 the `_meta` of a request and the `resultType` of a result.

| line | |
|---|---|
| `@ 2026-07-28 http` | another revision, or HTTP; `bare`: nothing precedes |
| `> {…}`, `< {…}` | a message |
| `>> …`, `<< …` | exactly these bytes; `\\x0d` at the end is CR LF, `\\x04` no line end at all |
| `= 200 {…} {…}` | HTTP: the status, and what is different in the headers of request and response (`null`: not there) |
| `* exit {…}` | a note of the recording ([format.md](format.md)) |
"""


def page() -> str:
    return HEAD + "".join(_lines())


def _lines() -> Iterator[str]:
    for family, about in FAMILIES.items():
        rules = [rule for rule in RULES if rule.family == family]
        yield f"\n## {family}: {about}\n\n| code | | what is wrong | revisions |\n|---|---|---|---|\n"
        for rule in rules:
            yield f"| [{rule.code}](#{rule.code.lower()}) | {rule.severity} | {_cell(rule.summary)} | {rule.revisions} |\n"
        for rule in rules:
            yield from _rule(rule)


def _rule(rule: LintRule) -> Iterator[str]:
    yield f"\n### {rule.code}\n\n"
    yield f"**{rule.summary}** · {rule.severity} · {rule.revisions} · [specification]({rule.url})\n\n"
    yield " ".join(rule.explanation.split()) + "\n"
    for title, examples in (("Wrong", rule.invalid), ("Right", rule.valid)):
        written = "\n\n".join("\n".join(map(str.strip, example.strip().splitlines())) for example in examples)
        yield f"\n{title}:\n\n```text\n{_short(written)}\n```\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _short(text: str) -> str:
    lines = map(visible, text.split("\n"))
    return "\n".join(line if len(line) <= LONGEST else line[: LONGEST - 1] + "…" for line in lines)
