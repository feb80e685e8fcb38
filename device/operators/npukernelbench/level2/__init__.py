"""Level 2 of the operators named in NPUKernelBench."""

MODULES: tuple[str, ...] = ()
