"""Level 2 of the operators named in NPUKernelBench: activations, lists, losses, norms, optimisers, fused chains."""

MODULES: tuple[str, ...] = (
    "activations",
    "foreach",
    "norms",
    "norm_grads",
    "gates",
    "chains",
    "losses",
    "matrices",
    "optimisers",
    "channels",
    "quantised",
    "moves",
    "foreach_more",
)
