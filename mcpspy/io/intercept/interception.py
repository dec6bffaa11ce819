"""Interception of a session on any transport: options, commands of viewers, and message history.

Contains the parts that the pure engine may not do: reading rule files, generating random seeds and ids, and
reading a limited part of the session's own recording for an interceptor that starts late. It imports almost
nothing, because `mcpspy run` reads its options before it starts the server.
"""

from __future__ import annotations

import os
from time import monotonic

from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording.recorder import say
from mcpspy.io.scripts import ScriptOptions
from mcpspy.io.settings import UnsafeRegex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from mcpspy.core.intercept.actions import Step
    from mcpspy.core.intercept.interceptor import Interceptor
    from mcpspy.core.intercept.scripts import ScriptQueue
    from mcpspy.core.intercept.trust_guard import TrustGuard
    from mcpspy.core.recording.decode import Frame
    from mcpspy.core.rules.model import Rules
    from mcpspy.io.intercept.executor import Carrier, Effect, Plan
    from mcpspy.io.recording.recorder import Recorder
    from mcpspy.io.scripts import ScriptProcess

HOLD_TIMEOUT = 300.0
"""Default time, in seconds, after which a held message is released."""

HEAD = 1 << 16
"""Bytes read from the start, where the peers introduce themselves."""

TAIL = 1 << 18
"""Bytes read from the end, where the pending requests are."""

WITHOUT = "traffic continues without it"
"""The outcome if interception or the scripts have ended for good."""

RESTART = "restart"
"""Order to restart the server, of a session that can (docs/restart.md); also the kind of its notes."""

MAX_WAITING = 1000, 8 << 20
"""Messages and bytes of a side that may wait for a script. Above either, mcpspy stops reading from that side."""


class InterceptionOptions:
    """The interception options of `run`, `http` and `bridge`."""

    def __init__(self, unsafe_regex: UnsafeRegex | None = None) -> None:
        """`unsafe_regex` is the decision that redaction has too: it warns about a pattern once."""
        self.files: list[str] = []
        self.flags: list[str] = []
        """Rules as written on the command line."""
        self.call_timeout: float | None = None
        self.slow: float | None = None
        self.hold_timeout = HOLD_TIMEOUT
        self.unsafe_regex = UnsafeRegex() if unsafe_regex is None else unsafe_regex
        self.scripts = ScriptOptions()
        self.trust: str | None = None
        """The lockfile."""
        self.on_change: str | None = None
        self.first_use = False
        """True to trust the first listings of a server that is not in the lockfile."""
        self.command: list[str] | None = None
        """Command of the server, which identifies it in the lockfile; None for an HTTP server."""
        self.url = ""
        self.name = ""
        """Name of the server in the lockfile if neither command nor URL is there."""
        self.folder: str | None = None
        """Folder of recordings, for the command that reviews a change; None for the default one."""
        self.may_be_unknown = False
        """True if a server that is not in the lockfile is not checked, instead of refused."""

    @property
    def is_active(self) -> bool:
        """Return whether messages are inspected from the first one on."""
        return (
            bool(self.files or self.flags or self.scripts.files or self.trust)
            or self.call_timeout is not None
            or self.slow is not None
        )

    def rules(self) -> Rules:
        """Return the rules, those of files first. Raise UsageError with the position of an error, or CannotStart."""
        from mcpspy.core.rules.model import Rule, Rules
        from mcpspy.core.rules.parser import read_file, read_flag

        rules: list[Rule] = []
        for file in self.files:
            rules += read_file(_read(file), file, len(rules) + 1, self.unsafe_regex)
        for flag in self.flags:
            rules.append(read_flag(flag, len(rules) + 1, self.unsafe_regex))
        names = [rule.name for rule in rules if rule.name]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f'two rules are named "{name}"', "notes identify rules by name; rename one")
        return Rules(tuple(rules), int.from_bytes(os.urandom(4)))

    def guard(self) -> TrustGuard | None:
        """Return the check of one session; None without a lockfile. Raise UsageError or CannotStart."""
        if self.trust is None:
            return None
        from mcpspy.io.lockfile import ServerIdentity, guard

        where = os.getcwd() if self.command else None
        identity = ServerIdentity(self.name, command=self.command, cwd=where, url=self.url)
        return guard(
            self.trust,
            identity,
            self.on_change or "report",
            first_use=self.first_use,
            may_be_unknown=self.may_be_unknown,
            folder=self.folder,
        )

    def interceptor(self) -> Interceptor:
        """Return the engine of one session. Raises the same errors as `rules`."""
        from mcpspy.core.intercept.interceptor import Interceptor

        scripts = None
        if self.scripts.files:
            from mcpspy.core.intercept.scripts import ScriptQueue

            scripts = ScriptQueue(self.scripts.names, os.urandom(16).hex())
        return Interceptor(
            self.rules(),
            call_timeout=self.call_timeout,
            slow=self.slow,
            hold_timeout=self.hold_timeout,
            prefix=f"mcpspy-{os.urandom(3).hex()}-",
            allow_unsafe=self.unsafe_regex,
            scripts=scripts,
            trust=self.guard(),
        )


class SessionInterception:
    """The interception engine of one session and its viewers. A subclass is the `Carrier` of the messages.

    Only `order` raises.
    """

    transport = ""
    """The name of the transport, as shown to viewers."""

    def __init__(self, recorder: Recorder, options: InterceptionOptions, name: str) -> None:
        self._recorder = recorder
        self._options = options
        self._name = name
        self._epoch = monotonic() - recorder.now()
        self._interceptor: Interceptor | None = None
        self._failure = ""
        """The bug that ended interception, on one line."""
        self._known_until = 0.0
        """Seconds from the start up to which the interceptor knows the traffic."""
        self._scripts: ScriptProcess | None = None
        self._is_closing = False
        self._stderr_lines: list[bytes] = []
        """Lines of the server's stderr that arrived before the scripts were loaded."""
        self.orders: dict[str, Callable[[str, dict[str, Any]], dict[str, Any]]] = {}
        """Commands that another part of mcpspy executes → its function, of viewer and command, which raises
        CommandError."""
        self.is_on = False
        """True if messages are intercepted."""
        self.session = recorder.id or os.urandom(4).hex()
        self.tell: Callable[[str | None, dict[str, Any]], None] = _ignore
        """Send an event to a viewer, or to all (None). Must not call back."""

    def now(self) -> float:
        """Return the seconds since the session started, even without a recording."""
        return monotonic() - self._epoch

    def begin(self) -> None:
        """Apply the rules, the scripts and the lockfile of the command line, starting with the first message."""
        if self._options.is_active:
            try:
                self._interceptor = self._options.interceptor()
                opening = self._interceptor.rules_note()
                self._recorder.note(opening.kind, **opening.fields)
            except Exception as error:
                self._give_up(error)
        self._settle()

    def waiting_for_scripts(self, side: str) -> tuple[int, int]:
        """Return the number and the bytes of the messages of a side that wait for the scripts."""
        scripts = None if self._interceptor is None else self._interceptor.scripts
        return (0, 0) if scripts is None else scripts.waiting(side)

    def is_crowded(self, side: str) -> bool:
        """Return whether the messages of a side that wait for the scripts exceed MAX_WAITING."""
        number, size = self.waiting_for_scripts(side)
        return number > MAX_WAITING[0] or size > MAX_WAITING[1]

    def hello(self) -> dict[str, Any]:
        """Return the greeting for a viewer."""
        return {
            "session": self.session,
            "file": self._recorder.path,
            "folder": self._recorder.folder,
            "name": self._name,
            "transport": self.transport,
            "pid": os.getpid(),
            **({"restarts": True} if RESTART in self.orders else {}),
            "state": {} if self._interceptor is None else self._interceptor.describe(self.now()),
        }

    def listening(self, path: str | None) -> None:
        """Start the scripts, which connect to the control socket; None without a socket."""
        scripts = None if self._interceptor is None else self._interceptor.scripts
        if scripts is None:
            return
        if path is None:
            self._scripts_failed("cannot run without a control socket", is_final=True)
            return
        from mcpspy.io.scripts import ScriptProcess

        self._scripts = ScriptProcess(self._options.scripts, path, scripts.token)
        self._start_scripts()
        self._settle()

    def closing(self) -> None:
        """Ignore the end of the script process from now on, because the session has ended."""
        self._is_closing = True

    def closed(self) -> None:
        """Wait for the script process, which has received the end of the session."""
        if self._scripts is not None:
            self._scripts.wait()

    def order(self, viewer: str, order: dict[str, Any]) -> dict[str, Any]:
        """Execute a viewer's command and return the response. Raise CommandError."""
        from mcpspy.core.intercept.actions import CommandError

        if (execute := self.orders.get(str(order.get("order")))) is not None:
            return execute(viewer, order)
        if self._failure:
            raise CommandError(self._failure)
        try:
            interceptor = self._synchronized()
            if order.get("order") in ("request", "notify"):
                self._check_deliverable(interceptor, order)
            at = self.now()
            answer, steps = interceptor.execute(at, viewer, order)
            _report_failures(steps, WITHOUT if order.get("final") is True else "")
            self._carry_out(at, steps)
            if order.get("order") == "scripts":
                self._scripts_changed(interceptor, is_final=order.get("final") is True)
        except CommandError:
            raise
        except Exception as error:
            self._give_up(error)
            raise CommandError(self._failure) from None
        finally:
            self._settle()
        return answer

    def viewer_left(self, viewer: str) -> None:
        """Release all messages that this viewer held."""
        scripts = None if self._interceptor is None else self._interceptor.scripts
        if scripts is not None and viewer == scripts.viewer and not self._is_closing:
            self._scripts_failed("")
        self._run(lambda interceptor, at: interceptor.viewer_left(at, viewer))
        self._settle()

    def _synchronized(self) -> Interceptor:
        """Return an interceptor that knows all messages recorded so far."""
        interceptor = self._interceptor
        if interceptor is None:
            interceptor = self._interceptor = self._options.interceptor()
        if not self.is_on:
            for frame in frames(self._recorder, self._known_until):
                interceptor.observe(frame.at, frame.side, frame.data, stream=frame.stream)
        return interceptor

    def wake(self) -> None:
        """Execute everything that is due."""
        scripts = None if self._interceptor is None else self._interceptor.scripts
        if scripts is not None and scripts.next_at is not None and scripts.next_at <= self.now():
            self._check_scripts(scripts)
        self._run(lambda interceptor, at: interceptor.run_due(at))
        self._settle()

    def _run(self, decide: Callable[[Interceptor, float], list[Step]]) -> None:
        """Execute the steps that follow from something other than a message."""
        if self._interceptor is not None:
            at = self.now()
            try:
                self._carry_out(at, decide(self._interceptor, at))
            except Exception as error:
                self._give_up(error)

    def _planned(self: Carrier, at: float, steps: Iterable[Step]) -> Plan:
        """Return what these steps record, and their effects."""
        from mcpspy.io.intercept.executor import plan

        return plan(self, at, steps)

    def _execute(self, effects: Iterable[Effect]) -> None:
        """Call the effects of steps that are recorded."""
        try:
            for effect in effects:
                effect()
        except Exception as error:
            self._give_up(error)

    def undeliverable(self, at: float, id: str) -> list[Step]:  # noqa: A002
        """Return the steps that report to its viewer that an injected request has no receiver."""
        if self._interceptor is None:
            return []
        return self._interceptor.injection_failed(at, id, "its receiver has disconnected")

    def notify(self, viewer: str | None, event: dict[str, Any]) -> None:
        """Send an event to a viewer, or to all (None)."""
        self.tell(viewer, event)

    def _check_scripts(self, scripts: ScriptQueue) -> None:
        """Handle a script process that has not answered in time, or has ended before it connected."""
        if scripts.hooks is not None:
            self._scripts_failed("hangs: no decision in time")
        elif self._scripts is None or not self._scripts.is_running:
            self._scripts_failed("")
        elif not scripts.is_starting(self.now()):
            self._scripts_failed("did not start")

    def _start_scripts(self) -> None:
        assert self._interceptor is not None
        assert self._interceptor.scripts is not None
        assert self._scripts is not None
        try:
            self._scripts.start()
        except OSError as error:
            self._scripts_failed(f"cannot start Python: {error.strerror}", is_final=True)
        else:
            self._interceptor.scripts.started(self.now())
            self._watch_stderr(is_wanted=True)

    def _scripts_changed(self, interceptor: Interceptor, *, is_final: bool) -> None:
        """Handle a new state of the script process."""
        assert interceptor.scripts is not None
        if is_final and interceptor.scripts.is_active:
            self._run(lambda interceptor, at: interceptor.scripts_failed(at, "not loaded", is_final=True))
        hooks = interceptor.scripts.hooks
        self._watch_stderr(is_wanted=interceptor.scripts.is_active and (hooks is None or "stderr" in hooks))

    def _scripts_failed(self, why: str, *, is_final: bool = False) -> None:
        """Release the messages that the script process had, and start it again if that may help."""
        interceptor = self._interceptor
        if interceptor is None or interceptor.scripts is None or not interceptor.scripts.is_active:
            return
        ended = "" if self._scripts is None else self._scripts.kill()
        is_final = is_final or self._scripts is None or not self._scripts.may_start
        why = why or ended or "disconnected"
        self._watch_stderr(is_wanted=False)

        def fail(interceptor: Interceptor, at: float) -> list[Step]:
            steps = interceptor.scripts_failed(at, why, is_final=is_final)
            _report_failures(steps, WITHOUT if is_final else "started again")
            return steps

        self._run(fail)
        if not is_final:
            self._start_scripts()

    def _watch_stderr(self, *, is_wanted: bool) -> None:
        """Send the lines of the server's stderr to the script process, on a transport that has it."""

    def _tell_stderr(self, line: bytes) -> None:
        """Pass a line to the scripts, or keep it until they are loaded."""
        scripts = None if self._interceptor is None else self._interceptor.scripts
        if scripts is not None and scripts.hooks is not None:
            self.tell(scripts.viewer, {"event": "stderr", "text": line.decode("utf-8", "replace")})
        elif len(self._stderr_lines) < MAX_WAITING[0]:
            self._stderr_lines.append(line)

    def _discard(self, error: Exception) -> None:
        """Discard the interceptor because of a bug, and report it."""
        self._interceptor = None
        self._failure = f"interception stopped by a bug in mcpspy: {type(error).__name__}: {error}"
        say(f"{self._failure}; {WITHOUT}")

    def _settle(self) -> None:
        """Intercept while there is something to decide, and set the alarm for the next deadline."""
        interceptor, was_on = self._interceptor, self.is_on
        self.is_on = self._switch(is_wanted=interceptor is not None and not interceptor.is_idle)
        if was_on and not self.is_on:
            self._known_until = self.now()
        self._set_alarm(None if interceptor is None else interceptor.next_at)

    # Implemented by each transport.

    def _check_deliverable(self, interceptor: Interceptor, order: dict[str, Any]) -> None:
        """Prepare to inject a message. Raise CommandError if it cannot be delivered."""
        raise NotImplementedError

    def _carry_out(self, at: float, steps: list[Step]) -> None:
        """Record these steps, then execute them. A bug here may raise anything."""
        raise NotImplementedError

    def _switch(self, *, is_wanted: bool) -> bool:
        """Start or stop intercepting messages. Return whether they are intercepted now."""
        raise NotImplementedError

    def _set_alarm(self, next_at: float | None) -> None:
        """Call `wake` at this time since the start; None cancels the alarm."""
        raise NotImplementedError

    def _give_up(self, error: Exception) -> None:
        """Discard the interceptor because of a bug. Release all messages."""
        raise NotImplementedError


def frames(recorder: Recorder, since: float) -> Iterator[Frame]:
    """Yield the messages recorded after `since` seconds, in order; of a large file, only the first and last ones.

    Yields nothing if there is no recording or it cannot be read.
    """
    from mcpspy.core.recording.decode import Frame, read_entry

    if recorder.writer is None or recorder.path is None:
        return
    for line in _lines(recorder.path, recorder.writer.path):
        entry = read_entry(line)
        if isinstance(entry, Frame) and entry.at > since:
            yield entry


def _report_failures(steps: list[Step], outcome: str = "") -> None:
    """Print a line for each failure of a script: what became of its messages, and the outcome for the scripts."""
    from mcpspy.core.counted import counted
    from mcpspy.core.intercept.actions import AddNote

    for step in steps:
        if isinstance(step, AddNote) and step.fields.get("action") == "script":
            parts = [str(step.fields["failed"])]
            released = step.fields.get("released")
            if released is None:  # Of one message.
                parts.append("forwarded unchanged")
            elif isinstance(released, int) and released:
                parts.append(f"{counted(released, 'message')} forwarded unchanged")
            if outcome:
                parts.append(outcome)
            say(f"script {step.fields['script']}: {'; '.join(parts)}")


def _ignore(viewer: str | None, event: dict[str, Any]) -> None: ...


def _read(file: str, what: str = "rules") -> str:
    try:
        with open(file, encoding="utf-8") as rules:
            return rules.read()
    except UnicodeDecodeError:
        raise UsageError(f"{file}: not UTF-8", "TOML files must be UTF-8") from None
    except OSError as error:
        raise CannotStart(f"cannot read {what}: {file}: {error.strerror}", "is the path right?") from None


def _lines(first: str, current: str) -> Iterator[bytes]:
    """Yield complete lines from the start of the first part and from the end of the current part."""
    try:
        size = os.stat(current).st_size
        if first != current or size > HEAD + TAIL:
            yield from _read_lines(first, 0, HEAD)[1:-1]
            yield from _read_lines(current, max(0, size - TAIL), TAIL)[1:-1]
        else:
            yield from _read_lines(current, 0, size)[1:-1]
    except OSError:  # A device, or a file that was moved: the history is unknown.
        return


def _read_lines(path: str, start: int, size: int) -> list[bytes]:
    """Return the lines. The first one may be the header or incomplete; the last one is incomplete."""
    with open(path, "rb") as file:
        file.seek(start)
        return file.read(size).split(b"\n")
