"""Sends every byte back, and exits at EOF with the code in its argument (default 0)."""

import os
import sys

while data := os.read(0, 65536):
    while data:
        data = data[os.write(1, data) :]
sys.exit(int(sys.argv[1]) if sys.argv[1:] else 0)
