"""Runs of sdk.py that import the SDK only once: one process imports it, and forks.

    .peers/venv/bin/python tests/peers/clients/forking.py SOCKET

Prints a line when it listens, and ends at EOF on stdin. Each connection is one run: a line of JSON with `arguments`,
`folder` (the working folder) and `environment`, answered by a line with the run's process group, and, once the run and
all that it started have closed stdout and stderr, by `{"out": ..., "err": ..., "code": ...}`.
"""

import gc
import json
import os
import select
import signal
import socket
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import sdk


def main() -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen(16)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # The parent does not wait for the children that respond.
    gc.freeze()
    print("ready", flush=True)
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            answer(connection)
            os._exit(0)
        connection.close()


def answer(connection: socket.socket) -> None:
    """Run the client in a separate process group, and send its output."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection, connection.makefile("rwb") as lines:
        request = json.loads(lines.readline())
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        if (child := os.fork()) == 0:
            run(request, out_end, err_end)
        os.close(out_end)
        os.close(err_end)
        lines.write(b"%d\n" % os.getpid())
        lines.flush()
        with ThreadPoolExecutor(2) as pool, open(out, "rb") as out_file, open(err, "rb") as err_file:
            output, complained = pool.map(lambda file: file.read().decode(), (out_file, err_file))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        lines.write(json.dumps({"out": output, "err": complained, "code": code}).encode())


def run(request: dict[str, Any], out: int, err: int) -> NoReturn:
    """Run as `python sdk.py ARGUMENTS` does."""
    for file, number in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (err, 2)):
        os.dup2(file, number)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv[1:] = request["arguments"]
    code: object = 1
    try:
        code = sdk.main()
    except SystemExit as ended:  # By argparse.
        code = ended.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    main()
