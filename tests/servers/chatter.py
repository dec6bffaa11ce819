"""Floods stdout, read or not, and meanwhile repeats every line of stdin on stderr; exits at EOF."""

import os
import threading


def flood() -> None:
    """Write for as long as the process lives."""
    line = b'{"jsonrpc":"2.0","method":"chatter"}\n' * 100
    while True:
        os.write(1, line)


threading.Thread(target=flood, daemon=True).start()
while data := os.read(0, 65536):
    os.write(2, data)
os._exit(0)
