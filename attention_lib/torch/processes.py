"""Start processes on this machine that form a torch.distributed group, and collect what they return."""

import math
import os
import pickle
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.distributed as dist

from ..shapes import check_count

SETTLE = 0.5  # seconds in which those that fail because another did are heard, and the other


def run_processes(
    count: int,
    function: Callable[..., Any],
    *arguments: Any,
    seconds: float = 120.0,
    guard: float = 600.0,
) -> list[Any]:
    """Call function(*arguments) in each of `count` new processes; returns what they return, by rank.

    The processes form torch.distributed's default group (gloo, on CPU) and meet in a file, so that
    no port is needed; each computes on one thread. `function` is one that can be imported: not of a
    notebook. Arguments and results are pickled.

    Raises RuntimeError with its rank and its words when a process raises, ends, or takes more than `seconds` of
    CPU time, the first if more do; and TimeoutError if they wait for each other for `guard` seconds on the clock. Then,
    as always, no process is left behind, nor if this one is killed.
    """
    count = check_count("count", count, least=1)
    task, context = pickle.dumps((function, arguments)), get_context("spawn")
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        pipes = [context.Pipe(duplex=False) for _ in range(count)]
        processes = [
            context.Process(
                target=_process,
                args=(rank, count, str(Path(folder, "meet")), seconds, guard, task, answer),
                daemon=True,
            )
            for rank, (_, answer) in enumerate(pipes)
        ]
        try:
            for process, (_, answer) in zip(processes, pipes, strict=True):
                process.start()
                answer.close()  # the process has it; so its end is seen here
            results = _collect([heard for heard, _ in pipes], guard)
            for process in processes:
                process.join(guard)
            return results
        finally:
            for process in processes:
                if process.pid is not None:
                    process.kill()
                    process.join()


def _collect(pipes: list[Connection], guard: float) -> list[Any]:
    """What each process says, in whatever order they say it."""
    results: dict[int, Any] = {}
    end = time.monotonic() + guard
    while len(results) < len(pipes):
        waiting = {pipe: rank for rank, pipe in enumerate(pipes) if rank not in results}
        heard = wait(waiting, max(0.0, end - time.monotonic()))
        if not heard:
            raise TimeoutError(f"processes {[*waiting.values()]} did not end in {guard:g} s")
        said = {rank: _hear(pipe) for pipe, rank in waiting.items() if pipe in heard}
        if any(failed is not None for failed, _ in said.values()):
            time.sleep(SETTLE)
            said |= {r: _hear(x) for x, r in waiting.items() if r not in said and x.poll()}
            _, rank, words = min((t, r, words) for r, (t, words) in said.items() if t is not None)
            raise RuntimeError(f"process {rank} of {len(pipes)}: {words}")
        results |= {rank: result for rank, (_, result) in said.items()}
    return [results[rank] for rank in range(len(pipes))]


def _hear(pipe: Connection) -> tuple[float | None, Any]:
    """When the process failed, None if it did not, and what it says."""
    try:
        return pickle.loads(pipe.recv_bytes())
    except EOFError:
        return -math.inf, "it ended without an answer"  # before those that then missed it


def _process(
    rank: int, count: int, meet: str, seconds: float, guard: float, task: bytes, answer: Connection
) -> None:
    """One of the processes: join the others, do the task, say what came of it."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _limit(seconds)
        torch.set_num_threads(1)
        store = dist.FileStore(meet, count)  # type: ignore[attr-defined]
        dist.init_process_group(
            "gloo", store=store, rank=rank, world_size=count, timeout=timedelta(seconds=guard)
        )
        function, arguments = pickle.loads(task)
        said = pickle.dumps((None, function(*arguments)))
        dist.barrier()  # nobody leaves while another may still be sending
    except Exception as error:
        said = pickle.dumps((time.monotonic(), f"{type(error).__name__}: {error}"))
    answer.send_bytes(said)
    if dist.is_initialized():
        dist.destroy_process_group()


def _end_with_parent() -> None:
    """End this process when the one that started it is gone."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _limit(seconds: float) -> None:
    """Raise TimeoutError in this process after so many seconds of CPU time; Windows has no such limit."""
    try:
        import resource
        import signal
    except ImportError:
        return

    def end(*_: Any) -> None:
        raise TimeoutError(f"it took more than {seconds:g} s of CPU time")

    signal.signal(signal.SIGXCPU, end)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), most))
