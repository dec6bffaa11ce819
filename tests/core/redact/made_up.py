"""Made-up tokens from the examples of docs/token_formats.toml: new ones for each seed, so that no rule fits constants."""

from __future__ import annotations

import random
import re
import string
import uuid

from mcpspy.core.redact.formats import TokenFormat

LETTERS = {
    "a": string.ascii_letters + string.digits,
    "w": string.ascii_letters + string.digits + "_-",
    "b": string.ascii_letters + string.digits + "+/",
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "d": string.digits,
    "L": string.ascii_letters,
    "x": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "n": "023456789acdefghjklmnpqrstuvwxyz",
    "s": string.ascii_lowercase + "234567",
    "z": string.ascii_uppercase + "234567",
    "B": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}
"""The classes of an example: `<a20>` is twenty letters and digits. `<i>` is a UUID."""

_PART = re.compile(r"<(?:(?P<letters>[a-zA-Z])(?P<count>[0-9]+)|i)>")


def token(template: str, choose: random.Random) -> str:
    """Return a made-up token."""

    def part(found: re.Match[str]) -> str:
        if found["letters"] is None:
            return str(uuid.UUID(int=choose.getrandbits(128), version=4))
        return "".join(choose.choices(LETTERS[found["letters"]], k=int(found["count"])))

    return _PART.sub(part, template)


def secret(each: TokenFormat, made: str) -> str:
    """Return the secret part of a token: its first group, if the pattern has one."""
    found = re.search(each.pattern, made)
    assert found is not None, each.id
    return found[found.lastindex or 0]


def near_misses(each: TokenFormat, choose: random.Random) -> list[str]:
    """Return texts that look like a token and are none: repeated letters, a part of one, the middle of a word."""
    made = token(each.example, choose)
    repeated = _PART.sub(lambda found: "x" * int(found["count"] or 36), each.example)
    end = max(made.find(text) + len(text) for text in each.literals if text in made)
    missed = [repeated, made[: end + 3] if end + 8 < len(made) else made[: end - 1]]
    missed.append(made[made.index(":") :] if each.literals[0].startswith(":") else made[each.back // 2 + 1 :])
    if made[0].isalnum():
        missed += [f"x{made}", f"word_{made}"]
    return missed
