"""The suite of docs/vitest.md in vitest, with the module that mcpspy contains: recorded once, then served.

New requests fail, and so do tests whose code ignores the errors. Recordings of failed tests are not kept.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from mcpspy.io.recording.reader import Recording, RecordingState
from recordings import make

PAGE = (make.ROOT / "docs" / "vitest.md").read_text(encoding="utf-8")

# Beside the suite of the page: what fails, and how. `add` is that of the page.
FAILING = """
const once = { server: EVERYTHING.server };

function onStdio(a, b, then) {
  return async ({ command, args }) => {
    await add(new StdioClientTransport({ command, args, stderr: "ignore" }), a, b).catch(() => "caught");
    await then();
  };
}

test("an ignored error", recorded(SUM, {}, onStdio(2, 4, async () => {})));
test("an ignored error over HTTP", recorded(SUM, {}, async ({ url }) => {
  await add(new StreamableHTTPClientTransport(new URL(await url())), 2, 4).catch(() => "caught");
}));
test("other arguments", recorded(SUM, { mock: ["--match", "lenient"] }, onStdio(2, 4, async () => {})));
test("an error", recorded("recordings/error.jsonl", once, onStdio(1, 1, async () => {
  throw new Error("of the test");
})));
test("a soft one", recorded("recordings/soft.jsonl", once, onStdio(1, 1, async () => {
  expect.soft(1).toBe(2);
})));
test("too slow", { timeout: 3000 }, recorded("recordings/slow.jsonl", once, async (server, { signal }) => {
  await onStdio(1, 1, async () => {})(server);
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
}));
test("its name", recorded("recordings/nested/own.jsonl", once, async (server, { task }) => {
  await onStdio(1, 1, async () => {})(server);
  await onStdio(1, 2, async () => {})(server);
  expect(task.name).toBe("its name");
}));
"""


def run(folder: Path, **environment: str) -> dict[str, str]:
    """Run the suite in vitest. Return the first message of each failed test, and "" of each that passed."""
    done = subprocess.run(
        [
            "vitest",
            "run",
            "--reporter",
            "json",
            "--outputFile",
            "out.json",
            "--pool",
            "threads",
            "--testTimeout",
            "30000",
        ],
        cwd=folder,
        env={**make.environment(folder), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=100,
    )
    output = done.stdout.decode() + done.stderr.decode()
    assert (folder / "out.json").exists(), output
    (suite,) = json.loads((folder / "out.json").read_text(encoding="utf-8"))["testResults"]
    assert suite["assertionResults"], output
    outcomes = {}
    for test in suite["assertionResults"]:
        assert (test["status"] == "passed") == (not test["failureMessages"])
        outcomes[test["title"]] = next(iter(test["failureMessages"]), "")
    assert done.returncode == int(any(outcomes.values())), output
    (folder / "out.json").unlink()
    return outcomes


def recordings(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder / "recordings").as_posix(): path.read_bytes()
        for path in (folder / "recordings").rglob("*")
        if path.is_file()
    }


def test_a_suite_is_recorded_then_served_and_fails_for_what_is_new(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```js\n(.+?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    suite = tmp_path / "sums.test.mjs"
    suite.write_text(block, encoding="utf-8")
    printed = subprocess.run(
        [sys.executable, "-m", "mcpspy", "scripts", "vitest"], capture_output=True, check=True, timeout=60
    )
    (tmp_path / "recorded.mjs").write_bytes(printed.stdout)
    (tmp_path / "node_modules").symlink_to(make.PEERS / "node_modules")

    assert run(tmp_path) == {"a sum": "", "the same over HTTP": ""}
    first = recordings(tmp_path)
    assert set(first) == {"sum.jsonl"}
    assert Recording(tmp_path / "recordings" / "sum.jsonl").state is RecordingState.ENDED

    suite.write_text(block + FAILING, encoding="utf-8")
    outcomes = run(tmp_path, MCPSPY_RECORD="once")
    example = re.findall(r"^```\n(Error: .+?)\n^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert [outcomes["an ignored error"][: len(text)] for text in example] == example
    assert (
        "tools/call get-sum differs at /params/arguments/b: recorded 3, sent 4"
        in outcomes["an ignored error over HTTP"]
    )
    assert "of the test" in outcomes["an error"]
    assert outcomes["too slow"]
    assert "expected 1 to be 2" in outcomes["a soft one"]
    assert [title for title, why in outcomes.items() if not why] == [
        "a sum",
        "the same over HTTP",
        "other arguments",
        "its name",
    ]
    kept = recordings(tmp_path)
    assert set(kept) == {"sum.jsonl", "nested/own.jsonl", "nested/own.2.jsonl"}
    assert kept["sum.jsonl"] == first["sum.jsonl"]

    # A test that fails does not delete the recording that it was to replace; one that passes replaces it.
    suite.write_text(block.replace('toContain("5")', 'toContain("6")', 1), encoding="utf-8")
    outcomes = run(tmp_path, MCPSPY_RECORD="all")
    assert "expected" in outcomes["a sum"]
    assert outcomes["the same over HTTP"] == ""
    assert recordings(tmp_path) == kept
    suite.write_text(block, encoding="utf-8")
    assert not any(run(tmp_path, MCPSPY_RECORD="all").values())
    assert recordings(tmp_path)["sum.jsonl"] != kept["sum.jsonl"]

    # In CI, a missing recording is an error that names it.
    (tmp_path / "recordings" / "sum.jsonl").unlink()
    outcomes = run(tmp_path, CI="true")
    assert all("recordings/sum.jsonl: no recording (" in why for why in outcomes.values())
