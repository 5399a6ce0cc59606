"""Chapter 2's look-up model, trained with and without 1/sqrt(d_k), and the curves that are stored.

python -m attention_lib.models.lookup       remakes weights/lookup.json, six minutes
"""

import argparse
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

from ...torch import attention

WEIGHTS = Path(__file__).parent / "weights"

Variant = Literal["scaled", "unscaled", "small start", "normalised"]
Optimiser = Literal["adam", "sgd"]

# Sizes of the two vocabularies, pairs in a list, steps between two records of the accuracy.
KEYS, VALUES, PAIRS, EVERY = 64, 32, 16, 10

STORED = WEIGHTS / "lookup.json"
SEEDS = (0, 1, 2)
WIDTHS = (64, 128, 512)
RATES: dict[Optimiser, tuple[float, ...]] = {
    "adam": (1e-3, 3e-3, 1e-2),
    "sgd": (0.03, 0.1, 0.3, 0.5, 2.0),
}
# How the other variants fare is told at the largest width alone.
RELATIVES: tuple[Variant, ...] = ("small start", "normalised")
ALIGNED_WIDTHS, ALIGNED_STEPS = (16, 64, 256, 1024), (0, 50, 400)


@dataclass(frozen=True)
class Recipe:
    """All that a run depends on.

    Runs with the same seed see the same batches, and with the same width start from the same weights.
    Runs of unequal width share all but W_Q and W_K.

    variant  scaled       scores are q·k / sqrt(d_k)
             unscaled     scores are q·k
             small start  unscaled; W_Q and W_K start d_k^(1/4) times smaller, so that q·k starts at
                          the variance of the scaled scores
             normalised   QK-norm: q and k have length 1, scores are g q·k with a learned number g
                          that starts at log2(n² - n) for n pairs (Henry et al. 2020)
    """

    d_k: int = 512
    variant: Variant = "scaled"
    optimiser: Optimiser = "adam"
    rate: float = 1e-3
    seed: int = 0
    steps: int = 500
    batch: int = 64


@dataclass(frozen=True)
class Questions:
    """Lists of pairs key → value, each with one of its keys to look up; integers.

    keys (B, n)   no key twice in a list       values (B, n)
    place (B,)    of the key that is asked for, so the answer is values[b, place[b]]
    """

    keys: Tensor
    values: Tensor
    place: Tensor

    @property
    def asked(self) -> Tensor:
        """The key that is asked for, (B,)."""
        return self.keys.gather(1, self.place[:, None])[:, 0]

    @property
    def answer(self) -> Tensor:
        """The value that belongs to it, (B,)."""
        return self.values.gather(1, self.place[:, None])[:, 0]

    @classmethod
    def draw(cls, rng: np.random.Generator, size: int, pairs: int = PAIRS) -> "Questions":
        """`size` lists of `pairs` pairs, everything uniform."""
        keys = rng.random((size, KEYS)).argsort(1)[:, :pairs]
        values = rng.integers(VALUES, size=(size, pairs))
        place = rng.integers(pairs, size=size)
        return cls(torch.from_numpy(keys), torch.from_numpy(values), torch.from_numpy(place))


class Lookup(nn.Module):
    """One attention head that looks up the value of a key; no positions, nothing else.

    A pair is the token norm(key + value), the question the token norm(key). Queries and keys start
    with independent entries of variance 1, whatever d_k is: W_Q and W_K are normal with variance
    1/d_model and the tokens are normalised. So q·k starts with variance d_k.
    """

    def __init__(
        self, d_k: int, variant: Variant = "scaled", *, seed: int, d_model: int = 64
    ) -> None:
        super().__init__()
        rng = np.random.default_rng([seed, 0])

        def normal(rows: int, columns: int, std: float) -> nn.Parameter:
            drawn = rng.normal(0, std, (rows, columns)).astype(np.float32)
            return nn.Parameter(torch.from_numpy(drawn))

        thin = 1 / math.sqrt(d_model)
        self.key = normal(KEYS, d_model, 1)
        self.value = normal(VALUES, d_model, 1)
        self.W_V = normal(d_model, d_model, thin)
        self.W_answer = normal(d_model, VALUES, thin)
        self.W_Q = normal(d_model, d_k, thin)
        self.W_K = normal(d_model, d_k, thin)
        self.normalised = variant == "normalised"
        self.scale: float | nn.Parameter = 1.0
        if variant == "scaled":
            self.scale = 1 / math.sqrt(d_k)
        elif variant == "small start":
            with torch.no_grad():
                self.W_Q.mul_(d_k**-0.25)
                self.W_K.mul_(d_k**-0.25)
        elif self.normalised:
            self.scale = nn.Parameter(torch.tensor(math.log2(PAIRS * PAIRS - PAIRS)))

    def project(self, questions: Questions) -> tuple[Tensor, Tensor, Tensor]:
        """q (B, 1, d_k) of the keys asked for, k (B, n, d_k) and v (B, n, d_model) of the pairs."""
        asked = _norm(F.embedding(questions.asked, self.key))[:, None]
        pairs = _norm(
            F.embedding(questions.keys, self.key) + F.embedding(questions.values, self.value)
        )
        q, k = asked @ self.W_Q, pairs @ self.W_K
        if self.normalised:
            q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        return q, k, pairs @ self.W_V

    def forward(self, questions: Questions) -> tuple[Tensor, Tensor]:
        """Logits of the answer (B, values) and the weights of the pairs (B, n)."""
        q, k, v = self.project(questions)
        out, weights = attention(q, k, v, scale=self.scale, return_weights=True)
        return out[:, 0] @ self.W_answer, weights[:, 0]


def _norm(x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:])


def train_lookup(
    recipe: Recipe, *, settled: float | None = None, progress: bool = True
) -> tuple[Lookup, list[float]]:
    """Train one model; return it and its accuracy after 0, 10, 20, ... steps.

    Accuracy is the share of right answers, from 0 to 1, to 512 questions that are never trained on;
    every batch is new. No schedule, no weight decay, no momentum. With `settled` the training ends
    once five records in a row are at least that.
    """
    model = Lookup(recipe.d_k, recipe.variant, seed=recipe.seed)
    batches = np.random.default_rng([recipe.seed, 1])
    test = held_out(recipe.seed)
    kinds: dict[Optimiser, Any] = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
    optimiser = kinds[recipe.optimiser](model.parameters(), lr=recipe.rate)
    accuracy = [_accuracy(model, test)]
    label = f"d_k {recipe.d_k}, {recipe.variant}"
    for step in tqdm(
        range(recipe.steps), desc=label, unit="step", **({} if progress else {"disable": True})
    ):
        questions = Questions.draw(batches, recipe.batch)
        logits, _ = model(questions)
        loss = F.cross_entropy(logits, questions.answer)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if (step + 1) % EVERY == 0:
            accuracy.append(_accuracy(model, test))
            if settled is not None and len(accuracy) >= 5 and min(accuracy[-5:]) >= settled:
                break
    return model, accuracy


def held_out(seed: int) -> Questions:
    """The 512 questions on which `train_lookup` measures the runs of a seed."""
    return Questions.draw(np.random.default_rng([seed, 2]), 512)


@torch.no_grad()
def _accuracy(model: Lookup, questions: Questions) -> float:
    logits, _ = model(questions)
    return float((logits.argmax(-1) == questions.answer).float().mean())


def steps_to(accuracy: Sequence[float], share: float = 0.9) -> int | None:
    """The first recorded step at which `accuracy` is at least `share`; None if there is none."""
    return next((EVERY * i for i, seen in enumerate(accuracy) if seen >= share), None)


@dataclass(frozen=True)
class Scores:
    """q·k before any factor, over questions.

    match     mean with the key that is asked for
    others    mean with the keys that are not
    variance  over all pairs
    cosine    mean of the cosine between the query and the key that is asked for
    largest   median of the largest weight (with the model's own factor)
    """

    match: float
    others: float
    variance: float
    cosine: float
    largest: float


@torch.no_grad()
def measure_scores(model: Lookup, questions: Questions) -> Scores:
    """Measure how far queries and keys of `model` are aligned."""
    q, k, _ = model.project(questions)
    scores = (q @ k.mT)[:, 0]
    asked = F.one_hot(questions.place, scores.shape[-1]).bool()
    cosines = F.cosine_similarity(q, k, dim=-1)
    _, weights = model(questions)
    return Scores(
        match=float(scores[asked].mean()),
        others=float(scores[~asked].mean()),
        variance=float(scores.var(correction=0)),
        cosine=float(cosines[asked].mean()),
        largest=float(weights.amax(-1).median()),
    )


@dataclass(frozen=True)
class Run:
    """A recipe and the accuracy after 0, 10, 20, ... steps, until it settled or the steps ran out."""

    recipe: Recipe
    accuracy: tuple[float, ...]

    @property
    def arrives(self) -> int | None:
        """Steps to 90 % right, None if it never gets there."""
        return steps_to(self.accuracy)


@dataclass(frozen=True)
class Aligned:
    """What `measure_scores` found in a model trained for `steps` steps, scaled, Adam at 1e-3."""

    d_k: int
    steps: int
    seed: int
    scores: Scores


def stored_runs(**wanted: Any) -> list[Run]:
    """The stored runs whose recipe has the `wanted` fields, as d_k=512, variant="scaled".

    Raises ValueError if there are none.
    """
    rows = json.loads(STORED.read_text(encoding="utf-8"))["runs"]
    runs = [Run(Recipe(**row["recipe"]), tuple(row["accuracy"])) for row in rows]
    found = [r for r in runs if wanted.items() <= asdict(r.recipe).items()]
    if not found:
        raise ValueError(f"no run is stored with {wanted}")
    return found


def stored_alignment() -> list[Aligned]:
    """What was measured of aligned queries and keys, for each width, number of steps and seed."""
    rows = json.loads(STORED.read_text(encoding="utf-8"))["aligned"]
    return [Aligned(r["d_k"], r["steps"], r["seed"], Scores(**r["scores"])) for r in rows]


def best_rate(runs: Iterable[Run]) -> tuple[float, list[int | None]]:
    """The rate whose slowest seed needs the fewest steps, and the steps of its seeds.

    Of rates that are equally fast, the one with the fewest steps in all seeds together.
    """
    by_rate: dict[float, list[int | None]] = {}
    for run in runs:
        by_rate.setdefault(run.recipe.rate, []).append(run.arrives)

    def cost(rate: float) -> tuple[float, float]:
        steps = [math.inf if n is None else n for n in by_rate[rate]]
        return max(steps), sum(steps)

    best = min(by_rate, key=cost)
    return best, by_rate[best]


def recipes() -> list[Recipe]:
    """The recipes of all stored runs."""
    both: tuple[Variant, ...] = ("scaled", "unscaled")
    return [
        Recipe(d_k, variant, optimiser, rate, seed)
        for d_k in WIDTHS
        for optimiser, rates in RATES.items()
        for rate in rates
        for variant in (both + RELATIVES if d_k == max(WIDTHS) else both)
        for seed in SEEDS
    ]


def make_run(recipe: Recipe) -> Run:
    """Train a recipe as it is stored: until it settles at 0.98, accuracy to three digits."""
    _, accuracy = train_lookup(recipe, settled=0.98, progress=False)
    return Run(recipe, tuple(round(share, 3) for share in accuracy))


def make_aligned(d_k: int, steps: int, seed: int) -> Aligned:
    """Train one model for exactly `steps` steps and measure its scores on held-out questions."""
    model, _ = train_lookup(Recipe(d_k, seed=seed, steps=steps), progress=False)
    return Aligned(d_k, steps, seed, measure_scores(model, held_out(seed)))


def remake(out: Path = STORED) -> None:
    """Train everything that is stored, save it, and print the steps to 90 %."""
    runs = [make_run(recipe) for recipe in tqdm(recipes(), desc="runs", unit="run")]
    cases = list(itertools.product(ALIGNED_WIDTHS, ALIGNED_STEPS, SEEDS))
    aligned = [make_aligned(*case) for case in tqdm(cases, desc="alignment", unit="model")]
    text = f'{{"runs": {_lines(runs)},\n"aligned": {_lines(aligned)}}}\n'
    out.write_text(text, encoding="utf-8")
    groups: dict[tuple[Any, ...], list[int | None]] = {}
    for run in runs:
        r = run.recipe
        groups.setdefault((r.d_k, r.optimiser, r.rate, r.variant), []).append(run.arrives)
    for (d_k, optimiser, rate, variant), steps in groups.items():
        print(f"d_k {d_k:4} {optimiser:4} {rate:<6g} {variant:11} steps to 90 %: {steps}")


def _lines(rows: Sequence[Run] | Sequence[Aligned]) -> str:
    """JSON with one row a line; floats to four digits."""
    return "[\n" + ",\n".join(json.dumps(_rounded(asdict(row))) for row in rows) + "\n]"


def _rounded(x: Any) -> Any:
    if isinstance(x, dict):
        return {name: _rounded(value) for name, value in x.items()}
    return float(f"{x:.4g}") if isinstance(x, float) else x


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and remake the stored curves."""
    parser = argparse.ArgumentParser(
        prog="python -m attention_lib.models.lookup", description="Remake the curves of chapter 2."
    )
    parser.add_argument("--out", type=Path, default=STORED, help="file to write")
    options = parser.parse_args(arguments)
    # One thread: sums are then added in one order, and the same seed gives the same curves.
    torch.set_num_threads(1)
    remake(options.out)
