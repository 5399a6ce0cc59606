"""A small language model over the sentences of `attention_lib.models.corpus`, with and without a causal mask.

python -m attention_lib.models.language              remakes weights/cheating.json
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...shapes import ShapeError
from ...torch.masks import padding_mask
from ...torch.modules import KeyValueCache, TransformerBlock
from ..corpus import MAX_LENGTH, VOCABULARY, Grammar, split_words
from ..training import train
from ..wellformed import is_sentence

WEIGHTS = Path(__file__).parent / "weights"

START, END = len(VOCABULARY), len(VOCABULARY) + 1  # before a sentence, and behind it
EVERY = 10  # steps between two losses that are recorded
SAMPLED = (0, 20, 50, 100, 150, 200, 300, 400, 600, 800)  # steps after which sentences are made


@dataclass(frozen=True)
class Recipe:
    """All that a run depends on. causal=False is the model that cheats."""

    seed: int = 0
    causal: bool = True
    layers: int = 2
    heads: int = 4
    d_model: int = 48
    feed_forward: int = 96
    sentences: int = 8000
    steps: int = 800
    batch: int = 64
    rate: float = 3e-3


class LanguageModel(nn.Module):
    """A decoder of Transformer blocks: at each position, scores of the word that comes next.

    x = embedding[token] + position; blocks; logits = norm(x) @ W_word + b_word. Without
    `recipe.causal` every position sees the whole sentence, the word it is to say included.
    Source: Vaswani et al. 2017, section 3.1, without its encoder.
    """

    def __init__(self, recipe: Recipe, *, words: int = END + 1, longest: int = MAX_LENGTH + 2):
        super().__init__()
        rng = torch.Generator().manual_seed(recipe.seed)
        d = recipe.d_model

        def normal(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(shape, generator=rng) / d**0.5)

        self.recipe = recipe
        self.embedding, self.position = normal(words, d), normal(longest, d)
        self.layer = nn.ModuleList(
            TransformerBlock(d, recipe.heads, feed_forward=recipe.feed_forward, rng=rng)
            for _ in range(recipe.layers)
        )
        self.norm = nn.LayerNorm(d)
        self.W_word, self.b_word = normal(d, words), nn.Parameter(torch.zeros(words))

    def new_caches(self) -> list[KeyValueCache]:
        """An empty cache for each layer."""
        return [KeyValueCache() for _ in self.layer]

    def forward(
        self,
        tokens: Tensor,
        lengths: Tensor | None = None,
        caches: Sequence[KeyValueCache] | None = None,
    ) -> Tensor:
        """Logits (B, T, words) for tokens (B, T), of which `lengths` (B,) are a sentence.

        caches   of the tokens read before, to which these are added: tokens and logits are those of
                 the next T positions alone
        Raises ShapeError for more tokens than the model reads, and ValueError for caches beside
        `lengths`, or in a model without a causal mask, where old tokens would have to look at new.
        """
        start = len(caches[0]) if caches else 0
        stop = start + tokens.shape[1]
        if stop > len(self.position):
            raise ShapeError(f"{stop} tokens; the model reads at most {len(self.position)}")
        if caches and not self.recipe.causal:
            raise ValueError("keys and values can be kept only under a causal mask")
        if caches and lengths is not None:
            raise ValueError("with caches all tokens are looked at: leave `lengths` out")
        x = F.embedding(tokens, self.embedding) + self.position[start:stop]
        mask = None if lengths is None else padding_mask(lengths, tokens.shape[1])
        for i, block in enumerate(self.layer):
            x = block(x, mask, causal=self.recipe.causal, cache=caches[i] if caches else None)
        return self.norm(x) @ self.W_word + self.b_word


def encode_sentences(sentences: Sequence[str | Sequence[str]]) -> tuple[Tensor, Tensor]:
    """Tokens (B, T), each sentence between START and END and filled up with 0, and lengths (B,)."""
    token = {word: i for i, word in enumerate(VOCABULARY)}
    rows = [torch.tensor([START, *(token[w] for w in split_words(s)), END]) for s in sentences]
    return nn.utils.rnn.pad_sequence(rows, True), torch.tensor([len(row) for row in rows])


def losses_in_one_pass(model: LanguageModel, tokens: Tensor, lengths: Tensor) -> Tensor:
    """Cross-entropy of each next token, in nats, (B, T - 1), 0 behind the end; from one run.

    The last token is read too, though nothing is asked after it. No position sees it under the
    mask; without the mask every token that is asked for is there to be copied.
    """
    logits = model(tokens, lengths)[:, :-1]
    losses = F.cross_entropy(logits.mT, tokens[:, 1:], reduction="none")
    return losses.where(torch.arange(1, tokens.shape[1]) < lengths[:, None], 0)


def losses_one_at_a_time(model: LanguageModel, tokens: Tensor, lengths: Tensor) -> Tensor:
    """The same losses (B, T - 1) from T - 1 runs, each of which is given a beginning and no more."""
    losses = []
    for t in range(1, tokens.shape[1]):
        logits = model(tokens[:, :t], lengths.clamp(max=t))[:, -1]
        loss = F.cross_entropy(logits, tokens[:, t], reduction="none")
        losses.append(loss.where(t < lengths, 0))
    return torch.stack(losses, 1)


def mean_loss(losses: Tensor, lengths: Tensor) -> Tensor:
    """Mean of the losses over all that was asked: one question less than tokens in a sentence."""
    return losses.sum() / (lengths - 1).sum()


def logits_in_pieces(model: LanguageModel, tokens: Tensor, pieces: Sequence[int]) -> Tensor:
    """Logits (B, T, words) of tokens (B, T) read in `pieces` of so many tokens, by cached keys.

    Raises ValueError unless the pieces add up to T.
    """
    if sum(pieces) != tokens.shape[1]:
        raise ValueError(f"pieces {list(pieces)} must add up to {tokens.shape[1]} tokens")
    caches = model.new_caches()
    parts = torch.split(tokens, list(pieces), 1)
    return torch.cat([model(part, caches=caches) for part in parts], 1)


@torch.no_grad()
def generate(
    model: LanguageModel,
    n: int,
    rng: torch.Generator,
    *,
    prompt: str | Sequence[str] = "",
    temperature: float = 1.0,
    cached: bool | None = None,
) -> list[str]:
    """Make n sentences that go on from `prompt`, word by word, each up to its END.

    temperature   divides the logits before each word is drawn; 0 takes the likeliest word
    cached        whether each step reads one token and keeps keys and values, or all again; the
                  words are the same. By default where the model allows it.
    Raises ValueError for a negative temperature and for an unknown word in the prompt.
    """
    if temperature < 0:
        raise ValueError(f"temperature must be at least 0: found {temperature}")
    unknown = [word for word in split_words(prompt) if word not in VOCABULARY]
    if unknown:
        raise ValueError(f"the model does not know {', '.join(map(repr, unknown))}")
    tokens = encode_sentences([prompt])[0][:, :-1].expand(n, -1)
    caches = model.new_caches() if (model.recipe.causal if cached is None else cached) else None
    new = tokens
    while tokens.shape[1] < len(model.position):
        logits = model(tokens if caches is None else new, caches=caches)[:, -1]
        if temperature:
            new = torch.multinomial((logits / temperature).softmax(-1), 1, generator=rng)
        else:
            new = logits.argmax(-1, keepdim=True)
        tokens = torch.cat((tokens, new), 1)
    return [_decode(row) for row in tokens[:, 1:].tolist()]


def _decode(row: Sequence[int]) -> str:
    words = row[: row.index(END)] if END in row else row
    return " ".join((*VOCABULARY, "<start>")[i] for i in words)


def train_language(recipe: Recipe, label: str = "language") -> tuple[LanguageModel, dict[str, Any]]:
    """Train one model; return it and what was recorded on the way.

    steps     after how many updates the losses of `loss` were taken
    loss      training loss in nats a word, in one pass
    alone     [step, loss]: of 50 other sentences, one position at a time, the future not there
    accepted  [step, share]: of 200 generated sentences, those that the grammar could have said
    samples   [step, text]: one of them
    """
    rng = Random(recipe.seed)
    grammar = Grammar()
    drawn = [grammar.sentence(rng, "train").words for _ in range(recipe.sentences + 50)]
    tokens, lengths = encode_sentences(drawn[50:])
    others = encode_sentences(drawn[:50])
    model = LanguageModel(recipe)
    generator = torch.Generator().manual_seed(recipe.seed)
    record: dict[str, Any] = {k: [] for k in ("steps", "loss", "alone", "accepted", "samples")}
    step = 0

    def look() -> None:
        with torch.no_grad():
            alone = mean_loss(losses_one_at_a_time(model, *others), others[1])
        made = generate(model, 200, torch.Generator().manual_seed(recipe.seed + 1))
        record["alone"].append([step, round(alone.item(), 4)])
        record["accepted"].append([step, sum(map(is_sentence, made)) / len(made)])
        record["samples"].append([step, made[0]])

    def batch_loss() -> Tensor:
        nonlocal step
        if step in SAMPLED:
            look()
        rows = torch.randint(len(tokens), (recipe.batch,), generator=generator)
        T = int(lengths[rows].max())
        losses = losses_in_one_pass(model, tokens[rows, :T], lengths[rows])
        loss = mean_loss(losses, lengths[rows])
        if step % EVERY == 0:
            record["steps"].append(step)
            record["loss"].append(round(loss.item(), 4))
        step += 1
        return loss

    train(model, batch_loss, steps=recipe.steps, rate=recipe.rate, label=label)
    look()
    return model, record


def remake_cheating(recipe: Recipe, path: Path) -> dict[str, Any]:
    """Train the model with and without its mask, from one start on the same batches; save both."""
    _, masked = train_language(recipe, "with the mask")
    _, unmasked = train_language(replace(recipe, causal=False), "without the mask")
    recorded = {"steps": masked.pop("steps"), "masked": masked, "unmasked": unmasked}
    del unmasked["steps"]
    path.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
    return recorded


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, train both models, save, and say what came out."""
    parser = argparse.ArgumentParser(
        prog="python -m attention_lib.models.language", description="Remake the cheating model."
    )
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default 0)")
    parser.add_argument("--out", type=Path, default=WEIGHTS / "cheating.json")
    options = parser.parse_args(arguments)
    # One thread: sums are then added in one order, and the same seed gives the same curves.
    torch.set_num_threads(1)
    start = time.perf_counter()
    recorded = remake_cheating(Recipe(options.seed), options.out)
    print(f"{options.out}: {time.perf_counter() - start:.0f} s.")
    for name in ("masked", "unmasked"):
        run = recorded[name]
        print(
            f"{name:9} training loss {run['loss'][-1]:.4f}, one position at a time "
            f"{run['alone'][-1][1]:.2f}; {run['accepted'][-1][1]:.1%} of 200 sentences are of the "
            f"grammar. {run['samples'][-1][1]!r}"
        )
