"""Reads: cursors, entity tags, the API's description."""

from __future__ import annotations

import base64
from pathlib import Path

import httpx
import pytest

from ledger import errors, wire
from ledger.client import LedgerClient
from ledger.web import paging
from ledger.web.openapi import document
from tests.ledger.web.conftest import opened, record, start

DOCUMENT = Path(__file__).parents[3] / "docs" / "openapi.json"


# --- cursors -------------------------------------------------------------------------------------------------------


def test_a_cursor_is_good_for_the_list_that_gave_it(client: LedgerClient, http: httpx.Client) -> None:
    """Given to another list, another library or another filter, it is refused by name."""
    client.create_library("other")
    record(client, "a", "b", "c")
    start(client, "t1")
    start(client, "t2")
    cursor = http.get("/v1/libraries/lib/experiences", params={"limit": 1}).json()["next_cursor"]
    assert http.get("/v1/libraries/lib/experiences", params={"cursor": cursor}).status_code == 200
    for path, params in (
        ("/v1/libraries/other/experiences", {}),
        ("/v1/libraries/lib/experiences", {"resident": "true"}),
        ("/v1/libraries/lib/tasks", {}),
        ("/v1/libraries", {}),
    ):
        answer = http.get(path, params={"cursor": cursor, **params})
        assert (answer.status_code, answer.json()["code"]) == (422, "cursor-invalid"), path


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "é",
        "AAAA",
        "!!!!",
        base64.urlsafe_b64encode(b"nope:libraries").decode(),
        base64.urlsafe_b64encode(b"-1:libraries").decode(),
        base64.urlsafe_b64encode(b"\xff\xff").decode(),
    ],
)
def test_a_cursor_that_no_list_gave(client: LedgerClient, http: httpx.Client, cursor: str) -> None:
    """Whatever its bytes are, it is refused and not crashed on."""
    answer = http.get("/v1/libraries", params={"cursor": cursor})
    assert (answer.status_code, answer.json()["code"]) == (422, "cursor-invalid")
    with pytest.raises(errors.CursorInvalidError):
        paging.unpack("libraries", cursor)


def test_a_cursor_past_the_end_is_an_empty_page(client: LedgerClient, http: httpx.Client) -> None:
    """The list may have been longer in a forged past; there is nothing there now."""
    answer = http.get("/v1/libraries", params={"cursor": paging.pack("libraries", 10**40)})
    assert answer.json() == {"items": [], "next_cursor": None}


def test_every_list_ends(client: LedgerClient, http: httpx.Client) -> None:
    """Libraries and tasks, one a page, come once each."""
    for name in ("z", "m"):
        client.create_library(name)
    for name in ("t1", "t2", "t3"):
        start(client, name)
    for path, key, expected in (
        ("/v1/libraries", "library", ["lib", "m", "z"]),
        ("/v1/libraries/lib/tasks", "task", ["t1", "t2", "t3"]),
    ):
        seen: list[str] = []
        params: dict[str, object] = {"limit": 1}
        for _ in range(10):
            page = http.get(path, params=params).json()
            seen += [item[key] for item in page["items"]]
            if page["next_cursor"] is None:
                break
            params = {"limit": 1, "cursor": page["next_cursor"]}
        assert seen == expected


# --- entity tags ---------------------------------------------------------------------------------------------------


def test_a_read_that_did_not_change_sends_nothing(client: LedgerClient, http: httpx.Client) -> None:
    """304 with an empty body under the same tag; a new event gives a new tag and the whole body."""
    url = "/v1/libraries/lib/state"
    first = http.get(url)
    tag = first.headers["etag"]
    for named in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        again = http.get(url, headers={"If-None-Match": named})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert http.get(url, headers={"If-None-Match": '"other"'}).status_code == 200
    record(client, "a")
    changed = http.get(url, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag
    assert "a" in changed.json()["experiences"]


def test_refusals_carry_no_tag(client: LedgerClient, http: httpx.Client) -> None:
    """What is not there yet may be there the next time."""
    answer = http.get("/v1/libraries/nowhere", headers={"If-None-Match": "*"})
    assert answer.status_code == 404
    assert "etag" not in answer.headers


def test_a_blob_is_tagged_by_its_hash(client: LedgerClient, http: httpx.Client) -> None:
    """Content never changes under its hash."""
    sha256 = client.put_blob("lib", b"\x00\xff binary")
    answer = http.get(f"/v1/libraries/lib/blobs/{sha256}")
    assert answer.content == b"\x00\xff binary"
    assert answer.headers["etag"] == f'"{sha256}"'


def test_a_blob_must_hash_to_its_name(client: LedgerClient, http: httpx.Client) -> None:
    """Other content, a name that is no hash, or another library's name: refused."""
    answer = http.put(f"/v1/libraries/lib/blobs/{'0' * 64}", content=b"x")
    assert (answer.status_code, answer.json()["code"]) == (422, "blob-mismatch")
    assert http.put("/v1/libraries/lib/blobs/nonsense", content=b"x").status_code == 422
    assert http.put(f"/v1/libraries/nowhere/blobs/{'0' * 64}", content=b"x").status_code == 404


# --- the description -----------------------------------------------------------------------------------------------


def test_the_service_describes_itself(http: httpx.Client) -> None:
    """OpenAPI 3.1 with every route's refusals as problem documents, under a schema that is there."""
    found = http.get("/v1/openapi.json").json()
    assert found["openapi"].startswith("3.1")
    assert "HTTPValidationError" not in found["components"]["schemas"]
    assert found["components"]["schemas"]["Problem"]["properties"]["code"]
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            assert "application/problem+json" in operation["responses"]["4XX"]["content"], (path, method)
            assert operation.get("description") or operation.get("summary"), (path, method)
            if method in {"post", "put"} and not path.endswith("/score"):
                assert "requestBody" in operation, (path, method)


def test_the_description_among_the_documents_is_the_service_s_own() -> None:
    """A reader of the documents sees the API of this version. Renew: `python -m ledger.web.openapi > docs/openapi.json`."""
    assert DOCUMENT.read_text(encoding="utf-8") == document()


def test_health_says_the_version(http: httpx.Client) -> None:
    """A probe needs no library."""
    assert http.get("/health").json()["status"] == "ok"


def test_costs_carry_the_names_of_opentelemetry(client: LedgerClient, http: httpx.Client) -> None:
    """Model and tokens of each group under the GenAI conventions' names; what no model spent names none."""
    start(client, "t")
    opened(client, "t", "s")
    client.cost("lib", "s", wire.Cost(kind="model", seconds=1.5, model="m", input_tokens=10, output_tokens=3))
    client.cost("lib", "s", wire.Cost(kind="compile", seconds=0.5))
    by_model = {group["group"]: group for group in http.get("/v1/libraries/lib/costs?by=model").json()["groups"]}
    assert by_model["m"]["gen_ai.request.model"] == "m"
    assert (by_model["m"]["gen_ai.usage.input_tokens"], by_model["m"]["gen_ai.usage.output_tokens"]) == (10, 3)
    assert by_model["-"]["gen_ai.request.model"] is None
    assert by_model["-"]["compile_seconds"] == 0.5
    (whole,) = http.get("/v1/libraries/lib/costs").json()["groups"]
    assert whole["gen_ai.request.model"] is None
    assert [group.request_model for group in client.costs("lib", by="model").groups] == ["m", None]
