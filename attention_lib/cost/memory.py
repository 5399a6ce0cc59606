"""What attention holds and moves: bytes of weights and of cached keys, traffic to slow memory.

GB is 10⁹ bytes. A number has 2 bytes in half precision, 4 in float32.
"""

import math
from dataclasses import dataclass

from ..shapes import check_count, check_flag
from .formulas import LayerFlops, dense_pairs

H200 = 141 * 10**9  # bytes of memory; source: NVIDIA's H200 data sheet


def weights_bytes(n: int, heads: int, *, size: int = 2, batch: int = 1) -> int:
    """Bytes of one layer's weights (batch, heads, n, n), at `size` bytes a number."""
    n, heads = check_count("n", n), check_count("heads", heads, least=1)
    size, batch = check_count("size", size, least=1), check_count("batch", batch, least=1)
    return batch * heads * n * n * size


def longest_dense(memory: int, heads: int, *, size: int = 2) -> int:
    """The most tokens of which one layer's weights, for one sequence, fit in `memory` bytes."""
    return math.isqrt(check_count("memory", memory) // weights_bytes(1, heads, size=size))


def tiled_bytes(n: int, heads: int, *, block: int = 128, size: int = 4) -> int:
    """Bytes that tiled attention needs beside inputs and output: linear in n.

    A running maximum and sum for each query and head, and the one tile (block, block) at work.
    Source: Dao et al. 2022, theorem 1. A program that works on more tiles at once has more of them.
    """
    n, heads = check_count("n", n), check_count("heads", heads, least=1)
    block, size = check_count("block", block, least=1), check_count("size", size, least=1)
    return (2 * n * heads + min(block, n) ** 2) * size


@dataclass(frozen=True)
class Traffic:
    """Numbers, not bytes, that cross between slow and fast memory."""

    loads: int
    stores: int

    @property
    def total(self) -> int:
        """Numbers moved either way."""
        return self.loads + self.stores


def standard_traffic(n: int, d: int) -> Traffic:
    """Traffic of one head of width d that writes its scores and its weights down: 4 n d + 4 n².

    Loads Q and K, stores the scores; loads them, stores the weights; loads these and V, stores O.
    Source: Dao et al. 2022, algorithm 0.
    """
    n, d = check_count("n", n), check_count("d", d, least=1)
    return Traffic(loads=3 * n * d + 2 * n * n, stores=n * d + 2 * n * n)


def flash_blocks(d: int, fast: int) -> tuple[int, int]:
    """Queries and keys in a tile, for a fast memory of `fast` numbers: the paper's B_r and B_c.

    Keys, values, queries and outputs of a tile are to fill a quarter each. An A100 has 192 KB of fast
    memory a multiprocessor: 98,304 numbers of 2 bytes. Source: Dao et al. 2022, section 2.1 and
    algorithm 1, line 1. Raises ValueError unless `fast` is at least 4 d, a tile of one pair.
    """
    d = check_count("d", d, least=1)
    keys = math.ceil(check_count("fast", fast, least=4 * d) / (4 * d))
    return min(keys, d), keys


def flash_traffic(n: int, d: int, fast: int, *, causal: bool = False) -> Traffic:
    """Traffic of FlashAttention for one head of width d, with `fast` numbers of fast memory.

    Outputs O (n, d), running sums and maxima (n,) start in slow memory. For every block of keys, K and V
    are loaded once; then for every block of queries Q, O, sum and maximum are loaded, and the last
    three stored. `causal` skips the tiles that hold no visible pair. As `fast` is about
    4 d · keys of a block, the total nears 12 n² d² / fast, the paper's Θ(n² d² / M).
    Source: Dao et al. 2022, algorithm 1 and theorem 2.
    """
    n = check_count("n", n)
    queries, keys = flash_blocks(d, fast)
    causal = check_flag("causal", causal)
    loads, stores = 0, n * (d + 2)
    for first_key in range(0, n, keys):
        loads += 2 * min(keys, n - first_key) * d
        first_query = first_key // queries * queries if causal else 0
        rows = n - first_query
        loads += rows * (2 * d + 2)
        stores += rows * (d + 2)
    return Traffic(loads, stores)


@dataclass(frozen=True)
class ModelShape:
    """Sizes of a published decoder.

    layers, d_model   of the stack; heads, kv_heads, d_head: of the attention in each layer
    feed_forward      width of its hidden layer; matrices: 2, or 3 with a gate
    window            tokens that a query sees, itself counted, if not all
    source            where the sizes were published
    """

    layers: int
    d_model: int
    heads: int
    kv_heads: int
    d_head: int
    feed_forward: int
    matrices: int
    source: str
    window: int | None = None

    def layer_flops(self, n: int, *, pairs: int | None = None) -> LayerFlops:
        """FLOPs of one layer that reads n tokens at once; a head makes n² scores, or `pairs`.

        Fewer key heads make W_K and W_V smaller, and nothing else.
        """
        n = check_count("n", n)
        pairs = dense_pairs(n) if pairs is None else check_count("pairs", pairs)
        return LayerFlops(
            4 * n * self.d_model * self.d_head * (self.heads + self.kv_heads),
            2 * n * self.d_model * self.feed_forward * self.matrices,
            4 * pairs * self.heads * self.d_head,
        )

    def cache_bytes_per_token(self, *, size: int = 2) -> int:
        """Bytes of a token's keys and values in all layers: 2 · layers · kv_heads · d_head · size."""
        size = check_count("size", size, least=1)
        return 2 * self.layers * self.kv_heads * self.d_head * size

    def cache_bytes(self, n: int, *, size: int = 2) -> int:
        """Bytes of the keys and values that a sequence of n tokens holds; past a window none are added."""
        n = check_count("n", n)
        held = n if self.window is None else min(n, self.window)
        return held * self.cache_bytes_per_token(size=size)

    def cached_tokens(self, memory: int, *, size: int = 2) -> int:
        """The most tokens, of one sequence or of many, whose cache fits in `memory` bytes.

        These are tokens held: past a window, a sequence may have read more. The model's own weights
        are not in the count.
        """
        return check_count("memory", memory) // self.cache_bytes_per_token(size=size)


MODEL_SHAPES = {
    "GPT-2": ModelShape(
        12, 768, 12, 12, 64, 3072, 2, "Radford et al. 2019, table 2, and the released code"
    ),
    # Every other layer is locally banded, says Brown et al. 2020, section 2.1; here all are dense.
    "GPT-3 175B": ModelShape(96, 12288, 96, 96, 128, 49152, 2, "Brown et al. 2020, table 2.1"),
    "PaLM 540B": ModelShape(
        118, 18432, 48, 1, 256, 73728, 3, "Chowdhery et al. 2022, section 2 and table 1"
    ),
    "Llama 2 70B": ModelShape(
        80, 8192, 64, 8, 128, 28672, 3, "Touvron et al. 2023, section 2.2, and the released weights"
    ),
    "Falcon 7B": ModelShape(
        32, 4544, 71, 1, 64, 18176, 2, "Almazrouei et al. 2023, and the model card"
    ),
    "Mistral 7B": ModelShape(
        32, 4096, 32, 8, 128, 14336, 3, "Jiang et al. 2023, table 1", window=4096
    ),
    "Llama 3 8B": ModelShape(32, 4096, 32, 8, 128, 14336, 3, "Grattafiori et al. 2024, table 3"),
    "Llama 3 70B": ModelShape(80, 8192, 64, 8, 128, 28672, 3, "Grattafiori et al. 2024, table 3"),
}
