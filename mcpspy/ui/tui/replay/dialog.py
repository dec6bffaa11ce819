"""The dialog that asks what is replayed, against which server, and how.

The proposed servers and the redacted values are read in a thread. The texts are checked when the user starts the replay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widget import Widget
from textual.widgets import Input, Static

from mcpspy.core.recording.decode import Header
from mcpspy.core.redact.display import redacted_url, shown_command
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import McpspyError, UsageError
from mcpspy.ui.model.replay_options import (
    MODES,
    ORDERS,
    PAUSES,
    RECORDED,
    SPEEDS,
    VALUES,
    ProposedServer,
    ReplayForm,
    proposals,
    redacted_keys,
    remember,
    remembered,
)
from mcpspy.ui.model.replay_settings import kept_patterns
from mcpspy.ui.tui.widgets.base import DismissibleModal
from mcpspy.ui.tui.widgets.choice import Choice


class ReplaySelection(NamedTuple):
    """A part of a session that can be replayed."""

    label: str
    key: str
    """The key that selects it, as the help has it after `>`."""
    rows: Sequence[int] | None
    """Rows of its requests; None for the whole session."""
    query: str = ""
    """The filter that selects the same requests on a command line; empty if there is none."""


_TEXTS = {
    "server": ("server", "command, or http:// URL"),
    "cwd": ("folder", "working directory of the command"),
    "environment": ("variables", "NAME=VALUE OTHER='a b' TOKEN=${TOKEN}"),
    "headers": ("headers", "Authorization: Bearer ${TOKEN}; …"),
    "secrets": ("secret values", "NAME=VALUE"),
    "ignored": ("ignored values", "/result/**/time; tools/call clock /result"),
    "timeout": ("timeout, s", "30"),
    "clients": ("clients", "10; with a rate, at most this many (100)"),
    "rate": ("rate", "runs that start per second: 5, 0.5; empty: each client starts its next run"),
    "repeat": ("runs", "of each client, or with a rate of all; empty: 1, or no limit with a duration"),
    "duration": ("duration", "30s, 5min; no run starts after it"),
    "ramp": ("ramp", "10s; until all clients have started, or the rate is reached"),
    "fail_if": ("fail if", "p95>200ms or errors>1%"),
}
"""Field of the form → label, and an example."""

_CHOICES = {
    "mode": ("how", MODES),
    "order": ("order", ORDERS),
    "speed": ("speed", SPEEDS),
    "pause": ("pause", PAUSES),
    "values": ("values", VALUES),
}

_LOAD = "clients rate repeat duration ramp fail_if".split()
"""The fields of a load test."""

_ORDER = [
    *"server cwd environment headers secrets mode".split(),
    *_LOAD,
    *"order speed pause values ignored timeout".split(),
]


class ReplayDialog(DismissibleModal[dict[str, Any] | None]):
    """Dismissed with the configuration of the engine, or None."""

    CSS = """
    ReplayDialog { align: center middle; background: $background 60%; }
    ReplayDialog #replay { width: 90; max-width: 100%; height: auto; max-height: 100%; padding: 0 1;
                           background: $surface; border: solid $primary; scrollbar-size-vertical: 1; }
    ReplayDialog Horizontal { height: 1; }
    ReplayDialog .label { width: 16; color: $quiet; }
    ReplayDialog Input { border: none; padding: 0; height: 1; width: 1fr; background: $panel; }
    ReplayDialog Input:focus { background: $primary-muted; }
    ReplayDialog .-hidden { display: none; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "start", "start", tooltip="start the replay", id="replay-dialog.start"),
        Binding("down", "app.focus_next", "next field", tooltip="next field", id="replay-dialog.next"),
        Binding(
            "up",
            "app.focus_previous",
            "previous field",
            tooltip="previous field",
            id="replay-dialog.previous",
        ),
        Binding("escape", "leave", "cancel", tooltip="cancel", id="replay-dialog.leave"),
    ]

    HELP_NAME = "replay dialog"

    def __init__(
        self,
        path: Path,
        header: Header,
        selections: Sequence[ReplaySelection],
        form: ReplayForm | None = None,
    ) -> None:
        """`form` has the texts of an earlier replay of this session."""
        super().__init__()
        self._path, self._header, self._selections = path, header, selections
        self._form = form or remembered(header)
        self._servers: list[ProposedServer] = [ProposedServer(RECORDED, self._form.server)]
        names = {str(place): each.label for place, each in enumerate(selections)}
        keys = {each.key: str(place) for place, each in enumerate(selections)}
        self._what = Choice(names, "0", id="what", keys=keys)
        self._against = Choice({"0": RECORDED}, "0", id="against")
        self._inputs = {
            name: Input(
                getattr(self._form, name), placeholder=example, compact=True, select_on_focus=False, id=name
            )
            for name, (_, example) in _TEXTS.items()
        }
        self._choices = {
            name: Choice(words, getattr(self._form, name), id=name) for name, (_, words) in _CHOICES.items()
        }
        self._rows: dict[str, Horizontal] = {}
        self._line = Static("reading the configurations of hosts …", classes="role--quiet", markup=False)

    def compose(self) -> ComposeResult:
        box = VerticalScroll(id="replay", can_focus=False)
        box.border_title = Text(f"Replay {sanitize(self._header.name) or 'session'}")
        with box:
            yield self._row("what", "replay", self._what)
            yield self._row("against", "against", self._against)
            for name in _ORDER:
                if name in _TEXTS:
                    yield self._row(name, _TEXTS[name][0], self._inputs[name])
                else:
                    yield self._row(name, _CHOICES[name][0], self._choices[name])
            yield self._line
            yield Static(
                "enter: start   up, down: field   left, right: value   esc: cancel",
                classes="role--quiet",
                markup=False,
            )

    def on_mount(self) -> None:
        self._show_fields()
        self._what.focus()
        self.run_worker(self._read())

    def on_choice_changed(self, event: Choice.Changed) -> None:
        event.stop()
        if event.choice is self._against:
            self._propose(self._servers[int(event.choice.value)])
        self._show_fields()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if event.input is self._inputs["server"]:
            self._show_fields()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_start()

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_start(self) -> None:
        """Check the texts, and dismiss with the configuration, or show what is wrong."""
        form = self.form
        try:
            config = form.config()
        except UsageError as error:
            self._show(sanitize(str(error)), "bad")
            return
        try:
            remember(self._header, form)
        except OSError as error:
            self.notify(f"options are not remembered: {error.strerror}", markup=False)
        chosen = self._selections[int(self._what.value)]
        config |= {"path": str(self._path), "form": form, "query": chosen.query}
        self.dismiss(config if chosen.rows is None else {**config, "rows": list(chosen.rows)})

    @property
    def form(self) -> ReplayForm:
        texts = {name: field.value for name, field in self._inputs.items()}
        return ReplayForm(**texts, **{name: choice.value for name, choice in self._choices.items()})

    def _row(self, name: str, label: str, field: Widget) -> Horizontal:
        self._rows[name] = Horizontal(Static(label, classes="label", markup=False), field)
        return self._rows[name]

    async def _read(self) -> None:
        """Offer the servers, and ask for redacted values."""
        servers = await asyncio.to_thread(lambda: list(proposals(self._header)))
        keys = await asyncio.to_thread(redacted_keys, self._path)
        try:
            kept = await asyncio.to_thread(kept_patterns)
        except McpspyError as error:
            kept = []
            self.notify(sanitize(str(error)), severity="error", markup=False)
        self._servers = servers
        self._against.offer({str(place): sanitize(each.title) for place, each in enumerate(servers)})
        if not self._inputs["server"].value.strip():
            self._propose(servers[0])
        if kept and not self._inputs["ignored"].value.strip():
            self._inputs["ignored"].value = "; ".join(kept)
        secrets = self._inputs["secrets"]
        if keys and not secrets.value:
            secrets.value = " ".join(f"{key}=" for key in keys)
        self._rows["secrets"].set_class(not keys and not secrets.value, "-hidden")
        self._show("type the redacted values of the recording" if keys else "", "quiet")

    def _propose(self, server: ProposedServer) -> None:
        for name in ("server", "cwd", "environment", "headers"):
            self._inputs[name].value = getattr(server, name)

    def _show_fields(self) -> None:
        """Show the fields of a command, or those of a URL; and those of a load test."""
        is_load = self._choices["mode"].value == "load"
        for name in _LOAD:
            self._rows[name].set_class(not is_load, "-hidden")
        self._rows["pause"].set_class(is_load, "-hidden")
        is_url = self._inputs["server"].value.strip().startswith(("http:", "https:"))
        self._rows["headers"].set_class(not is_url, "-hidden")
        for name in ("cwd", "environment"):
            self._rows[name].set_class(is_url, "-hidden")
        if not self._inputs["secrets"].value:
            self._rows["secrets"].add_class("-hidden")

    def _show(self, text: str, role: str) -> None:
        self._line.update(text)
        self._line.set_classes([f"role--{role}"])


def shown_target(config: dict[str, Any]) -> str:
    """Return the server for the title, redacted."""
    if "url" in config:
        return sanitize(redacted_url(config["url"]))
    return shown_command(config["command"])
