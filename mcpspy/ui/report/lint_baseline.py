"""The baseline of `mcpspy lint`: a file of known findings, which do not count.

It is JSON with one finding per line, sorted, so that version control shows what changed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from mcpspy.analysis.lint import Finding
from mcpspy.core.counted import counted
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording.atomic import save
from mcpspy.ui.report.lint_scan import visible

Entry = dict[str, str]

MEMBERS = ("server", "code", "about", "message", "fingerprint")


class Baseline:
    def __init__(self, file: str, *, is_updated: bool) -> None:
        """Read the file, which need not exist if it is updated. Raises UsageError or CannotStart."""
        self._path = Path(file)
        self._is_updated = is_updated
        self._old: dict[str, Entry] = {}
        self._seen: dict[str, Entry] = {}
        self.known = 0
        """Number of known findings in the recordings."""
        self._gone: list[Entry] = []
        try:
            self._old = {entry["fingerprint"]: entry for entry in _entries(self._path.read_bytes())}
        except FileNotFoundError:
            if not is_updated:
                raise UsageError(
                    f"--baseline {sanitize(file)}: no such file", "add --update-baseline"
                ) from None
        except OSError as error:
            raise CannotStart(f"--baseline {sanitize(file)}: {error.strerror}", "check the path") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            hint = "move it away, and write a new one with --update-baseline"
            raise UsageError(f"--baseline {sanitize(file)}: not a baseline of mcpspy lint", hint) from None

    def has(self, finding: Finding, server: str) -> bool:
        """Return whether the finding is known, as all are if the baseline is updated; remember that it occurs."""
        fingerprint = finding.fingerprint(server)
        values = (server, finding.code, visible(finding.about), visible(finding.message), fingerprint)
        entry = self._old.get(fingerprint) or dict(zip(MEMBERS, values, strict=True))
        self._seen.setdefault(fingerprint, entry)
        is_known = self._is_updated or fingerprint in self._old
        self.known += is_known
        return is_known

    def end(self, checked: Mapping[str, Collection[str]]) -> None:
        """Compare the entries of the servers and rules that were checked, codes by server; write an updated file."""
        unseen = [entry for entry in self._old.values() if entry["fingerprint"] not in self._seen]
        self._gone = [entry for entry in unseen if entry["code"] in checked.get(entry["server"], ())]
        if self._is_updated:
            rest = [entry for entry in unseen if entry not in self._gone]
            entries = sorted(
                [*self._seen.values(), *rest], key=lambda entry: [entry[name] for name in MEMBERS]
            )
            lines = ",\n".join(f"    {json.dumps(entry, ensure_ascii=False)}" for entry in entries)
            save(
                self._path,
                [f'{{\n  "mcpspy-lint-baseline": 1,\n  "findings": [\n{lines}\n  ]\n}}\n'],
                force=True,
            )

    def document(self) -> dict[str, Any]:
        return {"path": self._path.as_posix(), "known": self.known, "gone": self._gone}

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report as text."""
        name, gone = visible(self._path.as_posix()), len(self._gone)
        entries = f"{gone} {'entry' if gone == 1 else 'entries'}"
        if self._is_updated:
            new = len(self._seen.keys() - self._old.keys())
            yield f"{name}: {counted(len(self._seen), 'finding')} written ({new} new), {entries} removed"
            return
        yield f"{name}: {counted(self.known, 'known finding')} not shown"
        if gone:
            yield f"{name}: {entries} no longer found (--update-baseline removes them)"
        for entry in self._gone:
            yield "    " + " ".join(visible(entry[name]) for name in MEMBERS[:4])


def _entries(data: bytes) -> list[Entry]:
    """Return the entries of a file; raise ValueError, KeyError or TypeError if it is not a baseline."""
    document = json.loads(data)
    if document["mcpspy-lint-baseline"] != 1:
        raise ValueError
    return [{name: str(entry[name]) for name in MEMBERS} for entry in document["findings"]]
