"""A model whose answers are written down: one a round, from a list or from a JSON-lines file.

It replays a known trajectory, demonstrates the loop without a language model, and drives tests. A line of a script:

    {"operator": "gelu", "source": "…" or "source_file": "gelu-1.cpp", "change": "…", "hypothesis": "…",
     "decisions": [{"experience": "…", "adopted": true, "reason": "…"}], "query": "…",
     "diagnosis": {"tool": "…", "hypothesis": "…", "evidence": "…", "next_step": "…"}}

or `{"rule": "…", "title": "…"}`, the rule for the experience of that title. `operator` may be left out; a source of
null says that there is nothing more to try. Answers go by round, so an interrupted task continues at its round.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agent.errors import ModelRefusedError, ScriptError
from agent.port import Context, Decision, Diagnosis, OperatorCard, Pattern, Proposal, RuleDraft, Usage

_END = Proposal(source=None, change="", hypothesis="the script has no further answer")


class ScriptedModel:
    """Gives the n-th answer in round n. Operators without a list of their own get the common one."""

    def __init__(
        self,
        answers: Iterable[Proposal] = (),
        *,
        by_operator: Mapping[str, Iterable[Proposal]] | None = None,
        rules: Mapping[str, str] | None = None,
        name: str = "scripted",
    ) -> None:
        """Take the answers in order; `rules` maps an experience's title to its rule."""
        self._name = name
        self._answers = tuple(answers)
        self._by_operator = {key: tuple(value) for key, value in (by_operator or {}).items()}
        self._rules = dict(rules or {})

    @classmethod
    def from_file(cls, path: Path, *, name: str = "scripted") -> ScriptedModel:
        """Read a script. Raises ScriptError naming the line that can not be read."""
        answers: dict[str | None, list[Proposal]] = {}
        rules: dict[str, str] = {}
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise ScriptError(f"the script {path} can not be read: {error.strerror}") from error
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                item = json.loads(line)
                if "rule" in item:
                    rules[item["title"]] = item["rule"]
                else:
                    answers.setdefault(item.get("operator"), []).append(_proposal(item, path.parent))
            except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
                raise ScriptError(f"{path}, line {number}: {error!r}") from error
        common = answers.pop(None, [])
        return cls(common, by_operator={str(key): value for key, value in answers.items()}, rules=rules, name=name)

    @property
    def name(self) -> str:
        """What the ledger records as the model."""
        return self._name

    def propose(self, context: Context) -> Proposal:
        """Give the answer of this round, or say that there is none."""
        answers = self._by_operator.get(context.operator.name, self._answers)
        return answers[context.round - 1] if context.round <= len(answers) else _END

    def compare(self, operator: OperatorCard, generated: str, expert: str) -> tuple[tuple[Pattern, ...], Usage]:
        """Read nothing from sources: a script has no opinion on them."""
        del operator, generated, expert
        return (), Usage(model=self._name)

    def distill(self, title: str, body: str, evidence: str, limit_tokens: int) -> RuleDraft:
        """Give the rule written for that title. Raises ModelRefusedError where there is none."""
        del body, evidence, limit_tokens
        if title not in self._rules:
            raise ModelRefusedError(f"the script has no rule for {title!r}; add a line with that title and its rule")
        return RuleDraft(self._rules[title], Usage(model=self._name))


def _proposal(item: Mapping[str, Any], folder: Path) -> Proposal:
    source = item["source"] if "source" in item else folder.joinpath(item["source_file"]).read_text(encoding="utf-8")
    diagnosis = item.get("diagnosis")
    return Proposal(
        source=source,
        change=str(item.get("change", "")),
        hypothesis=str(item.get("hypothesis", "")),
        decisions=tuple(
            Decision(str(d["experience"]), adopted=bool(d["adopted"]), reason=str(d["reason"]))
            for d in item.get("decisions", ())
        ),
        diagnosis=Diagnosis(**diagnosis) if diagnosis else None,
        query=item.get("query"),
    )
