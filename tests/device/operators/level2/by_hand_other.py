"""Triangles, optimisers, norms of images, moves and reductions of lists in numpy, often element by element."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

import numpy as np

from tests.device.operators.level2.by_hand_rows import silu, standard

MODES = {1: ROUND_HALF_EVEN, 2: ROUND_FLOOR, 3: ROUND_CEILING, 4: ROUND_HALF_UP, 5: ROUND_DOWN}


def cross(a, b, dim):
    return (np.cross(a, b, axis=int(dim)).astype(a.dtype),)


def triangle(lower):
    def run(x, diagonal):
        out = np.zeros_like(x)
        for i in range(x.shape[-2]):
            edge = max(0, i + int(diagonal) + (1 if lower else 0))
            part = np.s_[..., i, :edge] if lower else np.s_[..., i, edge:]
            out[part] = x[part]
        return (out,)

    return run


def adam_w(var, m, v, grad, *most, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, step):
    g = grad * (-1) ** int(maximize)
    m, v = m + (1 - beta1) * (g - m), v + (1 - beta2) * (g**2 - v)
    top = np.maximum(v, most[0]) if amsgrad else v
    decayed = var - lr * weight_decay * var
    new = decayed - lr * (m / (1 - beta1**step)) / (np.sqrt(top) / np.sqrt(1 - beta2**step) + eps)
    return (new, m, v, *([top] if amsgrad else []))


def ema_adam(grad, var, m, v, s, step, lr, ema_decay, beta1, beta2, eps, mode, bias_correction, weight_decay):
    count = int(step[0]) if bias_correction else np.inf
    g = grad + (0 if mode else weight_decay) * var
    m, v = m + (1 - beta1) * (g - m), v + (1 - beta2) * (g**2 - v)
    update = (m / (1 - beta1**count)) / (np.sqrt(v / (1 - beta2**count)) + eps)
    new = var * (1 - lr * (weight_decay if mode else 0)) - lr * update
    return new, m, v, s + (1 - ema_decay) * (new - s)


def batch_norm(x, gamma, beta, mean, var, training, momentum, eps):
    flat = np.moveaxis(x, 1, -1).reshape(-1, x.shape[1]).T
    if training:
        y, used, rstd = standard(flat, eps)
        new_mean = mean + momentum * (used[:, 0] - mean)
        new_var = var + momentum * (flat.var(axis=1, ddof=1) - var)
    else:
        used, rstd, new_mean, new_var = mean[:, None], (var[:, None] + eps) ** -0.5, mean, var
        y = (flat - used) * rstd
    y = (y.T * gamma + beta).reshape(*np.moveaxis(x, 1, -1).shape)
    return np.moveaxis(y, -1, 1), new_mean, new_var, used[:, 0], rstd[:, 0]


def group_norm_swish(x, gamma, beta, num_groups, eps, activate_swish, swish_scale):
    groups, each = int(num_groups), x.shape[1] // int(num_groups)
    out, means, rstds = np.empty(x.shape), np.empty((len(x), groups)), np.empty((len(x), groups))
    for i, image in enumerate(x):
        for g in range(groups):
            part = slice(g * each, (g + 1) * each)
            y, means[i, g], rstds[i, g] = (a.squeeze() for a in standard(image[part].reshape(-1), eps))
            y = (y.reshape(each, -1) * gamma[part, None] + beta[part, None]).reshape(image[part].shape)
            out[i, part] = silu(swish_scale * y) / swish_scale if activate_swish else y
    return out, means, rstds


def feeds_repeat(feeds, times, output_feeds_size):
    lines = [line for line, count in zip(feeds, times, strict=True) for _ in range(count)]
    lines += [np.zeros_like(feeds[0])] * (int(output_feeds_size) - len(lines))
    return (np.stack(lines),)


def reverse_sequence(x, lengths, seq_dim, batch_dim):
    out = np.empty_like(x)
    for index in np.ndindex(*x.shape):
        length, place = lengths[index[int(batch_dim)]], index[int(seq_dim)]
        source = list(index)
        source[int(seq_dim)] = length - 1 - place if place < length else place
        out[index] = x[tuple(source)]
    return (out,)


def assign(var, value, begin0, end0, step0, begin1, end1, step1):
    out = var.copy()
    places = [list(range(int(b), int(e), int(s))) for b, e, s in ((begin0, end0, step0), (begin1, end1, step1))]
    out[np.ix_(*places)] = value
    return (out,)


def norm(*tensors, order):
    return tuple(np.float64(np.linalg.norm(x.reshape(-1), order)) for x in tensors)


def round_off(*tensors, round_mode):
    def whole(value):
        return float(Decimal(value).quantize(Decimal(1), rounding=MODES[int(round_mode)]))

    return tuple(np.vectorize(whole, otypes=[np.float64])(x) for x in tensors)


OTHER = {
    "Cross": cross,
    "Tril": triangle(lower=True),
    "Triu": triangle(lower=False),
    "ApplyAdamWV2": adam_w,
    "ApplyFusedEmaAdam": ema_adam,
    "BatchNormV3": batch_norm,
    "GroupNormSwish": group_norm_swish,
    "ExpandV2": lambda x, rows: (np.stack([x] * int(rows)),),
    "FeedsRepeat": feeds_repeat,
    "ReverseSequence": reverse_sequence,
    "StridedSliceAssignV2": assign,
    "ForeachNorm": norm,
    "ForeachRoundOffNumber": round_off,
}
