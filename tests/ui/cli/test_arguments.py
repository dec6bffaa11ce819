"""Recordings and filters on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspy.errors import UsageError
from mcpspy.io.recording.reader import Recording
from mcpspy.ui.cli.arguments import counted_back, query_of, recordings

Make = Callable[..., Path]


def test_a_recording_is_meant_once_however_often_it_is_named(make_recording: Make) -> None:
    path = make_recording()

    assert list(recordings([str(path), str(path.parent), str(path)], None)) == [(str(path), path)]
    assert list(recordings([], str(path.parent))) == [("last", path)]


def test_a_folder_without_recordings_is_one_line_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="this folder contains no recordings"):
        list(recordings([str(tmp_path)], None))


def test_the_error_for_an_invalid_filter_names_the_position(make_recording: Make) -> None:
    assert query_of(None) is None
    with pytest.raises(UsageError, match="--filter, character 3: "):
        query_of("a tool:")


def test_only_a_filter_that_counts_back_gets_the_end(make_recording: Make) -> None:
    recording = Recording(make_recording())
    back, forth = query_of("since:-5m"), query_of("since:5m")
    assert back is not None
    assert forth is not None

    for query in (back, forth, None):
        counted_back(query, recording.path, recording.header)

    (*_, last) = recording
    assert (back.end, forth.end) == (last.at, None)
