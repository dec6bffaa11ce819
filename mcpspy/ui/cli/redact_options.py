"""The options that say what is redacted, the same for every command that writes a recording.

Imports next to nothing: `mcpspy run` reads its options before it starts the server.
"""

from __future__ import annotations

from mcpspy.io.recording.redaction import RedactionOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from mcpspy.io.recording.recorder import RecordingTarget

OPTIONS: dict[str, tuple[str | None, str]] = {
    "--no-redact": (None, "keep secrets in the recording, which then says so"),
    "--redact-key": ("NAME", "what stands under this key is secret, too; may be given again"),
    "--redact-pattern": (
        "REGEX",
        "what this finds in any text is secret, or its first group; may be given again",
    ),
    "--redact-pointer": (
        "POINTER",
        "what stands there in a message: /params/arguments/pin; may be given again",
    ),
    "--redact-env": ("NAME", "the value of this variable, wherever it shows up; may be given again"),
    "--config": ("FILE", "settings (default: mcpspy.toml in the user's config folder)"),
}

_LISTS = {
    f"--redact-{kind}": f"{kind}s" if kind != "env" else kind for kind in ("key", "pattern", "pointer", "env")
}


def take(asked: RedactionOptions, flag: str, value: str) -> bool:
    """Keep an option that is one of these; say whether it was."""
    if flag in _LISTS:
        getattr(asked, _LISTS[flag]).append(value)
    elif flag == "--no-redact":
        asked.off = True
    elif flag == "--config":
        asked.config = value
    else:
        return False
    return True


def configure(parser: argparse.ArgumentParser, *, can_be_off: bool = True) -> None:
    from mcpspy.ui.cli.options import describe

    options = {flag: OPTIONS[flag] for flag in OPTIONS if can_be_off or flag != "--no-redact"}
    describe(parser, options, repeated=_LISTS)


def asked(args: argparse.Namespace) -> RedactionOptions:
    found = RedactionOptions()
    for flag, name in _LISTS.items():
        setattr(found, name, getattr(args, flag[2:].replace("-", "_")))
    found.off = getattr(args, "no_redact", False)
    found.config = args.config
    return found


def check(asked: RedactionOptions) -> None:
    """Raise UsageError or CannotStart for what cannot be done. `run` does without: its server starts first."""
    from mcpspy.io.recording.redaction import redactor

    redactor(asked, lambda _: None)


def record(where: RecordingTarget, args: argparse.Namespace, command: str) -> None:
    """Set where to record, and what to redact, by the options of `RECORDING`. Raises UsageError or CannotStart."""
    where.recording, where.record, where.folder = not args.no_record, args.record, args.dir
    where.redaction = asked(args)
    check(where.redaction)
    if getattr(args, "max_size", None) is not None:
        from mcpspy.ui.cli.size import read_size

        where.max_size = read_size(f"{command}: --max-size", args.max_size)
