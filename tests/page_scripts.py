"""Write the scripts of both pages, each as one file, to be linted: only there is each name declared.

python -m tests.page_scripts FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from mcpspy.analysis.export.html.page import exported_script
from mcpspy.ui.web.page import live_script


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, script in ("exported", exported_script()), ("live", live_script()):
        (folder / f"{name}.js").write_text(script, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
