"""The `dump` tool on real kernels: which stage goes wrong first, where, and how."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch

from device import operators, oracle
from device.diagnose import dump as dumping
from device.diagnose.types import Compared, Dump
from device.languages import cpp
from device.operators.base import Operator
from device.oracle import Suite
from tests.device.conftest import Judge
from tests.device.diagnose.conftest import LIMITS
from tests.device.diagnose.kernels import softmax
from tests.device.small import DOUBLE, kernel

SOFTMAX = operators.get("softmax")
STAGED = [operators.get(name) for name in operators.names() if operators.get(name).stages]


def dumped(source: str, suite: Suite, operator: Operator = SOFTMAX) -> Dump:
    return dumping.dump(source, operator, suite, LIMITS, 2)[0]


def states(dump: Dump) -> dict[str, str]:
    return {one.name: one.state for one in dump.compared}


def one(dump: Dump, name: str) -> Compared:
    return next(each for each in dump.compared if each.name == name)


def test_the_first_wrong_stage_is_named(softmax_suite: Suite) -> None:
    """The sum leaves out the last terms: maximum and exponentials are right, the sum is wrong, and so is what follows."""
    dump, findings = dumping.dump(softmax(terms="n / 16 * 16"), SOFTMAX, softmax_suite, LIMITS, 2)
    assert (dump.outcome, dump.first_wrong, dump.threads) == ("wrong", "sum", 1)
    assert states(dump) == {"maximum": "right", "exponentials": "right", "sum": "wrong", "output 0": "wrong"}
    total = one(dump, "sum")
    assert isinstance(total.expected, float)
    assert isinstance(total.got, float)
    assert total.got < total.expected
    assert (total.shape, total.index) == ((5,), (0,))
    assert findings[0].message.startswith("sum goes wrong first, after maximum, exponentials came out right: ")


def test_a_wrong_output_after_right_stages(softmax_suite: Suite) -> None:
    """Only whole groups of 16 are divided by the sum: the last columns are the exponentials still."""
    dump = dumped(softmax(written="n / 16 * 16"), softmax_suite)
    assert (dump.first_wrong, dump.problem) == ("output 0", "tail/given")
    out = one(dump, "output 0")
    assert (out.how, out.words) == ("tail of each row", "only columns 128 to 130 of 131 are wrong")
    assert (out.index, out.region, out.wrong) == ((0, 128), ((0, 5), (128, 131)), 15)


def test_a_right_kernel_shows_right_stages(softmax_suite: Suite) -> None:
    """Nothing is found; the stages of one problem are held against the reference all the same."""
    dump, findings = dumping.dump(softmax(), SOFTMAX, softmax_suite, LIMITS, 2)
    assert (dump.outcome, dump.first_wrong, findings) == ("right", None, ())
    assert set(states(dump).values()) == {"right"}
    assert dump.problems == 2 * len(softmax_suite.problems)


def test_a_kernel_that_records_nothing_is_compared_by_its_outputs(softmax_suite: Suite) -> None:
    """The answer says so, and names the stages that could be recorded."""
    plain = "\n".join(line for line in softmax(written="n - 1").splitlines() if "SB_DUMP" not in line)
    dump = dumped(plain, softmax_suite)
    assert (dump.outcome, dump.first_wrong) == ("wrong", "output 0")
    assert dump.message == (
        "the kernel recorded no stage (SB_DUMP), so its outputs alone were compared; "
        "the stages of softmax: maximum, exponentials, sum"
    )
    assert states(dump)["sum"] == "not recorded"


def test_names_and_sizes_that_fit_no_stage_are_told(softmax_suite: Suite) -> None:
    """A name that the operator does not know, and a sum of twice as many elements."""
    source = softmax().replace('SB_DUMP("maximum"', 'SB_DUMP("top"').replace(
        'SB_DUMP("sum", &sum, 1, SB_FLOAT64)', 'for (int twice = 0; twice < 2; ++twice) SB_DUMP("sum", &sum, 1, SB_FLOAT64)'
    )  # fmt: skip
    dump = dumped(source, softmax_suite)
    assert states(dump) == {
        "maximum": "not recorded",
        "exponentials": "right",
        "sum": "not comparable",
        "top": "not known",
        "output 0": "right",
    }
    assert one(dump, "sum").note == "10 elements were recorded, [5] has 5"


def test_more_than_the_region_holds_is_counted_and_does_no_harm(softmax_suite: Suite) -> None:
    """A row of 131 floats recorded ten thousand times is over 1 MiB; the call returns and the output is right."""
    flood = 'for (int again = 0; again < 10000; ++again) SB_DUMP("flood", y, n, SB_FLOAT32);\n    SB_DUMP("sum"'
    dump = dumped(softmax().replace('SB_DUMP("sum"', flood), softmax_suite)
    assert dump.outcome == "right"
    assert dump.lost > 10_000
    assert "found no room" in dump.message


def test_a_crash_says_what_was_recorded_before_it(softmax_suite: Suite) -> None:
    """The last name is where to look on from."""
    source = softmax().replace(
        'SB_DUMP("sum"', 'if (n == 131) *static_cast<volatile int *>(nullptr) = 1;\n    SB_DUMP("sum"'
    )
    dump, findings = dumping.dump(source, SOFTMAX, softmax_suite, LIMITS, 1)
    assert dump.outcome == "crash"
    assert "SIGSEGV" in dump.message
    assert "the last that was recorded is 'exponentials'" in dump.message
    assert (findings[0].kind, findings[0].advice) == ("crash", "build it with a sanitizer: --tool sanitize")


def test_what_is_wrong_with_several_threads_alone_is_said_to_be(double_suite: Suite) -> None:
    """Each thread does as if it were the only one that there is to do the second half."""
    source = kernel(
        after="    #pragma omp parallel\n    {\n        const int64_t all = n * m, k = omp_get_thread_num() ? all : 0;\n"
        "        for (int64_t e = k; e < all / omp_get_num_threads(); ++e)\n"
        "            b[e] = 2.0f * a[e / m * s + e % m * t];\n    }\n    return 0;",
        includes="#include <omp.h>\n",
    )
    dump = dumped(source, double_suite, DOUBLE)
    assert (dump.outcome, dump.threads) == ("wrong", 2)
    assert "with one thread all was right, with 2 it is not" in dump.message
    assert one(dump, "output 0").how == "unwritten"


def test_a_candidate_that_does_not_build_is_told_with_the_compilers_text(double_suite: Suite) -> None:
    """There is nothing to run."""
    dump = dumped(kernel("undeclared = 1;\n"), double_suite, DOUBLE)
    assert (dump.outcome, dump.build.ok) == ("not built", False)
    assert "undeclared" in dump.build.log


def test_dump_calls_are_nothing_in_what_is_judged(judge: Judge) -> None:
    """The judged artefact is, byte for byte, that of the text without the calls; the diagnosed one is another."""
    calls = softmax()
    plain = "".join(line for line in calls.splitlines(keepends=True) if "SB_DUMP" not in line)
    judged, bare = cpp.build(calls, LIMITS), cpp.build(plain, LIMITS)
    assert judged.artefact_sha256 == bare.artefact_sha256
    made = cpp.build(calls, LIMITS, (), dumping.VARIANT)
    assert made.artefact_sha256 != judged.artefact_sha256
    assert made.artefact is not None
    assert hashlib.sha256(made.artefact.read_bytes()).hexdigest() == made.artefact_sha256
    report = judge(calls, SOFTMAX).data
    assert (report["outcome"], report["candidate"]["artefact_sha256"]) == ("correct", judged.artefact_sha256)


def test_a_candidate_cannot_switch_the_calls_on_by_itself(judge: Judge) -> None:
    """What the calls would reach is not there in a judged build: it does not link."""
    data = judge("#define SAGEBOOK_DIAGNOSE\n" + softmax(), SOFTMAX).data
    assert data["outcome"] == "compile_error"
    assert "sagebook_dump" in data["summary"]


@pytest.mark.parametrize("operator", STAGED, ids=lambda operator: operator.name)
def test_stages_lead_to_the_reference(operator: Operator) -> None:
    """The last stages, put together by hand, are the reference's result in float64."""
    case = next(case for case in operator.cases if case.name == "tail")
    rng = np.random.default_rng(11)
    tensors = [torch.from_numpy(rng.standard_normal(spec.shape)) for spec in case.inputs]
    found = {name: stage(*tensors, **case.attributes) for name, stage in operator.stages.items()}
    (expected,) = operator.reference(*tensors, **case.attributes)
    put_together = {
        "softmax": lambda: found["exponentials"] / found["sum"][:, None],
        "logsumexp": lambda: found["sum"].log() + found["maximum"],
        "layer_norm": lambda: found["normalized"] * tensors[1] + tensors[2],
        "rms_norm": lambda: found["normalized"] * tensors[1],
        "swiglu": lambda: found["silu"] * tensors[0].chunk(2, -1)[1],
        "matmul_bias_gelu": lambda: torch.nn.functional.gelu(found["biased"]),
        "attention": lambda: found["weighted"] / found["sum"][:, None],
    }
    torch.testing.assert_close(put_together[operator.name](), expected, rtol=1e-10, atol=1e-12)


def test_the_operators_that_have_stages() -> None:
    """Seven of the starter suite, in the order in which a kernel works."""
    assert {operator.name: list(operator.stages) for operator in STAGED} == {
        "swiglu": ["sigmoid", "silu"],
        "softmax": ["maximum", "exponentials", "sum"],
        "layer_norm": ["mean", "variance", "normalized"],
        "rms_norm": ["mean_square", "normalized"],
        "logsumexp": ["maximum", "exponentials", "sum"],
        "matmul_bias_gelu": ["product", "biased"],
        "attention": ["scores", "maximum", "exponentials", "sum", "weighted"],
    }


def test_a_stage_by_hand() -> None:
    """The maxima of two rows."""
    suite = oracle.Oracle().suite(SOFTMAX, 3, "paper", "npukernelbench")
    problem = next(p for p in suite.problems if p.case.name == "tail")
    by_hand = problem.inputs[0].reshape(5, 131).astype(np.float64).max(axis=1)
    assert dumping.stage(SOFTMAX, problem, "maximum").tolist() == by_hand.tolist()
