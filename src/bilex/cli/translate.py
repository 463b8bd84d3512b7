"""`bilex translate`: words in, translations out."""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import bilex
from bilex.cli import BAD_INPUT, OK
from bilex.cli import options as opt
from bilex.cli.console import answers_table, show, warn
from bilex.core.errors import BilexError

if TYPE_CHECKING:
    from bilex.model import Answer
    from bilex.model.filters import Keep
    from bilex.model.space import Side

_COUNT = re.compile(r"[1-9]\d{0,8}")  # Python converts no more than 4,300 digits
_WORDS = re.compile(r'"([^"]+)"|(\S+)')
_COMMANDS = (
    '"new york" for a phrase, :reverse for the other direction, :k 10 for ten translations per word, :help, '
    ":q to leave"
)


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
    answer_ranks: opt.Ranks = None,
    filters: opt.Filters,
    device: opt.Device = "auto",
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
    from bilex.model.many import open_pair

    translator, direction = open_pair(model, from_, to, device, opt.resolve_direction(direction, reverse))
    options: dict[str, Any] = {
        "k": k,
        "direction": direction,
        "retrieval": retrieval,
        "model_only": model_only,
        "keep": _keep(translator, filters.of(translator), answer_ranks),
    }
    shown_as = "jsonl" if json else format or ("table" if sys.stdout.isatty() else "tsv")
    answer = functools.partial(_answer, translator, options, shown_as, min_confidence)
    if words:
        return OK if answer(words) else BAD_INPUT
    if sys.stdin.isatty():
        _prompt(translator, options, answer)
        return OK
    known = [answer([word]) for word in _lines_of_stdin()]
    if not known:
        raise BilexError("there is no word to translate; give words as arguments or one per line on stdin.")
    return OK if any(known) else BAD_INPUT


def _keep(translator: bilex.Translator, keep: Keep | None, ranks: opt.Ranks) -> Keep | None:
    """A filter that also wants some frequency ranks."""
    if ranks is None:
        return keep
    first, last = ranks

    def within(word: str, side: Side) -> bool:
        rows = getattr(translator.space, side).key_to_index
        rank = rows.get(word, -1) + 1  # 0 for a composed phrase, which has no frequency
        return max(1, first) <= rank <= (last or len(rows)) and (keep is None or keep(word, side))

    return within


def _answer(
    translator: bilex.Translator,
    options: dict[str, Any],
    shown_as: str,
    min_confidence: float | None,
    words: Iterable[str],
) -> int:
    """Translate and show some words; the number of known ones is returned."""
    answers: list[Answer] = translator.translate(list(words), **options)
    if min_confidence is not None:
        answers = [answer.confident(min_confidence) for answer in answers]
    found = [answer for answer in answers if answer.known]
    if shown_as == "jsonl":
        for answer in answers:
            opt.write_json_line(answer.as_dict())
    elif shown_as == "tsv":
        for answer in found:
            for one in answer:
                sure = "" if one.confidence is None else f"{one.confidence:.4f}"
                origin = "known" if one.known else "composed" if answer.composed else "found"
                sys.stdout.write(f"{answer.word}\t{one.word}\t{one.score:.4f}\t{sure}\t{origin}\n")
    elif found:
        show(answers_table(found, translator.provenance.language_names(options["direction"])))
    sys.stdout.flush()
    for answer in answers:
        if not answer.known and shown_as != "jsonl":
            warn(answer.sentence())
    return len(found)


def _prompt(
    translator: bilex.Translator, options: dict[str, Any], answer: Callable[[Iterable[str]], int]
) -> None:
    """Translate what is typed until the user leaves; the line editing is the system's."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  (makes input() editable, with a history)
    show(f"Type words to translate; {_COMMANDS}.")
    while True:
        languages = translator.provenance.language_names(options["direction"])
        try:
            line = input("{} → {}> ".format(*languages)).strip()
        except EOFError:
            show("")
            return
        name, _, rest = line.removeprefix(":").partition(" ")
        if line and not line.startswith(":"):
            answer(quoted or word for quoted, word in _WORDS.findall(line))
        elif name in ("q", "quit", "exit"):
            return
        elif name in ("reverse", "r"):
            options["direction"] = "backward" if options["direction"] == "forward" else "forward"
        elif name == "k" and _COUNT.fullmatch(rest.strip()):
            options["k"] = int(rest)
        elif name == "help":
            show(_COMMANDS)
        elif line:
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
