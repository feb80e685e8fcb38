"""How the independent pieces of a kernel are handed to threads."""

from __future__ import annotations

from agent.models.search.kernel import Frame
from agent.models.search.writer import Writer

PARALLEL_FROM = 32768
"""Elements below which opening a parallel region costs more than it saves: a few microseconds on two cores."""


def write_threads(entry: Writer, frame: Frame, count: str, elements: str) -> None:
    """Call `work(begin, end)` over [0, count), shared as the choice says. `elements`: how many there are in all."""
    match frame.choices["threads"]:
        case "none":
            entry.line(f"work(0, {count});")
        case "chunks":
            entry.line("// Each thread takes one contiguous share, so it streams through its own part of memory.")
            entry.line("#pragma omp parallel")
            with entry.block(""):
                entry.line("const int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();")
                entry.line(f"work({count} * me / threads, {count} * (me + 1) / threads);")
        case how:
            condition = f" if ({elements} >= {PARALLEL_FROM})" if how == "threshold" else ""
            if condition:
                entry.line(
                    "// Small problems stay in this thread: opening the parallel region would cost more than the work."
                )
            entry.line(f"#pragma omp parallel for schedule(static){condition}")
            entry.line(f"for (int64_t at = 0; at < {count}; ++at) work(at, at + 1);")
