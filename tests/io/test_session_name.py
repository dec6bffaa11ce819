"""Sessions are named after the server's package or folder, never after its launcher or an option."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.io.manifest import _name_in_json, _name_in_toml
from mcpspy.io.session_name import session_name


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("npx -y @modelcontextprotocol/server-memory", "server-memory"),
        ("npx -y @modelcontextprotocol/server-memory@1.2.3 --flag", "server-memory"),
        ("npx some-server@latest", "some-server"),
        ("npx -c weather-server", "weather-server"),
        ("python -m uv run --directory /srv/weather main.py", "weather"),
        ("deno task --cwd /srv/weather start", "weather"),
        ("deno task start", "deno"),
        ("dotnet tool run weather-mcp -- --stdio", "weather-mcp"),
        ("docker run --rm -i", "docker"),
        ("docker ps", "docker"),
        ("nice -- npx -y weather", "weather"),
        ("java -jar weather.jar", "weather"),
        ("npx -y @playwright/mcp@latest --headless", "playwright"),
        ("npx -y -p @acme/weather weather-mcp", "weather-mcp"),
        ("npx -p @acme/weather server", "weather"),
        ("npx -y github:acme/weather", "weather"),
        ("npx -y mcp-remote https://x/mcp", "mcp-remote"),
        ("npx --registry https://r.example @acme/weather", "weather"),
        ("npm --prefix /srv/weather run start", "weather"),
        ("npm run start --prefix /srv/weather", "weather"),
        ("npm exec -- @acme/weather", "weather"),
        ("npm -w @acme/weather run start", "weather"),
        ("pnpm dlx thing", "thing"),
        ("pnpm --dir /srv/weather start", "weather"),
        ("yarn --cwd /srv/weather start", "weather"),
        ("bun run /srv/weather/index.ts", "weather"),
        ("bunx @acme/weather", "weather"),
        ("deno run -A jsr:@acme/weather@1", "weather"),
        ("deno run --allow-net https://deno.land/x/weather@v1/mod.ts", "weather"),
        ("uvx mcp-server-git", "mcp-server-git"),
        ("uvx --from git+https://github.com/acme/weather@v1 server", "weather"),
        ("uvx --python 3.12 mcp-server-git@latest", "mcp-server-git"),
        ("uvx mcp-server-time==1.2 --local-timezone=Europe/Berlin", "mcp-server-time"),
        ("uv tool run mcp-server-git", "mcp-server-git"),
        ("uv run --directory /srv/weather main.py", "weather"),
        ("uv --directory /srv/weather run weather-server", "weather-server"),
        ("uv run --with mcp mcp run /srv/weather/server.py", "weather"),
        ("uv run --directory /srv/weather python -m server", "weather"),
        ("uv run --project /srv/weather -m weather.server", "weather"),
        ("python -m weather.server", "weather"),
        ("python -um src.weather.main", "weather"),
        ("python -X dev -m weather", "weather"),
        ("python -W ignore /srv/weather/main.py", "weather"),
        ("/usr/bin/python3.12 /home/me/weather.py", "weather"),
        ("python -c print", "python"),
        (r"C:\Python\python.exe C:\me\weather.py", "weather"),
        (r"C:\Python\python.exe C:\me\weather\main.py", "weather"),
        ("node --require ./a.js /srv/weather/dist/index.js", "weather"),
        ("node --max-old-space-size=4096 /x/node_modules/@acme/weather/dist/index.js", "weather"),
        ("node -e 1", "node"),
        ("/srv/weather/.venv/bin/server", "weather"),
        ("/srv/weather/target/release/server", "weather"),
        ("/opt/bin/thing --x", "thing"),
        (r"C:\bin\thing.exe", "thing"),
        ("bash", "bash"),
        ("bash /srv/weather/start.sh", "weather"),
        ("python", "python"),
        ("python -m", "python"),
        ("./.hidden", ".hidden"),
        ("docker run -i --rm -e TOKEN ghcr.io/acme/weather:1.2@sha256:aa serve", "weather"),
        ("docker run --rm -it --name w -v /a:/b mcp/playwright", "playwright"),
        ("docker run -i --rm mcr.microsoft.com/playwright/mcp", "playwright"),
        ("docker run -i node:22 npx -y @acme/weather", "weather"),
        ("docker exec -i -u me weather-box node index.js", "weather-box"),
        ("docker compose -f x.yml run --rm weather", "weather"),
        ("docker --context far run --rm acme/weather", "weather"),
        ("podman run --network host localhost:5000/acme/weather", "weather"),
        ("env A=1 B=2 node /srv/weather/index.js", "weather"),
        ("env -u X npx -y weather", "weather"),
        ("sudo -u me uvx weather", "weather"),
        ("timeout 30 python /srv/weather/main.py", "weather"),
        ("cmd /c npx -y @acme/weather", "weather"),
        ("poetry -C /srv/weather run python main.py", "weather"),
        ("poetry run weather", "weather"),
        ("java -Xmx1g -jar /srv/lib/weather-server-1.2.0.jar", "weather-server"),
        ("java -cp a.jar com.acme.weather.Main", "weather"),
        ("dotnet run --project /srv/Weather/Weather.csproj", "Weather"),
        ("dotnet run --project /srv/weather", "weather"),
        ("dotnet /srv/bin/Weather.dll", "Weather"),
        ("go run github.com/acme/weather@latest", "weather"),
        ("cargo run --bin weather", "weather"),
        ("cargo run --manifest-path /srv/weather/Cargo.toml", "weather"),
        ("ruby -I lib /srv/weather/bin/server.rb", "weather"),
        ("mise exec node@22 -- npx -y weather", "weather"),
        ("conda run -n env python /srv/weather/server.py", "weather"),
    ],
)
def test_a_command_alone_names_the_server(command: str, name: str) -> None:
    assert session_name(command.split(), "", reads_files=False) == name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("node dist/index.js", "weather"),
        ("python main.py", "weather"),
        ("./build/server", "weather"),
        ("npm start", "weather"),
        ("npm run start", "weather"),
        ("bun run start", "weather"),
        ("npx tsx src/index.ts", "weather"),
        ("tsx watch src/index.ts", "weather"),
        ("deno run -A --config deno.json main.ts", "weather"),
        ("uv run fastmcp run server.py:mcp", "weather"),
        ("fastmcp run --reload", "weather"),
        ("go run ./cmd/server", "weather"),
        ("go run .", "weather"),
        ("cargo run", "weather"),
        ("python -m server", "weather"),
        ("server", "weather"),
        ("uv run --directory ../tides main.py", "tides"),
        ("node ../tides/dist/index.js", "tides"),
    ],
)
def test_a_generic_script_has_the_name_of_its_folder(command: str, name: str) -> None:
    assert session_name(command.split(), "/srv/weather", reads_files=False) == name


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["bash", "-lc", "source ~/.env; cd /srv/weather && exec node dist/index.js | tee log"], "weather"),
        (["sh", "-c", "cd '/srv/my weather' && npm run start"], "my weather"),
        (["cmd", "/c", "npx -y @acme/weather"], "weather"),
        (["env", "-S", "A=1 uvx weather"], "weather"),
        (["bash", "-o", "pipefail", "-c", "uvx weather"], "weather"),
        (["pwsh", "-File", r"C:\me\weather\start.ps1"], "weather"),
    ],
)
def test_the_name_is_found_in_the_code_of_a_shell(words: list[str], name: str) -> None:
    assert session_name(words, "/x/y", reads_files=False) == name


def test_package_json_above_the_script_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "checkout"
    write(project / "package.json", '{"author": {"name": "me"}, "name": "@acme/weather"}')
    script = write(project / "packages" / "cli" / "dist" / "index.js")

    assert session_name(["node", str(script)]) == "weather"
    monkeypatch.chdir(project)
    assert session_name(["node", "packages/cli/dist/index.js"]) == "weather"
    assert session_name(["npm", "run", "start"]) == "weather"


@pytest.mark.parametrize(
    "text",
    [
        '[build-system]\nrequires = []\n\n[project] # here\nname = "weather" # the name\nversion = "1"\n',
        "[tool.poetry]\nname = 'weather'\n",
        'project.name = "weather"\n',
    ],
)
def test_pyproject_above_the_script_names_it(tmp_path: Path, text: str) -> None:
    write(tmp_path / "checkout" / "pyproject.toml", text)
    script = write(tmp_path / "checkout" / "src" / "main.py")

    assert session_name(["python", str(script)]) == "weather"
    assert session_name(["uv", "run", "--directory", str(script.parent), "main.py"]) == "weather"


def test_a_package_file_of_the_language_of_the_script_goes_first(tmp_path: Path) -> None:
    write(tmp_path / "checkout" / "package.json", '{"name": "page"}')
    write(tmp_path / "checkout" / "pyproject.toml", '[project]\nname = "weather"\n')

    assert session_name(["python", str(tmp_path / "checkout" / "main.py")]) == "weather"
    assert session_name(["node", str(tmp_path / "checkout" / "index.js")]) == "page"


def test_an_installed_package_is_not_named_after_the_project_around_it(tmp_path: Path) -> None:
    write(tmp_path / "mine" / "package.json", '{"name": "mine"}')
    script = write(tmp_path / "mine" / "node_modules" / "tides" / "dist" / "index.js")

    assert session_name(["node", str(script)]) == "tides"


def test_a_package_outside_of_the_repository_does_not_count(tmp_path: Path) -> None:
    write(tmp_path / "work" / "package.json", '{"name": "work"}')
    (tmp_path / "work" / "weather" / ".git").mkdir(parents=True)
    write(tmp_path / "package.json", '{"name": "home"}')

    assert session_name(["python", str(tmp_path / "work" / "weather" / "main.py")]) == "weather"
    assert session_name(["python", str(tmp_path / "main.py")]) == "python"


@pytest.mark.parametrize(
    "text", ["", "{", '{"name": 5}', '{"name": ""}', '{"name": "server"}', "\x00\ufffe", "[]"]
)
def test_a_package_file_without_a_usable_name_is_passed_over(tmp_path: Path, text: str) -> None:
    write(tmp_path / "weather" / "package.json", text)

    assert session_name(["node", str(tmp_path / "weather" / "index.js")]) == "weather"


def test_no_package_file_blocks_or_costs_much(tmp_path: Path) -> None:
    folder = tmp_path / "weather"
    write(folder / "package.json", '{"x": "' + "x" * (1 << 20) + '", "name": "large"}')
    os.mkfifo(folder / "pyproject.toml")
    (folder / "Cargo.toml").symlink_to(folder / "Cargo.toml")

    assert session_name(["node", str(folder / "index.js")]) == "weather"


def test_no_command_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert session_name(["python", "main.py"]) == "python"
    assert session_name(["python", "a\x00b/main.py"])
    assert session_name([]) == "session"
    assert session_name([""]) == "session"


def test_run_finds_the_name_without_the_import_of_a_parser(tmp_path: Path) -> None:
    project = tmp_path / "checkout"
    write(project / "pyproject.toml", '[project]\nversion = "1"\n')
    write(project / "package.json", '{"version": "1", "name": "@acme/weather"}')
    write(project / "main.py", "import sys\nsys.stdout.write(sys.stdin.read())\n")
    run = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "mcpspy",
        "run",
        "--dir",
        str(tmp_path / "sessions"),
        "--",
    ]

    done = subprocess.run(
        [*run, sys.executable, "main.py"],
        cwd=project,
        input=b"{}\n",
        capture_output=True,
        timeout=60,
        check=True,
    )

    (recording,) = (tmp_path / "sessions").glob("*.jsonl")
    assert json.loads(recording.read_bytes().splitlines()[0])["name"] == "weather"
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert imported & {"mcpspy.io.session_name", "json", "tomllib", "re"} == {"mcpspy.io.session_name"}


WORDS = st.sampled_from(
    "npx uv run -y -- -p --directory x python -m main.py sh -c cd && npm exec docker env A=1 / . @a/b -S '".split()
)


@given(st.lists(WORDS | st.text(max_size=6), min_size=1, max_size=8))
def test_any_command_has_a_name(words: list[str]) -> None:
    assert 0 < len(session_name(words, "/srv/weather", reads_files=False)) <= 100


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "x", '"', "}"]), inner, max_size=3)
    ),
)


@given(
    st.dictionaries(st.sampled_from(["name", "version", "a{b", 'na"me', "name "]), JSON),
    st.sampled_from([None, 2]),
)
def test_the_scanner_finds_the_name_that_json_has(document: dict[str, object], indent: int | None) -> None:
    text = json.dumps(document, ensure_ascii=False, indent=indent)
    name = document.get("name")

    assert _name_in_json(text) == (
        name if isinstance(name, str) and "\\" not in json.dumps(name, ensure_ascii=False) else ""
    )


def test_the_toml_scanner_reads_only_the_project_table() -> None:
    assert _name_in_toml('name = "a"\n[tool.x]\nname = "b"\n[project]\nnames = ["c"]\nname = "d"\n') == "d"
    assert _name_in_toml("[project]\nname = 5\n") == ""
