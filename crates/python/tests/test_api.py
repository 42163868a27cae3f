"""Every public name says what it is, with units, by an example that runs."""

import doctest
import inspect
import os
import re
from operator import attrgetter
from pathlib import Path

import longhaul as lh
import pytest
from api_page import documented, page

PUBLIC = [name for name in lh.__all__ if not name.startswith("__")]


def is_called(value: object, member: str) -> bool:
    return callable(attrgetter(member)(value)) if hasattr(value, member.split(".")[0]) else False


@pytest.mark.parametrize("name", PUBLIC)
def test_is_documented(name: str) -> None:
    value = getattr(lh, name)
    assert inspect.getdoc(value), name
    for member, text in documented(value).items():
        assert text, f"{name}.{member} has no docstring"


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_run(name: str) -> None:
    value = getattr(lh, name)
    texts = {name: inspect.getdoc(value) or ""} | {f"{name}.{it}": text for it, text in documented(value).items()}
    if inspect.isclass(value) and value.__init__.__doc__:
        texts[f"{name}.__init__"] = inspect.cleandoc(value.__init__.__doc__)
    shown = ""
    examples = 0
    for where, text in texts.items():
        test = doctest.DocTestParser().get_doctest(text, {}, where, None, None)
        examples += len(test.examples)
        shown += "".join(example.source for example in test.examples)
        output: list[str] = []
        result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=output.append)
        assert result.failed == 0, "".join(output)
    for member, text in documented(value).items():
        # What is called has an example of its own; a value can stand in that of another one.
        has_one = ">>>" in text if is_called(value, member) else re.search(rf"\b{member}\b", shown)
        assert has_one, f"{name}.{member} has no example"
    # Of a module the members have them.
    assert examples > 0, f"{name} has no example"


def test_the_page_says_what_the_docstrings_say() -> None:
    docs = Path(os.environ.get("LONGHAUL_DOCS", Path(__file__).parent.parent.parent.parent / "docs"))
    written = docs / "python-api.md"
    if os.environ.get("LONGHAUL_WRITE_API"):
        written.write_text(page())
    assert written.read_text() == page(), "write it anew with LONGHAUL_WRITE_API=1 pytest tests/test_api.py"
