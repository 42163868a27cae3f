"""Writes the page of the Python package's public names from their docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from types import ModuleType

import longhaul as lh

HEAD = """\
# The Python package, name by name

`import longhaul as lh`. [The guide](python.md) comes first; this page is made of the docstrings.
"""


def attributes(value: type) -> dict[str, str]:
    """What is said below each attribute in a class's source: values have no docstrings of their own."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(value)))
    except (OSError, TypeError):  # a class of the native module
        return {}
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    said: dict[str, str] = {}
    for statement, after in zip(body, body[1:]):
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
        for target in targets:
            if isinstance(target, ast.Name) and is_text:
                said[target.id] = inspect.cleandoc(after.value.value)  # type: ignore[attr-defined]
    return said


def documented(value: object) -> dict[str, str]:
    """The public members of a class or a module, each with its docstring."""
    if inspect.isclass(value):
        # By `getattr`, for a static method's wrapper has a docstring of its own.
        said = {name: inspect.getdoc(getattr(value, name)) or "" for name in vars(value) if not name.startswith("_")}
        return said | attributes(value)
    if isinstance(value, ModuleType):
        own = {name: it for name, it in vars(value).items() if getattr(it, "__module__", None) == value.__name__}
        said = {name: inspect.getdoc(it) or "" for name, it in own.items() if not name.startswith("_")}
        for name, it in own.items():
            said |= {f"{name}.{member}": text for member, text in documented(it).items() if callable(getattr(it, member))}
        return said
    return {}


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
    is_value = {member for member, it in members if isinstance(it, property) or inspect.isgetsetdescriptor(it)}
    values = sorted((member, said) for member, said in documented(value).items() if member in is_value | set(attributes(value)))
    if values:
        # Their examples are for who asks for one of them.
        texts = [(member, " ".join(said.split(">>>")[0].split()).replace("``", "`")) for member, said in values]
        rows = "".join(f"| `{member}` | {said} |\n" for member, said in texts)
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
