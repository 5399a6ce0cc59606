"""CSV files in which single cells are written while every other byte stays as it was."""

from __future__ import annotations

import re
from collections.abc import Sequence


class CsvFile:
    """A CSV file as another system exported it.

    header: the titles, without quotes. rows: the numbers of the rows below it that hold anything.
    Raises ValueError if the file is none.
    """

    def __init__(self, data: bytes) -> None:
        try:
            self._encoding, text = "utf-8", data.decode("utf-8")
        except UnicodeDecodeError:
            self._encoding, text = "latin-1", data.decode("latin-1")
        self._mark, text = ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)
        self.comma = max(",;\t", key=lambda mark: _width(text, mark))
        self._cells, self._ends = _parsed(text, self.comma)
        self.header = [_plain(cell).strip() for cell in self._cells[0]]
        if not any(self.header):
            raise ValueError("the file has no header")
        self.rows = [row for row, cells in enumerate(self._cells) if row and any(cells)]

    def column(self, *titles: str) -> int | None:
        """The first column with one of these titles, in any case; None if there is none."""
        wanted = [title.casefold() for title in titles]
        found = [at for at, title in enumerate(self.header) if title.casefold() in wanted]
        return found[0] if found else None

    def text(self, row: int, column: int | None) -> str:
        """What a cell holds; "" for one that is not there."""
        cells = self._cells[row]
        return _plain(cells[column]) if column is not None and column < len(cells) else ""

    def put(self, row: int, column: int, text: str) -> None:
        """Write a cell, so that no spreadsheet takes it for a formula."""
        cells = self._cells[row]
        cells.extend([""] * (column + 1 - len(cells)))
        cells[column] = quoted(text, self.comma)

    def add(self, title: str) -> int:
        """A new last column, empty; returns its number."""
        column = max(len(self._cells[row]) for row in (0, *self.rows))
        for row in (0, *self.rows):
            self.put(row, column, "")
        self.put(0, column, title)
        self.header += [""] * (column - len(self.header)) + [title]
        return column

    def to_bytes(self) -> bytes:
        """The file."""
        lines = (self.comma.join(cells) for cells in self._cells)
        whole = "".join(line + end for line, end in zip(lines, self._ends, strict=True))
        return (self._mark + whole).encode(self._encoding, "replace")


def quoted(text: str, comma: str = ",") -> str:
    """A cell's text as it stands in a CSV file; before what a spreadsheet would compute stands a '."""
    text = f"'{text}" if re.match(r"\s*[=+\-@＝＋－＠]|[\t\r\n]", text) else text
    return (
        '"' + text.replace('"', '""') + '"' if re.search(rf'[{comma}"\r\n]|^\s|\s$', text) else text
    )


def written(rows: Sequence[Sequence[str]]) -> bytes:
    """A new CSV file of these rows."""
    return "".join(",".join(map(quoted, row)) + "\r\n" for row in rows).encode()


def _plain(cell: str) -> str:
    return cell[1:-1].replace('""', '"') if cell.startswith('"') else cell


def _width(text: str, comma: str) -> int:
    """The number of titles, were this the sign between them."""
    try:
        return len(_parsed(text, comma, 1)[0][0])
    except ValueError:
        return 0


def _parsed(text: str, comma: str, most: int | None = None) -> tuple[list[list[str]], list[str]]:
    """The cells of each row as they stand in the file, and what ends each row."""
    cell = re.compile(rf'("(?:[^"]|"")*"|[^"{comma}\r\n][^{comma}\r\n]*|)({comma}|\r\n|\n|\r|\Z)')
    rows: list[list[str]] = [[]]
    ends: list[str] = []
    at = 0
    while most is None or len(ends) < most:
        found = cell.match(text, at)
        if not found:
            raise ValueError(
                f"row {len(rows)} of the file has quotes in the middle of a cell, or open ones"
            )
        rows[-1].append(found[1])
        at = found.end()
        if found[2] != comma:
            ends.append(found[2])
            if at == len(text):
                break
            rows.append([])
    return rows, ends
