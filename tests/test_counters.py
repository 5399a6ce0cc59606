"""The counters of FLOPs and live bytes, against counts by hand and the formulas of `attention_lib.cost.layers`."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention_lib.cost import layer_costs, layer_flops, pairs_cost, weights_bytes
from attention_lib.cost.counters import ATEN, count_flops, peak_live_bytes
from attention_lib.torch import MultiHeadAttention, TransformerBlock, attention

DEVICES = ["cpu", "meta"]


def heads_of(n: int, heads: int, d: int, device: str, *, grad: bool = False) -> list[Tensor]:
    """q, k and v (1, heads, n, d / heads)."""
    shape = (1, heads, n, d // heads)
    return [torch.ones(shape, device=device, requires_grad=grad) for _ in range(3)]


def forward(n: int, heads: int, d: int, device: str, **options: Any) -> Callable[[], Any]:
    q, k, v = heads_of(n, heads, d, device)
    return lambda: attention(q, k, v, **options)


def forward_backward(n: int, heads: int, d: int, device: str, **options: Any) -> Callable[[], Any]:
    q, k, v = heads_of(n, heads, d, device, grad=True)

    def call() -> None:
        out = attention(q, k, v, **options)
        assert isinstance(out, Tensor)
        backward(out)

    return call


def backward(out: Tensor) -> None:
    out.sum().backward()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("device", DEVICES)
def test_products_are_two_flops_a_multiply_add(device: str) -> None:
    def ones(*shape: int) -> Tensor:
        return torch.ones(shape, device=device)

    a, b, out = ones(3, 5), ones(5, 7), ones(3, 7)
    assert count_flops(lambda: a @ b) == 2 * 3 * 5 * 7
    assert count_flops(lambda: torch.mm(a, b, out=out)) == 2 * 3 * 5 * 7
    assert count_flops(lambda: ones(11, 3, 5) @ b) == 11 * 2 * 3 * 5 * 7
    assert count_flops(lambda: F.linear(a, ones(7, 5), ones(7))) == 2 * 3 * 5 * 7
    assert count_flops(lambda: a @ ones(5)) == 2 * 3 * 5
    assert count_flops(lambda: ones(5) @ ones(5)) == 2 * 5
    assert count_flops(lambda: torch.einsum("ij,ik->jk", a, ones(3, 7))) == 2 * 3 * 5 * 7
    assert count_flops(lambda: a.exp() + a) == 0
    a.requires_grad_()
    b.requires_grad_()
    assert count_flops(lambda: backward(a @ b)) == 3 * 2 * 3 * 5 * 7


def test_fused_attention_counts_on_a_cpu_too() -> None:
    q, k, v = (torch.ones(2, 3, n, 8, requires_grad=True) for n in (5, 7, 7))
    product = 2 * (2 * 3) * 5 * 7 * 8

    def fused(causal: bool = False) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    assert count_flops(fused) == 2 * product
    assert count_flops(lambda: fused(causal=True)) == 2 * product
    assert count_flops(lambda: backward(fused())) == (2 + 5) * product


@pytest.mark.parametrize("device", DEVICES)
def test_products_that_are_added_to_something(device: str) -> None:
    def ones(*shape: int) -> Tensor:
        return torch.ones(shape, device=device)

    a, b, many_a, many_b = ones(3, 5), ones(5, 7), ones(11, 3, 5), ones(11, 5, 7)
    product = 2 * 3 * 5 * 7
    assert count_flops(lambda: torch.addmm(ones(7), a, b)) == product
    assert count_flops(lambda: ones(3, 7).addmm_(a, b)) == product
    assert count_flops(lambda: torch.addbmm(ones(3, 7), many_a, many_b)) == 11 * product
    assert count_flops(lambda: ones(3, 7).addbmm_(many_a, many_b)) == 11 * product
    assert count_flops(lambda: ones(11, 3, 7).baddbmm_(many_a, many_b)) == 11 * product
    assert count_flops(lambda: torch.addmv(ones(3), a, ones(5))) == 2 * 3 * 5
    assert count_flops(lambda: ones(3).addmv_(a, ones(5))) == 2 * 3 * 5
    assert count_flops(lambda: torch.vdot(ones(5), ones(5))) == 2 * 5


@pytest.mark.parametrize(("kind", "gates"), [(nn.RNN, 1), (nn.GRU, 3), (nn.LSTM, 4)])
def test_recurrent_layers(kind: Any, gates: int) -> None:
    """W and U (gates · 11, 7 or 11) meet each of 5 · 3 tokens; backward, both sides of each product."""
    layer, x = kind(7, 11), torch.ones(5, 3, 7, requires_grad=True)
    products = 2 * (5 * 3) * (7 + 11) * gates * 11
    assert count_flops(lambda: layer(x)) == products
    with torch.no_grad():
        assert count_flops(lambda: layer(x)) == products
    first = 2 * 3 * 11 * gates * 11  # the state before the first token has no gradient
    assert count_flops(lambda: backward(layer(x)[0])) == 3 * products - first


@pytest.mark.parametrize("no_grad", [torch.no_grad, torch.inference_mode])
def test_layers_that_torch_runs_as_one_kernel(no_grad: Any) -> None:
    """It does so with an even number of heads."""
    layer = nn.TransformerEncoderLayer(24, 4, 96, batch_first=True).eval()
    heads = nn.MultiheadAttention(24, 4, batch_first=True).eval()
    x = torch.ones(1, 11, 24)
    once = layer_flops(11, 24)
    with no_grad():
        assert count_flops(lambda: layer(x)) == once.total
        assert count_flops(lambda: heads(x, x, x)) == once.projections + once.scores


def test_what_torch_may_use_is_as_before() -> None:
    def switches() -> list[Any]:
        fast = torch.backends.mha.get_fastpath_enabled()
        return [torch.backends.mkldnn.enabled, torch.backends.cudnn.enabled, fast]

    before = switches()
    assert any(before)
    count_flops(lambda: None)
    assert switches() == before
    with pytest.raises(ZeroDivisionError):
        count_flops(lambda: 1 // 0)
    assert switches() == before


def test_a_product_without_a_formula_is_an_error_not_0() -> None:
    a, b = torch.ones(3, 5), torch.ones(5, 7)
    x, layer = torch.ones(5, 3, 7), nn.LSTM(7, 11)
    state = torch.zeros(1, 3, 11)
    calls: dict[str, Callable[[], object]] = {
        "_sparse_addmm": lambda: torch.sparse.mm(a.to_sparse(), b),
        "_trilinear": lambda: nn.Bilinear(5, 7, 3)(a, torch.ones(3, 7)),
        "conv_tbc": lambda: torch.conv_tbc(x, torch.ones(3, 7, 4), torch.ones(4)),
        "linalg_matrix_exp": lambda: torch.linalg.matrix_exp(torch.ones(3, 3)),
        "_euclidean_dist": lambda: torch.cdist(torch.ones(31, 5), torch.ones(37, 5)),
        "mkldnn_rnn_layer": lambda: ATEN.mkldnn_rnn_layer(
            *(x, *layer.all_weights[0], state, state, False, [], 2, 11, 1, True, False, False, True)
        ),
    }
    with torch.no_grad():
        for name, call in calls.items():
            with pytest.raises(
                NotImplementedError, match=rf"no formula for torch\.ops\.aten\.{name}$"
            ):
                count_flops(call)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("causal", [False, True])
def test_attention_takes_what_the_formula_says_masked_or_not(device: str, causal: bool) -> None:
    n, heads, d = 11, 3, 15
    expected = pairs_cost(n * n, d, heads).flops
    assert expected == 2 * layer_costs(n, d)["self-attention"].multiply_adds
    assert count_flops(forward(n, heads, d, device, causal=causal)) == expected
    assert count_flops(forward_backward(n, heads, d, device, causal=causal)) == 3 * expected


@pytest.mark.parametrize("make", [forward, forward_backward])
def test_twice_the_tokens_are_four_times_the_flops_of_the_scores(
    make: Callable[..., Callable[[], Any]],
) -> None:
    two, four = (count_flops(make(n, 8, 512, "meta")) for n in (2000, 4000))
    assert four == 4 * two
    assert two in (pairs_cost(2000**2, 512, 8).flops, 3 * pairs_cost(2000**2, 512, 8).flops)


def test_the_number_of_heads_changes_exps_and_weights_but_no_flops() -> None:
    n, d = 257, 512
    for heads in (1, 8, 16):
        cost = pairs_cost(n * n, d, heads)
        out, weights = forward(n, heads, d, "meta", return_weights=True)()
        assert cost.weights == weights.numel() == heads * n * n
        assert count_flops(forward(n, heads, d, "meta")) == cost.flops == 4 * n * n * d
        assert out.numel() == n * d


@pytest.mark.parametrize("kv_heads", [1, 2, 8])
def test_grouped_heads_change_no_flops_of_the_scores(kv_heads: int) -> None:
    n = 37
    q, k = (torch.ones(1, heads, n, 64, device="meta") for heads in (8, kv_heads))
    assert count_flops(lambda: attention(q, k, k)) == 4 * n * n * 8 * 64
    module = MultiHeadAttention(512, 8, kv_heads=kv_heads, rng=0).to("meta")
    x = torch.ones(1, n, 512, device="meta")
    projections = 4 * n * 512 * 64 * (8 + kv_heads)
    assert count_flops(lambda: module(x)) == projections + 4 * n * n * 512


def test_a_layer_takes_24nd2_and_4n2d_and_grows_2_79_fold() -> None:
    block = TransformerBlock(512, 8, feed_forward=2048, rng=0).to("meta")
    peer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, device="meta")
    counted = {}
    for n in (2000, 4000):
        x = torch.ones(1, n, 512, device="meta", requires_grad=True)
        once = layer_flops(n, 512)
        counted[n] = count_flops(partial(block, x))
        assert counted[n] == once.total == 24 * n * 512**2 + 4 * n**2 * 512
        assert count_flops(partial(peer, x)) == once.total
        assert counted[n] + count_flops(partial(backward, block(x))) == 3 * once.total
    assert round(counted[4000] / counted[2000], 4) == 2.7886


def test_a_small_layer_takes_the_same_on_a_cpu() -> None:
    block = TransformerBlock(24, 3, feed_forward=96, rng=0)
    x = torch.ones(1, 11, 24)
    assert count_flops(lambda: block(x, causal=True)) == layer_flops(11, 24).total


@pytest.mark.parametrize("device", DEVICES)
def test_live_bytes_are_those_counted_by_hand(device: str) -> None:
    def zeros(n: int) -> Tensor:
        return torch.zeros(n, device=device)  # 4 bytes a number

    def chain() -> None:
        x = zeros(10)
        x = x + 1  # both alive: 80
        torch.cat((x, x))  # one, and 80 more

    before = zeros(1000)
    assert peak_live_bytes(lambda: None) == 0
    assert peak_live_bytes(lambda: zeros(10)) == 40
    assert peak_live_bytes(chain) == 120
    assert peak_live_bytes(lambda: [zeros(10) for _ in range(3)]) == 120
    assert peak_live_bytes(lambda: [zeros(10).sum() for _ in range(3)]) == 40 + 3 * 4
    assert peak_live_bytes(lambda: [zeros(10), zeros(10)[3:].view(7), before[3:]]) == 80
    assert peak_live_bytes(lambda: before.add_(1)) == 0
    assert peak_live_bytes(lambda: torch.add(before, 1, out=zeros(1000))) == 4000
    assert peak_live_bytes(lambda: zeros(10).add_(1).expand(5, 10)) == 40
    assert peak_live_bytes(lambda: zeros(10).resize_(30)) == 120
    assert peak_live_bytes(lambda: before.double()) == 8000


def test_numbers_that_become_a_tensor_count() -> None:
    assert peak_live_bytes(lambda: torch.tensor([1.0, 2.0, 3.0])) == 12
    assert peak_live_bytes(lambda: torch.from_numpy(np.zeros(7))) == 56


def test_what_a_graph_keeps_is_alive_until_the_backward_pass_frees_it() -> None:
    x = torch.ones(100, requires_grad=True)
    assert peak_live_bytes(lambda: x.exp().exp().exp()) == 1200
    assert peak_live_bytes(lambda: x.detach().exp().exp().exp()) == 800

    # exp is its own derivative and kept; a sum and its gradient; their product, which is x.grad
    assert peak_live_bytes(lambda: backward(x.exp())) == 2 * 400 + 2 * 4


def test_the_count_is_the_same_on_every_run_whatever_is_collected() -> None:
    def cycles() -> None:
        for _ in range(5):
            ring: list[Any] = [torch.zeros(10)]
            ring.append(ring)
            [[object()] for _ in range(2000)]  # enough for a collection, were it on

    assert [peak_live_bytes(cycles) for _ in range(3)] == [200, 200, 200]


def test_collection_goes_on_after_an_error() -> None:
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            with pytest.raises(ZeroDivisionError):
                peak_live_bytes(lambda: 1 // 0)
            assert gc.isenabled() == enabled
        finally:
            gc.enable()


@pytest.mark.parametrize("make", [forward, forward_backward])
@pytest.mark.parametrize("causal", [False, True])
def test_a_meta_tensor_holds_what_a_real_one_does(
    make: Callable[..., Callable[[], Any]], causal: bool
) -> None:
    on_cpu, on_meta = (
        peak_live_bytes(make(67, 3, 15, device, causal=causal)) for device in DEVICES
    )
    assert on_cpu == on_meta


def test_twice_the_tokens_are_four_times_the_live_bytes_of_dense_attention() -> None:
    two, four = (peak_live_bytes(forward(n, 8, 512, "meta")) for n in (2000, 4000))
    assert two == 2 * weights_bytes(2000, 8, size=4) == 256_000_000  # the scores and the weights
    assert four == 4 * two
    two, four = (peak_live_bytes(forward_backward(n, 8, 512, "meta")) for n in (2000, 4000))
    assert 3.9 <= four / two < 4
    two, four = (peak_live_bytes(forward(n, 8, 512, "meta", causal=True)) for n in (2000, 4000))
    assert 3.9 <= four / two < 4


def test_a_sparse_tensor_has_no_bytes_to_count() -> None:
    with pytest.raises(NotImplementedError, match=r"counts dense .* layout torch\.sparse_coo$"):
        peak_live_bytes(lambda: torch.eye(3).to_sparse())


@pytest.mark.parametrize("count", [count_flops, peak_live_bytes])
def test_what_cannot_be_called_is_an_error(count: Callable[[Any], int]) -> None:
    with pytest.raises(TypeError, match=r"call must be a function without arguments .*: found int"):
        count(3)
