"""Expert kernels of the suites beside the starter one pass the hardened judge, every case and hidden shape."""

from __future__ import annotations

import pytest

from device import Limits
from device.operators import get, names

pytest.importorskip("torch")

OWN = [
    name
    for suite in ("npukernelbench", "fused")
    for name in names(suite)
    if get(name).level != 2 and get(name).expert is not None
]
ROOM = Limits(call_seconds=10.0)


@pytest.mark.parametrize("name", OWN)
def test_expert_passes_the_hardened_judge(name, judge) -> None:
    """Correct under every distribution, byte-identical when repeated, and no constant would have passed."""
    data = judge(get(name).expert, get(name), limits=ROOM, seed=29).data
    assert data["outcome"] == "correct", data["summary"]
    checks = {check["name"]: check for check in data["verify"]["checks"]}
    assert checks["zeros and constants would fail"]["ok"], checks["zeros and constants would fail"]["detail"]


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("CastMath", "v != 0; });", "v; });"),
        ("Icamax", "at + 1", "at"),
        ("ScatterList", "pair[indices.strides[1]] : 0", "pair[indices.strides[1]] : pair[indices.strides[1]]"),
        ("GroupedMatmulSliceK", "columns(a, 1, begin, end)", "columns(a, 1, 0, end - begin)"),
        ("TopKV3", "0xffffffffffull - (keys[i] & 0xffffffffffull)", "keys[i] & 0xffffffffffull"),
    ],
)
def test_a_small_mistake_is_refused(name, right, wrong, judge) -> None:
    """The expert with one slip in it, of the kind that its traps warn of, is wrong."""
    source = get(name).expert
    assert right in source
    data = judge(source.replace(right, wrong), get(name), limits=ROOM, seed=31).data
    assert data["outcome"] in {"wrong", "crash"}, data["summary"]
