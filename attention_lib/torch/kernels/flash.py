"""FlashAttention-2 as three Triton kernels: what one tile of the result needs, and nothing T × S.

A program holds one tile of queries (for the gradients of k and v: of keys) and walks over the others:
tiles of keys and values come from the GPU's memory, scores live in registers and are gone after use.
The backward pass makes the weights again from q, k and the log-sum-exp. Every program alone writes
its tile, without atomic additions, so all results are the same on every run.

Matrices are (batch · heads, length, width), contiguous; `group` query heads share a key head. Query i
is key i + ahead. Scores are in units of log 2, since exp2 is the exponential a GPU has.
The range of numbers is that of the plain formula but for two: a weighted sum of values is divided at
the end, and overflows where values come near 3e38; and the gradients of scores are rounded to the
dtype of k, which for float16 ends at 65504, so that gradients may be NaN where dense ones are not.
Source: Dao 2023, algorithms 1 and 2. TRITON_INTERPRET=1, when this is imported, runs it on a CPU.
"""
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# ruff: noqa: SIM102

import math

import triton
import triton.language as tl

LOG2E = tl.constexpr(math.log2(math.e))


@triton.jit
def _load(x, rows, low, high, WIDTH: tl.constexpr, PADDED: tl.constexpr, CHECK: tl.constexpr):
    """Rows of a matrix as a tile (len(rows), PADDED); zeros where low <= row < high fails."""
    columns = tl.arange(0, PADDED)
    x += rows[:, None] * WIDTH + columns
    if CHECK or WIDTH < PADDED:
        inside = (rows >= low) & (rows < high)
        tile = tl.load(x, mask=inside[:, None] & (columns < WIDTH), other=0.0)
    else:
        tile = tl.load(x)
    return tile


@triton.jit
def _store(x, tile, rows, high, WIDTH: tl.constexpr, PADDED: tl.constexpr):
    columns = tl.arange(0, PADDED)
    inside = (rows < high)[:, None] & (columns < WIDTH)
    tl.store(x + rows[:, None] * WIDTH + columns, tile.to(x.dtype.element_ty), mask=inside)


@triton.jit
def _sees(row, column, S, ahead, CAUSAL: tl.constexpr):
    """Which keys the queries may look at, for numbers of rows and columns along two axes."""
    sees = (column < S) & (row >= 0)
    if CAUSAL:
        sees &= column <= row + ahead
    return sees


@triton.jit
def _keys_seen(first, T, S, QUERIES: tl.constexpr, KEYS: tl.constexpr, CAUSAL: tl.constexpr):
    """For a tile of queries: keys below the first number are seen by all, from the second by none.

    The first is a multiple of KEYS, so that only the tiles between the two need a mask.
    """
    by_all, end = S, S
    if CAUSAL:
        by_all = tl.maximum(0, tl.minimum(S, first + 1 + S - T))
        end = tl.maximum(0, tl.minimum(S, first + QUERIES + S - T))
    return by_all // KEYS * KEYS, end


@triton.jit
def _add_product(total, a, b, sees, BY_ROW: tl.constexpr, PRECISION: tl.constexpr):
    """total + a @ b, where `a` is 0 at the pairs that nobody sees.

    BY_ROW for a `b` that holds NaN or infinity: 0 · NaN is NaN, so what is not seen must be left out.
    """
    if BY_ROW:
        numbers = tl.arange(0, b.shape[0])
        for j in range(b.shape[0]):
            a_j = tl.sum(tl.where(numbers == j, a, 0.0), 1)
            sees_j = tl.max(tl.where(numbers == j, sees.to(tl.int32), 0), 1)
            b_j = tl.sum(tl.where((numbers == j)[:, None], b.to(total.dtype), 0.0), 0)
            total += tl.where(sees_j[:, None] == 1, a_j[:, None] * b_j, 0.0)
    else:
        a = a.to(b.dtype)
        total = tl.dot(a, b, total, input_precision=PRECISION, out_dtype=total.dtype)
    return total


@triton.jit
def forward_kernel(
    Q, K, V, OUT, LSE, FINITE, scale, T, S, group,
    CAUSAL: tl.constexpr, PRECISION: tl.constexpr, WIDE: tl.constexpr,
    D_K: tl.constexpr, D_V: tl.constexpr, PAD_K: tl.constexpr, PAD_V: tl.constexpr,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, CAREFUL: tl.constexpr,
):  # fmt: skip
    """The output and the log-sum-exp of one tile of queries."""
    if CAREFUL:
        if tl.abs(tl.load(FINITE)) < float("inf"):
            return
    tiles = tl.cdiv(T, QUERIES)
    first = (tiles - 1 - tl.program_id(0) % tiles) * QUERIES  # the longest way first
    head = (tl.program_id(0) // tiles).to(tl.int64)
    K += head // group * S * D_K
    V += head // group * S * D_V
    ahead = S - T
    low = tl.maximum(0, -ahead) if CAUSAL else 0  # queries before it see nothing
    rows = first + tl.arange(0, QUERIES)
    q = _load(Q + head * T * D_K, rows, low, T, D_K, PAD_K, True)
    factor = tl.cast(scale, WIDE) * LOG2E

    top = tl.full([QUERIES], -float("inf"), WIDE)  # the largest score so far
    total = tl.zeros([QUERIES], WIDE)  # the sum of exp2(score - top)
    out = tl.zeros([QUERIES, PAD_V], WIDE)  # the sum of exp2(score - top) · v
    by_all, end = _keys_seen(first, T, S, QUERIES, KEYS, CAUSAL)
    for masked in tl.static_range(2):
        for start in range(by_all if masked else 0, end if masked else by_all, KEYS):
            columns = start + tl.arange(0, KEYS)
            k = _load(K, columns, 0, S, D_K, PAD_K, masked)
            scores = tl.dot(q, k.T, input_precision=PRECISION, out_dtype=WIDE) * factor
            sees = _sees(rows[:, None], columns[None, :], S, ahead, CAUSAL)
            if masked:
                scores = tl.where(sees, scores, -float("inf"))
            new = tl.maximum(top, tl.max(scores, 1))
            base = tl.where(new == -float("inf"), 0.0, new)  # nothing seen yet, or only -inf
            weights = tl.exp2(scores - base[:, None])
            shrink = tl.exp2(top - base)  # what was summed below a smaller top
            total = total * shrink + tl.sum(weights, 1)
            v = _load(V, columns, 0, S, D_V, PAD_V, masked)
            out = _add_product(
                out * shrink[:, None], weights, v, sees, masked and CAREFUL, PRECISION
            )
            top = new

    empty = (rows < low) | (S == 0)
    out /= tl.where(empty, 1.0, total)[:, None]
    _store(OUT + head * T * D_V, out, rows, T, D_V, PAD_V)
    lse = (top + tl.log2(tl.where(empty, 1.0, total))) / LOG2E
    tl.store(LSE + head * T + rows, lse, mask=rows < T)


@triton.jit
def _weights(a, b, lse, factor, sees, MASKED: tl.constexpr, PRECISION: tl.constexpr):
    """A tile of the softmax's weights, made again; queries times keys, or keys times queries."""
    scores = tl.dot(a, b.T, input_precision=PRECISION, out_dtype=lse.dtype) * factor
    weights = tl.exp2(scores - lse * LOG2E)
    return tl.where(sees, weights, 0.0) if MASKED else weights


@triton.jit
def _d_scores(weights, a, b, mean, sees, MASKED: tl.constexpr, PRECISION: tl.constexpr):
    """Of a softmax: each weight times what its gradient is above the mean."""
    d_weights = tl.dot(a, b.T, input_precision=PRECISION, out_dtype=mean.dtype)
    d_scores = weights * (d_weights - mean)
    return tl.where(sees, d_scores, 0.0) if MASKED else d_scores


@triton.jit
def backward_q_kernel(
    Q, K, V, D_OUT, LSE, MEAN, D_Q, FINITE, scale, T, S, group,
    CAUSAL: tl.constexpr, PRECISION: tl.constexpr, WIDE: tl.constexpr,
    D_K: tl.constexpr, D_V: tl.constexpr, PAD_K: tl.constexpr, PAD_V: tl.constexpr,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, CAREFUL: tl.constexpr,
):  # fmt: skip
    """The gradient of one tile of queries, from all the keys they see."""
    if CAREFUL:
        if tl.abs(tl.load(FINITE)) < float("inf"):
            return
    tiles = tl.cdiv(T, QUERIES)
    first = (tiles - 1 - tl.program_id(0) % tiles) * QUERIES
    head = (tl.program_id(0) // tiles).to(tl.int64)
    K += head // group * S * D_K
    V += head // group * S * D_V
    ahead = S - T
    low = tl.maximum(0, -ahead) if CAUSAL else 0
    rows = first + tl.arange(0, QUERIES)
    q = _load(Q + head * T * D_K, rows, low, T, D_K, PAD_K, True)
    d_out = _load(D_OUT + head * T * D_V, rows, low, T, D_V, PAD_V, True)
    inside = (rows >= low) & (rows < T)
    lse = tl.load(LSE + head * T + rows, mask=inside, other=0.0)
    mean = tl.load(MEAN + head * T + rows, mask=inside, other=0.0)
    factor = tl.cast(scale, WIDE) * LOG2E

    d_q = tl.zeros([QUERIES, PAD_K], WIDE)
    by_all, end = _keys_seen(first, T, S, QUERIES, KEYS, CAUSAL)
    for masked in tl.static_range(2):
        for start in range(by_all if masked else 0, end if masked else by_all, KEYS):
            columns = start + tl.arange(0, KEYS)
            k = _load(K, columns, 0, S, D_K, PAD_K, masked)
            v = _load(V, columns, 0, S, D_V, PAD_V, masked)
            sees = _sees(rows[:, None], columns[None, :], S, ahead, CAUSAL)
            weights = _weights(q, k, lse[:, None], factor, sees, masked, PRECISION)
            d_scores = _d_scores(weights, d_out, v, mean[:, None], sees, masked, PRECISION)
            d_q = _add_product(d_q, d_scores, k, sees, masked and CAREFUL, PRECISION)
    _store(D_Q + head * T * D_K, d_q * scale, rows, T, D_K, PAD_K)


@triton.jit
def backward_kv_kernel(
    Q, K, V, D_OUT, LSE, MEAN, D_KEYS, D_VALUES, FINITE, scale, T, S, group,
    CAUSAL: tl.constexpr, PRECISION: tl.constexpr, WIDE: tl.constexpr,
    D_K: tl.constexpr, D_V: tl.constexpr, PAD_K: tl.constexpr, PAD_V: tl.constexpr,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, CAREFUL: tl.constexpr,
):  # fmt: skip
    """The gradients of one tile of keys and values, from all queries of all heads that see them."""
    if CAREFUL:
        if tl.abs(tl.load(FINITE)) < float("inf"):
            return
    tiles = tl.cdiv(S, KEYS)
    first = tl.program_id(0) % tiles * KEYS
    key_head = (tl.program_id(0) // tiles).to(tl.int64)
    ahead = S - T
    low = tl.maximum(0, -ahead) if CAUSAL else 0
    columns = first + tl.arange(0, KEYS)
    k = _load(K + key_head * S * D_K, columns, 0, S, D_K, PAD_K, True)
    v = _load(V + key_head * S * D_V, columns, 0, S, D_V, PAD_V, True)
    factor = tl.cast(scale, WIDE) * LOG2E

    # Past the end the last query, weighing 0, since a zero times an infinite key is NaN.
    REPEAT: tl.constexpr = CAREFUL or not CAUSAL
    d_k = tl.zeros([KEYS, PAD_K], WIDE)
    d_v = tl.zeros([KEYS, PAD_V], WIDE)
    begin, see_all = 0, 0  # queries before `begin` see none of these keys, from `see_all` on all
    if CAUSAL:
        begin = tl.maximum(0, first - ahead) // QUERIES * QUERIES
        see_all = tl.maximum(0, tl.cdiv(first + KEYS - 1 - ahead, QUERIES) * QUERIES)
        see_all = tl.minimum(see_all, tl.cdiv(T, QUERIES) * QUERIES)
    for head in range(key_head * group, key_head * group + group):
        for masked in tl.static_range(2):
            for start in range(begin if masked else see_all, see_all if masked else T, QUERIES):
                rows = start + tl.arange(0, QUERIES)
                real = tl.minimum(rows, T - 1) if REPEAT else rows
                q = _load(Q + head * T * D_K, real, low, T, D_K, PAD_K, True)
                d_out = _load(D_OUT + head * T * D_V, rows, low, T, D_V, PAD_V, True)
                inside = (rows >= low) & (rows < T)
                lse = tl.load(
                    LSE + head * T + rows, mask=inside, other=float("inf") if REPEAT else 0.0
                )
                mean = tl.load(MEAN + head * T + rows, mask=inside, other=0.0)
                sees = _sees(rows[None, :], columns[:, None], S, ahead, CAUSAL)
                weights = _weights(k, q, lse[None, :], factor, sees, masked, PRECISION)
                d_v = _add_product(d_v, weights, d_out, sees, masked and CAREFUL, PRECISION)
                d_scores = _d_scores(weights, v, d_out, mean[None, :], sees, masked, PRECISION)
                d_k = _add_product(d_k, d_scores, q, sees, masked and CAREFUL, PRECISION)
    _store(D_KEYS + key_head * S * D_K, d_k * scale, columns, S, D_K, PAD_K)
    _store(D_VALUES + key_head * S * D_V, d_v, columns, S, D_V, PAD_V)
