"""When an experience may be offered: its conditions against what a task says of itself."""

from __future__ import annotations

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from ledger.domain import events as ev
from ledger.domain.state import Experience, Stage, State, Task
from ledger.errors import InvalidInputError


def check(conditions: ev.Conditions) -> None:
    """Raise InvalidInputError naming the condition that can not hold or be read."""
    try:
        SpecifierSet(conditions.toolkit)
    except InvalidSpecifier:
        raise InvalidInputError(
            f"condition `toolkit` is {conditions.toolkit!r}; write a range of versions such as '>=8.3,<9'",
            toolkit=conditions.toolkit,
        ) from None
    for shape in conditions.shapes:
        if not shape.size or (shape.least is None and shape.most is None):
            raise InvalidInputError(f"condition on shape {shape.size!r} bounds nothing; give `least`, `most` or both")
        if shape.least is not None and shape.most is not None and shape.least > shape.most:
            raise InvalidInputError(
                f"condition on shape {shape.size!r} holds for nothing: least {shape.least} is above most {shape.most}"
            )
    for field in ("families", "dtypes", "languages", "chips"):
        if any(not item.strip() for item in getattr(conditions, field)):
            raise InvalidInputError(f"condition `{field}` holds an empty name; leave it out", field=field)


def _admits(allowed: tuple[str, ...], told: str) -> bool:
    """What a task does not say of itself excludes nothing."""
    return not allowed or not told or told in allowed


def _toolkit(wanted: str, told: str) -> bool:
    if not wanted or not told:
        return True
    try:
        return SpecifierSet(wanted).contains(Version(told), prereleases=True)
    except (InvalidVersion, InvalidSpecifier):
        # A version that can not be ordered is not known to be in the range.
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
        and _admits(conditions.dtypes, task.dtype)
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
        and (stale or not experience.needs_revalidation(task.where))
        and holds(experience.conditions, task)
    )
