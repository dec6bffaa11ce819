"""Post each failed response to a webhook, such as Slack's.

Options: url, status (error,tool error).
"""

from __future__ import annotations

import asyncio
import json
import sys
from http.client import HTTPException
from urllib.request import Request, urlopen

from mcpspy import LiveExchange, LiveSession
from mcpspy.ui.scripts.builtin import required


class Webhook:
    def configure(self, options: dict[str, str]) -> None:
        self.url = required(options, "url")
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(f"url={self.url}: use http:// or https://")
        self.statuses = options.get("status", "error,tool error").split(",")
        self.posts: set[asyncio.Task[None]] = set()
        self.name = ""

    def session_started(self, session: LiveSession) -> None:
        self.name = session.name

    async def response(self, exchange: LiveExchange) -> None:
        if exchange.status in self.statuses:
            text = f"{self.name}: {exchange.method} {exchange.subject}: {exchange.status}"
            task = asyncio.create_task(
                self.post({"text": text, "response": exchange.error or exchange.result})
            )
            self.posts.add(task)
            task.add_done_callback(self.posts.discard)

    async def session_ended(self, session: LiveSession) -> None:
        await asyncio.gather(*self.posts)

    async def post(self, body: dict[str, object]) -> None:
        """Send without keeping the response waiting."""
        headers = {"Content-Type": "application/json"}
        request = Request(self.url, json.dumps(body).encode(), headers)  # noqa: S310 - checked above.
        try:
            await asyncio.to_thread(lambda: urlopen(request, timeout=5).close())  # noqa: S310
        except (OSError, HTTPException) as error:
            print(f"webhook: {self.url}: {' '.join(str(error).split())}", file=sys.stderr)


script = Webhook()
