"""What the live figures need beside the pages: modules and weights, each a classic script."""

import re
from pathlib import Path

from figures.live import JS, module_script, weights_script

_NAME = re.compile(r'class="explore" data-figure="(\w+)"')
_WEIGHTS = re.compile(r'"weights":"([^"]+)"')


def lay_mount(folder: Path) -> None:
    """Write mount.js into `folder`, and the folders that it asks."""
    for kind in ("modules", "weights"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    mount = (JS / "mount.js").read_text(encoding="utf-8")
    (folder / "mount.js").write_text(mount, encoding="utf-8")


def lay(stored: str, folder: Path) -> None:
    """Write beside mount.js what it will ask for to mount this stored figure.

    Raises OSError if its module or its weights are not there, ValueError if the module cannot be bundled.
    """
    for kind, pattern, script in (
        ("modules", _NAME, module_script),
        ("weights", _WEIGHTS, weights_script),
    ):
        for name in pattern.findall(stored):
            (folder / kind / f"{name}.js").write_text(script(name), encoding="utf-8")
