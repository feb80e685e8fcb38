"""Level 3 of the operators named in NPUKernelBench: products of matrices in many forms, attention, selection."""

MODULES: tuple[str, ...] = ("products", "blas", "grouped", "dequantised", "attention", "selection")
