"""The NumPy encoder: its arithmetic, its edits and what it says to wrong input."""

import math
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attention_lib.models.corpus import ANSWERS, VOCABULARY, Grammar
from attention_lib.models.encoder import (
    Cut,
    Edit,
    Encoder,
    HeadOff,
    Take,
    exchange,
    initial_weights,
)
from attention_lib.shapes import Array, ShapeError

WORDS = tuple("the animal did not cross the street because it was too tired".split())
TWIN = (*WORDS[:-1], "wide")
IT = 8
ENCODER = Encoder(initial_weights(3, layers=2, heads=2, d_model=22), heads=2)
LAYERS, HEADS, T = 2, 2, len(WORDS)


def by_hand(words: tuple[str, ...], edits: tuple[Edit, ...] = ()) -> Array:
    """The encoder again in float64, one head and one query at a time."""
    w = {name: tensor.astype(np.float64) for name, tensor in ENCODER.tensors.items()}

    def norm(x: Array, name: str) -> Array:
        mean, std = x.mean(-1, keepdims=True), np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return (x - mean) / std * w[f"{name}.weight"] + w[f"{name}.bias"]

    other = next((e.words for e in edits if isinstance(e, Take) and e.words), None)
    twin = [w["embedding"][VOCABULARY.index(word)] for word in other or ()]
    streams = [np.array([w["embedding"][VOCABULARY.index(word)] for word in words])]
    streams += [np.array(twin)] if twin else []
    streams = [x + w["position"][: len(x)] for x in streams]
    for layer in range(LAYERS):
        normed = [norm(x, f"layer.{layer}.norm") for x in streams]
        for s, x in enumerate(normed):
            update = np.zeros_like(x)
            for head in range(HEADS):
                part = slice(11 * head, 11 * head + 11)
                vectors = [
                    [y @ w[f"layer.{layer}.{name}"][:, part] for name in ("W_Q", "W_K", "W_V")]
                    for y in normed
                ]
                q, k, v = (a.copy() for a in vectors[s])
                hidden = set()
                for edit in edits if s == 0 else ():
                    if edit.layer != layer or edit.head not in (None, head):
                        continue
                    if isinstance(edit, Take):
                        which = ("query", "key", "value").index(edit.what)
                        source = vectors[1 if edit.words else 0][which][edit.source]
                        (q, k, v)[which][edit.to] = source
                    if isinstance(edit, Cut):
                        hidden.add((edit.query, edit.key))
                    if isinstance(edit, HeadOff):
                        v = v * 0
                for i in range(len(x)):
                    e = np.exp(k @ q[i] / math.sqrt(11))
                    e[[j for j in range(len(x)) if (i, j) in hidden]] = 0
                    update[i] += (e / e.sum()) @ v @ w[f"layer.{layer}.W_O"][part]
            streams[s] = streams[s] + update
    out: Array = norm(streams[0], "norm") @ w["W_answer"] + w["b_answer"]
    return out


@pytest.mark.parametrize(
    "edits",
    [
        (),
        (Cut(1, IT, 6),),
        (Cut(0, IT, 11, head=1), Cut(0, IT, 1), Cut(1, 3, 3, head=0)),
        (HeadOff(1, 0), HeadOff(0, 1)),
        (Take("query", 1, IT, 0, head=0),),
        exchange("value", 1, 1, 6),
        exchange("key", 0, 1, 6, head=1),
        (Take("query", 1, IT, IT, words=TWIN), Cut(1, IT, 2)),
        (Take("key", 0, 2, 11, words=TWIN), Take("value", 1, 6, 5, words=" ".join(TWIN))),
        (*exchange("value", 0, 1, 6), Take("value", 1, 1, 2), HeadOff(1, 1), Cut(1, 8, 1, head=0)),
    ],
    ids=lambda edits: "+".join(type(e).__name__ for e in edits) or "none",
)
def test_every_edit_against_the_loop_by_hand(edits: tuple[Edit, ...]) -> None:
    edited = tuple(
        Take(e.what, e.layer, e.to, e.source, e.head, tuple(e.words.split()))
        if isinstance(e, Take) and isinstance(e.words, str)
        else e
        for e in edits
    )
    np.testing.assert_allclose(ENCODER(WORDS, edits).logits, by_hand(WORDS, edited), atol=1e-5)


def test_an_exchange_moves_values_and_leaves_the_weights() -> None:
    plain, swapped = ENCODER(WORDS), ENCODER(WORDS, exchange("value", 1, 1, 6))
    assert np.array_equal(plain.weights[1], swapped.weights[1])
    assert np.array_equal(swapped.v[1][:, [1, 6]], plain.v[1][:, [6, 1]])
    assert np.array_equal(swapped.v[0], plain.v[0])
    keys = ENCODER(WORDS, exchange("key", 1, 1, 6))
    np.testing.assert_allclose(
        keys.weights[1][:, :, [1, 6]], plain.weights[1][:, :, [6, 1]], rtol=1e-5
    )


def test_a_cut_hides_one_key_from_one_query_in_one_head() -> None:
    plain, cut = ENCODER(WORDS), ENCODER(WORDS, [Cut(1, IT, 6, head=1)])
    assert cut.weights[1][1, IT, 6] == 0
    assert cut.weights[1][1, IT].sum() == pytest.approx(1)
    changed = np.argwhere((cut.weights[1] != plain.weights[1]).any(-1))
    assert changed.tolist() == [[1, IT]]
    everything = ENCODER(WORDS, [Cut(1, IT, j) for j in range(T)])
    assert not everything.weights[1][:, IT].any()
    assert np.isfinite(everything.logits).all()


def test_a_run_says_what_was_computed() -> None:
    run = ENCODER("The animal slept near it.".replace("slept", "did not cross"))
    n = len(run.words)
    assert run.words[-1] == "."
    assert [a.shape for a in (*run.q, *run.k, *run.v)] == [(HEADS, n, 11)] * 6
    assert [a.shape for a in run.weights] == [(HEADS, n, n)] * LAYERS
    assert run.logits.shape == (n, len(ANSWERS))
    assert {a.dtype for a in (*run.q, *run.weights, run.logits)} == {np.dtype(np.float32)}
    assert run.probabilities(2).sum() == pytest.approx(1)
    assert run.answer(2) == ANSWERS[int(run.probabilities(2).argmax())]


def test_text_and_words_are_the_same() -> None:
    assert np.array_equal(ENCODER(" ".join(WORDS)).logits, ENCODER(list(WORDS)).logits)


def test_a_run_changes_no_weight_and_no_other_run() -> None:
    before = {name: tensor.copy() for name, tensor in ENCODER.tensors.items()}
    plain = ENCODER(WORDS)
    ENCODER(WORDS, [*exchange("query", 0, 1, 2), HeadOff(1, 1), Cut(0, 0, 0)])
    assert np.array_equal(plain.logits, ENCODER(WORDS).logits)
    assert all(np.array_equal(before[name], tensor) for name, tensor in ENCODER.tensors.items())


def test_initial_weights() -> None:
    weights = initial_weights(5, layers=3, heads=3, d_model=33, words=700, answers=70)
    assert weights["embedding"].shape == (700, 33)
    assert weights["embedding"].std() == pytest.approx(2 / math.sqrt(33), rel=0.03)
    for name in ("layer.2.W_Q", "layer.0.W_O", "W_answer", "b_answer"):
        bound = 1 / math.sqrt(33)
        assert bound * 0.7 < abs(weights[name]).max() <= bound
    assert {tensor.dtype for tensor in weights.values()} == {np.dtype(np.float32)}
    again = initial_weights(5, layers=3, heads=3, d_model=33, words=700, answers=70)
    assert all(np.array_equal(weights[name], again[name]) for name in weights)
    assert not np.array_equal(weights["embedding"], initial_weights(6)["embedding"][:700])
    assert len(np.unique([w[:3, :3] for n, w in weights.items() if ".W_" in n])) == 12 * 9


def wrong(edit: object) -> None:
    ENCODER(WORDS, [edit])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("edit", "found"),
    [
        (Cut(2, 0, 0), "layer must be an integer from 0 to 1: found Cut"),
        (Cut(0, 0, 12), "key must be an integer from 0 to 11"),
        (Cut(0, -1, 1), "query must be an integer from 0 to 11"),
        (Cut(0, 1, 1, head=2), "head must be an integer from 0 to 1"),
        (HeadOff(0, None), "head must be an integer from 0 to 1"),  # type: ignore[arg-type]
        (Take("values", 0, 0, 0), "what must be 'query', 'key' or 'value': found 'values'"),  # type: ignore[arg-type]
        (Take("key", 0, 0, 3, words="the animal"), "source must be an integer from 0 to 1"),
        (Take("key", 0, 0.5, 3), "to must be an integer"),  # type: ignore[arg-type]
        (Take("key", 0, 0, 0, words="the anmal"), "does not know the word 'anmal'"),
    ],
)
def test_edits_that_do_not_fit(edit: Edit, found: str) -> None:
    with pytest.raises(ValueError, match=found):
        wrong(edit)


def test_what_is_no_edit() -> None:
    with pytest.raises(TypeError, match="a Cut, a HeadOff or a Take: found 'cut'"):
        wrong("cut")


def test_one_edit_needs_no_list() -> None:
    one, listed = ENCODER(WORDS, Cut(1, IT, 6)), ENCODER(WORDS, [Cut(1, IT, 6)])
    assert np.array_equal(one.logits, listed.logits)


@pytest.mark.parametrize("words", [None, [1, 2], b"the animal", 3])
def test_what_is_no_sentence(words: Any) -> None:
    found = f"a text or a sequence of words: found {type(words).__name__}"
    with pytest.raises(TypeError, match=found):
        ENCODER(words)
    if words is not None:
        with pytest.raises(TypeError, match=found):
            ENCODER(WORDS, [Take("key", 0, 0, 0, words=words)])


def test_punctuation_is_named() -> None:
    with pytest.raises(ValueError, match=r"^write 'animal' for 'animal,': the only sign"):
        ENCODER("the animal, it did not cross")


def test_unknown_words_are_named_with_their_neighbours() -> None:
    with pytest.raises(ValueError, match=r"'aminal' \(close to it: animal.*'zzz' \(nothing"):
        ENCODER("the aminal did not zzz")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("the " * 24, "24 words; the encoder reads at most 23"),
        ("", "at least one word"),
        ([], "at least one word"),
    ],
)
def test_sentences_that_do_not_fit(words: str | list[str], found: str) -> None:
    with pytest.raises(ValueError, match=found):
        ENCODER(words)


def test_unknown_weights_are_named_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no weights 'pronoun-9'; shipped are pronoun-0"):
        Encoder.load("pronoun-9")
    with pytest.raises(ValueError, match=r"missing\.safetensors'; shipped are pronoun-0"):
        Encoder.load(tmp_path / "missing.safetensors")


def test_a_file_that_holds_no_encoder(tmp_path: Path) -> None:
    path = tmp_path / "noise.safetensors"
    path.write_bytes(b"not a safetensors file")
    with pytest.raises(ValueError, match=r"noise\.safetensors holds no encoder"):
        Encoder.load(path)


def test_weights_that_are_missing_or_unknown() -> None:
    weights = initial_weights(0)
    with pytest.raises(ValueError, match=r"missing or unknown weights: \['norm.bias'\]"):
        Encoder({name: w for name, w in weights.items() if name != "norm.bias"})
    with pytest.raises(ValueError, match=r"missing or unknown weights: \['W_answer', "):
        Encoder({})
    weights = initial_weights(0, feed_forward=3)
    with pytest.raises(ValueError, match=r"\['layer.1.feed_forward.b_in'\]"):
        Encoder({name: w for name, w in weights.items() if name != "layer.1.feed_forward.b_in"})


@pytest.mark.parametrize(
    ("name", "shape", "found"),
    [
        ("layer.1.W_K", (48, 47), r"layer.1.W_K must be \(48, 48\), .*: found \(48, 47\)"),
        ("embedding", (9, 48), rf"embedding must be \({len(VOCABULARY)}, 48\), .*found \(9, 48\)"),
        ("embedding", (48,), r"found \(48,\)"),
        ("embedding", (0, 0), r"found \(0, 0\)"),
        ("norm.bias", (1,), r"norm.bias must be \(48,\), .*found \(1,\)"),
        ("position", (48,), r"position must be \(48, 48\), .*found \(48,\)"),
    ],
)
def test_weights_of_a_wrong_shape(name: str, shape: tuple[int, ...], found: str) -> None:
    with pytest.raises(ShapeError, match=found):
        Encoder(initial_weights(0) | {name: np.zeros(shape, dtype=np.float32)})


def test_weights_words_answers_and_heads_that_do_not_fit() -> None:
    weights: Any = initial_weights(0)
    with pytest.raises(ShapeError, match=r"embedding must be \(2, 48\), for 2 words and"):
        Encoder(weights, words=("the", "animal"))
    with pytest.raises(ShapeError, match=r"W_answer must be \(48, 1\), .* and 1 answers"):
        Encoder(weights, answers=("animal",))
    with pytest.raises(ShapeError, match="heads must divide d_model: d_model 48, heads 5"):
        Encoder(weights, heads=5)
    with pytest.raises(TypeError, match="embedding must be a NumPy array"):
        Encoder(weights | {"embedding": weights["embedding"].tolist()})
    with pytest.raises(TypeError, match="seed must be an integer: found 'zero'"):
        initial_weights("zero")  # type: ignore[arg-type]


def test_an_encoder_before_training() -> None:
    trained = Encoder.load("pronoun-one-layer-1")
    start = trained.untrained()
    expected = initial_weights(1, layers=1, d_model=trained.tensors["embedding"].shape[1])
    assert all(np.array_equal(start.tensors[name], w) for name, w in expected.items())
    assert start.pointing_head == trained.pointing_head
    with pytest.raises(ValueError, match="names no seed"):
        Encoder(initial_weights(0)).untrained()


def test_loading_needs_neither_torch_nor_safetensors_before() -> None:
    code = (
        "import sys; import attention_lib.models.encoder, attention_lib.models.pronoun.measure; "
        "assert not {'torch', 'safetensors', 'matplotlib'} & set(sys.modules); "
        "attention_lib.models.encoder.Encoder.load('pronoun-0'); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_encoder_reads_every_sentence_of_the_grammar() -> None:
    rng = random.Random(11)
    for _ in range(50):
        ENCODER(Grammar().sentence(rng, "train").words)
