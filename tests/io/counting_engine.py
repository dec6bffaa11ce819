"""An engine for `test_engine`: it counts, and what it does on `order` is named there."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

from mcpspy.io.engine import EngineViewer, serve


async def count(viewer: EngineViewer) -> None:
    viewer.send("hello", config=viewer.config)
    while True:
        order = await viewer.orders.get()
        what = order["order"]
        if what == "end":
            return
        if what == "fail":
            raise ValueError("broken on purpose")
        if what == "print":
            print("not an event")
            viewer.send("printed")
        elif what == "block":
            viewer.send("blocking")
            time.sleep(60)  # noqa: ASYNC251 - a bug that stops the loop.
        elif what == "child":
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-c", "import sys; sys.stdin.read()", stdin=subprocess.PIPE
            )
            viewer.send("started", pid=child.pid)
        elif what == "many":
            for number in range(order["count"]):
                viewer.send("number", number=number)
                await viewer.drained()


if __name__ == "__main__":
    serve(count)
