"""Retrieval: a pool by relevance, lexical or fused with a dense ranking, re-ranked by value, recorded as offered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from ledger import wire
from ledger.domain import decide
from ledger.domain import events as ev
from ledger.domain.applicability import applies
from ledger.domain.state import Environment, State
from ledger.errors import EmbeddingError
from ledger.retrieval.fuse import reciprocal_rank, weighted_scores
from ledger.retrieval.rank import rank
from ledger.retrieval.tokenize import exact_names
from ledger.service import Batch, Call, Ledger

if TYPE_CHECKING:
    from ledger.domain.policy import Policy
    from ledger.retrieval.dense import Vector
    from ledger.retrieval.embed import Embedder
    from ledger.retrieval.fuse import Hits


@dataclass(frozen=True, slots=True)
class _Query:
    """A query as it was embedded; no vector: the ranking is lexical, for the reason given."""

    fusion: str = "lexical"
    vector: Vector | None = None
    model: str = ""


def _embed(ledger: Ledger, library: str, query: str) -> _Query:
    """Bring the library's vectors up to date and embed the query. A model that fails leaves retrieval lexical."""
    embedder = ledger.embedder
    if embedder is None:
        return _Query()
    try:
        _catch_up(ledger, library, embedder)
        vector = embedder.embed([query])[0]
        key = f"{embedder.model}@{embedder.version}"
        with ledger.reading(library):
            ledger.dense(library, key, len(vector))
    except (EmbeddingError, ValueError) as error:
        structlog.get_logger("ledger.retrieval").warning("dense_unavailable", library=library, reason=str(error))
        return _Query(fusion=f"lexical; dense failed: {error}"[:400])
    return _Query("hybrid", vector, key)


def _catch_up(ledger: Ledger, library: str, embedder: Embedder) -> None:
    """Embed what has no vector of this model, and record the vectors. The model is asked outside the lock."""
    from ledger.retrieval.dense import pack  # noqa: PLC0415 - numerical libraries, for retrieval alone

    key = f"{embedder.model}@{embedder.version}"
    names = ledger.without_vector(library, key)
    with ledger.reading(library) as state:
        missing = [(name, state.experiences[name].title, state.experiences[name].body) for name in names]
    if not missing:
        return
    texts = [f"{title}\n\n{ledger.text(body) or ''}" for _, title, body in missing]
    rows = embedder.embed(texts)

    def command(batch: Batch) -> None:
        for (name, _, body), text, row in zip(missing, texts, rows, strict=True):
            item = batch.state.experiences[name]
            if key in item.vectors or item.body != body or item.retired:
                continue
            embedded = ev.ExperienceEmbedded(
                experience=name,
                text=batch.blob(text),
                model=embedder.model,
                version=embedder.version,
                vector=batch.blob(pack(row)),
                dimensions=len(row),
            )
            batch.emit([embedded])

    ledger.execute(library, Call(actor="ledger"), command, lambda _: None)


def _packed(vector: Vector) -> bytes:
    from ledger.retrieval.dense import pack  # noqa: PLC0415

    return pack(vector)


def _dense_weight(policy: Policy, asked: str) -> float:
    """Weight of the cosine for this query: names out of code mean themselves, so the more of them, the less of it."""
    return policy.dense_weight * (1.0 - (1.0 - policy.dense_on_names) * exact_names(asked))


def _fusion(policy: Policy, asked: str) -> str:
    if policy.fusion == "ranks":
        return f"rrf/{policy.rrf_k}"
    return f"scores/{_dense_weight(policy, asked):.3g}"


def fuse(policy: Policy, asked: str, lexical: Hits, near: Hits) -> list[tuple[str, float]]:
    """One ranking of a lexical and a dense one, as the policy wants it."""
    if policy.fusion == "ranks":
        return reciprocal_rank((lexical, near), policy.rrf_k)
    return weighted_scores(lexical, near, _dense_weight(policy, asked))


def _pool(
    ledger: Ledger, library: str, state: State, asked: str, query: _Query, allow: Callable[[str], bool]
) -> list[ev.PoolEntry]:
    policy = state.policy
    depth = policy.pool_size * (policy.fusion_depth if query.vector is not None else 1)
    lexical = ledger.index(library).search(asked, depth, allow)
    hits = lexical
    near: list[tuple[str, float]] = []
    if query.vector is not None:
        near = ledger.dense(library, query.model, len(query.vector)).search(query.vector, depth, allow)
        hits = fuse(policy, asked, lexical, near)
    pool = rank(
        hits,
        lambda item: state.experiences[item].value,
        value_weight=policy.value_weight,
        pool_size=policy.pool_size,
    )
    if query.vector is None:
        return pool
    by_words, by_vector = dict(lexical), dict(near)
    return [
        ev.PoolEntry(
            experience=entry.experience,
            relevance=entry.relevance,
            value=entry.value,
            score=entry.score,
            lexical=by_words.get(entry.experience),
            dense=by_vector.get(entry.experience),
        )
        for entry in pool
    ]


def retrieve(ledger: Ledger, call: Call, library: str, name: str, asked: wire.Retrieval) -> wire.Retrieved | bytes:
    """Answer a query: a pool by relevance, re-ranked by value, recorded as offered."""
    with ledger.reading(library) as before:
        decide.stage_of(before, name)
        wanted = before.policy.retrieval
    query = _embed(ledger, library, asked.query) if wanted else _Query()

    def command(batch: Batch) -> None:
        state = batch.state
        stage = decide.stage_of(state, name)
        policy = state.policy
        pool: list[ev.PoolEntry] = []
        if policy.retrieval:

            def allow(item: str) -> bool:
                return applies(state, stage, state.experiences[item], stale=asked.stale)

            pool = _pool(ledger, library, state, asked.query, query, allow)
        found = ev.ExperiencesRetrieved(
            stage=name,
            query=asked.query,
            pool=tuple(pool),
            offered=tuple(entry.experience for entry in pool[: asked.limit or policy.top_n]),
            fusion=query.fusion if query.vector is None else _fusion(policy, asked.query),
            model=query.model,
            vector=None if query.vector is None else batch.blob(_packed(query.vector)),
        )
        batch.emit(decide.retrieve(state, found))

    def answer(batch: Batch) -> wire.Retrieved:
        event = batch.events[0]
        if not isinstance(event, ev.ExperiencesRetrieved):
            raise TypeError(event)
        entries = {entry.experience: entry for entry in event.pool}
        where = batch.state.tasks[batch.state.stages[name].task].where
        return wire.Retrieved(offered=[_offer(ledger, batch.state, entries[item], where) for item in event.offered])

    return ledger.execute(library, call, command, answer)


def _offer(ledger: Ledger, state: State, entry: ev.PoolEntry, where: Environment) -> wire.Offered:
    item = state.experiences[entry.experience]
    return wire.Offered(
        experience=item.id,
        title=item.title,
        body=ledger.text(item.body) or "",
        value=entry.value,
        relevance=entry.relevance,
        score=entry.score,
        needs_revalidation=item.needs_revalidation(where),
    )
