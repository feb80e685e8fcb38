"""How right retrieval is: nDCG@10 and recall@10 over the questions of benchmarks/quality, by kind of question.

The corpus is what a new library holds and what it would have learned: the sections of the bundled documents, one text
for each operator of operators.txt (summary and traps), and the errors of errors.jsonl. Questions were judged by hand
against all of it: 2 = the answer, 1 = also useful. Another operator joins the corpus once its questions are judged.

    python -m benchmarks.quality [--misses lexical]
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import bm25s
import msgspec
from msgspec import structs

from agent.coldstart.documents import bundled
from device import operators
from ledger.commands.retrieval import fuse
from ledger.domain.policy import SAGE
from ledger.errors import EmbeddingError
from ledger.retrieval.dense import DenseIndex
from ledger.retrieval.lexical import LexicalIndex

if TYPE_CHECKING:
    from ledger.retrieval.embed import Embedder
    from ledger.retrieval.fuse import Hits

DATA = Path(__file__).with_name("quality")
K = 10
FOLDS = 5
DEPTH = SAGE.pool_size * SAGE.fusion_depth
"""Each ranking is read to here before both are fused, as the ledger does under the default policy."""

Ranking = Sequence[str]
Search = Callable[[str], "Hits"]


@dataclass(frozen=True, slots=True)
class Text:
    """One text of the corpus, as an experience would be recorded."""

    title: str
    body: str


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question with the grades of its right answers."""

    id: str
    kind: str
    question: str
    answers: dict[str, int]


class Failure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An error that was met, and what explains it."""

    id: str
    kind: str
    title: str
    error: str
    explanation: str
    operator: str | None = None


def questions() -> list[Question]:
    """All questions, in the order of the file."""
    lines = (DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [msgspec.json.decode(line, type=Question) for line in lines]


def failures() -> list[Failure]:
    """All errors, in the order of the file."""
    lines = (DATA / "errors.jsonl").read_text(encoding="utf-8").splitlines()
    return [msgspec.json.decode(line, type=Failure) for line in lines]


def corpus() -> dict[str, Text]:
    """Texts by id: `doc-...` as the documents are recorded, `op-<operator>`, `error-...`."""
    texts = {item.id: Text(item.title, item.body) for document in bundled() for item in document.sections}
    for name in (DATA / "operators.txt").read_text(encoding="utf-8").split():
        operator = operators.get(name)
        texts[f"op-{name}"] = Text(name, "\n".join((operator.summary, *operator.traps)))
    for item in failures():
        where = f"{item.operator}: " if item.operator else ""
        texts[item.id] = Text(item.title, f"{where}{item.error}\n\n{item.explanation}")
    return texts


def ndcg(ranking: Ranking, grades: Mapping[str, int], k: int = K) -> float:
    """Discounted gain of the first `k` over that of the best order; a grade g gains 2^g - 1 at 1 / log2(1 + rank).

    Source: Järvelin, Kekäläinen, ACM TOIS 20 (2002), with the gains of Burges et al. (2005).
    """
    best = sorted(grades.values(), reverse=True)
    return _gain(grades.get(item, 0) for item in ranking[:k]) / _gain(best[:k])


def _gain(grades: Iterable[int]) -> float:
    return math.fsum((2**grade - 1) / math.log2(1 + rank) for rank, grade in enumerate(grades, 1))


def recall(ranking: Ranking, grades: Mapping[str, int], k: int = K) -> float:
    """Share of the right answers, of either grade, among the first `k`."""
    return len(set(ranking[:k]) & set(grades)) / len(grades)


def plain_bm25(texts: Mapping[str, Text], split: Callable[[str], list[str]]) -> Search:
    """bm25s as it comes, method `lucene`, over title and body with the given tokens."""
    names = list(texts)
    index = bm25s.BM25(method="lucene")
    index.index([split(f"{text.title}\n\n{text.body}") for text in texts.values()], show_progress=False)

    def search(question: str) -> Hits:
        hits = zip(names, index.get_scores(split(question)).tolist(), strict=True)
        return sorted((hit for hit in hits if hit[1] > 0), key=lambda hit: (-hit[1], hit[0]))

    return search


def whitespace(text: str) -> list[str]:
    """Words in lower case as blanks part them."""
    return text.lower().split()


def words_of_bm25s(text: str) -> list[str]:
    """bm25s's own tokens: words of two letters and more, without English stop words."""
    found = bm25s.tokenize([text], stopwords="en", return_ids=False, show_progress=False)
    return list(found[0])


def our_lexical(texts: Mapping[str, Text]) -> Search:
    """The ledger's lexical index."""
    index = LexicalIndex()
    for name, text in texts.items():
        index.add(name, text.title, text.body)
    return lambda question: index.search(question, DEPTH)


def our_dense(texts: Mapping[str, Text], embedder: Embedder) -> Search:
    """The ledger's dense index; a text is embedded as the ledger does it."""
    rows = embedder.embed([f"{text.title}\n\n{text.body}" for text in texts.values()])
    index = DenseIndex(rows.shape[1])
    for name, row in zip(texts, rows, strict=True):
        index.put(name, row)
    return cache(lambda question: index.search(embedder.embed([question])[0], DEPTH))


def our_hybrid(lexical: Search, dense: Search) -> Search:
    """Both, fused under the default policy."""
    return lambda question: fuse(SAGE, question, lexical(question), dense(question))


def searches(texts: Mapping[str, Text]) -> dict[str, Search]:
    """All that is compared, by name. Without the extra `dense` only what needs no model, and a line says so."""
    found = {
        "plain BM25": plain_bm25(texts, whitespace),
        "bm25s's tokens": plain_bm25(texts, words_of_bm25s),
        "lexical": our_lexical(texts),
    }
    try:
        from ledger.retrieval.minilm import MiniLm  # noqa: PLC0415 - an extra

        found["dense"] = our_dense(texts, MiniLm())
        found["hybrid"] = our_hybrid(found["lexical"], found["dense"])
    except EmbeddingError as error:
        print(f"dense and hybrid are left out: {error}")
    return found


def held_out(
    asked: Sequence[Question], lexical: Search, dense: Search
) -> tuple[float, float, list[tuple[float, float]]]:
    """Mean nDCG@10 and recall@10 of hybrid on questions that did not choose its weights, and the weights chosen.

    Every FOLDS-th question of a kind is asked with the pair of `dense_weight` and `dense_on_names` that is best for
    the others, in turns.
    """
    policies = [
        structs.replace(SAGE, dense_weight=weight, dense_on_names=share)
        for weight in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
        for share in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    found = [(item, lexical(item.question), dense(item.question)) for item in asked]
    rankings = [[names_of(fuse(policy, item.question, *hits)) for item, *hits in found] for policy in policies]
    gains = [[ndcg(r, item.answers) for r, item in zip(ranked, asked, strict=True)] for ranked in rankings]
    turn: dict[str, int] = {}
    folds = []
    for item in asked:
        turn[item.kind] = turn.get(item.kind, -1) + 1
        folds.append(turn[item.kind] % FOLDS)
    scores, recalls, chosen = [], [], []
    for fold in range(FOLDS):
        best = max(
            range(len(policies)),
            key=lambda p, fold=fold: math.fsum(g for g, f in zip(gains[p], folds, strict=True) if f != fold),  # type: ignore[misc]
        )
        chosen.append((policies[best].dense_weight, policies[best].dense_on_names))
        for place, (item, of) in enumerate(zip(asked, folds, strict=True)):
            if of == fold:
                scores.append(gains[best][place])
                recalls.append(recall(rankings[best][place], item.answers))
    return statistics.fmean(scores), statistics.fmean(recalls), chosen


def names_of(hits: Hits) -> list[str]:
    """The ranking without its scores."""
    return [name for name, _ in hits]


def table(asked: Sequence[Question], compared: Mapping[str, Search]) -> str:
    """NDCG@10 and recall@10 of each search, by kind of question and over all questions."""
    kinds = list(dict.fromkeys(item.kind for item in asked))
    rankings = {name: [names_of(search(item.question)) for item in asked] for name, search in compared.items()}
    head = [*kinds, "all"]
    counts = [sum(item.kind == kind for item in asked) for kind in kinds]
    lines = [" " * 15 + "".join(f"{kind:>13}" for kind in head)]
    lines.append(f"{'questions':15}" + "".join(f"{count:>13}" for count in (*counts, len(asked))))
    for title, measure in (("nDCG@10", ndcg), ("recall@10", recall)):
        lines.append(title)
        for name, ranked in rankings.items():
            values = [measure(ranking, item.answers) for ranking, item in zip(ranked, asked, strict=True)]
            pairs = list(zip(asked, values, strict=True))
            means = [statistics.fmean(value for item, value in pairs if item.kind == kind) for kind in kinds]
            lines.append(f"{name:15}" + "".join(f"{mean:>13.3f}" for mean in (*means, statistics.fmean(values))))
    return "\n".join(lines)


def main() -> None:
    """Print the table; with --misses also every question whose first hit is no answer."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--misses", metavar="SEARCH", help="list the questions whose first hit there is no answer")
    options = parser.parse_args()
    asked, texts = questions(), corpus()
    print(f"{len(asked)} questions, {len(texts)} texts; {platform.machine()}, {os.cpu_count()} cores")
    compared = searches(texts)
    print(table(asked, compared))
    if "hybrid" in compared:
        gain, share, chosen = held_out(asked, compared["lexical"], compared["dense"])
        print(f"hybrid, its weights chosen on the other folds of {FOLDS}: nDCG@10 {gain:.3f}, recall@10 {share:.3f}")
        print("  (dense_weight, dense_on_names) of each fold: " + " ".join(map(str, chosen)))
    if options.misses and options.misses not in compared:
        parser.error(f"no search is named {options.misses!r}; there are {', '.join(compared)}")
    for item in asked if options.misses else ():
        first = names_of(compared[options.misses](item.question))[:1]
        if not set(first) & set(item.answers):
            print(f"{item.id}: {' '.join(item.question.split())[:100]} -> {', '.join(first) or 'nothing'}")


if __name__ == "__main__":
    main()
