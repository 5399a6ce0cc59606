"""Serve the built site on this machine: `python -m book.serve FOLDER`."""

import functools
import http.server
import sys


def main(folder: str) -> int:
    """Serve `folder` on the first free port from 8000 until Ctrl-C; returns the exit status."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
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
