"""Starts the command in its arguments and waits for it, like npx and uvx."""

import subprocess
import sys

sys.exit(subprocess.call(sys.argv[1:]))
