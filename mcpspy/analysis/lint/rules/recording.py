"""What is missing in the recording: findings beside it may be owed to that."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.finding import Kind
from mcpspy.analysis.lint.rule import INFO, Rules, Told
from mcpspy.analysis.lint.seen import Seen

RULES = Rules()
rule = RULES.rule


@rule(
    "REC101",
    INFO,
    "entries that are missing",
    page="https://www.rfc-editor.org/rfc/rfc8259",
    on=Kind.NOTE,
    about=("lost", "damaged"),
    valid=('* stderr {"text":"a"}',),
    invalid=(
        '* lost {"entries":3,"why":"No space left on device"}',
        '* damaged {"why":"not JSON","text":"{"}',
    ),
)
def missing(seen: Seen) -> Iterator[Told]:
    """The disk was full, or a line of the file was changed: what was there was not looked at, and an answer to what
    is missing looks like one that nobody asked for.
    """
    fields = seen.note.fields
    if seen.note.kind == "lost":
        yield Told(f"{fields.get('entries')} entries are missing here: {fields.get('why')}")
    else:
        yield Told(f"a line that no entry can be read from: {fields.get('why')}", fields.get("text"))
