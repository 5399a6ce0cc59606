"""Recall over a distance: recurrent networks beside attention, at equal numbers of parameters.

python -m attention_lib.models.recall                    remakes weights/recall.json, ten minutes
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

from ...torch.modules import AdditiveAttention, MultiHeadAttention, count_parameters
from ...torch.positions import sinusoids

WEIGHTS = Path(__file__).parent / "weights"

WIDTH = 32  # of an embedded token, in every model
SYMBOLS, NOISE = 8, 8  # to be recalled, and to be ignored; one more token asks
KEYS, VALUES = 64, 16  # of the pairs; one more value asks

Kind = Literal["RNN", "GRU", "LSTM"]
Draw = Callable[[int], tuple[Tensor, Tensor]]
LAYERS: dict[Kind, type[nn.RNN] | type[nn.GRU] | type[nn.LSTM]] = {
    "RNN": nn.RNN,
    "GRU": nn.GRU,
    "LSTM": nn.LSTM,
}
# All at PyTorch's default initialisation.
DEFAULT = ("RNN", "GRU", "LSTM", "RNN + attention", "self-attention")
# The same networks from a start that was made for long memories.
CAREFUL = (
    "RNN, orthogonal",
    "LSTM, forget bias 1",
    "LSTM, forget bias 6",
    "LSTM, spread forget bias",
)


class Recaller(nn.Module):
    """What `train` trains: embedded tokens (B, T, WIDTH) to logits (B, answers) of the last."""

    embedding: nn.Embedding


class Recurrent(Recaller):
    """Embedded tokens, one recurrent layer, and logits from its last state.

    tokens, answers   sizes of the vocabulary and of the output
    kind, hidden      the layer, and the width of its state
    attention         the last state also looks at all states, by additive attention
    """

    def __init__(
        self, tokens: int, answers: int, kind: Kind, hidden: int, *, attention: bool = False
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, WIDTH)
        self.layer = LAYERS[kind](WIDTH, hidden, batch_first=True)
        self.attention = AdditiveAttention(hidden, hidden, 16) if attention else None
        self.out = nn.Linear(hidden * (2 if attention else 1), answers)

    def forward(self, embedded: Tensor) -> Tensor:
        """Logits (B, answers) for embedded tokens (B, T, WIDTH)."""
        states, _ = self.layer(embedded)
        last = states[:, -1]
        if self.attention is not None:
            last = torch.cat([last, self.attention(last, states)[0]], -1)
        logits: Tensor = self.out(last)
        return logits

    def start(self, how: str) -> None:
        """Replace PyTorch's starting weights, which are uniform within 1/sqrt(hidden).

        orthogonal          the state is turned, neither shrunk nor stretched, but for the tanh
        forget bias b       the forget gates of an LSTM start at sigmoid(b)
        spread forget bias  they start spread, to forget over 2 to 256 tokens, and the input gates as
                            1 minus that
        Sources: Saxe et al. 2014; Gers et al. 2000; spread: Tallec and Ollivier 2018, equation 16.
        Raises ValueError for another word.
        """
        weights = dict(self.layer.named_parameters())
        if how == "orthogonal":
            nn.init.orthogonal_(weights["weight_hh_l0"])
            return
        hidden = self.layer.hidden_size
        inputs, forgets = slice(0, hidden), slice(hidden, 2 * hidden)  # PyTorch's order of gates
        with torch.no_grad():
            if how == "spread forget bias":
                spread = torch.log(torch.empty(hidden).uniform_(1, 255))
                weights["bias_ih_l0"][forgets] = spread
                weights["bias_ih_l0"][inputs] = -spread
                weights["bias_hh_l0"][inputs] = 0.0
            elif how.startswith("forget bias "):
                weights["bias_ih_l0"][forgets] = float(how.removeprefix("forget bias "))
            else:
                raise ValueError(f"no such start: {how!r}")
            weights["bias_hh_l0"][forgets] = 0.0


class SelfAttention(Recaller):
    """Embedded tokens with sinusoids, one layer of self-attention, a feed-forward, logits.

    Only the last token is asked for an answer, so only its query is made.
    """

    def __init__(
        self, tokens: int, answers: int, *, heads: int = 4, feed_forward: int = 48
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, WIDTH)
        self.attention = MultiHeadAttention(WIDTH, heads, rng=torch.default_generator)
        self.feed_forward = nn.Sequential(
            nn.Linear(WIDTH, feed_forward), nn.ReLU(), nn.Linear(feed_forward, WIDTH)
        )
        self.out = nn.Linear(WIDTH, answers)

    def forward(self, embedded: Tensor) -> Tensor:
        """Logits (B, answers) for embedded tokens (B, T, WIDTH)."""
        x = embedded + sinusoids(embedded.shape[1], WIDTH, dtype=embedded.dtype)
        last = x[:, -1:] + self.attention(x[:, -1:], x)
        logits: Tensor = self.out((last + self.feed_forward(last))[:, 0])
        return logits


def make(name: str, seed: int, *, tokens: int, answers: int) -> Recurrent | SelfAttention:
    """The model of that name (DEFAULT, CAREFUL) with its starting weights; about 8,000 parameters
    for the vocabulary of `draw_distance`.

    Raises ValueError for another name.
    """
    if name not in DEFAULT + CAREFUL:
        raise ValueError(f"name must be one of {DEFAULT + CAREFUL}: found {name!r}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if name == "self-attention":
            return SelfAttention(tokens, answers)
        if name == "RNN + attention":
            return Recurrent(tokens, answers, "RNN", 55, attention=True)
        hidden: dict[str, tuple[Kind, int]] = {
            "RNN": ("RNN", 68),
            "GRU": ("GRU", 35),
            "LSTM": ("LSTM", 29),
        }
        layer, _, start = name.partition(", ")
        model = Recurrent(tokens, answers, *hidden[layer])
        if start:
            model.start(start)
        return model


# ---------------------------------------------------------------- two tasks


def draw_distance(k: int, batch: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """A symbol, k - 1 tokens of noise, a question: which symbol was it?

    Tokens (batch, k + 1, 1) and answers (batch,). Chance is 1/8.
    """
    tokens = SYMBOLS + torch.randint(0, NOISE, (batch, k + 1), generator=rng)
    answers = torch.randint(0, SYMBOLS, (batch,), generator=rng)
    tokens[:, 0], tokens[:, -1] = answers, SYMBOLS + NOISE
    return tokens[..., None], answers


def draw_pairs(pairs: int, batch: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Pairs of a key and a value, then one of the keys: what was its value?

    Keys differ within a row, values may repeat. Tokens (batch, pairs + 1, 2), a key and a value that
    come at once, and answers (batch,). Chance is 1/16.
    """
    keys = torch.rand(batch, KEYS, generator=rng).argsort(1)[:, :pairs]
    values = torch.randint(0, VALUES, (batch, pairs), generator=rng)
    asked = torch.randint(0, pairs, (batch, 1), generator=rng)
    told = torch.stack([keys, KEYS + values], -1)
    question = torch.stack([keys.gather(1, asked), torch.full((batch, 1), KEYS + VALUES)], -1)
    return torch.cat([told, question], 1), values.gather(1, asked)[:, 0]


def answer(model: Recaller, tokens: Tensor) -> Tensor:
    """Logits (B, answers) for tokens (B, T, parts); the parts of a token are embedded and added."""
    logits: Tensor = model(model.embedding(tokens).sum(-2))
    return logits


def accuracy(model: Recaller, tokens: Tensor, answers: Tensor) -> float:
    """The share of right answers."""
    with torch.no_grad():
        return float((answer(model, tokens).argmax(-1) == answers).float().mean())


def train(
    model: Recaller,
    draw: Draw,
    *,
    steps: int,
    batch: int = 32,
    rate: float = 3e-3,
    patience: int = 30,
) -> int:
    """Train by Adam on fresh batches; end once `patience` of them in a row are answered without fault.

    Gradients are clipped to a norm of 1. Returns the number of steps made.
    """
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    faultless = 0
    for step in range(1, steps + 1):
        tokens, answers = draw(batch)
        logits = answer(model, tokens)
        optimiser.zero_grad()
        F.cross_entropy(logits, answers).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        faultless = faultless + 1 if bool((logits.argmax(-1) == answers).all()) else 0
        if faultless == patience:
            return step
    return steps


# ---------------------------------------------------------------- what is measured

Rows = dict[str, Any]
SEEDS = (0, 1, 2)
STEPS = 600
MIXED_STEPS = 1000
LONGER_STEPS = 3000
DISTANCES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
FIXED: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(DEFAULT, (8, 16, 32, 64, 256)),
    "RNN, orthogonal": (8, 16, 32, 64),
    "LSTM, forget bias 1": (8, 16, 32, 64),
    "LSTM, forget bias 6": (64, 256),
    "LSTM, spread forget bias": (64, 256),
}
FARTHEST = 64  # of the mixed distances, in training
MIXED = ("RNN", "GRU", "LSTM", "LSTM, forget bias 1", "self-attention")
PAIRS: dict[str, tuple[int, ...]] = {
    "RNN": (32,),
    "GRU": (2, 4, 8, 32),
    "LSTM": (2, 4, 8, 32),
    "LSTM, forget bias 1": (32,),
    "RNN + attention": (32,),
    "self-attention": (2, 4, 8, 32),
}


def distance_model(name: str, seed: int) -> Recurrent | SelfAttention:
    """A model for `draw_distance`."""
    return make(name, seed, tokens=SYMBOLS + NOISE + 1, answers=SYMBOLS)


def gradient_reach(name: str, seed: int, n: int, distances: Iterable[int]) -> list[float]:
    """How strongly the answer of an untrained model depends on the token k steps before the last.

    For each distance k, the Frobenius norm of the derivative of all logits with respect to that
    embedded token, in an input of n tokens of noise; in float64, the mean of 16 inputs.
    """
    model = distance_model(name, seed).double()
    rng = torch.Generator().manual_seed(seed)
    tokens = draw_distance(n - 1, 16, rng)[0]
    embedded = model.embedding(tokens).sum(-2).detach().requires_grad_()
    squares = torch.zeros(tokens.shape[:2], dtype=torch.float64)
    for logit in model(embedded).sum(0):
        (derivative,) = torch.autograd.grad(logit, embedded, retain_graph=True)
        squares += derivative.square().sum(-1)
    norms = squares.sqrt().mean(0)
    return [float(f"{norms[n - 1 - k].item():.3g}") for k in distances]


def train_fixed(name: str, k: int, seed: int, steps: int = STEPS) -> tuple[float, int]:
    """Train at one distance; return the accuracy there, on fresh rows, and the steps made."""
    model, rng = distance_model(name, seed), torch.Generator().manual_seed(seed)
    made = train(model, lambda batch: draw_distance(k, batch, rng), steps=steps)
    return _round(accuracy(model, *draw_distance(k, 512, _fresh(seed)))), made


def train_mixed(name: str, seed: int, steps: int = MIXED_STEPS) -> tuple[dict[int, float], int]:
    """Train at distances from 1 to FARTHEST, one a batch; return the accuracy at each of DISTANCES."""
    model, rng = distance_model(name, seed), torch.Generator().manual_seed(seed)

    def draw(batch: int) -> tuple[Tensor, Tensor]:
        k = int(torch.randint(1, FARTHEST + 1, (), generator=rng))
        return draw_distance(k, batch, rng)

    made = train(model, draw, steps=steps, patience=60)
    right = {k: accuracy(model, *draw_distance(k, 512, _fresh(seed))) for k in DISTANCES}
    return {k: _round(share) for k, share in right.items()}, made


def train_pairs(name: str, pairs: int, seed: int, steps: int = STEPS) -> tuple[float, int]:
    """Train on associative recall; return the accuracy on fresh rows and the steps made."""
    model = make(name, seed, tokens=KEYS + VALUES + 1, answers=VALUES)
    rng = torch.Generator().manual_seed(seed)
    made = train(model, lambda batch: draw_pairs(pairs, batch, rng), steps=steps, batch=64)
    return _round(accuracy(model, *draw_pairs(pairs, 1024, _fresh(seed)))), made


def _fresh(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(1000 + seed)


def _round(share: float) -> float:
    return round(share, 3)


def measure_reach() -> Rows:
    """At a fixed length, and with an input that ends right behind the token (n = k + 1)."""
    longest = max(DISTANCES) + 1
    names = tqdm(DEFAULT + CAREFUL, desc="reach", unit="model")
    return {
        "distances": list(DISTANCES),
        "fixed": {
            name: [gradient_reach(name, s, longest, DISTANCES) for s in SEEDS] for name in names
        },
        "growing": {
            name: [[gradient_reach(name, s, k + 1, [k])[0] for k in DISTANCES] for s in SEEDS]
            for name in ("self-attention",)
        },
    }


def measure_fixed() -> Rows:
    """By model and distance: accuracy and steps, each a list by seed."""
    return _grid(FIXED, train_fixed, "fixed distance")


def measure_longer() -> Rows:
    """The same at a distance of 64 with five times the steps."""
    cells = dict.fromkeys(("RNN", "GRU", "LSTM"), (64,))
    return _grid(cells, partial(train_fixed, steps=LONGER_STEPS), "fixed distance, longer")


def measure_pairs() -> Rows:
    """By model and number of pairs: accuracy and steps, each a list by seed."""
    return _grid(PAIRS, train_pairs, "pairs")


def measure_pairs_longer() -> Rows:
    """Two pairs with five times the steps."""
    cells = dict.fromkeys(("GRU", "LSTM"), (2,))
    return _grid(cells, partial(train_pairs, steps=LONGER_STEPS), "pairs, longer")


def _grid(
    cells: Mapping[str, tuple[int, ...]],
    run: Callable[[str, int, int], tuple[float, int]],
    label: str,
) -> Rows:
    todo = [(name, size) for name, sizes in cells.items() for size in sizes]
    rows: Rows = {name: {} for name in cells}
    progress = tqdm(todo, desc=label, unit="cell")
    for name, size in progress:
        progress.set_postfix_str(f"{name} at {size}")
        shares, steps = zip(*(run(name, size, seed) for seed in SEEDS), strict=True)
        rows[name][str(size)] = {"accuracy": list(shares), "steps": list(steps)}
    return rows


def measure_mixed() -> Rows:
    """By model: steps by seed, and accuracy by distance and seed."""
    rows: Rows = {}
    for name in tqdm(MIXED, desc="mixed distances", unit="model"):
        runs = [train_mixed(name, seed) for seed in SEEDS]
        rows[name] = {
            "accuracy": {str(k): [right[k] for right, _ in runs] for k in DISTANCES},
            "steps": [steps for _, steps in runs],
        }
    return rows


def measure_parameters() -> Rows:
    """The numbers of parameters, for the distances and for the pairs."""
    return {
        name: {
            "distance": count_parameters(distance_model(name, 0)),
            "pairs": count_parameters(make(name, 0, tokens=KEYS + VALUES + 1, answers=VALUES)),
        }
        for name in DEFAULT + CAREFUL
    }


PARTS: dict[str, Callable[[], Rows]] = {
    "parameters": measure_parameters,
    "reach": measure_reach,
    "mixed": measure_mixed,
    "pairs": measure_pairs,
    "fixed": measure_fixed,
    "longer": measure_longer,
    "pairs longer": measure_pairs_longer,
}


def stored() -> Rows:
    """What `python -m attention_lib.models.recall` measured.

    "parameters"[name]["distance" | "pairs"]: a count
    "reach"["fixed" | "growing"][name][seed]: a norm for each of "reach"["distances"]; see `reach`
    "fixed"[name][distance]["accuracy" | "steps"][seed]: trained and tested at that distance
    "longer": as "fixed", with LONGER_STEPS in place of STEPS
    "mixed"[name]["accuracy"][distance][seed]: trained at distances from 1 to FARTHEST
    "pairs"[name][pairs]["accuracy" | "steps"][seed]: associative recall
    "pairs longer": as "pairs", with LONGER_STEPS in place of STEPS
    Distances and numbers of pairs are strings, as JSON's keys are.
    """
    rows: Rows = json.loads((WEIGHTS / "recall.json").read_text(encoding="utf-8"))
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and remake the file, or a part of it."""
    parser = argparse.ArgumentParser(
        prog="python -m attention_lib.models.recall", description="Remake weights/recall.json."
    )
    parser.add_argument("part", nargs="*", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--out", type=Path, default=WEIGHTS / "recall.json", help="file to write")
    options = parser.parse_args(arguments)
    if unknown := [part for part in options.part if part not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}")
    # One thread: sums are then added in one order, and the same seed gives the same numbers.
    torch.set_num_threads(1)
    old = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    for part in options.part or PARTS:
        start = time.process_time()
        old[part] = PARTS[part]()
        text = json.dumps({name: old[name] for name in PARTS if name in old}, indent=1)
        options.out.write_text(text + "\n", encoding="utf-8")
        print(f"{part}: {time.process_time() - start:.0f} s of CPU time")
