"""The notebook of the documentation runs, and shows what it promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

ROOT = Path(__file__).parent.parent
NOTEBOOK = ROOT / "docs" / "sessions.ipynb"

SECONDS = 100


def outputs(notebook: Any) -> list[dict[str, Any]]:
    """Return the outputs of the cells, one dictionary of media type → content for each."""
    found = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return [output.get("data") or {output.get("name", "error"): output.get("text", "")} for output in found]


async def test_the_notebook_reads_plots_and_compares() -> None:
    notebook: Any = nbformat.reads(NOTEBOOK.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]
    assert outputs(notebook) == [], "outputs in the file become old: clear them"

    config = Config({"KernelManager": {"transport": "ipc"}})  # No port of this machine.
    where = {"metadata": {"path": str(ROOT)}}
    client = NotebookClient(notebook, config=config, timeout=SECONDS, resources=where)
    await client.async_execute()

    table, plot, numbers, difference = outputs(notebook)
    assert "<table>" in table["text/html"]
    assert "server/discover" in table["text/html"]
    assert plot["image/png"]
    assert "tools/call" in numbers["text/plain"]
    assert (
        "resources/read demo://resource/dynamic/text/1 result /result/contents/0/text" in difference["stdout"]
    )
