"""NumPy as it was when this package was imported, whatever has been put in its place since."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

ORIGINALS: Mapping[str, Any] = {
    name: value for name, value in vars(np).items() if not name.startswith("__")
}
_MISSING = object()


def put_back(attributes: Mapping[str, Any] = ORIGINALS) -> tuple[str, ...]:
    """Set NumPy's attributes to those given; returns the names of those that differed."""
    now = vars(np)
    names = tuple(
        name for name, value in attributes.items() if now.get(name, _MISSING) is not value
    )
    for name in names:
        setattr(np, name, attributes[name])
    return names


@contextmanager
def original_numpy() -> Iterator[None]:
    """NumPy's own attributes inside; afterwards those that were found."""
    found = {name: value for name, value in vars(np).items() if name in ORIGINALS}
    put_back()
    try:
        yield
    finally:
        put_back(found)
