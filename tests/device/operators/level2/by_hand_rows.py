"""Norms, gates, chains, losses and quantisation in numpy, written in another way than their references."""

from __future__ import annotations

import math

import numpy as np

from tests.device.operators.level2.by_hand_simple import ROOT
from tests.device.operators.level2.kit import sigmoid

PHI = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))


def silu(a):
    return a * sigmoid(a)


def standard(a, eps, gamma=1.0, beta=0.0):
    """Norm, mean and 1 / deviation of each row, the variance as E[x^2] - E[x]^2."""
    mean = a.sum(axis=-1, keepdims=True) / a.shape[-1]
    rstd = (np.einsum("...i,...i->...", a, a)[..., None] / a.shape[-1] - mean**2 + eps) ** -0.5
    return (a - mean) * rstd * gamma + beta, mean, rstd


def rms(a, eps, gamma):
    rstd = (np.einsum("...i,...i->...", a, a)[..., None] / a.shape[-1] + eps) ** -0.5
    return a * rstd * gamma, rstd


def layer_norm(x, *parameters, eps, affine):
    return standard(x, eps, *parameters)


def add_layer_norm(x1, x2, gamma, beta, *bias, eps, additional_out):
    a = np.sum([x1, x2, *(np.broadcast_to(b, x1.shape) for b in bias)], axis=0)
    return (*standard(a, eps, gamma, beta), *([a] if additional_out else []))


def add_rms_norm(x1, x2, gamma, eps):
    return (*rms(x1 + x2, eps, gamma), x1 + x2)


def add_rms_norm_cast(x1, x2, gamma, eps):
    y, rstd = rms(x1 + x2, eps, gamma)
    return y, y, rstd, x1 + x2


def deep_norm(x, gx, beta, gamma, alpha, eps):
    y, mean, rstd = standard(alpha * x + gx, eps, gamma, beta)
    return mean, rstd, y


def back_through_norm(dy, a, gamma, mean, rstd, *, centred):
    """Row by row, with the Jacobian of a norm as a matrix: (I - 1 1^T / n - s s^T / n) * rstd."""
    n = a.shape[-1]
    rows, out = [t.reshape(-1, t.shape[-1]) for t in (dy, a, mean, rstd)], []
    for g, x, m, r in zip(*rows, strict=True):
        s = (x - m) * r
        jacobian = np.eye(n) - np.outer(s, s) / n - (np.ones((n, n)) / n if centred else 0)
        out.append(r * jacobian @ (g * gamma))
    dgamma = sum(g * (x - m) * r for g, x, m, r in zip(*rows, strict=True))
    return np.array(out).reshape(a.shape), dgamma, rows[0].sum(axis=0)


def add_layer_norm_grad(dy, x1, x2, rstd, mean, gamma, *more, dsum):
    dx, dgamma, dbeta = back_through_norm(dy, x1 + x2, gamma, mean, rstd, centred=True)
    return dx + sum(more), dgamma, dbeta


def deep_norm_grad(dy, x, gx, gamma, mean, rstd, alpha):
    da, dgamma, dbeta = back_through_norm(dy, alpha * x + gx, gamma, mean, rstd, centred=True)
    return alpha * da, da, dbeta, dgamma


def rms_norm_grad(dy, x, rstd, gamma):
    return back_through_norm(dy, x, gamma, 0 * rstd, rstd, centred=False)[:2]


def swiglu(x, dim):
    a, b = np.split(x, 2, axis=int(dim))
    return (silu(a) * b,)


def swiglu_grad(dy, x, dim):
    a, b = np.split(x, 2, axis=int(dim))
    slope = sigmoid(a) + silu(a) - silu(a) * sigmoid(a)
    return (np.concatenate([dy * b * slope, dy * silu(a)], axis=int(dim)),)


def gelu(x, approximate):
    return 0.5 * x * (1 + np.tanh(ROOT * (x + 0.044715 * x**3))) if approximate else x * PHI(x)


def geglu(x, approximate, activate_left):
    n = x.shape[-1] // 2
    gate, value = (x[..., :n], x[..., n:]) if activate_left else (x[..., n:], x[..., :n])
    return value * gelu(gate, approximate), gelu(gate, approximate)


def softmax(x):
    e = np.exp(x - np.median(x, axis=-1, keepdims=True))
    return (e / np.add.reduce(e, axis=-1, keepdims=True),)


def mul_sigmoid(x1, x2, t1, t2, t3):
    s = sigmoid(t1 * x1)
    s[s >= t2] *= 2
    return (np.stack([row.reshape(x2.shape[1:]) * x2[0] * t3 for row in s]),)


def mul_mul_norm(a, b, c, add, gamma, beta):
    return standard(a * b * c, add[0], gamma, beta)[:1]


def add_sigmoid_mul_sum(x, y, scale, rows, weight):
    return (np.einsum("bsd,bs,bsd->bd", sigmoid((x + y) * scale), rows[..., 0], weight),)


def mse_loss(x, target, reduction):
    d = np.abs(x - target)
    return (d**2 if reduction == 0 else np.array(np.vdot(d, d) / (d.size if reduction == 1 else 1)),)


def mse_loss_grad(x, target, dout, reduction):
    return ((x - target) * dout * {0: 2, 1: 2 / x.size, 2: 2}[int(reduction)],)


def mixture(x, target, weight, ignore_index, label_smoothing):
    """Each row's share of each class in its loss: the target's and the smoothed part, by the weights."""
    n, classes = x.shape
    share = np.tile(label_smoothing * weight / classes, (n, 1))
    share[np.arange(n), target] += (1 - label_smoothing) * weight[target]
    used = target != ignore_index
    return share * used[:, None], (weight[target] * used).sum()


def cross_entropy(x, target, weight, ignore_index, label_smoothing, reduction):
    log_p = x - np.logaddexp.reduce(x, axis=1, keepdims=True)
    share, total = mixture(x, target, weight, ignore_index, label_smoothing)
    loss = -(share * log_p).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return (loss if reduction == 0 else np.float64(loss.sum()) / (total if reduction == 1 else 1)), log_p


def cross_entropy_grad(dloss, log_p, target, weight, ignore_index, label_smoothing, reduction):
    share, total = mixture(log_p, target, weight, ignore_index, label_smoothing)
    with np.errstate(invalid="ignore"):
        g = np.broadcast_to(dloss, (len(target),)) / (total if reduction == 1 else 1)
        p = np.exp(log_p)
        return (np.stack([g[i] * (p[i] * share[i].sum() - share[i]) for i in range(len(g))]),)


def to_bytes(x):
    return np.minimum(np.maximum(x, -128), 127)


def by_rows(g):
    step = np.max(np.abs(g), axis=-1, keepdims=True) / 127
    return to_bytes(g / step), step


def gelu_quant(x, scale, *offset, approximate, dynamic):
    g = gelu(x, approximate) * scale
    return by_rows(g) if dynamic else (to_bytes(g + offset[0]),)


def dequant_swiglu_quant(x, *others, activate_left, dynamic):
    a, n = x.astype(np.float64), x.shape[-1] // 2
    if x.dtype.kind == "i":
        weight_scale, activation_scale, *others = others
        a = np.einsum("...j,j,...k->...j", a, weight_scale, activation_scale)
    smooth, *offset = others
    left, right = a[..., :n], a[..., n:]
    g = silu(left) * right if activate_left else silu(right) * left
    return by_rows(g * smooth) if dynamic else (to_bytes(g / smooth + offset[0]),)


def add_rms_norm_quant(x1, x2, gamma, scale, zero, eps, div_mode):
    y = rms(x1 + x2, eps, gamma)[0] * scale ** (-1.0 if div_mode else 1.0)
    return to_bytes(y + zero), x1 + x2


ROWS = {
    "RmsNorm": lambda x, gamma, eps: rms(x, eps, gamma),
    "AddRmsNorm": add_rms_norm,
    "AddRmsNormCast": add_rms_norm_cast,
    "LayerNormV4": layer_norm,
    "AddLayerNorm": add_layer_norm,
    "PreLayerNorm": lambda x, y, gamma, beta, eps: standard(x + y, eps, gamma, beta)[:1],
    "DeepNorm": deep_norm,
    "AddLayerNormGrad": add_layer_norm_grad,
    "DeepNormGrad": deep_norm_grad,
    "RmsNormGrad": rms_norm_grad,
    "SwiGlu": swiglu,
    "SwiGluGrad": swiglu_grad,
    "GeGluV2": geglu,
    "MulSigmoid": mul_sigmoid,
    "InplaceAttnSoftmax": softmax,
    "SelectReduceMaxDSubExpReduceSumDRealDiv": lambda chosen, x1, x2: softmax(np.where(chosen, x1, x2)),
    "AddSigmoidMulReduceSumD": add_sigmoid_mul_sum,
    "MulSigmoidMulAddCustom": lambda x, a, b, c: (sigmoid(x * a) * b + c,),
    "MulMulReduceMeanDTwice": mul_mul_norm,
    "MseLoss": mse_loss,
    "MseLossGradV2": mse_loss_grad,
    "CrossEntropyLoss": cross_entropy,
    "CrossEntropyLossGrad": cross_entropy_grad,
    "GeluQuant": gelu_quant,
    "DequantSwigluQuant": dequant_swiglu_quant,
    "AddRmsNormQuant": add_rms_norm_quant,
}
