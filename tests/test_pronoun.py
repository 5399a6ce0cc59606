"""What chapter 1 says of the shipped weights, measured on sentences drawn here."""

import random
from functools import cache

import numpy as np
import pytest

from attention_lib.models.corpus import (
    ANSWERS,
    MAX_LENGTH,
    VOCABULARY,
    Grammar,
    Sentence,
    read_sentence,
)
from attention_lib.models.encoder import Cut, Encoder, HeadOff, Take, exchange, initial_weights
from attention_lib.models.intervals import wilson_interval
from attention_lib.models.pronoun.measure import (
    WEIGHTS,
    Pointing,
    Rewired,
    answers_without,
    choose_head,
    head_flips,
    head_hits,
    hits_by_class,
    measure_pointing,
    measure_rewired,
)

SEEDS = range(5)
CONTROLS = [f"pronoun-{control}-{seed}" for control in ("shuffled", "one-layer") for seed in (0, 1)]
SHIPPED = [f"pronoun-{seed}" for seed in SEEDS] + CONTROLS
TIRED = "the animal did not cross the street because it was too tired"
PAIRS = Grammar().minimal_pairs(250, seed=20_260)
SIMPLE = Grammar().minimal_pairs(100, seed=20_261, simple=True)


@cache
def load(name: str) -> Encoder:
    return Encoder.load(name)


@cache
def pointing(name: str) -> Pointing:
    return measure_pointing(load(name), PAIRS)


@cache
def rewired(name: str) -> Rewired:
    return measure_rewired(load(name), PAIRS)


def training_sentences(n: int) -> list[Sentence]:
    rng = random.Random(77)
    return [Grammar().sentence(rng, "train") for _ in range(n)]


def test_what_is_shipped_is_small_and_complete() -> None:
    files = list(WEIGHTS.glob("pronoun*.safetensors"))
    assert sorted(file.stem for file in files) == sorted(SHIPPED)
    assert sum(file.stat().st_size for file in files) < 1_000_000
    for name in SHIPPED:
        encoder = load(name)
        assert (encoder.words, encoder.answers) == (VOCABULARY, ANSWERS)
        assert encoder.max_length == MAX_LENGTH
        assert encoder.recipe["seed"] == int(name[-1])
        assert all(np.isfinite(tensor).all() for tensor in encoder.tensors.values())


def test_the_recipes_differ_in_the_seed_and_the_control_alone() -> None:
    base = {**load("pronoun-0").recipe, "seed": None}
    changes: dict[str, dict[str, object]] = {
        "shuffled": {"shuffled": True},
        "one-layer": {"layers": 1},
    }
    for name in SHIPPED:
        control = name.removeprefix("pronoun-")[:-2]
        expected = {**base, **changes.get(control, {})}
        assert {**load(name).recipe, "seed": None} == expected, name


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("stop", ["", "."])
def test_the_opening_sentence_flips(seed: int, stop: str) -> None:
    encoder = load(f"pronoun-{seed}")
    layer, head = encoder.pointing_head or (0, 0)
    for adjective, noun in (("tired", "animal"), ("wide", "street")):
        run = encoder(TIRED.replace("tired", adjective) + stop)
        it = run.words.index("it")
        assert run.words[int(run.weights[layer][head, it].argmax())] == noun
        assert run.answer(it) == noun


@pytest.mark.parametrize("seed", SEEDS)
def test_every_seed_points_and_answers(seed: int) -> None:
    seen = pointing(f"pronoun-{seed}")
    assert seen.flips >= 0.95
    assert seen.hits >= 0.95
    assert seen.answers >= 0.95
    assert seen.weight > 0.3
    assert load(f"pronoun-{seed}").pointing_head is not None
    assert measure_pointing(load(f"pronoun-{seed}"), SIMPLE).flips >= 0.95


@pytest.mark.parametrize("seed", SEEDS)
def test_every_seed_follows_its_values_and_keys(seed: int) -> None:
    changed = rewired(f"pronoun-{seed}")
    assert changed.values >= 0.95
    assert changed.keys >= 0.95


def test_keys_and_values_exchanged_answer_alike_and_look_apart() -> None:
    encoder, sentence = load("pronoun-0"), PAIRS[0][0]
    it = sentence.pronoun
    values, keys = (
        encoder(sentence.words, exchange(what, 1, *sentence.nouns)) for what in ("value", "key")
    )
    np.testing.assert_allclose(values.logits[it], keys.logits[it], atol=1e-4)
    layer, head = encoder.pointing_head or (0, 0)
    assert int(values.weights[layer][head, it].argmax()) == sentence.right_noun
    assert int(keys.weights[layer][head, it].argmax()) == sentence.other_noun


@pytest.mark.parametrize("seed", SEEDS)
def test_pointing_is_not_needing(seed: int) -> None:
    """Other heads point too: one may go; not the way to the right noun in all of them."""
    changed = rewired(f"pronoun-{seed}")
    assert changed.off >= 0.9
    assert changed.cut <= 0.1


@pytest.mark.parametrize("seed", SEEDS)
def test_no_head_of_layer_2_is_needed_and_one_of_layer_1_is(seed: int) -> None:
    sentences = [sentence for pair in PAIRS[:100] for sentence in pair]
    right = answers_without(load(f"pronoun-{seed}"), sentences)
    assert right.shape == (2, 4)
    assert right[1].min() >= 0.95
    assert right[0].min() <= 0.93
    layer, head = load(f"pronoun-{seed}").pointing_head or (0, 0)
    assert right[layer, head] == pytest.approx(
        measure_rewired(load(f"pronoun-{seed}"), PAIRS[:100]).off
    )


def test_each_head_of_the_one_layer_model_serves_classes_and_none_flips() -> None:
    encoder = load("pronoun-one-layer-0")
    sentences = [sentence for pair in PAIRS for sentence in pair]
    hits = hits_by_class(encoder, sentences)
    assert set(hits) == {"animate", "place", "thing"}
    assert {kind: list(share[0] >= 0.9) for kind, share in hits.items()} == {
        "animate": [False, False, True, False],
        "place": [True, False, False, False],
        "thing": [False, True, False, True],
    }
    assert head_flips(encoder, PAIRS).max() <= 0.02
    trained = load("pronoun-0")
    layer, head = trained.pointing_head or (0, 0)
    assert head_flips(trained, PAIRS)[layer, head] == pointing("pronoun-0").flips


@pytest.mark.parametrize("seed", SEEDS)
def test_an_untrained_model_neither_answers_nor_points(seed: int) -> None:
    recipe = load(f"pronoun-{seed}").recipe
    encoder = Encoder(initial_weights(seed, d_model=int(str(recipe["d_model"]))))
    encoder.pointing_head = choose_head(encoder, training_sentences(150))
    seen = measure_pointing(encoder, PAIRS)
    assert seen.answers <= 0.06
    assert seen.flips <= 0.05


@pytest.mark.parametrize("seed", [0, 1])
def test_shuffled_adjectives_leave_chance(seed: int) -> None:
    seen = pointing(f"pronoun-shuffled-{seed}")
    assert 0.3 < seen.answers < 0.6
    assert seen.hits < 0.6
    assert seen.flips <= 0.05


@pytest.mark.parametrize("seed", [0, 1])
def test_one_layer_answers_and_points_nowhere(seed: int) -> None:
    seen = pointing(f"pronoun-one-layer-{seed}")
    assert seen.answers >= 0.95
    assert seen.flips <= 0.02


def test_other_training_sentences_choose_a_head_that_points_too() -> None:
    sentences = training_sentences(150)
    for seed in SEEDS:
        encoder = load(f"pronoun-{seed}")
        head = choose_head(encoder, sentences)
        again = Encoder(encoder.tensors, heads=encoder.heads, pointing_head=head)
        assert measure_pointing(again, SIMPLE).flips >= 0.95
        assert head[0] == 1


def constant(pointed: int, answered: str) -> Encoder:
    """An encoder in which every token looks at position `pointed` and answers `answered`."""
    weights = {name: np.zeros_like(w) for name, w in initial_weights(0, d_model=24).items()}
    for name in weights:
        if name.endswith("norm.weight"):
            weights[name] += 1
    weights["position"][:, 0] = 1
    weights["position"][pointed] = np.eye(24)[1] * 5
    for layer in range(2):
        weights[f"layer.{layer}.W_Q"][:, ::6] = 1
        weights[f"layer.{layer}.norm.bias"] += 1
        weights[f"layer.{layer}.W_K"][1, ::6] = 30
    weights["b_answer"][ANSWERS.index(answered)] = 9
    return Encoder(weights, pointing_head=(1, 0))


def test_the_measure_counts_hits_flips_and_answers() -> None:
    one = read_sentence(TIRED)
    pairs: list[tuple[Sentence, Sentence]] = [(one, one.with_adjective("wide"))]
    seen = measure_pointing(constant(1, "street"), pairs)
    assert (seen.answers, seen.hits, seen.flips) == (0.5, 0.5, 0)
    assert seen.weight == pytest.approx(0.5, abs=0.01)
    assert measure_pointing(constant(3, "animal"), pairs).hits == 0
    assert measure_rewired(constant(1, "street"), pairs) == Rewired(*[0.5] * 8)
    assert seen.some_head == 0
    np.testing.assert_array_equal(head_hits(constant(6, "street"), [pairs[0][1]]), np.ones((2, 4)))
    assert choose_head(constant(6, "street"), [pairs[0][1]]) == (0, 0)
    sharper = constant(6, "street")
    for layer in range(2):
        sharper.tensors[f"layer.{layer}.W_Q"] *= 0.01
    sharper.tensors["layer.1.W_Q"][:, 12] *= 2
    np.testing.assert_array_equal(head_hits(sharper, [pairs[0][1]]), np.ones((2, 4)))
    assert choose_head(sharper, [pairs[0][1]]) == (1, 2), "of equal heads that of more weight"
    with pytest.raises(ValueError, match="no pointing head yet"):
        measure_pointing(Encoder(initial_weights(0)), pairs)


def test_the_measures_are_the_edits_they_name() -> None:
    encoder = load("pronoun-1")
    pair = PAIRS[3]
    shares = measure_rewired(encoder, [pair])
    got: dict[str, list[bool]] = {
        name: [] for name in ("values", "query", "twin_keys", "off", "nouns_blind")
    }
    for sentence, twin in (pair, pair[::-1]):
        it = sentence.pronoun
        values = encoder(sentence.words, exchange("value", 1, *sentence.nouns))
        query = encoder(sentence.words, [Take("query", 1, it, twin.pronoun, words=twin.words)])
        keys = [Take("key", 1, i, i, words=twin.words) for i in sentence.nouns]
        blind = [Cut(0, i, sentence.adjective) for i in sentence.nouns]
        off = encoder(sentence.words, [HeadOff(*(encoder.pointing_head or (0, 0)))])
        got["values"].append(values.answer(it) == sentence.other)
        got["query"].append(query.answer(it) == sentence.other)
        got["twin_keys"].append(encoder(sentence.words, keys).answer(it) == sentence.other)
        got["nouns_blind"].append(encoder(sentence.words, blind).answer(it) == sentence.answer)
        got["off"].append(off.answer(it) == sentence.answer)
    assert {name: np.mean(hits) for name, hits in got.items()} == {
        name: getattr(shares, name) for name in got
    }


@pytest.mark.parametrize(
    ("share", "trials", "low", "high"),
    [(0.5, 100, 0.4038, 0.5962), (1.0, 200, 0.9812, 1.0), (0.0, 10, 0.0, 0.2775)],
)
def test_wilson_interval(share: float, trials: int, low: float, high: float) -> None:
    assert wilson_interval(share, trials) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(("share", "trials"), [(1.1, 5), (-0.1, 5), (0.5, 0)])
def test_no_interval(share: float, trials: int) -> None:
    with pytest.raises(ValueError, match="share must be from 0 to 1"):
        wilson_interval(share, trials)
