"""The texts by which AGENT103 recognises a failure, and texts that only mention errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.analysis.lint import failure_text
from mcpspy.analysis.lint.failure_text import is_failure

PYTHON = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    main()\n%s'
NODE = "%s\n    at get (/srv/index.js:10:5)\n    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)"

FAILURES = (
    # Stack traces
    PYTHON % "ZeroDivisionError: division by zero",
    PYTHON % "KeyError: 'name'",
    PYTHON % "requests.exceptions.ConnectionError: HTTPConnectionPool(host='a', port=80)",
    PYTHON % "AssertionError",
    "Error executing tool sum:\n" + PYTHON % "ValueError: x",
    NODE % "TypeError: Cannot read properties of undefined (reading 'id')",
    NODE % "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'a'",
    NODE % "Uncaught ReferenceError: b is not defined",
    'Exception in thread "main" java.lang.NullPointerException: a is null\n\tat com.example.A.get(A.java:12)\n\t... 3 more',
    "java.sql.SQLException: no such table\n\tat org.example.Db.query(Db.java:40)",
    "System.InvalidOperationException: no element\n   at System.Linq.ThrowHelper.Throw()\n   at A.B.C()",
    "Unhandled exception. System.IO.FileNotFoundException: a.txt\n   at A.B.C()",
    "panic: runtime error: index out of range [3] with length 3\n\ngoroutine 1 [running]:\nmain.main()\n\t/a/main.go:9 +0x1d\nexit status 2",
    "thread 'main' panicked at src/main.rs:4:10:\ncalled `Option::unwrap()` on a `None` value\nnote: run with `RUST_BACKTRACE=1`",
    "PHP Fatal error:  Uncaught Exception: no in /a.php:3\nStack trace:\n#0 {main}\n  thrown in /a.php on line 3",
    "app.rb:3:in `fetch': key not found: :a (KeyError)\n\tfrom app.rb:3:in `<main>'",
    # One line
    "Error: ENOENT: no such file or directory, open '/a'",
    "Error: something broke",
    "ERROR: relation \"users\" does not exist",
    "❌ Error: invalid token",
    "Error executing tool get_weather: timed out",
    "Error fetching forecast: 503",
    "Error calling API: bad gateway",
    "ENOENT: no such file or directory, stat '/a'",
    "MCP error -32602: Invalid arguments",
    "Request failed with status code 404",
    "HTTP error! status: 502",
    "HTTP error 429: slow down",
    "Client error '404 Not Found' for url 'https://a.example/b'",
    "Input validation error: 'a' is a required property",
    "1 validation error for sumArguments\na\n  Field required [type=missing]",
    "Unknown tool: sumx",
    "Tool sumx not found",
    "Access denied - path outside allowed directories: /etc not in /a",
    "Failed to create issue: Bad credentials",
    "Failed to fetch the URL",
    "Unable to connect to database",
    "Could not open the file",
    "Cannot write to a read-only store",
    "An error occurred while processing the request",
    "An unexpected error occurred.",
    "Internal server error",
    "ValueError: month must be in 1..12",
    "sqlite3.OperationalError: no such table: a",
    "fatal: not a git repository (or any of the parent directories): .git",
    "404 Not Found",
    "HTTP/1.1 500 Internal Server Error",
    "Permission denied",
    "Connection refused",
    "Rate limit exceeded. Try again in 30 s.",
    "/bin/sh: 1: foo: command not found",
    # A key, a quota or a setting
    "Invalid API key",
    "Invalid Tavily API key: the value does not start with 'tvly-'",
    "Missing access token.",
    "No API key provided",
    "Your API key is invalid. Please check the dashboard.",
    "The API key has expired",
    "API key not configured",
    "Search failed: Incorrect API key provided: sk-12",
    "OPENWEATHER_API_KEY environment variable is not set",
    "API rate limit exceeded for this key",
    "Monthly quota exceeded",
    "You exceeded your current quota, please check your plan and billing details.",
    "Insufficient credits (0 left)",
    "401 Unauthorized",
    "HTTP 403: Forbidden",
    "429 Too Many Requests",
    "Authentication required",
    "Access token expired",
    "Error 401: invalid api key",
    "Request failed: 401 Unauthorized",
    "Please provide a valid API key.",
    '{"detail":"Invalid API key"}',
    '{"message":"Unauthorized"}',
    # JSON
    '{"error":"Search failed","detail":"Invalid API key: x","documentation":"https://a.example"}',
    '{"error":"Rate limit exceeded","plan":"free","remaining":0,"query":"owls"}',
    '{"error":{"message":"Incorrect API key provided: sk-12","type":"x","code":"invalid_api_key"}}',
    '{"success":false,"message":"Unauthorized","region":"eu"}',
    '{"error":"not found"}',
    '{"error":{"code":401,"message":"Bad credentials"}}',
    '{"success":false,"error":"no such user"}',
    '{"ok":false,"error":"channel_not_found"}',
    '{"success":false,"message":"no","data":null}',
    '{"message":"Not Found","documentation_url":"https://a.example","status":"404"}',
    '{"statusCode":500,"message":"Internal Server Error"}',
    '{"status":"error","message":"no"}',
    '{"type":"about:blank","title":"Not Found","status":404,"detail":"no","instance":"/a"}',
    '{"errors":[{"message":"Cannot query field \\"a\\""}],"data":null}',
    '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}',
    '{\n  "error": true,\n  "message": "no"\n}',
)  # fmt: skip

MENTIONS = (
    # Reports of a job that worked
    "0 errors, 2 warnings",
    "No errors found.",
    "Errors: 0",
    "Error: none",
    "error count: 3",
    "The error rate fell from 3 % to 1 %.",
    "Fixed: failed to start on Windows.",
    "Found 12 errors in 3 files",
    "Successfully retried after a failed attempt",
    "Build finished. 1 test failed: test_sum",
    "All checks passed; nothing failed to load.",
    "Status: 404 links were checked",
    "404",
    "404 pages were indexed",
    "500 rows were inserted",
    "Cannot be undone. 3 files deleted.",
    "Could not find any results for 'owl'.",
    "Unable to find matches for your query.",
    "No results found",
    "Failed to reproduce the bug on main.",
    "Exceptions are listed in chapter 3.",
    # Documentation
    "Invalid API keys are listed in chapter 3.",
    "No access token is stored: sign-in is by cookie.",
    "API key rotation: every 90 days",
    "The API key is stored in the vault",
    "Rate limits: 60 requests per minute",
    "Authentication required for /admin; all other pages are public",
    "1. Invalid API key - how to fix it\n2. Rate limit exceeded - what it means\n3. Quotas",
    "Invalid API key: what the message means and how to solve it. " + "A long page about keys. " * 20,
    "# Error handling\n\nA handler returns an error as text.",
    "Error handling: the job is started again.",
    "Error reporting is disabled: see the settings.",
    "TypeError is raised if the argument is not a number.",
    "Errors in Python\n\n" + PYTHON % "KeyError: 'a'",
    "Example:\n```\n" + PYTHON % "KeyError: 'a'" + "\n```",
    "To debug `Error: ENOENT: no such file`, check the path.",
    "How do I fix 'Connection refused'?",
    "panic: at the disco is a band.",
    "The server returns 404 Not Found if there is no such user.",
    "HTTP error codes: 400 to 599",
    # Logs
    "2026-11-21T08:00:00Z ERROR disk full",
    "[ERROR] 12:00 disk full\n[INFO] 12:01 disk cleaned",
    "app.log:12: Error: disk full",
    PYTHON % "KeyError: 'a'" + "\n2026-11-21 INFO restarted after the error",
    NODE % "Error: a" + "\n2026-11-21 INFO restarted",
    "line 1: Error: a\nline 2: Error: b",
    "Error: a\n" * 30,
    "Error: " + "a long text of a page about errors. " * 40,
    # JSON
    '{"error":"Invalid API key","results":[{"title":"a"}]}',
    '{"title":"Invalid API key","url":"https://a.example","votes":3}',
    '{"message":"Invalid API key","level":"warning","host":"a","count":3}',
    '{"error":null,"result":3}',
    '{"error":"","data":[1]}',
    '{"error":false,"message":"done"}',
    '{"errors":[],"warnings":[]}',
    '{"errors":[{"message":"line too long","line":3}],"file":"a.py"}',
    '{"error_count":3,"errors_by_day":{"mon":3}}',
    '{"valid":false,"error":"line 3"}',
    '{"success":true,"message":"error page created"}',
    '{"status":"ok","message":"no error"}',
    '{"status":404,"url":"https://a.example","title":"a","checked":12}',
    '{"code":200,"message":"ok"}',
    '{"level":"error","message":"disk full","timestamp":"2026-11-21T08:00:00Z","host":"a"}',
    '{"id":3,"title":"Error: disk full","state":"open","number":7}',
    '{"isError":false,"message":"fine"}',
    '{"status":"failed","job":"deploy","message":"exit 1","steps":[1,2]}',
    '{"error":"e","partial":[1,2,3]}',
    '[{"error":"a"}]',
    "{error: not JSON}",
    "",
    "3",
)  # fmt: skip

QUOTED = (
    ("search_logs", "Error: disk full"),
    ("read_console_messages", NODE % "TypeError: a is undefined"),
    ("get_issue", "Error: the app crashes at the start"),
    ("get_last_error", "ValueError: month must be in 1..12"),
    ("listComments", "Failed to build on my machine"),
    ("read_file", PYTHON % "KeyError: 'a'"),
    ("run_command", PYTHON % "KeyError: 'a'"),
    ("search", "TypeError: Failed to fetch"),
    ("get_doc", "404 Not Found"),
    ("fetch", "Exception: a short page"),
    ("get_traces", '{"error":"timeout","message":"of span 3"}'),
    ("slack_get_messages", "Error: I cannot log in"),
    ("fetch_page", "401 Unauthorized"),
    ("read_file", "Unauthorized"),
    ("search", "Error: search_phase_exception\nError: ENOENT: no such file"),
    ("read_file", "Error: search_phase_exception\n\tCaused by: a"),
    ("search_logs", "Invalid API key"),
    ("get_last_error", "Rate limit exceeded"),
)

READING = (
    ("read_file", "Error: ENOENT: no such file or directory, open '/a'"),
    ("fetch", "Request failed with status code 403"),
    ("search_files", "Error searching files: timed out"),
    ("run_query", "MCP error -32602: a is required"),
    ("read_text_file", "Access denied - path outside allowed directories"),
    ("get_page", '{"error":"not found"}'),
    ("web_search", "Invalid API key"),
    ("search", "401 Unauthorized"),
    (
        "search",
        "Error: media_type_header_exception\n\tCaused by:\n\t\tstatus_exception: a\n\tRoot causes:\n\t\tb",
    ),
    ("web_search", "Unauthorized"),
    ("fetch_page", "BRAVE_API_KEY is not set"),
)


@pytest.mark.parametrize("text", FAILURES)
def test_a_text_that_is_nothing_but_an_error_message_is_a_failure(text: str) -> None:
    assert is_failure(text, "get_weather")
    assert is_failure(f"\n  {text}\n")


@pytest.mark.parametrize("text", MENTIONS)
def test_a_text_that_mentions_errors_is_not_a_failure(text: str) -> None:
    assert not is_failure(text, "get_weather")


def test_a_text_that_only_begins_like_json_is_not_a_failure() -> None:
    assert is_failure('{"error": "no such file"}')
    assert not is_failure('{"error": no such file}')


@pytest.mark.parametrize(("tool", "text"), QUOTED)
def test_the_text_of_a_tool_that_quotes_errors_is_not_a_failure(tool: str, text: str) -> None:
    assert not is_failure(text, tool)


@pytest.mark.parametrize(("tool", "text"), READING)
def test_a_tool_that_reads_texts_can_fail_too(tool: str, text: str) -> None:
    assert is_failure(text, tool)


@given(st.text(max_size=50), st.sampled_from(FAILURES), st.text(alphabet="Error: at\n\"{}'[]()", max_size=50))
def test_any_text_can_be_judged(before: str, failure: str, after: str) -> None:
    assert is_failure(before + failure + after) in (True, False)


def test_the_traces_of_real_programs_are_failures(tmp_path: Path) -> None:
    python = subprocess.run([sys.executable, "-c", "{}['a']"], capture_output=True, text=True, check=False)
    script = tmp_path / "a.js"
    script.write_text("setTimeout(() => null.id)\n", encoding="utf-8")
    node = subprocess.run(["node", str(script)], capture_output=True, text=True, check=False).stderr

    assert is_failure(python.stderr)
    assert is_failure(node[node.index("TypeError") :])


@pytest.mark.parametrize("name", ["_CERTAIN", "_LIKELY", "_TRACE"])
@given(data=st.data())
def test_every_text_that_looks_like_a_failure_contains_a_sign(name: str, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(getattr(failure_text, name)))
    assert failure_text._find_sign(text.encode("utf-8", "replace")), text
