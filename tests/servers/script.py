"""Plays the server's lines of a file in order: `<` lines are sent, and for each `>` line a line is read first."""

import sys
from pathlib import Path

for line in Path(sys.argv[1]).read_bytes().splitlines():
    if line[:1] == b"<":
        sys.stdout.buffer.write(line[1:] + b"\n")
        sys.stdout.buffer.flush()
    elif sys.stdin.buffer.readline() != line[1:] + b"\n":
        sys.exit(f"expected {line!r}")
sys.stdin.read()
