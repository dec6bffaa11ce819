"""The targets of `make fuzz` on their corpus: past failures, and seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.targets import TARGETS

CORPUS = Path(__file__).resolve().parent.parent / "fuzz" / "corpus"
INPUTS = sorted(path.relative_to(CORPUS).as_posix() for path in CORPUS.glob("*/*"))


def test_every_target_has_something_to_begin_with() -> None:
    assert {name.partition("/")[0] for name in INPUTS} == set(TARGETS)


@pytest.mark.parametrize("name", INPUTS)
def test_an_input_of_the_corpus_breaks_nothing(name: str) -> None:
    TARGETS[name.partition("/")[0]]((CORPUS / name).read_bytes())
