"""Candidates in either suite's form get the judge's verdict: right, wrong, refused, and signed."""

from __future__ import annotations

from pathlib import Path

import pytest

from device import JudgeKey, SignedReport, verify_report
from device.errors import TaskRefused
from device.suites.command import evaluate
from tests.device.suites.checkouts import LINE, PLAIN, kernelbench, npukernelbench

NEW = LINE.replace("class Model(", "class ModelNew(").partition("\n\ndef get_inputs")[0]
TWICE = PLAIN.partition("\n\ndef get_inputs")[0].replace("class Model(", "class ModelNew(")

KERNEL = """#include "sagebook_kernel.h"
extern "C" int sagebook_kernel(const sb_tensor *in, int64_t, sb_tensor *out, int64_t, const double *a, int64_t) {
    const int64_t n = in[0].shape[0], m = in[0].shape[1];
    const float *x = (const float *)in[0].data, *gain = (const float *)in[1].data;
    float *y = (float *)out[0].data;
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < m; ++j) y[i * m + j] = x[i * m + j] * (float)a[0] * gain[j] + (float)a[1];
    return 0;
}
"""

DOUBLE = """from sagebook import load_kernel
from torch import nn

kernel = load_kernel(r\"\"\"
#include "sagebook_kernel.h"
extern "C" int sagebook_kernel(const sb_tensor *in, int64_t, sb_tensor *out, int64_t, const double *, int64_t) {
    for (int64_t i = 0; i < in[0].shape[0] * in[0].shape[1]; ++i)
        ((float *)out[0].data)[i] = 2.0f * ((const float *)in[0].data)[i];
    return 0;
}
\"\"\")


class ModelNew(nn.Module):
    def forward(self, x):
        return kernel(x)
"""


def judged(source: str, path: Path, task: str, key: JudgeKey, *, measure: bool = False) -> SignedReport:
    return evaluate(source, path, task, seed=3, key=key, measure=measure)


def test_an_honest_module_is_correct_and_measured(tmp_path: Path, key: JudgeKey) -> None:
    """The reference's own text, renamed, is right on 3 seeds and 5 distributions, and about as fast as itself."""
    report = judged(NEW, kernelbench(tmp_path, "level1/1_Line.py"), "1_Line", key, measure=True)
    verify_report(report.report, report.signature, report.judge_key)
    data = report.data
    assert (data["outcome"], data["operator"]["name"]) == ("correct", "level1/1_Line"), data["summary"]
    assert data["verify"]["cases"] == data["verify"]["passed"] == 8
    assert len(data["measure"]["cases"][0]["candidate"]["samples_ms"]) >= 20
    assert 0.2 < data["measure"]["speedup"] < 5


@pytest.mark.parametrize(
    ("source", "outcome", "words"),
    [
        (TWICE.format(body="x * 2.0001"), "wrong", "allowed error"),
        (TWICE.format(body="x[:8] * 2"), "wrong", "expected [('float32', [16, 24])]"),
        (TWICE.format(body="(x * 2).double()"), "wrong", "outputs are"),
        (TWICE.format(body="x.new_zeros(16, 24)"), "wrong", "expected"),
        (TWICE.format(body="7"), "refused", "not a tensor"),
        (TWICE.format(body="1 / 0"), "wrong", "ZeroDivisionError"),
        ("import threading\n" + TWICE.format(body="x * 2"), "refused", "import of threading"),
        ("from torch.utils.cpp_extension import load_inline\n" + TWICE.format(body="x * 2"), "refused", "load_kernel"),
        (TWICE.format(body="torch.sys.modules and x * 2"), "refused", ".sys"),
        (TWICE.format(body="open('/etc/passwd')"), "refused", "open"),
        ("import torch\ntorch.relu = None\n" + TWICE.format(body="x * 2"), "refused", "torch.relu is set"),
        (TWICE.format(body="x * 2").replace("ModelNew", "Another"), "refused", "there is no ModelNew"),
        ("class ModelNew(\n", "compile_error", "cannot be read"),
        ("import numpy.no_such_part\n" + TWICE.format(body="x * 2"), "compile_error", "no_such_part"),
    ],
)
def test_a_bad_module_gets_the_verdict_that_names_it(
    source: str, outcome: str, words: str, tmp_path: Path, key: JudgeKey
) -> None:
    """Wrong numbers, shapes, dtypes and kinds; threads, builders, files and patches; nothing to run at all."""
    path = kernelbench(tmp_path, "level1/2_Twice.py")
    data = evaluate(source, path, "2_Twice", language="kernelbench", seed=3, key=key, measure=False).data
    assert (data["outcome"], words in data["summary"]) == (outcome, True), data["summary"]
    assert data["measure"] is None


def test_a_plain_module_around_a_kernel_is_judged_as_a_kernel(tmp_path: Path, key: JudgeKey) -> None:
    """Its Python is read and never run; its C++ meets the task's shapes and the judge's distributions."""
    data = judged(DOUBLE, kernelbench(tmp_path, "level1/2_Twice.py"), "2_Twice", key).data
    assert (data["outcome"], data["candidate"]["language"]) == ("correct", "python"), data["summary"]
    assert data["candidate"]["artefact_sha256"]


def test_a_kernel_is_judged_on_a_task_of_the_other_suite(tmp_path: Path, key: JudgeKey) -> None:
    """Inputs are x and the gain, attributes the factor and the shift: in the order in which the task hands them over."""
    path = npukernelbench(tmp_path)
    data = judged(KERNEL, path, "Scaled", key).data
    assert data["outcome"] == "correct", data["summary"]
    bad = judged(KERNEL.replace(" + (float)a[1]", ""), path, "Scaled", key).data
    assert bad["outcome"] == "wrong"
    with pytest.raises(TaskRefused, match="candidates of npukernelbench are kernels"):
        evaluate(NEW, path, "Scaled", language="kernelbench", seed=3, key=key)
    with pytest.raises(TaskRefused, match=r"there is no test_cases\.csv"):
        judged(KERNEL, path, "NoCases", key)
