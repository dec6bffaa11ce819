"""The page marks the same invisible characters as the terminal."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import mcpspy.analysis.export.html
from mcpspy.core.sanitize import INVISIBLE, hidden_characters

MARKS = Path(mcpspy.analysis.export.html.__path__[0]) / "marks.js"

FIND = """
const unseen = new Function(require("fs").readFileSync(process.argv[1], "utf8") + "; return UNSEEN;")();
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
const found = (text) => [...text.matchAll(unseen)].filter((one) => !one[1]).map((one) => one[0].codePointAt(0));
console.log(JSON.stringify(texts.map(found)));
"""

PARTS = ("a", "\u200d", "\ufe0f", "\u2764", "\U0001f469", "\u06cc", "\u200c", "1", "\u20e3", "\U000e0041")
FLAG = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"


def test_the_page_marks_what_the_terminal_marks() -> None:
    texts = [one + two + three for one in PARTS for two in PARTS for three in PARTS]
    texts += [
        FLAG,
        FLAG[:-1],
        "x" + FLAG[1:],
        "".join(chr(code) for code in range(0xA0, 0xD800)),
        "\ufeff\u202e\x1b",
    ]
    texts += [f"a{one}b" for one in INVISIBLE if one != "-"]

    run = subprocess.run(
        ["node", "-e", FIND, MARKS],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    for text, found in zip(texts, json.loads(run.stdout), strict=True):
        ours = {ord(one) for one in hidden_characters(text)}
        assert ours <= set(found), ascii(text[:20])
        # The page also marks other formats: blank Braille, private characters, Arabic number signs.
        assert len(text) > 9 or ours == set(found), ascii(text)
