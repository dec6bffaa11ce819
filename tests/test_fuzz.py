"""Fuzz targets on their corpus of seeds and past failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.targets import TARGETS

CORPUS = Path(__file__).resolve().parent.parent / "fuzz" / "corpus"
INPUTS = sorted(path.relative_to(CORPUS).as_posix() for path in CORPUS.glob("*/*"))


def test_every_target_has_seeds() -> None:
    assert {name.partition("/")[0] for name in INPUTS} == set(TARGETS)


@pytest.mark.parametrize("name", INPUTS)
def test_no_input_of_the_corpus_breaks_a_target(name: str) -> None:
    TARGETS[name.partition("/")[0]]((CORPUS / name).read_bytes())
