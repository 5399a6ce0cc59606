"""Small notebooks for the tests of the tools that run and judge notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nbformat import NotebookNode

from tests.notebooks import KERNEL, node

Json = dict[str, Any]


def code(
    source: str, *outputs: Json, tags: Iterable[str] = (), count: int | None = None, **metadata: Any
) -> Json:
    """A code cell; `notebook` counts it unless `count` is given."""
    return {
        "cell_type": "code",
        "source": source,
        "outputs": list(outputs),
        "execution_count": count,
        "metadata": {**metadata, **({"tags": list(tags)} if tags else {})},
    }


def text(source: str) -> Json:
    """A Markdown cell."""
    return {"cell_type": "markdown", "source": source, "metadata": {}}


def printed(value: str, name: str = "stdout") -> Json:
    """What a cell printed."""
    return {"output_type": "stream", "name": name, "text": value}


def shown(**data: Any) -> Json:
    """What a cell displayed; `text_html=...` stands for text/html."""
    bundle = {key.replace("_", "/", 1): value for key, value in data.items()}
    return {"output_type": "display_data", "data": bundle, "metadata": {}}


def notebook(*cells: Json, **metadata: Any) -> NotebookNode:
    """A notebook as it is stored after a run: ids given and code cells counted."""
    count = 0
    for number, cell in enumerate(cells):
        cell.setdefault("id", f"c{number}")
        if cell["cell_type"] == "code":
            count += 1
            cell["execution_count"] = cell["execution_count"] or count
    return node(
        {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {
                "kernelspec": KERNEL,
                "language_info": {"name": "python"},
                **metadata,
            },
            "cells": list(cells),
        }
    )
