"""Profiles."""
from pathlib import Path
RESULTS = Path(__file__).resolve().parent / "results"
def write() -> None: ...
