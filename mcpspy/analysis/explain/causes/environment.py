"""Causes outside the protocol that an error names: settings, files, the network.

The same words mean the same, wherever they appear: on stderr of a server that ended, in a tool error, in a JSON-RPC error,
or on stderr while a request had no response.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from mcpspy.analysis.explain.causes.definition import Trouble
from mcpspy.analysis.explain.causes.examples import (
    call,
    done,
    exited,
    initialize,
    not_started,
    session,
    stderr,
)
from mcpspy.analysis.explain.causes.trouble_advice import advice_on
from mcpspy.analysis.explain.causes.troubles import TROUBLES, trouble_of
from mcpspy.analysis.explain.claims import Claim, Explain, Level, cause
from mcpspy.analysis.explain.evidence import BUG, EvidenceLine, NamedError, named_error, quote, quote_error
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import FailedRequest, ServerEnd, Symptom
from mcpspy.core.session.exchange import State


class _Named(NamedTuple):
    """A symptom whose error names a trouble."""

    symptom: Symptom
    trouble: Trouble
    about: str
    words: str
    line: EvidenceLine | None


def _named(facts: Facts) -> Iterator[_Named]:
    for symptom in facts.symptoms:
        match symptom:
            case ServerEnd(named=NamedError() as named, error=""):
                if around := _trouble_around(facts, named, at_start=not symptom.has_answered):
                    kind, text, line = around
                    about = "the server ended" if symptom.has_answered else "the server did not start"
                    words = named.framed if text == named.text else text
                    yield _Named(symptom, kind, about, words, line)
            case FailedRequest(effects=[]) if symptom.words and not symptom.is_refused:
                trouble = trouble_of(symptom.words[:600], at_start=False)
                if trouble and trouble.code == "setting-missing" and _DATA.search(symptom.words):
                    continue
                if trouble:
                    yield _Named(symptom, trouble, f"{symptom.about} failed", symptom.words, None)
                elif (error := named_error(symptom.stderr, certain=True)) and (
                    trouble := trouble_of(error.text, at_start=False)
                ):
                    words = f"{quote(symptom.words, 80)}; on stderr: {error.text}"
                    yield _Named(symptom, trouble, f"{symptom.about} failed", words, error.evidence)
            case FailedRequest(effects=[], state=State.CANCELLED | State.UNANSWERED | State.LATE_OK):
                error = named_error(symptom.stderr, certain=True)
                if error and (trouble := trouble_of(error.text, at_start=False)):
                    about = f"{symptom.about} got no response"
                    yield _Named(symptom, trouble, about, error.text, error.evidence)


def _trouble_around(
    facts: Facts, named: NamedError, *, at_start: bool
) -> tuple[Trouble, str, EvidenceLine] | None:
    """Return the trouble of the error of a server that ended, and the line that names it, which may be one before it."""
    lines = [line for line in facts.stderr if line.at <= named.line.at + 0.5][-12 if at_start else -8 :]
    texts = [(line.text.strip(), line.evidence) for line in reversed(lines)]
    if trouble := trouble_of(named.text, at_start=at_start):
        setting = _setting_before(facts, named) if at_start and trouble.code == "file-missing" else None
        return setting or (trouble, named.text, named.evidence)
    for text, line in texts:
        trouble = trouble_of(text, at_start=at_start)
        # A program that continues after a warning ends for another reason, but a runtime of the wrong version for this one.
        is_other = BUG.search(named.text) or _GOES_ON.search(text)
        if trouble is not None and not (is_other and trouble.code != "runtime-version"):
            return trouble, text, line
    return None


_NAMED_SETTING = re.compile(
    r"\b(?i:set|provide|export|missing|requires?|required)\b.{0,40}\b[A-Z][A-Z0-9]+_[A-Z0-9_]+"
)


def _setting_before(facts: Facts, named: NamedError) -> tuple[Trouble, str, EvidenceLine] | None:
    """Return the setting that a server names before the file which it looks for without it; None if it names none."""
    for line in facts.stderr:
        text = line.text.strip()
        trouble = trouble_of(text, at_start=True) if _NAMED_SETTING.search(text) else None
        if (
            trouble is not None
            and trouble.code == "setting-missing"
            and named.line.at - 1.0 <= line.at <= named.line.at
        ):
            return trouble, f"{named.text}; before it: {text}", line.evidence
    return None


_GOES_ON = re.compile(
    r"(?i)\bwarn(?:ing)?\b|\bdefaults?\b|\bskip|\bignor|fall(?:ing)?[- ]?back|\bcontinu|\boptional\b"
)
"""The words of a program that does without something."""

_DATA = re.compile(r"validation errors? for (?!\w*(?:Settings|Config|Env)\b)")
"""Pydantic, about an object that is not the settings of the program."""

_NETWORK = ("name-not-resolved", "service-unreachable", "tls-failure", "service-refused-key")
_ADDRESS = re.compile(r"[\w-]+(?:\.[\w-]+)+(?::\d+)?")
_HOST_IN_URL = re.compile(r"(?i)^(?:https?|wss?|ftp)://(?:[^/@\s]*@)?([^/:?#\s]+)")


def _named_by_call(symptom: Symptom, trouble: Trouble, words: str) -> str:
    """Return the text among the arguments of a call that its error is about; empty if there is none."""
    for text in symptom.texts if isinstance(symptom, FailedRequest) else ():
        if trouble.code in _NETWORK:
            host = _HOST_IN_URL.search(text)
            if host is not None and (host[1] in words or "://" not in words):
                return host[1]
            is_address = _ADDRESS.fullmatch(text) is not None and trouble.code != "service-refused-key"
            if is_address and text in words:
                return text
        elif trouble.code in ("file-missing", "text-encoding", "setting-missing"):
            is_plain = re.fullmatch(r"\w+", text) is not None
            found = re.search(rf"[\"'`]{re.escape(text)}[\"'`]", words) if is_plain else text in words
            if found:
                return text
    return ""


def _explains(trouble: Trouble) -> Explain:
    def claims(facts: Facts) -> Iterator[Claim]:
        every = [named for named in _named(facts) if named.trouble is trouble]
        for is_end in (True, False):
            same = [named for named in every if isinstance(named.symptom, ServerEnd) is is_end]
            if not same:
                continue
            symptoms: list[Symptom] = [named.symptom for named in same]
            symptoms += [each for end in symptoms if isinstance(end, ServerEnd) for each in end.during]
            others = {named.about for named in same[1:]} - {same[0].about}
            title = f"{same[0].about}: {quote_error(same[0].words)}"
            title += f"; also {', '.join(sorted(others)[:3])}" if others else ""
            lines = [each.line for each in same[:2] if each.line is not None]
            side, step = advice_on(facts, trouble, same[0].words)
            if not is_end and (named := _named_by_call(same[0].symptom, trouble, same[0].words)):
                side = ""
                step = f"the call itself names {quote(named, 80)!r}: check that first; if it is right: {step}"
            elif trouble.code == "port-in-use" and not is_end:
                side = ""  # This server may have the port itself.
            elif trouble.code == "service-refused-key" and not facts.is_stdio:
                side = ""
                step = (
                    "set a valid key or token for the service where this server has it from: its own settings or store of "
                    "credentials (it may still use the one before), or what the client sends to it (a header, the URL); if it passes "
                    "the client's own token on, let it answer HTTP 401 for one that is refused, so that the client gets a new one"
                )
            elif trouble.code == "service-refused-key" and _FORBIDDEN.search(same[0].words):
                side = ""  # The service may know who asks.
                step = (
                    "the service refused with 403: look whether this key has the permission (scope, plan, region), and "
                    "whether the service lets programs in at all"
                )
            claim = Claim(title, step, symptoms, evidence=lines, side=side)
            claim.level = Level.EXACT if is_end else Level.SPECIFIC
            yield claim

    claims.__doc__ = trouble.named_by
    return claims


_FORBIDDEN = re.compile(r"(?is)^(?!.*(?:\b401\b|key|token|credential|auth|expired)).*\b403\b")
"""A status that is not about the form or the age of credentials."""


_NOT_OF_TROUBLES: dict[str, str | tuple[str, ...]] = {
    "setting-missing": (
        session(
            *("@ bare", initialize(), stderr("Warning: config file not found, using defaults")),
            *(stderr("TypeError: Cannot read properties of undefined (reading 'x')"), exited(1)),
        ),
        session(call(), done(2, "1 validation error for WeatherResponse temp Field required", isError=True)),
    ),
    "container-failed": session(
        *("@ bare", initialize(), stderr("Unable to find image 'mcp/x:latest' locally")),
        *(stderr("RuntimeError: boom"), exited(1)),
    ),
}
"""Code of a trouble → sessions in which its words are not the reason."""

for _each in TROUBLES:
    _add = cause(
        _each.code,
        _each.what,
        Level.SPECIFIC,
        positive=tuple(map(not_started, _each.errors)),
        negative=_NOT_OF_TROUBLES.get(_each.code, ()),
    )
    _add(_explains(_each))
