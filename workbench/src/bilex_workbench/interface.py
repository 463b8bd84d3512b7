"""What the REST interface takes and answers: every body and every answer has its type here."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

from bilex.fit import DEFAULT_METHOD
from bilex.model.space import Direction, Side
from bilex_workbench.articles import Article, Example
from bilex_workbench.decisions import Decision, Status, Verdict
from bilex_workbench.kinds import Kind
from bilex_workbench.problems import CONTROL, LONGEST_WORD
from bilex_workbench.recalibration import Recalibration
from bilex_workbench.reviewing import BandStatus, Reviewer

ModelState = Literal["none", "loading", "ready", "failed"]


def _one_line(text: str) -> str:
    if CONTROL.search(text):
        raise ValueError("line breaks and tabs are not allowed in words and names")
    return text


Word = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_WORD), AfterValidator(_one_line)]
Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=60, strip_whitespace=True),
    AfterValidator(_one_line),
]
Note = Annotated[str, StringConstraints(max_length=10_000)]
Words = Annotated[list[Word], Field(max_length=100)]
RandomSeed = Annotated[int, Field(ge=0, le=2**32 - 1)]
Confidence = Annotated[float, Field(ge=0, le=1)]


# Bodies.


class Body(BaseModel):
    """A body in which nothing unknown may stand, nor control characters but new lines and tabs."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _check_text(cls, value: Any) -> Any:
        parts = [value]
        while parts:
            part = parts.pop()
            if isinstance(part, str) and CONTROL.search(part.replace("\n", "").replace("\t", "")):
                raise ValueError("control characters are not allowed in texts")
            parts += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        return value


class DecisionIn(Body):
    """A decision about a word."""

    source: Word
    reviewer: Name
    verdict: Verdict
    accepted: Words = Field(default_factory=list)
    candidates: Words = Field(default_factory=list)
    rejected: Words | None = None
    unsure: Words = Field(default_factory=list)
    note: Note = ""
    kind: Literal["review", "resolution"] = "review"


class SkipIn(Body):
    """A word that somebody leaves for later."""

    source: Word
    reviewer: Name


class NoteIn(SkipIn):
    """A remark about a word."""

    note: Note


class UndoIn(Body):
    """Who takes a decision back."""

    reviewer: Name


class ManyIn(Body):
    """Which entries a bulk action is about: those named, or all that the filter of the address finds."""

    reviewer: Name
    sources: Annotated[list[Word], Field(max_length=10_000)] | None = None


class MarkIn(ManyIn):
    """A kind or an assignee for many entries; null leaves it as it is."""

    kind: Kind | None = None
    assignee: Annotated[str, StringConstraints(max_length=60, strip_whitespace=True)] | None = None


class AssignIn(ManyIn):
    """Among whom entries are divided, and how."""

    people: list[Name] = Field(min_length=1, max_length=50)
    by: Literal["even", "range", "letter", "kind"] = "even"

    @field_validator("people")
    @classmethod
    def _different(cls, people: list[str]) -> list[str]:
        if len(set(people)) < len(people):
            raise ValueError("a person is named twice")
        return people


class DecideManyIn(ManyIn):
    """A verdict about the first answer of many entries."""

    verdict: Verdict


class BatchIn(Body):
    """Which bulk action to take back."""

    batch: int = Field(ge=1, le=2**53)


class ArticleIn(SkipIn):
    """The structure of an entry, in place of the one it has."""

    article: Article


class ExampleIn(SkipIn):
    """An example for the sense that a translation belongs to."""

    target: Word
    example: Example


class SampleIn(Body):
    """How to draw the sample of an audit."""

    size: int = Field(200, ge=1, le=100_000)
    reviewer: Name
    random_seed: RandomSeed = 1
    min_confidence: Confidence | None = None
    max_rank: int | None = Field(None, ge=1, le=1_000_000_000)


class VerdictIn(Body):
    """What somebody says about an item of an audit."""

    number: int = Field(ge=1, le=1_000_000_000)
    reviewer: Name
    verdict: Verdict
    right: Words = Field(default_factory=list)
    typed: Words = Field(default_factory=list)
    note: Note = ""


class LearnIn(Body):
    """How to retrain."""

    updates: int | None = Field(None, ge=0, le=2_000)
    held_out: float = Field(0.1, ge=0, le=0.5)
    random_seed: RandomSeed = 1


class RestoreIn(Body):
    """Which earlier model to restore."""

    number: int = Field(ge=1, le=1_000_000_000)


class FileIn(Body):
    """A file: a path inside the allowed folder, or an upload."""

    path: str | None = Field(None, max_length=4_000)
    upload: str | None = Field(None, max_length=64)


class FitIn(Body):
    """What to fit."""

    sample: bool = False
    name: str = Field("model", max_length=81)
    source: FileIn | None = None
    target: FileIn | None = None
    seeds: FileIn | None = None
    source_language: str | None = Field(None, max_length=40)
    target_language: str | None = Field(None, max_length=40)
    method: str = DEFAULT_METHOD
    language_model: str | None = Field(None, max_length=200)
    limit: int = Field(200_000, ge=1, le=5_000_000)
    updates: int | None = Field(None, ge=0, le=2_000)


class UploadIn(Body):
    """A file that will be uploaded."""

    name: str = Field(max_length=1_000)
    size: int = Field(ge=1, le=1 << 50)
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$")


# Answers.


class Answer(BaseModel):
    """An answer: what it holds is what is described here."""

    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)


class Problem(Answer):
    """Why a request was not served, in one sentence; with 409, what the server does instead."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)
    detail: str
    state: ModelState | None = None
    operation: str | None = None
    generation: int | None = None


class Health(Answer):
    """Whether the server runs."""

    status: Literal["ok"]
    version: str
    model: ModelState
    ready: bool


class Language(Answer):
    """A language of the model."""

    code: str | None
    name: str
    words: int
    rtl: bool


class FrequencyBand(Answer):
    """A range of frequency ranks, both ends included."""

    name: str
    first: int
    last: int


class Filled(Answer):
    """How far the table is filled."""

    done: int
    total: int
    complete: bool


class Lemmatised(Answer):
    """Whether each language has a lemmatiser."""

    source: bool
    target: bool


class JobAnswer(Answer):
    """A long piece of work."""

    id: str
    kind: Literal["learn", "fit"]
    state: Literal["running", "done", "failed", "cancelled"]
    phase: str
    done: float
    total: float | None
    message: str
    detail: str | None
    started: str
    seconds: float


class ModelAnswer(Answer):
    """The model that is open; null where there is none."""

    state: ModelState
    operation: str | None
    progress: tuple[int, int] | None
    detail: str | None
    generation: int
    job: JobAnswer | None
    name: str | None = None
    folder: str | None = None
    source: Language | None = None
    target: Language | None = None
    method: str | None = None
    language_model: str | None = None
    confidences: bool = False
    seeds: int | None = None
    made: str | None = None
    bands: list[FrequencyBand] = Field(default_factory=list)
    lemmas: Lemmatised | None = None
    corpus: bool = False
    entries: Filled | None = None
    backward: Filled | None = None


class TranslationAnswer(Answer):
    """A translation of a word."""

    word: str
    score: float
    confidence: float | None
    rank: int | None
    known: bool
    composed: bool


class TranslateAnswer(Answer):
    """The best translations of a word, or closest spellings of an unknown one."""

    word: str
    origin: str | None
    rank: int | None
    translations: list[TranslationAnswer]
    suggestions: list[str]


class SuggestAnswer(Answer):
    """Words that begin so, and closest spellings."""

    word: str
    known: bool
    completions: list[str]
    spellings: list[str]


class RankedWord(Answer):
    """A word and its rank."""

    word: str
    rank: int


class NearWord(Answer):
    """A word and how similar it is."""

    word: str
    similarity: float


class ViewAnswer(Answer):
    """The neighbours of both words in one view."""

    name: str
    similarity: float
    source_neighbours: list[NearWord]
    target_neighbours: list[NearWord]
    source_candidates: list[NearWord]
    target_candidates: list[NearWord]


class WhyAnswer(Answer):
    """What speaks for a pair."""

    source: RankedWord
    target: RankedWord
    score: float
    similarity: float
    confidence: float | None
    known: bool
    rank_of_target: int | None
    rank_of_source: int | None
    mutual: bool
    views: list[ViewAnswer]


class Point(Answer):
    """A word on the map."""

    id: int
    word: str
    language: Side
    x: float
    y: float
    rank: int
    query: bool


class Line(Answer):
    """From a source word to its best translation on the map."""

    model_config = ConfigDict(populate_by_name=True)
    start: int = Field(alias="from")
    to: int
    score: float


class MapAnswer(Answer):
    """A word's neighbourhood in two dimensions."""

    word: str
    direction: Direction
    points: list[Point]
    lines: list[Line]


class Row(Answer):
    """An entry: a source word with the model's best translation and what people decided."""

    source: str
    target: str | None
    score: float | None
    confidence: float | None
    source_rank: int
    target_rank: int | None
    mutual: bool | None
    identical: bool
    known: bool
    status: Status
    accepted: list[str]
    reviewers: list[str]
    decisions: int
    decided: str | None
    noted: bool
    kind: Kind
    headword: str
    answer: str | None
    forms: int
    fresh: bool
    assignee: str


class EntryPage(Answer):
    """A page of the table."""

    total: int
    offset: int
    limit: int
    complete: bool
    columns: list[str]
    rows: list[Row]


class Candidate(TranslationAnswer):
    """A candidate; of a headword, together with its other forms."""

    forms: list[str]


class NoteAnswer(Answer):
    """A remark."""

    reviewer: str
    note: str
    at: str


class EntryAnswer(Row):
    """An entry with candidates, forms, notes, article and history."""

    candidates: list[Candidate]
    other_forms: list[str]
    history: list[Decision]
    notes: list[NoteAnswer]
    article: Article


class ArticleAnswer(Answer):
    """The structure of an entry."""

    article: Article


class BatchAnswer(Answer):
    """A bulk action: its number, for undo, and how many entries it changed."""

    batch: int
    changed: int


class PersonShare(Answer):
    """How many entries somebody got."""

    name: str
    entries: int


class AssignedAnswer(BatchAnswer):
    """A division of entries among people."""

    people: list[PersonShare]


class Batch(BatchAnswer):
    """A bulk action: who did it, when, and when it was taken back."""

    at: str
    reviewer: str
    action: Literal["mark", "decide"]
    undone: str | None


class BatchesAnswer(Answer):
    """The newest bulk actions."""

    batches: list[Batch]


class Marked(Answer):
    """A sentence, and where the word stands in it, in characters."""

    text: str
    marks: list[tuple[int, int]]


class ParallelExample(Answer):
    """A sentence and its translation."""

    source: Marked
    target: Marked


class SourceExample(Answer):
    """A sentence of the source language."""

    source: Marked


class TargetExample(Answer):
    """A sentence of the target language."""

    target: Marked


class ExamplesAnswer(Answer):
    """Good sentences of the corpus."""

    corpus: bool
    parallel: list[ParallelExample]
    source: list[SourceExample]
    target: list[TargetExample]


class Counts(Answer):
    """How far the review is."""

    left: int
    decided: int
    decided_by_you: int


class Item(Answer):
    """A word with all that a reviewer needs to decide."""

    source: str
    source_rank: int
    status: Status
    priority: float
    kind: Kind
    headword: str
    forms: list[str]
    candidates: list[Candidate]
    notes: list[NoteAnswer]
    neighbours: list[str]
    decided_by: list[str]
    decisions: list[Decision]


class QueueAnswer(Counts):
    """The next words of the queue."""

    items: list[Item]


class DecidedAnswer(Counts):
    """A decision that was kept."""

    decision: Decision
    entry: Row


class UndoneAnswer(Counts):
    """A decision that was taken back."""

    undone: Decision
    entry: Row | None
    item: Item | None


class NotedAnswer(Answer):
    """The entry with its remark."""

    entry: Row


class PeopleAnswer(Answer):
    """Everybody who decided something or was assigned something."""

    reviewers: list[Reviewer]


class StatusAnswer(Answer):
    """How far the review is, by status, frequency and person."""

    total: int
    unreviewed: int
    accepted: int
    corrected: int
    rejected: int
    skipped: int
    disagreement: int
    covered: int
    twice: int
    decisions: int
    by_band: list[BandStatus]
    by_reviewer: list[Reviewer]


class Disagreement(Answer):
    """An entry on which people disagree, with the decision of each."""

    source: str
    source_rank: int
    candidates: list[str]
    decisions: list[Decision]


class DisagreementsAnswer(Answer):
    """Entries on which people disagree."""

    total: int
    rows: list[Disagreement]


class Alike(Answer):
    """How often people judged alike; κ is null where it is undefined."""

    entries: int
    agreed: int
    share: float | None
    kappa: float | None


class AlikePair(Alike):
    """The same for two people."""

    reviewers: tuple[str, str]


class AgreementAnswer(Answer):
    """Agreement of every two people who decided on the same words."""

    pairs: list[AlikePair]
    overall: Alike


class Stratum(Answer):
    """A part of the sample."""

    band: str
    confidence: str
    entries: int
    drawn: int
    decided: int


class Audit(Answer):
    """A sample and how far it is."""

    id: int
    size: int
    decided: int
    skipped: int
    created: str
    reviewer: str
    strata: list[Stratum]


class AuditAnswer(Answer):
    """The present sample."""

    audit: Audit | None


class BlindItem(Answer):
    """An item of the sample, without what the model prefers."""

    number: int
    source: str
    source_rank: int
    candidates: list[str]


class BlindItems(Answer):
    """The next items of the sample."""

    items: list[BlindItem]
    decided: int
    skipped: int
    size: int


class AuditDecided(Answer):
    """An item that was decided."""

    number: int
    decided: int
    size: int


class AuditUndone(Answer):
    """An item that was taken back."""

    item: BlindItem
    decided: int
    size: int


class MoreDecisions(Answer):
    """How many more decisions a narrower interval needs."""

    width: float
    decisions: int | None


class PrecisionPart(Answer):
    """The precision of a part of the dictionary."""

    name: str
    entries: int
    decided: int
    right: int
    precision: float | None
    low: float | None
    high: float | None


class CalibrationPart(Answer):
    """What confidences said, and what was found."""

    name: str
    said: float
    found: float
    decided: int


class ReportAnswer(Answer):
    """What an audit says about the whole dictionary."""

    decided: int
    size: int
    precision: float | None
    low: float | None
    high: float | None
    width: float | None
    more_decisions: MoreDecisions
    by_band: list[PrecisionPart]
    by_confidence: list[PrecisionPart]
    calibration: list[CalibrationPart]
    recalibration: Recalibration | None


class RecalibrationAnswer(Answer):
    """How confidences were changed; null if they were not."""

    recalibration: Recalibration | None


class AppliedAnswer(Answer):
    """What was written into the model."""

    applied: Recalibration


class JobOf(Answer):
    """The present or last job."""

    job: JobAnswer | None


class StartedJob(Answer):
    """The job that was started or ended."""

    job: JobAnswer


class _Stored(BaseModel):
    """What was kept by this or another version: names that it does not have are passed over."""

    model_config = ConfigDict(extra="ignore", json_schema_serialization_defaults_required=True)


class LearnedFrom(_Stored):
    """How many pairs a retraining learned from."""

    seeds: int
    accepted: int
    rejected: int


class HeldOut(_Stored):
    """Accuracy before and after on words that the retraining did not learn from, with 95 % intervals."""

    words: int
    before: float | None
    after: float | None
    before_interval: tuple[float, float] | None = None
    after_interval: tuple[float, float] | None = None
    gained: int = 0
    lost: int = 0
    verdict: Literal["better", "worse", "too few to tell"] = "too few to tell"
    by: str = ""


class RefinementAnswer(_Stored):
    """What a retraining did to the space."""

    accepted: int
    rejected: int
    moved: bool
    note: str
    width: float | None = None
    step: float | None = None
    changed: int = 0
    decisions: tuple[int, float] = (0, 0.0)
    seeds: tuple[int, float] = (0, 0.0)
    seconds: float = 0.0


class Comparison(_Stored):
    """A retrained model that waits, compared with the present one."""

    seconds: float | None = None
    learned_from: LearnedFrom | None = None
    refinement: RefinementAnswer | None = None
    held_out: HeldOut | None = None
    changed: int = 0
    compared: int = 0
    made: str | None = None


class WaitingAnswer(Answer):
    """The retrained model that waits for keep or discard."""

    waiting: Comparison | None


class Change(Answer):
    """An entry whose first translation changed."""

    source: str
    source_rank: int
    before: str | None
    after: str | None
    confidence_before: float | None
    confidence_after: float | None
    reason: str
    near: str | None
    similarity: float | None
    decided: list[str] | None


class ChangesAnswer(Answer):
    """Entries whose first translation changed."""

    total: int
    rows: list[Change]


class EstimateAnswer(Answer):
    """How long a retraining will take, and what it would learn from, in numbers and as a sentence."""

    seconds: float
    basis: Literal["last run", "measurement"]
    accepted: int
    rejected: int
    held_out: int
    sentence: str


class Accuracy(_Stored):
    """The share of right first answers on words that were held out, with its 95 % interval."""

    share: float
    low: float
    high: float
    words: int
    at: str | None = None


class ModelVersion(Answer):
    """A model: when it was made, how many decided pairs it learned from, and what was measured."""

    made: str | None
    method: str | None
    learned_pairs: int
    bytes: int
    accuracy: Accuracy | None


class EarlierModel(ModelVersion):
    """A model that was replaced: when and why."""

    number: int
    replaced: str | None
    reason: str


class ModelsAnswer(Answer):
    """The present model and the earlier ones, the newest first, of which so many are kept."""

    current: ModelVersion
    earlier: list[EarlierModel]
    kept: int


class KeptAnswer(Answer):
    """The model that is opened now."""

    model: ModelAnswer


class Format(Answer):
    """A format of exports."""

    name: str
    label: str
    suffix: str
    media_type: str


class FormatsAnswer(Answer):
    """The formats of exports."""

    formats: list[Format]


class PreviewAnswer(Answer):
    """How large an export will be, its beginning, and why it would be empty."""

    pairs: int
    confirmed: int
    first: list[tuple[str, str]]
    problem: str | None


class ImportAnswer(Answer):
    """What came of an import."""

    accepted: int
    rejected: int
    unchanged: int
    ignored: int
    problems: list[str]


class MethodAnswer(Answer):
    """A method of alignment."""

    name: str
    summary: str
    default: bool
    needs_seeds: bool


class LanguageModelAnswer(Answer):
    """A language model that can be used."""

    name: str
    summary: str
    available: bool


class UploadAnswer(Answer):
    """A file that comes in pieces."""

    id: str
    name: str
    size: int
    received: int
    complete: bool


class SetupAnswer(Answer):
    """What can be chosen for a first fit."""

    sample: bool
    folder: str | None
    folder_name: str | None
    upload_limit: int
    piece: int
    methods: list[MethodAnswer]
    language_models: list[LanguageModelAnswer]
    uploads: list[UploadAnswer]


class FileAnswer(Answer):
    """A file or folder inside the allowed folder."""

    name: str
    path: str
    kind: Literal["folder", "file"]
    size: int | None


class FilesAnswer(Answer):
    """What a folder holds."""

    path: str
    parent: str | None
    entries: list[FileAnswer]
