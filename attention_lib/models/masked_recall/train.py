"""Reach is not recall: what a sparse mask lets a token depend on, and what training makes of it.

python -m attention_lib.models.masked_recall                     remakes weights/reach.json, eight minutes
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from ...masks import causal_mask, global_window_mask, sliding_window_mask, strided_mask
from ...shapes import Mask, ShapeError, as_array, check_count, describe
from ...torch.modules import TransformerBlock
from ...torch.positions import sinusoids
from ..command_line import check_out
from ..recall.train import NOISE, SYMBOLS, WIDTH, Recaller, accuracy, train

WEIGHTS = Path(__file__).parent / "weights"

N, WINDOW, STRIDE = 32, 4, 6  # tokens of a row, and two of the masks' sizes
HEADS = 4
KEYS = 16  # of the pairs; their values are as many as the symbols
# The first token is the global one. Only the fourth mask lets a token see a later one.
PATTERNS: dict[str, Mask] = {
    "full": causal_mask(N),
    "window": sliding_window_mask(N, WINDOW),
    "window + global, causal": global_window_mask(N, WINDOW, 1),
    "window + global": global_window_mask(N, WINDOW, 1, causal=False),
    "strided": strided_mask(N, STRIDE),
}
FARTHEST = N - 2  # the row's first token is the global one, its last the question
BEYOND = 2 * (WINDOW - 1) + 1  # first distance that two layers of the window do not reach


def receptive_field(mask: Mask, layers: int) -> Mask:
    """Which token can depend on which after so many layers, each under `mask` (n, n): (n, n) booleans.

    Each layer adds to its input, so a token always depends on itself. This is what the mask allows,
    whatever the weights: row i of the boolean power (mask or identity)^layers.
    Raises ShapeError unless the mask is square, TypeError unless it is boolean.
    """
    mask = as_array("mask", mask)
    if mask.ndim != 2 or mask.shape[0] != mask.shape[1]:
        raise ShapeError(f"mask must be (n, n): mask {mask.shape}")
    if mask.dtype != bool:
        raise TypeError(f"mask must be boolean, True = may look: found {mask.dtype}")
    itself = np.eye(len(mask), dtype=bool)
    reached = itself
    for _ in range(check_count("layers", layers)):
        reached = reached @ (mask | itself)
    return reached


def reached_distances(pattern: str, layers: int) -> list[int]:
    """How many steps back the last token can depend on, of 1 to FARTHEST.

    Raises ValueError for what is none of PATTERNS.
    """
    last = receptive_field(_mask(pattern), layers)[-1]
    return [k for k in range(1, FARTHEST + 1) if last[N - 1 - k]]


def _mask(pattern: str) -> Mask:
    if pattern not in PATTERNS:
        raise ValueError(f"pattern must be one of {'; '.join(PATTERNS)}: found {pattern!r}")
    return PATTERNS[pattern]


class Masked(Recaller):
    """Embedded tokens with sinusoids, blocks that attend under one mask, logits of the last token."""

    def __init__(self, mask: Mask, tokens: int, answers: int, *, layers: int, rng: torch.Generator):
        super().__init__()
        start = torch.randn(tokens, WIDTH, generator=rng) / 2
        self.embedding = nn.Embedding(tokens, WIDTH, _weight=start)
        self.layer = nn.ModuleList(
            TransformerBlock(WIDTH, HEADS, feed_forward=2 * WIDTH, rng=rng) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(WIDTH)
        self.W_out = nn.Parameter(torch.randn(WIDTH, answers, generator=rng) / WIDTH**0.5)
        self.mask = torch.from_numpy(mask)

    def forward(self, embedded: Tensor) -> Tensor:
        """Logits (B, answers) for embedded tokens (B, N, WIDTH)."""
        x = embedded + sinusoids(embedded.shape[1], WIDTH, dtype=embedded.dtype)
        for block in self.layer:
            x = block(x, self.mask)
        return self.norm(x[:, -1]) @ self.W_out


# ---------------------------------------------------------------- two tasks


def draw_distance(batch: int, rng: torch.Generator, k: int | None = None) -> tuple[Tensor, Tensor]:
    """One symbol in a row of noise, k steps before the question at the end: which symbol is it?

    k: the same for all rows, or drawn for each from 1 to FARTHEST.
    Tokens (batch, N, 1) and answers (batch,). Chance is 1/8. Raises ValueError for another k.
    """
    _check_draw("k", 1 if k is None else k, FARTHEST, rng)
    tokens = SYMBOLS + torch.randint(0, NOISE, (batch, N), generator=rng)
    answers = torch.randint(0, SYMBOLS, (batch,), generator=rng)
    back = torch.randint(1, FARTHEST + 1, (batch,), generator=rng)
    back = back if k is None else torch.full((batch,), k)
    tokens[torch.arange(batch), N - 1 - back] = answers
    tokens[:, 0], tokens[:, -1] = SYMBOLS + NOISE, SYMBOLS + NOISE + 1
    return tokens[..., None], answers


def draw_pairs(batch: int, rng: torch.Generator, pairs: int) -> tuple[Tensor, Tensor]:
    """Pairs of a key and a value, all BEYOND the window's reach, then a key: what was its value?

    A pair is one token, and other tokens say nothing. Tokens (batch, N, 2), a key and a value, and
    answers (batch,). Chance is 1/8. Raises ValueError unless there are 1 to KEYS pairs.
    """
    _check_draw("pairs", pairs, KEYS, rng)
    no_key, no_value, question, start = KEYS, KEYS + 1, KEYS + 2, KEYS + 3
    first_value = KEYS + 4
    tokens = torch.tensor([no_key, no_value]).repeat(batch, N, 1)
    keys = torch.rand(batch, KEYS, generator=rng).argsort(1)[:, :pairs]
    values = torch.randint(0, SYMBOLS, (batch, pairs), generator=rng)
    places = 1 + torch.rand(batch, N - 1 - BEYOND, generator=rng).argsort(1)[:, :pairs]
    row = torch.arange(batch)[:, None]
    tokens[row, places] = torch.stack([keys, first_value + values], -1)
    asked = torch.randint(0, pairs, (batch, 1), generator=rng)
    tokens[:, 0, 1] = start
    tokens[:, -1] = torch.cat([keys.gather(1, asked), torch.full((batch, 1), question)], 1)
    return tokens, values.gather(1, asked)[:, 0]


def _check_draw(name: str, value: int, most: int, rng: torch.Generator) -> None:
    if not 1 <= check_count(name, value, least=None) <= most:
        raise ValueError(f"{name} must be from 1 to {most}: found {value}")
    if not isinstance(rng, torch.Generator):
        raise TypeError(f"rng must be a torch.Generator: found {describe(rng)}")


# ---------------------------------------------------------------- what is measured

Rows = dict[str, Any]
SEEDS = [0, 1, 2]
BATCH, RATE = 32, 3e-3
STEPS = {
    "distance": 300,
    "pairs": 600,
    "longer": 3000,
}  # at most: training ends when 30 batches are without fault
RECIPE: Rows = {
    "tokens": N,
    "window": WINDOW,
    "stride": STRIDE,
    "width": WIDTH,
    "heads": HEADS,
    "feed_forward": 2 * WIDTH,
    "optimiser": "Adam, gradients clipped to a norm of 1",
    "rate": RATE,
    "batch": BATCH,
    "steps": STEPS,
    "seeds": SEEDS,
}
# By part and pattern: numbers of layers, or of pairs.
CELLS: dict[str, dict[str, tuple[int, ...]]] = {
    "distance": {
        "full": (2,),
        "window": (1, 2, 4),
        "window + global, causal": (2,),
        "window + global": (2,),
        "strided": (2,),
    },
    "pairs": {
        "full": (2, 8),
        "window": (2,),
        "window + global": (1, 2, 4, 8),
        "strided": (2, 8),
    },
    "longer": {"window + global": (4,)},
}


def train_distance(
    pattern: str, layers: int, seed: int, steps: int = STEPS["distance"]
) -> tuple[list[float], int]:
    """Train on all distances at once; return the accuracy at each from 1 to FARTHEST, on 256 fresh
    rows, and the steps made.
    """
    rng = torch.Generator().manual_seed(seed)
    model = Masked(_mask(pattern), SYMBOLS + NOISE + 2, SYMBOLS, layers=layers, rng=rng)
    made = train(model, partial(draw_distance, rng=rng), steps=steps, batch=BATCH, rate=RATE)
    fresh = torch.Generator().manual_seed(1000 + seed)
    right = [accuracy(model, *draw_distance(256, fresh, k)) for k in range(1, FARTHEST + 1)]
    return [round(share, 3) for share in right], made


def train_pairs(
    pattern: str, pairs: int, seed: int, steps: int = STEPS["pairs"]
) -> tuple[float, int]:
    """Train two layers on associative recall; return the accuracy on 1,024 fresh rows, and the steps."""
    rng = torch.Generator().manual_seed(seed)
    model = Masked(_mask(pattern), KEYS + 4 + SYMBOLS, SYMBOLS, layers=2, rng=rng)
    made = train(
        model, partial(draw_pairs, rng=rng, pairs=pairs), steps=steps, batch=BATCH, rate=RATE
    )
    fresh = torch.Generator().manual_seed(1000 + seed)
    return round(accuracy(model, *draw_pairs(1024, fresh, pairs)), 3), made


def measure(part: str) -> Rows:
    """A part of CELLS: by pattern and number, accuracy and steps, each a list by seed."""
    runs: dict[str, Callable[[str, int, int], tuple[Any, int]]] = {
        "distance": train_distance,
        "pairs": train_pairs,
        "longer": partial(train_pairs, steps=STEPS["longer"]),
    }
    cells = CELLS[part]
    rows: Rows = {pattern: {} for pattern in cells}
    todo = tqdm([(p, n) for p, numbers in cells.items() for n in numbers], desc=part, unit="cell")
    for pattern, number in todo:
        todo.set_postfix_str(f"{pattern}, {number}")
        right, steps = zip(*(runs[part](pattern, number, seed) for seed in SEEDS), strict=True)
        rows[pattern][str(number)] = {"accuracy": list(right), "steps": list(steps)}
    return rows


def stored() -> Rows:
    """What `python -m attention_lib.models.masked_recall` measured.

    "recipe": all that is the same for every model
    "distance"[pattern][layers]["accuracy"][seed]: a share for each distance from 1 to FARTHEST
    "pairs"[pattern][pairs]["accuracy"][seed]: a share, of two layers
    "longer": as "pairs", with five times the steps
    "steps" in place of "accuracy": the steps of training, which ends when all is right. Layers and
    numbers of pairs are strings, as JSON's keys are.
    """
    rows: Rows = json.loads((WEIGHTS / "reach.json").read_text(encoding="utf-8"))
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and remake the file, or a part of it."""
    parser = argparse.ArgumentParser(
        prog="python -m attention_lib.models.masked_recall",
        description="Remake weights/reach.json.",
    )
    parser.add_argument("part", nargs="*", help=f"{', '.join(CELLS)} (default: all)")
    parser.add_argument("--out", type=Path, default=WEIGHTS / "reach.json", help="file to write")
    options = parser.parse_args(arguments)
    if unknown := [part for part in options.part if part not in CELLS]:
        parser.error(f"no such part: {', '.join(unknown)}")
    check_out(parser, options.out)
    try:
        rows = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    except ValueError as error:
        parser.error(f"--out must hold JSON, or not exist: {options.out}: {error}")
    if not isinstance(rows, dict):
        parser.error(f"--out must hold what this command wrote: {options.out} holds another thing")
    # One thread: sums are then added in one order, and the same seed gives the same numbers.
    torch.set_num_threads(1)
    for part in options.part or CELLS:
        start = time.process_time()
        rows[part] = measure(part)
        text = json.dumps(
            {"recipe": RECIPE, **{name: rows[name] for name in CELLS if name in rows}}
        )
        options.out.write_text(text + "\n", encoding="utf-8")
        print(f"{part}: {time.process_time() - start:.0f} s of CPU time")
