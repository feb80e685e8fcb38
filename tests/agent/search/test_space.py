"""The vocabulary of choices: it is closed, ordered, and travels in the source."""

from __future__ import annotations

import random

import pytest

from agent.coldstart import documents
from agent.models.search import recommend, space
from agent.models.search.translate import translate
from tests.agent.search.harness import bundled, composed

OPERATORS = ("add", "swiglu", "transpose", "argmax", "softmax", "layer_norm", "matmul_bias_gelu", "attention")


@pytest.mark.parametrize("name", OPERATORS)
def test_choices_travel_in_the_source(name):
    """The comment line of a kernel gives back exactly the choices that it was composed from."""
    traits = space.traits_of(translate(bundled(name)))
    rng = random.Random(name)
    for _ in range(20):
        wanted = {d.name: rng.choice(d.values) for d in space.DIMENSIONS}
        _, choices, source = composed(bundled(name), wanted)
        assert space.parse(source) == choices
        assert space.settle(traits, choices) == choices


@pytest.mark.parametrize("name", OPERATORS)
def test_a_seed_draws_the_same_draft(name):
    """Drafts depend on the seed alone, and different seeds draw different ones."""
    traits = space.traits_of(translate(bundled(name)))
    drafts = [space.draft(traits, random.Random(seed)) for seed in range(12)]
    assert drafts == [space.draft(traits, random.Random(seed)) for seed in range(12)]
    assert len({tuple(draft.items()) for draft in drafts}) > 1


def test_first_drafts_are_plain():
    """A draft uses one thread, one accumulator and the library's exp, as a first version does."""
    traits = space.traits_of(translate(bundled("softmax")))
    for seed in range(30):
        draft = space.draft(traits, random.Random(seed))
        assert (draft["threads"], draft.get("accumulators", "1"), draft["exp"]) == ("none", "1", "exact")


def test_a_choice_that_does_not_apply_is_not_among_the_choices():
    """Lanes are a choice only of a kernel with vectors, epsilon only of an operator that has one."""
    softmax = space.traits_of(translate(bundled("softmax")))
    assert "lanes" not in space.settle(softmax, {"simd": "pragma", "layout": "fast_path"})
    assert "lanes" in space.settle(softmax, {"simd": "vector", "layout": "fast_path"})
    assert "eps" not in space.settle(softmax, {"eps": "ignored"})


def test_the_documents_speak_the_vocabulary():
    """Every `Change:` line of the reference documents is a choice that a kernel can be composed with."""
    named = 0
    for document in documents.bundled():
        for section in document.sections:
            for name, value in recommend.read(section.body):
                assert value in space.BY_NAME[name].values, f"{section.title}: {name} = {value}"
                named += 1
    assert named > 30
