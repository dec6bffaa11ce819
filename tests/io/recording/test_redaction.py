"""Sources of redaction rules, and redacted copies of recordings."""

from __future__ import annotations

import json
import os
import pickle
import stat
import sys
from typing import TYPE_CHECKING

import pytest

from mcpspy.core.redact.redactor import Redactor
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording.recorder import Recorder, RecordingTarget
from mcpspy.io.recording.redaction import RedactionOptions, clean, prepared, redactor
from mcpspy.io.settings import UnsafeRegex

if TYPE_CHECKING:
    from pathlib import Path

    from tests.io.conftest import Start

HEADER = b'{"mcpspy":1,"id":"00000000","started":"2026-11-21T08:00:00.000Z","command":["s","--token","abc"],"later":{"a":[1]}}\n'
FRAME = b'{"t":0.1,"from":"client","msg":{"password":"swordfish","pin":"1234","any":"f00-ba4"}}\n'


@pytest.fixture(autouse=True)
def _no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpspy.io.recording.redaction.config_file", lambda: str(tmp_path / "none.toml"))


def redacted(options: RedactionOptions, said: list[str] | None = None) -> dict[str, str]:
    made = redactor(options, ([] if said is None else said).append)
    assert made is not None
    message: dict[str, str] = json.loads(made.lines(FRAME))["msg"]
    return message


def test_built_in_rules_need_no_settings() -> None:
    kept = redacted(RedactionOptions())
    assert kept["password"].startswith("[redacted:")
    assert kept["pin"] == "1234"


def test_two_recordings_have_different_redaction_keys() -> None:
    assert redacted(RedactionOptions())["password"] != redacted(RedactionOptions())["password"]


def test_options_settings_and_the_environment_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "mine.toml"
    config.write_text('[redact]\nkeys = ["pin"]\nenv = ["MINE", "NONE"]\n', encoding="utf-8")
    monkeypatch.setenv("MINE", "f00-ba4")
    monkeypatch.delenv("NONE", raising=False)
    options = RedactionOptions()
    said: list[str] = []
    options.config = str(config)
    options.patterns = ["any"]
    kept = redacted(options, said)
    assert all(value.startswith("[redacted:") for value in kept.values())
    assert said == ["--redact-env NONE: the variable is not set, so its value cannot be redacted"]


def test_nothing_is_redacted_if_redaction_is_off(tmp_path: Path) -> None:
    options = RedactionOptions()
    options.off, options.config = True, str(tmp_path / "broken.toml")
    assert redactor(options, pytest.fail) is None


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ("[redact]\nkey = []", "unknown setting redact.key"),
        ("[redact]\nkeys = 'pin'", "redact.keys must be a list"),
        ("[redact]\npatterns = ['(']", "no[t]? a regular expression"),
        ("[redact", "TOML"),
    ],
)
def test_settings_that_are_wrong_are_named(tmp_path: Path, settings: str, why: str) -> None:
    config = tmp_path / "mine.toml"
    config.write_text(settings, encoding="utf-8")
    options = RedactionOptions()
    options.config = str(config)
    with pytest.raises(UsageError, match=why):
        redactor(options, pytest.fail)


def test_a_recorder_redacts_all_it_writes_and_says_so(tmp_path: Path) -> None:
    target = RecordingTarget()
    target.record = str(tmp_path / "r.jsonl")
    recorder = Recorder(target, {"command": ["s", "--token", "abc123def"], "name": "s"})
    recorder.write(FRAME)
    recorder.write([b'{"t":0.1,"from":"client","msg":', b'{"password":"sword', b'fish"}', b"}\n"])
    recorder.note("stderr", text="PASSWORD=swordfish")
    recorder.finish(0, None)
    lines = (tmp_path / "r.jsonl").read_bytes()
    assert b"swordfish" not in lines
    assert b"abc123def" not in lines
    header, one, two, note, _ = map(json.loads, lines.splitlines())
    assert header["redacted"] is True
    assert one["msg"]["password"] == two["msg"]["password"] == note["text"].removeprefix("PASSWORD=")


def test_a_recorder_that_is_not_to_redact_says_so(tmp_path: Path) -> None:
    target = RecordingTarget()
    target.record, target.redaction.off = str(tmp_path / "r.jsonl"), True
    recorder = Recorder(target, {"command": ["s", "--token", "abc123def"]})
    recorder.write(FRAME)
    recorder.finish(0, None)
    header, said, _ = (tmp_path / "r.jsonl").read_bytes().splitlines(keepends=True)
    assert json.loads(header)["redacted"] is False
    assert json.loads(header)["command"][2] == "abc123def"
    assert said == FRAME


def test_nothing_is_recorded_if_a_redaction_pattern_is_invalid(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = RecordingTarget()
    target.record, target.redaction.patterns = str(tmp_path / "r.jsonl"), ["("]
    recorder = Recorder(target, {})
    recorder.write(FRAME)
    recorder.finish(0, None)
    assert not (tmp_path / "r.jsonl").exists()
    err = capfd.readouterr().err
    assert err.startswith("mcpspy: cannot record: cannot redact: '(' is not a regular expression")
    assert err.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="the fixture is of POSIX")
def test_the_wire_is_untouched_and_a_secret_cut_by_chunks_is_not_in_the_file(start: Start) -> None:
    spy = start("echo.py", options=["--record", str(start.recording), "--redact-key", "pin"])
    large = b'{"a":"' + b"y" * 200_000 + b'","pass\\u0077ord":"swordfish"}\n'
    for part in (b'{"id":1,"params":{"pass', b'word":"sword', b'fish","pin":', b"7001}}\n", large):
        spy.send(part)
    said = b'{"id":1,"params":{"password":"swordfish","pin":7001}}\n' + large
    out, _ = spy.finish()
    assert out == said
    assert spy.wait() == 0
    for side in ("client", "server"):
        kept = spy.said(side)
        assert kept.count(b"[redacted:") == 3
        assert b"swordfish" not in kept
        assert b":7001" not in kept
        tag = json.loads(kept.split(b"\n")[0])["params"]["password"].encode()
        assert kept.split(b"\n")[1] == large[:-1].replace(b"swordfish", tag)
    assert spy.header()["redacted"] is True


def test_a_recording_is_cleaned_into_a_new_file_of_its_owner(tmp_path: Path) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(HEADER + FRAME + FRAME + b'{"t":0.2,"from')
    found: list[tuple[str, str]] = []
    cleaning = Redactor(b"k" * 32, found=lambda *told: found.append(told))
    assert clean(str(source), str(target), cleaning) == len(b'{"t":0.2,"from')
    header, one, two = target.read_bytes().splitlines()
    assert one == two
    assert b"swordfish" not in one
    fields = json.loads(header)
    assert fields.pop("redacted") is True
    assert fields.pop("command")[:2] == ["s", "--token"]
    assert list(fields) == ["mcpspy", "id", "started", "later"]
    assert found == [("argv", "/command/2"), ("key", "/password"), ("key", "/password")]
    assert source.read_bytes() == HEADER + FRAME + FRAME + b'{"t":0.2,"from'
    if sys.platform != "win32":
        assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_check_writes_nothing(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(HEADER + FRAME)
    assert clean(str(source), None, Redactor(b"k" * 32)) == 0
    assert os.listdir(tmp_path) == ["in.jsonl"]


def test_no_file_is_overwritten_and_none_is_left_half(tmp_path: Path) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(b"no recording\n")
    with pytest.raises(UsageError, match=r"in\.jsonl: not an mcpspy recording"):
        clean(str(source), str(target), Redactor(b"k" * 32))
    assert not target.exists()
    target.write_bytes(b"mine")
    source.write_bytes(HEADER)
    with pytest.raises(UsageError, match=": file exists"):
        clean(str(source), str(target), Redactor(b"k" * 32))
    assert target.read_bytes() == b"mine"
    with pytest.raises(CannotStart, match="No such file"):
        clean(str(tmp_path / "none"), None, Redactor(b"k" * 32))


RULES = "[[format]]\nid = 'acme'\npattern = 'acme[0-9]{8}'\ncheck = 'none'\n"


def test_rules_come_from_files_of_options_and_settings(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(RULES)
    (tmp_path / "b.toml").write_text("[[rules]]\nid = 'b'\nregex = 'bee[0-9]{8}'\n[[rules]]\npath = 'x'\n")
    (tmp_path / "mcpspy.toml").write_text("[redact]\nrules = ['a.toml']\nentropy = true\n")
    options = RedactionOptions()
    options.config, options.rules = str(tmp_path / "mcpspy.toml"), [str(tmp_path / "b.toml")]
    said: list[str] = []
    redacting = redactor(options, said.append)
    assert redacting is not None
    message = b'{"a":"acme12345678 bee12345678 0a9Zb8Yc7Xd6We5Vf4Ug3T"}'
    assert redacting.message(message).count(b"[redacted:") == 3
    assert said == [f"{tmp_path / 'b.toml'}: not honoured: 1 of 2 rules: 2 (no regex)"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "No such file"),
        (b"\xff", "not UTF-8"),
        (b"[[format]]\nid = 'a'\n", "format 'a': missing key pattern"),
    ],
)
def test_a_file_of_rules_that_cannot_be_used_is_one_line(
    tmp_path: Path, text: bytes | None, why: str
) -> None:
    if text is not None:
        (tmp_path / "r.toml").write_bytes(text)
    options = RedactionOptions()
    options.rules = [str(tmp_path / "r.toml")]
    with pytest.raises((UsageError, CannotStart), match=rf"r\.toml: .*{why}"):
        redactor(options, lambda _: None)


def test_a_switch_of_the_settings_is_true_or_false(tmp_path: Path) -> None:
    (tmp_path / "mcpspy.toml").write_text("[redact]\nentropy = 4\n")
    options = RedactionOptions()
    options.config = str(tmp_path / "mcpspy.toml")
    with pytest.raises(UsageError, match=r"redact\.entropy must be true or false"):
        redactor(options, lambda _: None)


def test_a_pattern_of_the_settings_needs_their_permission(tmp_path: Path) -> None:
    options, said = RedactionOptions(), list[str]()
    settings = tmp_path / "mcpspy.toml"
    options.config = str(settings)
    options.unsafe_regex = UnsafeRegex(say=said.append, config=options.config)
    settings.write_text('[redact]\npatterns = ["(?<=id-)[0-9]+"]\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"look-behind \(\?<= is not supported .*--unsafe-regex"):
        redactor(options, said.append)
    settings.write_text(f"unsafe_regex = true\n{settings.read_text(encoding='utf-8')}", encoding="utf-8")
    redacting = redactor(options, said.append)
    assert redacting is not None
    assert b"id-42" not in redacting.lines(b'{"t":0.1,"from":"client","msg":{"a":"id-42"}}\n')
    assert said == ["warning: /(?<=id-)[0-9]+/: look-behind (?<= runs on Python's re, which may never end"]


def test_prepared_options_redact_the_same_on_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "mcpspy.toml"
    settings.write_text('[redact]\nkeys = ["pin"]\npatterns = ["trout-[0-9]+"]\n', encoding="utf-8")
    monkeypatch.setenv("WORD", "swordfish")
    options = RedactionOptions()
    options.config, options.env = str(settings), ["WORD"]
    sent = pickle.dumps(prepared(options, pytest.fail))

    settings.unlink()
    monkeypatch.delenv("WORD")
    redacting = redactor(pickle.loads(sent), pytest.fail)
    assert redacting is not None
    line = redacting.lines(b'{"t":0.1,"from":"client","msg":{"pin":"1234","a":"a swordfish, trout-1"}}\n')
    assert not any(secret in line for secret in (b"1234", b"swordfish", b"trout-1"))
