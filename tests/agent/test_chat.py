"""The chat model against a real server on loopback: good answers, and every bad one by its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from agent.errors import (
    EmptyAnswerError,
    GarbageAnswerError,
    ModelBusyError,
    ModelError,
    ModelRefusedError,
    ModelServerError,
    ModelSetupError,
    ModelTimeoutError,
    ModelUnreachableError,
    TruncatedAnswerError,
)
from agent.models.chat import ChatModel, ChatSettings
from agent.port import Attempt, Context, Decision, Offer, Resident
from agent.tokens import ByteTokens
from ledger.client import LedgerClient
from tests.agent.conftest import LIBRARY, MakeLoop
from tests.agent.openai_server import Say, Server
from tests.agent.stand_in import CARDS

KERNEL = '#include "sagebook_kernel.h"\nextern "C" int sagebook_kernel(...) { return 0; }\n'
ANSWER = f"""Here it is.

```cpp
{KERNEL}```

```json
{{"hypothesis": "rows are independent", "change": "threads = rows",
 "diagnosis": {{"tool": "timing", "hypothesis": "one core", "evidence": "0.8 ms", "next_step": "use both"}},
 "decisions": [{{"experience": "doc-threads", "adopted": true, "reason": "split the rows as it says"}},],
 "query": "false sharing", "done": false}}
```
"""

CONTEXT = Context(
    operator=CARDS["gelu"],
    stage="optimization",
    round=3,
    rounds_left=28,
    history=(
        Attempt(
            1, "correctness", "c1", "bad source", "draft", "h", "wrong", "wrong on tail", "index [7]: expected 1, got 0"
        ),
        Attempt(2, "correctness", "c2", "good source", "tail = masked", "h", "correct", "ok", "0.8 ms", 0.8, 1.0, 0.01),
    ),
    offers=(Offer("doc-threads", "Threads", "Split rows.", 0.2, 1.1),),
    residents=(Resident("doc-tail", "Mask the tail.", 0.5),),
    seed=7,
)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def model(stack: ExitStack, *script: Say, timeout: float = 20.0) -> tuple[ChatModel, Server]:
    server = stack.enter_context(Server(*script))
    chat = ChatModel(ChatSettings(base_url=server.url, model="tiny", api_key="secret", timeout=timeout), ByteTokens())
    stack.callback(chat.close)
    return chat, server


def test_a_good_answer_becomes_a_proposal(stack: ExitStack) -> None:
    """Source, change, diagnosis, decisions and query are read, a trailing comma forgiven, the reported usage kept."""
    chat, _ = model(stack, Say(ANSWER))
    found = chat.propose(CONTEXT)
    assert found.source == KERNEL
    assert (found.change, found.query) == ("threads = rows", "false sharing")
    assert found.diagnosis is not None
    assert found.diagnosis.evidence == "0.8 ms"
    assert found.decisions == (Decision("doc-threads", adopted=True, reason="split the rows as it says"),)
    assert (found.usage.input_tokens, found.usage.output_tokens, found.usage.estimated) == (11, 7, False)
    assert ANSWER.strip() in found.transcript


def test_the_prompt_holds_everything_that_the_model_needs(stack: ExitStack) -> None:
    """Card, header, rules, offers with ids, all rounds, the last source with its evidence, the rounds left, the seed."""
    chat, server = model(stack, Say(ANSWER))
    chat.propose(CONTEXT)
    asked = server.requests[0]
    system, user = (message["content"] for message in asked["messages"])
    assert CARDS["gelu"].abi in system
    for part in (
        "def gelu(x)",
        "[doc-threads] Threads",
        "Split rows.",
        "[doc-tail] Mask the tail.",
        "good source",
        "0.8 ms",
    ):
        assert part in user
    assert "1. [correctness] draft -> wrong" in user
    assert "28 rounds are left" in user
    assert asked["seed"] == 7
    assert server.keys == ["Bearer secret"]


def test_advice_is_part_of_the_next_question(stack: ExitStack) -> None:
    """What was wrong with the last answer is told."""
    from dataclasses import replace

    chat, server = model(stack, Say(ANSWER))
    chat.propose(replace(CONTEXT, advice="It held no source."))
    assert "could not be used. It held no source." in server.requests[0]["messages"][1]["content"]


def test_usage_is_counted_and_marked_where_none_is_reported(stack: ExitStack) -> None:
    """Four bytes of the answer are one token, rounded up; the mark says that it was counted here."""
    chat, _ = model(stack, Say(ANSWER, usage=None))
    usage = chat.propose(CONTEXT).usage
    assert usage.estimated
    assert usage.output_tokens == -(-len(ANSWER.encode()) // 4)
    assert usage.input_tokens > 100


def test_done_ends_the_stage(stack: ExitStack) -> None:
    """The JSON block alone with done=true is a proposal without a source."""
    chat, _ = model(stack, Say('```json\n{"hypothesis": "memory bound already", "done": true}\n```'))
    found = chat.propose(CONTEXT)
    assert found.source is None
    assert found.hypothesis == "memory bound already"


@pytest.mark.parametrize(
    "text",
    [
        f"```c++\n{KERNEL}```\nno JSON at all",
        f"<think>```cpp\nwrong {KERNEL}```</think>\n```cpp\n{KERNEL}```",
        f"```\n{KERNEL}```\n{{broken json",
        f"A sketch:\n```cpp\nint sketch;\n```\nThe whole:\n~~~cpp\n{KERNEL}~~~",
    ],
    ids=["no-json", "thoughts", "no-language", "two-blocks"],
)
def test_a_sloppy_answer_with_one_kernel_is_taken(stack: ExitStack, text: str) -> None:
    """The kernel counts, not the ceremony around it."""
    chat, _ = model(stack, Say(text))
    assert chat.propose(CONTEXT).source == KERNEL


@pytest.mark.parametrize(
    ("say", "kind"),
    [
        (Say("I would rather talk about the weather."), GarbageAnswerError),
        (Say('```json\n{"done": false}\n```'), GarbageAnswerError),
        (Say(""), EmptyAnswerError),
        (Say(None), EmptyAnswerError),
        (Say("<think>only thoughts</think>"), EmptyAnswerError),
        (Say(f"```cpp\n{KERNEL}", finish="length"), TruncatedAnswerError),
        (Say(None, refusal="I can not help with that."), ModelRefusedError),
        (Say("", finish="content_filter"), ModelRefusedError),
        (Say("slow down", status=429), ModelBusyError),
        (Say("broken", status=500), ModelServerError),
        (Say("loading", status=503), ModelServerError),
        (Say(raw=b"<html>proxy</html>"), ModelServerError),
        (Say(raw=b'{"choices": []}'), ModelServerError),
        (Say(raw=b'{"error": {"message": "overloaded"}}'), ModelServerError),
        (Say(raw=b"[1, 2]"), ModelServerError),
        (Say(raw=b""), ModelServerError),
        (Say(ANSWER, hang_up=True), ModelUnreachableError),
        (Say("no such model", status=404), ModelSetupError),
        (Say("bad key", status=401), ModelSetupError),
        (Say("context too long", status=400), ModelSetupError),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_each_bad_answer_has_its_own_name(stack: ExitStack, say: Say, kind: type[ModelError]) -> None:
    """One class for each thing that can happen; the message names the model or shows the answer's beginning."""
    chat, server = model(stack, say)
    with pytest.raises(kind) as caught:
        chat.propose(CONTEXT)
    assert type(caught.value) is kind
    assert len(server.requests) == 1, "the loop retries, not the client"


def test_a_slow_endpoint_is_left_after_the_time_limit(stack: ExitStack) -> None:
    """An answer that takes longer than the limit is a timeout that says the limit."""
    chat, _ = model(stack, Say(ANSWER, wait=5.0), timeout=0.2)
    with pytest.raises(ModelTimeoutError, match=r"0\.2 s"):
        chat.propose(CONTEXT)


def test_no_endpoint_at_all_is_unreachable() -> None:
    """A closed port is told with the address."""
    with Server(Say("")) as server:
        url = server.url
    chat = ChatModel(ChatSettings(base_url=url, model="tiny"), ByteTokens())
    with pytest.raises(ModelUnreachableError, match=r"127\.0\.0\.1"):
        chat.propose(CONTEXT)
    chat.close()


def test_the_wait_that_a_busy_endpoint_asks_for_is_kept(stack: ExitStack) -> None:
    """Retry-After is read in seconds."""
    chat, _ = model(stack, Say("slow down", status=429, headers={"Retry-After": "3"}))
    with pytest.raises(ModelBusyError) as caught:
        chat.propose(CONTEXT)
    assert caught.value.retry_after == 3.0


def test_patterns_are_read_and_incomplete_ones_left_out(stack: ExitStack) -> None:
    """A pattern needs key, title and body; stages that are not named mean both."""
    text = """```json
[{"key": "two-pass", "title": "Two passes", "body": "Read twice.\\n\\nChange: passes = 2", "families": ["reduction"]},
 {"key": "nameless"}]
```"""
    chat, _ = model(stack, Say(text))
    (pattern,), usage = chat.compare(CARDS["softmax"], "generated", "expert")
    assert (pattern.key, pattern.families) == ("two-pass", ("reduction",))
    assert pattern.stages == ("correctness", "optimization")
    assert usage.output_tokens == 7


def test_a_rule_is_the_answer_without_a_fence(stack: ExitStack) -> None:
    """Some models fence everything; the rule is what is inside."""
    chat, server = model(stack, Say("```text\nMask the tail.\n```"))
    assert chat.distill("Tails", "long text", "adopted 3 times", 40).text == "Mask the tail."
    assert "at most 40 tokens" in server.requests[0]["messages"][1]["content"]


def test_a_whole_task_survives_a_bad_endpoint(stack: ExitStack, client: LedgerClient, make_loop: MakeLoop) -> None:
    """Busy, broken, garbage, then a kernel: one round, every failed call on record with its name."""
    script = (
        Say("slow down", status=429),
        Say("broken", status=500),
        Say("no kernel here"),
        Say("```cpp\ncorrect 0.5 // sagebook_kernel\n```"),
        Say('{"done": true, "hypothesis": "fast enough"}'),
    )
    chat, _ = model(stack, *script)
    result = make_loop(chat).develop("gelu")
    assert (result.solved, result.rounds) == (True, 1)
    failed = [e.payload for e in client.events(LIBRARY) if e.type == "stage.diagnosed" and e.payload["tool"] == "model"]
    assert [item["hypothesis"] for item in failed] == ["ModelBusyError", "ModelServerError", "GarbageAnswerError"]


def test_a_model_that_refuses_ends_the_task_unsolved(
    stack: ExitStack, client: LedgerClient, make_loop: MakeLoop
) -> None:
    """A refusal is not tried again: the stage has nothing to score, and the task says why."""
    chat, server = model(stack, Say(None, refusal="I can not help with that."))
    result = make_loop(chat).develop("gelu")
    assert not result.solved
    assert len(server.requests) == 1
    task = client.task(LIBRARY, "run.gelu")
    assert [stage.status for stage in task.stages] == ["abandoned"]
    assert task.finished
