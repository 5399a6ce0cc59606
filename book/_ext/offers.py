"""Ways to run a chapter: files to download, and Binder and Colab where the repository has an address."""

import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError

NAME = "self-attention-book"
TOP = (
    ".ci .github .gitignore CHANGELOG.md CITATION.cff CONTRIBUTING.md LICENSE Makefile README.md attention_lib benchmarks "
    "book chapters constraints.txt environment.yml figures pyproject.toml tests"
).split()
REPOSITORY = re.compile(r"https://github\.com/(?P<owner>[\w-]+)/(?P<name>[\w.-]+?)(\.git)?/?")
# The assignments are not among TOP: whoever learns is not to get the right answers to what is marked.
LEFT_OUT = {
    "__pycache__",
    "node_modules",
    ".ipynb_checkpoints",
    "_build",
    "assignments",
    "grading.py",
}


def check_repository(app: Sphinx, config: Config) -> None:
    """Raises ConfigError unless book_repository is empty or an address that Binder and Colab understand."""
    address = config.book_repository
    if address and not REPOSITORY.fullmatch(address):
        raise ConfigError(
            f'book_repository is to be "https://github.com/owner/name" or empty, and is "{address}"'
        )


def ways(file: str, up: str, repository: str, branch: str) -> dict[str, str]:
    """What each way to run chapters/<file> is called, and where it leads from a page `up` from the root."""
    found = {
        "this notebook": f"{up}download/{quote(file)}",
        "the whole book": f"{up}download/{NAME}.zip",
    }
    if address := REPOSITORY.fullmatch(repository):
        owner, name = address["owner"], address["name"]
        path = f"{branch}/chapters/{quote(file)}"
        hub = f"https://mybinder.org/v2/gh/{owner}/{name}/{branch}"
        found["Binder"] = f"{hub}?urlpath=lab/tree/chapters/{quote(file)}"
        found["Colab"] = f"https://colab.research.google.com/github/{owner}/{name}/blob/{path}"
    return found


def write_downloads(root: Path, folder: Path) -> None:
    """The notebooks as they are, and the whole book as one .zip, the same whenever it is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted((root / "chapters").glob("*.ipynb")):
        (folder / path.name).write_bytes(path.read_bytes())
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in _files(root):
            entry = zipfile.ZipInfo(f"{NAME}/{path.relative_to(root).as_posix()}")
            entry.external_attr = (0o100755 if path.stat().st_mode & 0o100 else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())
    (folder / f"{NAME}.zip").write_bytes(packed.getvalue())


def _files(root: Path) -> Iterator[Path]:
    for name in TOP:
        top = root / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            parts = path.relative_to(root).parts
            copied = parts[:2] in (("book", "chapters"), ("book", "api")) and len(parts) > 2
            kept = path.suffix not in (".pyc", ".partial") and not LEFT_OUT & set(parts)
            if path.is_file() and kept and not copied:
                yield path
