"""One direction of imports, and a library that loads no more than it needs."""

from __future__ import annotations

import ast
import json
import resource
import statistics
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
# What the library may load besides the standard library, by folder; the first that fits counts.
FOREIGN = {
    "attention_lib/torch": {"numpy", "torch", "safetensors", "tqdm", "triton"},
    "attention_lib/checks": {"numpy"},
    "attention_lib": {"numpy", "safetensors"},
}

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
    package = here.parts[0]
    allowed = next((FOREIGN[key] for key in FOREIGN if here.is_relative_to(key)), None)
    found = []
    for name in imported(path, source):
        top = name.split(".")[0]
        in_torch = name.split(".")[:2] == ["attention_lib", "torch"]
        if top in BOOK:
            wrong = top not in OWN[package]
            # The rest of the library does without torch, and so does whoever imports it.
            wrong |= in_torch and not here.is_relative_to("attention_lib/torch")
        else:
            foreign = top not in sys.stdlib_module_names
            wrong = foreign and allowed is not None and top not in allowed
        if wrong:
            found.append(f"{here} imports {name}")
    return found


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
        ("attention_lib/torch/train.py", "from figures import show"),
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
    assert faults(ROOT / "attention_lib" / "torch" / "train.py", "from ..core import softmax") == []


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


def test_random_numbers_are_loaded_only_when_they_are_drawn() -> None:
    ask = "import {}; import json, sys; print(json.dumps('numpy.random' in sys.modules))"
    alone = in_fresh_process(ask.format("numpy"))
    assert in_fresh_process(ask.format("attention_lib")) == alone


def test_the_library_is_loaded_fast() -> None:
    """In CPU time under 1.25 times NumPy: medians of 15 fresh processes each, in turn."""
    costs: dict[str, list[float]] = {"import numpy": [], "import attention_lib": []}
    for _ in range(15):
        for statement, seconds in costs.items():
            seconds.append(cpu_seconds(statement))
    numpy_alone, library = map(statistics.median, costs.values())
    assert library < 1.25 * numpy_alone


def cpu_seconds(statement: str) -> float:
    """The CPU time of a fresh process that runs a statement."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], cwd=ROOT, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
