"""The model that composes kernels from a space of choices; see `model.SearchModel`.

Where a thing is:

- what to do next: `model`, `plan` (the situation), `correct` (a repair), `improve` (an optimization), `decisions`
  and `recommend` (what memory says)
- reading results and texts: `diagnose`, `rules`
- reading a reference into the program of `ir`: `translate`, `calls`, `expression`, `views`, `canonical`
- the choices: `dimensions` (each decision and its values), `space` (of one family), `rows` (of operations over rows)
- writing a kernel: `kernel` (the frame), `emit`, and by family `emit_elementwise`, `emit_layout`, `emit_reduction`,
  `emit_matmul`, `emit_attention`
- parts of kernels: `writer`, `prelude`, `threads`, `pointwise`, `polynomials`, `accumulate`, `passes`, `row_loops`,
  `product_loops`, `product_tiles`, `attention_vector`
- what it refuses: `errors`
"""

from __future__ import annotations

from agent.models.search.model import SearchModel

__all__ = ["SearchModel"]
