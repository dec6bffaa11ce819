"""Writes the file in its argument to stdout unchanged, and exits with the host's EOF."""

import os
import sys

with open(sys.argv[1], "rb") as file:
    while data := memoryview(file.read(1 << 20)):
        while data:
            data = data[os.write(1, data) :]
while os.read(0, 65536):
    pass
