"""Search with atheris for bytes that break a target; inputs that reach new code are stored in .fuzz/.

    .venv/bin/python -m fuzz.run TARGET [SECONDS]

Exits with the exit code of libFuzzer: 0 without a failure. Failing inputs are in .fuzz/: move them to
fuzz/corpus/TARGET/, where the tests find them, and fix the code.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]  # Only for `make fuzz`; there is none for macOS.

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Fuzz one target."""
    name, seconds = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "60"
    with atheris.instrument_imports(include=["mcpspy"]):
        from fuzz.targets import TARGETS

        for seed in (ROOT / "fuzz" / "corpus" / name).iterdir():  # Modules that are imported late.
            TARGETS[name](seed.read_bytes())
    found = ROOT / ".fuzz" / name
    found.mkdir(parents=True, exist_ok=True)
    atheris.Setup(
        [
            sys.argv[0],
            str(found),
            str(ROOT / "fuzz" / "corpus" / name),
            f"-max_total_time={seconds}",
            f"-artifact_prefix={found.parent}/{name}-",
            "-max_len=4096",
            "-timeout=120",
            "-print_final_stats=1",
        ],
        TARGETS[name],
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
