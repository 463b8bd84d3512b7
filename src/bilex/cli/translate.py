"""`bilex translate`: words in, translations out."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from bilex.cli import BAD_INPUT, OK
from bilex.cli.model_options import Filters, filter_options, pair_options, ranks_of_text
from bilex.cli.options import (
    check_device,
    device_option,
    direction_options,
    examples,
    model_only_option,
    retrieval_option,
    write_json_line,
)
from bilex.core.errors import BilexError

if TYPE_CHECKING:
    from bilex.model import Answer, Translator
    from bilex.model.space import Side

_FORMATS = ("table", "tsv", "jsonl")
_COUNT = re.compile(r"[1-9]\d{0,8}")  # Python converts no more than 4,300 digits
_WORDS = re.compile(r'"([^"]+)"|(\S+)')
_COMMANDS = (
    '"new york" for a phrase',
    ":reverse for the other direction",
    ":k 10 for ten translations per word",
    ":help",
    ":q to leave",
)


@dataclass(frozen=True)
class _Overrides:
    """How words are translated and shown."""

    count: int
    direction: str
    retrieval: str
    form: str
    model_only: bool
    min_confidence: float | None
    answer_ranks: tuple[int, int | None]
    keep: Any = None


@click.command(
    epilog=examples(
        "bilex translate en-fi dog house",
        "bilex translate en-fi --reverse koira -k 10",
        "bilex translate en-fi                                  (in a terminal: a prompt)",
        "bilex translate en-fi --format jsonl < words.txt > translations.jsonl",
        "bilex translate many koira --from fi --to ru           (a model of several languages)",
    )
)
@click.argument("model", type=click.Path())
@click.argument("words", nargs=-1)
@click.option(
    "-k", "count", type=click.IntRange(min=1), default=5, show_default=True, help="Translations per word."
)
@direction_options("forward", "backward")
@pair_options
@retrieval_option
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="How to show answers.  [default: table in a terminal, tsv elsewhere]",
)
@click.option("--json", "as_json", is_flag=True, hidden=True, help="The old name of --format jsonl.")
@model_only_option
@click.option(
    "--min-confidence", type=click.FloatRange(0, 1), help="Leave out answers of less confidence than this."
)
@click.option("--answer-ranks", default="1-", help="Only answers of these frequency ranks, as 1-20000.")
@filter_options
@device_option
def command(
    model: str,
    words: tuple[str, ...],
    count: int,
    direction: str,
    source: str | None,
    target: str | None,
    retrieval: str,
    form: str | None,
    as_json: bool,
    model_only: bool,
    min_confidence: float | None,
    answer_ranks: str,
    filters: Filters,
    device: str,
) -> int:
    """Translate WORDS with a MODEL; without WORDS a prompt, or the lines of stdin one by one.

    Translations that the seeds give come first, marked as known. TSV has the columns word, translation,
    score, confidence, and known, found, or composed (found for a phrase that is not in the vocabulary,
    through its words); JSON Lines one object a word. Unknown words are named with the
    closest known spellings on stderr (in JSON Lines, beside the others on stdout). The exit code is 0 if
    at least one word was translated, 2 if none was.
    """
    wanted = ranks_of_text(answer_ranks, "--answer-ranks")
    check_device(device)
    from bilex.model.many.core import open_pair

    translator, direction = open_pair(model, source, target, device, direction)  # type: ignore[arg-type]
    in_terminal = sys.stdout.isatty()
    chosen = "jsonl" if as_json else form or ("table" if in_terminal else "tsv")
    overrides = _Overrides(
        count, direction, retrieval, chosen, model_only, min_confidence, wanted, filters.of(translator)
    )
    if words:
        return OK if _answer(translator, words, overrides) else BAD_INPUT
    if sys.stdin.isatty():
        _prompt(translator, overrides)
        return OK
    asked, known = 0, 0
    for word in _lines_of_stdin():
        asked += 1
        known += _answer(translator, [word], overrides)
        sys.stdout.flush()
    if not asked:
        raise BilexError("there is no word to translate; give words as arguments or one per line on stdin.")
    return OK if known else BAD_INPUT


def _answer(translator: Translator, words: Iterable[str], overrides: _Overrides) -> int:
    """Translate and show some words; how many of them were known is returned."""
    answers = [_chosen(answer, overrides) for answer in _translated(translator, words, overrides)]
    found = [answer for answer in answers if answer.known]
    if overrides.form == "jsonl":
        for answer in answers:
            write_json_line(answer.as_dict())
        return len(found)
    from bilex.cli.console import show, warn
    from bilex.cli.tables import answers_table

    if overrides.form == "tsv":
        sys.stdout.writelines(_tsv_lines(found))
    elif found:
        languages = translator.provenance.language_names(overrides.direction)  # type: ignore[arg-type]
        show(answers_table(found, languages=languages))
    for answer in answers:
        if not answer.known:
            warn(answer.sentence())
    return len(found)


def _translated(translator: Translator, words: Iterable[str], overrides: _Overrides) -> list[Answer]:
    first, last = overrides.answer_ranks
    rows = translator.space.sides(overrides.direction)[1].key_to_index  # type: ignore[arg-type]

    def within(word: str, side: Side) -> bool:
        inside = first <= rows[word] + 1 <= (last or len(rows))
        return inside and (overrides.keep is None or overrides.keep(word, side))

    return translator.translate(  # type: ignore[no-any-return,call-overload]
        list(words),
        overrides.count,
        direction=overrides.direction,
        retrieval=overrides.retrieval,
        model_only=overrides.model_only,
        keep=overrides.keep if (first, last) == (1, None) else within,
    )


def _chosen(answer: Answer, overrides: _Overrides) -> Answer:
    """An answer without translations that are too unsure."""
    least = overrides.min_confidence
    if least is None:
        return answer
    sure = tuple(t for t in answer if t.known or (t.confidence is not None and t.confidence >= least))
    return replace(answer, translations=sure)


def _tsv_lines(answers: Iterable[Answer]) -> Iterator[str]:
    for answer in answers:
        for found in answer:
            sure = "" if found.confidence is None else f"{found.confidence:.4f}"
            origin = "known" if found.known else "composed" if answer.composed else "found"
            yield f"{answer.word}\t{found.word}\t{found.score:.4f}\t{sure}\t{origin}\n"


def _prompt(translator: Translator, overrides: _Overrides) -> None:
    """Translate what is typed until the user leaves; the line editing is the system's."""
    from bilex.cli.console import show

    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  (makes input() editable, with a history)
    show(f"Type words to translate; {', '.join(_COMMANDS)}.")
    while True:
        query_side, key_side = translator.provenance.language_names(overrides.direction)  # type: ignore[arg-type]
        try:
            line = input(f"{query_side} → {key_side}> ").strip()
        except EOFError:
            show("")
            return
        if line.startswith(":"):
            changed = _obeyed(line, overrides)
            if changed is None:
                return
            overrides = changed
        elif line:
            _answer(translator, [quoted or word for quoted, word in _WORDS.findall(line)], overrides)


def _obeyed(line: str, overrides: _Overrides) -> _Overrides | None:
    """The settings after a command of the prompt; None to leave."""
    from bilex.cli.console import show, warn

    name, _, rest = line[1:].partition(" ")
    if name in ("q", "quit", "exit"):
        return None
    if name in ("reverse", "r"):
        return replace(overrides, direction="backward" if overrides.direction == "forward" else "forward")
    if name == "k" and _COUNT.fullmatch(rest.strip()):
        return replace(overrides, count=int(rest))
    if name == "help":
        show(", ".join(_COMMANDS))
    else:
        warn(f"'{line[:60]}' is no command here; these are: :reverse, :k NUMBER, :q, :help.")
    return overrides


def _lines_of_stdin() -> Iterator[str]:
    """The words on stdin, as they come, one per line, blank lines left out."""
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            word = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            raise BilexError(f"stdin: line {number} is not UTF-8; convert it with iconv first.") from error
        if word:
            yield word
