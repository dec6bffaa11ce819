"""Starts the command it is given and waits for it, as npx and uvx do."""

import subprocess
import sys

sys.exit(subprocess.call(sys.argv[1:]))
