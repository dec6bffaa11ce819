"""Accessibility of a page, checked by axe-core (a peer) in the browser."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.analysis.export.html.chromium import Page

AXE = Path(__file__).resolve().parents[4] / ".peers" / "node_modules" / "axe-core" / "axe.min.js"

RUN = """axe.run(document, { resultTypes: ["violations"], rules: { "color-contrast": { enabled: true } } }).then((found) =>
  found.violations.flatMap((rule) => rule.nodes.map((node) =>
    `${rule.id}: ${node.target.join(" ")}: ${node.any.concat(node.all, node.none).map((each) => each.message).join("; ")}`)))"""
"""All rules, also those of best practice."""


@cache
def _source() -> str:
    return AXE.read_text(encoding="utf-8")


async def violations(page: Page) -> list[str]:
    """Return what axe finds in the page as it is shown now."""
    if not await page.evaluate("typeof axe === 'object'"):
        await page.evaluate(_source() + ";0")
    found: list[str] = await page.evaluate(RUN)
    return found
