"""Ignores EOF, SIGTERM and EPIPE, responds to every line, and runs until it is killed."""

import os
import signal


def write(text: str) -> None:
    """Write one line at once; ignore a closed pipe."""
    try:
        os.write(1, text.encode() + b"\n")
    except OSError:
        pass


signal.alarm(60)  # A failing test must not leave it running forever.
signal.signal(signal.SIGTERM, lambda *_: write('{"ignored":"SIGTERM"}'))
write(f'{{"pid":{os.getpid()}}}')
while data := os.read(0, 65536):
    for line in data.splitlines():
        write(f'{{"heard":{line.decode()}}}')
write('{"ignored":"EOF"}')
while True:
    signal.pause()
