"""The public face: the report's form, its truth about what was judged, and the errors that are no verdict."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace
from datetime import datetime

import pytest

import device
from device import JudgeKey, verify_report
from device.errors import (
    DeviceUnavailable,
    InvalidOperator,
    UnknownDevice,
    UnknownLanguage,
    UnknownMode,
    UnknownOperator,
)
from tests.device.conftest import Judge
from tests.device.small import DOUBLE, kernel


def test_a_report_has_every_part(judge: Judge, key: JudgeKey) -> None:
    """The parts of `sagebook.report/1`, and nothing else at the top."""
    source = kernel()
    report = judge(source, seed=9)
    data = report.data
    assert set(data) == {
        *("format", "id", "created", "judge", "device", "environment", "operator", "candidate", "seed", "outcome"),
        *("summary", "compile", "verify", "measure", "costs"),
    }
    assert data["judge"] == {
        "name": "sagebook-device", "version": device.__version__, "mode": "hardened", "rule": "hardened",
    }  # fmt: skip
    assert data["operator"] == {"name": "double", "level": 1, "family": "elementwise", "dtype": "float32"}
    assert data["candidate"]["source_sha256"] == hashlib.sha256(source.encode()).hexdigest()
    assert len(data["candidate"]["artefact_sha256"]) == 64
    assert data["seed"] == 9
    assert data["device"]["kind"] == "cpu"
    assert data["device"]["cores"] >= 1
    assert set(data["environment"]) == {"fingerprint", "python", "torch", "compiler", "os", "toolkit"}
    assert set(data["compile"]) == {"ok", "command", "seconds", "log", "cached"}
    assert set(data["verify"]) == {"ok", "cases", "passed", "seconds", "checks", "errors", "failure"}
    assert set(data["costs"]) == {"compile_seconds", "device_seconds"}
    assert datetime.fromisoformat(data["created"]).utcoffset() is not None
    assert data["created"].endswith("Z")
    assert verify_report(report.report, report.signature, report.judge_key) == data
    assert judge(source, seed=9).data["id"] != data["id"]
    assert judge(source, seed=9).data["environment"] == data["environment"]


def test_a_failure_has_every_part(judge: Judge) -> None:
    """What was expected and what was got, at which index of which case, under which inputs."""
    failure = judge(kernel(after="b[0] = 0; return 0;")).data["verify"]["failure"]
    assert set(failure) == {
        *("kind", "case", "message", "index", "expected", "got", "max_abs_error", "max_rel_error", "tile", "errors"),
    }
    assert failure["kind"] == "wrong"
    assert failure["case"] == "padded/given"  # the smallest case comes first
    assert (failure["index"], failure["got"]) == ([0, 0], 0.0)
    assert failure["max_abs_error"] == "NaN" or failure["max_abs_error"] > 0


def test_every_case_and_distribution_is_run(judge: Judge) -> None:
    """Three visible cases and a hidden one, each as given, with few places changed, x3, x0.01, x-1, x30 and +10."""
    verify = judge(kernel()).data["verify"]
    assert (verify["cases"], verify["passed"], verify["failure"]) == (28, 28, None)
    assert all(check["ok"] for check in verify["checks"])


def test_the_seed_decides_the_inputs(judge: Judge) -> None:
    """The same seed gives the same expected value, another seed another."""
    wrong = kernel(after="return 0;")
    expected = [judge(wrong, seed=seed).data["verify"]["failure"]["expected"] for seed in (1, 1, 2)]
    assert expected[0] == expected[1] != expected[2]


def test_hidden_cases_are_judged(judge: Judge) -> None:
    """A kernel that knows the visible shapes by heart fails on the hidden one."""
    data = judge(kernel("if (n == 1) { for (int64_t j = 0; j < m; ++j) b[j] = a[j]; return 0; }\n")).data
    assert data["outcome"] == "wrong"
    assert data["verify"]["failure"]["case"].startswith("hidden.tail/")


def test_an_operator_whose_answer_is_constant_is_no_evidence(judge: Judge) -> None:
    """Where every case would be passed by a constant, no candidate is judged: the operator is at fault."""
    constant = replace(DOUBLE, name="constant", reference=lambda x: (x * 0 + 3,), baseline=lambda x: (x * 0 + 3,))
    with pytest.raises(InvalidOperator, match="operator constant: zeros or a constant would pass every case"):
        judge(kernel(), constant)


def test_what_is_no_verdict_is_raised(judge: Judge) -> None:
    """Each error names what was asked for and what there is."""
    with pytest.raises(UnknownOperator, match="softmax"):
        judge(kernel(), "sofmax")
    with pytest.raises(UnknownDevice, match="'tpu'; known devices: cpu, npu, cuda, null"):
        judge(kernel(), device="tpu")
    with pytest.raises(UnknownLanguage, match="does not compile 'fortran'; its languages: cpp"):
        judge(kernel(), language="fortran")
    with pytest.raises(UnknownLanguage, match="the null device does not compile 'cpp'"):
        judge(kernel(), device="null")
    with pytest.raises(UnknownMode, match="no mode is named 'gentle'"):
        judge(kernel(), mode="gentle")
    with pytest.raises(DeviceUnavailable, match="the npu device cannot be used here"):
        judge(kernel(), device="npu")


def test_importing_the_house_loads_nothing_heavy() -> None:
    """The command line starts without torch, numpy or cryptography."""
    code = (
        "import sys, device, device.cli; device.Limits; "
        "print([m for m in ('torch', 'numpy', 'cryptography') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_public_face_is_complete() -> None:
    """Each public name loads, and no other is promised."""
    assert all(getattr(device, name) is not None for name in device.__all__)
    with pytest.raises(AttributeError, match="no attribute 'judge'"):
        device.judge  # noqa: B018  (the access is the test)
