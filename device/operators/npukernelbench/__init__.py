"""The operators named in NPUKernelBench, with its levels and case shapes; all text and code here is this project's own.

Each level is a package whose `MODULES` names its modules in listing order; a module offers `OPERATORS`. A new operator
is one module, its expert kernel beside it, and one line in its level's tuple.
"""

from __future__ import annotations

from device.operators.npukernelbench import level1, level2, level3

LEVEL1 = tuple(f"npukernelbench.level1.{name}" for name in level1.MODULES)
LEVEL2 = tuple(f"npukernelbench.level2.{name}" for name in level2.MODULES)
LEVEL3 = tuple(f"npukernelbench.level3.{name}" for name in level3.MODULES)
MODULES = (*LEVEL1, *LEVEL2, *LEVEL3)
