"""Measure where an encoder looks from a pronoun, and what it needs for its answer."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...shapes import Array
from ..corpus import CLASS_OF, Sentence
from ..encoder import Cut, Edit, Encoder, HeadOff, Run, Take, What, exchange

WEIGHTS = Path(__file__).parent / "weights"

Pairs = Sequence[tuple[Sentence, Sentence]]


@dataclass(frozen=True)
class Pointing:
    """Shares, from 0 to 1, over minimal pairs.

    answers  sentences answered with the right noun
    hits     sentences in which the head's largest weight, over all words, is on the right noun
    flips    pairs of which both sentences are hits
    some_head  pairs in both sentences of which some head of the last layer, not always the same
             one, has its largest weight on the right noun
    weight   mean weight of the head from the pronoun to the right noun
    """

    answers: float
    hits: float
    flips: float
    some_head: float
    weight: float


@dataclass(frozen=True)
class Rewired:
    """Shares of the sentences, from 0 to 1, after one change to a model of two layers.

    The *other* noun is answered once, in every head of the last layer,

    values, keys    those of the two nouns are exchanged (for the pronoun's output the two are one: the
                    same two weights meet the same two values)
    query           the pronoun has its query from the twin sentence
    twin_keys       each noun has its key from the twin sentence

    The *right* noun is still answered once

    off             the pointing head is switched off
    cut             the pronoun can see the right noun in no head of the last layer
    pronoun_blind   the pronoun cannot see the adjective in the first layer
    nouns_blind     the nouns cannot see the adjective in the first layer
    """

    values: float
    keys: float
    query: float
    twin_keys: float
    off: float
    cut: float
    pronoun_blind: float
    nouns_blind: float


def head_hits(encoder: Encoder, sentences: Sequence[Sentence]) -> Array:
    """For each head (layers, heads): in what share of the sentences it hits, as in Pointing."""
    return np.asarray(_looks(sentences, _run(encoder, sentences))[0].mean(0))


def hits_by_class(encoder: Encoder, sentences: Sequence[Sentence]) -> dict[str, Array]:
    """`head_hits` of the sentences whose right noun is of each class: animate, place, thing."""
    kinds = [CLASS_OF[sentence.answer] for sentence in sentences]
    return {
        kind: head_hits(encoder, [s for s, of in zip(sentences, kinds, strict=True) if of == kind])
        for kind in sorted(set(kinds))
    }


def head_flips(encoder: Encoder, pairs: Pairs) -> Array:
    """For each head (layers, heads): in what share of the pairs it flips, as in Pointing."""
    sentences = [sentence for pair in pairs for sentence in pair]
    hits = _looks(sentences, _run(encoder, sentences))[0]
    return np.asarray(hits.reshape(-1, 2, encoder.layers, encoder.heads).min(1).mean(0))


def answers_without(encoder: Encoder, sentences: Sequence[Sentence]) -> Array:
    """For each head (layers, heads): the share of right answers once it alone is switched off."""
    right = [
        [
            _share(
                [
                    encoder(s.words, [HeadOff(layer, head)]).answer(s.pronoun) == s.answer
                    for s in sentences
                ]
            )
            for head in range(encoder.heads)
        ]
        for layer in range(encoder.layers)
    ]
    return np.array(right)


def choose_head(encoder: Encoder, sentences: Sequence[Sentence]) -> tuple[int, int]:
    """The (layer, head) that hits most often; of those, the one with more weight on the right noun."""
    hits, weights = _looks(sentences, _run(encoder, sentences))
    order = hits.mean(0) + weights.sum(0) / (len(sentences) + 1) ** 2
    layer, head = np.unravel_index(order.argmax(), order.shape)
    return int(layer), int(head)


def _run(encoder: Encoder, sentences: Sequence[Sentence]) -> list[Run]:
    return [encoder(sentence.words) for sentence in sentences]


def _looks(sentences: Sequence[Sentence], runs: Sequence[Run]) -> tuple[Array, Array]:
    """Two arrays (n, layers, heads), of the look from the pronoun: 1.0 where its largest weight is on
    the right noun, and the weight there."""
    rows = [[w[:, s.pronoun] for w in run.weights] for s, run in zip(sentences, runs, strict=True)]
    hits = [
        [row.argmax(-1) == s.right_noun for row in layers]
        for s, layers in zip(sentences, rows, strict=True)
    ]
    weights = [
        [row[:, s.right_noun] for row in layers] for s, layers in zip(sentences, rows, strict=True)
    ]
    return np.array(hits, dtype=float), np.array(weights, dtype=float)


def measure_pointing(encoder: Encoder, pairs: Pairs) -> Pointing:
    """Measure the pointing head of `encoder` on minimal pairs, nothing changed."""
    layer, head = _pointing_head(encoder)
    sentences = [sentence for pair in pairs for sentence in pair]
    runs = _run(encoder, sentences)
    hits, weights = _looks(sentences, runs)
    in_both = hits.reshape(-1, 2, encoder.layers, encoder.heads)
    return Pointing(
        answers=_share(
            [run.answer(s.pronoun) == s.answer for run, s in zip(runs, sentences, strict=True)]
        ),
        hits=_share(hits[:, layer, head]),
        flips=_share(in_both[:, :, layer, head].min(1)),
        some_head=_share(in_both[:, :, -1].max(-1).min(1)),
        weight=_share(weights[:, layer, head]),
    )


def measure_rewired(encoder: Encoder, pairs: Pairs) -> Rewired:
    """Measure what `encoder` answers in both sentences of each pair after each change."""
    shares: dict[str, list[bool]] = {name: [] for name in Rewired.__dataclass_fields__}
    for pair in pairs:
        for sentence, twin in (pair, pair[::-1]):
            for name, (edits, answer) in _changes(encoder, sentence, twin).items():
                shares[name].append(
                    encoder(sentence.words, edits).answer(sentence.pronoun) == answer
                )
    return Rewired(**{name: _share(hits) for name, hits in shares.items()})


def _changes(
    encoder: Encoder, sentence: Sentence, twin: Sentence
) -> dict[str, tuple[Sequence[Edit], str]]:
    """The edits of each field of Rewired, and the answer that is counted."""
    last, it, nouns = encoder.layers - 1, sentence.pronoun, sentence.nouns
    adjective = sentence.adjective

    def from_twin(what: What, *positions: int) -> list[Edit]:
        return [Take(what, last, i, i, words=twin.words) for i in positions]

    return {
        "values": (exchange("value", last, *nouns), sentence.other),
        "keys": (exchange("key", last, *nouns), sentence.other),
        "query": (from_twin("query", it), sentence.other),
        "twin_keys": (from_twin("key", *nouns), sentence.other),
        "off": ([HeadOff(*_pointing_head(encoder))], sentence.answer),
        "cut": ([Cut(last, it, sentence.right_noun)], sentence.answer),
        "pronoun_blind": ([Cut(0, it, adjective)], sentence.answer),
        "nouns_blind": ([Cut(0, noun, adjective) for noun in nouns], sentence.answer),
    }


def tried_recipes() -> dict[str, list[dict[str, float]]]:
    """What `python -m attention_lib.models.pronoun recipes` measured: for each recipe a row a seed.

    A row holds "seed" and the shares "answers" and "flips", as in Pointing, on held-out pairs.
    """
    text = (WEIGHTS / "recipes.json").read_text(encoding="utf-8")
    rows: dict[str, list[dict[str, float]]] = json.loads(text)
    return rows


def _pointing_head(encoder: Encoder) -> tuple[int, int]:
    if encoder.pointing_head is None:
        raise ValueError("the encoder has no pointing head yet; choose_head finds one")
    return encoder.pointing_head


def _share(hits: Sequence[bool] | Sequence[float] | Array) -> float:
    return float(np.mean(hits))
