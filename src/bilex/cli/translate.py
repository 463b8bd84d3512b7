"""`bilex translate`: words in, translations out."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from bilex.cli import BAD_INPUT, OK
from bilex.cli import options as opt
from bilex.cli.console import answers_table, show, warn
from bilex.core.errors import BilexError

if TYPE_CHECKING:
    from bilex.model import Answer, Translator
    from bilex.model.space import Side

_COUNT = re.compile(r"[1-9]\d{0,8}")  # Python converts no more than 4,300 digits
_WORDS = re.compile(r'"([^"]+)"|(\S+)')
_COMMANDS = (
    '"new york" for a phrase, :reverse for the other direction, :k 10 for ten translations per word, :help, '
    ":q to leave"
)


@dataclass(frozen=True)
class _Overrides:
    """How words are translated and shown."""

    count: int
    direction: Any
    retrieval: Any
    form: str
    model_only: bool
    min_confidence: float | None
    answer_ranks: tuple[int, int | None]
    keep: Any


@opt.as_command(
    "bilex translate en-fi dog house",
    "bilex translate en-fi --reverse koira -k 10",
    "bilex translate en-fi                                  (in a terminal: a prompt)",
    "bilex translate en-fi --format jsonl < words.txt > translations.jsonl",
    "bilex translate many koira --from fi --to ru           (a model of several languages)",
)
def command(
    model: str,
    words: opt.Words = (),
    *,
    k: opt.Positive = 5,
    direction: opt.Direction = None,
    reverse: bool = False,
    from_: str | None = None,
    to: str | None = None,
    retrieval: opt.Retrieval = "csls",
    format: Literal["table", "tsv", "jsonl"] | None = None,
    json: Annotated[bool, {"hidden": True}] = False,  # the old name of --format jsonl
    model_only: bool = False,
    min_confidence: opt.Share = None,
    answer_ranks: str = "1-",
    filters: opt.Filters,
    device: str = "auto",
) -> int:
    """Translate WORDS with a MODEL; without WORDS a prompt, or the lines of stdin one by one.

    Translations that the seeds give come first, marked as known. TSV has the columns word, translation,
    score, confidence, and known, found, or composed (found through its words, for a phrase that is not in
    the vocabulary); JSON Lines has one object per word. Unknown words are named with the closest known
    spellings on stderr (in JSON Lines, beside the others on stdout). The exit code is 0 if at least one word
    was translated, 2 if none was.

    Translations:
        -k --direction --reverse --from --to
        --min-confidence: Leave out answers of less confidence than this.
    Output:
        --format: How to show answers.  [default: table in a terminal, tsv elsewhere]
    """
    wanted = opt.ranks_of_text(answer_ranks, "--answer-ranks")
    way = opt.one_direction(direction, reverse)
    opt.check_device(device)
    from bilex.model.many import open_pair

    translator, way = open_pair(model, from_, to, device, way)
    chosen = "jsonl" if json else format or ("table" if sys.stdout.isatty() else "tsv")
    overrides = _Overrides(
        k, way, retrieval, chosen, model_only, min_confidence, wanted, filters.of(translator)
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
    answers = _translated(translator, list(words), overrides)
    found = [answer for answer in answers if answer.known]
    if overrides.form == "jsonl":
        for answer in answers:
            opt.write_json_line(answer.as_dict())
        return len(found)
    if overrides.form == "tsv":
        sys.stdout.writelines(_tsv_lines(found))
    elif found:
        show(answers_table(found, translator.provenance.language_names(overrides.direction)))
    for answer in answers:
        if not answer.known:
            warn(answer.sentence())
    return len(found)


def _translated(translator: Translator, words: list[str], overrides: _Overrides) -> list[Answer]:
    """The answers, without translations of other ranks or too little confidence."""
    first, last = overrides.answer_ranks
    rows = translator.space.sides(overrides.direction)[1].key_to_index

    def within(word: str, side: Side) -> bool:
        inside = first <= rows[word] + 1 <= (last or len(rows))
        return inside and (overrides.keep is None or overrides.keep(word, side))

    answers = translator.translate(
        words,
        overrides.count,
        direction=overrides.direction,
        retrieval=overrides.retrieval,
        model_only=overrides.model_only,
        keep=overrides.keep if (first, last) == (1, None) else within,
    )
    least = overrides.min_confidence
    if least is None:
        return answers
    return [
        replace(
            answer,
            translations=tuple(
                t for t in answer if t.known or (t.confidence is not None and t.confidence >= least)
            ),
        )
        for answer in answers
    ]


def _tsv_lines(answers: Iterable[Answer]) -> Iterator[str]:
    for answer in answers:
        for found in answer:
            sure = "" if found.confidence is None else f"{found.confidence:.4f}"
            origin = "known" if found.known else "composed" if answer.composed else "found"
            yield f"{answer.word}\t{found.word}\t{found.score:.4f}\t{sure}\t{origin}\n"


def _prompt(translator: Translator, overrides: _Overrides) -> None:
    """Translate what is typed until the user leaves; the line editing is the system's."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  (makes input() editable, with a history)
    show(f"Type words to translate; {_COMMANDS}.")
    while True:
        try:
            line = input(
                "{} → {}> ".format(*translator.provenance.language_names(overrides.direction))
            ).strip()
        except EOFError:
            show("")
            return
        name, _, rest = line.removeprefix(":").partition(" ")
        if not line:
            continue
        if not line.startswith(":"):
            _answer(translator, [quoted or word for quoted, word in _WORDS.findall(line)], overrides)
        elif name in ("q", "quit", "exit"):
            return
        elif name in ("reverse", "r"):
            other = "backward" if overrides.direction == "forward" else "forward"
            overrides = replace(overrides, direction=other)
        elif name == "k" and _COUNT.fullmatch(rest.strip()):
            overrides = replace(overrides, count=int(rest))
        elif name == "help":
            show(_COMMANDS)
        else:
            warn(f"'{line[:60]}' is not a command here; the commands are :reverse, :k NUMBER, :q, :help.")


def _lines_of_stdin() -> Iterator[str]:
    """The words on stdin, as they come, one per line, blank lines left out."""
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            word = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            raise BilexError(f"stdin: line {number} is not UTF-8; convert it with iconv first.") from error
        if word:
            yield word
