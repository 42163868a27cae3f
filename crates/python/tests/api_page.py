"""Writes the page of the Python package's public names from their docstrings."""

from __future__ import annotations

import inspect
import re
from types import ModuleType

import longhaul as lh

HEAD = """\
# The Python package, name by name

`import longhaul as lh`. [The guide](python.md) comes first; this page is made of the docstrings.
"""


def markdown(text: str) -> str:
    """A docstring: its examples become blocks of code."""
    lines: list[str] = []
    in_code = False
    for line in text.splitlines():
        if line.startswith(">>>") and not in_code:
            lines.append("```python")
            in_code = True
        elif in_code and not line.strip():
            lines.append("```")
            in_code = False
        lines.append(line if in_code else line.replace("``", "`"))
    return "\n".join([*lines, "```"] if in_code else lines)


def signature(name: str, value: object) -> str:
    try:
        text = str(inspect.signature(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return name
    text = re.sub(r"\((cls|self|slf|/)(, )?(/, )?", "(", text)
    return name + re.sub(r"'|NDArray\[np\.float32\]|longhaul\._?\w+\.", "", text)


def section(name: str, value: object) -> str:
    if isinstance(value, ModuleType):
        inner = "".join(
            section(f"{name}.{member}", it)
            for member, it in vars(value).items()
            if inspect.isfunction(it) and it.__module__ == value.__name__ and not member.startswith("_")
        )
        return f"\n## {name}\n\n{markdown(inspect.getdoc(value) or '')}\n{inner}"
    level = "###" if "." in name else "##"
    if not inspect.isclass(value):
        return f"\n{level} {name}\n\n```python\n{signature(name, value)}\n```\n\n{markdown(inspect.getdoc(value) or '')}\n"
    text = f"\n## {name}\n\n{markdown(inspect.getdoc(value) or '')}\n"
    members = [(member, it) for member, it in vars(value).items() if not member.startswith("_") and inspect.getdoc(it)]
    attributes = sorted(
        (member, it) for member, it in members if isinstance(it, property) or inspect.isgetsetdescriptor(it)
    )
    if attributes:
        rows = "".join(
            f"| `{member}` | {' '.join((inspect.getdoc(it) or '').split()).replace('``', '`')} |\n" for member, it in attributes
        )
        text += f"\n| attribute | |\n|---|---|\n{rows}"
    for member, it in members:
        function = getattr(value, member)
        if callable(function) and not inspect.isclass(function):
            call = signature(member, function)
            text += f"\n### {name}.{member}\n\n```python\n{call}\n```\n\n{markdown(inspect.getdoc(function) or '')}\n"
    return text


def page() -> str:
    names = [name for name in lh.__all__ if not name.startswith("__")]
    return HEAD + "".join(section(name, getattr(lh, name)) for name in names)
