"""The suite of docs/vitest.md, run by Node's own test runner: recorded once, then served; new requests fail.

vitest itself would add 40 MB of peers. The parts that the suite uses are replaced by `node:test`.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from mcpspy.io.recording.reader import Recording, RecordingState
from recordings import make

PAGE = (make.ROOT / "docs" / "vitest.md").read_text(encoding="utf-8")

VITEST = """\
import assert from "node:assert";
export { test } from "node:test";
export const expect = (value) => ({ toContain: (part) => assert.ok(value.includes(part), `${value} lacks ${part}`) });
"""


def run(folder: Path, **environment: str) -> tuple[int, str]:
    """Run the suite. Return its exit code and output."""
    done = subprocess.run(
        ["node", "--test", "--test-reporter", "tap", "sums.test.mjs"],
        cwd=folder,
        env={**make.environment(folder), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    return done.returncode, done.stdout.decode() + done.stderr.decode()


def test_a_suite_is_recorded_then_served_and_fails_for_what_is_new(tmp_path: Path) -> None:
    blocks = re.findall(r"^```js\n(.+?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for name, block in zip(("recorded.mjs", "sums.test.mjs"), blocks, strict=True):
        (tmp_path / name).write_text(block.replace('"vitest"', '"./vitest.mjs"'), encoding="utf-8")
    (tmp_path / "vitest.mjs").write_text(VITEST, encoding="utf-8")
    (tmp_path / "node_modules").symlink_to(make.PEERS / "node_modules")
    recordings = tmp_path / "recordings"
    recordings.mkdir()

    code, output = run(tmp_path)
    assert code == 0, output
    assert Recording(recordings / "sum.jsonl").state is RecordingState.ENDED
    before = (recordings / "sum.jsonl").read_bytes()

    # The second test sends a new request and ignores the error; the first is served.
    suite = tmp_path / "sums.test.mjs"
    text = suite.read_text(encoding="utf-8")
    assert text.count("2, 3)") == 2
    suite.write_text("2, 4).catch(() => '5')".join(text.rsplit("2, 3)", 1)), encoding="utf-8")
    code, output = run(tmp_path, CI="1")
    assert code == 1, output
    assert "\nok 1 - a sum\n" in output
    assert "\nnot ok 2 - the same over HTTP\n" in output
    assert (
        "mcpspy: not recorded: tools/call get-sum; nearest: tools/call get-sum differs at /params/arguments/b"
        in output
    )
    assert [path.read_bytes() for path in recordings.iterdir()] == [before]
