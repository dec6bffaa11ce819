"""`mcpspy exec`: a program, and a forward proxy for it alone.

Owns what the program is told of the proxy, and what is told of its recordings
once it has ended. Nothing outside of its environment changes.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from mcpspy.io.recorder import say
from mcpspy.io.tls import forward, program
from mcpspy.io.tls.authority import authority, system_authorities
from mcpspy.io.tls.environment import named_authorities, variables


class Options(forward.Options):
    """What `mcpspy exec` was asked to do."""

    def __init__(self, command: list[str]) -> None:
        super().__init__("127.0.0.1", 0)
        self.command = command
        self.announces = False


def run(options: Options) -> int:
    """Run the program, and end as it ended. Raises CannotStart."""
    return program.leave(asyncio.run(_run(options)))


async def _run(options: Options) -> int:
    ours = authority()
    # What the program trusts by its environment, we trust in its place.
    options.authorities = named_authorities(os.environ)
    with tempfile.TemporaryDirectory(prefix="mcpspy-") as folder:
        bundle = Path(folder) / "bundle.pem"
        bundle.write_bytes(system_authorities() + options.authorities + ours.certificate.read_bytes())
        async with forward.forwarding(options, ours) as proxy:
            status = await program.run(options.command, variables(os.environ, proxy.url, os.fspath(bundle)))
    for upstream, path in proxy.recordings():
        say(f"{upstream}: recorded to {path}")
    if options.recording and not proxy.recordings() and not program.is_refusal(status):
        say(
            f"nothing recorded: {options.command[0]} said no MCP through the proxy (docs/exec.md: who takes one)"
        )
    return status
