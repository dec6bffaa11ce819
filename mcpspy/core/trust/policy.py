"""The policy of a lockfile: allowed tools, their arguments, and limits of calls and requests."""

from __future__ import annotations

from collections import Counter, deque
from fnmatch import fnmatchcase
from typing import Any

from mcpspy.core.protocol.message import Request
from mcpspy.core.trust.difference import Difference
from mcpspy.core.trust.lock import TrustPolicy, validator

LIMITS = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation", "roots/list": "roots"}
"""Method of a request of the server → its limit in the policy."""


class PolicyCheck:
    """Counts calls and requests, and checks them against the policy."""

    def __init__(self, policy: TrustPolicy) -> None:
        self._policy = policy
        self._validators: dict[str, Any] = {}
        """Validators of arguments, by tool; created with its first call."""
        self._calls: deque[float] = deque()
        self._counts: Counter[str] = Counter()
        self.has_limits = any(getattr(policy, name) is not None for name in LIMITS.values())

    def allows_any_call(self, name: str) -> bool:
        """Return True if every call of a tool is allowed, whenever it comes and with any arguments."""
        is_limited = self._policy.calls_per_minute is not None or name in self._policy.arguments
        return not is_limited and self._name(name) is None

    def called(self, message: Request) -> Difference | None:
        name, policy = message.subject or "", self._policy
        if (refused := self._name(name)) is not None:
            return refused
        if name in policy.arguments:
            from jsonschema_rs import ValidationError

            params = message.params
            arguments = params.get("arguments", {}) if isinstance(params, dict) else {}
            if name not in self._validators:
                self._validators[name] = validator(policy.arguments[name])
            try:
                self._validators[name].validate(arguments)
            except ValidationError as error:
                return _violation(f"tool {name}: arguments violate the policy: {error.message}")
            except ValueError as error:  # A lone surrogate, or too deep nesting.
                return _violation(f"tool {name}: arguments cannot be checked: {error}")
        return self._rate(message.at)

    def _name(self, name: str) -> Difference | None:
        if any(fnmatchcase(name, each) for each in self._policy.deny):
            return _violation(f"tool {name} is denied by the policy")
        if not any(fnmatchcase(name, each) for each in self._policy.allow):
            return _violation(f"tool {name} is not allowed by the policy")
        return None

    def limited(self, method: str) -> Difference | None:
        """Count a request of the server; return the violation if it is one too many."""
        name = LIMITS.get(method)
        most = None if name is None else getattr(self._policy, name)
        if name is None or most is None:
            return None
        self._counts[name] += 1
        return _violation(f"{method}: the policy allows {most}") if self._counts[name] > most else None

    def _rate(self, at: float) -> Difference | None:
        most = self._policy.calls_per_minute
        if most is None:
            return None
        while self._calls and self._calls[0] <= at - 60:
            self._calls.popleft()
        if len(self._calls) >= most:
            return _violation(f"tools/call: the policy allows {most} per minute")
        self._calls.append(at)
        return None


def _violation(text: str) -> Difference:
    return Difference([text], None, f"{text} (mcpspy, policy of the lockfile)", is_policy=True)
