"""The answer to `why` in every form: the same facts, each link a sequence or a blob."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import pytest

from ledger import errors, wire
from ledger.audit.markdown import why_markdown
from ledger.audit.provenance import why_prov
from ledger.audit.tree import why_lines
from ledger.bootstrap import client_of, memory_ledger
from ledger.web.pages.picture import value_course


def stage(number: int, operator: str, *, adopted: bool, ms: float | None = None) -> dict[str, object]:
    return {
        "record": "stage", "id": f"s{number}", "task": f"t{number}", "operator": operator,
        "kind": "correctness" if ms is None else "optimization", "retrieved": ["x1", "z"],
        "adoptions": [
            {"experience": "x1", "adopted": adopted, "reason": "fits the tail | block"},
            {"experience": "z", "adopted": False, "reason": "other layout"},
        ],
        "outcome": {"correct": True} if ms is None else {"first_ms": 1.0, "best_ms": ms},
    }  # fmt: skip


@pytest.fixture
def ledger():
    """`x1` is adopted on three operators and resident; `z` never is."""
    lines = [
        {"record": "experience", "id": "x1", "title": "Use <b>tails</b> | masks", "body": "```\ncode\n```"},
        {"record": "experience", "id": "z", "title": "z", "body": "z"},
        *(stage(n, op, adopted=True) for n, op in enumerate(("softmax", "gelu", "matmul"), 1)),
        {"record": "rule", "experience": "x1", "text": "mask the tail", "tokens": 4},
    ]
    with client_of(memory_ledger(), actor="ann") as client:
        client.create_library("lib")
        client.import_trace("lib", [json.dumps(line).encode() + b"\n" for line in lines])
        yield client


def test_every_link_of_the_answer_is_an_event_of_that_kind(ledger):
    """Follow each sequence into the log: it is the event that the answer says it is."""
    answer = ledger.why("lib", "x1")
    types = {e.sequence: e.type for e in ledger.events("lib")}
    assert types[answer["consolidation"]["sequence"]] == "memory.consolidated"
    assert types[answer["admission"]["sequence"]] == "memory.consolidated"
    assert types[answer["admission"]["admitted_at"]] == "rule.admitted"
    assert (answer["admission"]["rank"], answer["admission"]["used_before"], answer["admission"]["used_after"]) == (
        1,
        0,
        4,
    )
    assert types[answer["rule"]["sequence"]] == "rule.distilled"
    assert types[answer["origin"]["sequence"]] == "experience.recorded"
    assert [types[m["sequence"]] for m in answer["moves"]] == ["rule.admitted"]
    for update in answer["value"]:
        assert types[update["sequence"]] == "value.updated"
        assert types[update["scored_at"]] == "stage.scored"
        assert types[update["offered"]["sequence"]] == "stage.experiences_retrieved"
        assert {types[d["sequence"]] for d in update["decisions"]} == {"stage.adoption_decided"}
        assert types[update["evidence"]["sequence"]] == "stage.outcome_reported"
    assert ledger.blob("lib", answer["rule"]["blob"]) == b"mask the tail"
    assert ledger.blob("lib", answer["origin"]["body"]) == b"```\ncode\n```"


def test_the_value_s_course_is_told_with_every_number(ledger):
    """Three adoptions alone with score 1: 0.5, 2/3, 3/4."""
    course = ledger.why("lib", "x1")["value"]
    assert [u["new"] for u in course] == pytest.approx([0.5, 2 / 3, 0.75])
    assert [(u["operator"], u["score"], u["adopted_in_stage"], u["feedback"], u["n"]) for u in course] == [
        ("softmax", 1.0, 1, 1.0, 1),
        ("gelu", 1.0, 1, 1.0, 2),
        ("matmul", 1.0, 1, 1.0, 3),
    ]


def test_as_of_an_earlier_sequence_the_answer_is_the_earlier_one(ledger):
    """Before the rule it passed the gate and awaited distillation; after the first stage the gate failed."""
    scored = [e.sequence for e in ledger.events("lib") if e.type == "memory.consolidated"]
    assert "awaits distillation" in ledger.why("lib", "x1", at=scored[2])["answer"]
    early = ledger.why("lib", "x1", at=scored[0])
    assert early["gate"]["adoptions"] == 1
    assert early["sequence"] == scored[0]
    recorded = next(e for e in ledger.events("lib") if e.sequence == scored[0])
    assert ledger.why("lib", "x1", at=recorded.time)["sequence"] >= scored[0]


def test_before_its_recording_the_refusal_says_when_it_was_recorded(ledger):
    """Not that there is none; one that never was stays unknown, as of any point."""
    recorded = next(e.sequence for e in ledger.events("lib") if e.type == "experience.recorded")
    with pytest.raises(errors.ExperienceNotYetError, match=f"recorded at {recorded}"):
        ledger.why("lib", "x1", at=recorded - 1)
    assert ledger.why("lib", "x1", at=recorded)["sequence"] == recorded
    with pytest.raises(errors.UnknownExperienceError, match="'ghost'"):
        ledger.why("lib", "ghost", at=recorded)


def test_a_point_that_is_none_is_refused(ledger):
    """Neither a number nor a time, and a sequence past the head."""
    with pytest.raises(errors.InvalidInputError, match="neither a sequence nor a time"):
        ledger.why("lib", "x1", at="yesterday")
    with pytest.raises(errors.InvalidInputError, match="no sequence 9999"):
        ledger.why("lib", "x1", at=9999)


def test_the_tree_names_each_sequence_in_brackets(ledger):
    """A reader can follow every line into the log."""
    answer = ledger.why("lib", "x1")
    text = "\n".join(why_lines(answer))
    for update in answer["value"]:
        assert f"[{update['sequence']}] {update['operator']}" in text
    assert "is resident since sequence" in text
    assert "hand-made verdict" in text


def test_markdown_survives_pipes_and_fences_in_what_it_quotes(ledger):
    """Table rows keep their number of cells, and a body that holds a fence is fenced longer."""
    text = why_markdown(ledger.why("lib", "x1"))
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) in {4, 15}, row
    assert "````markdown\n```\ncode\n```\n````" in text


def test_prov_links_the_rule_back_to_its_evidence(ledger):
    """PROV-JSON reads back, and the rule is derived from the experience that each stage used."""
    from prov.model import ProvDocument

    document = why_prov(ledger.why("lib", "x1"))
    read = ProvDocument.deserialize(content=document.serialize(format="json"), format="json")
    facts = json.loads(read.serialize(format="json"))
    assert len(facts["used"]) == 4  # three stages, one consolidation
    assert len([k for k in facts["activity"] if ".s" in k]) == 3
    assert any(d["prov:usedEntity"] == "sb:experience.x1" for d in facts["wasDerivedFrom"].values())


def test_a_withdrawn_stage_stays_in_the_course_and_is_marked(ledger):
    """Old and new course are both told: the update, the reversal with its reason, and the restated value."""
    ledger.invalidate("lib", "stage:s2", "a stale answer was replayed")
    answer = ledger.why("lib", "x1")
    assert [u["counts"] for u in answer["value"]] == [True, False, True]
    assert answer["value"][1]["reversals"][0]["reason"] == "a stale answer was replayed"
    assert answer["restated"][-1]["value"] == pytest.approx(2 / 3)
    assert not answer["resident"]
    assert answer["what_would_it_take"]["adoptions_missing"] == 1
    text = "\n".join(why_lines(answer))
    assert "withdrawn" in text
    ledger.reinstate("lib", "stage:s2", "it was not")
    assert ledger.why("lib", "x1")["resident"]


def test_the_picture_has_a_mark_an_update_that_opens_its_stage(ledger):
    """Marks run from left to right, adopted ones are circles, and the band begins at the admission."""
    answer = ledger.why("lib", "x1")
    picture = value_course(answer, -0.1, 1.0)
    assert [m.stage for m in picture.marks] == ["s1", "s2", "s3"]
    assert [m.shape for m in picture.marks] == ["circle"] * 3
    assert sorted(m.x for m in picture.marks) == [m.x for m in picture.marks]
    assert [m.y for m in picture.marks] == sorted((m.y for m in picture.marks), reverse=True)
    assert len(picture.bands) == 1
    assert picture.bands[0][0] > picture.marks[-1].x
    rejected = value_course(ledger.why("lib", "z"), -0.1, 1.0)
    assert [m.shape for m in rejected.marks] == ["square"] * 3


def get(ledger, path):
    return ledger._http.get(path)


def test_the_page_shows_the_answer_and_its_links_lead_somewhere(ledger):
    """Every link of the page answers; titles are escaped; the marks link to stages."""
    page = get(ledger, "/libraries/lib/experiences/x1")
    assert page.status_code == 200
    assert "Use &lt;b&gt;tails&lt;/b&gt; | masks" in page.text
    assert "<b>tails" not in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    svg = ET.fromstring(page.text[page.text.index("<svg") : page.text.index("</svg>") + 6])  # noqa: S314 - our own page
    links = [a.get("href") for a in svg.iter("a")]
    assert links == [f"/libraries/lib/stages/s{n}" for n in (1, 2, 3)]
    hrefs = set(re.findall(r'href="([^"]+)"', page.text))
    for href in hrefs:
        assert get(ledger, href).status_code == 200, href


@pytest.mark.parametrize("path", ["/", "/libraries/lib", "/libraries/lib/stages/s1", "/libraries/lib/events/1"])
def test_every_page_answers(ledger, path):
    """HTML, complete."""
    page = get(ledger, path)
    assert page.status_code == 200
    assert page.text.rstrip().endswith("</html>")


def test_a_page_of_what_is_not_there_is_a_problem_document(ledger):
    """404 by name."""
    assert get(ledger, "/libraries/lib/experiences/nope").status_code == 404
    assert get(ledger, "/libraries/nope").status_code == 404
    assert get(ledger, "/libraries/lib/events/99999").status_code == 422


def test_ids_that_need_quoting_are_linked_rightly(ledger):
    """Spaces, quotes, angle brackets and umlauts in an id."""
    name = "tiling <ü> \"a b\" & 'c'"
    ledger.record_experience("lib", wire.NewExperience(experience=name, title=name, body="b"))
    page = get(ledger, "/libraries/lib")
    href = next(h for h in re.findall(r'href="([^"]+)"', page.text) if "tiling" in h)
    shown = get(ledger, href)
    assert shown.status_code == 200
    assert "<ü>" not in shown.text
