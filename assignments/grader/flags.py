"""What an instructor may want to look at in a student's code; it costs no points."""

import ast
import re
from collections.abc import Iterator, Sequence

FUNCTIONS = ("scaled_dot_product_attention", "MultiheadAttention")
MODULES = (
    "ctypes gc importlib inspect multiprocessing os pathlib pickle shutil signal socket subprocess"
).split()
PARSED = 200_000  # characters of a notebook; a parser may need 1 kB for each
SILENT = ("check", "attention_lib", "figures")


def flags(cells: Sequence[str]) -> tuple[str, ...]:
    """Short remarks in the order of the alphabet, such as "imports subprocess"."""
    found: set[str] = set()
    room = PARSED
    for cell in cells:
        room -= len(cell)
        try:
            if room < 0:
                raise MemoryError("too long to parse")
            found |= set(_of_cell(ast.parse(cell)))
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # commands, or worse
            found |= {f"names {word}" for word in (*FUNCTIONS, *MODULES) if _has(cell, word)}
    return tuple(sorted(found))


def _has(text: str, word: str) -> bool:
    return re.search(rf"\b{word}\b", text) is not None


def _of_cell(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in FUNCTIONS:
                yield f"uses {name}"
            case ast.Import(names=names):
                yield from _imports([name.name for name in names])
            case ast.ImportFrom(module=str(module), names=names):
                yield from _imports([f"{module}.{name.name}" for name in names])
            case ast.Attribute(value=ast.Name(id="attention_lib"), attr=name):
                if name != "checks":
                    yield f"uses attention_lib.{name}"
            case ast.Assign(targets=targets):
                yield from (f"assigns to {name}" for name in map(_of_numpy, targets) if name)
            case ast.Call(func=ast.Name(id="setattr" | "__import__" | "eval" | "exec" as name)):
                yield f"calls {name}"


def _imports(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        package, last = name.partition(".")[0], name.rpartition(".")[2]
        if package in MODULES:
            yield f"imports {package}"
        elif last in FUNCTIONS or (package == "attention_lib" and last not in SILENT):
            yield f"uses {name}"


def _of_numpy(target: ast.expr) -> str:
    """`np.name` if that is what is assigned to."""
    match target:
        case ast.Attribute(value=ast.Name(id="np" | "numpy"), attr=name):
            return f"np.{name}"
    return ""
