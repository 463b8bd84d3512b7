"""A finished dictionary: a static site that can be searched without a server, and OntoLex-Lemon."""

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Annotated, Any

from fastapi import Query

from bilex.core.languages import language_name
from bilex.lexicon.entries import EXAMPLE, Dictionary, Entry
from bilex.lexicon.files import grouped
from bilex_workbench.audit import audited_precision

_FILES = Path(__file__).with_name("published")
_ONTOLEX = """@prefix ontolex: <http://www.w3.org/ns/lemon/ontolex#> .
@prefix lime: <http://www.w3.org/ns/lemon/lime#> .
@prefix vartrans: <http://www.w3.org/ns/lemon/vartrans#> .
@prefix lexinfo: <http://www.lexinfo.net/ontology/3.0/lexinfo#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix : <#> .
"""
_SPEECH = {"noun", "verb", "adjective", "adverb", "pronoun", "preposition", "conjunction", "interjection"}
CoverText = Annotated[str, Query(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
# An entry as data.js has it: {"word", "speech", "forms", "senses": [{"gloss", "labels", "translations":
# [{"word", "comment", "labels"}], "examples": [[source, target]]}]}.
Word = dict[str, Any]


@dataclass(frozen=True)
class Cover:
    """The texts of the cover; the default title names the languages."""

    title: CoverText = ""
    authors: CoverText = ""
    licence: CoverText = ""


def site_files(db: sqlite3.Connection, dictionary: Dictionary, cover: Cover) -> dict[str, bytes]:
    """The files of the site by name, in one folder, which any web server or browser opens."""
    forms: dict[str, list[str]] = {}
    query = "SELECT source, headword FROM entries WHERE headword <> source ORDER BY row"
    for form, headword in db.execute(query):
        forms.setdefault(headword, []).append(form)
    words = _words(dictionary.entries, forms)
    codes = [None if code == "und" else code for code in dictionary.codes()]
    source, target = (
        language_name(code) if code else side for code, side in zip(codes, ("source", "target"), strict=True)
    )
    facts = {
        "Authors": cover.authors,
        "Licence": cover.licence,
        "Contents": f"{len(words):,} entries, {len(dictionary.entries):,} translations",
        "Audit": _audited(db),
        "Date": f"{datetime.now(UTC):%d %B %Y}",
    }
    shown = (f"<div><dt>{name}</dt><dd>{escape(fact)}</dd></div>" for name, fact in facts.items() if fact)
    texts = {
        "title": escape(cover.title or f"{source}–{target} dictionary"),
        "languages": escape(f"{source} – {target}"),
        "forward": escape(f"{source} → {target}"),
        "backward": escape(f"{target} → {source}"),
        "facts": f'<dl class="facts">{"".join(shown)}</dl>',
        "entries": _html(words, codes),
        "reversed": _html(_backward(words), codes[::-1]),
    }
    data = json.dumps({"entries": words, "codes": codes}, ensure_ascii=False)
    safe = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    files = {"data.js": f"window.DICTIONARY = {safe};\n"}
    for name in ("index.html", "print.html", "style.css", "search.js"):
        files[name] = (_FILES / name).read_text(encoding="utf-8")
        if name.endswith(".html"):
            files[name] = re.sub(r"\{(\w+)\}", lambda found: texts[found[1]], files[name])
    return {f"dictionary/{name}": text.encode("utf-8", "replace") for name, text in files.items()}


def _audited(db: sqlite3.Connection) -> str:
    """The audit's result in one phrase."""
    found = audited_precision(db)
    if found is None:
        return "not audited"
    decided, precision = found
    return (
        f"audited: {precision.share:.0%} of the entries are right "
        f"(95 % interval {precision.low:.0%} to {precision.high:.0%}, {decided:,} entries judged)"
    )


def _words(entries: Sequence[Entry], forms: Mapping[str, list[str]]) -> list[Word]:
    """The pairs as entries with senses, in alphabetical order."""
    words = grouped(entries)
    order = sorted(words, key=lambda word: (word.casefold(), word))
    return [{"word": word, **_entry(words[word], forms.get(word, []))} for word in order]


def _entry(pairs: Sequence[Entry], forms: list[str]) -> Word:
    senses: dict[tuple[int, str], Word] = {}
    for pair in pairs:
        empty: Word = {"gloss": pair.gloss, "labels": pair.labels, "translations": [], "examples": []}
        sense = senses.setdefault((pair.sense or 0, pair.gloss), empty)
        labels = pair.labels if pair.labels != sense["labels"] else ""
        sense["translations"].append({"word": pair.target, "comment": pair.comment, "labels": labels})
        example = list(pair.example.partition(EXAMPLE)[::2])
        if pair.example and example not in sense["examples"]:
            sense["examples"].append(example)
    speech = next((pair.part_of_speech for pair in pairs if pair.part_of_speech), "")
    return {"speech": speech, "forms": forms, "senses": list(senses.values())}


def _backward(words: Iterable[Word]) -> list[Word]:
    """The same words from the other language; the gloss of a sense becomes the comment of its word."""
    pairs: dict[tuple[str, str], Entry] = {}
    for word in words:
        for sense in word["senses"]:
            for one in sense["translations"]:
                pair = one["word"], word["word"]
                pairs.setdefault(pair, Entry(*pair, comment=sense["gloss"]))
    return _words(list(pairs.values()), {})


def _html(words: Iterable[Word], codes: Sequence[str | None]) -> str:
    """Entries under the letters that they begin with."""
    own, other = (f' lang="{escape(code)}"' if code else "" for code in codes)
    parts: list[str] = []
    last = ""
    for word in words:
        letter = word["word"][:1].upper()
        letter = letter if letter.isalpha() else "#"
        if letter != last:
            parts.append(f'<h3 class="letter"{own}>{escape(letter)}</h3>\n')
            last = letter
        forms = f"({', '.join(word['forms'][:12])})" if word["forms"] else ""
        shown = _span("speech", word["speech"]) + _span("forms", forms)
        senses = "".join(f"<li>{_sense_html(sense, own, other)}</li>" for sense in word["senses"])
        kind = "ol" if len(word["senses"]) > 1 else 'ul class="single"'
        parts.append(
            f"<article><h4{own}>{escape(word['word'])}</h4>{shown} <{kind}>{senses}</{kind[:2]}></article>\n"
        )
    return "".join(parts)


def _sense_html(sense: Word, own: str, other: str) -> str:
    translations = ", ".join(
        f"<bdi{other}>{escape(one['word'])}</bdi>"
        + _span("labels", one["labels"])
        + _span("comment", f"({one['comment']})" if one["comment"] else "")
        for one in sense["translations"]
    )
    examples = "".join(
        f'<p class="example"><bdi{own}>{escape(first)}</bdi>'
        + (f' — <bdi class="target"{other}>{escape(second)}</bdi>' if second else "")
        + "</p>"
        for first, second in sense["examples"]
    )
    return f"{_span('labels', sense['labels'])}{_span('gloss', sense['gloss'])} {translations}{examples}"


def _span(kind: str, text: str) -> str:
    return f' <span class="{kind}">{escape(text)}</span>' if text else ""


def ontolex(dictionary: Dictionary, cover: Cover) -> bytes:
    """The dictionary as linked data: OntoLex-Lemon with translations between senses, in Turtle."""
    codes, words = dictionary.codes(), _words(dictionary.entries, {})
    about = {
        "dct:title": cover.title or dictionary.title(),
        "lime:language": codes[0],
        "dct:creator": cover.authors,
        "dct:license": cover.licence,
    }
    facts = "".join(f" ; {name} {_literal(text)}" for name, text in about.items() if text)
    entries = "".join(f" ; lime:entry :s{number}" for number in range(1, len(words) + 1))
    lines = [_ONTOLEX, f":lexicon a lime:Lexicon{facts}{entries} .\n"]
    targets: dict[str, int] = {}
    for number, word in enumerate(words, 1):
        speech = word["speech"].casefold()
        kind = f" ; lexinfo:partOfSpeech lexinfo:{speech}" if speech in _SPEECH else ""
        senses = "".join(f" ; ontolex:sense :s{number}n{at}" for at in range(1, len(word["senses"]) + 1))
        lines.append(_lexical_entry(f"s{number}", word["word"], codes[0], kind + senses))
        for at, sense in enumerate(word["senses"], 1):
            gloss = f" ; skos:definition {_literal(sense['gloss'])}" if sense["gloss"] else ""
            lines.append(f":s{number}n{at} a ontolex:LexicalSense{gloss} .\n")
            for one in sense["translations"]:
                target = targets.setdefault(one["word"], len(targets) + 1)
                ends = f"vartrans:source :s{number}n{at} ; vartrans:target :t{target}n1"
                lines.append(f"[] a vartrans:Translation ; {ends} .\n")
    for text, number in targets.items():
        lines.append(_lexical_entry(f"t{number}", text, codes[1], f" ; ontolex:sense :t{number}n1"))
        lines.append(f":t{number}n1 a ontolex:LexicalSense .\n")
    return "".join(lines).encode("utf-8", "replace")


def _lexical_entry(name: str, word: str, code: str, more: str) -> str:
    form = f"[ ontolex:writtenRep {_literal(word)}@{code.replace('_', '-')} ]"
    return f":{name} a ontolex:LexicalEntry ; ontolex:canonicalForm {form}{more} .\n"


def _literal(text: str) -> str:
    """A text in quotation marks, as Turtle has it; JSON's escapes are among Turtle's."""
    return json.dumps(text, ensure_ascii=False)
