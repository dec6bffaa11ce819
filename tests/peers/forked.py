"""Programs that make their imports only once: one process makes them, and each program is a fork of it.

    .peers/venv/bin/python tests/peers/forked.py FOLDER [MODULE…]

Imports the modules, or without any those of the SDK. Listens on a socket in FOLDER, which is named after its
environment, prints a line, and ends at EOF on stdin. While that folder is the last of PATH, a script of this
environment that imports this module before the others ends there: the fork gets its arguments, folder, environment and
standard streams, and runs the script. The first process forwards signals to it, and ends as it does, so that for its
parent it is the program. Importing the SDK takes more than a second of CPU time, mcpspy's commands 0.3 s, and mitmproxy
a second. tests/forks.py starts it.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

MODULES = """
    anyio httpx2 mcp mcp_types mcp_types.version mcp.client.auth mcp.client.sse mcp.client.stdio
    mcp.client.streamable_http mcp.client.subscriptions mcp.server.auth.settings mcp.server.fastmcp mcp.server.mcpserver
    mcp.server.sse mcp.server.streamable_http_manager mcp.shared._httpx_utils starlette.applications uvicorn
    uvicorn.lifespan.on uvicorn.loops.auto uvicorn.protocols.http.auto uvicorn.protocols.websockets.auto
""".split()
FORWARDED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
LONGEST = 1 << 16
"""The bytes of arguments and environment that one message holds."""


def socket_in(folder: str) -> str:
    return os.path.join(folder, f"{os.path.basename(sys.prefix)}.sock")


def hand_over() -> None:
    """Let a fork of the process that listens be this one. Return if there is none."""
    path = socket_in(os.environ.get("PATH", "").rpartition(os.pathsep)[2])
    if not os.path.exists(path):
        return
    order = {"arguments": sys.argv, "folder": os.getcwd(), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:  # Linux has it.
        connection.connect(path)
        for number in FORWARDED:
            signal.signal(number, lambda received, _: connection.send(b"%d" % received))
        socket.send_fds(connection, [json.dumps(order).encode()], [0, 1, 2])
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):  # The streams are those of the fork only: they end with it.
            os.dup2(null, number)
        code = int(connection.recv(LONGEST) or b"1")
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def main(folder: str, *modules: str) -> None:
    sys.modules["forked"] = sys.modules["__main__"]  # For the scripts, which import it.
    for module in modules:
        importlib.import_module(module)
    for module in () if modules else MODULES:
        with contextlib.suppress(ImportError):  # Half of them are of one version of the SDK.
            importlib.import_module(module)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(socket_in(folder))
    listener.listen(64)
    signal.signal(
        signal.SIGCHLD, signal.SIG_IGN
    )  # This process does not wait for those that watch the peers.
    gc.freeze()
    os.write(1, b"ready\n")
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            watch(connection)
        connection.close()


def watch(connection: socket.socket) -> None:
    """Fork the peer, pass it the signals of the process that it replaces, and end with either of them."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    data, streams, _, _ = socket.recv_fds(connection, LONGEST, 3)
    ended, end = os.pipe()
    if (peer := os.fork()) == 0:
        connection.close()
        os.close(ended)
        run(json.loads(data), streams)
    os.close(end)
    for stream in streams:
        os.close(stream)
    while ended not in select.select([connection, ended], [], [])[0]:
        received = connection.recv(LONGEST)
        os.kill(peer, int(received or signal.SIGKILL))
        if not received:
            break
    code = os.waitstatus_to_exitcode(os.waitpid(peer, 0)[1])
    with contextlib.suppress(OSError):
        connection.send(b"%d" % code)
    os._exit(0)


def run(order: dict[str, object], streams: list[int]) -> NoReturn:
    """Run a script as Python does."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv[:] = order["arguments"]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
    sys.exit()


if __name__ == "__main__":
    main(*sys.argv[1:])
else:
    hand_over()
