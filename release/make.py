"""Make everything that a release consists of, in `dist`.

The sdist and the wheel; an executable for machines without Python; the packages in it as CycloneDX; a Homebrew
formula and a Scoop manifest; the notes of the release; and the checksums of all of them. Validates the files for
containers first.

    .release/bin/python release/make.py --url URL [--without-executable]

URL is the folder from which the artefacts will be downloaded.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from string import Template

ROOT = Path(__file__).resolve().parent.parent
RELEASE = ROOT / "release"
DIST = ROOT / "dist"

HOMEPAGE = "https://github.com/mcpspy/mcpspy"

TEMPLATES = ("mcpspy.rb", "mcpspy.json")

CHECKS = (
    ("hadolint", "--failure-threshold", "warning", "release/Dockerfile"),
    ("check-jsonschema", "--builtin-schema", "vendor.compose-spec", "release/compose.yaml"),
    ("kubernetes-validate", "--strict", "release/kubernetes.yaml"),
)
"""Commands that validate the container's files against the schemas that they ship."""


def main() -> None:
    """Make the artefacts; exit with the output of the first command that fails."""
    parser = argparse.ArgumentParser(description="make everything that a release consists of, in dist/")
    parser.add_argument("--url", required=True, help="the folder from which the artefacts will be downloaded")
    parser.add_argument("--without-executable", action="store_true", help="skip it: it takes a minute")
    args = parser.parse_args()
    scripts = Path(sys.executable).parent
    for command, *rest in CHECKS:
        run(scripts / command, *rest)
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    version = wheel.name.split("-")[1]
    with tempfile.TemporaryDirectory(prefix="mcpspy-release-") as name:
        bare = Path(name) / "bare"
        venv.create(bare, with_pip=True)
        python = bare / ("Scripts" if os.name == "nt" else "bin") / "python"
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run(*pip, "--constraint", ROOT / "constraints.txt", wheel)
        bill = DIST / f"mcpspy-{version}.cdx.json"
        run(scripts / "cyclonedx-py", "environment", "--output-file", bill, python)
        if not args.without_executable:
            run(*pip, "--constraint", RELEASE / "requirements.txt", "pyinstaller")
            make_executable(python, f"mcpspy-{version}-{platform.system()}-{platform.machine()}".lower())
    (DIST / "NOTES.md").write_text(notes(read(ROOT / "CHANGELOG.md"), version), encoding="utf-8")
    values = {"version": version, "url": args.url.rstrip("/"), "homepage": HOMEPAGE}
    values |= {"sdist": digest(sdist), "wheel": digest(wheel)}
    for template in TEMPLATES:
        text = Template(read(RELEASE / f"{template}.in")).substitute(values)
        (DIST / template).write_text(text, encoding="utf-8")
    artefacts = sorted(path for path in DIST.iterdir() if path.is_file())
    sums = "".join(f"{digest(path)}  {path.name}\n" for path in artefacts)
    (DIST / "SHA256SUMS").write_text(sums, encoding="utf-8")
    for path in artefacts:
        print(f"{path.stat().st_size:>12,}  {path.relative_to(ROOT)}")


def make_executable(python: Path, name: str) -> None:
    """Make the executable from an environment that has mcpspy and PyInstaller, and try it."""
    with tempfile.TemporaryDirectory(prefix="mcpspy-executable-") as work:
        run(
            *(python, "-m", "PyInstaller", "--onefile", "--noconfirm", "--log-level", "ERROR"),
            *("--collect-all", "mcpspy", "--collect-submodules", "textual", "--hidden-import", "webbrowser"),
            *("--name", name, "--distpath", DIST, "--workpath", work, "--specpath", work),
            RELEASE / "executable.py",
        )
    try_executable(DIST / name)


def try_executable(program: Path) -> None:
    """Use the executable as hosts and users do; exit with what differs from an installed mcpspy."""
    with tempfile.TemporaryDirectory(prefix="mcpspy-executable-") as name:
        folder, config, expected = (Path(name) / each for each in ("sessions", "servers.json", "environment"))
        run(program, "demo", "--plain", "--dir", folder)
        run(program, "stats", folder, "--workers", "2")
        expected.write_text(
            json.dumps(dict(os.environ)), encoding="utf-8"
        )  # Arguments are public, variables secret.
        server = "import json, os, sys; sys.exit(dict(os.environ) != json.load(open(sys.argv[1])))"
        run(program, "run", "--dir", folder, "--", sys.executable, "-c", server, expected)
        config.write_text('{"mcpServers": {"memory": {"command": "npx"}}}', encoding="utf-8")
        run(program, "wrap", config, "--all", "--dir", folder)
        if str(program) not in read(config):
            sys.exit(f"release: {program.name} wraps a server with another program: {read(config)}")
        run(program, "unwrap", config, "--all")


def notes(changelog: str, version: str) -> str:
    """Return the section of a version; that of unreleased changes if it has none yet."""
    sections = re.split(r"^## \[(.+?)\].*\n", changelog, flags=re.MULTILINE)
    by_name = dict(zip(sections[1::2], sections[2::2], strict=True))
    return by_name.get(version, by_name.get("Unreleased", "")).strip() + "\n"


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")


def run(*command: str | Path) -> None:
    """Run a command to its end; exit with its output if it failed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        sys.exit(
            f"release: {' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )


if __name__ == "__main__":
    main()
