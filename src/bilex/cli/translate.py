"""`bilex translate`: words in, translations out."""

from __future__ import annotations

import sys

import click

from bilex.cli import BAD_INPUT, OK
from bilex.cli.options import (
    check_device,
    device_option,
    examples,
    json_option,
    retrieval_option,
    write_json_line,
)
from bilex.errors import BilexError


@click.command(
    epilog=examples(
        "bilex translate en-fi dog house",
        "bilex translate en-fi --reverse koira -k 10",
        "bilex translate en-fi --json < words.txt > translations.jsonl",
    )
)
@click.argument("model", type=click.Path())
@click.argument("words", nargs=-1)
@click.option(
    "-k", "count", type=click.IntRange(min=1), default=5, show_default=True, help="Translations a word."
)
@click.option("--reverse", is_flag=True, help="From the target language to the source language.")
@retrieval_option
@device_option
@json_option
def command(
    model: str, words: tuple[str, ...], count: int, reverse: bool, retrieval: str, device: str, as_json: bool
) -> int:
    """Translate WORDS with a MODEL; without WORDS, the lines of stdin.

    Unknown words are named with the closest known spellings on stderr (in JSON, beside the others on
    stdout). With --json one JSON object a word is written, one a line. The exit code is 0 if at
    least one word was translated, 2 if none was.
    """
    check_device(device)
    from bilex.translator import Translator

    translator = Translator.load(model, device=device)
    asked = list(words) or _lines_of_stdin()
    if not asked:
        raise BilexError("there is no word to translate; give words as arguments or one a line on stdin.")
    direction = "backward" if reverse else "forward"
    answers = translator.translate(asked, count, direction=direction, method=retrieval)  # type: ignore[call-overload]
    found = [answer for answer in answers if answer.known]
    if as_json:
        for answer in answers:
            write_json_line(answer.as_dict())
    else:
        from bilex.cli.console import show, warn
        from bilex.cli.tables import answers_table

        if found:
            show(answers_table(found))
        for answer in answers:
            if not answer.known:
                warn(answer.sentence())
    return OK if found else BAD_INPUT


def _lines_of_stdin() -> list[str]:
    """The words on stdin, one a line, blank lines left out.

    Raises:
        BilexError: They are not UTF-8.
    """
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BilexError(f"stdin is not UTF-8 (byte {error.start}); convert it with iconv first.") from error
    return [line.strip() for line in text.split("\n") if line.strip()]
