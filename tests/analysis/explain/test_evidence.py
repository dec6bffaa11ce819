"""The line on stderr that names the error, and the frame in the user's file, in the output of real runtimes and tools."""

from __future__ import annotations

import pytest

from mcpspy.analysis.explain.evidence import MAX_QUOTE, NamedError, PrintedLine, evidence, named_error, quote
from mcpspy.analysis.lint import EntryPosition


def named(text: str, *, certain: bool = False) -> NamedError | None:
    lines = [
        PrintedLine(number / 10, EntryPosition(number), line)
        for number, line in enumerate(text.strip("\n").splitlines(), 2)
    ]
    return named_error(lines, certain=certain)


PYTHON = """
Traceback (most recent call last):
  File "/srv/weather/server.py", line 42, in <module>
    main()
    ~~~~^^
  File "/srv/weather/server.py", line 17, in main
    import weather
ModuleNotFoundError: No module named 'weather'
"""

CHAINED = """
Traceback (most recent call last):
  File "/srv/weather/store.py", line 8, in connect
    socket.create_connection(address)
  File "/usr/lib/python3.12/socket.py", line 852, in create_connection
    raise exceptions[0]
ConnectionRefusedError: [Errno 111] Connection refused

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/weather/server.py", line 30, in <module>
    connect()
  File "/srv/weather/store.py", line 10, in connect
    raise StoreError("no database at localhost:5432") from None
store.StoreError: no database at localhost:5432
"""

NODE = """
node:internal/modules/cjs/loader:1228
  throw err;
  ^

Error: Cannot find module 'express'
Require stack:
- /srv/weather/index.js
    at Function._resolveFilename (node:internal/modules/cjs/loader:1225:15)
    at Object.<anonymous> (/srv/weather/index.js:3:17)
    at Module._compile (node:internal/modules/cjs/loader:1554:14) {
  code: 'MODULE_NOT_FOUND',
  requireStack: [ '/srv/weather/index.js' ]
}

Node.js v24.1.0
"""

NODE_CAUSE = """
TypeError: fetch failed
    at node:internal/deps/undici/undici:13510:13
    at async forecast (file:///srv/weather/dist/forecast.js:12:20) {
  [cause]: Error: getaddrinfo ENOTFOUND api.weather.example
      at GetAddrInfoReqWrap.onlookupall (node:dns:122:26) {
    errno: -3008,
    code: 'ENOTFOUND',
    syscall: 'getaddrinfo',
    hostname: 'api.weather.example'
  }
}

Node.js v24.1.0
"""

GO = """
panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x6b2f2a]

goroutine 1 [running]:
main.(*Server).Start(0x0)
	/home/ann/weather/main.go:31 +0x1a
main.main()
	/home/ann/weather/main.go:12 +0x1d
exit status 2
"""

RUST = """
thread 'main' panicked at src/main.rs:14:37:
called `Result::unwrap()` on an `Err` value: Os { code: 2, kind: NotFound, message: "No such file or directory" }
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""

JAVA = """
Exception in thread "main" java.lang.IllegalStateException: cannot start
	at com.weather.Server.start(Server.java:51)
	at com.weather.Main.main(Main.java:9)
Caused by: java.net.ConnectException: Connection refused
	at java.base/sun.nio.ch.Net.pollConnect(Native Method)
	at com.weather.Store.connect(Store.java:23)
	... 2 more
"""

DOTNET = """
Unhandled exception. System.IO.FileNotFoundException: Could not find file '/srv/appsettings.json'.
   at Weather.Program.Load(String path) in /srv/weather/Program.cs:line 12
   at Weather.Program.Main(String[] args) in /srv/weather/Program.cs:line 5
"""

RUBY = """
/srv/weather/server.rb:4:in `fetch': key not found: "WEATHER_API_KEY" (KeyError)
	from /srv/weather/server.rb:4:in `<main>'
"""

PHP = """
PHP Fatal error:  Uncaught PDOException: could not find driver in /srv/weather/server.php:9
Stack trace:
#0 /srv/weather/server.php(9): PDO->__construct()
#1 {main}
  thrown in /srv/weather/server.php on line 9
"""

NPM = """
npm error code E404
npm error 404 Not Found - GET - Not found
npm error 404  'mcp-wether@*' is not in this registry.
npm error A complete log of this run can be found in: /home/ann/.npm/_logs/1.log
"""

UVX = """
  \u00d7 No solution found when resolving tool dependencies:
  ╰─▶ Because mcp-wether was not found in the package registry and you require mcp-wether, your requirements
      are unsatisfiable.
"""

SHELL = "start.sh: line 1: uvxx: command not found"

RECORDS = """
2026-11-28 10:00:00,100 - weather - INFO - starting
2026-11-28 10:00:01,200 - weather - ERROR - no connection to the database
2026-11-28 10:00:01,300 - weather - INFO - closing
"""

JSON_RECORD = """
{"level":"info","msg":"starting"}
{"level":"error","msg":"listen tcp :8080: bind: address already in use"}
{"level":"info","msg":"bye"}
"""

OUTPUTS = {
    "python": (PYTHON, "ModuleNotFoundError: No module named 'weather'", "server.py line 17"),
    "chained python": (CHAINED, "store.StoreError: no database at localhost:5432", "store.py line 10"),
    "node": (NODE, "Error: Cannot find module 'express'", "index.js line 3"),
    "node with a cause": (NODE_CAUSE, "getaddrinfo ENOTFOUND api.weather.example", "forecast.js line 12"),
    "go": (GO, "panic: runtime error: invalid memory address", "main.go line 31"),
    "rust": (RUST, "panic: called `Result::unwrap()` on an `Err` value", "main.rs line 14"),
    "java": (JAVA, "Caused by: java.net.ConnectException: Connection refused", "Store.java line 23"),
    ".net": (DOTNET, "System.IO.FileNotFoundException: Could not find file", "Program.cs line 12"),
    "ruby": (RUBY, 'key not found: "WEATHER_API_KEY" (KeyError)', "server.rb line 4"),
    "php": (PHP, "PDOException: could not find driver", ""),
    "npm": (NPM, "npm error 404", ""),
    "uvx": (UVX, "No solution found", ""),
    "shell": (SHELL, "uvxx: command not found", ""),
    "log records": (RECORDS, "no connection to the database", ""),
    "log records as json": (JSON_RECORD, "address already in use", ""),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_error_is_named_with_the_frame_in_the_users_file(name: str) -> None:
    text, error, frame = OUTPUTS[name]
    found = named(text)
    assert found is not None
    assert error in found.text
    assert found.frame == frame
    assert found.line.text.strip() in text


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_rest_of_a_stack_trace_never_names_the_error(name: str) -> None:
    lines = OUTPUTS[name][0].strip("\n").splitlines()
    for end in range(1, len(lines) + 1):
        found = named("\n".join(lines[:end]))
        assert found is None or found.text not in {
            "}",
            "{",
            "^",
            "Node.js v24.1.0",
            "#1 {main}",
            "exit status 2",
        }
        assert found is None or not found.text.startswith(("at ", 'File "', "note: run with", "goroutine "))


@pytest.mark.parametrize("name", [name for name in OUTPUTS if name != "shell"])
def test_an_error_of_a_known_form_is_certain(name: str) -> None:
    certain = named(OUTPUTS[name][0], certain=True)
    assert certain is not None
    assert certain == named(OUTPUTS[name][0])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "Node.js v24.1.0",
        "}",
        "starting weather",
        "0 errors, 0 warnings in 3 files",
        "INFO: no error",
    ],
)
def test_lines_that_name_no_error_are_never_certain(text: str) -> None:
    assert named(text, certain=True) is None


def test_without_an_error_the_last_line_with_words_is_named() -> None:
    found = named("connecting to the database\nbye\n\n}\nNode.js v24.1.0")
    assert found is not None
    assert found.text == "bye"


def test_colours_do_not_hide_an_error() -> None:
    found = named("\x1b[31mError: boom\x1b[0m", certain=True)
    assert found is not None
    assert found.text == "Error: boom"


def test_a_validation_error_of_pydantic_names_the_field() -> None:
    found = named(
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings\n"
        "api_key\n  Field required [type=missing, input_value={}, input_type=dict]"
    )
    assert found is not None
    assert "api_key Field required" in found.text


def test_a_quote_is_one_short_line_without_control_characters() -> None:
    text = quote("a\x1b[31m\n\tb" + "x" * 5000)
    assert "\x1b" not in text
    assert "\n" not in text
    assert len(text) == MAX_QUOTE
    assert evidence(EntryPosition(7, 2), "a\nb").text == "a b"
    assert (evidence(EntryPosition(7, 2), "a").line, evidence(EntryPosition(7, 2), "a").part) == (7, 2)
