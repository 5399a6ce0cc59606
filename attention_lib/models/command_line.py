"""What the commands that train share: a mistake in a command line is told before anything is trained."""

import argparse
import os
from pathlib import Path


def check_out(parser: argparse.ArgumentParser, path: Path) -> None:
    """End the command with one sentence unless a file can be written at `path`."""
    if path.is_dir():
        parser.error(f"--out must be a file: {path} is a folder")
    if not path.parent.is_dir():
        parser.error(f"--out must be in a folder that exists: found {path}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        parser.error(f"--out must be where you may write: found {path}")
