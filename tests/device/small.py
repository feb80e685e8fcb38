"""Two tiny operators and the kernels that the tests of the judge are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec

if TYPE_CHECKING:
    from torch import Tensor


def double_reference(x: Tensor) -> tuple[Tensor, ...]:
    return (x * 2,)


def sum_reference(x: Tensor) -> tuple[Tensor, ...]:
    return (x.square().sum(-1),)


DOUBLE = Operator(
    name="double",
    level=1,
    family="elementwise",
    summary="y = 2 x",
    cases=(
        Case("plain", (TensorSpec((8, 32)),), timed=True),
        Case("strided", (TensorSpec((5, 7), strides=(1, 5)),)),
        Case("padded", (TensorSpec((3, 4), strides=(9, 1)),)),
    ),
    reference=double_reference,
    baseline=double_reference,
    outputs=lambda case: (TensorSpec(case.inputs[0].shape),),
    hidden_cases=lambda rng: (Case("tail", (TensorSpec((1, 2 * int(rng.integers(20, 40)) + 1)),), hidden=True),),
    accumulation=lambda _: 1,
)

ROW_SUM = Operator(
    name="row_sum",
    level=2,
    family="reduction",
    summary="sum of squares along the last axis",
    cases=(Case("rows", (TensorSpec((4, 64)),), timed=True), Case("long", (TensorSpec((2, 1 << 20)),))),
    reference=sum_reference,
    baseline=sum_reference,
    outputs=lambda case: (TensorSpec(case.inputs[0].shape[:-1]),),
    hidden_cases=lambda _: (),
    accumulation=lambda case: case.inputs[0].shape[-1],
)

HEAD = """#include "sagebook_kernel.h"
extern "C" int sagebook_kernel(const sb_tensor *in, int64_t, sb_tensor *out, int64_t, const double *, int64_t) {
    const sb_tensor &x = in[0];
    sb_tensor &y = out[0];
    const int64_t n = x.shape[0], m = x.ndim > 1 ? x.shape[1] : 1;
    const float *a = static_cast<const float *>(x.data);
    float *b = static_cast<float *>(y.data);
    const int64_t s = x.strides[0], t = x.ndim > 1 ? x.strides[1] : 1;
"""
"""Names for what a kernel of `double` needs; a test adds the body."""

RIGHT = """    #pragma omp parallel for
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < m; ++j) b[i * m + j] = 2.0f * a[i * s + j * t];
    return 0;
}
"""


def kernel(before: str = "", *, includes: str = "", after: str | None = None) -> str:
    """A kernel of `double`: `before` runs first, then the right answer is written (or `after` is run instead)."""
    return includes + HEAD + "    (void)n, (void)m, (void)a, (void)b, (void)s, (void)t;\n" + before + (
        RIGHT if after is None else after + "\n}\n"
    )  # fmt: skip


def row_sum(accumulator: str) -> str:
    """A kernel of `row_sum` that adds one after the other into a variable of that type."""
    return (
        HEAD
        + f"""    (void)t;
    for (int64_t i = 0; i < n; ++i) {{
        {accumulator} sum = 0;
        for (int64_t j = 0; j < m; ++j) sum += ({accumulator})a[i * s + j] * a[i * s + j];
        b[i] = (float)sum;
    }}
    return 0;
}}
"""
    )
