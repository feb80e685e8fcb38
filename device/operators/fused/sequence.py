"""Around a sequence: rotary embedding with cache write, a recurrent layer, a feed-forward layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import TensorSpec, beside
from device.operators.formats import wide
from device.operators.forms import odd, prime
from device.operators.fused.forms import Table, fused

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

HALF = "float16"


def turn(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Turn the pairs (x[j], x[j + d / 2]) of each head by their angle (Su et al., arXiv 2104.09864, in half layout)."""
    half = x.shape[-1] // 2
    first, second = wide(x[..., :half]), wide(x[..., half:])
    c, s = cosine[:, None], sine[:, None]
    result = x.new_empty(x.shape)
    result[..., :half] = (first * c - second * s).to(x.dtype)
    result[..., half:] = (second * c + first * s).to(x.dtype)
    return result


def rotary(
    q: Tensor, k: Tensor, v: Tensor, cosine: Tensor, sine: Tensor, slots: Tensor, k_cache: Tensor, v_cache: Tensor
) -> tuple[Tensor, ...]:
    """Turn queries and keys by their angles, and copy both caches with the new keys and values in their slots."""
    keys, values = k_cache.clone(), v_cache.clone()
    keys[slots], values[slots] = turn(k, cosine, sine), v
    return (turn(q, cosine, sine), keys, values)


def rotary_of_torch(
    q: Tensor, k: Tensor, v: Tensor, cosine: Tensor, sine: Tensor, slots: Tensor, k_cache: Tensor, v_cache: Tensor
) -> tuple[Tensor, ...]:
    """Rotate by concatenated halves, as model code does, and index_copy into the caches."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    c, s = (torch.cat((x, x), dim=-1)[:, None] for x in (cosine, sine))
    turned = []
    for x in (q, k):
        first, second = x.chunk(2, dim=-1)
        turned.append((x * c + torch.cat((-second, first), dim=-1) * s).to(x.dtype))
    return (turned[0], k_cache.index_copy(0, slots, turned[1]), v_cache.index_copy(0, slots, v))


def rotary_inputs(t: int, h: int, groups: int, d: int, rows: int) -> tuple[TensorSpec, ...]:
    """Describe t tokens of h query heads and `groups` key heads of even width d, caches of that many rows."""
    new, cache = TensorSpec((t, groups, d), HALF), TensorSpec((rows, groups, d), HALF)
    angle = TensorSpec((t, d // 2))
    slots = TensorSpec((t,), "int64", values="distinct", span=(0, rows))
    return (TensorSpec((t, h, d), HALF), new, new, angle, angle, slots, cache, cache)


def rotary_outputs(q: TensorSpec, *rest: TensorSpec) -> tuple[TensorSpec, ...]:
    """Turned queries and both caches."""
    return tuple(TensorSpec(x.shape, x.dtype) for x in (q, *rest[-2:]))


def rotary_hidden(rng: Generator) -> Table:
    """One token, a full cache, narrow heads."""
    d = 2 * prime(rng, 5, 40)
    return {
        "single": (1, 1, 1, 2, 1),
        "one-token": (1, 5, 2, d, odd(rng, 9, 60)),
        "nearly-full": (prime(rng, 5, 30), 3, 3, d, 31),
        "prime": (prime(rng, 5, 30), 6, 2, d, prime(rng, 31, 90)),
        "narrow": (odd(rng, 9, 40), 4, 1, 2, 97),
    }


def lstm(x: Tensor, h: Tensor, c: Tensor, w_x: Tensor, w_h: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    """Run a layer over the steps; gates in the order input, forget, cell, output (Hochreiter, Schmidhuber 1997)."""
    out = x.new_empty((*x.shape[:2], h.shape[1]))
    for step in range(x.shape[0]):
        put, keep, cell, show = (x[step] @ w_x.T + h @ w_h.T + bias).chunk(4, dim=1)
        c = c / (1 + (-keep).exp()) + cell.tanh() / (1 + (-put).exp())
        h = c.tanh() / (1 + (-show).exp())
        out[step] = h
    return (out, c)


def lstm_of_torch(x: Tensor, h: Tensor, c: Tensor, w_x: Tensor, w_h: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    """Call torch's own layer."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    weights = [w_x, w_h, bias, torch.zeros_like(bias)]
    out, _, last = torch.lstm(x, (h[None], c[None]), weights, True, 1, 0.0, False, False, False)
    return (out, last[0])


def lstm_inputs(steps: int, b: int, i: int, n: int) -> tuple[TensorSpec, ...]:
    """Describe steps of b rows of i numbers, n cells."""
    shapes = ((steps, b, i), (b, n), (b, n), (4 * n, i), (4 * n, n), (4 * n,))
    return tuple(TensorSpec(shape) for shape in shapes)


def lstm_outputs(x: TensorSpec, h: TensorSpec, *_: TensorSpec) -> tuple[TensorSpec, ...]:
    """The state after each step, and the last cell."""
    return (TensorSpec((*x.shape[:2], h.shape[1])), TensorSpec(h.shape))


def lstm_hidden(rng: Generator) -> Table:
    """One step, one cell, odd sizes."""
    i, n = prime(rng, 3, 20), prime(rng, 3, 20)
    return {
        "one-step": (1, 3, i, n),
        "one-cell": (5, odd(rng, 3, 20), i, 1),
        "prime": (4, prime(rng, 3, 9), i, n),
        "one-row": (6, 1, odd(rng, 9, 40), n),
        "wide": (2, 2, 5, odd(rng, 50, 90)),
    }


def feed_forward(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> tuple[Tensor, ...]:
    """Compute gelu(x w1 + b1) w2 + b2, gelu(y) = y Phi(y) in its exact form; nothing in between is rounded."""
    y = wide(x) @ wide(w1) + wide(b1)
    return ((y * (-y * 0.5**0.5).erfc() / 2 @ wide(w2) + wide(b2)).to(x.dtype),)


def feed_forward_of_torch(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> tuple[Tensor, ...]:
    """Call torch's own products and gelu, in float32, which a CPU multiplies much faster than half numbers."""
    from torch.nn import functional  # noqa: PLC0415  (torch loads when a baseline runs)

    within = functional.gelu(wide(b1).addmm(wide(x), wide(w1)))
    return (wide(b2).addmm(within, wide(w2)).to(x.dtype),)


def feed_forward_inputs(m: int, k: int, f: int, n: int) -> tuple[TensorSpec, ...]:
    """Describe m rows of k, f units within, n numbers out."""
    return tuple(TensorSpec(shape, HALF) for shape in ((m, k), (k, f), (f,), (f, n), (n,)))


def feed_forward_hidden(rng: Generator) -> Table:
    """One row, one unit, prime sizes."""
    k, n = prime(rng, 11, 60), prime(rng, 11, 60)
    return {
        "single": (1, 1, 1, 1),
        "one-row": (1, k, odd(rng, 30, 200), n),
        "one-unit": (odd(rng, 9, 60), k, 1, n),
        "prime": (prime(rng, 5, 40), k, prime(rng, 31, 90), n),
        "thin": (odd(rng, 9, 60), 1, 17, 1),
    }


OPERATORS = (
    fused(
        "RotaryCacheWrite",
        family="index",
        summary=(
            "q float16 [t, h, d], k and v [t, groups, d], cosine and sine float32 [t, d/2], slots int64 [t] (all "
            "different), k_cache and v_cache [rows, groups, d]: out q turned, k_cache with turned k in the slots, "
            "v_cache with v in them; pair (x[j], x[j + d/2]) turns to (x[j] c - x[j + d/2] s, x[j + d/2] c + x[j] s)."
        ),
        expert=beside(__file__, "rotary_cache_write.cpp"),
        reference=rotary,
        baseline=rotary_of_torch,
        make=rotary_inputs,
        outputs=rotary_outputs,
        accumulation=lambda *_: 2,
        visible={
            "decode": (64, 16, 4, 128, 512),
            "prefill": (256, 8, 2, 64, 1024),
            "tail": (5, 3, 1, 38, 13),
            "one-token": (1, 4, 2, 32, 9),
        },
        hidden=rotary_hidden,
        full=((32, 32, 8, 128, 65536), (2048, 64, 8, 128, 65536)),
        traps=(
            "The pairs lie half a head apart, not side by side.",
            "Values are copied, not turned.",
            "Every row of the caches is written, not only the slots.",
        ),
        dtypes=(HALF, "float32", "int64"),
        conditions=("d is even; slots differ and lie within the caches.",),
    ),
    fused(
        "Lstm",
        family="matmul",
        summary=(
            "x [steps, b, i], h and c [b, n], w_x [4n, i], w_h [4n, n], bias [4n]: at each step the gates x w_x^T + "
            "h w_h^T + bias in the order input, forget, cell, output; c = sigmoid(f) c + sigmoid(i) tanh(g), "
            "h = sigmoid(o) tanh(c); out h of every step and the last c."
        ),
        expert=beside(__file__, "lstm.cpp"),
        reference=lstm,
        baseline=lstm_of_torch,
        make=lstm_inputs,
        outputs=lstm_outputs,
        accumulation=lambda x, h, *_: x.shape[0] * (x.shape[2] + h.shape[1]),
        visible={"steps": (8, 16, 64, 64), "wide": (2, 8, 128, 192), "tail": (3, 5, 19, 7), "one-step": (1, 9, 8, 16)},
        hidden=lstm_hidden,
        full=((64, 32, 512, 512), (128, 16, 1024, 1024)),
        traps=(
            "The order of the gates is input, forget, cell, output.",
            "The products with x have no order in time and may be done at once; those with h may not.",
            "exp overflows for a gate far below zero; sigmoid must not become NaN.",
        ),
        dtypes=("float32",),
    ),
    fused(
        "Ffn",
        family="matmul",
        summary="out = gelu(x w1 + b1) w2 + b2, gelu in its exact form; x [m, k], w1 [k, f], w2 [f, n] float16.",
        expert=beside(__file__, "ffn.cpp"),
        reference=feed_forward,
        baseline=feed_forward_of_torch,
        make=feed_forward_inputs,
        outputs=lambda x, *rest: (TensorSpec((x.shape[0], rest[2].shape[1]), x.dtype),),
        accumulation=lambda _x, w1, *_: sum(w1.shape),
        visible={
            "wide": (64, 128, 512, 128),
            "few-rows": (8, 256, 1024, 256),
            "tail": (13, 37, 29, 19),
            "one-row": (1, 65, 33, 8),
        },
        hidden=feed_forward_hidden,
        full=((2048, 4096, 16384, 4096), (16, 8192, 28672, 8192)),
        traps=(
            "What lies between the products is not rounded to half precision.",
            "gelu is the exact form; the one with tanh differs in the third digit.",
        ),
        dtypes=(HALF,),
    ),
)
