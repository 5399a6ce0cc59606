"""One direction of imports, and a library that loads no more than it needs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.notebooks import ROOT

# What each package may import of the book's own; nothing imports to its right.
OWN = {
    "attention_lib": {"attention_lib"},
    "figures": {"attention_lib", "figures"},
    "assignments": {"attention_lib", "assignments"},
}
BOOK = {"attention_lib", "figures", "chapters", "assignments", "book", "benchmarks", "tests"}
# Rooms of the library that the rest of it does not know of, nor they of each other.
ROOMS = {"checks", "cost", "models"}
# The parts of the library that need torch: the rest does without, and so does whoever imports that.
TORCH = (
    "attention_lib/torch/",
    "attention_lib/cost/counters.py",
    "attention_lib/cost/ring.py",
    "attention_lib/models/torch_encoder.py",
    "attention_lib/models/training.py",
    "attention_lib/models/*/train.py",
    "attention_lib/models/*/__main__.py",
)
# What the library may load besides the standard library.
WITHOUT_TORCH = {"numpy", "safetensors"}
WITH_TORCH = WITHOUT_TORCH | {"torch", "tqdm", "triton"}

MODULES = [path for package in OWN for path in sorted((ROOT / package).rglob("*.py"))]
each_module = pytest.mark.parametrize(
    "path", MODULES, ids=lambda path: str(path.relative_to(ROOT).with_suffix(""))
)


def imported(path: Path, source: str) -> Iterator[str]:
    """The full name of everything that a module imports, wherever in it, relative ones resolved."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*parents, *filter(None, [node.module])))
            yield from (f"{base}.{name.name}" for name in node.names)


def faults(path: Path, source: str) -> list[str]:
    """Every import of a module that goes against the direction or loads what it may not."""
    here = path.relative_to(ROOT)
    package, room = here.parts[0], here.parts[1]
    allowed = WITH_TORCH if needs_torch(here) else WITHOUT_TORCH
    found = []
    for name in imported(path, source):
        top, *inside = name.split(".")
        if top in BOOK:
            wrong = top not in OWN[package]
            if package == top == "attention_lib":
                wrong |= inside[0] in ROOMS - {room}
            if top == "attention_lib" and not (package == top and needs_torch(here)):
                wrong |= needs_torch(path_of(name))
        else:
            foreign = top not in sys.stdlib_module_names
            wrong = foreign and package == "attention_lib" and top not in allowed
        if wrong:
            found.append(f"{here} imports {name}")
    return found


def needs_torch(path: Path) -> bool:
    """Whether a module of the library, by its path in the project, is one that needs torch."""
    text = path.as_posix()
    return any(text.startswith(part) or path.match(part) for part in TORCH)


def path_of(name: str) -> Path:
    """The file that defines an imported name: a module, or the one before the last dot."""
    path = Path(*name.split("."))
    if (ROOT / path).is_dir():
        return path / "__init__.py"
    if (ROOT / path.with_suffix(".py")).exists():
        return path.with_suffix(".py")
    package = path.parent / "__init__.py"
    return package if (ROOT / package).exists() else path.parent.with_suffix(".py")


@each_module
def test_imports_go_one_way(path: Path) -> None:
    assert faults(path, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("attention_lib/core.py", "import torch"),
        ("attention_lib/core.py", "def f():\n    from .torch import attention"),
        ("attention_lib/core.py", "import matplotlib.pyplot as plt"),
        ("attention_lib/core.py", "from figures import show"),
        ("attention_lib/checks/engine.py", "from tests import rules"),
        ("attention_lib/checks/engine.py", "from ..torch.attention import attention"),
        ("attention_lib/models/pronoun/train.py", "from figures import show"),
        ("attention_lib/models/pronoun/measure.py", "from .train import train_pronoun"),
        ("attention_lib/models/encoder.py", "import torch"),
        ("attention_lib/core.py", "from .cost import cost"),
        ("attention_lib/torch/ring.py", "from ..cost.counters import count_flops"),
        ("attention_lib/checks/engine.py", "from ..models.encoder import Encoder"),
        ("figures/show.py", "import tests.rules"),
        ("assignments/report.py", "from figures import show"),
        ("attention_lib/core.py", "import assignments"),
        ("figures/show.py", "from attention_lib.torch import attention"),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str) -> None:
    assert len(faults(ROOT / module, source)) == 1


def test_an_import_the_other_way_is_fine() -> None:
    assert faults(ROOT / "figures" / "show.py", "from attention_lib.core import attention") == []
    assert (
        faults(ROOT / "attention_lib" / "models" / "training.py", "from ..core import softmax")
        == []
    )


# ---------------------------------------------------------------- no circle


def modules() -> dict[str, Path]:
    """Every module of the book's own, by its full name."""
    paths = [p for top in sorted(BOOK) for p in sorted((ROOT / top).rglob("*.py"))]
    return {".".join(p.relative_to(ROOT).with_suffix("").parts): p for p in paths}


def arrows(sources: dict[str, tuple[Path, str]]) -> dict[str, set[str]]:
    """What each module imports of the others, inside functions too: a name stands for its module.

    A package counts as what it says itself (`__init__`), and is not imported by what lies inside it.
    """
    found: dict[str, set[str]] = {}
    for module, (path, source) in sources.items():
        found[module] = set()
        for name in imported(path, source):
            for target in (name, f"{name}.__init__", *_parents(name)):
                if target in sources and target != module:
                    found[module].add(target)
                    break
    return found


def _parents(name: str) -> list[str]:
    package = name.rpartition(".")[0]
    return [package, f"{package}.__init__"]


def circles(arrows_: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules each of which leads to all the others, alphabetical (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(arrows_[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1 or node in arrows_[node]:
                found.append(sorted(group))

    for node in sorted(arrows_):
        if node not in index:
            visit(node)
    return found


def room(module: str) -> str:
    """The folder of `attention_lib` in which a module lies, with all below it; else the top folder."""
    top, *inside = module.split(".")
    return f"{top}.{inside[0]}" if top == "attention_lib" and len(inside) > 1 else top


def by_room(arrows_: dict[str, set[str]]) -> dict[str, set[str]]:
    """What each room imports of the others. A room's own modules are no business of this."""
    found: dict[str, set[str]] = {room(module): set() for module in arrows_}
    for module, targets in arrows_.items():
        found[room(module)] |= {room(target) for target in targets} - {room(module)}
    return found


def test_no_circle_of_modules_and_none_hidden_in_a_function() -> None:
    sources = {name: (path, path.read_text(encoding="utf-8")) for name, path in modules().items()}
    found = arrows(sources)
    assert found["attention_lib.torch.backends"] >= {"attention_lib.torch.core"}
    assert circles(found) == []
    assert circles(by_room(found)) == []


@pytest.mark.parametrize(
    "more",
    [
        {"attention_lib/core.py": "def f():\n    from .tiled import tiled_attention"},
        {"attention_lib/shapes.py": "from . import gradient"},
        {"attention_lib/torch/core.py": "def f():\n    import attention_lib.torch.backends"},
        {"figures/show.py": "from book import heights", "book/heights.py": "import figures.show"},
    ],
)
def test_a_circle_is_found(more: dict[str, str]) -> None:
    sources = {name: (path, path.read_text(encoding="utf-8")) for name, path in modules().items()}
    for path, source in more.items():
        name = path.removesuffix(".py").replace("/", ".")
        sources[name] = (ROOT / path, sources[name][1] + "\n" + source)
    found = circles(arrows(sources))
    assert len(found) == 1
    assert {path.removesuffix(".py").replace("/", ".") for path in more} <= set(found[0])


def test_a_circle_of_rooms_is_found() -> None:
    arrows_ = {
        "figures.a": {"book.b"},
        "figures.c": set(),
        "book.b": set(),
        "book.d": {"figures.c"},
    }
    assert circles(arrows_) == []
    assert circles(by_room(arrows_)) == [["book", "figures"]]


def in_fresh_process(program: str) -> list[str]:
    """The list of strings that a program prints as JSON."""
    output = subprocess.check_output([sys.executable, "-c", program], cwd=ROOT, text=True)
    found: list[str] = json.loads(output)
    return found


def loaded_by(statement: str) -> list[str]:
    """The top-level modules that are loaded after a statement in a fresh process."""
    return in_fresh_process(
        f"{statement}; import json, sys; "
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )


def test_the_library_loads_numpy_alone() -> None:
    loaded = set(loaded_by("import attention_lib")) - set(loaded_by("import numpy.random"))
    assert loaded - set(sys.stdlib_module_names) == {"attention_lib"}


def test_figures_load_no_torch_and_no_widget() -> None:
    assert not {"torch", "anywidget", "ipywidgets"} & set(loaded_by("import figures"))


def test_live_figures_load_no_torch() -> None:
    assert "torch" not in loaded_by("import figures; figures.ExploreSentence, figures.ExplorePlane")


def test_the_library_reads_no_package_metadata() -> None:
    """Neither through importlib.metadata nor by opening a file of an installed package's."""
    opened = in_fresh_process(
        "import json, sys, numpy; seen = []; "
        "sys.addaudithook(lambda event, data: seen.append(str(data[0])) "
        "if event in ('open', 'os.listdir', 'os.scandir') else None); "
        "import attention_lib; seen += [name for name in sys.modules if 'metadata' in name]; "
        "print(json.dumps(seen))"
    )
    assert [name for name in opened if "dist-info" in name or "metadata" in name.lower()] == []
    assert any("attention_lib" in name for name in opened), "the hook saw nothing"


def test_the_library_for_tensors_loads_no_corpus_and_no_model() -> None:
    loaded = in_fresh_process(
        "import attention_lib.torch; import json, sys; print(json.dumps(sorted(sys.modules)))"
    )
    own = {name.split(".")[1] for name in loaded if name.startswith("attention_lib.")}
    assert "torch" in own
    assert not own & ROOMS


def test_random_numbers_are_loaded_only_when_they_are_drawn() -> None:
    ask = "import {}; import json, sys; print(json.dumps('numpy.random' in sys.modules))"
    alone = in_fresh_process(ask.format("numpy"))
    assert in_fresh_process(ask.format("attention_lib")) == alone
