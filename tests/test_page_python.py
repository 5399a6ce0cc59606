"""Python in the pages, without a browser: which cells run, what they need, what the reader reads, what is laid beside the pages."""

from __future__ import annotations

import builtins
import functools
import gzip
import hashlib
import http.client
import http.server
import io
import json
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

from book import pyodide
from book._ext.chapters import Chapter
from book._ext.imports import Imports
from book._ext.on_page import OnPage
from book.page_python.names import needed, pieces, read
from book.page_python.session import HEAD, TAIL, Printed
from book.pyodide import Pyodide, PyodideError
from book.serve import Handler

from .book_helpers import ROOT
from .page_session import answers, said
from .samples import code, notebook

CHAPTERS = [Chapter.read(path) for path in sorted((ROOT / "chapters").glob("[0-9][0-9]_*.ipynb"))]


@pytest.mark.parametrize(
    ("source", "uses", "binds"),
    [
        ("y = x + 1", {"x"}, {"y"}),
        ("x = 1\ny = x", set(), {"x", "y"}),
        ("x += 1", {"x"}, {"x"}),
        ("x[i] = y", {"x", "i", "y"}, {"x"}),
        ("x.append(1)", {"x"}, {"x"}),
        ("x.shape", {"x"}, set()),
        ("for a, b in z:\n    c = a", {"z"}, {"a", "b", "c"}),
        ("[a * b for a in z]", {"z", "b"}, set()),
        ("f(lambda a: a + b)", {"f", "b"}, set()),
        ("def f(a):\n    return a + later\nlater = 1", set(), {"f", "later"}),
        ("def f(a=d):\n    return a + g(h)", {"d", "g", "h"}, {"f"}),
        ("with a as b:\n    c = b", {"a"}, {"b", "c"}),
        ("(a, b[0]), c = d", {"d", "b"}, {"a", "c"}),
        ("print(len(f'{x}'))", {"print", "len", "x"}, set()),
        ("class A(B):\n    def m(self):\n        return C", {"B", "C"}, {"A"}),
        ("import a.b as c, d.e", set(), {"c", "d"}),
    ],
)
def test_a_cell_uses_and_binds_names(source: str, uses: set[str], binds: set[str]) -> None:
    found = read("c", source)
    assert (found.uses, found.binds) == (uses, binds)


def above(*sources: str, imports: str = "", uses: set[str]) -> list[str]:
    cells = [("imports", imports), *((f"c{i}", source) for i, source in enumerate(sources))]
    return [
        piece.source if piece.cell == "imports" else piece.cell
        for piece in needed(pieces(cells), uses)
    ]


def test_a_cell_needs_what_gives_its_names_and_no_more() -> None:
    assert above("a = 1", "b = a", "c = 2", uses={"b"}) == ["c0", "c1"]
    assert above("a = 1", "a = 2", uses={"a"}) == ["c1"]
    assert above("a = []", "a.append(1)", "a[0] = 2", uses={"a"}) == ["c0", "c1", "c2"]
    both = "import numpy as np\nimport torch"
    assert above("a = np.eye(3)", "torch.ones(a)", imports=both, uses={"a"}) == [
        "import numpy as np",
        "c0",
    ]


def test_what_is_drawn_depends_on_all_that_was_drawn_before() -> None:
    sources = "rng = np.random.default_rng(0)", "x = rng.normal()", "y = f(rng)", "z = rng.normal()"
    assert above(*sources, uses={"z"}) == ["c0", "c1", "c2", "c3"]


def test_imports_are_read_through_our_modules_and_no_deeper(tmp_path: Path) -> None:
    for name, source in {
        "attention_lib/__init__.py": "from .a import x",
        "attention_lib/a.py": "import numpy\nfrom . import b",
        "attention_lib/b.py": "from attention_lib import a\ndef f():\n    import torch",
        "attention_lib/c/__init__.py": "",
        "attention_lib/c/d.py": "if True:\n    import torch\nfrom ..b import f",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source)
    imports = Imports((tmp_path,))
    plain = imports.of("from attention_lib import a")
    assert sorted(plain.own) == ["attention_lib", "attention_lib.a", "attention_lib.b"]
    assert plain.others == {"numpy"}
    assert imports.of("import attention_lib.c.d").others == {"numpy", "torch"}
    assert "attention_lib.c" in imports.of("import attention_lib.c.d").own


@pytest.fixture(scope="module")
def on_page(tmp_path_factory: pytest.TempPathFactory) -> OnPage:
    return OnPage(Pyodide(tmp_path_factory.mktemp("pyodide"), pictures=True))


def test_cells_are_sorted_by_what_their_names_lead_to(tmp_path: Path) -> None:
    cells = (
        code(
            "import torch\nimport figures\nimport numpy as np\nfrom attention_lib.torch import attention as fast"
        ),
        code("x = np.eye(3)"),
        code("fast(x)"),
        code("print(x, 2)"),
        code("ax = figures.draw_bars(x)"),
        code("t = torch.ones(3)"),
        code("u = t + 1"),
        code("check(f)", tags=["exercise"]),
        code("check(f)", tags=["solution"]),
        code("q", tags=["quiz"]),
    )
    made = notebook(*cells)
    made["cells"][0]["id"] = "imports"
    path = tmp_path / "01_name.ipynb"
    path.write_text(json.dumps(made), encoding="utf-8")

    def places(pictures: bool) -> list[tuple[str, int, str]]:
        found = OnPage(Pyodide(tmp_path, pictures)).sort(Chapter.read(path))
        return [(place.kind, place.above, place.missing) for place in found.values()]

    assert places(pictures=True) == [
        ("needs", 0, "torch"),
        ("runs", 0, ""),
        ("needs", 1, "torch"),
        ("runs", 1, ""),
        ("runs", 1, ""),
        ("needs", 0, "torch"),
        ("needs", 1, "torch"),
        ("exercise", 0, ""),
        ("stays", 0, ""),
        ("stays", 0, ""),
    ]
    assert places(pictures=False)[4] == ("needs", 1, "matplotlib")


def test_most_of_chapter_1_runs_on_its_page_and_every_exercise(on_page: OnPage) -> None:
    kinds = [place.kind for place in on_page.sort(CHAPTERS[1]).values()]
    assert sum(kind in ("exercise", "runs") for kind in kinds) >= 0.8 * len(kinds)
    counted = [
        [place.kind for place in on_page.sort(chapter).values()].count("exercise")
        for chapter in CHAPTERS
    ]
    assert counted[1:6] == [4, 3, 4, 4, 3]
    assert not any(
        p.missing for c in CHAPTERS for p in on_page.sort(c).values() if p.kind == "runs"
    )


def test_our_code_travels_without_torch_and_weights(on_page: OnPage) -> None:
    packed = on_page.archive(CHAPTERS)
    names = zipfile.ZipFile(io.BytesIO(packed)).namelist()
    assert len(packed) < 300_000
    assert packed == on_page.archive(CHAPTERS)
    assert "attention_lib/checks/__init__.py" in names
    assert "page_python/session.py" in names
    assert "figures/book.mplstyle" in names
    assert [n for n in names if "torch/" in n or "weights/" in n or "explore" in n] == []


def asked(source: str, *over: str, name: str = "c") -> dict[str, Any]:
    return {"id": name, "source": source, "above": [[f"a{i}", text] for i, text in enumerate(over)]}


@pytest.fixture(scope="module")
def told() -> dict[str, list[list[Any]]]:
    """What a session tells of a few requests, by their source."""
    requests = [
        asked("print('one')\n2 * x", "x = 21\nprint('above')", "unused = 1"),
        asked("x = 1\nx;"),
        asked("def f():\n    return 1 / 0\n\n\nf()"),
        asked("y = (1,\n"),
        asked("y = x", "x = undefined"),
        asked("input('name? ')"),
        asked("import torch"),
        asked("def f():\n    return f()\n\n\nf()"),
        asked("exit()"),
        asked("print(z)"),
        asked("z = 1"),
        asked("import figures\nfigures.draw_bars.__name__, 'quiz' in figures.__all__"),
        asked("print('end', end='')"),
        asked(
            "check(attend_one)",
            "from attention_lib.checks import check\ndef attend_one(query, keys, values):\n    ...",
        ),
    ]
    return dict(zip([one["source"] for one in requests], answers(requests), strict=True))


def test_a_cell_prints_and_shows_its_last_value(told: dict[str, list[list[Any]]]) -> None:
    assert told["print('one')\n2 * x"] == [
        ["above", 1, 1],
        ["running"],
        ["text", "one\n"],
        ["text", "42\n"],
    ]
    assert told["x = 1\nx;"] == [["running"]]
    assert said(told["print('end', end='')"]) == "end\n"
    assert said(told["check(attend_one)"]) == "attend_one: not written yet.\n"


def test_figures_needs_no_widget_and_no_questions(told: dict[str, list[list[Any]]]) -> None:
    source = "import figures\nfigures.draw_bars.__name__, 'quiz' in figures.__all__"
    assert said(told[source]) == "('draw_bars', True)\n"


def test_nothing_is_left_from_one_run_to_the_next(told: dict[str, list[list[Any]]]) -> None:
    assert told["print(z)"][-1] == ["error", "Line 1: print(z)\nNameError: name 'z' is not defined"]


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (
            "def f():\n    return 1 / 0\n\n\nf()",
            "Line 2: return 1 / 0\nZeroDivisionError: division by zero",
        ),
        ("y = (1,\n", "Line 1: y = (1,\nSyntaxError: '(' was never closed"),
        (
            "y = x",
            "This comes from a cell above, which is run first.\nLine 1: x = undefined\nNameError: name 'undefined' is not defined",
        ),
        (
            "input('name? ')",
            "RuntimeError: input() has no keyboard on this page: write the value into the code.",
        ),
        (
            "import torch",
            "Line 1: import torch\nModuleNotFoundError: torch is not on this page: open the chapter in JupyterLab.",
        ),
        (
            "def f():\n    return f()\n\n\nf()",
            "Line 2: return f()\nRecursionError: maximum recursion depth exceeded",
        ),
        ("exit()", "The code ended itself"),
    ],
)
def test_an_error_names_the_readers_line(
    told: dict[str, list[list[Any]]], source: str, sentence: str
) -> None:
    kind, text = told[source][-1]
    assert kind == "error"
    assert sentence in text


def test_many_lines_are_cut_and_the_last_ones_kept() -> None:
    parts: list[str] = []
    printed = Printed(parts.append)
    for i in range(50_000):
        print(i, file=printed)
    print("x" * 5000, end="", file=printed)
    printed.end()
    lines = "".join(parts).splitlines()
    assert len(lines) == HEAD + 1 + TAIL
    assert lines[HEAD] == f"… {50_001 - HEAD - TAIL:,} lines are left out here …"
    assert lines[HEAD + 1] == str(50_001 - TAIL)
    assert len(lines[-1]) < 2100


def test_every_name_of_a_cell_that_runs_is_given_by_what_it_needs(on_page: OnPage) -> None:
    for chapter in CHAPTERS:
        units = pieces([(c["id"], "".join(c["source"])) for c in code_of(chapter)])
        places = on_page.sort(chapter)
        for at, unit in enumerate(units):
            given = set().union(*(piece.binds for piece in needed(units[:at], unit.uses)))
            missing = unit.uses - given - unit.binds - set(dir(builtins))
            later = set().union(*(piece.binds for piece in units[at:]))
            earlier = set().union(*(piece.binds for piece in units[:at]))
            if places[unit.cell].kind == "runs":
                assert missing <= later - earlier, unit.cell  # a function's, called below


def code_of(chapter: Chapter) -> list[dict[str, Any]]:
    return [cell for cell in chapter.notebook["cells"] if cell["cell_type"] == "code"]


@pytest.mark.slow
@pytest.mark.parametrize("chapter", CHAPTERS[1:], ids=lambda chapter: f"{chapter.number:02}")
def test_each_cell_prints_on_its_page_what_is_stored(on_page: OnPage, chapter: Chapter) -> None:
    """With the names of the cells that it needs and no others."""
    places = on_page.sort(chapter)
    cells = code_of(chapter)
    sources = [[cell["id"], "".join(cell["source"])] for cell in cells]
    running = [at for at, cell in enumerate(cells) if places[cell["id"]].kind == "runs"]
    requests = [
        {"id": sources[at][0], "source": sources[at][1], "above": sources[:at]} for at in running
    ]
    for at, found in zip(running, answers(requests, timeout=3600), strict=True):
        cell = cells[at]
        stored = "".join("".join(o.get("text", "")) for o in cell["outputs"])
        assert [one for one in found if one[0] == "error"] == [], cell["id"]
        if "nbval-ignore-output" not in cell["metadata"].get("tags", []):
            assert said(found) == stored, cell["id"]


# --- what is laid beside the pages


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A release of two files and a wheel, listed as Pyodide's is, in a folder."""
    folder = tmp_path / "given"
    folder.mkdir()
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as packed:
        for name in ("numpy/__init__.py", "numpy/__init__.pyi", "numpy/tests/test_a.py"):
            packed.writestr(name, "x = 1\n" * 9)
    files = {
        "pyodide.js": b"let a;" * 99,
        "numpy-2.0-none.whl": wheel.getvalue(),
        "cycler-1.whl": b"",
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    core, numpy, pictures = ({name: digest} for name, digest in digests.items())
    listed = {
        "core": core,
        "numpy": numpy,
        "matplotlib": pictures,
        "info": {},
        "address": "http://127.0.0.1:9/",
    }
    monkeypatch.setattr(pyodide, "LISTED", listed)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def test_pyodide_is_laid_as_a_run_reads_it(little: Path, tmp_path: Path) -> None:
    (little / "cycler-1.whl").unlink()
    found = pyodide.find(str(little))
    assert found is not None
    assert not found.pictures
    sizes = found.lay(tmp_path / "laid")
    laid = {path.name: path.read_bytes() for path in (tmp_path / "laid").iterdir()}
    assert laid["pyodide.js"] == (little / "pyodide.js").read_bytes()
    assert zipfile.ZipFile(io.BytesIO(laid["numpy-2.0-none.whl"])).namelist() == [
        "numpy/__init__.py"
    ]
    entry = json.loads(laid["pyodide-lock.json"])["packages"]["numpy"]
    assert entry["sha256"] == hashlib.sha256(laid["numpy-2.0-none.whl"]).hexdigest()
    assert {name: whole for name, (whole, _) in sizes.items()} == {
        n: len(d) for n, d in laid.items()
    }
    assert sizes["pyodide.js"][1] < 100 < sizes["pyodide.js"][0]
    assert found.lay(tmp_path / "again") == sizes


def test_a_file_with_one_byte_changed_is_refused(little: Path, tmp_path: Path) -> None:
    path = little / "numpy-2.0-none.whl"
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    found = pyodide.find(str(little))
    assert found is not None
    with pytest.raises(
        PyodideError, match=r"numpy-2\.0-none\.whl is not the file of Pyodide .*SHA-256"
    ):
        found.lay(tmp_path / "laid")


def test_without_python_at_hand_there_is_none_and_a_folder_without_it_is_refused(
    little: Path,
) -> None:
    assert pyodide.find("") is None
    (little / "pyodide.js").unlink()
    with pytest.raises(PyodideError, match=r"has no pyodide\.js"):
        pyodide.find(str(little))
    with pytest.raises(PyodideError, match="could not be fetched"):
        pyodide.find("release")


def test_what_is_fetched_is_verified_before_it_is_kept(
    little: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"http://127.0.0.1:9/{path.name}": path.read_bytes() for path in little.iterdir()}
    monkeypatch.setattr(pyodide, "_download", files.__getitem__)
    found = pyodide.find("release")
    assert found == pyodide.find("") == Pyodide(pyodide.cache(), pictures=True)
    (pyodide.cache() / "pyodide.js").unlink()
    files["http://127.0.0.1:9/pyodide.js"] = b"other"
    with pytest.raises(PyodideError, match="is not the file"):
        pyodide.find("release")
    assert not (pyodide.cache() / "pyodide.js").exists()


def test_the_table_counts_what_runs(tmp_path: Path) -> None:
    assert "PYODIDE=release" in pyodide.table(tmp_path)
    cells = tmp_path / "_static" / "page_python" / "cells"
    cells.mkdir(parents=True)
    places = {
        "a": ["runs", 1, ""],
        "b": ["exercise", 0, ""],
        "c": ["needs", 0, "torch"],
        "d": ["stays", 0, ""],
    }
    (cells / "01_name.json").write_text(json.dumps({"places": places}))
    assert pyodide.table(tmp_path).splitlines()[1].split() == ["01_name", "4", "2", "50%"]


# --- how the site is served


def test_the_site_is_served_packed_and_kept(tmp_path: Path) -> None:
    """Text is packed for who takes it, what is packed already is not, and a file that is known is not sent again."""

    class Quiet(Handler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    text = b"let a = 1;\n" * 500
    (tmp_path / "a.js").write_bytes(text)
    (tmp_path / "b.whl").write_bytes(text)
    (tmp_path / "index.html").write_bytes(text)
    handler = functools.partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def got(path: str, **headers: str) -> tuple[int, Any, bytes]:
            line = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
            line.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})
            answer = line.getresponse()
            found = answer.status, answer.headers, answer.read()
            line.close()
            return found

        status, headers, body = got("/a.js", Accept_Encoding="gzip")
        assert (status, headers["Content-Encoding"]) == (200, "gzip")
        assert (gzip.decompress(body), headers["Cache-Control"]) == (text, "max-age=600")
        assert len(body) < 200
        assert got("/a.js", Accept_Encoding="gzip", If_None_Match=headers["ETag"])[::2] == (
            304,
            b"",
        )
        for path in ("/a.js", "/b.whl", "/", "/?q=1"):
            assert got(path)[::2] == (200, text)
        assert got("/b.whl", Accept_Encoding="gzip")[1]["Content-Encoding"] is None
        assert got("/nowhere")[0] == 404
        server.shutdown()
