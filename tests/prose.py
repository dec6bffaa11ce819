"""Words and patterns that the project's prose does not use, and the prose they are searched in.

    python tests/prose.py PATH…     lists every offence

Reads docstrings and string literals by `ast`, comments, and Markdown without its code.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

UNITS = (
    "line|file|session|message|request|row|call|server|client|host|response|exchange|test|record|key|value|word|frame|"
    "chunk|process|connection|byte|rule|run|method|tool|name|page|target|command|screen|stream|module|package|part"
)

LINKING = "after|and|as|at|before|by|for|from|has|if|in|into|is|of|on|or|than|that|to|was|when|with|without"

BANNED = {
    r"\b(?:for|to|from|by|with|of|let|lets|than|if|as) who(?:ever)?\b": "name the actor: people who, the client that",
    r"\b(?:told|tells|telling|tell (?:of|it|\w+ apart|apart))\b": "reports, prints, states, recognised, distinguished",
    r"\b(?:says(?! so\b)|said|saying)\b": "prints, states, reports",
    r"(?<!there )(?<!where )\b(?:is|are|was|were) no (?!longer\b|more\b|one\b|\w+er than\b)": "is not a",
    r"\b(?:nobody|somebody|anybody|whoever|a person)\b": "the user, the client, no one",
    r"\b(?:we|us|ours?|ourselves)\b": "mcpspy, injected, generated",
    r"\b(?:stands?|stood|standing)\b(?! (?:in|out)\b)": "is, is located, appears",
    r"\b(?:goes|go|went|gone|going) on\b": "is forwarded, continues",
    r"\bbut for\b": "except",
    r"\bbesides\b": "also",
    r"\banew\b": "again",
    r"\bamiss\b": "wrong",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\bof (?:its|his|her|their|my|your) own\b": "its own",
    r"\b(?:so many|so long|so much|as asked for)\b": "N, for S seconds, as configured",
    rf"\b(?:an?|one|no) (?!(?:{LINKING})\b)[\w-]+ an? (?:{UNITS})\b": "one … per …",
    r"\bcosts? (?:a|an|one|no) ": "prints a warning, takes",
    r"\bodd(?:ity|ities|ly)?\b": "protocol issue, unusual",
    r"\bto the byte\b": "byte for byte",
    r"\b(?:fares?|faring|fared)\b": "fail, work",
    r"\btorn\b": "incomplete",
    r"\basides?\b": "events, off",
    r"\b(?:all|just) the same\b": "anyway, also",
    r"\b(?:knock(?:s|ed)?|looked into|lets? go of|has a hand|the house)\b": "the standard term",
    r"\b(?:detour|errand|passage|shelf|shelves|patient|desk|lanes?|strangers?|guests?|visitors?)\b": "see ARCHITECTURE.md",
    r"\b(?:thereof|whence|whereby|wherein|thereby|hence|hither|thither|lest|ere|nought|naught|aught)\b": "plain",
}

FREE_RELATIVE = re.compile(r"(?:What|Whether|Which|Who|Whom|Whose|How|That|Where|When|Why)\b")

PATTERN = re.compile(
    rf"\b(?:{'|'.join(f'(?P<p{index}>{text})' for index, text in enumerate(BANNED))})", re.IGNORECASE
)
ADVICE = list(BANNED.values())

STRING_OR_COMMENT = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"'
    r"|'''(?:[^'\\]|\\.|'(?!''))*'''|'(?:[^'\\\n]|\\.)*'|(?P<comment>#[^\n]*)",
    re.DOTALL,
)
"""A string of Python 3.11, in which no quotes are nested, or a comment. `tokenize` takes 20 times as long."""


class Text(NamedTuple):
    """A piece of prose."""

    path: str
    line: int
    kind: str
    text: str


class Offence(NamedTuple):
    """A use of a banned word."""

    path: str
    line: int
    found: str
    context: str
    advice: str


def offences(texts: Iterator[Text]) -> Iterator[Offence]:
    for path, line, kind, text in texts:
        if kind == "docstring" and (match := FREE_RELATIVE.match(text.lstrip())):
            yield Offence(
                path, line, match[0], text.strip().splitlines()[0], "a noun phrase or an imperative verb"
            )
        prose = re.sub(r"`[^`\n]*`", lambda code: "`" * len(code[0]), text)
        for match in PATTERN.finditer(prose):
            at = text.count("\n", 0, match.start())
            start, end = max(0, match.start() - 50), match.end() + 50
            context = " ".join(text[start:end].split())
            advice = ADVICE[int((match.lastgroup or "p0")[1:])]
            yield Offence(path, line + at, match[0], context, advice)


def prose(path: Path) -> Iterator[Text]:
    text = path.read_text(encoding="utf-8")
    return python(str(path), text) if path.suffix == ".py" else markdown(str(path), text)


def python(path: str, source: str) -> Iterator[Text]:
    tree = ast.parse(source)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            for statement in node.body:
                if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                    continue
                if isinstance(text := statement.value.value, str):
                    docstrings.add(id(statement.value))
                    yield Text(path, statement.lineno, "docstring", text)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in docstrings:
            continue
        if isinstance(node.value, str) and " " in node.value.strip():
            yield Text(path, node.lineno, "string", node.value)
    for found in STRING_OR_COMMENT.finditer(source):
        if (comment := found["comment"]) is not None:
            yield Text(path, source.count("\n", 0, found.start()) + 1, "comment", comment.lstrip("# "))


def markdown(path: str, source: str) -> Iterator[Text]:
    """Yield a Markdown page without its fenced code."""
    yield Text(path, 1, "page", without_code(source))


def without_code(source: str) -> str:
    """Return a Markdown page whose fenced blocks are empty lines."""
    fenced = r"^( *)(```+|~~~+).*?^\1\2[^\S\n]*$"
    return re.sub(fenced, lambda code: "\n" * code[0].count("\n"), source, flags=re.DOTALL | re.MULTILINE)


def long_lines(source: str) -> list[int]:
    """Return the numbers of lines of prose over 120 characters; tables, code and lone links may be longer."""
    return [
        number
        for number, line in enumerate(without_code(source).splitlines(), 1)
        if len(line) > 120 and not line.lstrip().startswith(("|", "<", "![", "[")) and " " in line.strip()
    ]


def main(arguments: list[str]) -> int:
    files = [
        file
        for argument in arguments
        for file in (sorted(Path(argument).rglob("*.py")) if Path(argument).is_dir() else [Path(argument)])
    ]
    count = 0
    for file in files:
        for offence in offences(prose(file)):
            count += 1
            print(f"{offence.path}:{offence.line}: {offence.found!r} ({offence.advice}): {offence.context}")
    print(f"{count} in {len(files)} files", file=sys.stderr)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
