"""Level 1 of the operators named in NPUKernelBench: one formula an element, reductions of one vector, copies."""

MODULES: tuple[str, ...] = ("comparison", "movement", "layout", "arithmetic", "functions", "vectors")
