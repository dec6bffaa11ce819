"""A lake in an object store, on a real S3 server: the same lake, one writer at a time, errors of one line."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from mcpspy.analysis.lake.schema import TABLES
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.lake import storage
from mcpspy.io.lake.fetch import fetched
from mcpspy.io.lake.files import JOURNAL, CompactionJournal, Lake
from mcpspy.io.lake.maintenance import compact, remove_before, verify
from mcpspy.io.lake.query import LakeConnection, lake_of
from mcpspy.io.lake.storage import LOCK, ObjectStore
from tests.io.lake.lakes import content, filled
from tests.io.lake.s3 import CREDENTIALS, s3_server

if TYPE_CHECKING:
    from mcpspy.io.recording.reader import Summary

_numbers = itertools.count()


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with s3_server(tmp_path_factory.mktemp("s3")) as url, pytest.MonkeyPatch.context() as patch:
        for name, value in {**CREDENTIALS, "AWS_ENDPOINT_URL": url}.items():
            patch.setenv(name, value)
        ObjectStore("s3://lakes").replace("first", b"")  # This server creates the bucket.
        yield url


@pytest.fixture
def url(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a new lake."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    return f"s3://lakes/team/{next(_numbers)}"


def rows(lake: Lake) -> dict[str, list[str]]:
    return {
        table: sorted(
            f"{file.folder} {row}"
            for file in lake.files(table)
            for row in lake.checked(file.name, table).to_pylist()
        )
        for table in TABLES
    }


def answer(lake: Lake, sql: str) -> list[tuple[Any, ...]]:
    return [*LakeConnection(lake).query(sql).rows]


COUNTS = (
    "SELECT server, day::VARCHAR, count(*) FROM exchanges WHERE server <> 'issues' GROUP BY ALL ORDER BY ALL"
)


def test_a_lake_in_a_bucket_is_the_lake_in_a_folder(url: str, found: list[Summary], whole: Path) -> None:
    """The keys of the placeholders differ, but these recordings contain no secrets."""
    lake, result = filled(url, found)
    folder = Lake(whole)

    assert result[:4] == (12, 0, 0, [])
    expected = content(folder)
    assert rows(lake) == expected
    assert filled(url, found)[1][:2] == (0, 12)
    lake.storage.inputs.unlink()  # Another machine adds the same recordings.
    assert filled(url, found)[1][:2] == (0, 12)
    assert answer(lake_of(url)[0], COUNTS) == answer(folder, COUNTS)
    assert (
        fetched(url, found[0].header.id).read_bytes().splitlines()[1:]
        == found[0].path.read_bytes().splitlines()[1:]
    )
    before, after = compact(lake)
    assert before >= after
    assert rows(lake) == expected
    assert verify(lake).problems == []
    days = sorted({file.folder.split("/")[1].removeprefix("day=") for file in lake.files("sessions")})
    assert remove_before(lake, days[5]) == 5
    assert verify(lake).sessions == 7
    assert not [file for file in lake.storage.list("") if file.name.startswith(("_tmp", LOCK))]


def test_a_session_is_mocked_and_replayed_from_a_bucket(url: str, found: list[Summary]) -> None:
    """Both processes have the credentials in their environment."""
    filled(url, found[:2])
    mcpspy = [sys.executable, "-m", "mcpspy"]
    session = [f"lake:{found[0].header.id}", "--lake", url]
    command = [*mcpspy, "replay", *session, "--no-record", "--", *mcpspy, "mock", *session]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_two_processes_fill_one_lake_at_once_and_nothing_is_doubled(
    url: str, found: list[Summary], whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one loses the conditional put of the lease, and tries again until it is free."""
    monkeypatch.setattr(storage, "POLL", 0.02)
    with ThreadPoolExecutor(2) as threads:
        halves = [threads.submit(filled, url, half) for half in (found[:8], found[4:])]
        results = [half.result(60)[1] for half in halves]

    assert sum(result.added for result in results) == 12
    assert rows(Lake(url)) == content(Lake(whole))
    assert verify(Lake(url)).problems == []


def test_a_lease_that_is_not_renewed_is_taken_over_and_its_holder_stops(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "POLL", 0.02)
    first, second = ObjectStore(url), ObjectStore(url)
    second_has_it = threading.Event()
    monkeypatch.setattr(first, "_keep", lambda ended: None)  # As if its machine were asleep.
    monkeypatch.setattr(storage, "LEASE", 0.2)
    with first.exclusive():
        with second.exclusive():
            second_has_it.set()
            with pytest.raises(OSError, match="written by another process"):
                first._renew()
        first.replace("other", b"")
    assert second_has_it.is_set()
    assert [file.name for file in first.list("")] == ["other"]


def test_a_lease_that_is_renewed_is_not_taken_over(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LEASE": 0.4, "PATIENCE": 1.0, "POLL": 0.05}.items():
        monkeypatch.setattr(storage, name, value)
    lake = Lake.created(url)
    with (
        lake.exclusive(),
        pytest.raises(CannotStart, match=rf"{url}: another mcpspy is changing this lake"),
        Lake(url).exclusive(),
    ):
        pass


@pytest.mark.parametrize("is_taken", [True, False], ids=["another has it", "no network"])
def test_a_process_that_cannot_renew_its_lease_writes_nothing_more(
    url: str, monkeypatch: pytest.MonkeyPatch, *, is_taken: bool
) -> None:
    monkeypatch.setattr(storage, "LEASE", 0.2)
    monkeypatch.setitem(storage.RETRIES, "max_retries", 0)
    store, other = ObjectStore(url), ObjectStore(url)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")

    def write_until_it_is_lost() -> None:
        with store.exclusive():
            if is_taken:
                other.replace(LOCK, b"another process")
            else:
                monkeypatch.setattr(store, "_store", ObjectStore(url)._store)
            end = time.monotonic() + 30
            while time.monotonic() < end:
                try:
                    store.replace("other", b"")
                except OSError as error:
                    if "object store not usable" not in str(error):
                        raise

    with pytest.raises(OSError, match="another mcpspy took over this lake"):
        write_until_it_is_lost()
    assert not is_taken or other.read(LOCK) == b"another process"


def test_a_marker_is_created_once(url: str) -> None:
    ObjectStore(url).create("marker", b"1")
    with pytest.raises(FileExistsError):
        ObjectStore(url).create("marker", b"2")
    assert ObjectStore(url).read("marker") == b"1"


def test_an_interrupted_compaction_in_a_bucket_is_finished(url: str, found: list[Summary]) -> None:
    lake, _ = filled(url, found[:2])
    expected = rows(lake)
    (first, *_) = lake.files("notes")
    lake.storage.replace("_tmp/merged.parquet", lake.storage.read(first.name))
    journal = CompactionJournal("_tmp/merged.parquet", f"{first.folder}/compacted-1.parquet", [first.name])
    lake.storage.replace(JOURNAL, msgspec.json.encode(journal))
    assert verify(lake).problems == ["an interrupted compaction: run mcpspy lake compact"]
    with lake.exclusive():
        pass

    assert rows(lake) == expected
    assert f"{first.folder}/compacted-1.parquet" in {file.name for file in lake.files("notes")}


@pytest.mark.parametrize(
    ("variable", "value", "error"),
    [
        ("AWS_SECRET_ACCESS_KEY", "wrong", r"access denied: check the credentials in the environment"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9", r"object store not usable: .*127\.0\.0\.1:9/"),
    ],
)
def test_a_store_that_cannot_be_used_is_one_line(
    url: str, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, error: str
) -> None:
    monkeypatch.setitem(storage.RETRIES, "max_retries", 1)
    monkeypatch.setenv(variable, value)
    for reader in (Lake.opened, Lake.created):
        with pytest.raises(CannotStart, match=error) as raised:
            reader(url)
        assert "\n" not in str(raised.value)


def test_a_bucket_without_a_lake_is_not_one(url: str) -> None:
    with pytest.raises(UsageError, match="not a lake"):
        Lake.opened(url)
    with pytest.raises(UsageError, match="not a lake"):
        Lake.opened("s3://no-such-bucket/x")
    ObjectStore(url).replace("letter.txt", b"")
    with pytest.raises(UsageError, match="not a lake, and not empty"):
        Lake.created(url)


@pytest.mark.parametrize("location", ["ftp://host/lake", "s3://", "https://bucket.example/lake"])
def test_another_kind_of_url_is_refused(location: str) -> None:
    with pytest.raises(UsageError, match="not a location of a lake"):
        Lake.created(location)
