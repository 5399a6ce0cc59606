"""Our modules and functions beside those that a user has installed, with the same weights.

float32, one thread, forward only. Each pair must agree before it is timed. The peers are torch's
nn.MultiheadAttention and F.scaled_dot_product_attention (SDPA), and, where transformers is installed,
the attention of its BERT. Takes about a minute.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

import attention_lib
import attention_lib.torch
from attention_lib.shapes import Array

from .harness import Result, compare, report

D_MODEL, HEADS, SIZES = 512, 8, ((8, 64), (1, 1024))  # sizes: sentences and tokens
CLOSE, ROUNDS = 1e-5, 21
# The bars: of a module of NumPy's and of torch's, of a dense and of a tiled function.
NUMPY_BAR, TORCH_BAR, BERT_BAR, DENSE_BAR, TILED_BAR = 2.0, 2.0, 3.0, 4.0, 3.0
Pair = tuple[str, Callable[[], Any], Callable[[], Any], float]


def run() -> Iterator[Result]:
    """Every pair at every size: first that both give the same, then their ratio."""
    torch.set_num_threads(1)
    for sentences, tokens in SIZES:
        size = f"{sentences} × {tokens:,} tokens"
        for pairs in (modules, functions, transformers):
            for name, ours, peer, bar in pairs(sentences, tokens):
                yield agreeing(f"{name}, {size}", ours, peer, bar=bar)


def agreeing(
    name: str, ours: Callable[[], Any], peer: Callable[[], Any], *, bar: float, **options: Any
) -> Result:
    """Compare the times of two calls. Raises AssertionError unless they give the same numbers."""
    with torch.inference_mode():
        np.testing.assert_allclose(ours(), peer(), atol=CLOSE, rtol=0, err_msg=name)
        return compare(name, ours, peer, bar=bar, **{"rounds": ROUNDS, **options})


def modules(sentences: int, tokens: int) -> Iterator[Pair]:
    """Multi-head attention with its projections, of NumPy and of torch, beside torch's own."""
    ours = attention_lib.torch.MultiHeadAttention(D_MODEL, HEADS, bias=True, rng=0).eval()
    peer = partial(ours.to_torch(), need_weights=False)
    plain = attention_lib.MultiHeadAttention(D_MODEL, HEADS, bias=True, rng=0)
    for name, weight in ours.state_dict().items():
        setattr(plain, name, weight.numpy())
    x = drawn(sentences, tokens, D_MODEL)
    y = torch.from_numpy(x)

    def theirs() -> Any:
        return peer(y, y, y)[0]

    yield "NumPy module beside nn.MultiheadAttention", partial(plain, x), theirs, NUMPY_BAR
    yield "torch module beside nn.MultiheadAttention", partial(ours, y), theirs, TORCH_BAR


def functions(sentences: int, tokens: int) -> Iterator[Pair]:
    """The attention functions beside F.scaled_dot_product_attention, causal too."""
    arrays = [drawn(sentences, HEADS, tokens, D_MODEL // HEADS, seed=i) for i in range(3)]
    q, k, v = tensors = [torch.from_numpy(x) for x in arrays]
    of_torch = attention_lib.torch
    for name, attend, given, bar in (
        ("NumPy attention", attention_lib.attention, arrays, DENSE_BAR),
        ("NumPy tiled", attention_lib.tiled_attention, arrays, TILED_BAR),
        ("torch attention", of_torch.attention, tensors, DENSE_BAR),
        ("torch tiled", of_torch.tiled_attention, tensors, TILED_BAR),
    ):
        for causal in (False, True):
            ours: Any = partial(attend, *given, causal=causal)
            peer = partial(F.scaled_dot_product_attention, q, k, v, is_causal=causal)
            yield f"{name}{', causal' * causal} beside SDPA", ours, peer, bar


def transformers(
    sentences: int, tokens: int, load: Callable[[str], Any] = importlib.import_module
) -> Iterator[Pair]:
    """The torch module beside BERT's self-attention and a linear layer, if there is transformers."""
    try:
        make_config = load("transformers").BertConfig
        bert = load("transformers.models.bert.modeling_bert").BertSelfAttention
    except ImportError as error:
        print(f"Left out, transformers: {error}")
        return
    options = {"hidden_size": D_MODEL, "num_attention_heads": HEADS, "attn_implementation": "sdpa"}
    theirs, last = bert(make_config(**options)).eval(), torch.nn.Linear(D_MODEL, D_MODEL)
    ours = attention_lib.torch.MultiHeadAttention(D_MODEL, HEADS, bias=True, rng=0).eval()
    linears = zip("QKVO", (theirs.query, theirs.key, theirs.value, last), strict=True)
    with torch.no_grad():
        for name, linear in linears:
            linear.weight.copy_(getattr(ours, f"W_{name}").mT)
            linear.bias.copy_(getattr(ours, f"b_{name}"))
    x = torch.from_numpy(drawn(sentences, tokens, D_MODEL))
    yield "torch module beside BERT's", partial(ours, x), lambda: last(theirs(x)[0]), BERT_BAR


def drawn(*shape: int, seed: int = 0) -> Array:
    """Normal numbers, float32."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


if __name__ == "__main__":
    raise SystemExit(report(run()))
