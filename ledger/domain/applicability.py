"""When an experience may be offered: its conditions against what a task says of itself."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from ledger.domain import events as ev
from ledger.domain.state import Experience, Stage, State, Task
from ledger.errors import ConditionInvalidError

_ALIASES = {
    "half": "float16",
    "fp16": "float16",
    "bf16": "bfloat16",
    "float": "float32",
    "fp32": "float32",
    "double": "float64",
    "fp64": "float64",
}
DTYPES = (
    *("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn_x2", "hifloat8"),
    *("int4", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"),
    *("complex32", "complex64", "complex128"),
)
"""Element types that a condition may name, as torch names them where it does; `fp16`, `half`, `bf16` … are read too."""
_VERSION = re.compile(r"(?:^|\s)v?(\d[^\s]*)$")
_ALPHA = re.compile(r"(?i)(rc\d+)\.alpha(\d+)$")


def check(conditions: ev.Conditions) -> None:
    """Raise ConditionInvalidError naming the condition that can not hold or be read."""
    for field in ("families", "dtypes", "languages", "chips"):
        if any(not item.strip() for item in getattr(conditions, field)):
            raise ConditionInvalidError(field, "it holds an empty name; leave that out")
    for dtype in conditions.dtypes:
        _check_dtype("dtypes", dtype)
    _check_toolkit(conditions.toolkit)
    _check_shapes(conditions.shapes)


def check_asked(dtype: str, toolkit: str) -> None:
    """Raise ConditionInvalidError where a filter names an element type or version that no condition can be held to."""
    if dtype.strip():
        _check_dtype("dtype", dtype)
    if toolkit.strip() and version_of(toolkit) is None:
        raise ConditionInvalidError("toolkit", f"{toolkit!r} has no version at its end; write one such as 'CANN 8.5'")


def check_task(task: ev.TaskStarted) -> None:
    """Raise ConditionInvalidError where a task says of itself what no condition can be held to."""
    if task.dtype.strip():
        _check_dtype("dtype", task.dtype)
    for name, size in task.shapes.items():
        if not name.strip():
            raise ConditionInvalidError("shapes", "a size has no name; say which it is, e.g. `last_axis`")
        if size < 0:
            raise ConditionInvalidError(f"shapes.{name}", f"it is {size}; a size is never below 0")


def _check_dtype(field: str, dtype: str) -> None:
    if _dtype(dtype) not in DTYPES:
        close = difflib.get_close_matches(_dtype(dtype), (*DTYPES, *_ALIASES), n=1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(DTYPES)}"
        raise ConditionInvalidError(field, f"{dtype!r} is no element type; {hint}")


def _check_toolkit(given: str) -> None:
    try:
        wanted = SpecifierSet(given)
    except InvalidSpecifier:
        raise ConditionInvalidError(
            "toolkit", f"{given!r} is no range of versions; write one such as '>=8.3,<9'"
        ) from None
    # A range changes only at the versions that it names, so that one of these is in it if any is.
    probes = ["0", "9999999"]
    for item in wanted:
        at = item.version.removesuffix(".*")
        probes += [at, f"{at}.0.0.0.1", f"{at}.dev0", f"{at}.post1"]
    if given.strip() and not any(_in_range(wanted, probe) for probe in probes):
        raise ConditionInvalidError("toolkit", f"no version is in {given!r}; turn the bounds round or drop one")


def _in_range(wanted: SpecifierSet, version: str) -> bool:
    try:
        return wanted.contains(Version(version), prereleases=True)
    except InvalidVersion:
        # `===` takes any text, and what stands after it matches itself.
        return version in {item.version for item in wanted if item.operator == "==="}


def _check_shapes(shapes: tuple[ev.ShapeRange, ...]) -> None:
    bounds: dict[str, tuple[int, int | None]] = {}
    for shape in shapes:
        name, field = shape.size, f"shapes.{shape.size}"
        if not name.strip():
            raise ConditionInvalidError("shapes", "a bound names no size; say which, e.g. `last_axis`")
        if shape.least is None and shape.most is None:
            raise ConditionInvalidError(field, "it bounds nothing; give `least`, `most` or both")
        if min(n for n in (shape.least, shape.most) if n is not None) < 0:
            raise ConditionInvalidError(field, "a size is never below 0")
        low, high = bounds.get(name, (0, None))
        low = max(low, shape.least or 0)
        highs = [n for n in (high, shape.most) if n is not None]
        high = min(highs) if highs else None
        if high is not None and low > high:
            raise ConditionInvalidError(field, f"it holds for nothing: least {low} is above most {high}")
        bounds[name] = low, high


def _plain(text: str) -> str:
    return text.strip().casefold()


def _dtype(text: str) -> str:
    plain = _plain(text).removeprefix("torch.")
    return _ALIASES.get(plain, plain)


def _admits(allowed: tuple[str, ...], told: str, read: Callable[[str], str] = _plain) -> bool:
    """What a task does not say of itself excludes nothing; upper and lower case are one."""
    return not allowed or not told.strip() or read(told) in {read(item) for item in allowed}


def version_of(told: str) -> Version | None:
    """A toolkit's version: PEP 440, after a name or a `v` (`CUDA 12.8`), CANN's `8.0.RC3.alpha001` before `8.0.RC3`."""
    found = _VERSION.search(told.strip())
    if found is None:
        return None
    try:
        return Version(_ALPHA.sub(r"\1.dev\2", found.group(1)))
    except InvalidVersion:
        return None


def _toolkit(wanted: str, told: str) -> bool:
    if not wanted.strip() or not told.strip():
        return True
    version = version_of(told)
    try:
        # A version that can not be ordered is not known to be in the range.
        return version is not None and SpecifierSet(wanted).contains(version, prereleases=True)
    except InvalidSpecifier:
        return False


def _shape(wanted: ev.ShapeRange, task: Task) -> bool:
    told = task.shapes.get(wanted.size)
    if told is None:
        return True
    return (wanted.least is None or told >= wanted.least) and (wanted.most is None or told <= wanted.most)


def holds(conditions: ev.Conditions, task: Task) -> bool:
    """Whether every condition holds for the task."""
    chip, toolkit = task.where
    return (
        _admits(conditions.families, task.family)
        and _admits(conditions.dtypes, task.dtype, _dtype)
        and _admits(conditions.languages, task.language)
        and _admits(conditions.chips, chip)
        and _toolkit(conditions.toolkit, toolkit)
        and all(_shape(shape, task) for shape in conditions.shapes)
    )


def applies(state: State, stage: Stage, experience: Experience, *, stale: bool = True) -> bool:
    """Whether an experience may be offered in a stage: cold, live, of its kind, its conditions met."""
    task = state.tasks[stage.task]
    return (
        not experience.resident
        and experience.frozen is None
        and stage.kind in experience.stages
        and (stale or not experience.is_stale(task.where))
        and holds(experience.conditions, task)
    )
