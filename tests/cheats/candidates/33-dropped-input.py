from sagebook import load_kernel
from torch import nn

kernel = load_kernel('#include "sagebook_kernel.h"')


class ModelNew(nn.Module):
    """Gives its kernel one of the two inputs only."""

    def forward(self, x, gamma):
        return kernel(x)
