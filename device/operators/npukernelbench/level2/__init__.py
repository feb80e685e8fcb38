"""Level 2 of the operators named in NPUKernelBench: activations, lists, losses, norms, optimisers, fused chains."""

MODULES: tuple[str, ...] = ("activations", "foreach")
