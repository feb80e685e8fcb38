"""One library as the agent uses it: its experiences, its rules, its blobs, and the checks of its log.

This and `agent.journal`, which adds tasks and stages, are the only places that talk to the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from agent.link import Line
from ledger import errors, wire
from ledger.client import LedgerClient

_T = TypeVar("_T")


@dataclass
class Shelf:
    """A library of a ledger. Whatever is recorded twice under one id is recorded once."""

    client: LedgerClient
    library: str
    line: Line = field(default_factory=Line)

    def library_opened(self, policy: str | Mapping[str, object], title: str = "") -> wire.Library:
        """The library, created where there is none."""
        try:
            return self._call(
                "library", lambda: self.client.library(self.library), expect=(errors.UnknownLibraryError,)
            )
        except errors.UnknownLibraryError:
            pass
        try:
            return self._call(
                "create-library",
                lambda: self.client.create_library(self.library, policy=policy, title=title),
                expect=(errors.LibraryExistsError, errors.PolicyError),
            )
        except errors.LibraryExistsError:
            return self._call("library", lambda: self.client.library(self.library))

    def experience(self, name: str) -> wire.Experience:
        """One experience."""
        return self._call("experience", lambda: self.client.experience(self.library, name))

    def experiences(self, *, awaiting: bool | None = None, resident: bool | None = None) -> list[wire.Experience]:
        """Experiences, all or those that await a rule or are resident."""
        return self._call(
            "experiences",
            lambda: self.client.experiences(self.library, awaiting_distillation=awaiting, resident=resident),
        )

    def record(self, new: wire.NewExperience) -> bool:
        """Record an experience. False where it is recorded already, or the policy takes no new ones."""
        try:
            self._call(
                f"experience.{new.experience}",
                lambda: self.client.record_experience(self.library, new),
                expect=(errors.ExperienceExistsError, errors.ExperiencesFixedError),
            )
        except (errors.ExperienceExistsError, errors.ExperiencesFixedError):
            return False
        return True

    def rule(self, experience: str, rule: wire.NewRule) -> wire.ConsolidationResult | None:
        """Give an experience its rule."""
        return self._call(f"rule.{experience}", lambda: self.client.distill_rule(self.library, experience, rule))

    def verified(self) -> wire.Verification:
        """Check every stored record against the hash chain."""
        return self._call("verify", lambda: self.client.verify(self.library))

    def rederived(self) -> wire.Rederivation:
        """Recompute everything from the facts under the recorded policy."""
        return self._call("rederive", lambda: self.client.rederive(self.library))

    def blob(self, text: str) -> str:
        """Store a text once; returns its SHA-256."""
        return self._call("blob", lambda: self.client.put_blob(self.library, text.encode()))

    def text(self, sha256: str) -> str:
        """The text of a blob."""
        return self._call("read-blob", lambda: self.client.blob(self.library, sha256)).decode()

    def _call(self, step: str, send: Callable[[], _T], *, expect: tuple[type[errors.LedgerError], ...] = ()) -> _T:
        return self.line.call(f"{self.library}/{step}", send, expect=expect)
