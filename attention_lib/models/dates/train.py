"""An encoder and a decoder with additive attention, as before the Transformer: dates to ISO dates.

python -m attention_lib.models.dates             remakes weights/dates.safetensors
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import numpy as np
import torch
from safetensors import safe_open
from safetensors.numpy import save
from torch import Tensor, nn
from torch.nn import functional as F

from ...shapes import Array
from ...torch.masks import padding_mask
from ...torch.modules import AdditiveAttention
from ..intervals import wilson_interval
from ..training import train
from .data import DATES_ALPHABET, ISO_ALPHABET, Calendar, WrittenDate

WEIGHTS = Path(__file__).parent / "weights"

END = len(ISO_ALPHABET)  # ends an output, and starts it
LONGEST = 12  # characters of an output, at most


@dataclass(frozen=True)
class Recipe:
    """All that the weights depend on. width: of an embedded character; hidden: of a GRU's state."""

    seed: int = 0
    width: int = 24
    hidden: int = 48
    dates: int = 8000
    steps: int = 500
    batch: int = 64
    rate: float = 5e-3


class Transducer(nn.Module):
    """A GRU reads characters in both directions; another writes, looking back at each step.

    Source: Bahdanau et al. 2015, section 3 and appendix A; the output is linear in state and context.
    """

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        self.recipe = recipe
        width, hidden = recipe.width, recipe.hidden
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(recipe.seed)
            self.embed_in = nn.Embedding(len(DATES_ALPHABET), width)
            self.embed_out = nn.Embedding(END + 1, width)
            self.encoder = nn.GRU(width, hidden, batch_first=True, bidirectional=True)
            self.start = nn.Linear(hidden, hidden)
            self.attention = AdditiveAttention(hidden, 2 * hidden, hidden)
            self.decoder = nn.GRUCell(width + 2 * hidden, hidden)
            self.out = nn.Linear(3 * hidden, END + 1)

    @classmethod
    def load(cls, name: str | Path = "dates") -> "Transducer":
        """Load shipped weights by name, or a .safetensors file by path.

        Raises FileNotFoundError if there is none.
        """
        path = Path(name) if str(name).endswith(".safetensors") else WEIGHTS / f"{name}.safetensors"
        with safe_open(path, framework="pt") as file:
            model = cls(Recipe(**json.loads(file.metadata()["recipe"])))
            model.load_state_dict({key: file.get_tensor(key) for key in file.keys()})  # noqa: SIM118
        return model.eval()

    def save(self, path: Path) -> int:
        """Write the weights in float16 and the recipe; return the bytes written."""
        stored = {name: x.numpy().astype(np.float16) for name, x in self.state_dict().items()}
        return path.write_bytes(save(stored, {"recipe": json.dumps(asdict(self.recipe))}))

    def read(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Annotations (B, S, 2 hidden) of characters (B, S), and the decoder's first state."""
        packed = nn.utils.rnn.pack_padded_sequence(
            F.embedding(tokens, self.embed_in.weight), lengths, True, enforce_sorted=False
        )
        states, last = self.encoder(packed)
        keys, _ = nn.utils.rnn.pad_packed_sequence(states, True, total_length=tokens.shape[1])
        return keys, torch.tanh(self.start(last[1]))  # the state that read the text backwards

    def forward(
        self, tokens: Tensor, lengths: Tensor, targets: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Logits (B, T, symbols) and weights (B, T, S) for characters (B, S), `lengths` (B,) of each.

        Each step is given the character before it: that of `targets` (B, T) in training, without
        them the likeliest one, for LONGEST steps.
        """
        keys, state = self.read(tokens, lengths)
        projected, mask = self.attention.W_K(keys), padding_mask(lengths, tokens.shape[1])[:, 0, 0]
        previous = torch.full((len(tokens),), END)
        logits, weights = [], []
        for t in range(LONGEST if targets is None else targets.shape[1]):
            context, seen = self.attention(state, keys, mask, projected=projected)
            state = self.decoder(torch.cat((self.embed_out(previous), context), -1), state)
            logits.append(self.out(torch.cat((state, context), -1)))
            weights.append(seen)
            previous = logits[-1].argmax(-1) if targets is None else targets[:, t]
        return torch.stack(logits, 1), torch.stack(weights, 1)

    def transduce(self, text: str) -> tuple[str, Array]:
        """The output for one text, and its alignment (characters of the output, of the text).

        Raises ValueError for an empty text or a character that the model does not know.
        """
        return self.transduce_all([text])[0]

    @torch.no_grad()
    def transduce_all(self, texts: Sequence[str]) -> list[tuple[str, Array]]:
        """`transduce` for many texts in one batch."""
        tokens, lengths = encode_texts(texts)
        logits, weights = self(tokens, lengths)
        found = []
        for symbols, seen, length in zip(logits.argmax(-1).tolist(), weights, lengths, strict=True):
            T = symbols.index(END) if END in symbols else len(symbols)
            written = "".join(ISO_ALPHABET[symbol] for symbol in symbols[:T])
            found.append((written, seen[:T, :length].numpy()))
        return found


def encode_texts(texts: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Tokens (B, S), filled up with 0, and lengths (B,) of texts.

    Raises ValueError for an empty text or a character that the model does not know.
    """
    for text in texts:
        if not text or set(text) - set(DATES_ALPHABET):
            raise ValueError(f"a text is made of {DATES_ALPHABET!r}: found {text!r}")
    rows = [torch.tensor([DATES_ALPHABET.index(c) for c in text]) for text in texts]
    return nn.utils.rnn.pad_sequence(rows, True), torch.tensor([len(row) for row in rows])


def encode_outputs(outputs: Sequence[str]) -> Tensor:
    """Tokens (B, T + 1) of outputs of one length T, each with its END."""
    return torch.tensor([[*map(ISO_ALPHABET.index, output), END] for output in outputs])


def train_transducer(recipe: Recipe, label: str = "dates") -> tuple[Transducer, list[float]]:
    """Train on dates that are not held out; return the model and the loss at each step."""
    rng = Random(recipe.seed)
    dates = [Calendar().date(rng, "train") for _ in range(recipe.dates)]
    tokens, lengths = encode_texts([date.text for date in dates])
    targets = encode_outputs([date.iso for date in dates])
    model = Transducer(recipe)
    generator = torch.Generator().manual_seed(recipe.seed)

    def batch_loss() -> Tensor:
        rows = torch.randint(len(tokens), (recipe.batch,), generator=generator)
        S = int(lengths[rows].max())
        logits, _ = model(tokens[rows, :S], lengths[rows], targets[rows])
        return F.cross_entropy(logits.flatten(0, 1), targets[rows].flatten())

    return model, train(model, batch_loss, steps=recipe.steps, rate=recipe.rate, label=label)


@dataclass(frozen=True)
class Measured:
    """Shares from 0 to 1.

    exact    of the dates whose output is right in every character
    aligned  of the characters that have one of `WrittenDate.sources`, those whose largest weight is on
             it; of exact outputs only
    weight   mean of the summed weight on it
    """

    exact: float
    aligned: float
    weight: float


def measure_transducer(model: Transducer, dates: Sequence[WrittenDate]) -> Measured:
    """Hold outputs and alignments against what is right."""
    exact, aligned, weight = 0, [], []
    results = model.transduce_all([date.text for date in dates])
    for date, (written, weights) in zip(dates, results, strict=True):
        if written != date.iso:
            continue
        exact += 1
        for row, source in zip(weights, date.sources, strict=True):
            if source is not None:
                aligned.append(source[0] <= row.argmax() < source[1])
                weight.append(float(row[slice(*source)].sum()))
    if not exact:
        return Measured(0.0, 0.0, 0.0)
    return Measured(exact / len(dates), float(np.mean(aligned)), float(np.mean(weight)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, train, save, and say what the stored weights do."""
    parser = argparse.ArgumentParser(
        prog="python -m attention_lib.models.dates", description="Remake the shipped weights."
    )
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default 0)")
    parser.add_argument("--out", type=Path, default=WEIGHTS / "dates.safetensors")
    options = parser.parse_args(arguments)
    # One thread: sums are then added in one order, and the same seed gives the same weights.
    torch.set_num_threads(1)
    start = time.perf_counter()
    model, _ = train_transducer(Recipe(options.seed))
    size = model.save(options.out)
    rng = Random(1000 + options.seed)
    dates = [Calendar().date(rng, "test") for _ in range(1000)]
    seen = measure_transducer(Transducer.load(options.out), dates)
    low, high = wilson_interval(seen.exact, len(dates))
    print(
        f"{options.out}: {size:,} bytes, {time.perf_counter() - start:.0f} s.\n"
        f"On {len(dates)} held-out dates, from the stored weights: {seen.exact:.1%} exact "
        f"(95 % interval {low:.1%} to {high:.1%}); the largest weight is on the right part for "
        f"{seen.aligned:.1%} of the characters that have one; it gets {seen.weight:.1%} of the weight."
    )
