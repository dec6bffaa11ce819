"""A load test as its viewer sees it: the report so far, and its end."""

from __future__ import annotations

from typing import Any


class LoadModel:
    """A load test as its viewer sees it; `version` changes with it."""

    ENGINE = "mcpspy.ui.model.load_engine"
    """The module of the engine whose events it takes."""

    def __init__(self) -> None:
        self.version = 0
        self.lines: list[str] = ["starting …"]
        """The report so far; sanitized."""
        self.runs = self.requests = self.errors = 0
        self.is_over = False
        self.is_bad = False
        """True if runs are different, the condition is met, or the test failed."""
        self.ending: list[str] = []
        """Lines on the limits of the result and its comparison, or the reason of a failure."""
        self.message = ""
        """The last message of the engine, for the status line."""

    def take(self, event: dict[str, Any]) -> None:
        """Take an event of the engine."""
        self.version += 1
        getattr(self, f"_on_{event.pop('event')}")(**event)

    def failed(self, reason: str) -> None:
        """Take note that the engine itself failed."""
        self.version += 1
        self._on_failed(f"the load test failed: {reason}", "")

    def _on_began(self) -> None:
        self.lines = ["waiting for the first run …"]

    def _on_load(self, runs: int, requests: int, errors: int, lines: list[str]) -> None:
        self.runs, self.requests, self.errors, self.lines = runs, requests, errors, lines

    def _on_ended(self, stopped: bool, bad: bool, lines: list[str]) -> None:
        self.is_over, self.is_bad = True, bad
        self.ending = [*(["you stopped the load test"] if stopped else []), *lines]

    def _on_failed(self, why: str, hint: str) -> None:
        self.is_over = self.is_bad = True
        self.ending = [why, *([hint] if hint else [])]

    def _on_refused(self, text: str) -> None:
        self.message = text

    def _on_reported(self, path: str, size: int) -> None:
        self.message = f"saved {size:,} bytes to {path}"
