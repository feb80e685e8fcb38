"""One root error, and a class for each thing that can be refused or fail. Facts are fields: edges show them."""

from __future__ import annotations

from collections.abc import Iterable


def _names(items: Iterable[str]) -> str:
    return ", ".join(items)


class LedgerError(Exception):
    """Anything that the ledger refuses or fails at. `code` is stable: it is the problem type at the HTTP edge."""

    code = "ledger-error"

    # Facts are members of the problem document, so none is named like one of its own (status, title, detail, …).
    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts


class RefusedError(LedgerError):
    """A command that the recorded facts do not allow. Nothing of it is stored."""

    code = "refused"


class NotFoundError(LedgerError):
    """Something named does not exist."""

    code = "not-found"


class ConflictError(LedgerError):
    """Something named exists already, or the state has moved on."""

    code = "conflict"


class InvalidInputError(LedgerError):
    """A value that can not be right whatever the state is."""

    code = "invalid-input"


class NameInvalidError(InvalidInputError):
    """A name that nothing can have."""

    code = "name-invalid"

    def __init__(self, what: str, name: str) -> None:
        super().__init__(
            f"no {what} can be named {name!r}: a name has 1 to 200 characters, does not begin with a blank, and holds "
            "no `/`, `?`, `#`, `%` and no control character; `.` and `..` are none either",
            name=name,
        )


class ConditionInvalidError(InvalidInputError):
    """A condition of an experience that nothing fulfils, or that can not be read."""

    code = "condition-invalid"

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"condition `{field}` can not be: {why}", field=field)


class PolicyError(InvalidInputError):
    """A policy field is unknown, of the wrong kind or out of range."""

    code = "policy-invalid"


class UnknownLibraryError(NotFoundError):
    code = "library-unknown"

    def __init__(self, library: str, known: Iterable[str] = ()) -> None:
        known = tuple(known)
        hint = f"; known: {_names(known)}" if known else f"; create it with `sagebook library create {library}`"
        super().__init__(f"there is no library {library!r}{hint}", library=library, known=known)


class LibraryExistsError(ConflictError):
    code = "library-exists"

    def __init__(self, library: str) -> None:
        super().__init__(f"library {library!r} exists already; choose another name or use it as it is", library=library)


class UnknownExperienceError(NotFoundError):
    code = "experience-unknown"

    def __init__(self, experience: str, close: Iterable[str] = ()) -> None:
        close = tuple(close)
        hint = f"; close names: {_names(close)}" if close else "; record it before it is used"
        super().__init__(f"there is no experience {experience!r}{hint}", experience=experience, close=close)


class ExperienceNotYetError(NotFoundError):
    """An experience is asked about as of a point before it was recorded."""

    code = "experience-not-yet"

    def __init__(self, experience: str, sequence: int, recorded: int) -> None:
        super().__init__(
            f"as of sequence {sequence} there was no experience {experience!r}: it was recorded at {recorded}; "
            f"ask as of that or later",
            experience=experience,
            sequence=sequence,
            recorded=recorded,
        )


class ExperienceExistsError(ConflictError):
    code = "experience-exists"

    def __init__(self, experience: str) -> None:
        super().__init__(
            f"experience {experience!r} is recorded already; amend it or choose another id", experience=experience
        )


class ExperienceRetiredError(RefusedError):
    code = "experience-retired"

    def __init__(self, experience: str) -> None:
        super().__init__(
            f"experience {experience!r} is retired and can not be offered or changed", experience=experience
        )


class ExperiencesFixedError(RefusedError):
    code = "experiences-fixed"

    def __init__(self, experience: str) -> None:
        super().__init__(
            f"experience {experience!r} is refused: the policy of this library takes no new experiences once a "
            f"task has started",
            experience=experience,
        )


class ResidentRetrievedError(RefusedError):
    code = "resident-retrieved"

    def __init__(self, experience: str, stage: str) -> None:
        super().__init__(
            f"experience {experience!r} can not be retrieved in stage {stage!r}: its rule is resident, so it is "
            f"presented already",
            experience=experience,
            stage=stage,
        )


class NotApplicableError(RefusedError):
    code = "not-applicable"

    def __init__(self, experience: str, stage: str, kind: str, stages: Iterable[str]) -> None:
        stages = tuple(stages)
        super().__init__(
            f"experience {experience!r} can not be retrieved in stage {stage!r}: that is a {kind} stage, "
            f"and it applies to {_names(stages)} alone",
            experience=experience,
            stage=stage,
            kind=kind,
        )


class NotOfferedError(RefusedError):
    code = "not-offered"

    def __init__(self, experience: str, stage: str) -> None:
        super().__init__(
            f"experience {experience!r} was never offered in stage {stage!r}: it was neither retrieved nor "
            f"presented as a resident rule; "
            "retrieve it first",
            experience=experience,
            stage=stage,
        )


class DecisionsMissingError(RefusedError):
    code = "decisions-missing"

    def __init__(self, stage: str, missing: Iterable[str]) -> None:
        missing = tuple(missing)
        super().__init__(
            f"stage {stage!r} can not be scored: no adoption decision for {_names(missing)}; decide on each "
            f"with a reason first",
            stage=stage,
            missing=missing,
        )


class EvidenceMissingError(RefusedError):
    code = "evidence-missing"

    def __init__(self, stage: str, what: str) -> None:
        super().__init__(f"stage {stage!r} can not be scored: {what}", stage=stage)


class UnknownTaskError(NotFoundError):
    code = "task-unknown"

    def __init__(self, task: str) -> None:
        super().__init__(f"there is no task {task!r}; start it first", task=task)


class ProgressUnknownError(NotFoundError):
    code = "progress-unknown"

    def __init__(self, key: str) -> None:
        super().__init__(f"no call runs under the progress key {key!r}: it ended, or did not begin yet", key=key)


class TaskExistsError(ConflictError):
    code = "task-exists"

    def __init__(self, task: str) -> None:
        super().__init__(f"task {task!r} was started already", task=task)


class TaskFinishedError(RefusedError):
    code = "task-finished"

    def __init__(self, task: str) -> None:
        super().__init__(f"task {task!r} is finished; start another one", task=task)


class UnknownStageError(NotFoundError):
    code = "stage-unknown"

    def __init__(self, stage: str) -> None:
        super().__init__(f"there is no stage {stage!r}; open it first", stage=stage)


class StageExistsError(ConflictError):
    code = "stage-exists"

    def __init__(self, stage: str) -> None:
        super().__init__(f"stage {stage!r} was opened already", stage=stage)


class StageClosedError(RefusedError):
    code = "stage-closed"

    def __init__(self, stage: str, status: str) -> None:
        super().__init__(f"stage {stage!r} is {status}; nothing can be added to it", stage=stage, stage_status=status)


class StageOpenError(RefusedError):
    code = "stage-open"

    def __init__(self, task: str, stage: str) -> None:
        super().__init__(
            f"task {task!r} has an open stage {stage!r}; score or abandon it first", task=task, stage=stage
        )


class KindScoredError(RefusedError):
    code = "kind-scored"

    def __init__(self, task: str, kind: str, stage: str) -> None:
        super().__init__(
            f"the {kind} of task {task!r} was scored already, by stage {stage!r}; start another task to attempt "
            f"it again",
            task=task,
            kind=kind,
            stage=stage,
        )


class NoCorrectCandidateError(RefusedError):
    code = "no-correct-candidate"

    def __init__(self, task: str) -> None:
        super().__init__(
            f"the optimization stage of task {task!r} can not open: no candidate that counts has passed "
            f"verification and been measured yet",
            task=task,
        )


class UnknownCandidateError(NotFoundError):
    code = "candidate-unknown"

    def __init__(self, candidate: str) -> None:
        super().__init__(f"there is no candidate {candidate!r} in this stage; propose it first", candidate=candidate)


class UnknownHashError(NotFoundError):
    """No candidate of the library has this source or artefact."""

    code = "candidate-hash-unknown"

    def __init__(self, sha256: str) -> None:
        super().__init__(
            f"no candidate of the library has the source or the artefact {sha256!r}; `sagebook why` shows the hashes "
            "of the candidates behind a score, as 64 hexadecimal digits",
            sha256=sha256,
        )


class CandidateExistsError(ConflictError):
    code = "candidate-exists"

    def __init__(self, candidate: str) -> None:
        super().__init__(f"candidate {candidate!r} was proposed already", candidate=candidate)


class BudgetSpentError(RefusedError):
    code = "budget-spent"

    def __init__(self, task: str, budget: int) -> None:
        super().__init__(f"task {task!r} has used its budget of {budget} rounds", task=task, budget=budget)


class ReportInvalidError(InvalidInputError):
    """A judge's report whose signature, form or subject does not hold."""

    code = "report-invalid"


class JudgeUnknownError(RefusedError):
    """The report holds, but this service takes none of its judge."""

    code = "judge-unknown"

    def __init__(self, judge: str) -> None:
        super().__init__(
            f"this ledger takes no reports of the judge {judge}; have it judged where a known judge runs, or add "
            "the key to SAGEBOOK_JUDGES of the ledger's service",
            judge=judge,
        )


class ReportUsedError(ConflictError):
    """One report can not speak for two candidates, even of the same source."""

    code = "report-used"

    def __init__(self, report: str, candidate: str) -> None:
        super().__init__(
            f"the report {report} was handed in for candidate {candidate!r}; have this candidate judged itself",
            report=report,
            candidate=candidate,
        )


class RuleInvalidError(InvalidInputError):
    code = "rule-invalid"


class UnknownBlobError(NotFoundError):
    code = "blob-unknown"

    def __init__(self, sha256: str) -> None:
        super().__init__(f"there is no blob {sha256}", sha256=sha256)


class BlobMismatchError(InvalidInputError):
    code = "blob-mismatch"

    def __init__(self, claimed: str, found: str) -> None:
        super().__init__(f"the content hashes to {found}, not to {claimed}", claimed=claimed, found=found)


class SequenceConflictError(ConflictError):
    """Lost the race: the library is not at the sequence that the append expected."""

    code = "sequence-conflict"

    def __init__(self, library: str, expected: int, found: int) -> None:
        super().__init__(
            f"library {library!r} is at sequence {found}, not at {expected}; read again and retry",
            library=library,
            expected=expected,
            found=found,
        )


class LibraryContendedError(ConflictError):
    """Other services wrote the library without a pause, so that a command could not be decided on what it holds."""

    code = "library-contended"

    def __init__(self, library: str) -> None:
        super().__init__(
            f"other services keep writing library {library!r}, and nothing was stored; repeat the request, or send it "
            "to the service that writes most",
            library=library,
        )


class IdempotencyConflictError(ConflictError):
    """The same idempotency key came with other content."""

    code = "idempotency-conflict"

    def __init__(self, library: str, key: str) -> None:
        super().__init__(
            f"idempotency key {key!r} was used in library {library!r} with other content; use a new key for a "
            f"new request",
            library=library,
            key=key,
        )


class TraceInvalidError(InvalidInputError):
    """A line of a trace that can not be read or is refused; names the line."""

    code = "trace-invalid"

    def __init__(self, line: int, reason: str, cause: str | None = None) -> None:
        super().__init__(f"line {line}: {reason}", line=line, cause=cause)
        self.line = line


class SchemaOutdatedError(LedgerError):
    code = "schema-outdated"

    def __init__(self, url: str, found: str, wanted: str) -> None:
        super().__init__(
            f"the database {url} has schema {found}, this version needs {wanted}; run `sagebook db upgrade`",
            url=url,
            found=found,
            wanted=wanted,
        )


class SchemaUnknownError(LedgerError):
    """The database was made by a newer version, or by something else."""

    code = "schema-unknown"

    def __init__(self, url: str, found: str, known: Iterable[str]) -> None:
        known = tuple(known)
        super().__init__(
            f"the database {url} has schema {found}, this version knows {_names(known)}; "
            "upgrade sagebook, or name another database",
            url=url,
            found=found,
            known=known,
        )


class StoreUnavailableError(LedgerError):
    """The database can not be reached, is locked for too long, or fails. Nothing was acknowledged."""

    code = "store-unavailable"

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"the store {url} failed: {reason}; nothing of this request is acknowledged, "
            "so repeat it with the same idempotency key once the store answers",
            url=url,
            reason=reason,
        )


class LogCorruptError(LedgerError):
    """A stored record does not match its hash, its neighbours or its form."""

    code = "log-corrupt"

    def __init__(self, library: str, sequence: int, reason: str) -> None:
        super().__init__(f"library {library!r}, sequence {sequence}: {reason}", library=library, sequence=sequence)
        self.sequence = sequence


class AddressUnavailableError(LedgerError):
    code = "address-unavailable"

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            f"the ledger can not listen on {host}, port {port}: {reason}; choose others by --host and --port",
            host=host,
            port=port,
        )


class UnreachableError(LedgerError):
    code = "unreachable"

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"the ledger at {url} can not be reached: {reason}; start it with `sagebook serve`", url=url)


class CursorInvalidError(InvalidInputError):
    """A cursor that this list did not give."""

    code = "cursor-invalid"

    def __init__(self, cursor: str) -> None:
        super().__init__(f"cursor {cursor!r} was not given by this list; start without one", cursor=cursor)


class RequestInvalidError(InvalidInputError):
    """A request whose body or parameters do not have the form that the API documents."""

    code = "request-invalid"


class ConflictExistsError(ConflictError):
    code = "conflict-exists"

    def __init__(self, conflict: str) -> None:
        super().__init__(f"conflict {conflict!r} is recorded already; resolve it instead", conflict=conflict)


class UnknownConflictError(NotFoundError):
    code = "conflict-unknown"

    def __init__(self, conflict: str) -> None:
        super().__init__(f"there is no conflict {conflict!r}", conflict=conflict)


class ConflictSettledError(RefusedError):
    code = "conflict-settled"

    def __init__(self, conflict: str) -> None:
        super().__init__(f"conflict {conflict!r} is settled already; record a new one", conflict=conflict)


class NothingToReverseError(RefusedError):
    code = "nothing-to-reverse"

    def __init__(self, subject: str, why: str) -> None:
        super().__init__(f"{subject!r} can not be reversed: {why}", subject=subject)


class NotExpressibleError(RefusedError):
    """Something happened in the library that the trace format has no record for."""

    code = "trace-not-expressible"

    def __init__(self, sequence: int, what: str) -> None:
        super().__init__(
            f"sequence {sequence} can not be told in a trace: {what}; copy the database instead (`sagebook backup`)",
            sequence=sequence,
        )


class EmbeddingError(LedgerError):
    """Texts could not be turned into vectors; retrieval goes on without the dense ranking and says so."""

    code = "embedding-failed"

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"the embeddings of {where} failed: {reason}", where=where)


class WriterHeldError(ConflictError):
    """Another process is the one writer of a SQLite file."""

    code = "writer-held"

    def __init__(self, database: str, pid: int | None, where: str) -> None:
        who = f"the service at {where} (process {pid})" if pid else "another process"
        out = f"--server {where}" if where else "--server"
        super().__init__(
            f"{database} is written by {who}, and a SQLite file has one writer; go through it with `{out}`, stop it, "
            "or use PostgreSQL for several services",
            database=database,
            pid=pid,
            where=where,
        )


class NetworkFileSystemError(InvalidInputError):
    """A SQLite file in WAL mode needs memory that its processes share, so one machine's own disk."""

    code = "network-file-system"

    def __init__(self, database: str, kind: str) -> None:
        super().__init__(
            f"{database} lies on a network file system ({kind}), where SQLite can lose or damage what it stored; "
            "put it on a disk of this machine, or use PostgreSQL",
            database=database,
            kind=kind,
        )


class AnswerErasedError(RefusedError):
    """The request was carried out before; what it was answered with then has been redacted since."""

    code = "answer-erased"

    def __init__(self, library: str, key: str, first: int, last: int) -> None:
        super().__init__(
            f"idempotency key {key!r} of library {library!r} stored sequences {first} to {last}; "
            "the answer held a text that has been redacted since, so read the library instead",
            library=library,
            key=key,
            first=first,
            last=last,
        )


class CheckpointInvalidError(InvalidInputError):
    """A text that is no signed checkpoint, or is not signed by the key that it should be signed by."""

    code = "checkpoint-invalid"


class HistoryRewrittenError(LogCorruptError):
    """The log does not begin with what a signed checkpoint stands for, so no other is signed."""

    code = "history-rewritten"


class DowngradeRefusedError(RefusedError):
    """A database can go back only to a schema that is older than its own."""

    code = "downgrade-refused"

    def __init__(self, url: str, found: str | None, wanted: str) -> None:
        super().__init__(
            f"the database {url} has schema {found or 'none'}, which {wanted} is not older than; "
            "`sagebook db status` shows both, `sagebook db upgrade` goes forward",
            url=url,
            found=found or "none",
            wanted=wanted,
        )


class CopyRefusedError(RefusedError):
    """A backup, restore or copy that would overwrite, or has no source or target."""

    code = "copy-refused"
