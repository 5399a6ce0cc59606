"""What the chapters train and measure, one folder a model: its data, its recipe, what is measured of it, its weights.

`python -m attention_lib.models.pronoun` remakes what is stored in models/pronoun/weights, and so on; only a recipe
(train.py) needs torch.
"""

from pathlib import Path

_MODELS = Path(__file__).parent


def stored_files(pattern: str = "*") -> dict[str, Path]:
    """The shipped weights and results by file name, as far as their names match a glob pattern."""
    return {path.name: path for path in sorted(_MODELS.glob(f"*/weights/{pattern}"))}
