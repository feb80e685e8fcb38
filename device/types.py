"""What the four steps (build, run, compare, time) give back, and the limits under which they work.

Times are in seconds unless a name ends in `_ms`; sizes are in bytes unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Outcome = Literal["compile_error", "refused", "crash", "hang", "resource", "wrong", "correct"]
Mode = Literal["hardened", "paper"]
RuleName = Literal["hardened", "npukernelbench", "literal"]
Ending = Literal["returned", "error", "crash", "hang", "resource", "refused"]
"""How one call of a kernel ended: it returned 0, it returned its own error, or it did not return."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one evaluation may use before it is stopped."""

    compile_seconds: float = 30.0
    compile_memory: int = 4 << 30
    call_seconds: float = 5.0
    """Wall clock for one call of the kernel; a call that takes longer is a hang."""
    total_seconds: float = 60.0
    """Wall clock for verification and measurement together."""
    memory: int = 1 << 30
    """Address space of the kernel's process beyond its inputs and outputs."""
    processes: int = 64
    """Threads and processes together, where the machine counts them for the sandbox alone."""
    files: int = 16
    file_bytes: int = 0
    stack: int = 8 << 20
    threads: int = 0
    """OpenMP threads for the kernel and for the torch reference; 0 means one a core."""


@dataclass(frozen=True, slots=True)
class Build:
    """The compile step: an artefact, or the reason why there is none."""

    outcome: Literal["built", "compile_error", "refused", "resource"]
    command: tuple[str, ...]
    seconds: float
    log: str
    cached: bool = False
    artefact: Path | None = None
    artefact_sha256: str | None = None
    summary: str = ""
    checks: tuple[Check, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is something to run."""
        return self.outcome == "built"


@dataclass(frozen=True, slots=True)
class Ended:
    """The run step: how a call, or the process it ran in, ended, in words that name what happened."""

    how: Ending
    message: str = ""


@dataclass(frozen=True, slots=True)
class Called:
    """One command to the worker that came back: what the worker claims and what the judge saw, in nanoseconds.

    `seen_ns` lasts until every thread of the worker stood still; for `waited_ns` of it the worker's first thread
    or the judge was ready but had no core; `used_ns` is the worker's processor time.
    """

    code: int
    claimed_ns: int
    seen_ns: int
    waited_ns: int = 0
    used_ns: int = 0

    def least_ns(self, threads: int) -> float:
        """Return what the command took at least, the way there and back included, from the system's two books."""
        return max(self.seen_ns - self.waited_ns, self.used_ns / threads)


@dataclass(frozen=True, slots=True)
class Tile:
    """A box of an output, by its axes: the area of wrong elements round the first of them."""

    start: tuple[int, ...]
    stop: tuple[int, ...]
    """One past the last, as in a slice."""
    wrong: int
    """How many of its elements are wrong."""
    tail: tuple[int, ...]
    """Axes at whose end it lies without reaching over all of them: where a tail would be."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The compare step: one output held against the float64 reference.

    The element named is the first that fails in row-major order; the errors are the largest over the whole output, in
    the output's own units and relative to the reference's element. All are None where nothing could be compared.
    """

    ok: bool
    message: str = ""
    index: tuple[int, ...] | None = None
    expected: float | None = None
    got: float | None = None
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    tile: Tile | None = None
    errors: tuple[int, ...] = ()
    """How many elements lie in each class of `device.compare.CLASSES`."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the judge's list: what was looked at, whether it held, and what was seen."""

    name: str
    ok: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """The first thing that went wrong, where, and by how much."""

    kind: Ending | Literal["wrong"]
    case: str
    message: str
    comparison: Comparison | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """What running and comparing all cases came to."""

    cases: int
    passed: int
    seconds: float
    checks: tuple[Check, ...]
    failure: Failure | None = None
    errors: tuple[int, ...] = ()
    """Elements of all cases that passed, in the classes of `device.compare.CLASSES`."""

    @property
    def ok(self) -> bool:
        """Whether every case passed and every check held."""
        return self.failure is None


@dataclass(frozen=True, slots=True)
class Timing:
    """Samples of one side, in milliseconds."""

    samples_ms: tuple[float, ...]
    mean_ms: float
    median_ms: float
    min_ms: float
    std_ms: float


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as long the calls of one side took as those of the other, on average."""

    value: float
    low: float
    high: float
    """Ends of the 95 % interval."""
    pairs: int


@dataclass(frozen=True, slots=True)
class CaseMeasurement:
    """The time step for one case: both sides under the same inputs, interleaved."""

    case: str
    shapes: tuple[tuple[int, ...], ...]
    candidate: Timing
    reference: Timing
    noise_ms: float
    speedup: Ratio
    itself: Ratio
    """Torch against torch, two legs of the same turns; its interval must contain 1."""
    tries: int = 1
    """How often the samples were taken anew until it did, the first included."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the machine was doing, before or after the time step; None where it does not say."""

    load: float
    """Processes that ran or waited for a core, on average over the last minute."""
    mhz: tuple[float, float, float] | None
    """Least, median and greatest frequency of the cores that the judge may use, in MHz."""
    governor: str | None
    """What sets the frequency, such as `performance`."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The time step over all timed cases, or the failure that stopped it."""

    cases: tuple[CaseMeasurement, ...]
    warm_up: int
    timed: int
    seconds: float
    checks: tuple[Check, ...] = ()
    failure: Failure | None = None
    conditions: tuple[Conditions, ...] = ()
    """Before and after."""
    uneven: str | None = None
    """Why these samples say nothing of the kernel: torch did not agree with itself."""


@dataclass(frozen=True, slots=True)
class DeviceDescription:
    """What a report says about the device and the software around it."""

    kind: str
    name: str
    cores: int
    features: tuple[str, ...] = ()
    toolkit: str | None = None
    compiler: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
