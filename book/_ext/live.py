"""What the live figures need beside the pages: modules and weights, each a classic script."""

import base64
import json
import re
from collections.abc import Iterable
from pathlib import Path

from figures.live import JS, bundle, json_for_html, load_weights

_NAME = re.compile(r'class="explore" data-figure="(\w+)"')
_WEIGHTS = re.compile(r'"weights":"([^"]+)"')


def lay(stored: Iterable[str], folder: Path) -> None:
    """Write into `folder` mount.js and all that it will ask for to mount these stored figures."""
    for kind in ("modules", "weights"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    mount = (JS / "mount.js").read_text(encoding="utf-8")
    (folder / "mount.js").write_text(mount, encoding="utf-8")
    for html in stored:
        for name in _NAME.findall(html):
            _write(folder, "modules", name, bundle(name))
        for name in _WEIGHTS.findall(html):
            _write(folder, "weights", name, base64.b64encode(load_weights(name)).decode())


def _write(folder: Path, kind: str, name: str, text: str) -> None:
    line = f"liveFigures.{kind}[{json.dumps(name)}] = {json_for_html(text)};\n"
    (folder / kind / f"{name}.js").write_text(line, encoding="utf-8")
