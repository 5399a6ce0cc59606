"""What a module of the book needs: its own modules by path, and whose else it imports. Read from the files; nothing is imported."""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OWN = ("attention_lib", "figures", "page_python")


@dataclass(frozen=True)
class Closure:
    """The files of our own modules, by module, and the names of other packages, that an import reads."""

    own: dict[str, Path]
    others: set[str]


@dataclass(frozen=True)
class Imports:
    """The modules in `folders`."""

    folders: tuple[Path, ...]

    def of(self, source: str) -> Closure:
        """What the import statements of a piece of code lead to."""
        waiting = list(_imported(ast.parse(source).body, ""))
        own: dict[str, Path] = {}
        others: set[str] = set()
        while waiting:
            name = waiting.pop()
            top, _, rest = name.partition(".")
            if top not in OWN:
                others.add(top)
            elif name not in own and (path := _path(self.folders, name)) is not None:
                own[name] = path
                parent = name.rpartition(".")[0]
                waiting += [parent] if rest else []
                waiting += _imports_of(path, name if path.stem == "__init__" else parent)
        return Closure(own, others)


@functools.cache
def _path(folders: tuple[Path, ...], name: str) -> Path | None:
    bases = (folder.joinpath(*name.split(".")) for folder in folders)
    files = (path for base in bases for path in (base / "__init__.py", base.with_suffix(".py")))
    return next(filter(Path.is_file, files), None)


@functools.cache
def _imports_of(path: Path, package: str) -> tuple[str, ...]:
    return tuple(_imported(ast.parse(path.read_text(encoding="utf-8")).body, package))


def _imported(body: list[ast.stmt], package: str) -> Iterator[str]:
    """The modules that statements import when they run, functions not called, and what may be modules of a package."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                continue
            case ast.If(test=ast.Name("TYPE_CHECKING")):
                continue
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                parts = package.split(".")[: len(package.split(".")) - level + 1] if level else []
                base = ".".join([*parts, *([module] if module else [])])
                yield base
                yield from (f"{base}.{alias.name}" for alias in names)
        waiting.extend(ast.iter_child_nodes(node))
