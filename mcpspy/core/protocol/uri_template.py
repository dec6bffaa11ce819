"""Templates of URIs (RFC 6570): variables, expansion, and the pattern of the URIs that they expand to."""

from __future__ import annotations

import re
from collections.abc import Mapping

_EXPRESSION = re.compile(r"\{([+#./;?&]?)([^{}]*)\}")

_STYLES = {
    "": ("", ",", False),
    "+": ("", ",", False),
    "#": ("#", ",", False),
    ".": (".", ".", False),
    "/": ("/", "/", False),
    ";": (";", ";", True),
    "?": ("?", "&", True),
    "&": ("&", "&", True),
}
"""Operator → first character, separator, and whether the name of a variable is written (RFC 6570, appendix A)."""

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_RESERVED = frozenset(":/?#[]@!$&'()*+,;=%")


def template_variables(template: str) -> dict[str, bool]:
    """Return the names of the variables; true for those without which the URI has a gap."""
    found: dict[str, bool] = {}
    for operator, names in _EXPRESSION.findall(template):
        for name, _ in map(_variable, names.split(",")):
            if name:
                found[name] = found.get(name, False) or operator in ("", "+", "/")
    return found


def expanded(template: str, values: Mapping[str, str]) -> str:
    """Return the URI of a template; a variable without a value is left out."""

    def expand(found: re.Match[str]) -> str:
        operator = found[1]
        first, separator, is_named = _STYLES[operator]
        allowed = _UNRESERVED | _RESERVED if operator in ("+", "#") else _UNRESERVED
        parts = []
        for name, length in map(_variable, found[2].split(",")):
            if name in values:
                text = _encoded(values[name][:length], allowed)
                equals = "" if operator == ";" and not text else "="
                parts.append(f"{name}{equals}{text}" if is_named else text)
        return first + separator.join(parts) if parts else ""

    return _EXPRESSION.sub(expand, template)


def uri_pattern(template: str) -> re.Pattern[str]:
    """Return a pattern of the URIs that a template may expand to."""
    kinds = {"+": ".+", "#": "(?:#.*)?", "?": r"(?:\?.*)?", "&": "(?:&.*)?", "/": "(?:/[^?#]*)?"}
    parts = re.split(r"\{([^{}]*)\}", template)
    return re.compile(
        "".join(
            kinds.get(part[:1], "[^/?#]+") if number % 2 else re.escape(part)
            for number, part in enumerate(parts)
        ),
        re.DOTALL,
    )


def _variable(text: str) -> tuple[str, int | None]:
    """Return the name of a variable, and the number of characters of its value that are used, None for all."""
    name, colon, length = text.strip().removesuffix("*").partition(":")
    return name, int(length) if colon and length.isascii() and length.isdigit() and len(length) < 5 else None


def _encoded(text: str, allowed: frozenset[str]) -> str:
    return "".join(
        each if each in allowed else "".join(f"%{byte:02X}" for byte in each.encode("utf-8", "replace"))
        for each in text
    )
