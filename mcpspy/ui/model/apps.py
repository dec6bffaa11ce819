"""The links of a session's requests to apps (`analysis.apps`), found in slices from the index."""

from __future__ import annotations

from mcpspy.analysis.apps import CALL, LIST, READ, AppLinks, may_name_apps
from mcpspy.core.protocol.message import Result
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.session.columns import KIND, REQUEST, RESULT
from mcpspy.ui.model.session_model import IncrementalBuild

LARGE = 2_000_000
"""Bytes of a list of tools above which it is not read: it would keep the screen waiting."""


class AppsModel(IncrementalBuild):
    def _begin(self) -> None:
        self.links = AppLinks()

    def words(self, row: int) -> str:
        """Return the link of a request to an app in words; empty if it has none, or is not processed yet."""
        return "" if self.is_replaced else self.links.words(row)

    def page_of(self, row: int) -> int | None:
        """Return the row that read the page of a call; None for a page itself, and if it has none."""
        link = None if self.is_replaced else self.links.links.get(row)
        return None if link is None or link.is_page else link.page

    def call_of(self, row: int) -> int | None:
        """Return the first call of a page that a row read; None if it has none."""
        if self.is_replaced:
            return None
        found = (call for call, link in self.links.links.items() if link.page == row and not link.is_page)
        return min(found, default=None)

    def _take(self, begin: int, end: int) -> None:
        index, texts = self._index, self._index.texts
        what, method = index.what, index.method
        for row in range(begin, end):
            kind = what[row] & KIND
            if kind == REQUEST:
                name = texts[method[row]]
                if name in (CALL, READ):
                    self._take_request(row, name)
            elif kind == RESULT and texts[method[row]] == LIST:
                self._take_list(row)

    def _take_request(self, row: int, method: str) -> None:
        index = self._index
        if index.side(row) != CLIENT or row in index.injected or row in index.continues:
            return
        subject, server = index.texts[index.subject[row]], self._server(row)
        if method == READ:
            self.links.add_page(row, subject, server)
            return
        self.links.add_client(index.client_capabilities)
        self.links.add_call(row, subject, server)

    def _take_list(self, row: int) -> None:
        index = self._index
        if index.size[row] > LARGE or index.request(row) in index.injected:
            return
        data = self._model.data(row)
        message = self._model.message(row) if may_name_apps(data) else None
        result = message.result if isinstance(message, Result) else None
        tools = result.get("tools") if isinstance(result, dict) else None
        self.links.add_tools(tools if isinstance(tools, list) else (), self._server(row))

    def _server(self, row: int) -> str:
        """Return the name of the session of a row, if several are merged: each has a server."""
        if not self._model.is_merged:
            return ""
        stream = self._index.texts[self._index.stream[row]]
        return max(
            (name for name in self._model.sessions if (stream + "/").startswith(name + "/")),
            key=len,
            default=stream,
        )
