"""The reference documents as first experiences."""

from __future__ import annotations

import pytest

from agent.coldstart import documents
from agent.errors import ConfigurationError
from agent.journal import Journal
from ledger.client import LedgerClient
from tests.agent.conftest import LIBRARY

TEXT = """# A guide

Words before the first section belong to none.

## Mask the tail

Applies: stages=correctness; families=elementwise, reduction

Handle what is left over.

```cpp
## not a section
```

Change: tail = masked

## Anything else

Plain words.
"""


def test_each_section_is_one_experience() -> None:
    """Title, body without the Applies line, stages and families; code that looks like a heading stays code."""
    document = documents.parse("guide", TEXT)
    first, second = document.sections
    assert (first.id, second.id) == ("doc-guide-mask-the-tail", "doc-guide-anything-else")
    assert first.body.startswith("Handle what is left over.")
    assert "## not a section" in first.body
    assert "Applies:" not in first.body
    assert "Change: tail = masked" in first.body
    assert (first.stages, first.families) == (("correctness",), ("elementwise", "reduction"))
    assert (second.stages, second.families) == (("correctness", "optimization"), ())


@pytest.mark.parametrize(
    ("section", "what"),
    [
        ("## Odd\n\nApplies: stages=debugging\n\nText.", "stages are correctness and optimization"),
        ("## Odd\n\nApplies: chips=910c\n\nText.", "stages and families"),
        ("## Odd\n\nApplies: stages=correctness\n", "has no text"),
        ("## Odd\n\nOne.\n\n## Odd\n\nTwo.", "two sections"),
    ],
)
def test_a_section_that_can_not_be_read_is_named(section: str, what: str) -> None:
    """The file, the section and what would be right."""
    with pytest.raises(ConfigurationError, match=what) as caught:
        documents.parse("guide", section)
    assert "guide.md" in str(caught.value)


def test_long_titles_give_short_ids_cut_between_words() -> None:
    """An id is for people to type: at most 48 characters of the title, no half word."""
    (section,) = documents.parse("guide", "## " + "alpha " * 20 + "\n\nText.").sections
    assert section.id == "doc-guide-" + "-".join(["alpha"] * 8)


def test_recording_again_changes_nothing(client: LedgerClient) -> None:
    """The sections come in once, with the whole file as their origin."""
    journal = Journal(client, LIBRARY)
    document = documents.parse("guide", TEXT)
    assert documents.record(journal, [document], language="cpp") == 2
    head = client.library(LIBRARY).sequence
    assert documents.record(journal, [document], language="cpp") == 0
    assert client.library(LIBRARY).sequence == head
    found = client.experience(LIBRARY, "doc-guide-mask-the-tail")
    assert found.source.kind == "document"
    assert found.source.name == "guide.md: Mask the tail"
    assert client.blob(LIBRARY, found.source.texts[0]).decode() == TEXT
    assert found.conditions.families == ("elementwise", "reduction")
    assert found.conditions.languages == ("cpp",)


def test_the_documents_that_come_with_the_agent_can_be_read() -> None:
    """Three of them: a cheat sheet, a debugging guide, implementation examples; every section has its own id."""
    found = documents.bundled()
    assert [document.name for document in found] == ["cheat-sheet", "debugging-guide", "implementation-examples"]
    ids = [section.id for document in found for section in document.sections]
    assert len(ids) == len(set(ids)) > 20
