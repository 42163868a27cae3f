"""The notebooks run, and draw what they say."""

import os
from pathlib import Path

import jupytext
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"


@pytest.mark.parametrize("name", sorted(file.stem for file in NOTEBOOKS.glob("*.py")))
def test_runs(name: str, tmp_path: Path) -> None:
    notebook = jupytext.read(NOTEBOOKS / f"{name}.py")
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs), "nothing is drawn"
    assert [output["text"] for output in outputs if output.get("name") == "stderr"] == []
    if kept := os.environ.get("LONGHAUL_NOTEBOOKS"):
        jupytext.write(notebook, Path(kept) / f"{name}.ipynb")
