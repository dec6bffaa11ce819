"""Every command of docs/ci.md, unchanged, with a healthy server and with one that has changed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from ruamel.yaml import YAML

from recordings import make
from tests.ui.pytest_plugin.conversing import call

PAGE = (make.ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
GITHUB, _, _, GITLAB = (
    YAML(typ="safe").load(block)
    for block in re.findall(r"^```yaml\n(.+?)^```$", PAGE, re.MULTILINE | re.DOTALL)
)
ONCE, LOAD, UPDATE = (
    block.partition("#")[0].strip()
    for block in re.findall(r"^```sh\n(.+?)^```$", PAGE, re.MULTILINE | re.DOTALL)
)
INSTALL = "pip install mcpspy"
SERVER = make.ROOT / "tests" / "servers" / "changing.py"


class Repository:
    """A server's repository, with a recording, in which a job runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copy(SERVER, folder / "server.py")

    def run(self, command: str, **environment: str) -> int:
        """Run a line of a job as CI runners do. Return its exit code."""
        done = subprocess.run(
            ["sh", "-e", "-c", command],
            cwd=self.folder,
            env={
                **make.environment(self.folder),
                "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
                **environment,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
        )
        self.output = done.stdout.decode()
        assert "Traceback" not in done.stderr.decode()
        return done.returncode

    def change(self, old: str, new: str) -> None:
        """Change the server."""
        text = self.text("server.py")
        assert old in text
        (self.folder / "server.py").write_text(text.replace(old, new), encoding="utf-8")

    def text(self, name: str) -> str:
        """Return the text of a file."""
        return (self.folder / name).read_text(encoding="utf-8")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Record as the page describes."""
    repository = Repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", make.environment(tmp_path)["PATH"])
    assert call(ONCE.split(), ("add", {"a": 1, "b": 2}), listing=True) == ["3"]
    return repository


def github_steps() -> dict[str, dict[str, Any]]:
    """Return the steps of the job by their names, in order."""
    steps = GITHUB["jobs"]["mcp"]["steps"]
    assert {"run": INSTALL} in steps
    return {step.get("name") or step.get("uses"): step for step in steps if step.get("run") != INSTALL}


def test_the_load_test_passes_and_fails_by_its_condition(repository: Repository) -> None:
    short = LOAD.replace("30s", "1s").replace("--ramp 5s", "")

    assert repository.run(short.replace("p95>500ms", "p95>30s")) == 0
    assert repository.text("load.html").startswith("<!doctype html>")
    assert repository.run(short.replace("p95>500ms", "p95>0ms")) == 1


def test_the_job_for_github(repository: Repository) -> None:
    commands = {name: step["run"] for name, step in github_steps().items() if "run" in step}
    assert [repository.run(command) for command in commands.values()] == [0] * len(commands)
    assert repository.text("summary.md")
    uploads = [step["with"] for name, step in github_steps().items() if "upload" in name]
    sarif, artifact = uploads
    assert json.loads(repository.text(sarif["sarif_file"]))["version"] == "2.1.0"
    assert (repository.folder / artifact["path"] / "weather.jsonl").is_file()

    # A tool that requires more arguments than before, and a line on stdout that is not a message.
    shutil.rmtree(repository.folder / artifact["path"])
    repository.change('else "same"', 'else "required"')
    repository.change("messages = received()", "messages = received()\nprint('ready', flush=True)")
    del commands["Check the recording for secrets"]
    found = {name: (repository.run(command), repository.output) for name, command in commands.items()}
    assert [code for code, _ in found.values()] == [1] * len(commands)
    answered, broken, annotated, _ = (output for _, output in found.values())
    assert "breaking" in answered
    assert "breaking" in repository.text("summary.md")
    assert "c is required now" in broken
    assert annotated.startswith("::error file=now/weather.jsonl,line=")
    (run,) = json.loads(repository.text(sarif["sarif_file"]))["runs"]
    assert "error" in {result["level"] for result in run["results"]}
    # The job continues after a failed step, so that all failures are known.
    steps = github_steps()
    after = list(steps)[list(steps).index("Compare the tools") :]
    assert all(steps[name]["if"] in ("always()", "failure()") for name in after)

    assert repository.run(UPDATE) == 0
    assert (repository.folder / "recordings" / "weather.jsonl.bak").is_file()
    assert repository.run(commands["Replay the recording"].replace("now/weather", "now/again")) == 0


def test_the_job_for_gitlab(repository: Repository) -> None:
    job = GITLAB["mcp"]
    first, *commands = job["script"]
    assert first == INSTALL
    assert [repository.run(command) for command in commands] == [0] * len(commands)
    reports = {name: ET.fromstring(repository.text(name)) for name in job["artifacts"]["reports"]["junit"]}
    assert len(reports) == 3
    assert all(report.tag == "testsuites" for report in reports.values())
    assert all((repository.folder / path).exists() for path in job["artifacts"]["paths"])


def test_every_command_of_the_page_is_run_by_one_of_these_tests() -> None:
    fenced = "".join(re.findall(r"^```(?:yaml|sh)\n(.+?)^```$", PAGE, re.MULTILINE | re.DOTALL))
    run = [step["run"] for step in github_steps().values() if "run" in step] + GITLAB["mcp"]["script"][1:]

    assert fenced.count("mcpspy ") == len(re.findall(r"\bmcpspy \w", "\n".join([*run, ONCE, LOAD, UPDATE])))


def test_the_action_runs_each_step(repository: Repository) -> None:
    action = YAML(typ="safe").load((make.ROOT / "action.yml").read_text(encoding="utf-8"))
    install, *steps = action["runs"]["steps"]
    assert install["run"] == 'python -m pip install --quiet "$GITHUB_ACTION_PATH"'
    inputs = {name: each.get("default") for name, each in action["inputs"].items()}
    inputs |= {"command": "python server.py", "name": "weather", "session": "recordings/weather.jsonl"}

    def run(step: dict[str, Any]) -> int:
        if "Replay" in step["name"]:
            (repository.folder / "replayed.jsonl").unlink(missing_ok=True)
        given = {
            name: inputs[value.removeprefix("${{ inputs.").removesuffix(" }}")]
            for name, value in step["env"].items()
        }
        return repository.run(step["run"], RUNNER_TEMP=str(repository.folder), **given)

    def codes() -> list[int]:
        return [run(step) for step in steps]

    assert repository.run("mcpspy trust --name weather -- python server.py") == 0
    assert codes() == [0, 0, 0]
    repository.change('else "same"', 'else "required"')
    assert codes()[:2] == [1, 1]
    inputs |= {"session": "", "lock": "none.lock"}
    assert codes() == [0, 0, 0]


def test_the_hooks_for_pre_commit_are_commands(repository: Repository) -> None:
    trust, lint = YAML(typ="safe").load((make.ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    arguments = "--name weather -- python server.py"
    assert repository.run(f"mcpspy trust {arguments}") == 0
    assert repository.run(f"{trust['entry']} {arguments}") == 0
    assert repository.run(f"{lint['entry']} recordings/weather.jsonl") == 0
    repository.change('else "same"', 'else "required"')
    assert repository.run(f"{trust['entry']} {arguments}") == 1
