"""Level 3 of the operators named in NPUKernelBench."""

MODULES: tuple[str, ...] = ()
