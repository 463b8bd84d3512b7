"""The structure of an entry: part of speech, senses with glosses, labels, comments and examples; notes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import AfterValidator, Field, StringConstraints

from bilex.core.errors import BilexError
from bilex.lexicon.entries import EXAMPLE, FORBIDDEN, Entry
from bilex_workbench import interface as api
from bilex_workbench.entries import known_entry
from bilex_workbench.state import BookOf
from bilex_workbench.store import Store, now

router = APIRouter(tags=["table"])
_MOST_DIGITS = 9  # of a number that a person writes
_MOST = 50  # senses of an entry, translations or examples of a sense


def _plain(text: str) -> str:
    if FORBIDDEN.search(text.replace("\n", " ").replace("\t", " ")):
        raise ValueError("holds a control character")
    return text


def _text(longest: int, shortest: int = 0) -> Any:
    limits = StringConstraints(min_length=shortest, max_length=longest, strip_whitespace=True)
    return Annotated[str, limits, AfterValidator(_plain)]


Label = _text(60)
Line = _text(1000)
Sentence = _text(2000)


class TranslationOf(api.Answer):
    """A translation of a sense."""

    target: _text(api.LONGEST_WORD, 1)  # type: ignore[valid-type]
    comment: Line = ""  # type: ignore[valid-type]
    labels: list[Label] = Field(default_factory=list, max_length=_MOST)  # type: ignore[valid-type]


class Example(api.Answer):
    """A sentence with the source word, one with its translation, or both."""

    source: Sentence = ""  # type: ignore[valid-type]
    target: Sentence = ""  # type: ignore[valid-type]

    @property
    def text(self) -> str:
        """Both, with a mark between them."""
        return f"{self.source}{EXAMPLE}{self.target}" if self.target else self.source


class Sense(api.Answer):
    """One sense of a source word."""

    gloss: Line = ""  # type: ignore[valid-type]
    labels: list[Label] = Field(default_factory=list, max_length=_MOST)  # type: ignore[valid-type]
    translations: list[TranslationOf] = Field(default_factory=list, max_length=_MOST)
    examples: list[Example] = Field(default_factory=list, max_length=_MOST)


class Article(api.Answer):
    """What an entry says beside its translations; all of it is optional."""

    part_of_speech: Label = ""  # type: ignore[valid-type]
    senses: list[Sense] = Field(default_factory=list, max_length=_MOST)
    notes: _text(10_000) = ""  # type: ignore[valid-type]

    def sense_of(self, target: str) -> Sense:
        """The first sense that has a translation; else the first, made if there is none."""
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
    """The structure of an entry, in place of the one it has."""

    article: Article


class ExampleIn(SkipIn):
    """An example for the sense that a translation belongs to."""

    target: api.Word
    example: Example


ArticleAnswer = api.answer("ArticleAnswer", article=Article)


@router.put("/api/entry/article", response_model=ArticleAnswer, responses=api.problems(404))
def write_article(book: BookOf, body: ArticleIn) -> Any:
    """Keep part of speech, senses, labels, comments, examples and notes of an entry."""
    known_entry(book.store, body.source)
    with book.store.writing() as connection:
        keep_article(connection, body.source, body.article, body.reviewer)
    return {"article": body.article}


@router.post("/api/entry/example", response_model=ArticleAnswer, responses=api.problems(404))
def choose_example(book: BookOf, body: ExampleIn) -> Any:
    """Add a sentence to an entry."""
    known_entry(book.store, body.source)
    if not body.example.source and not body.example.target:
        raise api.ProblemError(400, "The example is empty; give a sentence.")
    with book.store.writing() as connection:
        article = article_of(connection, body.source)
        sense = article.sense_of(body.target)
        if body.example not in sense.examples and len(sense.examples) < _MOST:
            sense.examples.append(body.example)
        keep_article(connection, body.source, article, body.reviewer)
    return {"article": article}


def article_of(connection: sqlite3.Connection | Store, source: str) -> Article:
    """The article of a word; an empty one if nobody wrote it."""
    query = "SELECT article FROM articles WHERE source = ? ORDER BY id DESC LIMIT 1"
    for row in connection.execute(query, (source,)):
        return Article.model_validate_json(row["article"])
    return Article()


def all_articles(store: Store) -> dict[str, Article]:
    """The article of every word that has one."""
    rows = store.all("SELECT source, article FROM articles ORDER BY id")
    newest = {row["source"]: row["article"] for row in rows}
    return {source: Article.model_validate_json(text) for source, text in newest.items()}


def keep_article(connection: sqlite3.Connection, source: str, article: Article, reviewer: str) -> None:
    """Make an article the newest of its word, within a transaction."""
    connection.execute(
        "INSERT INTO articles (source, article, reviewer, at) VALUES (?, ?, ?, ?)",
        (source, json.dumps(article.model_dump(), ensure_ascii=False), reviewer, now()),
    )


def merge_row(article: Article, target: str, row: dict[str, str]) -> bool:
    """Take over what a row of a sheet says about a translation; whether anything was new is returned."""
    before = article.model_dump()
    said = {name: row.get(name, "").strip() for name in ("gloss", "labels", "comment", "example")}
    speech = row.get("part_of_speech", "").strip()
    if not speech and not any(said.values()):
        return False
    cell = row.get("sense", "").strip()
    if cell.isdecimal() and (len(cell) > _MOST_DIGITS or int(cell) > _MOST):
        raise BilexError(
            f"Sense {cell[:_MOST_DIGITS]} is more than the {_MOST} senses that an entry may have"
        )
    number = int(cell) if cell.isdecimal() else 0
    while len(article.senses) < number:
        article.senses.append(Sense())
    sense = article.senses[number - 1] if number else article.sense_of(target)
    found = next((one for one in sense.translations if one.target == target), None)
    if found is None:
        found = TranslationOf(target=target)
        sense.translations.append(found)
    article.part_of_speech = speech or article.part_of_speech
    sense.gloss = said["gloss"] or sense.gloss
    labels = [one.strip() for one in said["labels"].split(",") if one.strip()]
    sense.labels = [one for one in labels if one not in found.labels] or sense.labels
    found.comment = said["comment"] or found.comment
    first, _, second = said["example"].partition(EXAMPLE)
    example = Example(source=first, target=second)
    if said["example"] and example not in sense.examples:
        sense.examples.append(example)
    checked = Article.model_validate(article.model_dump())
    return checked.model_dump() != before


def described(entry: Entry, article: Article | None) -> Sequence[Entry]:
    """A pair with what its article says: one entry for each sense that has the translation."""
    if article is None:
        return [entry]
    entry = replace(entry, part_of_speech=article.part_of_speech)
    own = [
        (number, sense, translation)
        for number, sense in enumerate(article.senses, 1)
        for translation in sense.translations
        if translation.target == entry.target
    ]
    if not own and len(article.senses) == 1:
        own = [(1, article.senses[0], TranslationOf(target=entry.target))]
    made = [
        replace(
            entry,
            sense=number if len(article.senses) > 1 else entry.sense,
            gloss=sense.gloss,
            labels=", ".join([*sense.labels, *translation.labels]),
            comment=translation.comment,
            example=sense.examples[0].text if sense.examples else "",
        )
        for number, sense, translation in own
    ]
    return made or [entry]
