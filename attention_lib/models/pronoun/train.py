"""Train the encoder of chapter 1 and save its weights.

python -m attention_lib.models.pronoun pronoun --seed 3                       under two minutes
python -m attention_lib.models.pronoun pronoun --seed 0 --control shuffled
python -m attention_lib.models.pronoun recipes                                recipes.json, five minutes
python -m attention_lib.models.pronoun --all                                  every shipped file
"""

import argparse
import json
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..corpus import ANSWERS, MAX_LENGTH, VOCABULARY, Grammar, Sentence
from ..encoder import Encoder as NumpyEncoder
from ..intervals import wilson_interval
from ..torch_encoder import Encoder, save_encoder
from ..training import train
from .measure import WEIGHTS, choose_head, measure_pointing

CONTROLS = ("shuffled", "one-layer")
# What else was tried, each with three seeds; measured, not shipped.
VARIANTS: dict[str, dict[str, Any]] = {
    "as shipped": {},
    "weight decay 0.01": {"weight_decay": 0.01},
    "feed-forward": {"feed_forward": 96},
    "width 64": {"d_model": 64},
    "width 64, feed-forward": {"d_model": 64, "feed_forward": 128},
    "one head": {"heads": 1},
    "one layer": {"layers": 1},
}


@dataclass(frozen=True)
class Recipe:
    """All that the weights depend on. shuffled: the adjectives of the training sentences tell nothing.

    The learning rate rises for `warmup` steps and falls to 0.02 of its top over the last `decay`.
    """

    seed: int
    layers: int = 2
    heads: int = 4
    d_model: int = 48
    feed_forward: int = 0
    shuffled: bool = False
    sentences: int = 8000
    steps: int = 1000
    batch: int = 64
    rate: float = 3e-3
    weight_decay: float = 1.0
    warmup: int = 50
    decay: float = 0.4


@dataclass(frozen=True)
class Batch:
    """Sentences as tensors: tokens (B, T) filled up with 0, and (B,) the rest."""

    tokens: Tensor
    lengths: Tensor
    pronouns: Tensor
    answers: Tensor

    @classmethod
    def of(cls, sentences: Sequence[Sentence]) -> "Batch":
        """Encode sentences of the grammar with its vocabulary and answers."""
        token = {word: i for i, word in enumerate(VOCABULARY)}
        rows = [torch.tensor([token[word] for word in s.words]) for s in sentences]
        return cls(
            nn.utils.rnn.pad_sequence(rows, batch_first=True),
            torch.tensor([len(s.words) for s in sentences]),
            torch.tensor([s.pronoun for s in sentences]),
            torch.tensor([ANSWERS.index(s.answer) for s in sentences]),
        )

    def pick(self, rows: Tensor) -> "Batch":
        """Some of the rows, no wider than the longest of them."""
        lengths = self.lengths[rows]
        return Batch(
            self.tokens[rows, : int(lengths.max())],
            lengths,
            self.pronouns[rows],
            self.answers[rows],
        )


def pronoun_loss(model: Encoder, batch: Batch) -> Tensor:
    """Cross-entropy of the noun that each pronoun stands for; no other position is scored."""
    logits, _ = model(batch.tokens, batch.lengths)
    return F.cross_entropy(logits[torch.arange(len(logits)), batch.pronouns], batch.answers)


def train_pronoun(recipe: Recipe, label: str = "pronoun") -> tuple[NumpyEncoder, list[float]]:
    """Train one encoder; return it as it will be stored, in float16, and the losses.

    Its pointing head is chosen on 300 more sentences without a held-out combination. The adjectives
    of these are never shuffled.
    """
    rng = random.Random(recipe.seed)
    grammar = Grammar(shuffled=recipe.shuffled)
    data = Batch.of([grammar.sentence(rng, "train") for _ in range(recipe.sentences)])
    model = Encoder(
        recipe.seed,
        words=len(VOCABULARY),
        answers=len(ANSWERS),
        max_length=MAX_LENGTH,
        layers=recipe.layers,
        heads=recipe.heads,
        d_model=recipe.d_model,
        feed_forward=recipe.feed_forward,
    )
    generator = torch.Generator().manual_seed(recipe.seed)

    def batch_loss() -> Tensor:
        rows = torch.randint(len(data.tokens), (recipe.batch,), generator=generator)
        return pronoun_loss(model, data.pick(rows))

    losses = train(
        model,
        batch_loss,
        steps=recipe.steps,
        rate=recipe.rate,
        weight_decay=recipe.weight_decay,
        warmup=recipe.warmup,
        decay=recipe.decay,
        label=label,
    )
    stored = {name: tensor.astype(np.float16) for name, tensor in model.tensors().items()}
    encoder = NumpyEncoder(stored, heads=recipe.heads, recipe=asdict(recipe))
    encoder.pointing_head = choose_head(
        encoder, [Grammar().sentence(rng, "train") for _ in range(300)]
    )
    return encoder, losses


def name_and_recipe(seed: int, control: str | None = None) -> tuple[str, Recipe]:
    """The name of a shipped file and its recipe. Raises ValueError for an unknown control."""
    if control is None:
        return f"pronoun-{seed}", Recipe(seed)
    if control == "shuffled":
        return f"pronoun-shuffled-{seed}", Recipe(seed, shuffled=True)
    if control == "one-layer":
        return f"pronoun-one-layer-{seed}", Recipe(seed, layers=1)
    raise ValueError(f"control must be one of {', '.join(CONTROLS)}: found {control!r}")


def remake(seed: int, control: str | None = None, out: Path | None = None) -> None:
    """Train, save and measure one shipped file, and say what came out."""
    name, recipe = name_and_recipe(seed, control)
    path = out or WEIGHTS / f"{name}.safetensors"
    start = time.perf_counter()
    encoder, _ = train_pronoun(recipe, name)
    size = save_encoder(encoder, path)
    encoder = NumpyEncoder.load(path)
    pairs = Grammar().minimal_pairs(500, seed=1000 + seed)
    seen = measure_pointing(encoder, pairs)
    low, high = wilson_interval(seen.flips, len(pairs))
    layer, head = encoder.pointing_head or (0, 0)
    print(
        f"{path}: {size:,} bytes, {time.perf_counter() - start:.0f} s.\n"
        f"On {len(pairs)} pairs of sentences that were held out, from the stored weights: "
        f"{seen.answers:.1%} answered with the right noun; layer {layer + 1} head {head + 1} has its "
        f"largest weight on the right noun in both sentences of {seen.flips:.1%} of the pairs "
        f"(95 % interval {low:.1%} to {high:.1%})."
    )


def try_variant(name: str, seed: int) -> dict[str, Any]:
    """Train one of VARIANTS; return the shares of right answers and of flips on held-out pairs."""
    encoder, _ = train_pronoun(Recipe(seed, **VARIANTS[name]), f"{name}, seed {seed}")
    seen = measure_pointing(encoder, Grammar().minimal_pairs(500, seed=1000 + seed))
    return {"seed": seed, "answers": round(seen.answers, 3), "flips": round(seen.flips, 3)}


def remake_recipes(out: Path | None = None) -> None:
    """Train every variant with three seeds and save what was measured."""
    path = out or WEIGHTS / "recipes.json"
    tried = {name: [try_variant(name, seed) for seed in range(3)] for name in VARIANTS}
    path.write_text(json.dumps(tried, indent=1) + "\n", encoding="utf-8")
    for name, rows in tried.items():
        print(f"{name:22} flips {[row['flips'] for row in rows]}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and remake one file, or all."""
    parser = argparse.ArgumentParser(
        prog="python -m attention_lib.models.pronoun", description="Remake the shipped weights."
    )
    parser.add_argument("model", nargs="?", choices=["pronoun", "recipes"], help="what to train")
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default 0)")
    parser.add_argument("--control", choices=CONTROLS, help="train a control instead")
    parser.add_argument("--out", type=Path, help="file to write (default: the shipped one)")
    parser.add_argument("--all", action="store_true", help="remake every shipped file")
    options = parser.parse_args(arguments)
    if not options.all and options.model is None:
        parser.error("say what to train: pronoun, recipes, or --all")
    # One thread: sums are then added in one order, and the same seed gives the same weights.
    torch.set_num_threads(1)
    if options.model == "recipes":
        remake_recipes(options.out)
        return
    if not options.all:
        remake(options.seed, options.control, options.out)
        return
    for seed in range(5):
        remake(seed)
    for control in CONTROLS:
        for seed in range(2):
            remake(seed, control)
    remake_recipes()
