"""Runs inside the sandbox, with the student's code in one process: `python -S driver.py PATH ...`.

The PATHs are the folder of stub.py and where packages lie. On stdin comes a job: the length of a JSON text (8 bytes, little
endian), the text, and arrays as safetensors. On stdout go `ready`, a dot for each cell that has
run, a bar, the lengths of a JSON text and of the arrays, the text, and the arrays. Then the process
waits to be killed.

The student's code may do anything to this process, so whoever reads trusts nothing of it.
"""

import ast
import asyncio
import contextlib
import inspect
import json
import linecache
import os
import re
import struct
import sys
import types
from importlib import import_module
from itertools import islice
from os import getpid, write
from time import sleep
from typing import Any

sys.path += sys.argv[1:]  # in place of `site`, whose .pth files point to what is not here

from numpy import array, float64, generic, longdouble, ndarray
from safetensors.numpy import load, save

# Held here, as are the names above: what a student's code puts in their modules changes nothing here.
encode = json.JSONEncoder().encode
LONGEST_TEXT = 2000
# IPython's own: `%time f()`, `!ls`, `?f`, `files = !ls`, `f?`
NOT_PYTHON = re.compile(r"\s*([%!?]|[\w, ]+=\s*[%!]|[\w.]+\?{1,2}\s*$)")
Json = dict[str, Any]


class IPython:
    """What get_ipython() gives: it has every method, and none does anything."""

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **options: None


def main() -> None:
    """Do the job on stdin and wait to be killed."""
    job, arrays = _receive()
    answers, me = os.dup(1), getpid()
    _give_up_rights(job)
    import_module("stub").install()
    _silence()

    def send(*parts: bytes) -> None:
        rest = memoryview(b"".join(parts))
        while rest and getpid() == me:  # not from a copy that a fork of the student's made
            rest = rest[write(answers, rest) :]

    for name in job["packages"]:  # they take seconds that are not the student's
        with contextlib.suppress(Exception):
            import_module(name)
    send(b"ready")
    module = types.ModuleType("__main__")
    vars(module)["display"] = lambda *shown, **options: None
    vars(module)["get_ipython"] = IPython
    sys.modules["__main__"], sys.argv = module, [""]
    errors = []
    for number, cell in enumerate(job["cells"]):
        errors += _run_cell(number, cell, vars(module))
        send(b".")
    send(b"|")
    given = [[_argument(value, arrays) for value in case] for case in job["cases"]]
    reports, outputs = _answer(job, vars(module), given)
    student = vars(module).get("STUDENT")
    reply = {
        "errors": errors,
        "cases": reports,
        "student": student[:LONGEST_TEXT] if isinstance(student, str) else "",
    }
    text, tensors = encode(reply).encode(), save(outputs)
    send(struct.pack("<QQ", len(text), len(tensors)), text, tensors)
    while True:
        sleep(60)


def _receive() -> tuple[Json, dict[str, Any]]:
    (length,) = struct.unpack("<Q", sys.stdin.buffer.read(8))
    job = json.loads(sys.stdin.buffer.read(length))
    return job, load(sys.stdin.buffer.read())


def _silence() -> None:
    """Nothing to read from, and nobody to print to."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    os.close(nothing)


def _give_up_rights(job: Json) -> None:
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "wb") as score:
        score.write(b"1000")  # should memory run out, this is what the system ends first
    if job["uid"] is not None:
        os.setgroups([])
        os.setresgid(*[job["uid"]] * 3)
        os.setresuid(*[job["uid"]] * 3)
    import resource

    for name, most in job["limits"].items():
        with contextlib.suppress(ValueError, OSError):  # not every system has every limit
            resource.setrlimit(getattr(resource, name), (most, most))


def _run_cell(number: int, source: str, namespace: Json) -> list[Json]:
    """Run a cell; what it raised, or nothing."""
    name = f"<cell {number}>"
    try:
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        code = _compiled(source, name)
        if code.co_flags & inspect.CO_COROUTINE:  # it awaits something, as a cell may
            asyncio.run(types.FunctionType(code, namespace)())
        else:
            exec(code, namespace)
    except BaseException as error:  # whatever it was, the other cells go on
        return [_raised(error)]
    return []


def _compiled(source: str, name: str) -> types.CodeType:
    """The cell, or if that is not Python, the cell without IPython's own commands."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        return compile(source, name, "exec", flags, dont_inherit=True)
    except SyntaxError:
        lines = source.split("\n")
        for at, line in enumerate(lines):
            lines[at] = _python(line)
            if lines[at] != line and line.endswith("\\") and at + 1 < len(lines):
                lines[at + 1] = "!" + lines[at + 1]  # it goes on there
        return compile("\n".join(lines), name, "exec", flags, dont_inherit=True)


def _python(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    return f"{indent}pass" if NOT_PYTHON.match(line) else line


def _raised(error: BaseException) -> Json:
    """What was raised, and the last line of the student's own that it passed through."""
    try:
        message = str(error)[:LONGEST_TEXT]
    except BaseException:
        message = ""
    found: Json = {"kind": "raised", "type": type(error).__name__[:100], "message": message}
    if isinstance(error, SyntaxError):
        found["message"] = str(error.msg)[:LONGEST_TEXT]
        found |= {"file": str(error.filename), "line": error.lineno or 0}
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if code.co_filename.startswith("<cell "):
            place = next(islice(code.co_positions(), step.tb_lasti // 2, None), (None,) * 4)
            found |= {"file": code.co_filename, "line": step.tb_lineno, "place": place}
            found["function"] = code.co_firstlineno
        step = step.tb_next
    return found


def _argument(value: Json, arrays: dict[str, Any]) -> Any:
    """An argument of a case: an array, a scalar of NumPy's, or what JSON holds."""
    if "array" in value:
        return arrays[value["array"]]
    if "scalar" in value:
        return arrays[value["scalar"]][()]
    return value["plain"]


def _answer(job: Json, namespace: Json, cases: list[list[Any]]) -> tuple[list[Json], Json]:
    """For each case a report, and the arrays of all by number of case and part."""
    reports, outputs = [], {}
    for number, case in enumerate(cases):
        before = [_bytes(value) for value in case]
        try:
            report, parts = _outcome(job, namespace, case)
            outputs.update({f"{number}.{part}": one for part, one in enumerate(parts)})
        except BaseException as error:  # a student's exit() must not end the marking
            report = _raised(error)
        report["changed"] = [
            position
            for position, (one, value) in enumerate(zip(before, case, strict=True))
            if one != _bytes(value)
        ]
        reports.append(report)
    return reports, outputs


def _bytes(value: Any) -> Any:
    return value.tobytes() if isinstance(value, ndarray) else repr(value)


def _outcome(job: Json, namespace: Json, case: list[Any]) -> tuple[Json, list[Any]]:
    """One case: call the function, or read the variables."""
    missing = [name for name in job["variables"] or [job["name"]] if name not in namespace]
    if missing:
        return {"kind": "missing", "names": missing}, []
    if job["variables"]:
        result: Any = tuple(namespace[name] for name in job["variables"])
        blank = any(value is None or value is ... for value in result)
    else:
        result = namespace[job["name"]](*case)
        blank = any(result is value for value in (None, ..., NotImplemented))
    if blank:
        return {"kind": "blank"}, []
    several = job["parts"] > 0
    if several and not isinstance(result, tuple | list):
        return {"kind": "misfit", "types": [_type(result)], "tuple": False}, []
    parts = list(result) if several else [result]
    arrays = [_array(part) for part in parts]
    if any(one is None for one in arrays) or (several and len(parts) != job["parts"]):
        types = [_type(part) for part in parts[:10]]
        return {"kind": "misfit", "types": types, "tuple": several}, []
    return {"kind": "output", "parts": len(parts)}, arrays


def _type(value: Any) -> str:
    return str(type(value).__name__)[:100]


def _array(result: Any) -> Any:
    """The result as a plain array of its own; None if it is none, nor numbers nor tensors in lists."""
    result = _without_tensors(result)
    if not isinstance(result, ndarray | generic | list | int | float):
        return None
    try:
        found = array(result, order="C", subok=False)
    except ValueError:  # rows of different lengths
        return None
    if found.dtype.kind not in "biuf":
        return None
    if found.dtype == longdouble:  # wider than what travels
        return found.astype(float64)
    return found.astype(found.dtype.newbyteorder("="), copy=False)


def _without_tensors(result: Any) -> Any:
    """Tensors as arrays, tuples as lists."""
    if isinstance(result, list | tuple):
        return [_without_tensors(part) for part in result]
    if not hasattr(result, "detach"):
        return result
    tensor = result.detach().cpu()
    return (tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).numpy()


if __name__ == "__main__":
    main()
