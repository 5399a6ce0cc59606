"""The training loop: seeded, decreasing, and remaking what is shipped."""

import dataclasses
import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from attention_lib.models import training
from attention_lib.models.corpus import ANSWERS, MAX_LENGTH, VOCABULARY, Grammar
from attention_lib.models.encoder import Encoder, HeadOff, initial_weights
from attention_lib.models.pronoun import train as recipes
from attention_lib.models.pronoun.measure import WEIGHTS, measure_pointing, measure_rewired
from attention_lib.models.pronoun.train import (
    Batch,
    Recipe,
    main,
    name_and_recipe,
    pronoun_loss,
    train_pronoun,
)
from attention_lib.models.torch_encoder import Encoder as TorchEncoder
from attention_lib.models.torch_encoder import save_encoder
from attention_lib.models.training import train

SHORT = Recipe(3, d_model=20, heads=2, sentences=300, steps=12, batch=9, warmup=3)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No progress bar, and the thread count of torch as it was."""
    monkeypatch.setattr(training, "tqdm", lambda steps, **_: Quiet(steps))
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)


class Quiet(list[int]):
    """Steps without a bar."""

    def set_postfix(self, **_: object) -> None:
        """Show nothing."""


def test_the_loop_decreases_a_loss_and_follows_the_schedule() -> None:
    model = nn.Linear(3, 1)
    with torch.no_grad():
        model.weight.fill_(1.0)
        model.bias.fill_(0.0)
    rates = []

    def loss() -> torch.Tensor:
        return (model(torch.ones(5, 3)) - 2).square().mean()

    class Recorder(torch.optim.AdamW):
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            rates.append(self.param_groups[0]["lr"])
            super().step()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim, "AdamW", Recorder)
        losses = train(model, loss, steps=20, rate=0.1, warmup=4, decay=0.5)
    assert losses[-1] < 0.1 * losses[0]
    assert len(losses) == 20
    assert rates[:5] == pytest.approx([0.025, 0.05, 0.075, 0.1, 0.1])
    assert rates[10:13] == pytest.approx([0.1, 0.09, 0.08])
    assert rates[-1] == pytest.approx(0.01)
    assert not model.training


def test_a_few_steps_decrease_the_loss_of_the_pronoun() -> None:
    _, losses = train_pronoun(dataclasses.replace(SHORT, steps=40, batch=32, rate=1e-2))
    assert np.mean(losses[-5:]) < 0.85 * losses[0]
    assert losses[0] == pytest.approx(np.log(len(ANSWERS)), rel=0.15)


def test_the_same_seed_gives_the_same_file(tmp_path: Path) -> None:
    torch.manual_seed(1)
    one, losses = train_pronoun(SHORT)
    torch.manual_seed(2)
    two, again = train_pronoun(SHORT)
    other, _ = train_pronoun(dataclasses.replace(SHORT, seed=4))
    assert losses == again
    save_encoder(one, tmp_path / "one.safetensors")
    save_encoder(two, tmp_path / "two.safetensors")
    assert (tmp_path / "one.safetensors").read_bytes() == (
        tmp_path / "two.safetensors"
    ).read_bytes()
    assert not np.array_equal(one.tensors["W_answer"], other.tensors["W_answer"])


def test_training_leaves_the_global_generators_alone() -> None:
    before = torch.random.get_rng_state(), random.getstate()
    train_pronoun(SHORT)
    after = torch.random.get_rng_state(), random.getstate()
    assert torch.equal(before[0], after[0])
    assert before[1] == after[1]


def test_what_is_saved_is_what_was_trained(tmp_path: Path) -> None:
    encoder, _ = train_pronoun(SHORT)
    size = save_encoder(encoder, tmp_path / "short.safetensors")
    assert size == (tmp_path / "short.safetensors").stat().st_size
    loaded = Encoder.load(tmp_path / "short.safetensors")
    assert (loaded.words, loaded.answers, loaded.heads) == (VOCABULARY, ANSWERS, 2)
    assert loaded.pointing_head == encoder.pointing_head
    assert loaded.recipe == dataclasses.asdict(SHORT)
    assert all(np.array_equal(encoder.tensors[n], t) for n, t in loaded.tensors.items())


def test_a_saved_file_is_plain_safetensors_of_float16(tmp_path: Path) -> None:
    from safetensors import safe_open

    encoder = Encoder(initial_weights(0), pointing_head=(1, 2))
    save_encoder(encoder, tmp_path / "x.safetensors")
    with safe_open(tmp_path / "x.safetensors", framework="numpy") as file:
        assert {file.get_tensor(key).dtype for key in file.keys()} == {  # noqa: SIM118
            np.dtype(np.float16)
        }
        about = file.metadata()
    assert set(about) == {"heads", "words", "answers", "pointing_head", "recipe"}
    assert json.loads(about["pointing_head"]) == [1, 2]
    head = (tmp_path / "x.safetensors").read_bytes()
    assert int.from_bytes(head[:8], "little") % 8 == 0


def test_only_the_pronoun_is_scored() -> None:
    rng = random.Random(1)
    sentences = [Grammar().sentence(rng, "train") for _ in range(7)]
    batch = Batch.of(sentences)
    assert batch.lengths.tolist() == [len(s.words) for s in sentences]
    model = TorchEncoder(
        0, words=len(VOCABULARY), answers=len(ANSWERS), max_length=MAX_LENGTH, d_model=20, heads=2
    )
    numpy = Encoder(model.tensors(), heads=2)
    losses = [
        -np.log(numpy(s.words).probabilities(s.pronoun)[ANSWERS.index(s.answer)]) for s in sentences
    ]
    assert pronoun_loss(model, batch).item() == pytest.approx(np.mean(losses), rel=1e-4)
    part = batch.pick(torch.tensor([2, 5]))
    assert part.tokens.shape == (2, max(len(sentences[i].words) for i in (2, 5)))
    assert pronoun_loss(model, part).item() == pytest.approx(
        np.mean([losses[2], losses[5]]), rel=1e-4
    )


def test_names_and_recipes() -> None:
    assert name_and_recipe(3) == ("pronoun-3", Recipe(3))
    assert name_and_recipe(0, "shuffled") == ("pronoun-shuffled-0", Recipe(0, shuffled=True))
    assert name_and_recipe(1, "one-layer") == ("pronoun-one-layer-1", Recipe(1, layers=1))
    with pytest.raises(ValueError, match="shuffled, one-layer: found 'none'"):
        name_and_recipe(1, "none")


def test_the_command_says_what_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipes, "name_and_recipe", lambda *_: ("short", SHORT))
    main(["pronoun", "--seed", "3", "--out", str(tmp_path / "made.safetensors")])
    said = capsys.readouterr().out
    assert "made.safetensors" in said
    assert "from the stored weights" in said
    assert "95 % interval" in said
    assert Encoder.load(tmp_path / "made.safetensors").heads == 2


@pytest.mark.parametrize("arguments", [[], ["sentence"], ["pronoun", "--control", "none"]])
def test_the_command_refuses_what_it_does_not_know(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert "usage: python -m attention_lib.models.pronoun" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("control", [None, "shuffled", "one-layer"])
def test_the_command_remakes_what_is_shipped(control: str | None, tmp_path: Path) -> None:
    """The same conclusions on any machine, and nearly the same weights on a machine like ours."""
    name, recipe = name_and_recipe(0, control)
    out = tmp_path / f"{name}.safetensors"
    main(
        ["pronoun", "--seed", "0", "--out", str(out), *(["--control", control] if control else [])]
    )
    made, shipped = Encoder.load(out), Encoder.load(name)
    assert made.recipe == shipped.recipe == dataclasses.asdict(recipe)
    assert out.stat().st_size == (WEIGHTS / out.name).stat().st_size
    pairs = Grammar().minimal_pairs(200, 31)
    seen = measure_pointing(made, pairs)
    if control is None:
        rewired = measure_rewired(made, pairs)
        assert seen.answers >= 0.95
        assert seen.flips >= 0.95
        assert min(rewired.values, rewired.keys) >= 0.95
        assert rewired.off >= 0.9
        assert rewired.cut <= 0.1
        head = HeadOff(*(made.pointing_head or (0, 0)))
        assert made(pairs[0][0].words, [head]).answer(pairs[0][0].pronoun) == pairs[0][0].answer
    elif control == "one-layer":
        assert seen.answers >= 0.95
        assert seen.flips <= 0.05
    else:
        assert seen.answers <= 0.6
        assert seen.flips <= 0.05
