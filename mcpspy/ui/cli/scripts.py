"""`mcpspy scripts`: the scripts that mcpspy contains, a skeleton, and the module for vitest."""

from __future__ import annotations

import argparse
import ast
import sys
from importlib.resources import files
from pathlib import Path

from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.scripts import BUILTIN, builtin_names, script_path
from mcpspy.ui.cli.options import Argument

EPILOG = """\
examples:
  mcpspy scripts
  mcpspy run --script builtin:cache --script-option ttl=300 -- python server.py
  mcpspy scripts new guard         writes guard.py and test_guard.py
  mcpspy scripts vitest > recorded.mjs

See docs/scripting.md, and docs/vitest.md for recorded.mjs: recordings in tests of vitest and Jest.

exit codes: 0; 2 usage error, or a file exists; 3 folder not writable
"""

SCRIPT = '''\
"""Refuse one tool, and tag slow responses."""

from mcpspy import LiveExchange

refused = ""


def configure(options: dict[str, str]) -> None:
    """Read the values of --script-option."""
    global refused
    refused = options.get("tool", "delete_everything")


def request(exchange: LiveExchange) -> None:
    """Decide on a request: return, or call answer, replace, drop, delay, hold, tag or note."""
    if exchange.method == "tools/call" and exchange.subject == refused:
        exchange.answer(error={"code": -32000, "message": f"{refused} is refused"})


def response(exchange: LiveExchange) -> None:
    """Decide on a response. Its request is in the same exchange."""
    if exchange.latency is not None and exchange.latency > 1:
        exchange.tag("slow")
'''

TEST = '''\
"""{name}.py in a session of `mcpspy run`, with a server that answers everything."""

import json
import subprocess
import sys
from pathlib import Path

SERVER = """
import json, sys
for line in sys.stdin:
    print(json.dumps({{"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": {{}}}}), flush=True)
"""


def call(tool: str) -> dict[str, object]:
    """Return the response to a call."""
    script = Path(__file__).with_name("{name}.py")
    spy = [sys.executable, "-m", "mcpspy", "run", "--no-record", "--script", str(script), "--"]
    params = {{"name": tool, "arguments": {{}}}}
    request = {{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}}
    done = subprocess.run(
        [*spy, sys.executable, "-c", SERVER], input=json.dumps(request) + "\\n", stdout=subprocess.PIPE, text=True
    )
    response: dict[str, object] = json.loads(done.stdout)
    return response


def test_the_tool_is_refused() -> None:
    assert call("delete_everything")["error"] == {{"code": -32000, "message": "delete_everything is refused"}}


def test_other_tools_are_forwarded() -> None:
    assert call("echo")["result"] == {{}}
'''


OPTIONS = (
    Argument("action", None, "default: list; vitest: print the module recorded.mjs", nargs="?",
        choices=["list", "new", "vitest"], default="list"),
    Argument("name", "NAME", "new: write NAME.py and test_NAME.py", nargs="?", requires="new",
        hint="use mcpspy scripts new NAME"),
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    if args.action == "new":
        return _write(args.name)
    if args.action == "vitest":
        sys.stdout.write(files("mcpspy.ui.scripts").joinpath("recorded.mjs").read_text(encoding="utf-8"))
        return 0
    for name in builtin_names():
        text = Path(script_path(BUILTIN + name)).read_text(encoding="utf-8")
        about = " ".join((ast.get_docstring(ast.parse(text)) or "").split())
        sys.stdout.write(f"{BUILTIN}{name}\n    {about}\n")
    return 0


def _write(name: str | None) -> int:
    if name is None or not name.isidentifier():
        raise UsageError(f"scripts new: {name or 'missing NAME'}: not a name", "use letters, digits and _")
    texts = {Path(f"{name}.py"): SCRIPT, Path(f"test_{name}.py"): TEST.format(name=name)}
    for path in texts:
        if path.exists():
            raise UsageError(f"scripts new: {path} exists", "choose another name")
    for path, text in texts.items():
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CannotStart(f"scripts new: {path}: {error.strerror}", "check the folder") from None
        sys.stdout.write(f"{path}\n")
    return 0
