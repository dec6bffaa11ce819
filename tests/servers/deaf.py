"""Ignores EOF, SIGTERM and EPIPE, answers every line, and stays until somebody kills it."""

import os
import signal


def say(text: str) -> None:
    """Say one line, at once, heard or not."""
    try:
        os.write(1, text.encode() + b"\n")
    except OSError:
        pass


signal.alarm(60)  # A test that fails must not leave it behind for good.
signal.signal(signal.SIGTERM, lambda *_: say('{"ignored":"SIGTERM"}'))
say(f'{{"pid":{os.getpid()}}}')
while data := os.read(0, 65536):
    for line in data.splitlines():
        say(f'{{"heard":{line.decode()}}}')
say('{"ignored":"EOF"}')
while True:
    signal.pause()
