"""What the live figures need beside the pages: modules and weights, each a classic script."""

import base64
import json
import re
from pathlib import Path

from figures.live import JS, bundle, json_for_html, load_weights

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
    for name in _NAME.findall(stored):
        _write(folder, "modules", name, bundle(name))
    for name in _WEIGHTS.findall(stored):
        _write(folder, "weights", name, base64.b64encode(load_weights(name)).decode())


def _write(folder: Path, kind: str, name: str, text: str) -> None:
    line = f"liveFigures.{kind}[{json.dumps(name)}] = {json_for_html(text)};\n"
    (folder / kind / f"{name}.js").write_text(line, encoding="utf-8")
