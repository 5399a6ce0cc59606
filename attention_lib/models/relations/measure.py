"""What each head of an encoder does for each relation: where it looks, and what is lost without it.

    matrix = measure_heads(Encoder.load("heads-0"), held_out_sentences(400))

A head is off when its output is zero (Michel et al. 2019). Arrays have the axes L layers, H heads and
R relations, in the order of RELATIONS.
"""

import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import groupby, product
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from ...core import attention
from ...heads import merge_heads, split_heads
from ...shapes import Array, Mask, check_count, describe
from ..corpus import CLASS_OF, NOUNS
from ..encoder import Encoder, Run
from .data import RELATIONS, Relation, RelationGrammar, TaggedSentence

Head = tuple[int, int]  # (layer, head), both from 0
Integers = NDArray[np.int64]
HIDDEN_IN = {"it_blind": 0, "others_blind": 0, "antecedent_hidden": -1}  # layers, of the Hops
NEEDED = 0.1  # nats of loss that a head is worth if it is said to be needed
LOOKING = 0.2  # mean weight from which a head is said to look; an even share is about 0.06


@dataclass(frozen=True)
class Answers:
    """For each relation (R,): the mean cross-entropy in nats, and the share of right answers."""

    loss: Array
    accuracy: Array


@dataclass(frozen=True)
class HeadMatrix:
    """What was measured of every head.

    whole     the answers with all heads on
    rise      (L, H, R) by how many nats the loss rises when the head is off
    accuracy  (L, H, R) share of right answers when the head is off
    weight    (L, H, R) mean weight from the word that asks to the word that tells
    update    (L, H, R) mean length of that weight · v W_O, which is what the head adds to the word
              that asks from the word that tells
    cue       (L, H) mean weight from "it" to the adjective that decides
    """

    whole: Answers
    rise: Array
    accuracy: Array
    weight: Array
    update: Array
    cue: Array

    def strongest(self, relation: Relation) -> Head:
        """The head without which the loss of a relation rises most.

        Raises ValueError for what is none of RELATIONS.
        """
        rise = self.rise[..., _index(relation)]
        layer, head = np.unravel_index(rise.argmax(), rise.shape)
        return int(layer), int(head)

    def share(self, relation: Relation) -> float:
        """The strongest head's part of the summed rise of a relation; 0 if nothing rises.

        What falls counts as no rise. Raises ValueError for what is none of RELATIONS.
        """
        rise = self.rise[..., _index(relation)].clip(0)
        return float(rise.max() / rise.sum()) if rise.any() else 0.0

    def needed(self, nats: float = NEEDED) -> list[Head]:
        """The heads without which the loss of some relation rises by more than `nats`."""
        return _heads((self.rise > nats).any(-1))

    def unmatched(self, nats: float = NEEDED, weight: float = LOOKING) -> list[Head]:
        """The needed heads that look from no word that asks at the word that tells.

        That is, whose mean weight there is below `weight` for all relations for which they are needed;
        of coreference, a look from "it" at the adjective counts too.
        """
        looks = self.weight.copy()
        reference = RELATIONS.index("coreference")
        looks[..., reference] = np.maximum(looks[..., reference], self.cue)
        needed = self.rise > nats
        return _heads(needed.any(-1) & ~(needed & (looks >= weight)).any(-1))


@dataclass(frozen=True)
class Hops:
    """Shares of "it" answered with the right noun, of which it takes two steps to know.

    whole              nothing is hidden
    it_blind           in the first layer "it" cannot see the adjective
    others_blind       in the first layer no other word can see the adjective
    antecedent_hidden  in the last layer "it" cannot see the right noun
    """

    whole: float
    it_blind: float
    others_blind: float
    antecedent_hidden: float


@dataclass(frozen=True)
class Blind:
    """Counts of "it" that cannot see its noun in the last layer, where that noun is of one class.

    asked    how often "it" was asked
    right    answered with the right noun all the same
    outside  answered with a word that does not stand in the sentence
    """

    asked: int
    right: int
    outside: int


def held_out_sentences(n: int, seed: int = 0) -> list[TaggedSentence]:
    """Draw n sentences of which every combination that can be held out of training was."""
    rng, grammar = random.Random(seed), RelationGrammar()
    return [grammar.sentence(rng, "test") for _ in range(check_count("n", n, 1))]


def answer_questions(
    encoder: Encoder, sentences: Sequence[TaggedSentence], off: Collection[Head] = ()
) -> Answers:
    """Ask an encoder all questions of the sentences, with the heads `off` switched off.

    Raises ValueError for a head that the encoder does not have, for a word or an answer that it does
    not know, and if a relation is asked for in none of the sentences; TypeError for what is no head.
    """
    heads = check_heads_off(encoder, off)
    return _answer(encoder, list(_groups(encoder, sentences)), heads)


def check_heads_off(encoder: Encoder, off: Iterable[Head]) -> list[Head]:
    """The heads `off` as pairs of ints, each once.

    Raises TypeError for what is no pair of integers, ValueError for a head that is not there.
    """
    try:
        found = list(off)
    except TypeError:
        raise TypeError(f"off must be pairs (layer, head): found {describe(off)}") from None
    return list(dict.fromkeys(_check_head(encoder, each) for each in found))


def _check_head(encoder: Encoder, found: Any) -> Head:
    is_pair = isinstance(found, tuple | list) and len(found) == 2
    if not is_pair or any(isinstance(i, bool) or not isinstance(i, SupportsIndex) for i in found):
        raise TypeError(f"a head is a pair of integers (layer, head), from 0: found {found!r}")
    layer, head = (int(i) for i in found)
    if not (0 <= layer < encoder.layers and 0 <= head < encoder.heads):
        raise ValueError(
            f"the encoder has {encoder.layers} layers of {encoder.heads} heads, from 0: found "
            f"layer {layer}, head {head}"
        )
    return layer, head


def measure_heads(encoder: Encoder, sentences: Sequence[TaggedSentence]) -> HeadMatrix:
    """Measure every head on sentences: all on, and then each one off. Raises as `answer_questions`."""
    groups = list(_groups(encoder, sentences))
    whole = _answer(encoder, groups)
    without = [_answer(encoder, groups, [head]) for head in _all_heads(encoder)]
    shape = (encoder.layers, encoder.heads, len(RELATIONS))
    weight, update, cue = _looks(encoder, groups)
    return HeadMatrix(
        whole,
        np.array([answers.loss - whole.loss for answers in without]).reshape(shape),
        np.array([answers.accuracy for answers in without]).reshape(shape),
        weight,
        update,
        cue,
    )


def prune_heads(
    encoder: Encoder, sentences: Sequence[TaggedSentence]
) -> tuple[list[Head], list[Answers]]:
    """Switch off one head after another, each time that without which the loss is least.

    The loss is the mean over the relations. Returns the heads in the order in which they went, and the
    answers before the first and after each. Raises as `answer_questions`.
    Source: after Michel et al. 2019, section 4, who estimate the losses by gradients.
    """
    groups = list(_groups(encoder, sentences))
    left = _all_heads(encoder)
    off: list[Head] = []
    answers = [_answer(encoder, groups)]
    while left:
        tried = [_answer(encoder, groups, [*off, head]) for head in left]
        best = min(range(len(left)), key=lambda i: float(tried[i].loss.mean()))
        off.append(left.pop(best))
        answers.append(tried[best])
    return off, answers


def measure_hops(encoder: Encoder, sentences: Sequence[TaggedSentence]) -> Hops:
    """Hide one look after another, in all heads of a layer. Raises as `answer_questions`."""
    groups = list(_groups(encoder, sentences))
    hidden = {field.name: field.name if field.name in HIDDEN_IN else None for field in fields(Hops)}
    seen = {name: _answer(encoder, groups, hidden=look).accuracy for name, look in hidden.items()}
    return Hops(
        **{name: float(each[RELATIONS.index("coreference")]) for name, each in seen.items()}
    )


def blind_by_class(encoder: Encoder, sentences: Sequence[TaggedSentence]) -> dict[str, Blind]:
    """Hide the right noun as in Hops.antecedent_hidden, and count the answers by the noun's class:
    animate, place, thing. Raises as `answer_questions`."""
    found: dict[str, list[tuple[bool, bool]]] = {kind: [] for kind in NOUNS}
    for group in _groups(encoder, sentences):
        logits = _run(encoder, group, hidden="antecedent_hidden")[0]
        for i in np.flatnonzero(group.relation == RELATIONS.index("coreference")):
            given, right = (encoder.answers[j] for j in (logits[i].argmax(), group.answer[i]))
            words = [encoder.words[token] for token in group.tokens[group.row[i]]]
            found[CLASS_OF[right]].append((given == right, given not in words))
    return {
        kind: Blind(len(rows), *(sum(column) for column in zip(*rows, strict=True)))
        for kind, rows in found.items()
    }


def update_lengths(encoder: Encoder, run: Run, layer: int) -> Array:
    """Lengths of weight · v W_O (H, T, T): how much each head adds to each word from each other.

    Raises ValueError for a layer that is not there. Source: Kobayashi et al. 2020, section 3.
    """
    if check_count("layer", layer) >= encoder.layers:
        raise ValueError(f"layer must be from 0 to {encoder.layers - 1}: found {layer}")
    lengths = np.linalg.norm(run.v[layer] @ _output(encoder, layer), axis=-1)
    return np.asarray(run.weights[layer] * lengths[:, None, :])


@dataclass(frozen=True)
class _Group:
    """Sentences of one length: tokens (B, T), and of each question (Q,) its place and its answer."""

    tokens: Integers
    row: Integers
    asked: Integers
    tells: Integers
    cue: Integers
    answer: Integers
    relation: Integers

    def mask(self, hidden: str) -> Mask:
        """Which word may see which, (B, 1, T, T), when a look named in Hops is hidden."""
        B, T = self.tokens.shape
        mask = np.ones((B, 1, T, T), dtype=bool)
        it = self.relation == RELATIONS.index("coreference")
        row, asked, tells, cue = (x[it] for x in (self.row, self.asked, self.tells, self.cue))
        if hidden == "antecedent_hidden":
            mask[row, :, asked, tells] = False
        elif hidden == "it_blind":
            mask[row, :, asked, cue] = False
        else:
            mask[row, :, :, cue] = False
            mask[row, :, asked, cue] = mask[row, :, cue, cue] = True
        return mask


def _groups(encoder: Encoder, sentences: Sequence[TaggedSentence]) -> Iterator[_Group]:
    """Sentences of equal length together, so that none is filled up."""
    index = {answer: i for i, answer in enumerate(encoder.answers)}
    asked = {question.relation for s in sentences for question in s.questions}
    for relation in RELATIONS:
        if relation not in asked:
            raise ValueError(f"{relation} is asked for in none of the {len(sentences)} sentences")
    for _, group in groupby(sorted(sentences, key=_length), key=_length):
        same = list(group)
        questions = [(row, q) for row, s in enumerate(same) for q in s.questions]
        for _, q in questions:
            if q.answer not in index:
                raise ValueError(f"the encoder has no answer {q.answer!r}")
        yield _Group(
            np.array([encoder.encode(s.words) for s in same], dtype=np.int64),
            np.array([row for row, _ in questions], dtype=np.int64),
            np.array([q.asked for _, q in questions], dtype=np.int64),
            np.array([q.tells for _, q in questions], dtype=np.int64),
            np.array([-1 if q.cue is None else q.cue for _, q in questions], dtype=np.int64),
            np.array([index[q.answer] for _, q in questions], dtype=np.int64),
            np.array([RELATIONS.index(q.relation) for _, q in questions], dtype=np.int64),
        )


def _index(relation: Relation) -> int:
    if relation not in RELATIONS:
        raise ValueError(f"relation must be one of {', '.join(RELATIONS)}: found {relation!r}")
    return RELATIONS.index(relation)


def _length(sentence: TaggedSentence) -> int:
    return len(sentence.words)


def _run(
    encoder: Encoder,
    group: _Group,
    off: Collection[Head] = (),
    hidden: str | None = None,
) -> tuple[Array, list[tuple[Array, Array]]]:
    """Logits of each question (Q, A), and each layer's weights (B, H, T, T) and values (B, H, T, d_v)."""
    x: Array = encoder.tensors["embedding"][group.tokens]
    x = x + encoder.tensors["position"][: group.tokens.shape[1]]
    seen: list[tuple[Array, Array]] = []
    for layer in range(encoder.layers):
        name = f"layer.{layer}"
        normed = encoder.norm(x, f"{name}.norm")
        q, k, v = (
            split_heads(normed @ encoder.tensors[f"{name}.{W}"], encoder.heads)
            for W in ("W_Q", "W_K", "W_V")
        )
        here = hidden is not None and layer == HIDDEN_IN[hidden] % encoder.layers
        mask = group.mask(hidden) if hidden and here else None
        out, weights = attention(q, k, v, mask, return_weights=True)
        out[:, [head for at, head in off if at == layer]] = 0
        seen.append((weights, v))
        x = x + merge_heads(out) @ encoder.tensors[f"{name}.W_O"]
        if f"{name}.feed_forward.W_in" in encoder.tensors:
            x = x + encoder.feed_forward(x, f"{name}.feed_forward")
    asking = encoder.norm(x[group.row, group.asked], "norm")
    logits = asking @ encoder.tensors["W_answer"] + encoder.tensors["b_answer"]
    return logits, seen


def _answer(
    encoder: Encoder,
    groups: Sequence[_Group],
    off: Collection[Head] = (),
    hidden: str | None = None,
) -> Answers:
    logits = np.concatenate([_run(encoder, group, off, hidden)[0] for group in groups])
    answer = np.concatenate([group.answer for group in groups])
    relation = np.concatenate([group.relation for group in groups])
    shifted = logits - logits.max(-1, keepdims=True)
    losses = np.log(np.exp(shifted).sum(-1)) - shifted[np.arange(len(answer)), answer]
    right = logits.argmax(-1) == answer
    return Answers(_by_relation(losses, relation), _by_relation(right, relation))


def _by_relation(x: Array | Mask, relation: Integers) -> Array:
    """Means over the questions of each relation, (R, ...)."""
    return np.array([x[relation == r].mean(0, dtype=float) for r in range(len(RELATIONS))])


def _looks(encoder: Encoder, groups: Sequence[_Group]) -> tuple[Array, Array, Array]:
    """The fields weight, update and cue of HeadMatrix."""
    weights, updates, cues = [], [], []
    for group in groups:
        _, seen = _run(encoder, group)
        row, asked, tells = group.row, group.asked, group.tells
        weight = np.stack([w[row, :, asked, tells] for w, _ in seen], 1)
        length = np.stack(
            [
                np.linalg.norm(
                    np.einsum("qhv,hvd->qhd", v[row, :, tells], _output(encoder, layer)), axis=-1
                )
                for layer, (_, v) in enumerate(seen)
            ],
            1,
        )
        weights.append(weight)
        updates.append(weight * length)
        cues.append(np.stack([w[row, :, asked, group.cue] for w, _ in seen], 1)[group.cue >= 0])
    relation = np.concatenate([group.relation for group in groups])
    weight, update = (
        np.moveaxis(_by_relation(np.concatenate(x), relation), 0, -1) for x in (weights, updates)
    )
    return weight, update, np.concatenate(cues).mean(0, dtype=float)


def _output(encoder: Encoder, layer: int) -> Array:
    """The rows of W_O that each head uses, (H, d_v, d_model)."""
    W = encoder.tensors[f"layer.{layer}.W_O"]
    return W.reshape(encoder.heads, -1, W.shape[1])


def _all_heads(encoder: Encoder) -> list[Head]:
    return list(product(range(encoder.layers), range(encoder.heads)))


def _heads(chosen: object) -> list[Head]:
    return [(int(layer), int(head)) for layer, head in np.argwhere(np.asarray(chosen))]
