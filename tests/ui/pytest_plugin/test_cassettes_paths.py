"""The path of a test's recording."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from mcpspy.ui.pytest_plugin.cassettes import LONGEST, numbered, recorded, recording_path, shown_path

FILE = Path("/project/tests/test_weather.py")
FOLDER = Path("/project/tests/mcp_recordings/test_weather")


@pytest.mark.parametrize("test", ["test_a", "TestCity.test_a", "test_a[Oslo-3.5]", "test_ä[a=b@c]"])
def test_a_test_has_a_file_of_its_name_beside_its_module(test: str) -> None:
    assert recording_path(FILE, test) == FOLDER / f"{test}.jsonl"


def test_names_that_no_file_can_have_stay_apart() -> None:
    names = [
        "test_a[x/y]",
        "test_a[x:y]",
        "test_a[x-y]",
        "test_a[x\0y]",
        "test_a[../../x]",
        f"test_{'a' * 300}",
    ]
    places = [recording_path(FILE, name) for name in names]

    assert len(set(places)) == len(places)
    for path in places:
        assert path.parent == FOLDER
        assert len(path.name) < LONGEST + 20
        assert "\0" not in path.name


def test_a_name_is_relative_to_the_folder_of_the_test() -> None:
    assert recording_path(FILE, "test_a", "data/x.jsonl") == Path("/project/tests/data/x.jsonl")
    assert recording_path(FILE, "test_a", "/elsewhere/x.jsonl") == Path("/elsewhere/x.jsonl")


def test_the_files_of_a_recording_are_numbered_and_end_at_the_first_that_is_not_there(tmp_path: Path) -> None:
    target = tmp_path / "x.jsonl"
    names = [path.name for path in islice(numbered(target), 3)]
    assert names == ["x.jsonl", "x.2.jsonl", "x.3.jsonl"]
    assert recorded(target) == []

    for name in ("x.jsonl", "x.2.jsonl", "x.4.jsonl", "x-2.jsonl"):
        (tmp_path / name).touch()
    assert [path.name for path in recorded(target)] == ["x.jsonl", "x.2.jsonl"]


def test_a_path_is_shown_as_a_user_would_type_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert shown_path(tmp_path / "a" / "x\x1b.jsonl") == str(Path("a", "x\\x1b.jsonl"))
    assert shown_path(Path("/elsewhere/x.jsonl")) == str(Path("/elsewhere/x.jsonl"))
