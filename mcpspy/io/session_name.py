"""Names of sessions: the package or folder of the server, from the command that starts it.

Reads the package files of a few folders at most (`io.manifest`), and never raises an exception.
"""

from __future__ import annotations

import os

from mcpspy.io.manifest import MANIFESTS, declared_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    Handler: TypeAlias = Callable[["_Namer", list[str], str, str], str]

LEVELS = 6
"""Number of folders to look into, from the script's folder upwards."""

NESTED = 8
"""Number of launchers inside launchers that are resolved: `env`, `sh -c`, `uv run`, `python -m` …"""

_GENERIC = frozenset(
    """__init__ __main__ app bin bld build cjs cli cmd code debug default dist docker entry entrypoint es esm examples
    index init js lib local main mcp mcp-server mod module node-modules out output package packages program project py
    python release run scripts script server site-packages src start stdio target test ts venv workspace""".split()
)
"""Names of files, folders and packages that do not identify a server."""

_ENDINGS = frozenset("bat cjs cmd cts dll exe jar js mjs mts phar php pl ps1 py pyz rb sh ts tsx".split())
_BOUNDARIES = ("node_modules", "site-packages", "dist-packages")

_PYTHON_FIRST = ("pyproject.toml", "package.json", "Cargo.toml")
_PYTHON_LAUNCHERS = frozenset("python py pypy uv uvx pipx fastmcp mcp poetry pdm hatch rye pipenv".split())


def session_name(command: Sequence[str], folder: str | None = None, *, reads_files: bool = True) -> str:
    """Return the name of a session of this command: the server's name, not its launcher's.

    `npx -y @modelcontextprotocol/server-memory` is `server-memory`, `python -m weather.server` is `weather`, and
    `node dist/index.js` is the name in package.json, or that of the folder. `folder` is where the command runs
    (default: the current folder). Without `reads_files`, only the words of the command and `folder` count.
    """
    if not command:
        return "session"
    try:
        start = (os.getcwd() if reads_files else "") if folder is None else folder
        name = _Namer(reads_files).name(list(command), start)
    except (OSError, ValueError):  # No current folder; a path with a NUL.
        name = ""
    return (name or _stem(command[0]) or "session")[:100]


class _Namer:
    """Resolves a command, one launcher after the other."""

    def __init__(self, reads_files: bool) -> None:
        self._reads_files = reads_files
        self._depth = 0
        self._manifests = MANIFESTS

    def name(self, words: list[str], folder: str) -> str:
        """Return the name of the server that these words start in a folder; "" if nothing identifies it."""
        self._depth += 1
        if not words or self._depth > NESTED:
            return ""
        program = _stem(words[0]).lower()
        launcher = program if program in _HANDLERS else program.rstrip("0123456789.")
        handler = _HANDLERS.get(launcher)
        if handler is not None:
            self._manifests = _PYTHON_FIRST if launcher in _PYTHON_LAUNCHERS else MANIFESTS
        return self.file(words[0], folder) if handler is None else handler(self, words[1:], folder, launcher)

    def file(self, path: str, folder: str) -> str:
        """Return the name of a script or program: its own, or that of its package."""
        stem = _stem(path)
        if not _is_generic(stem):
            return stem
        return self.folder(_joined(folder, path).rpartition("/")[0])

    def folder(self, path: str) -> str:
        """Return the name of the package that a folder belongs to, else of the folder."""
        if self._reads_files:
            for each in _upwards(path):
                for manifest in self._manifests:
                    name = _package(declared_name(f"{each}/{manifest}"))
                    if name and not _is_generic(name):
                        return name
                if os.path.exists(f"{each}/.git"):
                    break
        names = (each.rpartition("/")[2].partition("@")[0] for each in _upwards(path))
        return next((name for name in names if not _is_generic(name)), "")

    def path(self, path: str, folder: str) -> str:
        """Return the name of a folder, or of a .NET project file."""
        stem, dot, ending = path.rpartition(".")
        if dot and ending.endswith("proj"):
            return self.file(stem, folder)
        return self.folder(_joined(folder, path))

    def module(self, module: str, rest: list[str], folder: str) -> str:
        """Return the name of a Python module: `weather` for `weather.server`."""
        if module in _HANDLERS:
            return self.name([module, *rest], folder)
        parts = module.split(".")
        while parts and _is_generic(parts[-1]):
            parts.pop()
        while parts and _is_generic(parts[0]):
            parts.pop(0)
        return ".".join(parts) or self.folder(folder)

    def package(self, words: list[str], folder: str, source: str = "") -> str:
        """Return the name of a package to run; `source` is where to install it from, if it is named."""
        if not words:
            return _package(source) if source else ""
        if words[0].startswith((".", "/", "file:")) and "://" not in words[0]:
            return self.folder(_joined(folder, words[0].removeprefix("file:")))
        if _package(words[0]) in _HANDLERS:
            return self.name([_package(words[0]), *words[1:]], folder)
        name = _package(words[0])
        return _package(source) if source and _is_generic(name) else name

    def shell(self, code: str, folder: str) -> str:
        """Return the name of what the last command of a shell's `-c` starts."""
        found: list[str] = []
        for part in _shell_commands(code):
            while part and (part[0] == "exec" or _is_assignment(part[0])):
                part.pop(0)
            if part[:1] == ["cd"]:
                folder = _joined(folder, part[1] if len(part) > 1 else "~")
            elif part and part[0] not in (".", "export", "set", "source", "ulimit", "umask"):
                found = part
        return self.name(found, folder)


def _interpreter(namer: _Namer, words: list[str], folder: str, launcher: str) -> str:
    options, rest = _split(words, _VALUES[launcher])
    if "-jar" in options:
        return namer.file(_unversioned(options["-jar"]), folder)
    if rest[:1] == ["watch"]:
        rest = rest[1:]
    if not rest or options.keys() & {"-e", "--eval", "-p", "--print", "-r"} - _VALUES[launcher]:
        return ""
    if launcher == "java":
        return namer.module(rest[0], [], folder).rpartition(".")[2]
    return namer.file(rest[0], folder)


def _python(namer: _Namer, words: list[str], folder: str, _: str) -> str:
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word[:1] != "-":
            return namer.file(word, folder)
        if word in ("-X", "-W"):
            at += 1
        elif word[:2] not in ("--", "-X", "-W"):
            letter = next((letter for letter in word if letter in "cm"), "")
            if letter == "m":  # `-m weather`, `-um weather`, `-mweather`
                rest = [*filter(None, [word.partition("m")[2]]), *words[at:]]
                return namer.module(rest[0], rest[1:], folder) if rest else ""
            if letter == "c":
                return ""
    return ""


def _npx(namer: _Namer, words: list[str], folder: str, launcher: str) -> str:
    options, rest = _split(words, _VALUES[launcher])
    code = options.get("-c") or options.get("--call")
    if code and not rest:
        return namer.shell(code, folder)
    return namer.package(rest, folder, options.get("-p") or options.get("--package") or "")


def _npm(namer: _Namer, words: list[str], folder: str, launcher: str) -> str:
    options, rest = _split(words, _VALUES[launcher])
    if rest and rest[0] in ("dlx", "exec", "x"):
        return _npx(namer, rest[1:], folder, "npx")
    if rest[:1] == ["run"]:
        more, target = _split(rest[1:], _VALUES[launcher])
        options |= more
    else:
        target = rest
    for index, word in enumerate(target):  # `npm run start --prefix DIR`
        if word in ("--prefix", "--cwd", "--dir") and index + 1 < len(target):
            options[word] = target[index + 1]
    for flag in ("-w", "--workspace", "--filter", "-F"):
        if flag in options and launcher != "bun":
            return _package(options[flag])
    for flag in ("--prefix", "-C", "--cwd", "--dir"):
        folder = _joined(folder, options[flag]) if flag in options else folder
    if launcher == "bun" and target and ("/" in target[0] or "." in target[0]):
        return namer.file(target[0], folder)
    return namer.folder(folder)


def _deno(namer: _Namer, words: list[str], folder: str, launcher: str) -> str:
    _, rest = _split(words, _VALUES[launcher])
    if rest[:1] == ["task"]:
        options, _ = _split(rest[1:], _VALUES[launcher])
        return namer.folder(_joined(folder, options["--cwd"]) if "--cwd" in options else folder)
    if rest and rest[0] in ("run", "serve", "x"):
        _, rest = _split(rest[1:], _VALUES[launcher])
    if rest and rest[0].startswith(("npm:", "jsr:")):
        return _package(rest[0][4:].lstrip("/"))
    return namer.file(rest[0], "" if rest and "://" in rest[0] else folder) if rest else ""


def _uvx(namer: _Namer, words: list[str], folder: str, _: str) -> str:
    options, rest = _split(words, _VALUES["uv"])
    return namer.package(rest, folder, options.get("--from") or options.get("--spec") or "")


def _uv(namer: _Namer, words: list[str], folder: str, launcher: str) -> str:
    options, rest = _split(words, _VALUES["uv"])
    folder = _joined(folder, _chosen_folder(options, folder))
    if rest[:2] == ["tool", "run"] or (launcher == "pipx" and rest[:1] == ["run"]):
        return _uvx(namer, rest[1 + (rest[0] == "tool") :], folder, "uvx")
    if rest[:1] != ["run"]:
        return ""
    options, rest = _split(rest[1:], _VALUES["uv"])
    folder = _joined(folder, _chosen_folder(options, folder))
    module = options.get("-m") or options.get("--module")
    if module:
        return namer.module(module, rest, folder)
    return (namer.name(rest, folder) if rest else "") or namer.folder(folder)


def _chosen_folder(options: dict[str, str], folder: str) -> str:
    return options.get("--directory") or options.get("--project") or options.get("-C") or folder


def _fastmcp(namer: _Namer, words: list[str], folder: str, launcher: str) -> str:
    if words[:1] not in (["run"], ["dev"]):
        return ""
    _, rest = _split(words[1:], _VALUES[launcher])
    if not rest:
        return namer.folder(folder)
    path, colon, _name = rest[0].rpartition(":")
    return namer.file(path if colon and len(path) > 1 else rest[0], folder)


def _docker(namer: _Namer, words: list[str], folder: str, launcher: str) -> str:
    _, rest = _split(words, _VALUES["docker"])
    if rest[:1] in (["container"], ["compose"]) or launcher.endswith("compose"):
        _, rest = _split(rest[not launcher.endswith("compose") :], _VALUES["compose"])
        launcher = "compose"
    if rest[:1] not in (["run"], ["exec"]):
        return ""
    at = 1
    while at < len(rest) and rest[at][:1] == "-":
        word = rest[at]
        at += 1 if "=" in word or word in _DOCKER_SWITCHES or not set(word[1:]) - set("ditPq") else 2
    image = rest[at:]
    if not image:
        return ""
    name = _image(image[0])
    if name in _HANDLERS and len(image) > 1:  # `docker run node:22 npx …`
        return _Namer(reads_files=False).name(image[1:], "")
    return name


def _wrapper(namer: _Namer, words: list[str], folder: str, launcher: str) -> str:
    """Return the name of the command behind the options of `env`, `sudo`, `timeout`, `poetry run` …"""
    options, rest = _split(words, _VALUES[launcher])
    if launcher == "env" and (code := options.get("-S") or options.get("--split-string")):
        return namer.shell(code, folder)
    for flag in ("-C", "--chdir", "--directory"):
        folder = _joined(folder, options[flag]) if flag in options else folder
    while rest and _is_assignment(rest[0]):
        rest = rest[1:]
    if rest and rest[0] in ("exec", "run", "tool"):
        options, rest = _split(rest[1:], _VALUES[launcher])
        rest = rest[rest.index("--") + 1 :] if "--" in rest else rest
    elif "--" in rest:
        rest = rest[rest.index("--") + 1 :]
    return namer.name(rest[launcher == "timeout" :], folder)


def _shell(namer: _Namer, words: list[str], folder: str, launcher: str) -> str:
    is_cmd = launcher == "cmd"
    for index, word in enumerate(words):
        is_option = word[:1] == "-" or (is_cmd and word[:1] == "/")
        if word.lower() in ("/c", "/k", "-command") or (is_option and word[:2] != "--" and word[-1:] == "c"):
            rest = words[index + 1 :]
            # Only `cmd` takes the words that follow as the command; a shell takes them as arguments.
            return (
                namer.name(rest, folder)
                if is_cmd and len(rest) > 1
                else namer.shell(" ".join(rest[:1]), folder)
            )
        is_value = index > 0 and words[index - 1].lower() in ("-o", "-executionpolicy")
        if not is_option and not is_value:
            return namer.file(word, folder)
    return ""


def _built(namer: _Namer, words: list[str], folder: str, launcher: str) -> str:
    """Return the name of what `go run`, `cargo run` and `dotnet run` build and start."""
    options, rest = _split(words, _VALUES[launcher])
    if launcher == "dotnet" and rest[:2] == ["tool", "run"]:
        return rest[2] if len(rest) > 2 else ""
    if rest and rest[0] in ("exec", "run"):
        options, rest = _split(rest[1:], _VALUES[launcher])
    for flag in ("--bin", "-p", "--package"):
        if launcher == "cargo" and not _is_generic(options.get(flag, "")):
            return options[flag]
    if "--manifest-path" in options:
        return namer.folder(_joined(folder, options["--manifest-path"]).rpartition("/")[0])
    if "--project" in options:
        return namer.path(options["--project"], folder)
    if launcher == "cargo" or not rest:
        return namer.folder(folder)
    target = rest[0].partition("@")[0]
    return namer.file(target, folder) if target.endswith((".go", ".dll")) else namer.path(target, folder)


_NODE = "-r --require --import --loader --experimental-loader -C --conditions --env-file"
_NPM = "-C --cwd --dir --prefix -w --workspace --filter -F --registry --cache --loglevel --userconfig"
_POETRY = "-C --directory -P --project -p -e --env -n --name --prefix"
_VALUES: dict[str, frozenset[str]] = {
    name: frozenset(values.split())
    for names, values in {
        "node": _NODE,
        "ts-node tsx jiti nodemon vite-node": f"{_NODE} --tsconfig -P --project --exec -x -w --watch --ext",
        "ruby perl php lua rscript": "-I -r -d -c",
        "java": "-cp -classpath --class-path -p --module-path -jar",
        "npx bunx pnpx": "-p --package -c --call -w --workspace --prefix --registry --cache --userconfig",
        "npm pnpm yarn": _NPM,
        "bun": f"{_NPM} -r --preload --env-file -c --config",
        "deno": "-c --config --cwd --import-map --lock --cert --env-file",
        "uv uvx pipx": (
            "--directory --project --from --spec --with -w --with-editable --with-requirements --python -p --package"
            " --extra --group --env-file --config-file --cache-dir --index --index-url -i --default-index"
            " --extra-index-url --find-links -f --constraints -c --overrides --refresh-package -P -m --module -C"
        ),
        "mcp fastmcp": "--transport -t --host --port -p --with -w --with-editable -e --env-file -f --python --project",
        "docker podman nerdctl docker-compose": "--context -c -H --host --config -l --log-level --connection",
        "compose": "-f --file -p --project-name --project-directory --profile --env-file",
        "env": "-u --unset -C --chdir -S --split-string",
        "sudo doas": "-u --user -g --group -D --chdir",
        "nice ionice nohup timeout time stdbuf setsid caffeinate": "-n -c -s -k -i -o -e --signal --kill-after",
        "poetry pdm hatch rye pipenv conda mamba micromamba": _POETRY,
        "bundle mise asdf direnv doppler op dotenv": "-e -f --env-file -p --project -C",
        "go": "-C -tags -ldflags -exec",
        "cargo": "--bin -p --package --manifest-path --features -F --profile --target --example",
        "dotnet": "--project -c --configuration -f --framework -r --runtime",
        "sh bash zsh dash ksh fish cmd powershell pwsh": "",
        "python py pypy": "",
    }.items()
    for name in names.split()
}
"""Launcher: its options that take the next word as their value."""

_DOCKER_SWITCHES = frozenset(
    """--detach --disable-content-trust --help --init --interactive --no-healthcheck --oom-kill-disable --privileged
    --publish-all --quiet --read-only --rm --sig-proxy --tty --replace --rmi --env-host --http-proxy --no-hosts
    --no-TTY -T --no-deps --build --remove-orphans --service-ports --use-aliases""".split()
)

_HANDLERS: dict[str, Handler] = {
    name: handler
    for names, handler in {
        "node ts-node tsx jiti nodemon vite-node ruby perl php lua rscript java": _interpreter,
        "python py pypy": _python,
        "npx bunx pnpx": _npx,
        "npm pnpm yarn bun": _npm,
        "deno": _deno,
        "uvx": _uvx,
        "uv pipx": _uv,
        "mcp fastmcp": _fastmcp,
        "docker podman nerdctl docker-compose": _docker,
        "env sudo doas nice ionice nohup timeout time stdbuf setsid caffeinate": _wrapper,
        "poetry pdm hatch rye pipenv conda mamba micromamba bundle mise asdf direnv doppler op dotenv": _wrapper,
        "sh bash zsh dash ksh fish cmd powershell pwsh": _shell,
        "go cargo dotnet": _built,
    }.items()
    for name in names.split()
}


def _split(words: list[str], valued: frozenset[str]) -> tuple[dict[str, str], list[str]]:
    """Return the options before the first argument, and the arguments."""
    options: dict[str, str] = {}
    at = 0
    while at < len(words) and words[at][:1] == "-" and words[at] != "-":
        flag, equals, value = words[at].partition("=")
        at += 1
        if flag == "--":
            break
        if not equals and flag in valued:
            value = words[at] if at < len(words) else ""
            at += 1
        options[flag] = value
    return options, words[at:]


def _shell_commands(code: str) -> Iterator[list[str]]:
    """Yield the words of each command in shell code; of a pipeline, only the first one."""
    words, word, quote, is_piped = [], "", "", False
    for character in f"{code};":
        if quote:
            quote, word = ("", word) if character == quote else (quote, word + character)
        elif character in "\"'":
            quote = character
        elif character in " \t\n;&|":
            if word and not is_piped:
                words.append(word)
            word = ""
            if character in "\n;&":
                yield words
                words, is_piped = [], False
            elif character == "|":
                is_piped = True
        else:
            word += character


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


def _is_generic(name: str) -> bool:
    """Return whether a name does not identify a server: `index`, `v1.2`, `.venv`, `$DIR`."""
    plain = name.lower().replace("_", "-").strip("-") if not name.startswith("__") else name
    return not plain.strip(".v0123456789") or plain in _GENERIC or name.startswith(("$", "@", ".venv"))


def _package(spec: str) -> str:
    """Return the name in a package specification, without scope, version, extras and repository."""
    spec = spec.partition("#")[0].partition("[")[0]
    for sign in "=<>!~;":
        spec = spec.partition(sign)[0]
    if "://" in spec or spec.startswith(("git+", "github:", "git@")):
        base = spec.rstrip("/").rpartition("/")[2].partition("@")[0]
        return base.removesuffix(".git")
    scope, slash, base = spec.strip().rpartition("/")
    base = base.partition("@")[0] or base
    scope = scope.rpartition("/")[2].lstrip("@")
    return scope if slash and scope and _is_generic(base) else _stem(base)


def _image(image: str) -> str:
    """Return the name of a container image: `ghcr.io/acme/weather:1.2` is `weather`."""
    path = image.partition("@")[0]
    parts = [part.partition(":")[0] for part in path.split("/")]
    return next((part for part in reversed(parts) if not _is_generic(part)), parts[-1])


def _unversioned(path: str) -> str:
    """Return the path of a jar without its version: `weather-1.2.jar` is `weather.jar`."""
    stem = path.removesuffix(".jar")
    for index in range(len(stem) - 1):
        if stem[index] == "-" and stem[index + 1].isdigit() and "/" not in stem[index:]:
            return f"{stem[:index]}.jar"
    return path


def _stem(word: str) -> str:
    base = word.replace("\\", "/").rstrip("/").rpartition("/")[2]
    package, at, _version = base.partition("@")
    stem, dot, ending = (package if at and package else base).rpartition(".")
    return stem if dot and stem and ending.lower() in _ENDINGS else package or base


def _joined(folder: str, path: str) -> str:
    """Return a normal path with `/`, also of a path of Windows."""
    path = os.path.expanduser(path) if path[:1] == "~" else path
    if path[1:3] != ":\\":
        path = os.path.join(folder, path)
    return os.path.normpath(path.replace("\\", "/")).replace("\\", "/")


def _upwards(path: str) -> Iterator[str]:
    """Yield a folder and those above it, up to the user's home and the folder of installed packages."""
    home = os.path.expanduser("~").replace("\\", "/")
    for _ in range(LEVELS):
        above, _slash, base = path.rpartition("/")
        if not base or base == "." or path == home or base.endswith(":") or base in _BOUNDARIES:
            return
        yield path
        path = above
