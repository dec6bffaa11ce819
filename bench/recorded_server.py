"""A server that sends the recorded response to each request, found by its id, to record a long session again.

It shares no code with the measured program.

    python -P bench/recorded_server.py FILE
"""

from __future__ import annotations

import json
import sys

answers = {}
with open(sys.argv[1], "rb") as file:
    for line in file:
        _, found, message = line.partition(b'"from":"server","msg":')
        if found:
            message = message.rstrip()[:-1]
            answers[json.loads(message)["id"]] = message + b"\n"

for line in sys.stdin.buffer:
    request = json.loads(line)
    if "id" in request:
        sys.stdout.buffer.write(answers[request["id"]])
        sys.stdout.buffer.flush()
