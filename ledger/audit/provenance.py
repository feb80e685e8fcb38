"""The answer to `why` as W3C PROV: entities are texts, rules, candidates and measurements; activities are stages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from prov.model import ProvBundle, ProvDocument, ProvEntity

Json = dict[str, Any]

_NAMESPACE = "urn:sagebook:"


def _local(kind: str, name: str) -> str:
    """A qualified name that PROV-N accepts whatever the id is."""
    return "sb:" + kind + "." + re.sub(r"%", "-", quote(name, safe=""))


def why_prov(answer: Json) -> ProvDocument:
    """A PROV document of one experience: what it was derived from, who adopted it, and what measured it."""
    from prov.model import ProvDocument  # noqa: PLC0415 - only this form needs the library

    document = ProvDocument()
    document.add_namespace("sb", _NAMESPACE)
    origin = answer["origin"]
    experience = document.entity(
        _local("experience", answer["experience"]),
        {
            "prov:label": answer["title"],
            "sb:library": answer["library"],
            "sb:sequence": origin["sequence"],
            "sb:resident": answer["resident"],
            "sb:value": answer["gate"]["value"],
            "sb:body": origin["body"],
        },
    )
    document.wasAttributedTo(experience, document.agent(_local("agent", str(origin["actor"]))))
    for sha256 in origin["texts"]:
        document.wasDerivedFrom(experience, document.entity(_local("blob", sha256)))
    if answer["rule"] is not None:
        rule = document.entity(
            _local("rule", answer["rule"]["blob"]),
            {
                "sb:sequence": answer["rule"]["sequence"],
                "sb:tokens": answer["rule"]["tokens"],
                "sb:tokenizer": answer["rule"]["tokenizer"],
            },
        )
        document.wasDerivedFrom(rule, experience)
        for move in answer["moves"]:
            activity = document.activity(
                _local("consolidation", str(move["sequence"])), move["time"], move["time"], {"sb:move": move["move"]}
            )
            document.used(activity, rule)
    for update in answer["value"]:
        _stage(document, experience, update)
    return document


def _stage(document: ProvBundle, experience: ProvEntity, update: Json) -> None:
    stage = document.activity(
        _local("stage", update["stage"]),
        None,
        update["time"],
        {
            "prov:type": f"sb:{update['kind']}",
            "sb:operator": update["operator"],
            "sb:score": update["score"],
            "sb:scoredAt": update["scored_at"],
            "sb:counts": update["counts"],
        },
    )
    document.wasAssociatedWith(stage, document.agent(_local("agent", update["agent"]), {"sb:model": update["model"]}))
    value = document.entity(
        _local("value", str(update["sequence"])),
        {
            "sb:old": update["old"],
            "sb:new": update["new"],
            "sb:feedback": update["feedback"],
            "sb:alpha": update["alpha"],
        },
    )
    document.wasGeneratedBy(value, stage)
    document.wasDerivedFrom(value, experience)
    if update["adopted"]:
        document.used(stage, experience)
    for decision in update["decisions"]:
        change = decision.get("change")
        if change:
            _candidate(document, stage, change)
    for role in ("first", "best"):
        fact = update["evidence"].get(role)
        if fact and fact.get("report"):
            report = document.entity(
                _local("report", fact["report"]),
                {"sb:role": role, "sb:outcome": fact.get("outcome"), "sb:latencyMs": fact.get("latency_ms") or 0.0},
            )
            document.wasAttributedTo(report, document.agent(_local("judge", str(fact["judge"]))))
            document.wasDerivedFrom(value, report)


def _candidate(document: ProvBundle, stage: Any, change: Json) -> None:
    source = document.entity(_local("blob", change["source"]), {"prov:label": change["change"]})
    document.wasGeneratedBy(source, stage)
    if change["parent_source"]:
        document.wasDerivedFrom(source, document.entity(_local("blob", change["parent_source"])))
