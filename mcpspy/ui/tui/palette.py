"""The command palette: everything a key does, found by its words.

Owns the list, made from the bindings that are in force. Refuses to name an
action by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from textual.binding import ActiveBinding
from textual.command import DiscoveryHit, Hit, Hits, Provider

from mcpspy.ui.tui.help import name


class Actions(Provider):
    """What can be done on the screen below."""

    async def discover(self) -> Hits:
        for what, keys, active in self._actions():
            yield DiscoveryHit(what, partial(self._run, active), help=keys)

    async def search(self, query: str) -> Hits:
        """Yield what the words fit."""
        matcher = self.matcher(query)
        for what, keys, active in self._actions():
            # By its name, too: who looks for "wire" should find it.
            score = max(matcher.match(what), matcher.match(active.binding.id or ""))
            if score > 0:
                yield Hit(score, matcher.highlight(what), partial(self._run, active), help=keys)

    def _actions(self) -> Iterator[tuple[str, str, ActiveBinding]]:
        seen: set[str] = set()
        found = self.screen.active_bindings.values()
        for active in sorted(found, key=lambda active: active.node is not self.screen):
            binding = active.binding
            what = binding.tooltip or binding.description
            if binding.id and active.enabled and what not in seen:
                seen.add(what)
                yield what, name(binding.key), active

    async def _run(self, active: ActiveBinding) -> None:
        await self.app.run_action(active.binding.action, active.node)
