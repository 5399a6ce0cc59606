"""Dates, and the encoder-decoder with additive attention that rewrites them."""

import dataclasses
import itertools
import random
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from attention_lib.models import training
from attention_lib.models.corpus import Split
from attention_lib.models.dates import train as transduce
from attention_lib.models.dates.data import (
    DATES_ALPHABET,
    FIRST,
    FORMS,
    ISO_ALPHABET,
    LAST,
    MAX_TEXT,
    MONTHS,
    Calendar,
    WrittenDate,
    write_date,
)
from attention_lib.models.dates.train import (
    END,
    WEIGHTS,
    Recipe,
    Transducer,
    encode_outputs,
    encode_texts,
    main,
    measure_transducer,
    train_transducer,
)
from attention_lib.torch.modules import AdditiveAttention

SHORT = Recipe(3, width=5, hidden=7, dates=90, steps=5, batch=11)
CALENDAR = Calendar()


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
def shipped() -> Transducer:
    return Transducer.load()


def draw(n: int, seed: int, split: Split = "test") -> list[WrittenDate]:
    rng = random.Random(seed)
    return [CALENDAR.date(rng, split) for _ in range(n)]


# --- the dates


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (FORMS[0], "3 march 1987"),
        (FORMS[1], "march 3, 1987"),
        (FORMS[2], "3 mar 1987"),
        (FORMS[3], "mar 3, 1987"),
        (FORMS[4], "tuesday, 3 march 1987"),
        (FORMS[5], "the 3rd of march, 1987"),
        (FORMS[6], "1987, march 3"),
    ],
)
def test_each_form_says_where_its_parts_are(form: str, text: str) -> None:
    written = write_date(date(1987, 3, 3), form)
    assert (written.text, written.iso) == (text, "1987-03-03")
    assert text[slice(*written.year)] == "1987"
    assert "march".startswith(text[slice(*written.month)])
    assert text[slice(*written.day)] in ("3", "3rd")


def test_each_character_has_the_part_that_decides_it() -> None:
    written = write_date(date(1987, 3, 23))
    year, month, day = (9, 13), (3, 8), (0, 2)
    assert written.text == "23 march 1987"
    assert written.sources == (*[year] * 4, None, month, month, None, day, day)
    assert write_date(date(1987, 3, 9)).sources[8:] == (None, (0, 1))


def test_endings_of_days() -> None:
    said = {day: write_date(date(2001, 1, day), FORMS[5]).text.split()[1] for day in range(1, 32)}
    assert {said[day] for day in (1, 21, 31)} == {"1st", "21st", "31st"}
    assert {said[day] for day in (2, 22, 3, 23)} == {"2nd", "22nd", "3rd", "23rd"}
    assert all(said[day] == f"{day}th" for day in (*range(4, 21), *range(24, 31)))


def test_what_is_held_out() -> None:
    assert len(CALENDAR.held_out_days) == 73
    assert len(CALENDAR.held_out_months) == 312
    assert (3, 3) in CALENDAR.held_out_days
    assert (1987, 3) in CALENDAR.held_out_months
    for split, expected in (("train", False), ("test", True)):
        for written in draw(300, 5, "train" if split == "train" else "test"):
            day = date.fromisoformat(written.iso)
            assert FIRST <= day <= LAST
            assert ((day.month, day.day) in CALENDAR.held_out_days) is expected
            assert ((day.year, day.month) in CALENDAR.held_out_months) is expected


def test_every_part_alone_is_seen_in_training() -> None:
    """What is held out are combinations: no year, month or day is new to the model."""
    seen = [date.fromisoformat(written.iso) for written in draw(8000, 0, "train")]
    assert {day.year for day in seen} == set(range(1900, 2030))
    assert {day.month for day in seen} == set(range(1, 13))
    assert {day.day for day in seen} == set(range(1, 32))


def test_dates_are_drawn_by_the_seed_and_fit_the_alphabets() -> None:
    dates = draw(500, 1, "train")
    assert dates == draw(500, 1, "train") != draw(500, 2, "train")
    assert set("".join(d.text for d in dates)) <= set(DATES_ALPHABET)
    assert set("".join(d.iso for d in dates)) == set(ISO_ALPHABET)
    longest = [write_date(date(1987, m, d), f) for m in (9,) for d in range(1, 31) for f in FORMS]
    assert max(len(d.text) for d in (*dates, *longest)) <= MAX_TEXT
    assert max(len(d.text) for d in longest) == MAX_TEXT


def test_months_are_told_apart_by_three_letters() -> None:
    assert len({month[:3] for month in MONTHS}) == 12


def test_wrong_questions_about_dates() -> None:
    with pytest.raises(ValueError, match="needs a year, a month and a day"):
        write_date(date(1987, 3, 3), "{day} {month}")
    with pytest.raises(ValueError, match="'train' or 'test', not 'dev'"):
        CALENDAR.date(random.Random(0), "dev")  # type: ignore[arg-type]


# --- the model


def additive() -> tuple[AdditiveAttention, Tensor, Tensor]:
    """A layer in float64, two queries (2, 5) and keys (2, 11, 7)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        layer = AdditiveAttention(5, 7, 3).double()
        return layer, torch.randn(2, 5).double(), torch.randn(2, 11, 7).double()


@torch.no_grad()
def test_additive_attention_is_its_equation() -> None:
    layer, query, keys = additive()
    mask = torch.tensor([[True] * 11, [True] * 4 + [False] * 7])
    context, weights = layer(query, keys, mask, projected=layer.W_K(keys))
    for b, length in ((0, 11), (1, 4)):
        q = query[b] @ layer.W_Q.weight.mT + layer.W_Q.bias
        scores = [
            float(layer.v.weight[0] @ torch.tanh(q + layer.W_K.weight @ keys[b, s]))
            for s in range(length)
        ]
        expected = np.exp(scores) / np.exp(scores).sum()
        np.testing.assert_allclose(weights[b, :length], expected, rtol=0, atol=1e-12)
        assert not weights[b, length:].any()
        np.testing.assert_allclose(
            context[b], expected @ keys[b, :length].numpy(), rtol=0, atol=1e-12
        )


@torch.no_grad()
def test_without_tanh_the_query_would_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A term of the query alone is the same for every key, and cancels in the softmax."""
    layer, query, keys = additive()
    same = keys[:1].expand(2, -1, -1)
    mask = torch.ones(2, 11, dtype=torch.bool)
    _, (one, two) = layer(query, same, mask, projected=layer.W_K(same))
    assert (one - two).abs().max() > 1e-3
    monkeypatch.setattr(torch, "tanh", lambda x: x)
    _, (one, two) = layer(query, same, mask, projected=layer.W_K(same))
    assert (one - two).abs().max() < 1e-12


def test_rows_of_a_batch_do_not_touch() -> None:
    """A text gives in a batch of longer and shorter ones what it gives alone."""
    model = Transducer(SHORT).double()
    texts = ["3 march 1987", "the 23rd of september, 2001", "may 1, 1900"]
    tokens, lengths = encode_texts(texts)
    targets = encode_outputs(["1987-03-03", "2001-09-23", "1900-05-01"])
    logits, weights = model(tokens, lengths, targets)
    assert tuple(weights.shape) == (3, 11, 27)
    for b, text in enumerate(texts):
        alone, seen = model(*encode_texts([text]), targets[b : b + 1])
        torch.testing.assert_close(logits[b], alone[0], rtol=0, atol=1e-12)
        torch.testing.assert_close(weights[b, :, : len(text)], seen[0], rtol=0, atol=1e-12)
        assert not weights[b, :, len(text) :].any()


def test_an_output_sees_no_later_target() -> None:
    model = Transducer(SHORT)
    tokens, lengths = encode_texts(["3 march 1987"])
    targets = encode_outputs(["1987-03-03"])
    for t in range(targets.shape[1]):
        other = targets.clone()
        other[:, t:] = (other[:, t:] + 5) % END
        before = model(tokens, lengths, targets)[0][:, : t + 1]
        assert torch.equal(before, model(tokens, lengths, other)[0][:, : t + 1])


def test_fed_its_own_output_it_says_the_same(shipped: Transducer) -> None:
    """Greedy decoding is the decoder of training, given what it wrote."""
    text = "sunday, 21 june 1953"
    written, alignment = shipped.transduce(text)
    with torch.no_grad():
        logits, weights = shipped(*encode_texts([text]), encode_outputs([written]))
    assert logits.argmax(-1).tolist() == encode_outputs([written]).tolist()
    np.testing.assert_allclose(weights[0, :-1].numpy(), alignment, atol=1e-6)


def test_a_result_and_its_alignment(shipped: Transducer) -> None:
    written, alignment = shipped.transduce("3 march 1987")
    assert written == "1987-03-03"
    assert alignment.shape == (10, 12)
    np.testing.assert_allclose(alignment.sum(-1), 1, atol=1e-6)
    assert (alignment >= 0).all()


@pytest.mark.parametrize("text", ["", "3 März 1987", "3/3/1987"])
def test_a_text_that_cannot_be_read(text: str, shipped: Transducer) -> None:
    with pytest.raises(ValueError, match="a text is made of"):
        shipped.transduce(text)


def test_held_out_dates_from_the_stored_weights(shipped: Transducer) -> None:
    seen = measure_transducer(shipped, draw(400, 77))
    assert seen.exact >= 0.95
    assert seen.aligned >= 0.9
    assert seen.weight >= 0.75


def test_every_form_is_learned(shipped: Transducer) -> None:
    days = [date.fromisoformat(d.iso) for d in draw(60, 78)]
    for form in FORMS:
        assert measure_transducer(shipped, [write_date(day, form) for day in days]).exact >= 0.9


def test_a_zero_that_stands_nowhere_has_no_place_to_look(shipped: Transducer) -> None:
    """A digit that is written is looked at; the 0 that fills up a day below 10 looks elsewhere."""
    looked: dict[bool, list[bool]] = {True: [], False: []}
    dates = draw(400, 79)
    results = shipped.transduce_all([written.text for written in dates])
    for written, (iso, alignment) in zip(dates, results, strict=True):
        if iso == written.iso:
            start, stop = written.day
            looked[iso[8] == "0"].append(start <= alignment[8].argmax() < stop)
    assert np.mean(looked[False]) >= 0.9
    assert np.mean(looked[True]) <= 0.3


def test_an_untrained_model_writes_nothing_right() -> None:
    seen = measure_transducer(Transducer(Recipe()), draw(50, 77))
    assert (seen.exact, seen.aligned, seen.weight) == (0, 0, 0)


def test_alignments_are_measured_against_the_right_part() -> None:
    """By hand: a model that looks at the first character always."""

    class Fixed(Transducer):
        def transduce_all(self, texts):  # type: ignore[no-untyped-def]
            weights = np.zeros((10, len(texts[0])))
            weights[:, 0] = 1
            return [("1987-03-13", weights), ("1987-03-14", weights)]

    right = write_date(date(1987, 3, 13))
    seen = measure_transducer(Fixed(SHORT), [right, right])
    assert (seen.exact, seen.aligned, seen.weight) == (0.5, 2 / 8, 2 / 8)


# --- training and the file


def test_training_is_decided_by_the_seed_and_leaves_the_global_generators_alone() -> None:
    before = torch.random.get_rng_state(), random.getstate()
    torch_state: list[Tensor] = [before[0]]
    one, losses = train_transducer(SHORT)
    two, again = train_transducer(SHORT)
    other, _ = train_transducer(dataclasses.replace(SHORT, seed=4))
    assert losses == again
    for (name, a), b in zip(one.state_dict().items(), two.state_dict().values(), strict=True):
        assert torch.equal(a, b)
        assert not torch.equal(a, other.state_dict()[name])
    assert torch.equal(torch_state[0], torch.random.get_rng_state())
    assert before[1] == random.getstate()
    assert losses[0] == pytest.approx(np.log(END + 1), rel=0.15)


def test_a_few_steps_decrease_the_loss() -> None:
    _, losses = train_transducer(dataclasses.replace(SHORT, hidden=17, steps=50, dates=300))
    assert np.mean(losses[-5:]) < 0.9 * losses[0]


def test_what_is_saved_is_what_was_trained(tmp_path: Path) -> None:
    model, _ = train_transducer(SHORT)
    for name in ("one", "two"):
        size = model.save(tmp_path / f"{name}.safetensors")
    assert size == (tmp_path / "one.safetensors").stat().st_size
    assert (tmp_path / "one.safetensors").read_bytes() == (
        tmp_path / "two.safetensors"
    ).read_bytes()
    loaded = Transducer.load(tmp_path / "one.safetensors")
    assert loaded.recipe == SHORT
    assert not loaded.training
    for name, tensor in loaded.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name].half().float())


def test_the_shipped_file_is_small(shipped: Transducer) -> None:
    assert (WEIGHTS / "dates.safetensors").stat().st_size < 150_000
    assert shipped.recipe == Recipe()
    with pytest.raises(FileNotFoundError):
        Transducer.load("nothing")


def test_the_command_says_what_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transduce, "Recipe", lambda seed: dataclasses.replace(SHORT, seed=seed))
    monkeypatch.setattr(Transducer, "load", classmethod(lambda cls, _: Transducer(SHORT)))
    main(["--seed", "4", "--out", str(tmp_path / "made.safetensors")])
    said = capsys.readouterr().out
    assert "made.safetensors" in said
    assert "1000 held-out dates, from the stored weights: 0.0% exact" in said


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_command_remakes_what_is_shipped(seed: int, tmp_path: Path) -> None:
    """The same conclusions with every seed and on any machine."""
    out = tmp_path / "dates.safetensors"
    main(["--seed", str(seed), "--out", str(out)])
    made = Transducer.load(out)
    seen = measure_transducer(made, draw(400, 77))
    assert made.recipe == Recipe(seed)
    assert out.stat().st_size == (WEIGHTS / "dates.safetensors").stat().st_size
    assert seen.exact >= 0.9
    assert seen.aligned >= 0.85


def test_forms_differ() -> None:
    day = date(1987, 3, 3)
    texts = [write_date(day, form).text for form in FORMS]
    assert all(a != b for a, b in itertools.combinations(texts, 2))
