"""Every public name says what it is, with units, by an example that runs."""

import doctest
import inspect
import os
from pathlib import Path
from types import ModuleType

import longhaul as lh
import pytest
from api_page import page

PUBLIC = [name for name in lh.__all__ if not name.startswith("__")]


def members(value: object) -> list[tuple[str, object]]:
    if not inspect.isclass(value):
        return []
    return [(name, member) for name, member in vars(value).items() if not name.startswith("_")]


@pytest.mark.parametrize("name", PUBLIC)
def test_is_documented(name: str) -> None:
    value = getattr(lh, name)
    assert inspect.getdoc(value), name
    for member, it in members(value):
        if not callable(it) and not isinstance(it, property) and not inspect.isdatadescriptor(it):
            continue
        assert inspect.getdoc(it), f"{name}.{member} has no docstring"


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_run(name: str) -> None:
    value = getattr(lh, name)
    texts = {name: inspect.getdoc(value) or ""}
    if isinstance(value, ModuleType):
        texts |= {member: inspect.getdoc(it) or "" for member, it in vars(value).items() if inspect.isfunction(it)}
    texts |= {f"{name}.{member}": inspect.getdoc(it) or "" for member, it in members(value)}
    examples = 0
    for where, text in texts.items():
        test = doctest.DocTestParser().get_doctest(text, {}, where, None, None)
        examples += len(test.examples)
        output: list[str] = []
        result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=output.append)
        assert result.failed == 0, "".join(output)
    assert examples > 0, f"{name} has no example"


def test_the_page_says_what_the_docstrings_say() -> None:
    docs = Path(os.environ.get("LONGHAUL_DOCS", Path(__file__).parent.parent.parent.parent / "docs"))
    written = docs / "python-api.md"
    if os.environ.get("LONGHAUL_WRITE_API"):
        written.write_text(page())
    assert written.read_text() == page(), "write it anew with LONGHAUL_WRITE_API=1 pytest tests/test_api.py"
