"""docs/python.md does what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(os.environ.get("LONGHAUL_DOCS", Path(__file__).resolve().parents[3] / "docs"))


def test_the_page_runs_from_top_to_bottom(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "python.md").read_text(), re.DOTALL)
    assert len(blocks) > 5
    # A module of its own: workers import what tasks need, and `main` has to wait until they do.
    body = "".join("    " + line for line in "".join(blocks).splitlines(keepends=True))
    script = tmp_path / "page.py"
    script.write_text(f'if __name__ == "__main__":\n{body}')
    subprocess.run([sys.executable, script], cwd=tmp_path, check=True, timeout=600)
    assert {"mine.toml", "satellite.pcapng"} <= {file.name for file in tmp_path.iterdir()}
    assert (tmp_path / "out/delays/report.html").exists() and (tmp_path / "out/big/measured").exists()
