"""Errors of programs that could not start: their system, their runtime, their packages."""

from __future__ import annotations

from mcpspy.analysis.explain.causes.definition import Trouble

_GIT = (
    r"\bgit operation failed|could not read (?:username|password) for|failed to clone into|fatal: could not read from remote repository"
    r"|fatal: repository '.{1,200}' not found"
)
"""A repository that git could not fetch."""

OF_CACHE = (
    r"failed to install: \S+\.whl(?![\s\S]*(?:no space|os error (?:5|13|28)\b|denied))|failed to hardlink|target directory for python minor version link"
    r"|being used by another process.{0,40}os error 32"
)
"""A file of the cache of uv, on this machine."""

_BUILD = (
    r"failed to build [`']|failed building wheel|failed-wheel-build|metadata-generation-failed|\bnode-gyp\b|gyp ERR!"
    r"|failed to build gem native extension|build backend returned an error"
)
"""A package that could not be built from source."""

_COMPILED = (
    r"EBADPLATFORM|could not load the \"\w+\" module using the|could not locate the bindings file|no native build was found"
    r"|something went wrong installing the \"\w+\" module|cannot find module '[^']{0,200}\.node'|cannot find module '?@\w+/[\w-]+-(?:linux|darwin|win32)-"
)
"""A package without a compiled part for this system."""

START_TROUBLES = (
    Trouble(
        "system-too-old",
        "the program needs a newer system than this one",
        next_step="use a newer distribution or image, or a build of the program for this system (static, "
        "musl, older)",
        named_by="The loader of glibc and libstdc++ names the version that it misses, the JVM that of "
        "class files, macOS and Windows refuse the program.",
        signs=r"GLIBC(?:XX)?_\d|UnsupportedClassVersionError|requires macOS|not a valid Win32 application"
        r"|which is newer than running OS",
        only_at_start=True,
        later=r"version `GLIBC(?:XX)?_\d",
        errors=(
            (
                "/srv/db-mcp: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required "
                "by /srv/db-mcp)"
            ),
            "java.lang.UnsupportedClassVersionError: App has been compiled by a more recent version",
        ),
    ),
    Trouble(
        "terminal-wanted",
        "the command wants a terminal, and a host gives it pipes",
        next_step="remove -t (--tty) from the arguments of docker or podman, and keep -i; a host starts no "
        "terminal",
        named_by="The error is of docker's or podman's client.",
        signs=r"input device is not a TTY|cannot attach stdin to a TTY|stdin is not a (?:tty|terminal)",
        side="configuration",
        only_at_start=True,
        errors=("the input device is not a TTY",),
    ),
    Trouble(
        "container-failed",
        "the container could not be started",
        next_step="read the end of this error: the image, its entry point or a mount is at fault; the "
        "daemon itself runs",
        named_by="The error is of docker's client, its daemon or the OCI runtime (runc).",
        signs=r"OCI runtime|Error response from daemon|failed to create (?:task|shim)"
        r"|pull access denied|invalid reference format",
        side="",
        only_at_start=True,
        errors=(
            (
                "docker: Error response from daemon: failed to create shim task: OCI runtime create "
                "failed: exec: permission denied"
            ),
        ),
    ),
    Trouble(
        "runtime-version",
        "the server needs another version of its runtime",
        next_step=(
            (
                "NODE_MODULE_VERSION",
                (
                    "build the addon again for this Node.js (npm rebuild; for npx, remove its cache), update the server if it pins an "
                    "addon without a build for it, or start it with the version that the addon was made for"
                ),
            ),
            (
                "no interpreter found in",
                (
                    "install Python where the host runs (in its container image, too), or let uv fetch one: uv python install, and "
                    "UV_PYTHON_DOWNLOADS=automatic"
                ),
            ),
            ("", "start it with a newer interpreter: give its absolute path in the host's configuration"),
        ),
        named_by="pip, uv, npm (EBADENGINE) and .NET state what they require; Node.js names an addon of "
        "another version or an unknown built-in module; other programs fail at names that only "
        "newer or older versions of Python and Node.js have.",
        signs=r"""(?x)requires[ -]python|python\ .{0,20}(?:or\ (?:newer|later|higher)|is\ required)
        |unsupported\ engine|EBADENGINE|requires\ node
        |node(?:\.js)?\ (?:v?\d+|version).{0,30}(?:required|or\ (?:newer|later|higher))
        |the\ engine\ "node"\ is\ incompatible
        |NODE_MODULE_VERSION|ERR_UNKNOWN_BUILTIN_MODULE|does\ not\ satisfy\ python
        |interpreter\ resolved\ to\ python|cannot\ import\ name\ '\w+'\ from\ '(?:typing|asyncio|enum
        |collections|tomllib|datetime)
        |Unexpected\ token\ '(?:\.|\?|\?\?=|\|\|=|&&=)'(?!,)
        |module\ 'node:\w+'\ does\ not\ provide\ an\ export
        |(?:structuredClone|AbortController|FormData)\ is\ not\ defined
        |(?:Object\.hasOwn|Promise\.withResolvers|Array\.fromAsync|crypto\.randomUUID)\ is\ not\ a\ function
        |unsupported\ operand\ type\(s\)\ for\ \|:\ '\w+'|'\w*type'\ object\ is\ not\ subscriptable
        |module\ 'asyncio'\ has\ no\ attribute\ '(?:timeout|TaskGroup|Runner)'
        |No\ module\ named\ '(?:tomllib|distutils|imp|asyncore)'|(?:requires|needs|at\ least)\ (?:node|python
        |java|ruby|bun|deno)\b.{0,20}\d
        |(?:File|Blob|fetch|crypto|WebSocket|ReadableStream|CustomEvent|Headers)\ is\ not\ defined
        |Object\.groupBy\ is\ not\ a\ function
        |no\ interpreter\ found\ (?:for\ python|in\ (?:managed|search|system|virtual))|Unexpected\ token\ '(?:with|assert)'
        |must\ install\ or\ update\ \.NET|your\ ruby\ version\ is|composer\ detected\ issues\ in\ your\ platform|require\ a\ php\ version
        |requires\ (?:php|rustc|go|elixir|dart|sdk\ version)\b.{0,20}\d|net\d\.\d\ .{0,40}not\ found""",
        side="",
        only_at_start=True,
        errors=(
            "weather requires Python >=3.14",
            "error: No interpreter found in managed installations or search path",
            "SyntaxError: Unexpected token '.'",
            "TypeError: unsupported operand type(s) for |: 'type' and 'NoneType'",
            "The module was compiled against a different Node.js version using NODE_MODULE_VERSION 115.",
        ),
    ),
    Trouble(
        "version-not-chosen",
        "a version manager does not know which version of a program to start",
        next_step="give the absolute path of the program in the version that you want in the host's configuration, or set a "
        "version for the whole user (asdf, mise, pyenv, rbenv, volta): the host starts the server in another folder, and may not pass HOME on",
        named_by="The programs that asdf, mise, pyenv, rbenv, jenv and volta put into PATH under the names of others.",
        signs=r"no version is set for (?:command|shim)|\b(?:pyenv|rbenv|nodenv|jenv|goenv): .{0,60}(?:command not found|is not installed)|command exists in these"
        r"|volta error|mise .{0,40}no version",
        only_at_start=True,
        errors=(
            "No version is set for command node",
            "pyenv: version `3.12.1' is not installed (set by /home/b/.python-version)",
        ),
        side="",
    ),
    Trouble(
        "program-not-in-package",
        "a package was installed, and has no program of the name that was started",
        next_step=(
            (
                r"spawn: [`'][^`']*\.(?:py|sh|[cm]?js)[`']",
                "this file is not in the folder in which uv runs: name its whole path, or the folder of the project (uv --directory)",
            ),
            (
                "",
                (
                    "name the program beside the package (uvx --from PACKAGE PROGRAM, npx -p PACKAGE PROGRAM): its "
                    "entry points or its bin list them; on Windows, a dot in the name hides the ending .exe: add it"
                ),
            ),
        ),
        named_by="uv and npm, which start a program of the package's own name.",
        signs=r"failed to spawn: [`']|could not determine executable to run|\bnot provided by package\b|executable script not found in package|the executable \S+ was not found",
        side="",
        only_at_start=True,
        errors=("error: Failed to spawn: `weather.mcp-server`",),
    ),
    Trouble(
        "project-missing",
        "the command looks for its project in the folder in which it was started, and does not find it",
        next_step="start it in the folder of the project: set cwd, if the host has it, or name the folder in the arguments "
        "(bundle: BUNDLE_GEMFILE, npm --prefix, uv --directory, cargo --manifest-path, dotnet run --project)",
        named_by="The tools that run projects: bundler, npm, uv, cargo, go, dotnet, deno.",
        signs=r"could not locate gemfile|missing script: |go\.mod file not found|cannot find main module|could not find a mix\.project|couldn't find a project to run"
        r"|(?:could not|couldn't|cannot|can't|unable to|failed to) (?:find|locate|read|open) (?!module\b).{0,40}"
        r"(?:package\.json|pyproject\.toml|cargo\.toml|deno\.jsonc?|\w+\.csproj)"
        r"|\bno (?:package\.json|pyproject\.toml|cargo\.toml|deno\.json|importer manifest) (?:was )?found",
        side="",
        only_at_start=True,
        errors=(
            "Could not locate Gemfile or .bundle/ directory",
            'npm error Missing script: "mcp"',
            "error: could not find `Cargo.toml` in `/` or any parent directory",
        ),
    ),
    Trouble(
        "install-failed",
        "a package that the server needs could not be fetched, built or installed",
        next_step=(
            (
                _GIT,
                (
                    "fetch it once in a terminal (git clone URL): correct the URL, or give the user of the host access by an SSH key or a "
                    "stored token; a host has no terminal in which git could ask for a password"
                ),
            ),
            (
                r"being used by another process|os error 32",
                (
                    "another process uses this file, in most cases a second start of the same server: end what is left of it, start it "
                    "once in a terminal until it is installed, and start it then from one host at a time; or install it for good (uv tool "
                    "install)"
                ),
            ),
            (
                r"hardlink|os error 396",
                (
                    "set UV_LINK_MODE=copy by env in the host's configuration, or UV_CACHE_DIR to a folder that no program synchronises "
                    "(OneDrive)"
                ),
            ),
            (r"minor version link", "install the Python of uv again: uv python install --reinstall"),
            (
                OF_CACHE,
                "run the command in a terminal: it prints the whole reason; then empty the cache of uv (uv cache clean)",
            ),
            (
                _BUILD,
                (
                    "the package has no ready build for this system and this version of the runtime, or its build is broken: start the "
                    "server with another version of Python or Node.js (uvx --python 3.12), or with another version of itself; else "
                    "install what the error names (a compiler, headers), and tell the server's author"
                ),
            ),
            (
                r"EBADPLATFORM|unsupported platform for",
                (
                    "the package excludes this system (os and cpu in its package.json): use another server, or another system such as a "
                    "container or WSL, and ask its author"
                ),
            ),
            (
                "",
                (
                    "start the server with a version of Node.js that the package has a compiled part for (an even one, not the newest), and "
                    "empty the cache of the runner (npx: rm -rf ~/.npm/_npx), so that optional packages are installed again; in a folder that is "
                    "shared with another system (WSL, a container), install it again there"
                ),
            ),
        ),
        named_by="git, in the words of uv, pip and npm; uv, about files of its cache that it could not write, link or replace; uv, pip, "
        "npm (node-gyp) and Ruby, which build packages from source where no ready build fits; npm (EBADPLATFORM) and packages with "
        "compiled parts: sharp, bindings, node-gyp-build, prebuild-install, rollup.",
        signs=rf"{_GIT}|{OF_CACHE}|{_BUILD}|{_COMPILED}",
        side="",
        only_at_start=True,
        later=_COMPILED,
        errors=(
            "fatal: could not read Username for 'https://github.com': terminal prompts disabled",
            "error: Failed to install: pywin32-312-cp314-cp314-win_amd64.whl (pywin32==312)",
            "error: Missing expected target directory for Python minor version link at C:\\uv\\python\\cpython-3.13",
            "error: Failed to build `valkey-glide==2.2.3`",
            "npm error gyp ERR! build error",
            'Error: Could not load the "sharp" module using the darwin-arm64 runtime',
            'npm error notsup Unsupported platform for notes@6.0.0: wanted {"os":"darwin,linux"} (current: {"os":"win32"}) EBADPLATFORM',
        ),
    ),
    Trouble(
        "package-broken",
        "a package is installed, and a file of it or of one that it uses is missing",
        next_step="use the version before, or wait for the next one: if the same error comes on another machine, this version "
        "was published without the file, or for another version of what it uses; if not, the installation is "
        "incomplete: empty the cache of the runner (npx: rm -rf ~/.npm/_npx) and start again",
        named_by="Node.js names the file, and the module of the package that imports it.",
        signs=r"has a valid \"main\" entry|cannot find (?:module|package) .{1,400}\bimported from .{0,300}[/\\]node_modules[/\\]"
        r"|ERR_PACKAGE_PATH_NOT_EXPORTED|cannot find module '\.{1,2}/",
        side="",
        only_at_start=True,
        later=r"cannot find (?:module|package) .{1,400}\bimported from .{0,300}[/\\]node_modules[/\\]",
        errors=(
            (
                "Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/srv/node_modules/ui/dist/index.mjs' imported from "
                "/srv/node_modules/weather-mcp/dist/tool.js"
            ),
            (
                'Error [ERR_PACKAGE_PATH_NOT_EXPORTED]: No "exports" main defined in '
                "/srv/node_modules/@modelcontextprotocol/sdk/package.json"
            ),
            "Error: Cannot find module '../package.json'",
        ),
    ),
    Trouble(
        "module-missing",
        "a package that the server needs is not installed",
        next_step=(
            (
                r"invalid|not a valid|failed to parse|dependency format",
                (
                    "correct the name or version of the package in the command of the host's configuration: it is not in "
                    "the form of one"
                ),
            ),
            (
                r"registry|\b404\b|No matching (?:distribution|version)|no solution found",
                (
                    "correct the name or version of the package in the command of the host's configuration: the "
                    "registry that the command asks does not have it"
                ),
            ),
            (
                "",
                (
                    "install it into the environment of this command, or start the server with npx -y, uvx or the "
                    "environment's own interpreter"
                ),
            ),
        ),
        named_by="Python, Node.js, the JVM, Ruby and the loader of shared libraries name what they do not "
        "find; pip, uv and npm name what no registry has.",
        signs=r"No module named|cannot find (?:module '[^/\\.']|package)|ERR_MODULE_NOT_FOUND(?!.*/)"
        r"|could not determine executable to run"
        r"|npm (?:error|ERR!) (?:code E)?404|No matching (?:distribution|version)"
        r"|EINVALID(?:PACKAGE|TAG)NAME|invalid (?:package|tag) (?:name|spec)|invalid requirement|failed to parse: `"
        r"|not a valid package (?:or extra )?name|unrecogni[sz]ed dependency format"
        r"|was not found in the package registry|ImportError: "
        r"|NoClassDefFoundError|ClassNotFoundException|error while loading shared libraries"
        r"|cannot load such file -- [^/]"
        r"|no solution found when resolving|Package .{1,80} does not provide any executables|DLL load failed|missing optional dependency",
        side="",
        only_at_start=True,
        later=r"missing optional dependency|ModuleNotFoundError|NoClassDefFoundError",
        errors=(
            "ModuleNotFoundError: No module named 'weather'",
            "npm error 404 Not Found - GET - Not found",
            'npm error Invalid package name "@weather" of package "@weather@latest"',
            "error: Failed to parse: `weather==`",
            'error: Not a valid package or extra name: "@weather". Names must start and end with a letter or digit',
            "ERROR: Invalid requirement: 'weather=>1'",
            "error: unrecognised dependency format: weather@@1",
            "Because mcp-wether was not found in the package registry and you require it",
        ),
    ),
)
