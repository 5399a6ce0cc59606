"""The torch modules: against torch.nn, against the NumPy encoder, and the faults others had."""

import contextlib
import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import attention_lib
from attention_lib.cost.counters import peak_live_bytes
from attention_lib.models.corpus import ANSWERS, MAX_LENGTH, VOCABULARY
from attention_lib.models.encoder import Encoder as NumpyEncoder
from attention_lib.models.encoder import initial_weights
from attention_lib.models.torch_encoder import Encoder
from attention_lib.shapes import ShapeError
from attention_lib.torch import attention, backends
from attention_lib.torch.modules import KeyValueCache, MultiHeadAttention, TransformerBlock

B, T, S, D = 3, 5, 7, 22
FLOAT64 = torch.float64


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """A seed for what torch's own generator draws; it is put back afterwards."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def both(mha: MultiHeadAttention, *inputs: Tensor, **options: object) -> tuple[Tensor, Tensor]:
    out, weights = mha(*inputs, return_weights=True, **options)
    return out, weights


@pytest.mark.parametrize(
    ("bias", "batch_first", "kdim", "vdim"),
    list(itertools.product([False, True], [False, True], [None, 9], [None, 13])),
)
def test_agrees_with_torch_by_copied_weights(
    bias: bool, batch_first: bool, kdim: int | None, vdim: int | None
) -> None:
    """Outputs, each head's weights, and the gradients of inputs and weights, in float64."""
    theirs = nn.MultiheadAttention(
        D, 2, bias=bias, batch_first=batch_first, kdim=kdim, vdim=vdim, dtype=FLOAT64
    )
    if bias:
        nn.init.normal_(theirs.in_proj_bias)
        nn.init.normal_(theirs.out_proj.bias)
    ours = MultiHeadAttention.from_torch(theirs)
    mask = randn(T, S, seed=4) > -0.8
    mask[:, 0] = True
    inputs = [
        randn(B, T, D, seed=1, dtype=FLOAT64),
        randn(B, S, kdim or D, seed=2, dtype=FLOAT64),
        randn(B, S, vdim or D, seed=3, dtype=FLOAT64),
    ]
    mine = [x.clone().requires_grad_() for x in inputs]
    yours = [x.clone().requires_grad_() for x in inputs]
    out, weights = both(ours, mine[0], mine[1], mask, values=mine[2])
    q, k, v = yours if batch_first else [x.transpose(0, 1) for x in yours]
    expected, theirs_weights = theirs(q, k, v, attn_mask=~mask, average_attn_weights=False)
    expected = expected if batch_first else expected.transpose(0, 1)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-13)
    torch.testing.assert_close(weights, theirs_weights, rtol=0, atol=1e-13)

    d_out = randn(B, T, D, seed=5, dtype=FLOAT64)
    torch.autograd.backward(out, d_out)
    torch.autograd.backward(expected, d_out)
    for one, two in zip(mine, yours, strict=True):
        torch.testing.assert_close(one.grad, two.grad, rtol=0, atol=1e-12)
    assert ours.W_O.grad is not None
    assert theirs.out_proj.weight.grad is not None
    torch.testing.assert_close(ours.W_O.grad.mT, theirs.out_proj.weight.grad, rtol=0, atol=1e-12)
    if kdim is None and vdim is None:
        grads = [ours.W_Q.grad, ours.W_K.grad, ours.W_V.grad]
        stacked = torch.cat([grad for grad in grads if grad is not None], 1)
        torch.testing.assert_close(stacked.mT, theirs.in_proj_weight.grad, rtol=0, atol=1e-12)


def test_a_copy_keeps_mode_dtype_and_dropout_and_shares_nothing() -> None:
    theirs = nn.MultiheadAttention(D, 2, dropout=0.25, dtype=FLOAT64).eval()
    ours = MultiHeadAttention.from_torch(theirs)
    assert (ours.training, ours.dropout, ours.W_Q.dtype) == (False, 0.25, FLOAT64)
    before = theirs.in_proj_weight.clone()
    nn.init.zeros_(ours.W_Q)
    assert torch.equal(theirs.in_proj_weight, before)


@pytest.mark.parametrize(
    ("bias", "d_context", "d_values"),
    list(itertools.product([False, True], [None, 9], [None, 13])),
)
def test_torch_agrees_with_weights_copied_into_it(
    bias: bool, d_context: int | None, d_values: int | None
) -> None:
    """Outputs, each head's weights, and the gradients of inputs and of all weights, in float64."""
    sizes: dict[str, Any] = {"bias": bias, "d_context": d_context, "d_values": d_values}
    ours = MultiHeadAttention(D, 2, rng=3, **sizes).double()
    state = torch.random.get_rng_state()
    theirs = ours.to_torch()
    assert torch.equal(state, torch.random.get_rng_state())
    mask = randn(T, S, seed=4) > -0.8
    mask[:, 0] = True
    inputs = [
        randn(B, T, D, seed=1, dtype=FLOAT64),
        randn(B, S, d_context or D, seed=2, dtype=FLOAT64),
        randn(B, S, d_values or D, seed=3, dtype=FLOAT64),
    ]
    mine, yours = ([x.clone().requires_grad_() for x in inputs] for _ in range(2))
    out, weights = both(ours, mine[0], mine[1], mask, values=mine[2])
    expected, theirs_weights = theirs(*yours, attn_mask=~mask, average_attn_weights=False)
    torch.testing.assert_close(expected, out, rtol=0, atol=1e-13)
    torch.testing.assert_close(theirs_weights, weights, rtol=0, atol=1e-13)

    d_out = randn(B, T, D, seed=5, dtype=FLOAT64)
    torch.autograd.backward(out, d_out)
    torch.autograd.backward(expected, d_out)
    for one, two in zip(mine, yours, strict=True):
        torch.testing.assert_close(one.grad, two.grad, rtol=0, atol=1e-12)
    back = MultiHeadAttention.from_torch(theirs)
    for name, weight in ours.named_parameters():
        assert torch.equal(weight, back.get_parameter(name)), name
    with torch.no_grad():  # then its gradients are copied back in place of its weights
        for parameter in theirs.parameters():
            assert parameter.grad is not None
            parameter.copy_(parameter.grad)
    grads = MultiHeadAttention.from_torch(theirs)
    for name, weight in ours.named_parameters():
        assert weight.grad is not None
        torch.testing.assert_close(grads.get_parameter(name), weight.grad, rtol=0, atol=1e-12)


def test_a_copy_in_torch_keeps_mode_dtype_and_dropout_and_shares_nothing() -> None:
    ours = MultiHeadAttention(D, 2, bias=True, dropout=0.25, rng=3).double().eval()
    theirs = ours.to_torch()
    assert (theirs.training, theirs.dropout, theirs.batch_first) == (False, 0.25, True)
    assert theirs.out_proj.weight.dtype == FLOAT64
    assert all(p.requires_grad and p.is_leaf for p in theirs.parameters())
    before = ours.W_Q.clone(), ours.b_O.clone()  # type: ignore[union-attr]
    for parameter in theirs.parameters():
        nn.init.zeros_(parameter)
    assert torch.equal(ours.W_Q, before[0])
    assert torch.equal(ours.b_O, before[1])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ({"kv_heads": 1}, r"heads 2, kv_heads 1, H·d_k 22, H·d_v 22"),
        ({"d_k": 7}, r"share d_model = 22: found .* H·d_k 14, H·d_v 22"),
        ({"d_v": 13}, r"H·d_k 22, H·d_v 26"),
    ],
)
def test_what_torch_has_no_place_for(sizes: dict[str, int], found: str) -> None:
    with pytest.raises(ValueError, match=found):
        MultiHeadAttention(D, 2, rng=0, **sizes).to_torch()  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["add_bias_kv", "add_zero_attn"])
def test_what_cannot_be_copied(option: str) -> None:
    with pytest.raises(ValueError, match="add_bias_kv and add_zero_attn"):
        MultiHeadAttention.from_torch(nn.MultiheadAttention(6, 2, **{option: True}))
    with pytest.raises(TypeError, match=r"found torch\.nn\.modules\.linear\.Linear"):
        MultiHeadAttention.from_torch(nn.Linear(2, 2))  # type: ignore[arg-type]


@pytest.mark.parametrize("kv_heads", [1, 2, 6])
@pytest.mark.parametrize("bias", [False, True])
def test_agrees_with_numpy_by_copied_weights(kv_heads: int, bias: bool) -> None:
    sizes = {"kv_heads": kv_heads, "d_k": 3, "d_v": 5, "bias": bias}
    ours = MultiHeadAttention(D, 6, rng=1, **sizes)  # type: ignore[arg-type]
    numpy = attention_lib.MultiHeadAttention(D, 6, rng=2, **sizes)  # type: ignore[arg-type]
    for name, tensor in ours.state_dict().items():
        assert getattr(numpy, name).shape == tuple(tensor.shape)
        setattr(numpy, name, tensor.numpy())
    x, context = randn(B, T, D, seed=1), randn(B, S, D, seed=2)
    mask = randn(T, S, seed=3) > 0
    out, weights = both(ours, x, context, mask)
    expected, numpy_weights = numpy(x.numpy(), context.numpy(), mask.numpy(), return_weights=True)
    np.testing.assert_allclose(out.detach(), expected, atol=2e-6)
    np.testing.assert_allclose(weights.detach(), numpy_weights, atol=1e-6)


def test_n11_weights_are_returned_before_dropout() -> None:
    """With one key each weight is 1, in training too; the dropped ones would be 0 or 1.25."""
    mha = MultiHeadAttention(D, 2, dropout=0.2, rng=0).train()
    out, weights = both(mha, randn(B, T, D), randn(B, 1, D, seed=1))
    assert torch.equal(weights, torch.ones(B, 2, T, 1))
    assert not torch.equal(out, out[:, :1].expand_as(out))  # what is added up did lose some
    _, weights = both(mha, randn(B, T, D))
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, 2, T))


def test_dropout_keeps_the_mean_and_follows_its_seed() -> None:
    mha = MultiHeadAttention(D, 2, kv_heads=1, dropout=0.3, rng=0).train()
    x = randn(B, T, D)
    with seeded(0):
        outs = torch.stack([mha(x) for _ in range(1000)])
    torch.testing.assert_close(outs.mean(0), mha.eval()(x), rtol=0, atol=0.05)
    with seeded(0):
        assert torch.equal(mha.train()(x), outs[0])


def test_dropout_reads_nothing_hidden() -> None:
    mha = MultiHeadAttention(D, 2, dropout=0.4, rng=0).train()
    context = randn(B, S, D, seed=1)
    context[:, -1] = torch.nan
    mask = torch.arange(S) < S - 1
    out, weights = both(mha, randn(B, T, D), context, mask.expand(T, S))
    assert out.isfinite().all()
    assert weights.isfinite().all()


def test_dropout_is_exact_in_half_precision_and_lets_visible_poison_through() -> None:
    """The weights that are dropped and summed are those of float32, not their rounded copy."""
    mha = MultiHeadAttention(D, 2, dropout=0.4, rng=0).train()
    x = randn(B, 60, D)
    half = MultiHeadAttention(D, 2, dropout=0.4, rng=0).train().bfloat16()
    with seeded(0):
        out = mha(x)
    with seeded(0):
        torch.testing.assert_close(half(x.bfloat16()).float(), out, rtol=0, atol=0.03)
    x[:, 3] = torch.nan
    assert mha(x, causal=True)[:, 3:].isnan().all()


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradients_under_checkpointing_are_those_without(reentrant: bool) -> None:
    """Checkpointing makes the pass again for its gradients: the same weights are dropped."""
    mha = MultiHeadAttention(D, 2, dropout=0.5, rng=0).train()
    layers = nn.Sequential(mha, nn.LayerNorm(D), mha)  # the same module twice in one pass
    found: list[list[Tensor]] = []
    for again in (False, True):
        x = randn(B, T, D, seed=1).requires_grad_()
        layers.zero_grad()
        with seeded(3):
            out = checkpoint(layers, x, use_reentrant=reentrant) if again else layers(x)
            torch.autograd.backward(out.square().sum())
        leaves = [x, *layers.parameters()]
        found.append([out.detach(), *(p.grad for p in leaves if p.grad is not None)])
    assert len(found[0]) == 1 + 1 + 4 + 2
    assert not torch.equal(found[0][0], layers.eval()(x)), "nothing was dropped"
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


def test_a7_dropout_is_off_in_eval() -> None:
    mha = MultiHeadAttention(D, 2, dropout=0.5, rng=0).eval()
    x = randn(B, T, D)
    assert torch.equal(mha(x), mha(x))
    assert not torch.equal(mha.train()(x), mha(x))


def test_a8_samples_of_a_batch_do_not_touch() -> None:
    x = randn(B, T, D)
    y = x.clone()
    y[1] += 3
    mha = MultiHeadAttention(D, 2, rng=0)
    block = TransformerBlock(D, 2, feed_forward=31, rng=0)
    for one, two in ((mha(x), mha(y)), (block(x), block(y))):
        assert torch.equal(one[[0, 2]], two[[0, 2]])
        assert not torch.equal(one[1], two[1])
    encoder = small_encoder()
    tokens = torch.tensor([[1, 2, 3], [4, 5, 6]])
    changed = torch.tensor([[1, 2, 3], [4, 9, 6]])
    assert torch.equal(encoder(tokens)[0][0], encoder(changed)[0][0])


@pytest.mark.parametrize("training", [False, True])
def test_a20_asking_for_weights_changes_nothing(training: bool) -> None:
    mha = MultiHeadAttention(D, 2, rng=0).train(training)
    x = randn(B, 4, D)
    out, weights = both(mha, x, causal=True)
    assert torch.equal(out, mha(x, causal=True))
    assert not weights.triu(1).any()
    changed = x.clone()
    changed[:, 3] += 1
    assert torch.equal(mha(changed, causal=True)[:, :3], out[:, :3])


def test_starting_weights_follow_the_seed_and_leave_torch_alone() -> None:
    before = torch.random.get_rng_state()
    one = MultiHeadAttention(D, 2, bias=True, rng=4)
    two = MultiHeadAttention(D, 2, bias=True, rng=torch.Generator().manual_seed(4))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not torch.equal(one.W_Q, MultiHeadAttention(D, 2, rng=5).W_Q)
    MultiHeadAttention(D, 2, dropout=0.5, rng=4).eval()(randn(B, T, D))
    MultiHeadAttention(D, 2, rng=4).train()(randn(B, T, D))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert float(one.W_Q.detach().abs().max()) <= 1 / D**0.5


def test_a_module_can_be_copied_and_saved() -> None:
    mha = MultiHeadAttention(D, 2, bias=True, dropout=0.3, rng=0)
    twin = copy.deepcopy(mha)
    x = randn(B, T, D)
    with seeded(0):
        out = mha(x)
    with seeded(0):
        assert torch.equal(out, twin(x))
    fresh = MultiHeadAttention(D, 2, bias=True, rng=1)
    fresh.load_state_dict(mha.state_dict())
    assert torch.equal(fresh(x), mha.eval()(x))


def test_half_precision_and_autocast() -> None:
    x = randn(B, T, D)
    exact = MultiHeadAttention(D, 2, rng=0).double()(x.double())
    mha = MultiHeadAttention(D, 2, rng=0)
    out = mha.to(torch.bfloat16)(x.bfloat16())
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.double(), exact, rtol=0, atol=0.02)
    with torch.autocast("cpu", torch.bfloat16):
        auto = MultiHeadAttention(D, 2, rng=0)(x)
    torch.testing.assert_close(auto.double(), exact, rtol=0, atol=0.02)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"heads": 3}, "d_model 22, heads 3"),
        ({"heads": 6, "kv_heads": 4, "d_k": 3, "d_v": 3}, "heads 6, kv_heads 4"),
        ({"heads": 2, "dropout": 1.0}, r"below 1: found 1\.0"),
        ({"heads": 0}, "heads must be at least 1: found 0"),
    ],
)
def test_sizes_that_do_not_fit(arguments: dict[str, float], found: str) -> None:
    with pytest.raises(ValueError, match=found):
        MultiHeadAttention(D, rng=0, **arguments)  # type: ignore[arg-type]


def test_inputs_that_do_not_fit() -> None:
    mha = MultiHeadAttention(D, 2, d_context=9, rng=0)
    with pytest.raises(ShapeError, match=r"x must be .* last axis of 22: x \(3, 5, 9\)"):
        mha(randn(B, T, 9), randn(B, S, 9))
    with pytest.raises(
        ShapeError, match=r"context must be .* last axis of 9: context \(3, 5, 22\)"
    ):
        mha(randn(B, T, D))
    with pytest.raises(TypeError, match=r"share a dtype: torch\.float64, torch\.float32"):
        mha(randn(B, T, D, dtype=FLOAT64))
    with pytest.raises(TypeError, match=r"x must be a torch tensor .*found numpy\.ndarray"):
        mha(np.ones((B, T, D)))
    with pytest.raises(TypeError, match=r"share a device: meta, cpu"):
        mha(randn(B, T, D).to("meta"), randn(B, S, 9))
    for rng in (np.random.default_rng(0), "0", 0.5, None):
        with pytest.raises(
            TypeError, match=r"rng, a seed or a torch\.Generator, must be an integer"
        ):
            MultiHeadAttention(D, 2, rng=rng)  # type: ignore[arg-type]
    for rng in (-1, 2**70):
        with pytest.raises(ValueError, match=f"rng, a seed.*: found {rng}"):
            MultiHeadAttention(D, 2, rng=rng)
    same = MultiHeadAttention(D, 2, rng=np.int64(3)).W_Q
    assert torch.equal(same, MultiHeadAttention(D, 2, rng=3).W_Q)


def test_a_block_checks_its_tokens_before_its_norm() -> None:
    block = TransformerBlock(D, 2, rng=0)
    with pytest.raises(ShapeError, match=r"x must be .* last axis of 22: x \(3, 5, 9\)"):
        block(randn(B, T, 9))
    with pytest.raises(TypeError, match=r"x must be a torch tensor .*found numpy\.ndarray"):
        block(np.ones((B, T, D)))
    with pytest.raises(TypeError, match=r"x must hold .*: found int64"):
        block(torch.ones(B, T, D, dtype=torch.long))
    with pytest.raises(TypeError, match=r"share a dtype: torch\.float64, torch\.float32"):
        block(randn(B, T, D, dtype=FLOAT64))
    with pytest.raises(ValueError, match="feed_forward must be at least 0: found -1"):
        TransformerBlock(D, 2, feed_forward=-1, rng=0)


@pytest.mark.parametrize("dropout", ["a", None, float("nan")])
def test_dropout_that_is_no_share(dropout: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"dropout must be"):
        MultiHeadAttention(D, 2, dropout=dropout, rng=0)


def small_encoder(seed: int = 3, feed_forward: int = 0) -> Encoder:
    return Encoder(
        seed,
        words=len(VOCABULARY),
        answers=len(ANSWERS),
        max_length=MAX_LENGTH,
        layers=3,
        heads=3,
        d_model=33,
        feed_forward=feed_forward,
    )


@pytest.mark.parametrize("feed_forward", [0, 17])
def test_the_encoder_agrees_with_numpy(feed_forward: int) -> None:
    encoder = small_encoder(feed_forward=feed_forward)
    tensors = initial_weights(3, layers=3, heads=3, d_model=33, feed_forward=feed_forward)
    assert {name: t.shape for name, t in encoder.tensors().items()} == {
        name: t.shape for name, t in tensors.items()
    }
    assert all(np.array_equal(tensors[name], t) for name, t in encoder.tensors().items())
    numpy = NumpyEncoder(tensors, heads=3)
    short, long = "it was too wide", "the animal did not cross the street ."
    rows = [numpy.encode(short) + (0,) * 4, numpy.encode(long)]
    logits, weights = encoder(torch.tensor(rows), torch.tensor([4, 8]))
    for row, words, n in ((0, short, 4), (1, long, 8)):
        run = numpy(words)
        np.testing.assert_allclose(logits[row, :n].detach(), run.logits, atol=1e-5)
        for layer in range(3):
            np.testing.assert_allclose(
                weights[layer][row, :, :n, :n].detach(), run.weights[layer], atol=1e-5
            )
    assert not weights[0][0, :, :, 4:].any()


@pytest.mark.parametrize("feed_forward", [0, 17])
def test_the_encoder_takes_over_tensors(feed_forward: int) -> None:
    one, two = small_encoder(1, feed_forward), small_encoder(2, feed_forward)
    tokens = torch.tensor([[5, 3, 2]])
    two.load_tensors(one.tensors())
    assert torch.equal(one(tokens)[0], two(tokens)[0])
    assert not torch.equal(one(tokens)[0], small_encoder(2, feed_forward)(tokens)[0])
    with pytest.raises(ShapeError, match=r"missing, unknown or misshapen weights: .*embedding"):
        one.load_tensors({"embedding": np.zeros((2, 2), dtype=np.float32)})


@pytest.mark.parametrize(
    ("tokens", "kind", "found"),
    [
        (torch.ones(2, 3), TypeError, r"int32 or int64: found torch\.float32"),
        ([[1, 2]], TypeError, "int32 or int64: found list"),
        (torch.tensor(3), ShapeError, r"tokens must be \(B, T\): tokens \(\)"),
        (torch.tensor([3]), ShapeError, r"tokens must be \(B, T\): tokens \(1,\)"),
        (torch.tensor([[0, -1]]), ValueError, r"tokens must be from 0 to \d+: found -1"),
        (torch.tensor([[0, 9999]]), ValueError, "found 9999"),
    ],
)
def test_tokens_that_the_encoder_cannot_read(
    tokens: Any, kind: type[Exception], found: str
) -> None:
    with pytest.raises(kind, match=found):
        small_encoder()(tokens)


def test_what_else_the_encoder_refuses() -> None:
    tokens = torch.tensor([[1, 2, 3]] * 4)
    for lengths in ([3], [3] * 5):
        with pytest.raises(ShapeError, match=r"lengths must be \(B,\) with B 4: lengths \("):
            small_encoder()(tokens, lengths)
    with pytest.raises(ShapeError, match=r"lengths must have one axis \(B,\): lengths \(4, 1\)"):
        small_encoder()(tokens, torch.full((4, 1), 3))
    with pytest.raises(TypeError, match="seed must be an integer: found '3'"):
        small_encoder("3")  # type: ignore[arg-type]
    tensors: Any = small_encoder().tensors()
    with pytest.raises(TypeError, match=r"b_answer must be a NumPy array .*found list"):
        small_encoder().load_tensors(tensors | {"b_answer": tensors["b_answer"].tolist()})


def test_a25_a_sentence_longer_than_the_encoder_reads() -> None:
    with pytest.raises(ValueError, match="24 tokens; the encoder reads at most 23"):
        small_encoder()(torch.zeros(1, 24, dtype=torch.long))


def test_every_weight_of_the_encoder_gets_a_gradient() -> None:
    encoder = small_encoder(feed_forward=17)
    logits, _ = encoder(torch.tensor([[5, 3, 2], [7, 1, 0]]), torch.tensor([3, 2]))
    torch.autograd.backward(logits.square().mean())
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


def test_shipped_weights_give_the_same_in_torch_and_numpy() -> None:
    numpy = NumpyEncoder.load("pronoun-2")
    encoder = Encoder(0, words=len(VOCABULARY), answers=len(ANSWERS), max_length=MAX_LENGTH)
    encoder.load_tensors(numpy.tensors)
    words = "the animal did not cross the street because it was too wide"
    logits, weights = encoder(torch.tensor([numpy.encode(words)]))
    run = numpy(words)
    np.testing.assert_allclose(logits[0].detach(), run.logits, atol=1e-5)
    for layer in range(2):
        np.testing.assert_allclose(weights[layer][0].detach(), run.weights[layer], atol=1e-5)


# ---------------------------------------------------------------- fast ways, caches, hidden tokens


def test_modules_take_the_way_that_attention_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """And hold all weights only where these are asked for, or some are dropped."""
    monkeypatch.setattr(backends, "MANY", 1)
    monkeypatch.setattr(backends, "LONG", 1)
    chosen: list[str] = []
    choose = backends._choose

    def note(*given: Any) -> Any:
        chosen.append(choose(*given).name)
        return choose(*given)

    monkeypatch.setattr(backends, "_choose", note)
    x = randn(B, T, D)
    for module in (MultiHeadAttention(D, 2, rng=0), TransformerBlock(D, 2, rng=0)):
        module(x)
        out, weights = module(x, return_weights=True)
        assert (out.shape, weights.shape) == ((B, T, D), (B, 2, T, T))
    assert chosen == ["tiled", "dense"] * 2


@pytest.mark.parametrize("make", [MultiHeadAttention, TransformerBlock])
def test_modules_hold_no_weights_that_nobody_wants(make: Callable[..., nn.Module]) -> None:
    """Eight heads of 2,048 tokens: all weights would be 134 MB; with gradients too."""
    module, n = make(64, 8, rng=0), 2048
    x = randn(1, n, 64)
    q, k, v = (randn(1, 8, n, 8, seed=i).requires_grad_() for i in range(3))
    alone = peak_live_bytes(lambda: attention(q, k, v, causal=True))
    found = peak_live_bytes(lambda: module(x, causal=True))
    assert alone < found < alone + 8 * 4 * n * 64 < 4 * 8 * n * n / 4


@torch.no_grad()
def test_a_cache_keeps_nothing_that_was_refused() -> None:
    mha = MultiHeadAttention(8, 2, rng=0)
    cache, x = KeyValueCache(), randn(2, 5, 8)
    mha(x, causal=True, cache=cache)
    one = x[:, :1]
    with pytest.raises(ShapeError, match=r"mask \(1, 1, 3, 3\)"):
        mha(one, mask=torch.ones(1, 1, 3, 3, dtype=torch.bool), cache=cache)
    with pytest.raises(ShapeError, match=r"cached \(2, 2, 5, 4\), new \(3, 2, 1, 4\)"):
        mha(randn(3, 1, 8), cache=cache)
    with pytest.raises(ShapeError, match=r"cached \(2, 2, 5, 4\), new \(2, 4, 1, 2\)"):
        MultiHeadAttention(8, 4, rng=0)(one, cache=cache)
    with pytest.raises(TypeError, match=r"cached torch.float32 on cpu, new torch.float64 on cpu"):
        MultiHeadAttention(8, 2, rng=0).double()(one.double(), cache=cache)
    with pytest.raises(TypeError, match="causal must be True or False"):
        mha(one, causal="yes", cache=cache)
    assert len(cache) == 5
    torch.testing.assert_close(
        mha(one, causal=True, cache=cache), mha(one, torch.cat([x, one], 1), causal=True)
    )
    assert len(cache) == 6


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_nan_in_hidden_tokens_reaches_no_parameter(dropout: float) -> None:
    """The last two of the context are hidden from all; in a row padded on the left, causal, the
    first two of x see nothing."""
    mha = MultiHeadAttention(D, 2, dropout=dropout, bias=True, rng=0)
    x, context = randn(B, T, D), randn(B, S, D, seed=1)
    right = (torch.arange(S) < S - 2).expand(B, 1, T, S)
    left = (torch.arange(T) >= 2).expand(B, 1, 1, T)
    found: list[list[Tensor]] = []
    for poison in (0.0, torch.nan):
        dirty, padded = context.clone(), x.clone()
        dirty[:, -2:] = padded[:, :2] = poison
        mha.zero_grad()
        with seeded(0):
            outs = [mha(x, dirty, right), mha(padded, mask=left, causal=True)]
        torch.autograd.backward(sum(out.square().sum() for out in outs))
        found.append([*outs, *(p.grad.clone() for p in mha.parameters() if p.grad is not None)])
    assert len(found[0]) == 2 + 8
    for clean, x_ in zip(*found, strict=True):
        torch.testing.assert_close(x_, clean, rtol=0, atol=0)
