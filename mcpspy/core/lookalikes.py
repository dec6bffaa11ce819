"""Characters that look like others, in letters of other alphabets or in forms of the same letter."""

from __future__ import annotations

import re
import unicodedata

_HOMOGLYPHS = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0406\u0408\u0405\u03bf\u03b1\u03bd\u03c1\u03b9\u03ba\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u0131\u0261\u0251\u0585\u057d",
    "aeopcyxijshdqwABEKMHOPCTXIJSoavpikABEZHIKMNOPTYXigaou",
)
"""Cyrillic, Greek, Armenian and rare Latin letters that look like common ones."""

_WORD = re.compile(r"\w+")

ALPHABETS = frozenset(("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "GEORGIAN"))
"""Alphabets with letters that look like those of another one, by the first word of a character's name."""


def as_latin(text: str) -> str:
    """Return a text with each character that looks like a Latin letter replaced by that letter."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_HOMOGLYPHS)


def visible(text: str) -> str:
    """Return a text without characters that have no width: format characters and combining marks."""
    return "".join(each for each in text if unicodedata.category(each) not in ("Cf", "Mn"))


def mixed_words(text: str) -> frozenset[str]:
    """Return the words that have letters of several alphabets, such as a Latin word with one Cyrillic letter."""
    if text.isascii():
        return frozenset()
    words = (found[0] for found in _WORD.finditer(text) if not found[0].isascii())
    return frozenset(word for word in words if len(_alphabets(word)) > 1)


def _alphabets(word: str) -> frozenset[str]:
    return ALPHABETS & {unicodedata.name(each, "").partition(" ")[0] for each in word if each.isalpha()}
