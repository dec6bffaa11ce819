"""Run a client through `mcpspy http`: a command for test suites that append the URL of their server.

    python tests/peers/clients/behind_proxy.py MCPSPY FOLDER CLIENT… URL

Starts `MCPSPY http` in front of URL with a recording in FOLDER, runs CLIENT with the proxy's URL in place of URL, and
exits with the exit code of the client.
"""

import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> int:
    mcpspy, folder, *client, url = sys.argv[1:]
    record = Path(tempfile.mkdtemp(dir=folder)) / "session.jsonl"
    command = [mcpspy, "http", "--upstream", url, "--listen", ":0", "--record", str(record)]
    proxy = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert proxy.stderr is not None
    try:
        line = proxy.stderr.readline()
        listening = line.removeprefix("mcpspy: ").partition(" -> ")[0]
        # A name, not a number, if the suite's URL has one: it is part of what the client compares.
        return subprocess.run([*client, listening], check=False).returncode
    finally:
        proxy.terminate()
        rest = proxy.stderr.read()
        proxy.wait()
        if rest:
            print(rest, file=sys.stderr, end="")


if __name__ == "__main__":
    sys.exit(main())
