"""The programs that some tests need, and where they are."""

from __future__ import annotations

import shutil

PROGRAMS = {
    "node": ("node", "nodejs"),
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "bubblewrap": ("bwrap",),
}


def program(name: str) -> str | None:
    """The path of a program of PROGRAMS, or None where the machine lacks it."""
    return next(filter(None, map(shutil.which, PROGRAMS[name])), None)
