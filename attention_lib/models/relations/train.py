"""Train the encoders of chapter 4, whose heads divide four relations among them.

python -m attention_lib.models.relations                        remakes weights/heads-*.safetensors and heads.json
python -m attention_lib.models.relations --seed 3               remakes heads-3.safetensors alone, in a minute
python -m attention_lib.models.relations --heads 16 --seed 0    remakes heads-16-0.safetensors alone
"""

import argparse
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..command_line import check_out
from ..encoder import Encoder as NumpyEncoder
from ..encoder import initial_weights
from ..torch_encoder import Encoder, save_encoder
from ..training import train
from .data import ANSWERS, MAX_LENGTH, RELATIONS, WORDS, Relation, RelationGrammar, TaggedSentence
from .measure import (
    Answers,
    answer_questions,
    held_out_sentences,
    measure_heads,
    measure_hops,
    prune_heads,
)
from .runs import STORED, WEIGHTS, StoredRun, join_answers, write_runs

PRUNED = "8 heads"
# The runs that are measured: what differs from the recipe of "8 heads", and the seeds.
VARIANTS: dict[str, tuple[dict[str, Any], Sequence[int]]] = {
    PRUNED: ({}, range(10)),
    "1 head": ({"heads": 1}, range(5)),
    "16 heads": ({"heads": 16}, range(3)),
    "without article": ({"relations": RELATIONS[1:]}, range(5)),
    "weight decay 0.01": ({"weight_decay": 0.01}, range(3)),
}
# The encoders that are shipped: how their files' names begin, before the seed, and the seeds.
SHIPPED: dict[str, tuple[str, Sequence[int]]] = {
    "8 heads": ("heads", range(5)),
    "16 heads": ("heads-16", range(1)),
}
EVERY = 50  # training steps between two measurements
NOTHING = -1  # the answer where nothing is asked


@dataclass(frozen=True)
class Recipe:
    """All that the weights depend on; `relations` are those that the loss asks for.

    The learning rate rises for `warmup` steps and falls to 0.02 of its top over the last `decay`.
    """

    seed: int
    relations: tuple[Relation, ...] = RELATIONS
    layers: int = 2
    heads: int = 8
    d_model: int = 64
    embedding_std: float = 1.0
    sentences: int = 8000
    steps: int = 1200
    batch: int = 64
    rate: float = 3e-3
    weight_decay: float = 1.0
    warmup: int = 50
    decay: float = 0.4


@dataclass(frozen=True)
class Batch:
    """Sentences of one length: tokens (B, T), and answers (B, T), NOTHING where none is asked for."""

    tokens: Tensor
    answers: Tensor

    @classmethod
    def of(
        cls, sentences: Sequence[TaggedSentence], relations: Sequence[Relation] = RELATIONS
    ) -> "Batch":
        """Encode sentences of one length, and the answers to their questions of these relations."""
        token = {word: i for i, word in enumerate(WORDS)}
        index = {answer: i for i, answer in enumerate(ANSWERS)}
        tokens = torch.tensor([[token[word] for word in s.words] for s in sentences])
        answers = torch.full_like(tokens, NOTHING)
        for row, sentence in enumerate(sentences):
            for question in sentence.questions:
                if question.relation in relations:
                    answers[row, question.asked] = index[question.answer]
        return cls(tokens, answers)

    def pick(self, rows: Tensor) -> "Batch":
        """Some of the rows."""
        return Batch(self.tokens[rows], self.answers[rows])


def relation_loss(model: Encoder, batch: Batch) -> Tensor:
    """Mean cross-entropy of the answers; positions that ask nothing are not scored."""
    logits, _ = model(batch.tokens)
    return F.cross_entropy(logits.mT, batch.answers, ignore_index=NOTHING)


def train_relations(
    recipe: Recipe, label: str = "heads", watched: Sequence[TaggedSentence] = ()
) -> tuple[NumpyEncoder, list[Answers]]:
    """Train one encoder and return it as it will be stored, in float16.

    A batch is drawn from the sentences that are as long as a random one, so that none is filled up.
    With sentences to be `watched`, their answers before the first step and after every EVERY steps are
    returned too.
    """
    rng, grammar = random.Random(recipe.seed), RelationGrammar()
    sentences = [grammar.sentence(rng, "train") for _ in range(recipe.sentences)]
    lengths = [len(sentence.words) for sentence in sentences]
    data = {
        T: Batch.of([s for s in sentences if len(s.words) == T], recipe.relations)
        for T in set(lengths)
    }
    sizes = {
        "layers": recipe.layers,
        "heads": recipe.heads,
        "d_model": recipe.d_model,
        "words": len(WORDS),
        "answers": len(ANSWERS),
        "max_length": MAX_LENGTH,
    }
    model = Encoder(recipe.seed, **sizes)
    model.load_tensors(initial_weights(recipe.seed, embedding_std=recipe.embedding_std, **sizes))
    generator = torch.Generator().manual_seed(recipe.seed)
    steps = 0
    curve: list[Answers] = []

    def as_numpy(dtype: type[np.floating[Any]]) -> NumpyEncoder:
        tensors = {name: tensor.astype(dtype) for name, tensor in model.tensors().items()}
        return NumpyEncoder(
            tensors, heads=recipe.heads, words=WORDS, answers=ANSWERS, recipe=asdict(recipe)
        )

    def watch() -> None:
        if watched and steps % EVERY == 0:
            curve.append(answer_questions(as_numpy(np.float32), watched))

    def draw(high: int, n: int) -> Tensor:
        return torch.randint(high, (n,), generator=generator)

    def batch_loss() -> Tensor:
        nonlocal steps
        watch()
        steps += 1
        same = data[lengths[int(draw(len(lengths), 1))]]
        return relation_loss(model, same.pick(draw(len(same.tokens), recipe.batch)))

    train(
        model,
        batch_loss,
        steps=recipe.steps,
        rate=recipe.rate,
        weight_decay=recipe.weight_decay,
        warmup=recipe.warmup,
        decay=recipe.decay,
        label=label,
    )
    watch()
    return as_numpy(np.float16), curve


def measure_run(
    variant: str, seed: int, sentences: Sequence[TaggedSentence]
) -> tuple[NumpyEncoder, StoredRun]:
    """Train one of VARIANTS with a seed and measure it; only the variant PRUNED is pruned."""
    changes, _ = VARIANTS[variant]
    recipe = Recipe(seed, **changes)
    few = sentences[: len(sentences) // 2]
    encoder, curve = train_relations(recipe, f"{variant}, seed {seed}", few)
    order, pruned = prune_heads(encoder, few) if variant == PRUNED else ([], [])
    return encoder, StoredRun(
        variant=variant,
        recipe=asdict(recipe),
        steps=tuple(EVERY * i for i in range(len(curve))),
        curve=join_answers(curve),
        matrix=measure_heads(encoder, sentences),
        hops=measure_hops(encoder, sentences),
        order=tuple(order),
        pruned=join_answers(pruned),
    )


def remake(folder: Path = WEIGHTS, runs: Path = STORED) -> None:
    """Train and measure every variant, save what is shipped, and say what came out."""
    sentences = held_out_sentences(400)
    made = []
    for variant, (_, seeds) in VARIANTS.items():
        for seed in seeds:
            encoder, run = measure_run(variant, seed, sentences)
            name, shipped = SHIPPED.get(variant, ("", ()))
            if seed in shipped:
                save_encoder(encoder, folder / f"{name}-{seed}.safetensors")
            made.append(run)
            print(describe_run(run))
    write_runs(made, runs)


def describe_run(run: StoredRun) -> str:
    """One line: accuracies on held-out sentences, and the part of each strongest head."""
    accuracy = run.matrix.whole.accuracy
    parts = (
        f"{name} {accuracy[i]:.3f} (head {layer}.{head}: {run.matrix.share(name):.2f})"
        for i, name in enumerate(RELATIONS)
        for layer, head in [run.matrix.strongest(name)]
    )
    return f"{run.variant:17} seed {run.seed}: {', '.join(parts)}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and remake one file, or all."""
    parser = argparse.ArgumentParser(
        prog="python -m attention_lib.models.relations",
        description="Remake the encoders of chapter 4 and what was measured of them.",
    )
    parser.add_argument("--seed", type=int, help="remake the weights of this seed alone")
    parser.add_argument("--heads", type=int, choices=(8, 16), help="of that seed (default: 8)")
    parser.add_argument("--out", type=Path, help="file to write them to (default: the shipped one)")
    options = parser.parse_args(arguments)
    if options.seed is None and (options.out or options.heads):
        parser.error("--out and --heads are for one file: give its --seed")
    if options.seed is not None and options.seed < 0:
        parser.error(f"--seed must be at least 0: found {options.seed}")
    if options.out is not None:
        check_out(parser, options.out)
    # One thread: sums are then added in one order, and the same seed gives the same weights.
    torch.set_num_threads(1)
    if options.seed is None:
        remake()
        return
    variant = f"{options.heads or 8} heads"
    stem = f"{SHIPPED[variant][0]}-{options.seed}"
    encoder, _ = train_relations(Recipe(options.seed, **VARIANTS[variant][0]), stem)
    path = options.out or WEIGHTS / f"{stem}.safetensors"
    size = save_encoder(encoder, path)
    answers = answer_questions(encoder, held_out_sentences(400))
    shares = (
        f"{name} {share:.1%}" for name, share in zip(RELATIONS, answers.accuracy, strict=True)
    )
    print(f"{path}: {size:,} bytes; right on held-out sentences: {', '.join(shares)}.")
