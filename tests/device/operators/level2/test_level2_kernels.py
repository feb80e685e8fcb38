"""Expert kernels of level 2 before the judge: compiled, run on all problems and compared with float64.

Compiling takes most of the time, so that without a wish for more those are judged that between them use every shared
header and every form of operator; with `SAGEBOOK_ALL_EXPERTS=1` in the environment all are.
"""

from __future__ import annotations

import os

import pytest

from device import evaluate, load_judge_key
from device.operators import get, names

pytest.importorskip("torch")

EXPERTS = [name for name in names("npukernelbench") if get(name).level == 2 and get(name).expert_file is not None]
USUAL = (
    *("Gelu", "GeGluV2", "MulSigmoid", "InplaceAttnSoftmax", "ForeachErf", "ForeachNorm", "ForeachAddcmulScalarList"),
    *("AddLayerNormGrad", "BatchNormV3", "GroupNormSwish", "CrossEntropyLoss", "ApplyAdamWV2", "GeluQuant"),
    "ReverseSequence",
)
JUDGED = EXPERTS if os.environ.get("SAGEBOOK_ALL_EXPERTS") == "1" else USUAL


@pytest.mark.parametrize("name", EXPERTS)
def test_an_expert_kernel_is_one_text(name) -> None:
    """Shared headers are written out once each, so that the text compiles wherever it goes."""
    text = get(name).expert
    assert text is not None
    assert '#include "../' not in text
    assert text.count("int sagebook_kernel(") == 1
    assert text.count("struct Places {") <= 1


@pytest.mark.parametrize("name", JUDGED)
def test_an_expert_kernel_passes_the_judge(name, tmp_path) -> None:
    """The hardened judge finds nothing wrong, under inputs that the kernel's author never saw."""
    key = load_judge_key(tmp_path / "judge.key")
    report = evaluate(get(name).expert, name, seed=2026, key=key, measure=False).data
    assert report["outcome"] == "correct", (report["summary"], report["verify"], report["compile"]["log"])
