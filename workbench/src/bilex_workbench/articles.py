"""The structure of an entry: part of speech, senses with glosses, labels, comments and examples; notes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field, StringConstraints

from bilex.core.errors import BilexError
from bilex.lexicon.entries import EXAMPLE, Entry
from bilex_workbench import api
from bilex_workbench.database import now
from bilex_workbench.entries import entry_of
from bilex_workbench.workbench import BookOf

router = APIRouter(tags=["table"])
STRUCTURE = ("part_of_speech", "sense", "gloss", "labels", "comment", "example")  # columns of a sheet
_MOST = 50  # senses of an entry, translations or examples of a sense
Stripped = Annotated[api.Text, StringConstraints(strip_whitespace=True)]
Label = Annotated[Stripped, Field(max_length=60)]
Line = Annotated[Stripped, Field(max_length=1000)]
Sentence = Annotated[Stripped, Field(max_length=2000)]
Labels = Annotated[list[Label], Field(max_length=_MOST)]


class TranslationOf(api.Body):
    """A translation of a sense."""

    target: Annotated[Line, Field(min_length=1)]
    comment: Line = ""
    labels: Labels = Field(default_factory=list)


class Example(api.Body):
    """A sentence with the source word, one with its translation, or both."""

    source: Sentence = ""
    target: Sentence = ""


class Sense(api.Body):
    """One sense of a source word."""

    gloss: Line = ""
    labels: Labels = Field(default_factory=list)
    translations: list[TranslationOf] = Field(default_factory=list, max_length=_MOST)
    examples: list[Example] = Field(default_factory=list, max_length=_MOST)


class Article(api.Body):
    """The structure of an entry; all of it is optional."""

    part_of_speech: Label = ""
    senses: list[Sense] = Field(default_factory=list, max_length=_MOST)
    notes: Annotated[Stripped, Field(max_length=10_000)] = ""

    def sense_of(self, target: str) -> Sense:
        """The first sense with a translation; else the first sense, made if there is none."""
        for sense in self.senses:
            if any(one.target == target for one in sense.translations):
                return sense
        if not self.senses:
            self.senses.append(Sense())
        return self.senses[0]


class SkipIn(api.Body):
    """A word, and who does something about it."""

    source: api.Word
    reviewer: api.Name


class ArticleIn(SkipIn):
    """The structure of an entry, which replaces the earlier one."""

    article: Article


class ExampleIn(SkipIn):
    """An example for the sense of a translation."""

    target: api.Word
    example: Example


ArticleAnswer = api.response("ArticleAnswer", article=Article)


@router.put("/api/entry/article", response_model=ArticleAnswer, responses=api.problems(404))
def write_article(book: BookOf, body: ArticleIn) -> Any:
    """Store part of speech, senses, labels, comments, examples and notes of an entry."""
    with book.database.writing() as db:
        entry_of(db, body.source)
        keep_article(db, body.source, body.article, body.reviewer)
    return {"article": body.article}


@router.post("/api/entry/example", response_model=ArticleAnswer, responses=api.problems(404))
def choose_example(book: BookOf, body: ExampleIn) -> Any:
    """Add a sentence to an entry."""
    if not body.example.source and not body.example.target:
        raise api.ProblemError(400, "The example is empty; give a sentence.")
    with book.database.writing() as db:
        entry_of(db, body.source)
        article = article_of(db, body.source)
        examples = article.sense_of(body.target).examples
        if body.example not in examples and len(examples) < _MOST:
            examples.append(body.example)
        keep_article(db, body.source, article, body.reviewer)
    return {"article": article}


def article_of(db: sqlite3.Connection, source: str) -> Article:
    """The article of a word; an empty one if nobody wrote it."""
    query = "SELECT article FROM articles WHERE source = ? ORDER BY id DESC LIMIT 1"
    row = db.execute(query, (source,)).fetchone()
    return Article() if row is None else Article.model_validate_json(row[0])


def all_articles(db: sqlite3.Connection) -> dict[str, Article]:
    """The article of every word that has one."""
    newest = dict(db.execute("SELECT source, article FROM articles ORDER BY id").fetchall())
    return {source: Article.model_validate_json(text) for source, text in newest.items()}


def keep_article(db: sqlite3.Connection, source: str, article: Article, reviewer: str) -> None:
    """Make an article the newest of its word, within a transaction."""
    query = "INSERT INTO articles (source, article, reviewer, at) VALUES (?, ?, ?, ?)"
    db.execute(query, (source, article.model_dump_json(), reviewer, now()))


def merge_row(article: Article, target: str, row: dict[str, str]) -> bool:
    """Add what a row of a sheet says about a translation; whether anything was new is returned."""
    before = article.model_dump()
    speech, place, gloss, labels, comment, example = (row.get(name, "").strip() for name in STRUCTURE)
    if not any((speech, gloss, labels, comment, example)):
        return False
    number = int(place[:9]) if place.isdecimal() else 0
    if number > _MOST:
        raise BilexError(f"Sense {number} is more than the {_MOST} senses that an entry may have")
    while len(article.senses) < number:
        article.senses.append(Sense())
    sense = article.senses[number - 1] if number else article.sense_of(target)
    found = next((one for one in sense.translations if one.target == target), None)
    if found is None:
        found = TranslationOf(target=target)
        sense.translations.append(found)
    article.part_of_speech = speech or article.part_of_speech
    sense.gloss = gloss or sense.gloss
    named = [label for one in labels.split(",") if (label := one.strip())]
    sense.labels = [label for label in named if label not in found.labels] or sense.labels
    found.comment = comment or found.comment
    first, _, second = example.partition(EXAMPLE)
    if example and (sentences := Example(source=first, target=second)) not in sense.examples:
        sense.examples.append(sentences)
    return Article.model_validate(article.model_dump()).model_dump() != before


def described(entry: Entry, article: Article | None) -> Sequence[Entry]:
    """A pair with what its article says: one entry for each sense with the translation."""
    if article is None:
        return [entry]
    entry = replace(entry, part_of_speech=article.part_of_speech)
    found = [
        (number, sense, translation)
        for number, sense in enumerate(article.senses, 1)
        for translation in sense.translations
        if translation.target == entry.target
    ]
    if not found and len(article.senses) == 1:
        found = [(1, article.senses[0], TranslationOf(target=entry.target))]
    made = []
    for number, sense, translation in found:
        example = sense.examples[0] if sense.examples else Example()
        sentences = [example.source, example.target] if example.target else [example.source]
        made.append(
            replace(
                entry,
                sense=number if len(article.senses) > 1 else entry.sense,
                gloss=sense.gloss,
                labels=", ".join([*sense.labels, *translation.labels]),
                comment=translation.comment,
                example=EXAMPLE.join(sentences),
            )
        )
    return made or [entry]
