"""Measure where an encoder looks from a pronoun, and what it needs for its answer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .corpus import Sentence
from .encoder import Cut, Edit, Encoder, HeadOff, Take, exchange

Pairs = Sequence[tuple[Sentence, Sentence]]


@dataclass(frozen=True)
class Pointing:
    """Shares, from 0 to 1, over minimal pairs.

    answers  sentences answered with the right noun
    hits     sentences in which the head's largest weight, over all words, is on the right noun
    flips    pairs of which both sentences are hits
    weight   mean weight of the head from the pronoun to the right noun
    """

    answers: float
    hits: float
    flips: float
    weight: float


@dataclass(frozen=True)
class Rewired:
    """Shares of the sentences, from 0 to 1, after one change in the last layer.

    values, keys    the other noun is answered once those of the two nouns are exchanged in all heads
    query           the other noun is answered once the pronoun has its twin's query in all heads
    off             the right noun is answered without the pointing head
    cut             the right noun is answered once the pronoun can see it in no head

    `values` and `keys` are equal by construction: for the pronoun, two keys exchanged and two values
    exchanged give the same sum of weighted values. What differs is the weights that are seen.
    """

    values: float
    keys: float
    query: float
    off: float
    cut: float


def choose_head(encoder: Encoder, sentences: Sequence[Sentence]) -> tuple[int, int]:
    """The (layer, head) whose largest weight from the pronoun is most often on the right noun."""
    hits = np.zeros((encoder.layers, encoder.heads), dtype=int)
    for sentence in sentences:
        run = encoder(sentence.words)
        looks_at = np.array([weights[:, sentence.pronoun].argmax(-1) for weights in run.weights])
        hits += looks_at == sentence.right_noun
    layer, head = np.unravel_index(hits.argmax(), hits.shape)
    return int(layer), int(head)


def measure_pointing(encoder: Encoder, pairs: Pairs) -> Pointing:
    """Measure the pointing head of `encoder` on minimal pairs, nothing changed."""
    layer, head = _pointing_head(encoder)
    answers, hits, weight = [], [], []
    for sentence in (sentence for pair in pairs for sentence in pair):
        run = encoder(sentence.words)
        row = run.weights[layer][head, sentence.pronoun]
        answers.append(run.answer(sentence.pronoun) == sentence.answer)
        hits.append(int(row.argmax()) == sentence.right_noun)
        weight.append(float(row[sentence.right_noun]))
    flips = np.reshape(hits, (-1, 2)).all(1)
    return Pointing(_share(answers), _share(hits), float(flips.mean()), float(np.mean(weight)))


def measure_rewired(encoder: Encoder, pairs: Pairs) -> Rewired:
    """Measure what `encoder` answers in both sentences of each pair after each change."""
    last = encoder.layers - 1
    off = HeadOff(*_pointing_head(encoder))
    shares: dict[str, list[bool]] = {name: [] for name in Rewired.__dataclass_fields__}
    for pair in pairs:
        for sentence, twin in (pair, pair[::-1]):
            pronoun, right = sentence.pronoun, sentence.right_noun
            changes: dict[str, tuple[Sequence[Edit], str]] = {
                "values": (exchange("value", last, *sentence.nouns), sentence.other),
                "keys": (exchange("key", last, *sentence.nouns), sentence.other),
                "query": (
                    [Take("query", last, pronoun, twin.pronoun, words=twin.words)],
                    sentence.other,
                ),
                "off": ([off], sentence.answer),
                "cut": ([Cut(last, pronoun, right)], sentence.answer),
            }
            for name, (edits, answer) in changes.items():
                shares[name].append(encoder(sentence.words, edits).answer(pronoun) == answer)
    return Rewired(**{name: _share(hits) for name, hits in shares.items()})


def wilson_interval(share: float, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share seen in `trials` independent trials (Wilson 1927).

    Raises ValueError unless 0 <= share <= 1 and there is a trial.
    """
    if not 0 <= share <= 1 or trials < 1:
        raise ValueError(f"share must be from 0 to 1, trials at least 1: {share}, {trials}")
    z = 1.959964
    centre = share + z * z / (2 * trials)
    spread = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    whole = 1 + z * z / trials
    return max(0.0, (centre - spread) / whole), min(1.0, (centre + spread) / whole)


def _pointing_head(encoder: Encoder) -> tuple[int, int]:
    if encoder.pointing_head is None:
        raise ValueError("the encoder has no pointing head yet; choose_head finds one")
    return encoder.pointing_head


def _share(hits: Sequence[bool]) -> float:
    return float(np.mean(hits))
