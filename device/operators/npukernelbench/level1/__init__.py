"""Level 1 of the operators named in NPUKernelBench."""

MODULES: tuple[str, ...] = ()
