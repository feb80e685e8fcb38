"""The KernelBench form around a kernel: the module only launches it."""

from sagebook import load_kernel
from torch import nn

kernel = load_kernel(r"""
#include "sagebook_kernel.h"
#include <cmath>
extern "C" int sagebook_kernel(const sb_tensor *in, int64_t, sb_tensor *out, int64_t, const double *, int64_t) {
    int64_t n = 1;
    for (int64_t a = 0; a < in[0].ndim; ++a) n *= in[0].shape[a];
    for (int64_t i = 0; i < n; ++i) {
        int64_t place = 0, rest = i;
        for (int64_t a = in[0].ndim - 1; a >= 0; --a) {
            place += rest % in[0].shape[a] * in[0].strides[a];
            rest /= in[0].shape[a];
        }
        const double x = static_cast<const float *>(in[0].data)[place];
        static_cast<float *>(out[0].data)[i] = static_cast<float>(0.5 * x * std::erfc(-x * 0.70710678118654752));
    }
    return 0;
}
""")


class ModelNew(nn.Module):
    """Launches the kernel."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        return kernel(x)
