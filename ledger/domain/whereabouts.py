"""Where the audit finds the events of an experience again: sequences that the fold notes as it goes.

So an answer to `why` reads the events that bear on it, not the whole log.
"""

from __future__ import annotations

from ledger.domain.model import State


def trail_of(state: State, name: str) -> list[int]:
    """Sequences of every event that the audit of an experience reads, in order."""
    experience = state.experiences[name]
    found = set(experience.trail) | set(experience.frequencies)
    if state.table:
        found.add(state.table)
    tasks = set()
    for stage in state.stages.values():
        if name in stage.retrieved or name in stage.decisions:
            tasks.add(stage.task)
    for task in tasks:
        # A score may rest on a candidate of the task's other stage.
        for stage_name in state.tasks[task].stages:
            found.update(state.stages[stage_name].trail)
    return sorted(found)
