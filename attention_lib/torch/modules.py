"""Multi-head attention as a torch module, and the small encoder that chapter 1 trains."""

import math
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..heads import head_sizes, merge_heads, split_heads
from ..shapes import ShapeError, check_count, check_real, describe
from .backends import attention
from .core import attend, softmax
from .shapes import check_attention, check_tensor
from .visibility import allowed_pairs

Rng = int | np.integer[Any] | torch.Generator


def as_generator(rng: Rng) -> torch.Generator:
    """The Generator of a seed, or the one given. Raises TypeError or ValueError for what is neither."""
    if isinstance(rng, torch.Generator):
        return rng
    seed = check_count("rng, a seed or a torch.Generator,", rng)
    if seed >= 2**64:
        raise ValueError(f"rng, a seed, must be below 2**64: found {seed}")
    return torch.Generator().manual_seed(seed)


def uniform(rows: int, shape: tuple[int, ...], rng: torch.Generator) -> nn.Parameter:
    """Starting weights, uniform within 1/sqrt(rows), as torch.nn.Linear draws them."""
    limit = 1 / math.sqrt(rows)
    return nn.Parameter(torch.empty(shape).uniform_(-limit, limit, generator=rng))


class KeyValueCache:
    """The keys (B, Hk, S, d_k) and values (B, Hk, S, d_v) of the S tokens that a layer has read."""

    def __init__(self) -> None:
        self.k: Tensor | None = None
        self.v: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self.k is None else self.k.shape[-2]

    def followed_by(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values, with those of the next tokens last; the cache stays as it is.

        Raises ShapeError or TypeError where these are of another batch, heads, width, dtype or device.
        """
        if self.k is None or self.v is None:
            return k, v
        for name, old, new in (("keys", self.k, k), ("values", self.v, v)):
            if (*old.shape[:-2], old.shape[-1]) != (*new.shape[:-2], new.shape[-1]):
                raise ShapeError(
                    f"{name} must fit those in the cache in all but axis -2: "
                    f"cached {tuple(old.shape)}, new {tuple(new.shape)}"
                )
            if (old.dtype, old.device) != (new.dtype, new.device):
                raise TypeError(
                    f"{name} must share dtype and device with those in the cache: cached "
                    f"{old.dtype} on {old.device}, new {new.dtype} on {new.device}"
                )
        return torch.cat((self.k, k), -2), torch.cat((self.v, v), -2)


class MultiHeadAttention(nn.Module):
    """Multi-head attention with its four projections; tokens are (B, T, d_model), batch first.

    d_model   width of the tokens that come in and go out
    heads     number of query heads H; `kv_heads` of keys and values, which divides it (default H)
    d_k, d_v  widths of one head, d_model // heads by default
    d_context, d_values   widths of the tokens of which keys and values are made, d_model by default
    bias      whether each projection adds a vector (b_Q, b_K, b_V, b_O; None without)
    dropout   share of the weights that is set to 0 in training, drawn as torch.nn.Dropout does, from
              torch's own generator (torch.manual_seed): the one that checkpointing keeps
    rng       seed or torch.Generator of the starting weights, uniform within 1/sqrt(rows)

    The weights are used as x @ W: W_Q (d_model, H·d_k), W_K (d_context, Hk·d_k),
    W_V (d_values, Hk·d_v), W_O (H·d_v, d_model). Raises ShapeError if the heads do not divide.
    Source: Vaswani et al. 2017, section 3.2.2; grouped heads: Ainslie et al. 2023.
    """

    W_Q: nn.Parameter
    W_K: nn.Parameter
    W_V: nn.Parameter
    W_O: nn.Parameter
    b_Q: nn.Parameter | None
    b_K: nn.Parameter | None
    b_V: nn.Parameter | None
    b_O: nn.Parameter | None

    def __init__(
        self,
        d_model: int,
        heads: int,
        *,
        kv_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        d_context: int | None = None,
        d_values: int | None = None,
        bias: bool = False,
        dropout: float = 0.0,
        rng: Rng,
    ) -> None:
        super().__init__()
        self.d_model, self.heads, self.kv_heads, d_k, d_v = head_sizes(
            d_model, heads, kv_heads, d_k, d_v
        )
        if not 0 <= check_real("dropout", dropout) < 1:
            raise ValueError(f"dropout must be at least 0 and below 1: found {dropout}")
        d_context = self.d_model if d_context is None else check_count("d_context", d_context, 1)
        d_values = self.d_model if d_values is None else check_count("d_values", d_values, 1)
        self.dropout = float(dropout)
        rng = as_generator(rng)
        sizes = {
            "Q": (self.d_model, self.heads * d_k),
            "K": (d_context, self.kv_heads * d_k),
            "V": (d_values, self.kv_heads * d_v),
            "O": (self.heads * d_v, self.d_model),
        }
        for name, (rows, columns) in sizes.items():
            setattr(self, f"W_{name}", uniform(rows, (rows, columns), rng))
            b = uniform(rows, (columns,), rng) if bias else None
            self.register_parameter(f"b_{name}", b)

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> "MultiHeadAttention":
        """Copy a torch.nn.MultiheadAttention, its weights and biases, dtype, device and dropout.

        The copy is batch first, whatever the original is, and its masks are the opposite: here
        True = may look. Raises ValueError for add_bias_kv and add_zero_attn, which this module does not have.
        """
        if not isinstance(module, nn.MultiheadAttention):
            raise TypeError(
                f"from_torch copies a torch.nn.MultiheadAttention: found {describe(module)}"
            )
        if module.bias_k is not None or module.add_zero_attn:
            raise ValueError(
                "add_bias_kv and add_zero_attn add keys that this module does not have"
            )
        old = module.state_dict()
        if "in_proj_weight" in old:
            projections = dict(zip("QKV", old["in_proj_weight"].chunk(3), strict=True))
        else:
            projections = {name: old[f"{name.lower()}_proj_weight"] for name in "QKV"}
        state = {f"W_{name}": weight.mT for name, weight in projections.items()}
        state["W_O"] = old["out_proj.weight"].mT
        if "in_proj_bias" in old:
            state |= zip(("b_Q", "b_K", "b_V"), old["in_proj_bias"].chunk(3), strict=True)
            state["b_O"] = old["out_proj.bias"]
        copy = cls(
            module.embed_dim,
            module.num_heads,
            d_context=module.kdim,
            d_values=module.vdim,
            bias="in_proj_bias" in old,
            dropout=module.dropout,
            rng=0,  # of weights that are replaced
        ).to(module.out_proj.weight)
        copy.load_state_dict(state)
        return copy.train(module.training)

    def to_torch(self) -> nn.MultiheadAttention:
        """Copy this into a torch.nn.MultiheadAttention, batch first; undoes `from_torch`.

        Weights, biases, dtype, device and dropout are copied. There a mask hides where it is True.
        Raises ValueError for grouped heads, and for heads whose widths do not add up to d_model:
        that module has neither.
        """
        widths = self.W_Q.shape[1], len(self.W_O)
        if self.kv_heads != self.heads or widths != (self.d_model, self.d_model):
            raise ValueError(
                f"torch.nn.MultiheadAttention has heads that share d_model = {self.d_model}: found "
                f"heads {self.heads}, kv_heads {self.kv_heads}, H·d_k {widths[0]}, H·d_v {widths[1]}"
            )
        # Made without drawing weights, which torch would take from its global state.
        copy: nn.MultiheadAttention = nn.utils.skip_init(  # type: ignore[no-untyped-call]
            nn.MultiheadAttention,
            self.d_model,
            self.heads,
            dropout=self.dropout,
            bias=self.b_O is not None,
            kdim=len(self.W_K),
            vdim=len(self.W_V),
            batch_first=True,
            device=self.W_O.device,
            dtype=self.W_O.dtype,
        )
        weights = {f"{name.lower()}_proj_weight": getattr(self, f"W_{name}").mT for name in "QKV"}
        if copy.in_proj_weight is not None:
            weights = {"in_proj_weight": torch.cat([*weights.values()])}
        weights["out_proj.weight"] = self.W_O.mT
        if self.b_Q is not None and self.b_K is not None and self.b_V is not None:
            weights["in_proj_bias"] = torch.cat((self.b_Q, self.b_K, self.b_V))
            weights["out_proj.bias"] = self.b_O
        copy.load_state_dict(weights)
        return copy.train(self.training)

    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        values: Tensor | None = None,
        bias: Tensor | None = None,
        causal: bool = False,
        cache: KeyValueCache | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Let tokens `x` (B, T, d_model) look at `context` (B, S, d_context), by default at x.

        Values are made of `values` (B, S, d_values), by default of the context. Returns
        (B, T, d_model), with `return_weights` also each head's weights (B, H, T, S), as they are
        before dropout; without, it takes the memory and time of `attention`. With a `cache` the keys
        and values are put behind those it holds, and all S are looked at; what is refused is not put
        there. The other arguments are those of `attention`: a mask (B, T, S) for all heads is
        (B, 1, T, S). Tokens that are hidden in every head, or see nothing, reach no output and no
        gradient. Raises ShapeError or TypeError with what was found.
        """
        context = x if context is None else context
        values = context if values is None else values
        _check_tokens("x", x, self.W_Q)
        _check_tokens("context", context, self.W_K)
        _check_tokens("values", values, self.W_V)
        if mask is not None or bias is not None or (causal and x.shape[-2] > context.shape[-2]):
            before = 0 if cache is None else len(cache)
            x, context, values = self._without_hidden(
                x, context, values, mask, bias, causal, before
            )
        q = split_heads(_project(x, self.W_Q, self.b_Q), self.heads)
        k = split_heads(_project(context, self.W_K, self.b_K), self.kv_heads)
        v = split_heads(_project(values, self.W_V, self.b_V), self.kv_heads)
        if cache is not None:
            k, v = cache.followed_by(k, v)
        if self.training and self.dropout:
            check_attention(q, k, v, mask, bias, causal, None)
            drop = partial(F.dropout, p=self.dropout)
            out, weights = attend(q, k, v, mask, bias, causal, None, drop)
            found = (out, weights) if return_weights else out
        else:
            found = attention(
                q, k, v, mask, bias=bias, causal=causal, return_weights=return_weights
            )
        if cache is not None:
            cache.k, cache.v = k, v
        if isinstance(found, Tensor):
            return _project(merge_heads(found), self.W_O, self.b_O)
        return _project(merge_heads(found[0]), self.W_O, self.b_O), found[1]

    def _without_hidden(
        self,
        x: Tensor,
        context: Tensor,
        values: Tensor,
        mask: Tensor | None,
        bias: Tensor | None,
        causal: bool,
        before: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The tokens, 0 where they see nothing or none sees them, in any head.

        A product with a NaN has NaN in the gradient of its matrix, be that of its output 0.
        `before` is the number of keys before those of the context.
        """
        T, S = x.shape[-2], before + context.shape[-2]
        q, k, v = (
            tokens.new_empty(()).expand(*tokens.shape[:-2], heads, n, 1)
            for tokens, heads, n in (
                (x, self.heads, T),
                (context, self.kv_heads, S),
                (values, self.kv_heads, before + values.shape[-2]),
            )
        )
        check_attention(q, k, v, mask, bias, causal, None)
        allowed = allowed_pairs(T, S, mask, bias, causal, x.device)
        if allowed is None:
            return x, context, values
        sees, seen = allowed.any(-1), allowed.any(-2)
        if allowed.ndim > 2:
            sees, seen = sees.any(-2), seen.any(-2)
        sees, seen = sees[..., None], seen[..., before:, None]
        return x.where(sees, 0), context.where(seen, 0), values.where(seen, 0)


def _project(x: Tensor, W: Tensor, b: Tensor | None) -> Tensor:
    return x @ W if b is None else x @ W + b


def _check_tokens(name: str, x: Tensor, W: Tensor) -> None:
    """Raise TypeError or ShapeError unless x @ W is possible."""
    check_tensor(name, x)
    if x.ndim < 2 or x.shape[-1] != len(W):
        raise ShapeError(
            f"{name} must be (B, T, d) with a last axis of {len(W)}: {name} {tuple(x.shape)}"
        )
    if x.device != W.device:
        raise TypeError(f"{name} and the weights must share a device: {x.device}, {W.device}")
    if x.dtype != W.dtype and not torch.is_autocast_enabled(x.device.type):
        raise TypeError(f"{name} and the weights must share a dtype: {x.dtype}, {W.dtype}")


def check_words(name: str, tokens: Any, words: int) -> None:
    """Raise TypeError, ShapeError or ValueError unless `tokens` (B, T) are integers below `words`."""
    if not isinstance(tokens, Tensor) or tokens.dtype not in (torch.int32, torch.int64):
        kind = tokens.dtype if isinstance(tokens, Tensor) else describe(tokens)
        raise TypeError(f"{name} must be a torch tensor of int32 or int64: found {kind}")
    if tokens.ndim != 2:
        raise ShapeError(f"{name} must be (B, T): {name} {tuple(tokens.shape)}")
    if tokens.is_meta:  # which holds no numbers
        return
    unknown = tokens[(tokens < 0) | (tokens >= words)]
    if len(unknown):
        raise ValueError(f"{name} must be from 0 to {words - 1}: found {int(unknown[0])}")


def count_parameters(module: nn.Module) -> int:
    """How many numbers training can change; a matrix that is used twice is counted once."""
    return sum(parameter.numel() for parameter in module.parameters())


class AdditiveAttention(nn.Module):
    """Scores v · tanh(W_Q query + W_K key): a small network in place of the dot product.

    d_query, d_key   widths of a query and of the keys, which are the values too
    hidden           width of the network; it starts as torch.nn.Linear does
    Source: Bahdanau et al. 2015, section A.1.2, where they are v_a, W_a and U_a.
    """

    def __init__(self, d_query: int, d_key: int, hidden: int) -> None:
        super().__init__()
        self.W_Q = nn.Linear(d_query, hidden)
        self.W_K = nn.Linear(d_key, hidden, bias=False)
        self.v = nn.Linear(hidden, 1, bias=False)

    def forward(
        self,
        query: Tensor,
        keys: Tensor,
        mask: Tensor | None = None,
        *,
        projected: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Context (B, d_key) and weights (B, S) of one query (B, d_query) for each of B rows.

        keys (B, S, d_key); mask (B, S), True = may look. `projected` is W_K(keys), for a caller that
        asks the same keys again and makes it once.
        """
        projected = self.W_K(keys) if projected is None else projected
        scores = self.v(torch.tanh(self.W_Q(query)[:, None] + projected))[..., 0]
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = softmax(scores)
        return (weights[:, None] @ keys)[:, 0], weights


class FeedForward(nn.Module):
    """norm, linear, ReLU, linear, for each token alone; starting weights as those of the attention.

    norm: whether there is one; a block that norms its tokens behind the feed-forward needs none.
    """

    def __init__(
        self, d_model: int, width: int, *, norm: bool = True, rng: torch.Generator
    ) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model) if norm else nn.Identity()
        self.W_in, self.b_in = (
            uniform(d_model, (d_model, width), rng),
            uniform(d_model, (width,), rng),
        )
        self.W_out, self.b_out = (
            uniform(width, (width, d_model), rng),
            uniform(width, (d_model,), rng),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (..., d_model) to updates of the same shape."""
        return F.relu(self.norm(x) @ self.W_in + self.b_in) @ self.W_out + self.b_out


class TransformerBlock(nn.Module):
    """A pre-norm block: x + attention(norm(x)), then, with a feed-forward, x + feed_forward(x).

    feed_forward: width of its hidden layer, 0 for none.
    Source: Vaswani et al. 2017, section 3.1; norm first: Xiong et al. 2020.
    """

    def __init__(self, d_model: int, heads: int, *, feed_forward: int = 0, rng: Rng) -> None:
        super().__init__()
        rng = as_generator(rng)
        self.norm = nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, heads, rng=rng)
        width = check_count("feed_forward", feed_forward)
        self.feed_forward = FeedForward(d_model, width, rng=rng) if width else None

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        causal: bool = False,
        cache: KeyValueCache | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Tokens (B, T, d_model), with `return_weights` also the attention's weights (B, H, T, S).

        S is T, or with a `cache` the number of tokens it holds when x has been put in. A hidden token
        is added to its own output all the same, so that a NaN in it reaches the norms' gradients.
        """
        _check_tokens("x", x, self.attention.W_Q)
        found = self.attention(
            self.norm(x), mask=mask, causal=causal, cache=cache, return_weights=return_weights
        )
        update, *weights = found if return_weights else (found,)
        x = x + update
        if self.feed_forward is not None:
            x = x + self.feed_forward(x)
        return (x, weights[0]) if return_weights else x
