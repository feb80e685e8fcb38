"""Rounds of the search model: what it changes follows from the evidence and from memory, and is the same every time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.models.search import SearchModel, space
from agent.models.search.errors import NoRecipe
from agent.models.search.translate import translate
from agent.port import Attempt, Context, Offer, Resident
from tests.agent.search.harness import bundled, card, composed

SOFTMAX = {"layout": "general", "softmax_shift": "none"}
NAN = "wrong at case hidden.deep/x30, index [1, 2]: output 0 at [1, 2]: expected 1, got NaN; expected 1.0, got NaN"


def attempt(name, wanted, *, round_=1, stage="correctness", outcome="correct", evidence="", latency=None):
    """A round as the loop records it."""
    return Attempt(
        round_, stage, f"{name}.r{round_:02d}", composed(bundled(name), wanted)[2], "", "", outcome, evidence, evidence,
        latency, latency and 1.0, latency and 0.01,
    )  # fmt: skip


def context(name, history=(), *, stage="correctness", offers=(), residents=(), seed=0):
    """What the model sees."""
    return Context(bundled(name), stage, len(history) + 1, 30 - len(history), tuple(history), offers, residents, seed)


def offer(change, *, score=1.0, name=""):
    """An experience that recommends one change, or none."""
    body = f"Some reason.\n\nChange: {change}\n" if change else "Know your machine.\n"
    return Offer(name or f"exp-{change or 'nothing'}", "A title", body, 0.0, score)


def choices(name, proposal):
    """The choices that a proposal was composed from."""
    return space.settle(space.traits_of(translate(bundled(name))), space.parse(proposal.source))


def test_the_first_round_is_a_plain_draft_and_the_same_for_the_same_seed():
    """Nothing is kept between calls: two models, or one asked twice, draft the same kernel."""
    first = SearchModel(seed=5).propose(context("softmax"))
    assert first.source == SearchModel(seed=5).propose(context("softmax")).source
    assert len({SearchModel(seed=s).propose(context("softmax")).source for s in range(8)}) > 1
    assert choices("softmax", first)["threads"] == "none"


def test_nan_in_softmax_points_at_the_shift():
    """After a NaN where a finite number was expected, memory's shift by the maximum is made, and adopted with a reason."""
    history = [attempt("softmax", SOFTMAX, outcome="wrong", evidence=NAN)]
    offers = (offer("softmax_shift = max"), offer("accumulator = double"), offer(""))
    proposal = SearchModel().propose(context("softmax", history, offers=offers))
    assert choices("softmax", proposal) == composed(bundled("softmax"), SOFTMAX | {"softmax_shift": "max"})[1]
    assert [d.experience for d in proposal.decisions] == ["exp-softmax_shift = max"]
    assert proposal.decisions[0].adopted
    assert "round 1" in proposal.decisions[0].reason
    assert proposal.change == "softmax_shift = max"
    assert proposal.parent == "softmax.r01"


def test_without_memory_the_evidence_still_tells_where_to_look():
    """The suspected decision is changed without any offer; which value it gets is left to chance."""
    history = [attempt("softmax", SOFTMAX, outcome="wrong", evidence=NAN)]
    got = {
        choices("softmax", SearchModel(seed=s).propose(context("softmax", history)))["softmax_shift"] for s in range(9)
    }
    assert got == {"max", "online"}


@pytest.mark.parametrize(
    ("name", "wanted", "outcome", "evidence", "dimension"),
    [
        ("argmax", {"ties": "last"}, "wrong", "wrong at case ties/given, index [0]: expected 0, got 69", "ties"),
        ("argmax", {"nan": "ignored"}, "wrong", "wrong at case nans/given, index [1]: expected 69, got 50", "nan"),
        (
            "gelu", {"layout": "assume_contiguous", "simd": "vector", "tail": "ignored"}, "wrong",
            "wrong at case tail/given, index [0, 128]: output 0 at [0, 128]: expected 0.2, got 7e+30 (never written)", "tail",
        ),
        (
            "softmax", {"layout": "assume_contiguous", "softmax_shift": "max"}, "wrong",
            "wrong at case transposed/given, index [0, 1]: output 0 at [0, 1]: expected 0.1, got 0.7", "layout",
        ),
        ("gelu", {"layout": "assume_contiguous"}, "crash", "crash at case sliced/given: SIGSEGV", "layout"),
        (
            "rms_norm", {"layout": "general", "eps": "inside_root"}, "wrong",
            "wrong at case hidden.long-row/given, index [0, 3]: output 0 at [0, 3]: expected 0.5, got 0.500003", "accumulator",
        ),
    ],
)  # fmt: skip
def test_the_evidence_names_the_suspect(name, wanted, outcome, evidence, dimension):
    """Each way of failing leads to a change of the decision that causes it."""
    history = [attempt(name, wanted, outcome=outcome, evidence=evidence)]
    before = composed(bundled(name), wanted)[1]
    after = choices(name, SearchModel().propose(context(name, history)))
    assert before[dimension] != after.get(dimension)


def test_no_source_is_proposed_twice():
    """Round after round of the same failure tries something else, until there is nothing left, and then says so."""
    history = []
    for number in range(1, 40):
        proposal = SearchModel().propose(context("argmax", history))
        if proposal.source is None:
            break
        history.append(
            Attempt(number, "correctness", f"c{number}", proposal.source, proposal.change, "", "wrong", NAN, NAN)
        )
    sources = [item.source for item in history]
    assert len(sources) > 8
    assert len(set(sources)) == len(sources)


def test_what_memory_recommends_is_tried_first_and_by_score():
    """Optimization takes the two strongest recommendations that apply, from the fastest kernel so far."""
    history = [attempt("softmax", SOFTMAX | {"softmax_shift": "max"}, latency=2.0)]
    offers = (
        offer("exp = polynomial", score=0.5),
        offer("threads = rows", score=0.9),
        offer("register_tile = 8x2", score=2.0),
        offer("softmax_shift = none", score=2.0),
    )
    proposal = SearchModel().propose(context("softmax", history, stage="optimization", offers=offers))
    got = choices("softmax", proposal)
    assert (got["threads"], got["exp"], got["softmax_shift"]) == ("rows", "polynomial", "max")
    assert {d.experience for d in proposal.decisions} == {"exp-threads = rows", "exp-exp = polynomial"}


def test_a_resident_rule_is_followed_and_decided_on():
    """A resident comes before offers, and gets its decision because it was used."""
    history = [attempt("softmax", SOFTMAX | {"softmax_shift": "max"}, latency=2.0)]
    resident = Resident("rule-1", "Share rows among cores. Change: threads = rows", 0.4)
    proposal = SearchModel().propose(context("softmax", history, stage="optimization", residents=(resident,)))
    assert choices("softmax", proposal)["threads"] == "rows"
    assert [(d.experience, d.adopted) for d in proposal.decisions] == [("rule-1", True)]


def test_a_change_that_needs_another_brings_it_along():
    """A register tile needs vectors over dense rows; the author who follows it writes those, too."""
    history = [attempt("matmul", {"layout": "general"}, latency=20.0)]
    offers = (offer("register_tile = 8x2"),)
    got = choices("matmul", SearchModel().propose(context("matmul", history, stage="optimization", offers=offers)))
    assert (got["register_tile"], got["simd"], got["layout"]) == ("8x2", "vector", "fast_path")


def test_a_change_that_did_not_help_is_undone():
    """The next candidate starts from the fastest kernel, and a gain within the noise is none."""
    base = SOFTMAX | {"softmax_shift": "max"}
    history = [
        attempt("softmax", base, latency=2.0),
        attempt("softmax", base | {"threads": "chunks"}, round_=2, stage="optimization", latency=1.995),
    ]
    proposal = SearchModel().propose(context("softmax", history, stage="optimization"))
    assert proposal.parent == "softmax.r01"
    assert "undone" in proposal.hypothesis


def test_it_stops_after_a_stretch_without_improvement():
    """Four rounds that brought nothing are enough; the reason is given instead of a source."""
    base = SOFTMAX | {"softmax_shift": "max"}
    history = [attempt("softmax", base, latency=1.0)]
    for number, value in enumerate(("rows", "chunks", "threshold"), start=2):
        slow = base | {"threads": value}
        history.append(attempt("softmax", slow, round_=number, stage="optimization", latency=3.0))
    assert SearchModel().propose(context("softmax", history, stage="optimization")).source is not None
    history.append(attempt("softmax", base | {"restrict": "on"}, round_=5, stage="optimization", latency=3.0))
    last = SearchModel().propose(context("softmax", history, stage="optimization"))
    assert last.source is None
    assert "noise" in last.hypothesis


def test_every_offer_has_a_reason_at_the_end_of_a_stage():
    """Closing decisions cover all offers: followed, not applicable, so already, not understood, or not reached."""
    base = SOFTMAX | {"softmax_shift": "max"}
    fast = base | {"threads": "rows"}
    history = [
        attempt("softmax", base, latency=2.0),
        attempt("softmax", fast, round_=2, stage="optimization", latency=1.0),
    ]
    offers = (
        offer("threads = rows"), offer("tile = 64"), offer("softmax_shift = max"), offer(""), offer("exp = polynomial"),
        offer("eps = ignored"),
    )  # fmt: skip
    decisions = SearchModel().closing_decisions(context("softmax", history, stage="optimization", offers=offers))
    reasons = {d.experience: (d.adopted, d.reason) for d in decisions}
    assert set(reasons) == {o.id for o in offers}
    assert reasons["exp-threads = rows"][0]
    assert [name for name, (adopted, _) in reasons.items() if adopted] == ["exp-threads = rows"]
    assert "does not apply" in reasons["exp-tile = 64"][1]
    assert "already" in reasons["exp-softmax_shift = max"][1]
    assert "vocabulary" in reasons["exp-nothing"][1]
    assert "turn" in reasons["exp-exp = polynomial"][1]


def test_without_memory_offers_change_nothing():
    """The control explores the same way whether experiences are offered or not, and says why it adopts none."""
    history = [attempt("softmax", SOFTMAX | {"softmax_shift": "max"}, latency=2.0)]
    model = SearchModel(seed=3, use_memory=False)
    plain = context("softmax", history, stage="optimization")
    offered = replace(plain, offers=(offer("threads = rows"),))
    assert model.propose(plain).source == model.propose(offered).source
    assert model.propose(offered).decisions == ()
    (decision,) = model.closing_decisions(offered)
    assert not decision.adopted
    assert "switched off" in decision.reason


def test_a_wrong_speed_up_is_repaired_at_what_it_broke():
    """When memory knows the repair, the fast kernel is kept and its accumulator changed, instead of giving it up."""
    base = {"layout": "fast_path", "eps": "inside_root"}
    history = [
        attempt("rms_norm", base, latency=2.0),
        attempt(
            "rms_norm", base | {"threads": "rows"}, round_=2, stage="optimization", outcome="wrong",
            evidence="wrong at case hidden.long-row/given, index [0, 3]: output 0 at [0, 3]: expected 0.5, got 0.500003",
        ),
    ]  # fmt: skip
    offers = (offer("accumulator = blocked"),)
    got = choices("rms_norm", SearchModel().propose(context("rms_norm", history, stage="optimization", offers=offers)))
    assert (got["threads"], got["accumulator"]) == ("rows", "blocked")


def test_an_operator_without_a_recipe_is_refused():
    """The refusal names the operator and what is missing; no kernel is made up."""
    strange = card("eigenvalues", "def f(x):\n  return (torch.linalg.eigvals(x),)\n")
    with pytest.raises(NoRecipe, match="eigvals"):
        SearchModel().propose(replace(context("softmax"), operator=strange))
