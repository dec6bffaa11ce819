"""The arguments of the command that starts the server: missing, joined, or a placeholder."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.start import before_answer, is_runner_alone
from mcpspy.analysis.explain.causes.troubles import trouble_of
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import BUG, clause, evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ServerEnd, Violation
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.session.exchange import State

_SETTINGS = ("service-refused-key", "setting-missing", "name-not-resolved", "file-missing")
"""Troubles that a placeholder in place of a value brings about."""


@cause(
    "command-incomplete",
    "the command starts other programs, and its arguments name none",
    Level.EXACT,
    positive=(
        ex.not_started("Usage: uvx [OPTIONS] [COMMAND]", 2, '@ bare command=["uvx"]'),
        ex.not_started(
            'docker: "docker run" requires at least 1 argument',
            1,
            '@ bare command=["docker","run","-i","--rm"]',
        ),
        ex.session(
            '@ bare command=["npx","-y"]',
            *(
                ex.initialize(),
                ex.stderr("sh: 1: {method:initialize,jsonrpc:2.0}: not found"),
                "+ 60",
                ex.cancelled(1),
            ),
        ),
    ),
    negative=ex.not_started("Usage: uvx [OPTIONS] [COMMAND]", 2, '@ bare command=["uvx","mcp-weather"]'),
)
def command_incomplete(facts: Facts) -> Iterator[Claim]:
    """uvx, npx, docker and others print their usage without the name of a package, image or file in
    their arguments.
    """
    found = [(symptoms, end.error) for end, symptoms in before_answer(facts)]
    if not found and is_runner_alone(
        facts
    ):  # npx alone starts a shell, which reads the messages as commands.
        found = [
            ([each], "") for each in facts.failed(State.CANCELLED, State.UNANSWERED) if each.is_handshake
        ]
    names_no_image = any(_NO_IMAGE.search(line.text) for line in facts.first_stderr)
    for symptoms, error in found:
        if not error and (is_runner_alone(facts) or names_no_image):
            title = f"the command is {quote(' '.join(facts.command))!r} alone: it names no server to start"
            next_step = 'add the name of the package, image or file to "args" in the host\'s configuration'
            lines = [line.evidence for line in facts.first_stderr[:2]]
            side = "configuration"
            yield Claim(title, next_step, symptoms, evidence=lines, side=side)


_NO_IMAGE = re.compile(r"\b(?:docker|podman)\b.{0,40} requires at least 1 arg")

_ABOUT_ARGUMENTS = re.compile(
    r"(?i)no such file|not found|unknown|unrecogni[sz]ed|unexpected|usage:|invalid|ENOENT|cannot (?:open|find|read)|bad option|named  \w"
)
_MODULE = re.compile(r"(?i)\bmodules?\b(?! named  \w)|\bpackages?\b")
"""The name of a module of Python that begins with a blank was an argument with its option."""
_JOINED = re.compile(r"^--?[A-Za-z][\w-]* +\S|^[a-z][\w-]* (?:\S+ )*--?[A-Za-z]")
"""An option with its value in one argument, or a command with its options, as a line of a shell has them."""


@cause(
    "arguments-joined",
    "an option and its value are one argument",
    Level.EXACT,
    positive=(
        ex.not_started(
            "Error: No such file or directory", 1, '@ bare command=["notes","-c\\u0020/srv/notes.json"]'
        ),
        ex.not_started(
            "error: unrecognized subcommand 'run --with a b.py'",
            2,
            '@ bare command=["uv","run\\u0020--with\\u0020a\\u0020b.py"]',
        ),
    ),
    negative=ex.not_started(
        "Error: No such file or directory", 1, '@ bare command=["notes","-c","/srv/a.json"]'
    ),
)
def arguments_joined(facts: Facts) -> Iterator[Claim]:
    """Hosts start servers without a shell, so nothing divides an argument at its blanks: the program looks for a file
    whose name begins with a blank, or for an option with this whole name.
    """
    joined = [word for word in facts.command[1:] if _JOINED.search(word)]
    printed = " ".join(line.text for line in facts.first_stderr)
    if not _ABOUT_ARGUMENTS.search(printed) or _MODULE.search(printed):
        return
    # Commands and code as text are one argument: sh -c, python -c, docker run … sh -c.
    for end, symptoms in before_answer(facts) if joined and "-c" not in facts.command else ():
        option, _, value = joined[0].partition(" ")
        what = "an option and its value" if option.startswith("-") else "several arguments"
        title = f"the argument {quote(joined[0], 80)!r} holds {what}, and a host divides no arguments"
        title += clause(end.named.text if end.named else "")
        next_step = f'write two items into "args": {quote(option, 40)!r} and {quote(value.strip(), 60)!r}'
        if not option.startswith("-"):
            next_step = 'write each word of it as one item into "args"'
        lines = [line.evidence for line in [*facts.first_stderr][-1:]]
        yield Claim(title, next_step, symptoms, evidence=lines, side="configuration")


_BAD_KEY = ex.not_started("Error: Invalid API key provided")


@cause(
    "placeholder-not-replaced",
    "a setting is a placeholder, and not a value",
    Level.EXACT,
    rules="AGENT103",
    positive=_BAD_KEY.replace(
        "@ bare", ex.session("@ bare", ex.note("placeholders", variables=["WEATHER_API_KEY"]))
    ),
    negative=(_BAD_KEY,),
)
def placeholder_not_replaced(facts: Facts) -> Iterator[Claim]:
    """Not every host expands ${VARIABLE} in its configuration, and examples are copied with
    YOUR_API_KEY in them.
    """
    for note_, place in facts.notes.get("placeholders", [])[:1]:
        names = [str(name) for key in ("variables", "arguments") for name in note_.fields.get(key, [])]
        shown = ", ".join(quote(name, 60) for name in names[:3])
        ends = [(end, explained) for end, explained in before_answer(facts) if not _is_of_program(end, names)]
        symptoms = [each for _, explained in ends for each in explained]
        for failed in facts.failed():
            trouble = trouble_of(failed.words[:600], at_start=False) if failed.side == CLIENT else None
            if trouble is not None and trouble.code in _SETTINGS:
                symptoms.append(failed)
        told = (
            next((line for line in facts.stderr if "${" in line.text), None)
            if facts.server.messages
            else None
        )
        hidden = [
            each for each in facts.violations("AGENT103") if told is not None or _is_about_setting(each)
        ]
        symptoms = symptoms or [*hidden]
        quoted = f"; {quote(symptoms[0].lines[0].text)}" if symptoms and symptoms[0].lines else ""
        title = f"the server got a placeholder in place of a value: {shown}{quoted}"
        next_step = (
            "write the value itself into the host's configuration, or set the variable where the host "
            "starts: this host does not replace the placeholder; in a package that brings its configuration, its author has to"
        )
        homes = [word for word in facts.command if word.startswith("~")]
        if homes and not note_.fields.get("variables"):
            # Some hosts replace it, some do not.
            title = f"the path {quote(homes[0], 80)!r} begins with ~, which neither the host nor the program replaced{quoted}"
            next_step = (
                "write the whole path into the host's configuration: this host starts no shell, which would replace ~; or let "
                "the host replace it"
            )
        # The user, the host, or a package that brings its own configuration left it so.
        lines = [evidence(place, f"a placeholder: {shown}"), *([told.evidence] if told is not None else [])]
        yield Claim(title, next_step, symptoms, evidence=lines, is_observation=not symptoms)


def _is_about_setting(violation: Violation) -> bool:
    """Return whether a failure that is hidden in a result is one that a wrong value of a setting brings about."""
    texts = [f"{each.message} {each.excerpt}" for each in violation.findings]
    troubles = [trouble_of(text[:600], at_start=False) for text in texts]
    return any(each is not None and each.code in _SETTINGS for each in troubles)


_OF_PROGRAM = (
    "module-missing",
    "package-broken",
    "runtime-version",
    "system-too-old",
    "program-not-in-package",
    "port-in-use",
)
"""Troubles that no value of a setting brings about."""


def _is_of_program(end: ServerEnd, names: list[str]) -> bool:
    """Return whether a server ended by an error of its program, which names none of the placeholders."""
    text = "" if end.named is None else end.named.text
    if any(name in text for name in names) or "${" in text:
        return False
    trouble = trouble_of(text, at_start=True)
    return BUG.search(text) is not None or (trouble is not None and trouble.code in _OF_PROGRAM)
