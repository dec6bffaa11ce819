"""Add, replace or remove headers of HTTP requests and responses.

Options: request.NAME and response.NAME (the value; env:VARIABLE for a secret; empty: remove it).
"""

from __future__ import annotations

import os

from mcpspy import LiveHead


class Headers:
    def configure(self, options: dict[str, str]) -> None:
        self.values: dict[str, dict[str, str]] = {"request": {}, "response": {}}
        for option, text in options.items():
            side, _, name = option.partition(".")
            if side in self.values and name:
                self.values[side][name] = os.environ[text[4:]] if text.startswith("env:") else text

    def http_request(self, head: LiveHead) -> None:
        change(head, self.values["request"])

    def http_response(self, head: LiveHead) -> None:
        change(head, self.values["response"])


def change(head: LiveHead, values: dict[str, str]) -> None:
    for name, value in values.items():
        if value:
            head.set(name, value)
        else:
            head.remove(name)


script = Headers()
