"""Every measure of a head against the same thing done by edits of one sentence at a time."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from attention_lib.models.encoder import Cut, Edit, Encoder, HeadOff, initial_weights
from attention_lib.models.relations.data import (
    ANSWERS,
    MAX_LENGTH,
    RELATIONS,
    WORDS,
    Question,
    TaggedSentence,
    tag_sentence,
)
from attention_lib.models.relations.measure import (
    Answers,
    Head,
    HeadMatrix,
    answer_questions,
    held_out_sentences,
    measure_heads,
    measure_hops,
    prune_heads,
    update_lengths,
)
from attention_lib.shapes import Array

SENTENCES = held_out_sentences(29, seed=3)


def make(layers: int = 2, heads: int = 3, d_model: int = 15, feed_forward: int = 0) -> Encoder:
    """An encoder whose scores are far enough apart for every head to matter."""
    sizes = {"words": len(WORDS), "answers": len(ANSWERS), "max_length": MAX_LENGTH}
    shape = {"layers": layers, "d_model": d_model, "feed_forward": feed_forward}
    weights = initial_weights(7, heads=heads, embedding_std=1.0, **shape, **sizes)
    for name in weights:
        if "W_" in name:
            weights[name] = weights[name] * np.float32(2)
    return Encoder(weights, heads=heads, words=WORDS, answers=ANSWERS)


def one_at_a_time(
    encoder: Encoder, edits: Callable[[TaggedSentence], list[Edit]] = lambda _: []
) -> Answers:
    """The answers from runs of single sentences, and the logarithm of their probabilities."""
    losses: dict[str, list[float]] = {relation: [] for relation in RELATIONS}
    right: dict[str, list[bool]] = {relation: [] for relation in RELATIONS}
    for sentence in SENTENCES:
        run = encoder(sentence.words, edits(sentence))
        for q in sentence.questions:
            p = run.probabilities(q.asked)[ANSWERS.index(q.answer)]
            losses[q.relation].append(-float(np.log(p)))
            right[q.relation].append(run.answer(q.asked) == q.answer)
    return Answers(
        np.array([np.mean(losses[relation]) for relation in RELATIONS]),
        np.array([np.mean(right[relation]) for relation in RELATIONS]),
    )


def without(encoder: Encoder, off: Iterable[Head]) -> Answers:
    """The answers with heads off, one sentence at a time."""
    edits: list[Edit] = [HeadOff(*head) for head in off]
    return one_at_a_time(encoder, lambda _: edits)


def over_questions(measure: Callable[[TaggedSentence, Question], Array]) -> Array:
    """Means (R, ...) of what is measured of each question."""
    seen: dict[str, list[Array]] = {relation: [] for relation in RELATIONS}
    for sentence in SENTENCES:
        for q in sentence.questions:
            seen[q.relation].append(measure(sentence, q))
    return np.array([np.mean(seen[relation], 0) for relation in RELATIONS])


def same(found: Answers, expected: Answers) -> None:
    np.testing.assert_allclose(found.loss, expected.loss, rtol=2e-5)
    np.testing.assert_array_equal(found.accuracy, expected.accuracy)


@pytest.mark.parametrize(
    ("layers", "heads", "d_model", "feed_forward"),
    [(2, 3, 15, 0), (1, 5, 35, 0), (3, 7, 21, 11), (2, 1, 9, 0)],
)
@pytest.mark.parametrize("off", [[], [(0, 0)], [(0, 0), (-1, -1)]])
def test_a_batch_answers_as_one_sentence_at_a_time(
    layers: int, heads: int, d_model: int, feed_forward: int, off: list[tuple[int, int]]
) -> None:
    encoder = make(layers, heads, d_model, feed_forward)
    off = [(layer % layers, head % heads) for layer, head in off]
    expected = without(encoder, off)
    same(answer_questions(encoder, SENTENCES, off), expected)
    same(answer_questions(encoder, SENTENCES[::-1], off), expected)


def test_the_matrix_is_measured_head_by_head() -> None:
    encoder = make()
    runs = {sentence: encoder(sentence.words) for sentence in SENTENCES}
    matrix = measure_heads(encoder, SENTENCES)
    same(matrix.whole, one_at_a_time(encoder))
    for layer, head in np.ndindex(2, 3):
        off = without(encoder, [(layer, head)])
        np.testing.assert_allclose(
            matrix.rise[layer, head], off.loss - matrix.whole.loss, atol=1e-4
        )
        np.testing.assert_array_equal(matrix.accuracy[layer, head], off.accuracy)

        def weight(s: TaggedSentence, q: Question, at: int = layer, h: int = head) -> Array:
            return np.asarray(runs[s].weights[at][h, q.asked, q.tells])

        def update(s: TaggedSentence, q: Question, at: int = layer, h: int = head) -> Array:
            W = encoder.tensors[f"layer.{at}.W_O"][5 * h : 5 * h + 5]
            added = runs[s].weights[at][h, q.asked, q.tells] * runs[s].v[at][h, q.tells] @ W
            return np.asarray(np.sqrt((added**2).sum()))

        np.testing.assert_allclose(matrix.weight[layer, head], over_questions(weight), rtol=1e-4)
        np.testing.assert_allclose(matrix.update[layer, head], over_questions(update), rtol=1e-4)
        cues = [
            runs[s].weights[layer][head, q.asked, q.cue]
            for s in SENTENCES
            for q in s.questions
            if q.cue is not None
        ]
        assert matrix.cue[layer, head] == pytest.approx(np.mean(cues), rel=1e-4)


@pytest.mark.parametrize(("name", "blind"), [("heads-0", "it_blind"), ("heads-2", "others_blind")])
def test_hops_are_the_cuts_they_name(name: str, blind: str) -> None:
    """In one of these "it" reads the adjective itself, in the other from words that did."""
    encoder = Encoder.load(name)

    def question(s: TaggedSentence) -> list[Question]:
        return [q for q in s.questions if q.relation == "coreference"]

    def others(s: TaggedSentence) -> list[Edit]:
        return [
            Cut(0, i, q.cue)
            for q in question(s)
            if q.cue is not None
            for i in range(len(s.words))
            if i not in (q.asked, q.cue)
        ]

    cuts: dict[str, Callable[[TaggedSentence], list[Edit]]] = {
        "whole": lambda _: [],
        "it_blind": lambda s: [Cut(0, q.asked, q.cue or 0) for q in question(s)],
        "others_blind": others,
        "antecedent_hidden": lambda s: [Cut(1, q.asked, q.tells) for q in question(s)],
    }
    hops = measure_hops(encoder, SENTENCES)
    for cut, edits in cuts.items():
        assert getattr(hops, cut) == one_at_a_time(encoder, edits).accuracy[2]
    assert hops.whole == 1
    assert getattr(hops, blind) < 0.9
    assert hops.antecedent_hidden < 0.8


def test_pruning_takes_the_head_that_is_missed_least() -> None:
    encoder = make(2, 2, 10)
    left: list[Head] = [(0, 0), (0, 1), (1, 0), (1, 1)]
    off: list[Head] = []
    order, answers = prune_heads(encoder, SENTENCES)
    for step in range(1, 5):
        losses = {head: float(without(encoder, [*off, head]).loss.mean()) for head in left}
        off.append(min(left, key=losses.__getitem__))
        left.remove(off[-1])
        assert order[:step] == off
        same(answers[step], without(encoder, off))
    same(answers[0], one_at_a_time(encoder))
    assert len(order) == 4
    assert len(answers) == 5


def test_lengths_of_updates() -> None:
    encoder = make()
    run = encoder(SENTENCES[0].words)
    lengths = update_lengths(encoder, run, 1)
    T = len(run.words)
    assert lengths.shape == (3, T, T)
    W = encoder.tensors["layer.1.W_O"]
    for h, i, j in [(0, 1, 2), (2, 5, 0), (1, 3, 3)]:
        added = run.weights[1][h, i, j] * (run.v[1][h, j] @ W[5 * h : 5 * h + 5])
        assert lengths[h, i, j] == pytest.approx(np.linalg.norm(added), rel=1e-5)


def matrix(rise: Array, weight: Array, cue: Array) -> HeadMatrix:
    whole = Answers(np.zeros(4), np.ones(4))
    return HeadMatrix(whole, rise, np.ones_like(rise), weight, weight, cue)


def test_what_is_said_of_a_matrix() -> None:
    """Two layers of three heads: two that match, one that looks elsewhere, two that do not matter."""
    rise, weight, cue = np.zeros((2, 3, 4)), np.full((2, 3, 4), 0.05), np.full((2, 3), 0.05)
    rise[0, 0] = [3, 0, 0, 0.5]
    weight[0, 0, 0] = 0.7
    rise[1, 2] = [1, 0.2, -5, 0]
    weight[1, 2, 3] = 0.9  # where it is not needed
    rise[0, 1, 2] = 2
    cue[0, 1] = 0.6
    weight[1, 0] = 0.9  # and not needed at all
    seen = matrix(rise, weight, cue)
    assert [seen.strongest(relation) for relation in RELATIONS] == [(0, 0), (1, 2), (0, 1), (0, 0)]
    assert [seen.share(relation) for relation in RELATIONS] == [0.75, 1, 1, 1]
    assert seen.needed() == [(0, 0), (0, 1), (1, 2)]
    assert seen.needed(1.5) == [(0, 0), (0, 1)]
    assert seen.unmatched() == [(1, 2)]
    assert seen.unmatched(weight=0.65) == [(0, 1), (1, 2)]
    assert matrix(np.zeros((2, 3, 4)), weight, cue).share("sense") == 0


def test_sentences_are_held_out_and_seeded() -> None:
    assert held_out_sentences(5, 1) == held_out_sentences(9, 1)[:5] != held_out_sentences(5, 2)
    with pytest.raises(ValueError, match="n must be at least 1"):
        held_out_sentences(0)


@pytest.mark.parametrize("head", [(2, 0), (0, 3), (-1, 0), (0, -1)])
def test_a_head_that_is_not_there(head: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=f"found layer {head[0]}, head {head[1]}"):
        answer_questions(make(), SENTENCES, [head])


@pytest.mark.parametrize(
    "head", [(0.5, 0), (True, False), (np.True_, 0), 0, (0,), (0, 1, 2), "01", None, (None, 0)]
)
def test_what_is_no_head(head: Any) -> None:
    with pytest.raises(
        TypeError, match=r"a head is a pair of integers \(layer, head\), from 0: found"
    ):
        answer_questions(make(), SENTENCES, [head])


def test_heads_of_other_kinds_are_the_same() -> None:
    encoder = make()
    expected = answer_questions(encoder, SENTENCES, [(1, 2)])
    off: Any = iter([[np.int64(1), np.int8(2)], (1, 2)])
    same(answer_questions(encoder, SENTENCES, off), expected)
    with pytest.raises(TypeError, match=r"off must be pairs \(layer, head\): found int"):
        answer_questions(encoder, SENTENCES, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("ask", [HeadMatrix.share, HeadMatrix.strongest])
def test_an_unknown_relation(ask: Any) -> None:
    seen = matrix(np.zeros((2, 3, 4)), np.zeros((2, 3, 4)), np.zeros((2, 3)))
    with pytest.raises(ValueError, match=f"must be one of {', '.join(RELATIONS)}: found 'nope'"):
        ask(seen, "nope")


@pytest.mark.parametrize("layer", [2, -1])
def test_a_layer_that_is_not_there(layer: int) -> None:
    encoder = make()
    with pytest.raises(ValueError, match=f"layer must be .* found {layer}"):
        update_lengths(encoder, encoder(SENTENCES[0].words), layer)


def test_sentences_that_do_not_ask_for_all() -> None:
    some = [tag_sentence("the animal did not cross the street")]
    with pytest.raises(ValueError, match="coreference is asked for in none of the 1 sentences"):
        answer_questions(make(), some)
    with pytest.raises(ValueError, match="article is asked for in none of the 0 sentences"):
        measure_heads(make(), [])


def test_an_encoder_that_does_not_know_the_answers() -> None:
    with pytest.raises(ValueError, match=r"the encoder has no answer .(masculine|feminine)"):
        measure_hops(Encoder.load("pronoun-0"), SENTENCES)
