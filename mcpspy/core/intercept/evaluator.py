"""Decision about one message: the rules and the lockfile, in order.

`RuleEvaluator` applies matching rules in order, up to the first final action (answer, drop, corrupt, disconnect or
hold), and counts the matches of each rule. Queries see the original message, without the changes of earlier rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mcpspy.core.intercept.actions import Fields, rule_note, text_field
from mcpspy.core.intercept.held import LiveItem, RuleDecision
from mcpspy.core.intercept.requests import AwaitedRequest, about, answer, completed
from mcpspy.core.jsontools import Pointer
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Malformed,
    Notification,
    Request,
    Result,
    loads,
    read_frame,
)
from mcpspy.core.rules.edit import OVERSIZE, WRONG_ID, corrupted, merged, put, to_json
from mcpspy.core.rules.model import (
    NON_FINAL_ACTIONS,
    RESPONDING_ACTIONS,
    CorruptAction,
    DelayAction,
    DisconnectAction,
    DropAction,
    FailAction,
    HoldAction,
    RepairAction,
    ReplaceAction,
    RespondAction,
    Rule,
    Rules,
    roll,
)
from mcpspy.core.rules.repair import repairs
from mcpspy.core.rules.template import filled

if TYPE_CHECKING:
    from mcpspy.core.intercept.trust_guard import TrustGuard


class MessageChecks:
    """The checks of a session in order. Each reads the message as the one before has changed it.

    The lockfile applies to the server's own names: to a request after rules have changed it, to a response before.
    """

    def __init__(self, rules: Rules, trust: TrustGuard | None = None) -> None:
        ruled = [RuleEvaluator(rules).apply] if rules else []
        trusted = [] if trust is None else [trust.apply]
        self._of_requests = [*ruled, *trusted]
        self._of_others = [*trusted, *ruled]

    def decide(self, message: AnyMessage, request: AwaitedRequest | None) -> RuleDecision:
        """Return the decision about a message; `request` is the request that the message responds to."""
        decision = RuleDecision()
        for check in self._of_requests if isinstance(message, Request) else self._of_others:
            if decision.data is not None:
                (message, *_) = read_frame(replace(message.frame, data=decision.data))
            check(message, request, decision)
        return decision


class RuleEvaluator:
    """Rules of one run, with their match counts and the names that they have changed."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._matches = [0] * len(rules.rules)
        self._taken = [0] * len(rules.rules)
        self._originals: dict[str, str] = {}
        """Repaired name of a tool → its own."""

    def apply(self, message: AnyMessage, request: AwaitedRequest | None, decision: RuleDecision) -> None:
        """Add the decision of the rules about a message."""
        item = LiveItem(message, request)
        for number, rule in enumerate(self._rules.rules):
            if _is_for(rule, message, request) and rule.query.matches(item) and self._takes(number, rule):
                context = _Context(message, request, self._originals)
                fields = _ACTIONS[type(rule.action)](rule.action, rule, decision, context)
                if fields is None:
                    continue
                fields = {"rule": rule.label, **about(message, request), **fields}
                # A hold is noted later, when the message is held.
                if not isinstance(rule.action, HoldAction):
                    decision.notes.append(rule_note(rule.action_name, fields))
                if not isinstance(rule.action, NON_FINAL_ACTIONS):
                    break

    def _takes(self, number: int, rule: Rule) -> bool:
        """Count a match and return True if the rule applies to it; the decision does not depend on time."""
        self._matches[number] += 1
        match = self._matches[number]
        if match <= rule.after or (rule.times is not None and self._taken[number] >= rule.times):
            return False
        if rule.probability < 1:
            seed = self._rules.seed if rule.seed is None else rule.seed
            if roll(seed, rule.label, match) >= rule.probability:
                return False
        self._taken[number] += 1
        return True


def _is_for(rule: Rule, message: AnyMessage, request: AwaitedRequest | None) -> bool:
    """Return True if the rule's action is possible for this message."""
    action = rule.action
    if isinstance(action, RepairAction):
        lists = isinstance(message, Result) and request is not None and request.method == "tools/list"
        return lists or (isinstance(message, Request) and message.method == "tools/call")
    if rule.of_requests and not isinstance(message, Request | Notification):
        return False
    if isinstance(action, RESPONDING_ACTIONS):
        return isinstance(message, Request)
    if isinstance(action, CorruptAction) and action.way == WRONG_ID:
        return isinstance(message, Request | Result | Failure) and message.id is not None
    return not (isinstance(action, ReplaceAction) and isinstance(message, Malformed))


class _Context:
    """A message and its request as template context, decoded on demand."""

    def __init__(
        self, message: AnyMessage, request: AwaitedRequest | None, originals: dict[str, str]
    ) -> None:
        self.message = message
        self.originals = originals
        self._request = request
        self._values: dict[str, Any] = {}

    def value(self, part: str) -> Any:
        if part not in self._values:
            request = self._request.data if self._request is not None else b""
            self._values[part] = loads(self.message.data if part == "message" else request)
        return self._values[part]


def _delay(action: DelayAction, _rule: Rule, decision: RuleDecision, _context: _Context) -> Fields:
    decision.delay += action.seconds
    return {"seconds": action.seconds}


def _drop(_action: DropAction, _rule: Rule, decision: RuleDecision, _context: _Context) -> Fields:
    decision.is_dropped = decision.hides_response = True
    return {}


def _disconnect(_action: DisconnectAction, _rule: Rule, decision: RuleDecision, _context: _Context) -> Fields:
    decision.is_disconnected = decision.hides_response = True
    return {}


def _hold(_action: HoldAction, rule: Rule, decision: RuleDecision, _context: _Context) -> Fields:
    decision.holder = decision.holder or rule.label
    return {}


def _fail(action: FailAction, _rule: Rule, decision: RuleDecision, context: _Context) -> Fields:
    error = {"code": action.code, "message": filled(action.message, context.value)}
    if not isinstance(error["message"], str):
        error["message"] = to_json(error["message"]).decode()
    if action.has_data:
        error["data"] = filled(action.data, context.value)
    return _answer(decision, context, b"error", error)


def _respond(action: RespondAction, _rule: Rule, decision: RuleDecision, context: _Context) -> Fields:
    assert isinstance(context.message, Request)
    result = filled(action.result, context.value)
    return _answer(decision, context, b"result", completed(context.message, result))


def _answer(decision: RuleDecision, context: _Context, member: bytes, value: Any) -> Fields:
    assert isinstance(context.message, Request)
    decision.answer = answer(context.message.id, member, value)
    return text_field("sent", decision.answer)


def _replace(action: ReplaceAction, _rule: Rule, decision: RuleDecision, context: _Context) -> Fields:
    data = context.message.data if decision.data is None else decision.data
    try:
        if not action.values:
            data = merged(data, filled(action.patch, context.value))
        for pointer, value in action.values:
            data = put(data, pointer, filled(value, context.value))
    except ValueError as error:
        return {"failed": str(error)}
    decision.data = data
    return text_field("sent", data)


def _repair(action: RepairAction, _rule: Rule, decision: RuleDecision, context: _Context) -> Fields | None:
    """Repair a list of tools, or restore the name in a call. Return None if that changes nothing."""
    data = context.message.data if decision.data is None else decision.data
    message, originals = context.message, context.originals
    if isinstance(message, Request):
        name = originals.get(message.subject or "")
        changes: list[tuple[Pointer, Any]] = [] if name is None else [(("params", "name"), name)]
    else:
        result = context.value("message").get("result")
        changes = list(repairs(result, action.longest_name, schemas=action.schemas, originals=originals))
    for pointer, value in changes:
        data = put(data, pointer, value)
    if not changes:
        return None
    decision.data = data
    return text_field("sent", data)


def _corrupt(action: CorruptAction, _rule: Rule, decision: RuleDecision, context: _Context) -> Fields:
    data = context.message.data if decision.data is None else decision.data
    message = context.message
    id_text = message.id if isinstance(message, Request | Result | Failure) else None
    corrupt = corrupted(data, action.way, id_text, action.size)
    decision.data, decision.is_cut = corrupt.data, corrupt.is_cut
    decision.hides_response = action.way != OVERSIZE
    # The recording has the number of blanks, which may be 16 MiB, instead of a second copy of the message.
    replacement = {"padding": corrupt.padding} if corrupt.padding else text_field("sent", corrupt.data)
    return {"how": action.way, **replacement}


_ACTIONS: dict[type, Callable[[Any, Rule, RuleDecision, _Context], Fields | None]] = {
    DelayAction: _delay,
    DropAction: _drop,
    FailAction: _fail,
    RespondAction: _respond,
    ReplaceAction: _replace,
    RepairAction: _repair,
    CorruptAction: _corrupt,
    DisconnectAction: _disconnect,
    HoldAction: _hold,
}
