"""Settings of `mcpspy lint`: the table [lint] of a project or the user.

Single servers may have changes to them, and an option of the command line replaces the same setting.
"""

from __future__ import annotations

import argparse
from fnmatch import fnmatchcase
from typing import Any

from mcpspy.analysis.lint import LintRule, Severity, selected
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import UsageError
from mcpspy.io.settings import config_file, project_file, table

LISTS = ("select", "ignore")
NAMES = (*LISTS, "fail-on")


class LintSettings:
    def __init__(self, args: argparse.Namespace) -> None:
        """Read and check the settings and the options. Raises UsageError or CannotStart."""
        file = args.config or project_file()
        self._file = file or config_file()
        settings = table("lint", file)
        servers = settings.pop("servers", {})
        self._general = self._checked(settings, "lint")
        if not isinstance(servers, dict):
            raise self._wrong("lint.servers: not a table", 'write [lint.servers."weather*"]')
        self._servers = {
            pattern: self._checked(changes, f"lint.servers.{pattern}") for pattern, changes in servers.items()
        }
        self._options = {"select": args.select, "ignore": args.ignore, "fail-on": args.fail_on}
        try:
            selected(args.select, args.ignore)
        except ValueError as error:
            raise UsageError(sanitize(f"lint: unknown rule code {error}"), CODES) from None

    def of(self, server: str) -> tuple[tuple[LintRule, ...], Severity]:
        """Return the rules for the sessions of a server, and the severity from which they fail."""
        merged = dict(self._general)
        for pattern, changes in self._servers.items():
            if fnmatchcase(server, pattern):
                ignored = [*merged.get("ignore", ()), *changes.get("ignore", ())]
                merged |= {**changes, "ignore": ignored}
        merged |= {name: value for name, value in self._options.items() if value}
        rules = selected(merged.get("select", ()), merged.get("ignore", ()))
        return rules, Severity(merged.get("fail-on", Severity.ERROR))

    def _checked(self, settings: Any, where: str) -> dict[str, Any]:
        if not isinstance(settings, dict):
            raise self._wrong(f"{where}: not a table", f"use {', '.join(NAMES)}")
        for name, value in settings.items():
            if name not in NAMES:
                raise self._wrong(f"{where}.{name}: unknown setting", f"use {', '.join(NAMES)}, servers")
            if name in LISTS:
                if not isinstance(value, list) or not all(isinstance(code, str) for code in value):
                    raise self._wrong(f"{where}.{name}: not a list of rule codes", f'write {name} = ["ENV"]')
                try:
                    selected(value)
                except ValueError as error:
                    raise self._wrong(f"{where}.{name}: unknown rule code {error}", CODES) from None
            elif value not in list(Severity):
                raise self._wrong(f"{where}.{name}: not a severity", f"use {', '.join(Severity)}")
        return settings

    def _wrong(self, problem: str, hint: str) -> UsageError:
        return UsageError(sanitize(f"{self._file}: {problem}"), hint)


CODES = "see docs/lint.md; use codes such as ENV, LIFE3, SEC201"
