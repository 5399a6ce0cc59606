"""The benchmark beside peers: each pair agrees, a peer that does not is refused, one that is missing is named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks import __main__ as benchmarks_main
from benchmarks import peers


class FakeBert(nn.Module):
    """What the benchmark uses of transformers' BertSelfAttention."""

    scale: float | None = None

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.heads, width = config.num_attention_heads, config.hidden_size
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Tensor) -> tuple[Tensor]:
        q, k, v = (
            linear(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )
        out = F.scaled_dot_product_attention(q, k, v, scale=self.scale)
        return (out.transpose(1, 2).flatten(2),)


class Unscaled(FakeBert):
    scale = 1.0


def loader(bert: type[FakeBert]) -> Any:
    found = {
        "transformers": SimpleNamespace(BertConfig=SimpleNamespace),
        "transformers.models.bert.modeling_bert": SimpleNamespace(BertSelfAttention=bert),
    }
    return found.__getitem__


def compared(pairs: Any) -> list[str]:
    """The names of all pairs, each compared once."""
    results = [
        peers.agreeing(name, ours, peer, bar=bar, rounds=1, seconds=0.0)
        for name, ours, peer, bar in pairs
    ]
    return [result.name for result in results]


def test_all_pairs_agree() -> None:
    assert len(compared(peers.modules(2, 5))) == 2
    assert len(compared(peers.functions(2, 5))) == 8
    assert compared(peers.transformers(2, 5, loader(FakeBert))) == ["torch module beside BERT's"]


@pytest.mark.parametrize("pairs", [peers.modules, peers.functions])
def test_every_peer_is_torchs(pairs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With others in torch's place no pair agrees; so ours stands on one side only."""

    def wrong(*x: Tensor, **_: Any) -> Tensor:
        return x[-3] + 1

    monkeypatch.setattr(peers, "F", SimpleNamespace(scaled_dot_product_attention=wrong))
    monkeypatch.setattr(nn.MultiheadAttention, "forward", lambda *x, **_: (wrong(*x), None))
    for pair in pairs(2, 5):
        with pytest.raises(AssertionError, match=pair[0]):
            compared([pair])


def test_a_peer_that_computes_something_else_is_refused() -> None:
    with pytest.raises(AssertionError, match="torch module beside BERT's"):
        compared(peers.transformers(2, 5, loader(Unscaled)))
    x = torch.ones(3)
    with pytest.raises(AssertionError, match="name of the pair"):
        peers.agreeing("name of the pair", lambda: x, lambda: x + 1e-4, bar=1.0)


def test_a_peer_that_is_not_installed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    def load(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    assert compared(peers.transformers(2, 5, load)) == []
    assert capsys.readouterr().out == "Left out, transformers: No module named 'transformers'\n"


def test_the_command_knows_it() -> None:
    assert benchmarks_main.BENCHMARKS["peers"] is peers.run
