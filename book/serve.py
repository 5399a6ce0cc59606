"""Serve the built site on this machine, packed and kept by the browser for a while, as hosts do: `python -m book.serve FOLDER`."""

import functools
import gzip
import hashlib
import http.server
import sys
from http import HTTPStatus
from pathlib import Path

PACKED = {".whl", ".zip", ".woff2", ".png", ".pdf", ".safetensors"}  # as they are
SECONDS = 600  # that a browser may keep a file without asking


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files with their digest as ETag, gzipped for who takes it."""

    protocol_version = "HTTP/1.1"
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {
        ".js": "text/javascript",
        ".wasm": "application/wasm",
    }

    def do_GET(self) -> None:
        """Send a file, or say that the browser has it."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Send the headers of a file."""
        self._answer(body=False)

    def _answer(self, body: bool) -> None:
        path = Path(self.translate_path(self.path))
        if path.is_dir():
            if not self.path.partition("?")[0].endswith("/"):
                self.send_response(HTTPStatus.MOVED_PERMANENTLY)
                self.send_header("Location", f"{self.path.partition('?')[0]}/")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            path /= "index.html"
        if not path.is_file():
            answer_lost(self)
            return
        packs = path.suffix not in PACKED and "gzip" in self.headers.get("Accept-Encoding", "")
        data, tag = _read(path, path.stat().st_mtime_ns, packs)
        known = self.headers.get("If-None-Match") == tag
        self.send_response(HTTPStatus.NOT_MODIFIED if known else HTTPStatus.OK)
        self.send_header("ETag", tag)
        self.send_header("Cache-Control", f"max-age={SECONDS}")
        if not known:
            self.send_header("Content-Type", self.guess_type(path))
            self.send_header("Content-Length", str(len(data)))
            if path.suffix not in PACKED:
                self.send_header("Vary", "Accept-Encoding")
            if packs:
                self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        if body and not known:
            self.send(data)

    def send(self, data: bytes) -> None:
        """Write the body of an answer."""
        self.wfile.write(data)


@functools.cache
def _read(path: Path, changed: int, packs: bool) -> tuple[bytes, str]:
    """What is sent of a file, and its tag."""
    data = path.read_bytes()
    tag = f'"{hashlib.sha256(data).hexdigest()[:16]}{"-gzip" if packs else ""}"'
    return gzip.compress(data, 6, mtime=0) if packs else data, tag


def answer_lost(handler: http.server.SimpleHTTPRequestHandler) -> None:
    """Answer for what is not there with the book's own page, as hosts of static pages do."""
    page = Path(handler.directory) / "404.html"
    if not page.is_file():
        handler.send_error(HTTPStatus.NOT_FOUND)
        return
    data = page.read_bytes()
    handler.send_response(HTTPStatus.NOT_FOUND)
    handler.send_header("Content-Type", "text/html; charset=utf-8")
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def main(folder: str) -> int:
    """Serve `folder` on the first free port from 8000 until Ctrl-C; returns the exit status."""
    handler = functools.partial(Handler, directory=folder)
    for port in (*range(8000, 8020), 0):
        try:
            server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
        except OSError:
            continue  # somebody else listens there
        with server:
            address = f"http://127.0.0.1:{server.server_port}/"
            print(f"The book is at {address} . To end it, press Ctrl-C here.", flush=True)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                print()
        return 0
    return 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
