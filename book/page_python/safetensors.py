"""Reads safetensors files in the page, as far as this book's weights go: the package itself has no build for a browser."""

import json
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

TYPES = {"F16": np.float16, "F32": np.float32, "F64": np.float64, "I64": np.int64, "BOOL": np.bool_}


class SafetensorError(Exception):
    """The file is none."""


class safe_open:
    """A file, opened as safetensors.safe_open(path, framework="numpy") opens it."""

    def __init__(self, path: str | Path, framework: str = "numpy") -> None:
        data = Path(path).read_bytes()
        try:
            start = 8 + int.from_bytes(data[:8], "little")
            self._header: dict[str, Any] = json.loads(data[8:start])
        except ValueError as error:
            raise SafetensorError(f"{path} is no safetensors file") from error
        self._about: dict[str, str] = self._header.pop("__metadata__", {})
        self._data = data[start:]

    def __enter__(self) -> "safe_open":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._data = b""

    def metadata(self) -> dict[str, str]:
        """What the file says of itself."""
        return self._about

    def keys(self) -> list[str]:
        """The names of its arrays."""
        return list(self._header)

    def get_tensor(self, name: str) -> Any:
        """One array."""
        about = self._header[name]
        first, last = about["data_offsets"]
        flat: Any = np.frombuffer(self._data[first:last], TYPES[about["dtype"]])
        return flat.reshape(about["shape"]).copy()
