"""Pages of the API, one for each module of attention_lib that has names of its own, from their docstrings."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx

import attention_lib

_ARGUMENT = r"[a-z_]\w*(?:, [a-z_]\w*)*: "
# What these export is shown with them, and not again where it is defined.
PACKAGES = ("attention_lib", "attention_lib.torch", "attention_lib.checks")


def write_pages(folder: Path) -> None:
    """Write <module>.rst for every module with public names; a page that is as it should be is left alone."""
    folder.mkdir(exist_ok=True)
    pages = {f"{name}.rst": _page(name, members) for name, members in modules()}
    for path in folder.glob("*.rst"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def modules() -> Iterator[tuple[str, list[str]]]:
    """Each module with the public names that its page shows."""
    shown: set[int] = set()
    names: set[str] = set()  # of what is shown; a module may bear the name of a function
    for name in PACKAGES:
        module = importlib.import_module(name)
        members = [n for n in module.__all__ if id(getattr(module, n)) not in shown]
        shown |= {id(getattr(module, n)) for n in members}
        names |= {f"{name}.{n}" for n in members}
        yield name, members
    for found in pkgutil.walk_packages(attention_lib.__path__, "attention_lib."):
        inner = found.name.startswith("attention_lib.checks.")
        if found.name in {*PACKAGES, *names} or found.name.endswith("__main__") or inner:
            continue
        module = importlib.import_module(found.name)
        if members := [n for n in _public(module) if id(getattr(module, n)) not in shown]:
            yield found.name, members


def _public(module: ModuleType) -> list[str]:
    """The functions and classes that a module defines for others, in the order of its text."""
    mine = [
        (name, value)
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == module.__name__
    ]
    return [name for name, _ in mine]


def _page(name: str, members: list[str]) -> str:
    title = f"``{name}``"
    return f"{title}\n{'=' * len(title)}\n\n.. automodule:: {name}\n   :members: {', '.join(members)}\n"


def to_rst(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Our docstrings are plain text: what is set in columns stays so, and nothing but `code` is markup."""
    blocks = re.split(r"\n\s*\n", "\n".join(lines).strip("\n"))
    lines[:] = "\n\n".join(map(_block, filter(None, blocks))).splitlines()


def _block(block: str) -> str:
    """A paragraph, a list of `name: what it is`, columns as they stand, or an example."""
    lines = block.splitlines()
    if lines[0].lstrip().startswith(">>>"):
        return block
    joined = re.sub(r"\n +", " ", block)
    if len(re.findall(f"(?m)^{_ARGUMENT}", joined)) > 1 and "  " not in joined:
        items = re.sub(rf"\n(?!{_ARGUMENT})", " ", joined).splitlines()
        return "\n".join(f"- {_escaped(item)}" for item in items)
    if any(line.startswith(" ") or "  " in line for line in lines):
        return "::\n\n" + "\n".join(f"   {line}" for line in lines)
    return "\n".join(map(_escaped, lines))


def _escaped(text: str) -> str:
    pieces = re.split(r"(`[^`]+`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([*|\\]|_\b)", r"\\\1", p) for p in pieces)
