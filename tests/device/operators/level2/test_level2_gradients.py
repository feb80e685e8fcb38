"""What an operator passes back is what torch's automatic differentiation makes of the operator's own forward form."""

from __future__ import annotations

import pytest

from device.operators import get

torch = pytest.importorskip("torch")

F64 = torch.float64


def normal(*shape, seed=0):
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed + sum(shape)))


def differentiated(name, inputs, number, dy, **attributes):
    """Gradients of sum(dy * output `number`) with respect to all floating inputs."""
    leaves = [x.clone().requires_grad_() if x.is_floating_point() else x for x in inputs]
    out = get(name).reference(*leaves, **attributes)[number]
    return torch.autograd.grad((out * dy).sum(), [x for x in leaves if x.is_floating_point()])


def passed_back(name, *inputs, **attributes):
    return get(name).reference(*inputs, **attributes)


@pytest.mark.parametrize(
    ("forward", "backward", "attributes"),
    [
        ("FastGelu", "FastGeluGrad", {}),
        ("Gelu", "GeluGrad", {}),
        ("SwiGlu", "SwiGluGrad", {"dim": -1}),
        ("SwiGlu", "SwiGluGrad", {"dim": 0}),
    ],
)
def test_an_activation_passes_back_its_derivative(forward, backward, attributes) -> None:
    """Between -6 and 6, and far out, where exponentials have vanished or would overflow."""
    x = torch.cat(
        [normal(8, 12) * 3, torch.tensor([[-900.0, 900, -60, 60, -30, 30, 0, -2, 2, 1e-9, 9, -9]] * 2, dtype=F64)]
    )
    dy = normal(*get(forward).reference(x, **attributes)[0].shape, seed=1)
    (expected,) = differentiated(forward, [x], 0, dy, **attributes)
    (got,) = passed_back(backward, dy, x, **attributes)
    expected = torch.nan_to_num(expected, nan=0.0)  # autograd multiplies an infinite exponential by 0
    far = (x.abs() > 700) if forward != "SwiGlu" else torch.zeros_like(x, dtype=torch.bool)
    torch.testing.assert_close(got[~far], expected[~far], rtol=1e-10, atol=1e-12)
    assert torch.isfinite(got).all()


def test_layer_norm_of_a_sum_passes_back_to_both_parts_gamma_and_beta() -> None:
    """Dx belongs to x1 and to x2 alike; what comes from the sum's own use is added."""
    x1, x2, gamma, beta, dy = (
        normal(3, 5, 7),
        normal(3, 5, 7, seed=1),
        normal(7),
        normal(7, seed=2),
        normal(3, 5, 7, seed=3),
    )
    settings = {"eps": 1e-5, "additional_out": 0}
    by_x1, by_x2, by_gamma, by_beta = differentiated("AddLayerNorm", [x1, x2, gamma, beta], 0, dy, **settings)
    _, mean, rstd = get("AddLayerNorm").reference(x1, x2, gamma, beta, **settings)
    dx, dgamma, dbeta = passed_back("AddLayerNormGrad", dy, x1, x2, rstd, mean, gamma, dsum=0)
    for got, expected in ((dx, by_x1), (dx, by_x2), (dgamma, by_gamma), (dbeta, by_beta)):
        torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-12)
    more = normal(3, 5, 7, seed=9)
    torch.testing.assert_close(
        passed_back("AddLayerNormGrad", dy, x1, x2, rstd, mean, gamma, more, dsum=1)[0], dx + more
    )


def test_deep_norm_passes_back_alpha_times_as_much_to_x() -> None:
    """Its statistics come first in the forward form, beta before gamma in both."""
    x, gx, beta, gamma, dy = normal(6, 9), normal(6, 9, seed=1), normal(9), normal(9, seed=2), normal(6, 9, seed=3)
    settings = {"alpha": 0.3, "eps": 1e-6}
    expected = differentiated("DeepNorm", [x, gx, beta, gamma], 2, dy, **settings)
    mean, rstd, _ = get("DeepNorm").reference(x, gx, beta, gamma, **settings)
    got = passed_back("DeepNormGrad", dy, x, gx, gamma, mean, rstd, alpha=0.3)
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


def test_rms_norm_passes_back_to_x_and_gamma() -> None:
    """With the statistic that the forward form gave."""
    x, gamma, dy = normal(4, 3, 11), normal(11), normal(4, 3, 11, seed=2)
    _, rstd = get("RmsNorm").reference(x, gamma, eps=1e-6)
    expected = differentiated("RmsNorm", [x, gamma], 0, dy, eps=1e-6)
    for a, b in zip(passed_back("RmsNormGrad", dy, x, rstd, gamma), expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_the_squared_error_passes_back_its_derivative(reduction) -> None:
    """Twice the difference, over the number of elements for the mean."""
    x, target = normal(5, 8), normal(5, 8, seed=1)
    dy = normal(5, 8, seed=2) if reduction == 0 else torch.full((5, 8), 0.7, dtype=F64)
    weight = dy if reduction == 0 else torch.tensor(0.7, dtype=F64)
    expected, _ = differentiated("MseLoss", [x, target], 0, weight, reduction=reduction)
    torch.testing.assert_close(passed_back("MseLossGradV2", x, target, dy, reduction=reduction)[0], expected)


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_cross_entropy_passes_back_its_derivative(reduction, smoothing) -> None:
    """To the logits, from the log-probabilities; ignored rows get nothing."""
    x, weight = normal(6, 5), normal(5, seed=1).abs() + 0.1
    target = torch.tensor([0, 4, 2, 2, 1, 3])
    settings = {"ignore_index": 2, "label_smoothing": smoothing, "reduction": reduction}
    dloss = normal(6, seed=3) if reduction == 0 else normal(1, seed=4)
    expected, _ = differentiated("CrossEntropyLoss", [x, target, weight], 0, dloss, **settings)
    log_p = get("CrossEntropyLoss").reference(x, target, weight, **settings)[1]
    got = passed_back("CrossEntropyLossGrad", dloss, log_p, target, weight, **settings)[0]
    torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-12)
    assert not got[2].any()
