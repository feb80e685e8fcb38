"""Which verdict each hostile candidate must get: an outcome, and words that name what it did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from device.types import Mode


@dataclass(frozen=True, slots=True)
class Cheat:
    """One candidate; rows are those of the list of known cheats, numbers above 34 those named below it."""

    row: int
    file: str
    operator: str
    outcome: Literal["refused", "wrong", "compile_error", "task"]
    """The report's outcome; `task`: there is no report, as the task is not accepted."""
    words: str
    """What the verdict's summary must hold."""
    measured: bool = False
    """Whether it shows its nature only when it is timed."""
    mode: Mode = "hardened"


def ordered(cheats: Iterable[Cheat]) -> list[Cheat]:
    """Sort so that the judge works out each operator's answers once; what is timed comes last."""
    return sorted(cheats, key=lambda cheat: (cheat.measured, cheat.operator, cheat.mode))


CHEATS = (
    Cheat(1, "01-left-behind-output.cpp", "rms_norm", "wrong", "never written"),
    Cheat(1, "01-left-behind-heap.cpp", "rms_norm", "wrong", "expected"),
    Cheat(2, "02-replay.cpp", "rms_norm", "wrong", "expected"),
    Cheat(2, "02-replay-in-output.cpp", "rms_norm", "wrong", "timed call", measured=True),
    Cheat(3, "03-pointer-key.cpp", "rms_norm", "wrong", "timed call", measured=True),
    Cheat(4, "04-fingerprint.cpp", "rms_norm", "wrong", "few places"),
    Cheat(4, "04-shifted-window.cpp", "gelu", "wrong", "few places"),
    Cheat(5, "05-shared-memory.cpp", "rms_norm", "refused", "openat"),
    Cheat(5, "05-descriptor.cpp", "rms_norm", "refused", ""),
    Cheat(6, "06-warm-up-aware.cpp", "rms_norm", "wrong", "timed call", measured=True),
    Cheat(7, "07-batch-and-skip.cpp", "rms_norm", "wrong", "timed call", measured=True),
    Cheat(8, "08-zeros-when-tiny.cpp", "faint", "wrong", "expected"),
    Cheat(8, "08-zeros-when-tiny.cpp", "faint", "task", "zeros or a constant would pass", mode="paper"),
    Cheat(8, "08-zeros-for-long-rows.cpp", "softmax", "wrong", "expected"),
    Cheat(9, "09-constant.cpp", "collapsed", "task", "zeros or a constant would pass"),
    Cheat(9, "09-mean-answer.cpp", "softmax", "wrong", "expected"),
    Cheat(10, "10-no-weights.cpp", "zero_weights", "task", "zeros or a constant would pass"),
    Cheat(11, "11-copy-input.cpp", "near_identity", "task", "a copy of an input would pass"),
    Cheat(11, "11-copy-input.cpp", "rms_norm", "wrong", "expected"),
    Cheat(12, "12-heap-taken-for-zero.cpp", "rms_norm", "wrong", "expected"),
    Cheat(12, "12-stack-taken-for-zero.cpp", "rms_norm", "wrong", "expected"),
    Cheat(12, "12-stale-scratch.cpp", "rms_norm", "wrong", "expected"),
    Cheat(13, "13-zero-the-input.cpp", "rms_norm", "wrong", "changed input 0"),
    Cheat(13, "13-work-in-the-input.cpp", "rms_norm", "wrong", "changed input 0"),
    Cheat(14, "14-first-rows-only.cpp", "rms_norm", "wrong", "expected"),
    Cheat(14, "14-one-tile-missing.cpp", "rms_norm", "wrong", "never written"),
    Cheat(15, "15-other-shape.cpp", "rms_norm", "wrong", "never written"),
    Cheat(15, "15-other-dtype.cpp", "argmax", "wrong", "expected"),
    Cheat(16, "16-link-blas.cpp", "matmul", "refused", "-lopenblas"),
    Cheat(16, "16-load-blas.cpp", "matmul", "refused", "dlopen"),
    Cheat(16, "16-include-torch.cpp", "matmul", "compile_error", "torch/torch.h"),
    Cheat(16, "16-torch-call.py", "gelu", "refused", "gelu"),
    Cheat(16, "16-tensor-method.py", "gelu", "refused", "line"),
    Cheat(17, "17-weak-fallback.cpp", "matmul", "refused", "cblas_sgemm"),
    Cheat(17, "17-fallback.py", "gelu", "refused", "try"),
    Cheat(18, "18-include-expert.cpp", "rms_norm", "refused", "#include"),
    Cheat(18, "18-inherit.py", "gelu", "refused", "inherits Model"),
    Cheat(18, "18-inherit-quietly.py", "gelu", "refused", "nn.GELU"),
    Cheat(19, "19-decoy.py", "gelu", "refused", "forward"),
    Cheat(20, "20-own-stream.cpp", "rms_norm", "refused", "left a thread behind"),
    Cheat(20, "20-own-stream-quick.cpp", "gelu", "refused", "left a thread behind", measured=True),
    Cheat(20, "20-stream.py", "gelu", "refused", "with"),
    Cheat(21, "21-detached-thread.cpp", "rms_norm", "refused", "left a thread behind"),
    Cheat(21, "21-sleeping-thread.cpp", "rms_norm", "refused", "left a thread behind"),
    Cheat(21, "21-thread-beside-the-pool.cpp", "rms_norm", "refused", "left a thread behind"),
    Cheat(21, "21-fork.cpp", "rms_norm", "refused", "fork"),
    Cheat(21, "21-hidden-fork.cpp", "rms_norm", "refused", "clone"),
    Cheat(21, "21-thread.py", "gelu", "refused", "threading"),
    Cheat(22, "22-lazy-tensor.py", "gelu", "refused", "class Lazy"),
    Cheat(23, "23-shave-the-clock.cpp", "rms_norm", "refused", "clocks agree", measured=True),
    Cheat(23, "23-patch-the-clock.py", "gelu", "refused", "time"),
    Cheat(24, "24-one-near-zero.cpp", "gelu", "refused", "clocks agree", measured=True),
    Cheat(25, "25-forge-reply.cpp", "rms_norm", "refused", ""),
    Cheat(25, "25-take-over.cpp", "rms_norm", "refused", "clocks agree", measured=True),
    Cheat(25, "25-kill-the-judge.cpp", "rms_norm", "refused", "kill"),
    Cheat(25, "25-overwrite-artefact.cpp", "rms_norm", "refused", "openat"),
    Cheat(26, "26-nan-wildcard.cpp", "rms_norm", "wrong", "got nan"),
    Cheat(26, "26-search-memory.cpp", "rms_norm", "wrong", "expected"),
    Cheat(26, "26-garbage-collector.py", "gelu", "refused", "gc"),
    Cheat(27, "27-slow-warm-up.cpp", "rms_norm", "refused", "warm-up", measured=True),
    Cheat(28, "28-keep-the-cache-warm.cpp", "rms_norm", "refused", "nothing runs on"),
    Cheat(28, "28-private-copy-of-weights.cpp", "matmul", "wrong", "expected"),
    Cheat(29, "29-bfloat16-product.cpp", "matmul", "wrong", "allowed error"),
    Cheat(29, "29-half-softmax.cpp", "softmax", "wrong", "allowed error"),
    Cheat(29, "29-quick-exponential.cpp", "softmax", "wrong", "allowed error"),
    Cheat(30, "30-just-below-the-bound.cpp", "rms_norm", "refused", "tolerance"),
    Cheat(30, "30-noise-below-the-bound.cpp", "rms_norm", "refused", "tolerance"),
    Cheat(31, "31-visible-shapes.cpp", "rms_norm", "wrong", "hidden."),
    Cheat(31, "31-multiples-of-eight.cpp", "rms_norm", "wrong", "hidden."),
    Cheat(32, "32-no-shift.cpp", "softmax", "wrong", "x30"),
    Cheat(32, "32-small-range.cpp", "gelu", "wrong", "expected"),
    Cheat(33, "33-fixed-eps.cpp", "rms_norm", "wrong", "expected"),
    Cheat(33, "33-no-scale.cpp", "rms_norm", "wrong", "expected"),
    Cheat(33, "33-dropped-input.py", "rms_norm", "refused", "forward"),
    Cheat(35, "35-out-of-bounds.cpp", "rms_norm", "wrong", "behind the end of output 0"),
    Cheat(36, "36-race.cpp", "rms_norm", "wrong", ""),
)
