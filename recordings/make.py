"""Create the recordings of this folder from the real peers.

    .venv/bin/python recordings/make.py [NAME...]

Defines the commands of each recording, and keeps details of the machine out of it: clients and servers run in a
neutral folder, with a neutral environment, under names found on PATH. If a recording contains a path, a name or a
variable of the machine anyway, it is not written. Needs the peers: `make peers`.
"""

from __future__ import annotations

import argparse
import asyncio
import getpass
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mcpspy.core.recording.decode import Entry, Note
from mcpspy.io.recording.tail import follow

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEERS = ROOT / ".peers"
CLIENTS = ROOT / "tests" / "peers" / "clients"
SDK_SERVER = ROOT / "tests" / "peers" / "servers" / "sdk_server.py"
README = HERE / "README.md"

DEMO = Path("/tmp/mcpspy-demo")
"""Working folder of the servers: the only folder that recordings may name."""

LIMIT = 300_000
"""Maximum bytes of a recording: every clone of the repository contains all of them."""

SECONDS = 60
"""Time limit of a client; the clients give up after 30 seconds."""

ADA = "/home/ada/demo"
"""The root that the SDK client offers; this folder does not exist."""

NEUTRAL = (f"/private{DEMO}", str(DEMO), ADA)

FOLDERS = (
    "bin boot dev etc home lib media mnt nix opt private proc root run sbin snap srv sys tmp Users usr var "
    "Volumes work workspace workspaces"
)
"""Folders in the root of common systems."""

VARIABLES = "HOME HOSTNAME LOGNAME PATH PWD SHELL USER USERNAME VIRTUAL_ENV"
"""Variables of which every dump of an environment contains some."""


class Recipe(NamedTuple):
    """The commands of one recording."""

    name: str
    client: str
    """The client's command, without `mcpspy run` and the server's command."""
    server: str
    shows: str
    twice: str = ""
    """Description of a second file, `NAME-2.jsonl`, if the client starts the server's command twice."""

    @property
    def files(self) -> dict[str, str]:
        """File names, with their descriptions."""
        first = {f"{self.name}.jsonl": self.shows}
        return {**first, f"{self.name}-2.jsonl": self.twice} if self.twice else first


class Machine(NamedTuple):
    """Texts of this machine that must not be in a recording."""

    names: frozenset[str] = frozenset()
    """Of the host and the user."""
    values: frozenset[str] = frozenset()
    """Of environment variables, and paths."""

    @classmethod
    def this(cls) -> Machine:
        """Return the machine this runs on."""
        values = {value for value in os.environ.values() if len(value) >= 12}
        paths = {str(path) for path in (ROOT, Path.home(), Path(sys.prefix)) if path != Path("/")}
        return cls(frozenset({socket.gethostname(), getpass.getuser()}), frozenset(values | paths))


def traces(text: str, machine: Machine) -> Iterator[str]:
    """Yield the details of the machine that a recording contains; it should contain none."""
    for folder in NEUTRAL:
        text = text.replace(folder, "")
    for found in re.finditer(rf"/(?:{FOLDERS.replace(' ', '|')})(?![\w.-])[^\s\"\\]*", text):
        yield f"the path {found[0]}"
    for found in re.finditer(rf"\b(?:{VARIABLES.replace(' ', '|')})(?:=|\\*\" *:)", text):
        yield f"the variable {found[0]}"
    for name in sorted(machine.names):
        # Alone, the name may be a common word: `root` is a term of MCP.
        if re.search(rf"[\"'/@=\s]{re.escape(name)}[\"'/@.:,\s\\]", text):
            yield f"the name {name}"
    for value in sorted(machine.values):
        if value in text:
            yield f"the value {value}"


def make(recipe: Recipe) -> None:
    """Record, check, and only then replace the existing file."""
    shutil.rmtree(DEMO, ignore_errors=True)
    DEMO.mkdir(mode=0o700)
    shutil.copy(SDK_SERVER, DEMO)
    with tempfile.TemporaryDirectory(prefix="mcpspy-made-") as folder:
        target = Path(folder) / f"{recipe.name}.jsonl"
        client, *options = recipe.client.split()
        subprocess.run(
            [
                *COMMANDS[client],
                *options,
                *("--", "mcpspy", "run", "--name", recipe.name, "--record", str(target), "--"),
                *recipe.server.split(),
            ],
            cwd=DEMO,
            env=environment(Path(folder)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=SECONDS,
            check=True,
        )
        made = sorted(path.name for path in target.parent.glob("*.jsonl"))
        if made != sorted(recipe.files):
            raise SystemExit(
                f"{recipe.name}: expected {', '.join(sorted(recipe.files))}, got {', '.join(made)}"
            )
        for name in made:
            path = target.with_name(name)
            asyncio.run(asyncio.wait_for(ended(path), SECONDS))
            text = path.read_text(encoding="utf-8")
            for trace in traces(text, Machine.this()):
                raise SystemExit(f"{name}: not written, because it contains {trace}")
            if len(text.encode()) > LIMIT:
                raise SystemExit(f"{name}: not written, because it is larger than {LIMIT} bytes")
            print(f"{name}: {text.count(chr(10)) - 1} entries, {len(text.encode())} bytes")
        for name in made:
            new = HERE / f".{name}.new"
            shutil.copyfile(target.with_name(name), new)
            new.replace(HERE / name)


async def ended(path: Path) -> None:
    """Wait for the end of a recording; the client may exit before its server."""
    last: Entry | None = None
    async for entry in follow(path):
        last = entry
    if not (isinstance(last, Note) and last.kind == "exit"):
        raise SystemExit(f"{path.name}: not written, because it has no end")


FIRST: tuple[Path, ...] = ()
"""Folders of commands that have precedence: tests replace some by others that start faster."""


def environment(home: Path) -> dict[str, str]:
    """Return an environment with a PATH to the commands, and nothing else of this machine."""
    folders = (*FIRST, PEERS / "venv" / "bin", PEERS / "node_modules" / ".bin", Path(sys.executable).parent)
    path = os.pathsep.join([*map(str, folders), os.environ["PATH"]])
    return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8"}


def table() -> str:
    """Return the README's table."""
    rows = ["| file | client | server | content |", "|---|---|---|---|"]
    for recipe in RECIPES:
        for name, shows in recipe.files.items():
            rows.append(f"| `{name}` | `{recipe.client}` | `{recipe.server}` | {shows} |")
    return "\n".join(rows)


def main() -> None:
    """Create the recordings that the command line names, or all of them."""
    names = [recipe.name for recipe in RECIPES]
    parser = argparse.ArgumentParser(description="Create the recordings again.")
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"one of {', '.join(names)}; default: all")
    selected = parser.parse_args().names
    if unknown := set(selected) - set(names):
        parser.error(f"unknown recording: {', '.join(sorted(unknown))}")
    if not (PEERS / "installed").exists():
        parser.error("the peers are not installed (run make peers)")
    for recipe in RECIPES:
        if not selected or recipe.name in selected:
            make(recipe)
    shutil.rmtree(DEMO, ignore_errors=True)
    before, start, rest = README.read_text(encoding="utf-8").partition("<!-- table -->\n")
    _, end, after = rest.partition("<!-- end of table -->\n")
    if not end:
        parser.error(f"{README.name}: no marks around the table")
    README.write_text(f"{before}{start}{table()}\n{end}{after}", encoding="utf-8")


COMMANDS = {
    "sdk.py": ["python", str(CLIENTS / "sdk.py")],
    "load.py": ["python", str(CLIENTS / "load.py")],
    "ts_client.mjs": ["node", str(CLIENTS / "ts_client.mjs")],
    "inspector.sh": [str(CLIENTS / "inspector.sh")],
}
"""The commands of the clients in tests/peers/clients."""

RECIPES = (
    Recipe(
        "everything-sdk-legacy",
        "sdk.py --script everything --mode legacy",
        "mcp-server-everything stdio",
        "All features of 2025-11-25: tools, structured content, an image, prompts, resources, completion, progress, "
        "logging, subscriptions; server requests, whose ids start at 0: roots, sampling, elicitation by form "
        "and by URL; errors -32602 and -32042, and `isError` results",
    ),
    Recipe(
        "everything-sdk-auto",
        "sdk.py --script everything --mode auto",
        "mcp-server-everything stdio",
        "The same after a probe: `server/discover` is rejected with -32601, `initialize` follows on the same pipe",
    ),
    Recipe(
        "everything-sdk-modern",
        "sdk.py --script everything --mode 2026-07-28",
        "mcp-server-everything stdio",
        "A 2026-07-28 client, and a server that does not support this revision and responds anyway: no handshake, "
        "no `resultType`, and a server that never sends its name",
    ),
    Recipe(
        "everything-inspector-task",
        "inspector.sh --method tools/call --tool-name simulate-research-query --tool-arg topic=owls",
        "mcp-server-everything stdio",
        "A task of 2025-11-25, polled for 4 s: `tools/call` with `task`, `tasks/get`, `notifications/tasks/status`, "
        "`tasks/result`; a server that runs for 2 s after its stdin was closed, until SIGTERM ends it",
    ),
    Recipe(
        "everything-ts-auto",
        "ts_client.mjs --mode auto --tool get-tiny-image",
        "mcp-server-everything stdio",
        "The probe of a client that starts the command twice: `server/discover`, rejected",
        "The session after that probe: `initialize`, `tools/list` and an image",
    ),
    Recipe(
        "filesystem-sdk-legacy",
        "sdk.py --script filesystem --mode legacy --dir files",
        f"mcp-server-filesystem {DEMO}/files",
        "Files written, read, listed, edited (the result is a diff) and searched; "
        "`isError` results for a path outside of the folder and for a missing argument",
    ),
    Recipe(
        "memory-sdk-auto",
        "sdk.py --script memory --mode auto --dir graph",
        "mcp-server-memory",
        "A rejected probe, then a small graph: entities, relations and observations are created, searched and deleted",
    ),
    Recipe(
        "memory-inspector-auto",
        "inspector.sh --method tools/list --protocol-era auto",
        "mcp-server-memory",
        "The Inspector's probe, on the same pipe, with a string as its id",
    ),
    Recipe(
        "peer-sdk-legacy",
        "sdk.py --script sdk --mode legacy",
        "python sdk_server.py",
        "2025-11-25 with a Python server: progress, a call that is cancelled and never answered, "
        "elicitation accepted and declined, log messages, a blob, text in three scripts",
    ),
    Recipe(
        "peer-sdk-auto",
        "sdk.py --script sdk --mode auto",
        "python sdk_server.py",
        "2026-07-28 after a successful `server/discover`: `input_required`, and the same call again with "
        "`inputResponses`, `subscriptions/listen` with one event, a cancelled call, `_meta` in every request",
    ),
    Recipe(
        "peer-sdk-modern",
        "sdk.py --script sdk --mode 2026-07-28",
        "python sdk_server.py",
        "The same without the probe: the first line is a `tools/list`",
    ),
    Recipe(
        "peer-inspector-modern",
        "inspector.sh --method tools/call --tool-name add --tool-arg a=2 b=40 --protocol-era modern",
        "python sdk_server.py",
        "The Inspector in 2026-07-28: a probe, a call, and a subscription with the id `listen:0`, which the server "
        "ends with -32000 when its stdin is closed",
    ),
    Recipe(
        "peer-ts-auto",
        "ts_client.mjs --mode auto",
        "python sdk_server.py",
        "The probe of a client that starts the command twice: a successful `server/discover`; "
        "then SIGTERM, in any case",
        "The session after that probe: no handshake of any kind, two requests",
    ),
)
"""All recordings of this folder."""

if __name__ == "__main__":
    main()
