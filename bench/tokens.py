"""Calibrate the estimate of tokens (mcpspy/analysis/context.py).

    .venv/bin/python bench/tokens.py                    # print the weights for tests/analysis/tokens.csv, and the errors
    .venv/bin/python bench/tokens.py RECORDING...       # print rows for tokens.csv: definitions and results

Rows need rs-bpe (the extra `tokens`) and gpt-tokenizer (one of the peers). The weights minimise the relative error of
all rows but those of the kind `unseen tool`; larger errors weigh more, and texts on which the encodings disagree less.
"""

from __future__ import annotations

import csv
import importlib
import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from mcpspy.analysis.context import TextFeatures, definition, features, result_text
from mcpspy.core.protocol.message import Result
from mcpspy.core.session.session import Session
from mcpspy.io.recording.reader import Recording

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "analysis" / "tokens.csv"
ROUNDS = 60

GPT_TOKENIZER = """
const { countTokens } = require("gpt-tokenizer/encoding/o200k_base");
const texts = JSON.parse(require("node:fs").readFileSync(0));
console.log(JSON.stringify(texts.map((text) => countTokens(text, { disallowedSpecial: new Set() }))));
"""


def texts(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the kind and text of each definition and result of a recording."""
    recording = Recording(path)
    for exchange in Session(recording.header).add_all(recording).exchanges:
        if not isinstance(exchange.answer, Result) or not isinstance(result := exchange.answer.result, dict):
            continue
        if exchange.request.method == "tools/list":
            yield from (("tool", definition(tool)) for tool in result["tools"])
        elif exchange.request.method in ("tools/call", "resources/read", "prompts/get"):
            yield "result", result_text(result)[0]


def measure(paths: list[Path]) -> None:
    found = {text: (path.stem, kind) for path in paths for kind, text in texts(path) if len(text) >= 20}
    command = ["node", "-e", GPT_TOKENIZER]
    counted = subprocess.run(
        command,
        cwd=ROOT / ".peers",
        input=json.dumps(list(found)),
        capture_output=True,
        text=True,
        check=True,
    )
    writer = csv.writer(sys.stdout, lineterminator="\n")
    cl100k = importlib.import_module("rs_bpe.bpe").openai.cl100k_base()
    for (text, (source, kind)), o200k in zip(found.items(), json.loads(counted.stdout), strict=True):
        writer.writerow([source, kind, o200k, cl100k.count(text), *features(text)])


def solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve linear equations by elimination with pivots."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for at in range(len(rows)):
        pivot = max(range(at, len(rows)), key=lambda row: abs(rows[row][at]))
        rows[at], rows[pivot] = rows[pivot], rows[at]
        for row in range(len(rows)):
            if row != at:
                factor = rows[row][at] / rows[at][at]
                rows[row] = [value - factor * over for value, over in zip(rows[row], rows[at], strict=True)]
    return [row[-1] / row[at] for at, row in enumerate(rows)]


def fitted(counts: list[list[int]], targets: list[tuple[int, int]]) -> list[float]:
    """Return the weights, by least squares of the relative errors that are weighted again in each round."""
    size = range(len(counts[0]))
    means = [sum(pair) / 2 for pair in targets]
    base = [
        (1.0 if abs(one - other) <= 0.1 * one else 0.15) / max(mean, 25)
        for mean, (one, other) in zip(means, targets, strict=True)
    ]
    trust, weights = base, [1.0 for _ in size]
    for _ in range(ROUNDS):
        squares = [factor * factor for factor in trust]
        every = list(zip(squares, counts, means, strict=True))
        matrix = [[sum(s * row[i] * row[j] for s, row, _ in every) for j in size] for i in size]
        weights = solved(matrix, [sum(s * row[i] * mean for s, row, mean in every) for i in size])
        errors = [
            abs(_product(weights, row) - mean) / max(mean, 25)
            for row, mean in zip(counts, means, strict=True)
        ]
        trust = [
            factor * min(1 + (error / 0.04) ** 0.8, 12.0) for factor, error in zip(base, errors, strict=True)
        ]
    return weights


def calibrate() -> None:
    with TABLE.open(encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table))
    counts = [[int(row[name]) for name in TextFeatures._fields] for row in rows]
    targets = [(int(row["o200k"]), int(row["cl100k"])) for row in rows]
    kept = [at for at, row in enumerate(rows) if row["kind"] != "unseen tool"]
    weights = fitted([counts[at] for at in kept], [targets[at] for at in kept])
    print("WEIGHTS =", tuple(round(weight, 3) for weight in weights))
    for kind in dict.fromkeys(row["kind"] for row in rows):
        errors = [
            max(abs(_product(weights, counts[at]) / target - 1) for target in targets[at])
            for at, row in enumerate(rows)
            if row["kind"] == kind and min(targets[at]) >= 50
        ]
        if errors:
            print(
                f"{kind}: {len(errors)} texts of 50 tokens or more, {sum(error > 0.1 for error in errors)} "
                f"beyond 10 %, median {median(errors):.1%}, largest {max(errors):.1%}"
            )


def _product(weights: list[float], row: list[int]) -> float:
    return sum(weight * count for weight, count in zip(weights, row, strict=True))


if __name__ == "__main__":
    if paths := [Path(word) for word in sys.argv[1:]]:
        measure(paths)
    else:
        calibrate()
