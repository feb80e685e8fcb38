"""The answer to `why` as W3C PROV: entities are texts, rules, candidates and measurements; activities are stages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ledger.audit import words

if TYPE_CHECKING:
    from prov.model import ProvActivity, ProvBundle, ProvDocument, ProvEntity

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
    document.wasAttributedTo(experience, document.agent(_agent(origin["actor"])))
    for sha256 in origin["texts"]:
        document.wasDerivedFrom(experience, document.entity(_local("blob", sha256)))
    _texts(document, experience, origin)
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
        document.wasAttributedTo(rule, document.agent(_agent(answer["rule"]["actor"])))
        for move in answer["moves"]:
            document.used(_move(document, move), rule)
    reversals = {item["sequence"]: _reversal(document, item) for item in answer["reversals"]}
    values: dict[int, ProvEntity] = {}
    before = experience
    for item in words.course(answer):
        if "update" in item:
            value = _stage(document, experience, item["update"])
        elif "restated" in item:
            value = _restated(document, item["restated"], reversals)
        else:
            _take_back(document, item["reversal"], answer["value"], values, reversals)
            continue
        # Each value comes out of the one before it; the first out of the experience itself.
        document.wasDerivedFrom(value, before)
        values[(item.get("update") or item["restated"])["sequence"]] = before = value
    for item in answer["withheld"]:
        document.activity(
            _local("stage", item["stage"]),
            None,
            None,
            {"prov:type": f"sb:{item['kind']}", "sb:withheld": item["sequence"], "sb:rate": item["rate"]},
        )
    for item in answer["conflicts"]:
        _conflict(document, experience, item)
    return document


def _agent(name: object) -> str:
    return _local("agent", str(name))


def _texts(document: ProvBundle, experience: ProvEntity, origin: Json) -> None:
    """The text as it was recorded, and each amendment as a revision of the text before."""
    before = document.entity(_local("blob", origin["body"]), {"prov:label": origin["title"]})
    document.wasDerivedFrom(experience, before)
    for item in origin["amendments"]:
        activity = document.activity(
            _local("amendment", str(item["sequence"])), item["time"], item["time"], {"sb:reason": item["reason"]}
        )
        document.wasAssociatedWith(activity, document.agent(_agent(item["actor"])))
        text = document.entity(_local("blob", item["body"]), {"prov:label": item["title"]})
        document.wasGeneratedBy(text, activity)
        if item["body"] != origin["body"]:
            document.wasRevisionOf(text, before)
        document.wasDerivedFrom(experience, text)
        before = text
    end = origin["retired"]
    if end is not None:
        activity = document.activity(
            _local("retirement", str(end["sequence"])), end["time"], end["time"], {"sb:reason": end["reason"]}
        )
        document.wasAssociatedWith(activity, document.agent(_agent(end["actor"])))
        document.wasInvalidatedBy(experience, activity)


def _move(document: ProvBundle, move: Json) -> ProvActivity:
    facts = {"sb:move": move["move"], "sb:subject": move["subject"], "sb:sequence": move["sequence"]}
    if move.get("reason"):
        facts["sb:reason"] = move["reason"]
    if move["consolidation"]:
        facts["sb:consolidation"] = move["consolidation"]
    return document.activity(_local("consolidation", str(move["sequence"])), move["time"], move["time"], facts)


def _reversal(document: ProvBundle, item: Json) -> ProvActivity:
    activity = document.activity(
        _local("reversal", str(item["sequence"])),
        item["time"],
        item["time"],
        {
            "prov:type": f"sb:{item['what']}",
            "sb:subject": item["subject"],
            "sb:reason": item["reason"],
            "sb:by": item["by"],
        },
    )
    document.wasAssociatedWith(activity, document.agent(_agent(item["actor"])))
    return activity


def _take_back(
    document: ProvBundle,
    item: Json,
    updates: list[Json],
    values: dict[int, ProvEntity],
    reversals: dict[int, ProvActivity],
) -> None:
    """The values of the stages that a reversal names: an invalidation ends them, a reinstatement uses them again."""
    for update in updates:
        value = values.get(update["sequence"])
        if value is None or update["stage"] not in item["stages"]:
            continue
        if item["what"] == "invalidated":
            document.wasInvalidatedBy(value, reversals[item["sequence"]], item["time"])
        else:
            document.used(reversals[item["sequence"]], value, item["time"])


def _restated(document: ProvBundle, item: Json, reversals: dict[int, ProvActivity]) -> ProvEntity:
    value = document.entity(
        _local("value", str(item["sequence"])),
        {"sb:new": item["value"], "sb:retrievals": item["retrievals"], "sb:adoptions": item["adoptions"]},
    )
    because = item["because"]
    if because is not None:
        document.wasGeneratedBy(value, reversals[because["sequence"]], item["time"])
    return value


def _conflict(document: ProvBundle, experience: ProvEntity, item: Json) -> None:
    facts = {"sb:reason": item["reason"], "sb:rival": item["rival"]}
    if item["settled"] is not None:
        facts |= {"sb:settledAt": item["settled"]["sequence"], "sb:settledBy": item["settled"]["actor"]}
        facts |= {"sb:loser": item["settled"]["loser"] or "none", "sb:settledBecause": item["settled"]["reason"]}
    activity = document.activity(_local("conflict", item["conflict"]), item["time"], None, facts)
    document.wasAssociatedWith(activity, document.agent(_agent(item["actor"])))
    document.used(activity, experience)


def _stage(document: ProvBundle, experience: ProvEntity, update: Json) -> ProvEntity:
    facts: Json = {
        "prov:type": f"sb:{update['kind']}",
        "sb:operator": update["operator"],
        "sb:score": update["score"],
        "sb:scoredAt": update["scored_at"],
        "sb:counts": update["counts"],
    }
    offered, presented = update["offered"], update["presented"]
    if offered is not None:
        names = ("sequence", "query", "position", "relevance", "lexical", "dense", "score", "fusion", "model")
        facts |= {f"sb:offer-{name}": offered[name] for name in names if offered[name] not in {None, ""}}
    if presented is not None:
        facts["sb:presentedAt"] = presented["sequence"]
    stage = document.activity(_local("stage", update["stage"]), None, update["time"], facts)
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
                {"sb:role": role, "sb:outcome": fact.get("outcome"), "sb:mode": fact.get("mode")}
                | ({"sb:latencyMs": fact["latency_ms"]} if fact.get("latency_ms") is not None else {}),
            )
            document.wasAttributedTo(report, document.agent(_local("judge", str(fact["judge"]))))
            document.wasDerivedFrom(value, report)
    return value


def _candidate(document: ProvBundle, stage: Any, change: Json) -> None:
    source = document.entity(_local("blob", change["source"]), {"prov:label": change["change"]})
    document.wasGeneratedBy(source, stage)
    if change["parent_source"]:
        document.wasDerivedFrom(source, document.entity(_local("blob", change["parent_source"])))
