"""Reading kernels and experiences: which techniques a source shows, and the rule that an experience comes down to."""

from __future__ import annotations

import pytest

from agent import tokens
from agent.coldstart import documents, patterns
from agent.models.search import SearchModel, recommend
from agent.models.search.rules import distill
from device import operators
from tests.agent.search.harness import bundled, composed

PLAIN = {"layout": "general"}
TUNED = {
    "layout": "fast_path", "simd": "vector", "lanes": "16", "tail": "masked", "exp": "polynomial", "threads": "threshold",
    "accumulators": "4", "division": "reciprocal", "exp_reuse": "store", "softmax_shift": "max",
}  # fmt: skip


def test_the_expert_softmax_shows_what_the_plain_one_lacks():
    """Vectors, the polynomial, the shift, independent accumulators and the threshold are read from the expert's text."""
    generated = composed(bundled("softmax"), PLAIN)[2]
    found, usage = SearchModel().compare(bundled("softmax"), generated, operators.get("softmax").expert)
    keys = {pattern.key for pattern in found}
    assert {"vectors-written-out", "exp-polynomial", "shift-by-maximum", "threads-threshold"} <= keys
    assert {"independent-accumulators", "keep-exponentials", "dense-fast-path"} <= keys
    assert usage.model == "search"


def test_a_tuned_kernel_lacks_little():
    """What a kernel does already is no pattern for it."""
    generated = composed(bundled("softmax"), TUNED)[2]
    keys = {pattern.key for pattern in patterns.compare(bundled("softmax"), generated, operators.get("softmax").expert)}
    assert not keys & {"vectors-written-out", "exp-polynomial", "threads-threshold", "keep-exponentials"}


@pytest.mark.parametrize("name", ["add", "softmax", "transpose"])
def test_a_kernel_differs_from_itself_in_nothing(name):
    """Comparing an expert's kernel with itself yields no pattern."""
    expert = operators.get(name).expert
    assert patterns.compare(bundled(name), expert, expert) == ()


def test_helpers_that_a_kernel_never_calls_are_no_evidence():
    """The expert of add includes part loads with its headers and never calls them: no masked tail is claimed."""
    assert "load_part" in operators.get("add").expert
    assert "masked-tail" not in patterns.techniques(operators.get("add").expert, "elementwise")
    assert "masked-tail" in patterns.techniques(operators.get("swiglu").expert, "elementwise")


def test_a_pattern_quotes_both_kernels_and_names_its_change():
    """The body holds the expert's line, the reason, the conditions, and a change in the model's vocabulary."""
    generated = composed(bundled("swiglu"), PLAIN)[2]
    found = patterns.compare(bundled("swiglu"), generated, operators.get("swiglu").expert)
    exp = next(pattern for pattern in found if pattern.key == "exp-polynomial")
    assert "1.44269504" in exp.body
    assert "std::exp" in exp.body
    assert recommend.read(exp.body) == (("exp", "polynomial"),)
    assert "Why: " in exp.body
    assert "When: " in exp.body
    assert "elementwise" in exp.families


def test_a_rule_keeps_its_change_and_its_limit():
    """A rule has at most the tokens asked for, says when and why in the experience's own words, and keeps its change."""
    count = tokens.counter().count
    for document in documents.bundled():
        for section in document.sections:
            for limit in (120, 60, 25):
                rule = distill(section.title, section.body, "value 0.4", limit)
                assert rule
                assert count(rule) <= limit, section.title
            whole = distill(section.title, section.body, "value 0.4", 120)
            assert recommend.read(whole) == recommend.read(section.body), section.title
            assert whole.startswith(section.title)


def test_a_rule_is_shorter_than_its_experience():
    """Distilling leaves code, confirmation and symptoms out."""
    text = "Symptom: NaN.\n\n```cpp\nfloat x;\n```\nWhen rows are long, use blocks, because digits are lost.\n\nChange: accumulator = blocked\n"
    rule = SearchModel().distill("Sum in blocks", text, "", 100).text
    assert (
        rule == "Sum in blocks. When rows are long, use blocks, because digits are lost.\nChange: accumulator = blocked"
    )
