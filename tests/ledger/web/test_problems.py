"""Every refusal is a problem document with a stable code, and comes out of the client as the class that was raised."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from ledger import errors, wire
from ledger.client import LedgerClient
from ledger.service import Ledger
from ledger.web import problems
from tests.ledger.judge import Judge
from tests.ledger.web.conftest import decided, opened, propose, record, start, told

MEMBERS = {"type", "title", "status", "detail", "code", "instance", "errors"}


def _classes() -> list[type[errors.LedgerError]]:
    return [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.LedgerError)]


def problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The document, after its form was checked."""
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert response.status_code == body["status"] == status, body
    assert body["code"] == code
    assert body["type"] == f"urn:sagebook:problem:{code}"
    assert body["title"]
    assert body["detail"]
    assert body["instance"] == response.request.url.path
    return body


def test_codes_are_unique() -> None:
    """A code names one class, else the client could not tell which was raised."""
    codes = [c.code for c in _classes()]
    assert sorted(codes) == sorted(set(codes))


def test_no_fact_hides_a_member_of_the_problem_document() -> None:
    """Facts lie beside the document's own members, so none may be called like one of them."""
    found = [
        (node.lineno, keyword.arg)
        for node in ast.walk(ast.parse(inspect.getsource(errors)))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg in MEMBERS
    ]
    assert found == []


def test_every_error_of_the_ledger_has_its_status() -> None:
    """Refusals are 4xx, failures of the service itself 5xx."""
    ours = (errors.NotFoundError, errors.ConflictError, errors.RefusedError, errors.InvalidInputError)
    for kind in _classes():
        status = problems.status_of(kind.__new__(kind))
        assert (400 <= status < 500) is issubclass(kind, ours), kind


Refusal = Callable[[LedgerClient, Judge], object]


def _after_finish(client: LedgerClient) -> object:
    client.finish_task("lib", "t")
    return client.finish_task("lib", "t")


REFUSALS: dict[str, tuple[type[errors.LedgerError], int, Refusal]] = {
    "unknown library": (errors.UnknownLibraryError, 404, lambda c, _: c.library("nowhere")),
    "library exists": (errors.LibraryExistsError, 409, lambda c, _: c.create_library("lib")),
    "unknown preset": (errors.PolicyError, 422, lambda c, _: c.create_library("x", policy="nope")),
    "unknown policy field": (errors.PolicyError, 422, lambda c, _: c.create_library("x", policy={"nope": 1})),
    "not a number": (errors.PolicyError, 422, lambda c, _: c.create_library("x", policy={"beta": float("nan")})),
    "infinite bounds": (
        errors.PolicyError,
        422,
        lambda c, _: c.create_library("x", policy={"value_bounds": [float("-inf"), 1]}),
    ),
    "unknown experience": (errors.UnknownExperienceError, 404, lambda c, _: c.experience("lib", "ghost")),
    "why of nothing": (errors.UnknownExperienceError, 404, lambda c, _: c.why("lib", "ghost")),
    "experience exists": (errors.ExperienceExistsError, 409, lambda c, _: record(c, "a")),
    "retired twice": (
        errors.ExperienceRetiredError,
        409,
        lambda c, _: [c.retire_experience("lib", "a", "old") for _ in range(2)],
    ),
    "unknown task": (errors.UnknownTaskError, 404, lambda c, _: c.task("lib", "ghost")),
    "task exists": (errors.TaskExistsError, 409, lambda c, _: start(c, "t")),
    "task finished": (errors.TaskFinishedError, 409, lambda c, _: _after_finish(c)),
    "unknown stage": (errors.UnknownStageError, 404, lambda c, _: c.stage("lib", "ghost")),
    "stage open": (
        errors.StageOpenError,
        409,
        lambda c, _: [opened(c, "t", "s"), opened(c, "t", "s2")],
    ),
    "stage exists": (
        errors.StageExistsError,
        409,
        lambda c, _: [opened(c, "t", "s"), c.abandon_stage("lib", "s", "r"), opened(c, "t", "s")],
    ),
    "no correct candidate": (
        errors.NoCorrectCandidateError,
        409,
        lambda c, _: opened(c, "t", "s", "optimization"),
    ),
    "not offered": (errors.NotOfferedError, 409, lambda c, _: [opened(c, "t", "s"), decided(c, "s", a=True)]),
    "evidence missing": (
        errors.EvidenceMissingError,
        409,
        lambda c, _: [opened(c, "t", "s"), c.score_stage("lib", "s")],
    ),
    "closed": (
        errors.StageClosedError,
        409,
        lambda c, _: [opened(c, "t", "s"), c.abandon_stage("lib", "s", "r"), c.abandon_stage("lib", "s", "r")],
    ),
    "unknown candidate": (
        errors.UnknownCandidateError,
        404,
        lambda c, j: [opened(c, "t", "s"), c.report("lib", "s", "ghost", j.report("x", "gelu"))],
    ),
    "budget": (
        errors.BudgetSpentError,
        409,
        lambda c, _: [start(c, "b", budget=1), opened(c, "b", "s"), propose(c, "s", "1", ""), propose(c, "s", "2", "")],
    ),
    "candidate exists": (
        errors.CandidateExistsError,
        409,
        lambda c, _: [opened(c, "t", "s"), propose(c, "s", "1", ""), propose(c, "s", "1", "")],
    ),
    "unknown blob": (errors.UnknownBlobError, 404, lambda c, _: c.blob("lib", "0" * 64)),
    "text that is not stored": (
        errors.UnknownBlobError,
        404,
        lambda c, _: c.record_experience(
            "lib",
            wire.NewExperience(
                experience="n", title="n", body="", source=wire.Source(kind="differential", texts=("0" * 64,))
            ),
        ),
    ),
    "trace": (errors.TraceInvalidError, 422, lambda c, _: c.import_trace("lib", [b"\n", b'{"record": "noise"}\n'])),
    "past the end": (errors.InvalidInputError, 422, lambda c, _: c.state("lib", at=10**30)),
    "page of nothing": (errors.RequestInvalidError, 422, lambda c, _: list(c.events("lib", page=0))),
    "beyond any sequence": (errors.RequestInvalidError, 422, lambda c, _: list(c.events("lib", after=2**63))),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_the_client_raises_what_the_service_refused_with(client: LedgerClient, judge: Judge, name: str) -> None:
    """Class, status, code and facts come over the wire; nothing of the refused request is stored."""
    kind, status, call = REFUSALS[name]
    record(client, "a")
    start(client, "t")
    answers: list[httpx.Response] = []
    client._http.event_hooks["response"].append(answers.append)
    with pytest.raises(errors.LedgerError) as caught:
        call(client, judge)
    assert type(caught.value) is kind
    body = problem(answers[-1], status, kind.code)
    assert str(caught.value).startswith(body["detail"])
    assert {k: v for k, v in body.items() if k not in MEMBERS} == caught.value.facts
    assert client.verify("lib").ok


def test_facts_are_attributes_too(client: LedgerClient) -> None:
    """A trace's line can be asked of the error that the client raised."""
    with pytest.raises(errors.TraceInvalidError) as caught:
        client.import_trace("lib", [b"\n", b"\n", b"{\n"])
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nowhere", 404, "route-unknown"),
        ("GET", "/v1/libraries/lib/experiences/a/b/c", 404, "route-unknown"),
        ("DELETE", "/v1/libraries/lib", 405, "method-not-allowed"),
    ],
)
def test_what_there_is_no_route_for(
    client: LedgerClient, http: httpx.Client, method: str, path: str, status: int, code: str
) -> None:
    """The framework's own refusals have the same form."""
    found = problem(http.request(method, path), status, code)
    assert status != 404 or path in found["detail"]


BODIES = [
    b"",
    b"null",
    b"[]",
    b"{",
    b"\xff\xfe",
    b'"text"',
    b"{}",
    b'{"experience": 1, "title": "t", "body": "b"}',
    b'{"experience": "", "title": "t", "body": "b"}',
    b'{"experience": "e", "title": "t", "body": "b", "colour": "red"}',
    b'{"experience": "e", "title": "t", "body": "b", "stages": ["tuning"]}',
    b'{"experience": "e", "title": "t", "body": "b", "stages": []}',
    b'{"experience": "e", "title": "t", "body": "\\ud800"}',
    b'{"experience": "\\ud800", "title": "t", "body": "b"}',
    b"[" * 100_000,
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_bodies_that_are_not_what_the_api_documents(client: LedgerClient, http: httpx.Client, body: bytes) -> None:
    """Empty, broken, of another type, with unknown fields: 4xx with the place of the fault, and nothing stored."""
    response = http.post("/v1/libraries/lib/experiences", content=body, headers={"content-type": "application/json"})
    assert 400 <= response.status_code < 500
    found = response.json()
    problem(response, response.status_code, found["code"])
    assert found["code"] in {"request-invalid", "invalid-input", "http-error"}
    if found["code"] == "request-invalid":
        assert all(item["pointer"].startswith("/body") and item["message"] for item in found["errors"])
    assert client.library("lib").sequence == 1


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "-1", '"1"', "true", "null", "1e400"])
def test_numbers_that_no_clock_gives(client: LedgerClient, http: httpx.Client, number: str) -> None:
    """A latency or a time that is not finite, not positive or not a number: refused, nothing stored. Strings of digits are none."""
    start(client, "t")
    opened(client, "t", "s", "optimization", "reported")
    before = client.library("lib").sequence
    for path, body in (
        ("outcome", f'{{"first_ms": {number}, "best_ms": 1.0}}'),
        ("costs", f'{{"kind": "model", "seconds": {number}}}'),
    ):
        response = http.post(
            f"/v1/libraries/lib/stages/s/{path}", content=body, headers={"content-type": "application/json"}
        )
        assert response.status_code == 422, (path, response.text)
        problem(response, 422, response.json()["code"])
    assert client.library("lib").sequence == before


def test_a_large_body_is_kept_whole(client: LedgerClient, judge: Judge) -> None:
    """A megabyte of source, of experience and of report come back byte for byte."""
    source = "// ümlaut\n" + "x" * 1_000_000
    record(client, "big", text=source)
    assert client.experience("lib", "big").body == source
    start(client, "t")
    opened(client, "t", "s")
    candidate = propose(client, "s", "c", source)
    assert client.blob("lib", candidate.source).decode() == source
    report = judge.report(source, "gelu", "compile_error", summary="e" * 1_000_000)
    assert client.report("lib", "s", "c", report).outcome == "compile_error"
    assert len(client.task("lib", "t").candidates[0].summary) == 1_000_000


def test_too_large_a_body_is_refused(client: LedgerClient) -> None:
    """Texts end at 4 MB."""
    with pytest.raises(errors.RequestInvalidError, match="at most 4000000"):
        client.record_experience(
            "lib", wire.NewExperience.model_construct(experience="e", title="t", body="x" * 4_000_001)
        )


ODD = [
    "a",
    "0",
    "a b",
    "ümlaut-Ω-算子",
    "🧪",
    "a+b&c=d;e",
    "a:b@c!$'()*,~",
    "<script>",
    '"quoted"',
    "back\\slash",
    "e\u0301",
    "\u00e9",
    "x" * 200,
    "a.b..c",
    "...",
]


@pytest.mark.parametrize("name", ODD)
def test_ids_are_kept_as_they_are(client: LedgerClient, name: str) -> None:
    """As library, experience, task, stage and candidate: what went in comes back, and is found under it."""
    client.create_library(name, policy={"min_adoptions": 1, "min_operators": 1})
    client.record_experience(name, wire.NewExperience(experience=name, title=name, body=name))
    client.start_task(name, wire.NewTask(task=name, operator=name, model=name))
    client.open_stage(name, name, wire.NewStage(stage=name, kind="correctness"))
    client.propose_candidate(
        name, name, wire.NewCandidate(candidate=name, source=name, language="cpp", change=name, hypothesis=name)
    )
    assert client.experience(name, name).experience == name
    assert client.task(name, name).candidates[0].candidate == name
    assert client.stage(name, name).operator == name
    assert list(client.state(name).experiences) == [name]
    assert client.why(name, name)["experience"] == name
    client.abandon_stage(name, name, "r")
    assert client.finish_task(name, name).task == name
    assert client.verify(name).ok
    assert name in [item.library for item in client.libraries()]


@pytest.mark.parametrize("name", ["", " ", " a", "a/b", "a?b", "a#b", "a%2Fb", "a\nb", "\x00", "..", ".", "x" * 201])
def test_ids_that_no_path_can_hold(client: LedgerClient, http: httpx.Client, name: str) -> None:
    """They are refused where they are given, not lost on the way."""
    for path, body in (
        ("", {"library": name}),
        ("/lib/experiences", {"experience": name, "title": "t", "body": "b"}),
        ("/lib/tasks", {"task": name, "operator": "o", "model": "m"}),
    ):
        problem(http.post(f"/v1/libraries{path}", json=body), 422, "request-invalid")


def test_two_spellings_of_one_letter_are_two_ids(client: LedgerClient) -> None:
    """Nothing is normalised: composed and decomposed é are different bytes."""
    record(client, "e\u0301", "\u00e9")
    assert list(client.state("lib").experiences) == ["e\u0301", "\u00e9"]


def test_an_actor_of_any_script_is_recorded(http: httpx.Client) -> None:
    """The header is percent-encoded by the client and decoded by the service, also by the import."""
    client = LedgerClient(http, actor="Jürgen 算")
    client.create_library("lib")
    line = json.dumps({"record": "experience", "id": "a", "title": "t"}).encode()
    client.import_trace("lib", [line])
    assert [e.actor for e in client.events("lib")] == ["Jürgen 算"] * 2


def test_a_crash_is_a_problem_too(ledger: Ledger, http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody foresaw answers 500 without its internals, and the library goes on."""
    LedgerClient(http).create_library("lib")

    def fail() -> None:
        raise RuntimeError("a secret")

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "libraries", fail)
        body = problem(http.get("/v1/libraries"), 500, "ledger-error")
    assert "RuntimeError" in body["detail"]
    assert "secret" not in json.dumps(body)
    assert LedgerClient(http).library("lib").sequence == 1


def test_a_store_that_fails_is_unavailable(ledger: Ledger, http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """503: the request may be repeated. The state in memory does not run ahead of what is stored."""
    client = LedgerClient(http)
    client.create_library("lib", policy={"min_adoptions": 1, "min_operators": 1})
    record(client, "a")

    def fail(*_: object, **__: object) -> None:
        raise errors.StoreUnavailableError("sqlite:///x", "disk full")

    with monkeypatch.context() as patch:
        patch.setattr(ledger._log, "append", fail)
        with pytest.raises(errors.StoreUnavailableError, match="disk full"):
            record(client, "b")
        start_answer = http.post("/v1/libraries/lib/tasks", json={"task": "t", "operator": "o", "model": "m"})
        problem(start_answer, 503, "store-unavailable")
    assert list(client.state("lib").experiences) == ["a"]
    record(client, "b")
    assert told(client, "s", a=True).score == 1.0


def test_who_asks_for_a_page_is_refused_with_a_page(http: httpx.Client) -> None:
    """A browser gets HTML outside of the API, with the name made harmless; a program, and the API, a problem document."""
    browser = {"accept": "text/html,application/xhtml+xml;q=0.9"}
    page = http.get("/libraries/%3Cb%3E/experiences/x", headers=browser)
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "&lt;b&gt;" in page.text
    assert "<b>" not in page.text
    assert http.get("/nothing/here", headers=browser).headers["content-type"].startswith("text/html")
    problem(http.get("/libraries/none/experiences/x"), 404, "library-unknown")
    problem(http.get("/v1/libraries/none", headers=browser), 404, "library-unknown")
