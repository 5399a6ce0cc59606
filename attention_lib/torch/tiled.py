"""Attention over blocks, for tensors: the backward pass makes the scores again, none are stored."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..blockwise import BOUND, cut, parts
from .core import dense_gradients
from .shapes import accumulator, check_attention, leading_axes, repeat_heads, scale_for
from .visibility import has_numbers, no_autocast, read_values, transformed

# Of a block, whose scores stay in a processor's cache; causal, half as many queries hide fewer.
QUERIES, KEYS = 512, 512
AT_ONCE = 2**24  # scores that an accelerator holds, with many cores to keep busy


def tiled_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    causal: bool = False,
    scale: float | Tensor | None = None,
    return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """What `attention` gives, from the same arguments, in memory that grows with T + S, not T · S.

    With `return_lse` also log(sum(exp(score))) over the keys that each query may see, (..., Hq, T),
    in the dtype of the sums (float32 for half precision); -inf where it may see nothing.
    Blocks that `mask`, `causal` or the -inf of `bias` hide whole are skipped.

    Differentiable once, through both results, in q, k, v, bias and scale. For the backward pass only
    the arguments, the output and two numbers for a query are kept; change no argument in place before
    it, the results as you like. Raises RuntimeError for a second derivative, forward-mode
    differentiation and the transforms of torch.func, which `attention` with backend="dense" has all.
    Source: Dao 2023, algorithms 1 and 2.
    """
    check_attention(q, k, v, mask, bias, causal, scale)
    out, lse = attend_tiled(q, k, v, mask, bias, causal, scale)
    return (out, lse) if return_lse else out


def attend_tiled(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    causal: bool,
    scale: float | Tensor | None,
    again: bool = False,
) -> tuple[Tensor, Tensor]:
    """Output and log-sum-exp of `tiled_attention`.

    With `again` what this cannot differentiate, the output's gradients of any order, dense attention
    does, when it is asked for.
    """
    _check_no_transform()
    dtype, factor = q.dtype, scale_for(q, scale)
    wide, heads = accumulator(dtype), q.shape[-3] if q.ndim > 2 else 1
    with no_autocast(q.device):
        k, v = repeat_heads(k.to(wide), heads), repeat_heads(v.to(wide), heads)
        leading = leading_axes(q, k, v, mask, bias)
        q, k, v = (x.expand(*leading, *x.shape[-2:]) for x in (_scaled(q.to(wide), factor), k, v))
        out, lse = _Tiled.apply(  # type: ignore[no-untyped-call]
            q, k, v, mask, bias, bool(causal), again
        )
    # A copy, for `out` is kept for the backward pass: then what is returned may be changed in place.
    return out.to(dtype, copy=out.requires_grad), lse[..., 0]


def _scaled(q: Tensor, factor: float | Tensor) -> Tensor:
    """q · factor, with a gradient of a learned factor that no query without a key reaches, NaN or not.

    That of q is 0 there, and 0 · NaN is NaN. Where a query sees a key, its NaN comes with q's gradient.
    """
    if not (isinstance(factor, Tensor) and factor.requires_grad):
        return q * factor
    return q * factor.detach() + q.where(q.isfinite(), 0) * (factor - factor.detach())


class _Tiled(torch.autograd.Function):
    """From q, scaled already, k and v with the same leading axes: output and log-sum-exp (..., T, 1)."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None,
        bias: Tensor | None,
        causal: bool,
        again: bool,
    ) -> tuple[Tensor, Tensor]:
        out, top, total = attend_apart(q, k, v, mask, bias, causal)
        ctx.save_for_backward(q, k, v, mask, bias, out, top, total)
        ctx.causal, ctx.again = causal, again
        return out, top + total.log()

    @staticmethod
    def backward(ctx: Any, d_out: Tensor, d_lse: Tensor) -> tuple[Tensor | None, ...]:
        """d_scores = W ∘ (d_out Vᵀ - rowsum(d_out ∘ out) + d_lse), where W are the weights."""
        if ctx.again and (torch.is_grad_enabled() or transformed(d_out)):
            q, k, v, mask, bias, *_ = ctx.saved_tensors
            found = dense_gradients(d_out, q, k, v, mask, bias, ctx.causal, 1.0)
            return *found[:3], None, found[3], None, None
        _check_no_transform(d_out, d_lse)
        if torch.is_grad_enabled():
            raise RuntimeError(
                "tiled_attention is differentiable once; "
                "attention with backend='dense' has gradients of any order"
            )
        q, k, v, mask, bias, out, top, total = ctx.saved_tensors
        with no_autocast(q.device):
            mean = (d_out * out).sum(-1, keepdim=True).sub_(d_lse)
            d_q, d_k, d_v = (x.new_zeros(x.shape) for x in (q, k, v))
            d_bias = q.new_zeros(bias.shape) if ctx.needs_input_grad[4] else None
            rows, columns = (q, top, d_out, mean, d_q, total), (k, v, d_k, d_v)
            add_gradients(rows, columns, mask, bias, ctx.causal, d_bias)
        return d_q, d_k, d_v, None, None if d_bias is None else d_bias.to(bias.dtype), None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> tuple[Tensor, ...]:
        """Refuse the derivative in forward mode."""
        raise RuntimeError(
            "tiled_attention has no forward-mode derivative; attention with backend='dense' has"
        )


def attend_apart(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Output, and apart the two terms of the log-sum-exp, `top` and the log of `total` (..., T, 1).

    q is scaled already, k and v have the same leading axes. Beside large scores, as under a bias of
    -1e9, the log would be lost in the sum. total is 1 to S;
    where a query may see nothing, top is -inf.
    """
    out, (top, total) = q.new_zeros(*q.shape[:-1], v.shape[-1]), q.new_zeros(2, *q.shape[:-1], 1)
    bounded = bias is None and _bounded(q, k, v)
    values, shrunk = (v, 1.0) if bounded else _shrink(v)
    strips = _strips((q, out, top, total), (k, values), mask, bias, causal)
    for heads, (q_i, out_i, top_i, total_i), blocks in strips:
        top_i.fill_(0 if bounded else torch.finfo(q.dtype).min)
        sees = torch.zeros_like(total_i, dtype=torch.bool)
        for block, (k_j, v_j) in blocks:
            weights = heads.product(q_i, k_j.mT)
            if block.bias is not None:
                weights += block.bias
            if bounded:
                _hide(_exp(weights), block.shown, 0)
            else:
                _hide(weights, block.shown, -math.inf)
                new = torch.maximum(top_i, weights.amax(-1, keepdim=True))
                rescale = _exp(top_i.sub_(new))
                total_i.mul_(rescale)
                out_i.mul_(rescale)
                top_i.copy_(new)
                _exp(weights.sub_(new))
                sees |= True if block.shown is None else block.shown.any(-1, keepdim=True)
            total_i.add_(weights.sum(-1, keepdim=True))
            _add_product(out_i, weights, v_j, block.shown)
        empty = ~sees & (total_i == 0)
        top_i.masked_fill_(empty, -math.inf)
        out_i.div_(total_i.masked_fill_(empty, 1))
        if bounded:
            top_i.add_(total_i.log())
            total_i.fill_(1)
    if shrunk != 1:
        out.mul_(shrunk)
    return out, top, total


def add_gradients(
    rows: Sequence[Tensor],
    columns: Sequence[Tensor],
    mask: Tensor | None,
    bias: Tensor | None,
    causal: bool,
    d_bias: Tensor | None = None,
) -> None:
    """Add the gradients of q, k, v and bias, in place, to d_q, d_k, d_v and d_bias.

    rows are q, lse, d_out, mean and d_q, where mean (..., T, 1) is rowsum(d_out ∘ out), or q, top,
    d_out, mean, d_q and total of `attend_apart`; columns are k, v, d_k and d_v, all with the same
    leading axes. lse (or top and total) and mean may be those of more keys than k. Then what is added
    is the part that these keys have in the gradients.
    """
    strips = _strips(rows, columns, mask, bias, causal)
    for heads, (q_i, top_i, d_out_i, mean_i, d_q_i, *totals), blocks in strips:
        for total_i in totals:  # one, or none
            d_out_i, mean_i = d_out_i / total_i, mean_i / total_i
        for block, (k_j, v_j, d_k_j, d_v_j) in blocks:
            weights = heads.product(q_i, k_j.mT)
            if block.bias is not None:
                weights += block.bias
            _exp(weights.sub_(top_i))
            d_scores = heads.product(d_out_i, v_j.mT, 1).sub_(mean_i).mul_(weights)
            _hide(weights, block.shown, 0)
            _hide(d_scores, block.shown, 0)
            turned = None if block.shown is None else block.shown.mT
            _add_product(d_v_j, weights.mT, d_out_i, turned)
            _add_product(d_q_i, d_scores, k_j, block.shown)
            _add_product(d_k_j, d_scores.mT, q_i, turned)
            if d_bias is not None:
                heads.add_pairs(d_bias, block, d_scores)


class _Block(NamedTuple):
    """Queries and keys, the pairs of them that may look (None: all), and what is added to their scores."""

    queries: slice
    keys: slice
    shown: Tensor | None
    bias: Tensor | None


class _Heads:
    """Some of the heads, a part of the leading axes, and the blocks of their scores."""

    def __init__(
        self,
        index: tuple[slice, ...],
        heads: int,
        scores: tuple[int, ...],
        mask: Tensor | None,
        bias: Tensor | None,
        causal: bool,
        buffers: dict[tuple[int, ...], Tensor],
    ) -> None:
        self.index, self.heads, self.causal = index, heads, causal
        self.buffers = buffers
        self.T, self.S = scores[-2:]
        self.mask, self.bias = (
            None if x is None else self.take(x.expand(scores)) for x in (mask, bias)
        )

    def take(self, x: Tensor) -> Tensor:
        """(heads, T or S, ...) of an array with all leading axes; a view where that is contiguous."""
        return x[self.index].reshape(self.heads, *x.shape[-2:])

    def blocks(
        self, i: slice, columns: Sequence[tuple[slice, Sequence[Tensor]]], device: torch.device
    ) -> Iterator[tuple[_Block, Sequence[Tensor]]]:
        """The blocks of a strip of queries that are not hidden whole, with their part of `columns`."""
        end = min(self.S, i.stop + self.S - self.T) if self.causal else self.S
        for j, columns_j in columns:
            if j.start >= end:
                break
            if j.stop > end:
                j = slice(j.start, end)
                columns_j = [x[:, : end - j.start] for x in columns_j]
            bias = None if self.bias is None else self.bias[:, i, j]
            shown = self.shown(i, j, device)
            if shown is not None and has_numbers(shown):
                least, most = shown.view(torch.uint8).aminmax()
                if not most:
                    continue
                shown = None if least else shown
            yield _Block(i, j, shown, bias), columns_j

    def shown(self, i: slice, j: slice, device: torch.device) -> Tensor | None:
        """The pairs that may look, (heads or 1, queries, keys); None if no rule hides any."""
        shown = None if self.mask is None else self.mask[:, i, j]
        if self.bias is not None:
            finite = ~self.bias[:, i, j].isneginf()
            shown = finite if shown is None else shown & finite
        first = (
            i.start + self.S - self.T - j.start
        )  # the last of the keys that the first query sees
        if self.causal and first < j.stop - j.start - 1:
            size = 1, i.stop - i.start, j.stop - j.start
            below = torch.ones(size, dtype=torch.bool, device=device).tril_(first)
            shown = below if shown is None else shown & below
        return shown

    def product(self, a: Tensor, b: Tensor, number: int = 0) -> Tensor:
        """a @ b, written over the last product of this shape and number."""
        key = number, self.heads, a.shape[1], b.shape[2]
        if key not in self.buffers:
            self.buffers[key] = a.new_empty(key[1:])
        return torch.bmm(a, b, out=self.buffers[key])

    def add_pairs(self, d_bias: Tensor, block: _Block, d_scores: Tensor) -> None:
        """Add the gradient of a block to that of the bias, summed over where the bias broadcasts."""
        where = (*self.index, block.queries, block.keys)
        d_scores = d_scores.reshape([axis.stop - axis.start for axis in where])
        own = zip(d_bias.shape, where[len(where) - d_bias.ndim :], strict=True)
        d_part = d_bias[tuple(slice(None) if size == 1 else axis for size, axis in own)]
        d_part += d_scores.sum_to_size(d_part.shape)


def _strips(
    rows: Sequence[Tensor],
    columns: Sequence[Tensor],
    mask: Tensor | None,
    bias: Tensor | None,
    causal: bool,
) -> Iterator[tuple[_Heads, Sequence[Tensor], Iterator[tuple[_Block, Sequence[Tensor]]]]]:
    """Strips of queries, their part of `rows`, and the blocks of their scores.

    All heads, as many at once as make one block of scores (on an accelerator AT_ONCE of them).
    """
    (*leading, T, _), S = rows[0].shape, columns[0].shape[-2]
    device = rows[0].device
    at_once = QUERIES * KEYS if device.type in ("cpu", "meta") else AT_ONCE
    block = max(1, min(T, QUERIES) * min(S, KEYS))
    buffers: dict[tuple[int, ...], Tensor] = {}
    for index, number in parts(tuple(leading), at_once // block):
        heads = _Heads(index, number, (*leading, T, S), mask, bias, causal, buffers)
        taken = [torch.split(heads.take(x), KEYS, 1) for x in columns]
        cuts = list(zip(cut(S, KEYS), zip(*taken, strict=True), strict=False))
        taken_rows = [*map(heads.take, rows)]
        for i in cut(T, QUERIES // 2 if causal else QUERIES):
            yield heads, [x[:, i] for x in taken_rows], heads.blocks(i, cuts, device)


def _bounded(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether |score| + |log of the values' norm| is so small that exp needs no largest score."""
    if not has_numbers(q) or not q.numel() or not k.numel():
        return False
    lengths = [torch.linalg.vector_norm(x, dim=-1).max() for x in (q, k)]
    return bool(lengths[0] * lengths[1] + torch.linalg.vector_norm(v).log().abs() < BOUND)


def _shrink(v: Tensor) -> tuple[Tensor, float]:
    """Values whose sum over the S keys is finite, if they are: v over a power of 2, and that power."""
    if not has_numbers(v) or not v.numel():
        return v, 1.0
    S, limit = v.shape[-2], torch.finfo(v.dtype).max
    if not torch.linalg.vector_norm(v.nan_to_num(0.0, 0.0, 0.0), math.inf) > limit / S:
        return v, 1.0
    power = 2.0 ** S.bit_length()
    return v / power, power


def _check_no_transform(*gradients: Tensor) -> None:
    """Raise RuntimeError inside torch.func.vmap, grad and the like, and for many gradients at once."""
    if transformed(*gradients):
        raise RuntimeError(
            "tiled_attention takes no transform of torch.func (vmap, grad, jvp); "
            "attention with backend='dense' does"
        )


def _exp(x: Tensor) -> Tensor:
    """exp(x) in place; float32 by way of 2**x, which is several times faster and rounds once more."""
    return x.mul_(1 / math.log(2)).exp2_() if x.dtype == torch.float32 else x.exp_()


def _hide(x: Tensor, shown: Tensor | None, value: float) -> None:
    if shown is not None:
        x.masked_fill_(~shown, value)


def _add_product(out: Tensor, a: Tensor, b: Tensor, shown: Tensor | None) -> None:
    """out += a @ b, where `a` is 0 at the hidden pairs; what is hidden is not read."""
    if shown is None:
        torch.baddbmm(out, a, b, out=out)
    else:
        out += read_values(a, b, shown)
