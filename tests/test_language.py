"""The language model: one masked pass, cached steps, and what happens without the mask."""

import dataclasses
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attention_lib.models import training
from attention_lib.models.corpus import MAX_LENGTH, VOCABULARY, Grammar, Split
from attention_lib.models.language import train as language
from attention_lib.models.language.train import (
    END,
    SAMPLED,
    START,
    WEIGHTS,
    LanguageModel,
    Recipe,
    encode_sentences,
    generate,
    logits_in_pieces,
    losses_in_one_pass,
    losses_one_at_a_time,
    main,
    mean_loss,
    train_language,
)
from attention_lib.models.wellformed import is_sentence
from attention_lib.shapes import ShapeError
from attention_lib.torch.modules import KeyValueCache, MultiHeadAttention

SMALL = Recipe(3, heads=3, d_model=21, feed_forward=11, sentences=200, steps=7, batch=9)
CHEAT = dataclasses.replace(SMALL, causal=False)
TIRED = "the animal did not cross the street because it was too tired"


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No progress bar, and the thread count of torch as it was."""
    monkeypatch.setattr(training, "tqdm", lambda steps, **_: Quiet(steps))
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)


class Quiet(list[int]):
    """Steps without a bar."""

    def set_postfix(self, **_: object) -> None:
        """Show nothing."""


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((WEIGHTS / "cheating.json").read_text(encoding="utf-8"))
    return found


def draw(n: int, seed: int = 0, split: Split = "train") -> list[tuple[str, ...]]:
    rng = random.Random(seed)
    return [Grammar().sentence(rng, split).words for _ in range(n)]


def double(recipe: Recipe = SMALL) -> LanguageModel:
    """A model in float64 whose weights are larger than at the start, so that words matter."""
    model = LanguageModel(recipe).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    return model


def assert_same(one: Tensor, other: Tensor) -> None:
    """Equal to 1e-10, in float64."""
    assert one.dtype == other.dtype == torch.float64
    torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def some_tokens(n: int, T: int, seed: int = 0) -> Tensor:
    return torch.randint(END, (n, T), generator=torch.Generator().manual_seed(seed))


# --- all positions at once


def test_one_masked_pass_is_every_position_alone() -> None:
    """The same losses, and the same gradient of every weight, in float64."""
    model = double()
    tokens, lengths = encode_sentences([*draw(5), "the dog", "the"])
    assert len(set(lengths.tolist())) > 3
    gradients = []
    for losses_of in (losses_in_one_pass, losses_one_at_a_time):
        model.zero_grad()
        losses = losses_of(model, tokens, lengths)
        mean_loss(losses, lengths).backward()  # type: ignore[no-untyped-call]
        gradients.append((losses.detach(), [p.grad for p in model.parameters()]))
    (one, of_one), (other, of_other) = gradients
    assert tuple(one.shape) == (7, int(lengths.max()) - 1)
    assert_same(one, other)
    for (name, _), a, b in zip(model.named_parameters(), of_one, of_other, strict=True):
        assert a is not None, name
        assert b is not None, name
        assert a.abs().max() > 1e-6, name
        assert_same(a, b)


def test_without_the_mask_the_two_differ() -> None:
    model = double(CHEAT)
    tokens, lengths = encode_sentences(draw(5))
    one = losses_in_one_pass(model, tokens, lengths)
    assert (one - losses_one_at_a_time(model, tokens, lengths)).abs().max() > 1e-2


def test_losses_are_the_cross_entropy_of_the_next_word() -> None:
    model = double()
    tokens, lengths = encode_sentences(["the dog did not", TIRED])
    losses = losses_in_one_pass(model, tokens, lengths).detach()
    probabilities = model(tokens[:1]).softmax(-1)[0].detach()
    expected = [-math.log(probabilities[t, tokens[0, t + 1]]) for t in range(5)]
    np.testing.assert_allclose(losses[0, :5], expected, rtol=0, atol=1e-10)
    assert not losses[0, 5:].any()
    assert mean_loss(losses, lengths).item() == pytest.approx(losses.sum().item() / (5 + 13))


@pytest.mark.parametrize("causal", [True, False])
def test_sentences_of_a_batch_do_not_touch(causal: bool) -> None:
    model = double(dataclasses.replace(SMALL, causal=causal))
    sentences = ["the dog", TIRED, "the street did not"]
    tokens, lengths = encode_sentences(sentences)
    losses = losses_in_one_pass(model, tokens, lengths)
    for row, length, sentence in zip(losses, lengths, sentences, strict=True):
        alone = losses_in_one_pass(model, *encode_sentences([sentence]))[0]
        assert_same(row[: length - 1], alone)


@torch.no_grad()
def test_the_future_changes_nothing_before_it() -> None:
    model, cheat, tokens = double(), double(CHEAT), some_tokens(3, 11)
    for t in range(1, 11):
        other = tokens.clone()
        other[:, t:] = (other[:, t:] + 1 + some_tokens(3, 11 - t, seed=t)) % END
        for causal, m in ((True, model), (False, cheat)):
            change = (m(tokens)[:, :t] - m(other)[:, :t]).abs().amax(-1)
            assert (change.max() <= 1e-12) if causal else (change.min() > 1e-6)
        assert (model(tokens)[:, t:] - model(other)[:, t:]).abs().amax(-1).min() > 1e-6


# --- keys and values kept


@torch.no_grad()
@pytest.mark.parametrize("pieces", [[6], [4, 2], [1] * 6, [1, 3, 2], [5, 1]])
def test_cached_steps_are_the_full_pass(pieces: list[int]) -> None:
    model, tokens = double(), some_tokens(3, 6)
    assert_same(logits_in_pieces(model, tokens, pieces), model(tokens))


@torch.no_grad()
def test_to_the_last_position_one_token_at_a_time() -> None:
    model, tokens = double(), some_tokens(1, MAX_LENGTH + 2)
    assert_same(logits_in_pieces(model, tokens, [1] * tokens.shape[1]), model(tokens))


@torch.no_grad()
def test_keys_are_made_once_and_there_are_no_unused_slots() -> None:
    """A token's key is that of its own position in the full pass, and never changes again."""
    model, tokens = double(), some_tokens(3, 6)
    full = model.new_caches()
    model(tokens, caches=full)
    caches = model.new_caches()
    assert [len(cache) for cache in caches] == [0, 0]
    for start, stop in ((0, 4), (4, 5), (5, 6)):
        old = [(cache.k, cache.v) for cache in caches]
        model(tokens[:, start:stop], caches=caches)
        assert [len(cache) for cache in caches] == [stop, stop]
        for (k, v), cache, whole in zip(old, caches, full, strict=True):
            assert cache.k is not None
            assert cache.v is not None
            assert whole.k is not None
            assert tuple(cache.k.shape) == (3, 3, stop, 7)
            assert_same(cache.k, whole.k[:, :, :stop])
            if k is not None and v is not None:
                assert torch.equal(cache.k[:, :, :start], k)
                assert torch.equal(cache.v[:, :, :start], v)


@torch.no_grad()
def test_a_wrong_position_would_be_seen() -> None:
    """Each piece at positions from 0 again, the fault that cached generation is prone to."""
    model, tokens = double(), some_tokens(3, 6)
    again = torch.cat([model(piece) for piece in torch.split(tokens, [4, 2], 1)], 1)
    assert_same(again[:, :4], model(tokens)[:, :4])
    assert (again - model(tokens))[:, 4:].abs().amax(-1).min() > 1e-3


@torch.no_grad()
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_the_cache_of_a_layer_with_grouped_heads(kv_heads: int) -> None:
    layer = MultiHeadAttention(20, 4, kv_heads=kv_heads, rng=0).double()
    x = torch.randn(3, 7, 20, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    cache = KeyValueCache()
    pieces = [layer(part, causal=True, cache=cache) for part in torch.split(x, [3, 1, 3], 1)]
    assert_same(torch.cat(pieces, 1), layer(x, causal=True))
    assert cache.k is not None
    assert tuple(cache.k.shape) == (3, kv_heads, 7, 5)


def test_gradients_flow_through_the_cache() -> None:
    model, tokens = double(), some_tokens(2, 5)
    found = []
    for logits in (model(tokens), logits_in_pieces(model, tokens, [2, 3])):
        model.zero_grad()
        logits.square().sum().backward()
        found.append(model.embedding.grad)
    assert found[0] is not None
    torch.testing.assert_close(found[0], found[1], rtol=1e-10, atol=1e-10)


def test_what_the_model_refuses() -> None:
    model, tokens = LanguageModel(SMALL), some_tokens(1, 6)
    with pytest.raises(ShapeError, match="26 tokens; the model reads at most 25"):
        model(some_tokens(1, 26))
    caches = model.new_caches()
    model(some_tokens(1, 20), caches=caches)
    with pytest.raises(ShapeError, match="26 tokens; the model reads at most 25"):
        model(tokens, caches=caches)
    with pytest.raises(ValueError, match="only under a causal mask"):
        LanguageModel(CHEAT)(tokens, caches=model.new_caches())
    with pytest.raises(ValueError, match="leave `lengths` out"):
        model(tokens, torch.tensor([6]), caches=model.new_caches())
    with pytest.raises(ValueError, match=r"pieces \[4, 3\] must add up to 6 tokens"):
        logits_in_pieces(model, tokens, [4, 3])


# --- making sentences


@pytest.fixture(scope="module")
def spoken() -> Iterator[LanguageModel]:
    """A model after a few steps, which says more than one word."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "tqdm", lambda steps, **_: Quiet(steps))
        yield train_language(dataclasses.replace(SMALL, steps=40, rate=1e-2))[0]


def test_the_cache_changes_no_word(spoken: LanguageModel) -> None:
    for temperature in (0.0, 0.7, 1.0):
        made = [
            generate(spoken, 5, generator(2), temperature=temperature, cached=cached)
            for cached in (True, False)
        ]
        assert made[0] == made[1]
        assert len(made[0]) == 5


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_words_are_drawn_by_the_generator(spoken: LanguageModel) -> None:
    state = torch.random.get_rng_state()
    assert generate(spoken, 4, generator(1)) == generate(spoken, 4, generator(1))
    assert generate(spoken, 4, generator(1)) != generate(spoken, 4, generator(2))
    greedy = generate(spoken, 3, generator(1), temperature=0)
    assert len(set(greedy)) == 1
    assert greedy[:2] == generate(spoken, 2, generator(2), temperature=0)
    assert torch.equal(state, torch.random.get_rng_state())


def test_greedy_is_the_likeliest_word_each_time(spoken: LanguageModel) -> None:
    (text,) = generate(spoken, 1, generator(1), temperature=0, prompt="the dog")
    assert text.startswith("the dog ")
    tokens, _ = encode_sentences([text])
    with torch.no_grad():
        likeliest = spoken(tokens[:, :25]).argmax(-1)[0].tolist()
    assert likeliest[2 : len(text.split())] == tokens[0, 3:-1].tolist()


def test_a_low_temperature_is_nearly_greedy(spoken: LanguageModel) -> None:
    cold = generate(spoken, 3, generator(1), temperature=1e-4)
    assert set(cold) == set(generate(spoken, 1, generator(1), temperature=0))


def test_what_cannot_be_generated() -> None:
    model = LanguageModel(SMALL)
    with pytest.raises(ValueError, match=r"at least 0: found -1"):
        generate(model, 1, generator(0), temperature=-1)
    with pytest.raises(ValueError, match="does not know 'unicorn'"):
        generate(model, 1, generator(0), prompt="the unicorn")


def test_sentences_as_tokens() -> None:
    tokens, lengths = encode_sentences(["the dog", TIRED.split()])
    assert tokens[0].tolist() == [START, 0, VOCABULARY.index("dog"), END, *[0] * 10]
    assert lengths.tolist() == [4, 14]
    longest, _ = encode_sentences(draw(500))
    assert longest.shape[1] <= MAX_LENGTH + 2


# --- what the grammar could have said


@pytest.mark.parametrize("split", ["train", "test"])
def test_every_sentence_of_the_grammar_is_accepted(split: Split) -> None:
    assert all(map(is_sentence, draw(500, 8, split)))
    assert is_sentence(TIRED)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the animal did not cross the street because it was too",
        "the animal did not cross the street because it was too cheap",  # fits no noun
        "the animal did not cross the street because they were too tired",
        "the animals did not cross the street because it was too tired",
        "the animal did not carry the street because it was too tired",  # carry takes a thing
        "the animal did not cross the dog because it was too tired",  # two of one class
        "the animal near the dog did not cross the street because it was too tired",
        "the animal beside this bank did not cross the street because it was too tired",
        "the animal did not cross the street beside this bank because it was too tired",  # no topic
        "after the storm the animal did not cross the street because it was too tired",  # no place
        "after the storm the animal did not cross the path near this bank after the storm because it was too tired",
        "the animal did not cross the street because it was too tired . .",
        "the animal did not cross the street because it was too tired today today",
        "animal the did not cross the street because it was too tired",
    ],
)
def test_what_the_grammar_could_not_have_said(text: str) -> None:
    assert not is_sentence(text)


def test_shuffled_words_are_no_sentences() -> None:
    rng = random.Random(5)
    shuffled = [rng.sample(words, len(words)) for words in draw(100)]
    assert sum(map(is_sentence, shuffled)) == 0


# --- the cheating model, as it is stored


def test_the_stored_curves_are_complete(stored: dict[str, Any]) -> None:
    assert set(stored) == {"steps", "masked", "unmasked"}
    steps = Recipe().steps
    assert stored["steps"] == list(range(0, steps, 10))
    for name in ("masked", "unmasked"):
        run = stored[name]
        assert set(run) == {"loss", "alone", "accepted", "samples"}
        assert len(run["loss"]) == len(stored["steps"])
        for key in ("alone", "accepted", "samples"):
            assert [step for step, _ in run[key]] == [*SAMPLED] == [*SAMPLED[:-1], steps]
        assert {word for _, text in run["samples"] for word in text.split()} <= set(VOCABULARY)
        assert run["loss"][0] == pytest.approx(math.log(END + 1), rel=0.15)
    assert (WEIGHTS / "cheating.json").stat().st_size < 20_000


def check_conclusions(recorded: dict[str, Any]) -> None:
    """The mask costs loss in training, and without it nothing is learned that generation can use."""
    masked, cheat = recorded["masked"], recorded["unmasked"]
    assert 1.0 <= np.mean(masked["loss"][-5:]) <= 1.3
    assert masked["alone"][-1][1] == pytest.approx(np.mean(masked["loss"][-5:]), abs=0.1)
    assert masked["accepted"][-1][1] >= 0.7
    assert is_sentence(masked["samples"][-1][1]) or masked["accepted"][-1][1] < 1
    assert max(cheat["loss"][-5:]) <= 0.01
    assert cheat["alone"][-1][1] >= 2.5
    assert cheat["alone"][-1][1] >= min(loss for _, loss in cheat["alone"]) + 0.5
    assert max(share for _, share in cheat["accepted"]) <= 0.05


def test_what_the_stored_curves_show(stored: dict[str, Any]) -> None:
    check_conclusions(stored)
    assert is_sentence(stored["masked"]["samples"][-1][1])
    assert not any(is_sentence(text) for _, text in stored["unmasked"]["samples"])
    assert len(stored["unmasked"]["samples"][-1][1].split()) > 3, "noise, to be read"


# --- training


def test_a_record_is_decided_by_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "SAMPLED", (0, 5))
    before = torch.random.get_rng_state(), random.getstate()
    model, record = train_language(SMALL)
    other, again = train_language(SMALL)
    assert record == again
    assert record != train_language(dataclasses.replace(SMALL, seed=4))[1]
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert before[1] == random.getstate()
    assert record["steps"] == [0]
    assert [step for step, _ in record["samples"]] == [0, 5, 7]


def test_both_models_start_from_the_same_weights() -> None:
    one, two = LanguageModel(SMALL), LanguageModel(CHEAT)
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_few_steps_decrease_the_loss(spoken: LanguageModel) -> None:
    tokens, lengths = encode_sentences(draw(30, 6))
    with torch.no_grad():
        first, last = (
            mean_loss(losses_in_one_pass(model, tokens, lengths), lengths).item()
            for model in (LanguageModel(SMALL), spoken)
        )
    assert last < 0.6 * first


def test_the_command_says_what_came_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language, "Recipe", lambda seed: dataclasses.replace(SMALL, seed=seed))
    main(["--out", str(tmp_path / "made.json")])
    said = capsys.readouterr().out
    assert "made.json" in said
    assert "of 200 sentences are of the grammar" in said
    assert set(json.loads((tmp_path / "made.json").read_text())) == {"steps", "masked", "unmasked"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_command_remakes_what_is_stored(
    seed: int, tmp_path: Path, stored: dict[str, Any]
) -> None:
    """The same conclusions with every seed and on any machine, and nearly the same curves."""
    out = tmp_path / "cheating.json"
    main(["--seed", str(seed), "--out", str(out)])
    made = json.loads(out.read_text(encoding="utf-8"))
    check_conclusions(made)
    assert made["steps"] == stored["steps"]
    for name in ("masked", "unmasked"):
        one, other = (np.mean(recorded[name]["loss"][-20:]) for recorded in (made, stored))
        assert one == pytest.approx(other, abs=0.05)
