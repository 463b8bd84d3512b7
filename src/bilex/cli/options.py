"""Commands made from functions, the options that several of them share, and what is done with their values.

The docstring of a command is its manual: after the text come sections of options, as they are shown. Names,
types and defaults of their values are those of the function's parameters; a parameter without an option is
an argument of the command line, a file to read if it says nothing else. Options that are described in
`_SHARED` need no text in the docstring.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import click
from click import IntRange
from click.shell_completion import CompletionItem

import bilex
from bilex.cli.console import note, warn
from bilex.core.errors import BilexError
from bilex.core.files import check_input, check_not_an_input, check_writable, restore
from bilex.core.languages import code_of
from bilex.core.locks import exclusive_lock
from bilex.core.text import encodable
from bilex.core.typed_json import plain
from bilex.fit import DEFAULT_METHOD

if TYPE_CHECKING:
    from bilex.core.progress import Progress
    from bilex.model.filters import Keep

Languages = tuple[str | None, str | None]
_HARDLY_ANY, FEW = 0.02, 0.5  # shares of pairs that the vectors cover

_SHARED = """
Advanced:
    --answer-ranks FIRST-LAST: Only answers of these frequency ranks, such as 1-20000.
    --calibrate/--no-calibrate: Learn confidences in a smaller fit without some of the seeds.
    --checkpoint FOLDER: Keep the state here, and resume from it if it is there.
    --columns A,B: Columns of a dictionary's source and target words: numbers from 1, or names of its first
        line.
    --defuse-formulas: In tsv, csv and xlsx: keep spreadsheets from computing words such as =1+1.
    --delimiter CHAR: What divides the columns.  [default: detected automatically]
    --device auto|cpu|cuda: Where to compute; auto takes a GPU if there is one.
    --dictionary-format NAME: The format of a dictionary.  [default: detected automatically]
    --direction: Whose words are translated: the source language's (forward) or the target language's
        (backward).  [default: forward]
    --force: Replace an earlier model of that name.
    --from LANGUAGE: The language of the words, by code or name, such as en.
    --json: Write JSON to stdout, for programs.
    -k: Translations per word.
    --languages A,B: Codes of the two languages, such as en,fi, for files that mark words with them.
    --limit: Read at most N of the most frequent words of each language.
    --method: How to align; see 'bilex methods'.
    --model-only: The model's own opinion: known translations do not come first, rejected ones are not left
        out.
    --no-names: Leave out names; for models made with --keep-case.
    --no-numbers: Leave out words with a digit.
    --pos TAGS: With --tags: only words of these, such as NOUN,VERB.
    --random-seed INTEGER: Fixes what is random.
    --retrieval: Rank by CSLS, or by plain similarity.
    --reverse: Short for --direction backward.
    --skip-unfit: Leave out pairs that the format cannot hold, and count them; else the first is an error.
    --split CHARS: Characters between several translations in one cell, such as ';/'.
    --stop-words FILE: Leave out these words, one per line.
    --tags FILE: Parts of speech: one word, a tab and its tag per line.
    --to LANGUAGE: The language to translate to.
"""


class _Described(NamedTuple):
    flags: list[str]
    metavar: str | None
    help: str


def _manual(text: str) -> tuple[str, dict[str, dict[str, _Described]]]:
    """The text of a manual, and its options by section and parameter."""
    prose, *sections = re.split(r"^([A-Z][\w ]*):\n(?= +-)", text, flags=re.M)
    found: dict[str, dict[str, _Described]] = {}
    for title, listed in zip(sections[::2], sections[1::2], strict=True):
        found[title] = {}
        for entry in re.split(r"^ {4}(?=-)", listed, flags=re.M)[1:]:
            declared, described, help = entry.partition(": ")
            flags = [word.rstrip(",") for word in declared.split() if word.startswith("-")]
            metavars = [word for word in declared.split() if not word.startswith("-")]
            if described:
                option = _Described(flags, (*metavars, None)[0], re.sub(r"\n *", " ", help).strip())
                found[title][_name(max(flags, key=len))] = option
            else:  # options that are described among the shared ones
                found[title] |= {_name(flag): _shared()[_name(flag)] for flag in flags}
    return prose.strip(), found


def _name(flag: str) -> str:
    return flag.split("/", maxsplit=1)[0].lstrip("-").replace("-", "_")


@functools.cache
def _shared() -> dict[str, _Described]:
    return _manual(_SHARED)[1]["Advanced"]


class Command(click.Command):
    """A command whose help lists its options in sections, and which says what a checkpoint has kept."""

    sections: dict[str, list[str]]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; where Ctrl-C ends it, report its checkpoint."""
        checkpoint = ctx.params.get("checkpoint")
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            if checkpoint and Path(checkpoint).exists():
                note(f"What was finished is in {checkpoint}; run the same command to continue from it.")
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list per section; what is in none is "Advanced", or "Options" if there are no others."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        records = {option.name: option.get_help_record(ctx) for option in options}
        rest = [name for name in records if not any(name in names for names in self.sections.values())]
        last = "Advanced" if self.sections else "Options"
        for title, names in {**self.sections, last: [*self.sections.get(last, ()), *rest]}.items():
            shown = [record for name in names if (record := records.get(name)) is not None]
            if shown:
                with formatter.section(title):
                    formatter.write_dl(shown)


def as_command(*examples: str, cls: type[Command] = Command) -> Callable[[Callable[..., Any]], Command]:
    """A command from a function with a manual, and with examples at the end of its help.

    A parameter whose type is a dataclass stands for the options that are its fields.
    """

    def made(function: Callable[..., Any]) -> Command:
        tree = None if function.__doc__ else ast.parse(inspect.getsource(function)).body[0]  # python -OO
        text = ast.get_docstring(tree) if isinstance(tree, ast.FunctionDef) else function.__doc__
        prose, sections = _manual(inspect.cleandoc(text or ""))
        described = {name: option for section in sections.values() for name, option in section.items()}
        hints = get_type_hints(function, include_extras=True)
        grouped: dict[str, Any] = {
            name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)
        }
        params = []
        for name, given in inspect.signature(function).parameters.items():
            kind = grouped.get(name)
            kinds = get_type_hints(kind, include_extras=True) if kind else {name: hints[name]}
            defaults = vars(kind) if kind else {name: given.default}
            params += [_parameter(name, kinds[name], defaults[name], described) for name in kinds]

        @functools.wraps(function)
        def callback(**values: Any) -> Any:
            for name, kind in grouped.items():
                values[name] = kind(**{f.name: values.pop(f.name) for f in dataclasses.fields(kind)})
            return function(**values)

        epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples)
        command = cls(None, callback=callback, params=params, help=prose, epilog=epilog)
        names = {(param.name or "").rstrip("_"): param.name or "" for param in params}
        command.sections = {title: [names[name] for name in found] for title, found in sections.items()}
        return command

    return made


def _parameter(name: str, hint: Any, default: Any, described: dict[str, _Described]) -> click.Parameter:
    """The option that is described under a parameter's name, or an argument."""
    kind, given = get_args(hint)[:2] if get_origin(hint) is Annotated else (hint, {})
    if type(None) in get_args(kind):
        kind = get_args(kind)[0]
    required = default is inspect.Parameter.empty
    settings: dict[str, Any] = {"required": required}
    if not required and default is not None and default is not False and default != ():
        settings["default"] = default
    option = described.get(name.rstrip("_")) or _shared().get(name.rstrip("_"))
    if option is None:
        several = get_origin(kind) is tuple
        settings |= {"type": InputPath(), "nargs": -1 if several else 1, **given}
        return click.Argument([name], **settings)
    if get_origin(kind) is Literal:
        settings["type"] = click.Choice(get_args(kind))
    elif kind in (int, float):
        settings["type"] = kind
    number = "N" if isinstance(given.get("type"), (IntRange, click.FloatRange)) else None
    settings |= {
        "is_flag": kind is bool,
        "multiple": kind == tuple[str, ...],
        "help": option.help,
        "metavar": option.metavar or number,
        "show_default": default != "",
        **given,
    }
    if settings.get("prompt"):
        settings["prompt"] = option.help.rstrip(".")
    return click.Option([*option.flags, name], **settings)


class InputPath(click.Path):
    """A file or folder that a command reads; it must be there, and be neither a pipe nor a device."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check it before any work starts."""
        if value:  # a prompt may be left empty
            restore(Path(value))
            if not Path(value).exists():
                raise BilexError(f"{value}: there is no such file; check the name.")
            check_input(value)
        return value


def check_device(device: str) -> str:
    """Fail at once, not after minutes of reading, if a device is not there."""
    if device not in ("auto", "cpu"):
        from bilex.core.device import resolve_device

        resolve_device(device)
    return device


def _checkpoint(folder: str) -> str:
    check_writable(Path(folder) / "aligner")
    return folder


def _random_seed(text: str) -> int:
    """A whole number; a file's name instead of one is a slip of `--seeds`."""
    try:
        return int(text)
    except ValueError:
        hint = f" Did you mean --seeds {text}?" if Path(text).suffix or Path(text).exists() else ""
        raise click.BadParameter(f"'{text}' is not a whole number.{hint}") from None


def _ranks(text: str) -> tuple[int, int | None]:
    """'1-20000', '500-' or '2000' (the first 2000) as a first and a last rank."""
    first, dash, last = text.replace("_", "").replace(",", "").partition("-")
    try:
        return (int(first or 1), int(last) if last else None) if dash else (1, int(first))
    except ValueError:
        raise click.BadParameter(f"{text}: write it as FIRST-LAST, for example 1-20000.") from None


def _columns(text: str) -> tuple[str, str]:
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        raise click.BadParameter("name two columns, the source word's first, for example 1,3 or en,fi.")
    return names[0], names[1]


def _two_codes(text: str) -> tuple[str, str]:
    codes = [code_of(code) or code.strip().lower() for code in text.split(",")]
    if len(codes) != 2 or not all(codes) or codes[0] == codes[1]:
        raise click.BadParameter("name two languages, the source first, for example en,fi.")
    return codes[0], codes[1]


def complete(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """What a shell offers: methods, presets of the method on the line, or formats, with explanations."""
    if parameter.name in ("method", "name", "preset"):
        from bilex.aligners import get_method, method_names

        names: Mapping[str, str] = dict.fromkeys(method_names(), "")
        if parameter.name == "preset":
            method = context.params.get("method") or DEFAULT_METHOD
            names = get_method(method).presets if method in names else {}
    else:
        from bilex.lexicon.formats import all_formats

        written = parameter.name == "format"
        names = {found.name: found.noun for found in all_formats() if found.writable or not written}
    return [CompletionItem(name, help=text or None) for name, text in names.items() if name.startswith(typed)]


Completed = Annotated[str, {"shell_complete": complete}]
CompletedOrNone = Annotated[str | None, {"shell_complete": complete}]
Checkpoint = Annotated[str | None, {"type": _checkpoint}]
Columns = Annotated[tuple[str, str] | None, {"type": _columns}]
Device = Annotated[str, {"type": check_device}]
Direction = Literal["forward", "backward"] | None
Input = Annotated[str, {"type": InputPath()}]
InputOrNone = Annotated[str | None, {"type": InputPath()}]
Inputs = Annotated[tuple[str, ...], {"type": InputPath()}]
Positive = Annotated[int, {"type": IntRange(min=1)}]
PositiveOrNone = Annotated[int | None, {"type": IntRange(min=1)}]
RandomSeed = Annotated[int, {"type": _random_seed}]
Ranks = Annotated[tuple[int, int | None] | None, {"type": _ranks}]
Retrieval = Literal["csls", "nn"]
Share = Annotated[float | None, {"type": click.FloatRange(0, 1)}]
Words = Annotated[tuple[str, ...], {"type": str}]


@dataclass(frozen=True)
class DictionaryLayout:
    """How dictionaries are laid out, where they do not say so themselves."""

    dictionary_format: CompletedOrNone = None
    columns: Columns = None
    delimiter: str | None = None
    split: str | None = None

    def read(
        self, path: str, lowercase: bool, languages: Languages = (None, None), *, verdicts: bool = False
    ) -> bilex.Lexicon:
        """Read a dictionary and warn of what was odd about it."""
        lexicon = bilex.Lexicon.load(
            path,
            self.dictionary_format,
            lowercase=lowercase,
            columns=self.columns,
            delimiter=self.delimiter,
            split=self.split,
            languages=languages,
            verdicts=verdicts,
        )
        for sentence in lexicon.report.sentences() if lexicon.report else ():
            warn(sentence)
        return lexicon


@dataclass(frozen=True)
class Filters:
    """Which words the options leave out."""

    no_numbers: bool = False
    no_names: bool = False
    stop_words: Inputs = ()
    tags: Inputs = ()
    pos: str | None = None

    def of(self, translator: bilex.Translator) -> Keep | None:
        """The filter for a model; None where nothing is left out."""
        from bilex.model.filters import read_tags, read_words, word_filter

        return word_filter(
            translator,
            numbers=not self.no_numbers,
            names=not self.no_names,
            stop_words=frozenset().union(*(read_words(path) for path in self.stop_words)),
            tagger=read_tags(*self.tags) if self.tags else None,
            parts_of_speech=[tag.strip() for tag in self.pos.split(",") if tag.strip()] if self.pos else (),
        )


@dataclass(frozen=True)
class DictionaryOutput:
    """How the options say that a dictionary is written."""

    languages: Annotated[tuple[str, str] | None, {"type": _two_codes}] = None
    defuse_formulas: bool = False
    skip_unfit: bool = False

    @property
    def options(self) -> Any:
        """The same for a writer."""
        from bilex.lexicon.formats import WriteOptions

        return WriteOptions(defuse_formulas=self.defuse_formulas, skip_unfit=self.skip_unfit)


def resolve_direction(direction: str | None, reverse: bool) -> Any:
    """The direction that --direction and --reverse name together."""
    if reverse and direction not in (None, "backward"):
        raise BilexError(f"--reverse means --direction backward, not {direction}; give one of the two.")
    return "backward" if reverse else direction or "forward"


def write_json_line(value: Any, *, indent: int | None = None) -> None:
    """One value or dataclass as JSON to stdout."""
    text = json.dumps(plain(value), ensure_ascii=False, indent=indent)
    sys.stdout.write(encodable(text) + "\n")


def check_model_output(output: str, force: bool, *inputs: str) -> None:
    """Make sure, before the work, that a model may be written, and that nobody else writes it meanwhile."""
    from bilex.model.storage import check_destination, holds_model

    check_not_an_input(output, *inputs)
    check_writable(output)
    click.get_current_context().with_resource(exclusive_lock(output))
    check_destination(output)
    if holds_model(output) and not force:
        raise BilexError(f"{output}: is a model already; choose another name, or replace it with --force.")


def read_vectors(path: str, limit: int | None, lowercase: bool, progress: Progress) -> bilex.WordVectors:
    """Read a vector file and warn of all that was left out of it."""
    vectors = bilex.WordVectors.load(path, limit=limit, lowercase=lowercase, progress=progress)
    for sentence in vectors.report.sentences() if vectors.report else []:
        warn(sentence)
    return vectors


def check_coverage(lexicon: bilex.Lexicon, source: bilex.WordVectors, target: bilex.WordVectors) -> None:
    """Stop if a dictionary and two vocabularies cannot belong together; warn if few pairs are covered."""
    lexicon = lexicon.as_units(source.key_to_index, target.key_to_index)
    coverage = lexicon.coverage(source.key_to_index, target.key_to_index)
    advice = coverage.advice()
    if coverage.fraction < _HARDLY_ANY or (coverage.is_low and advice):
        hint = advice or " Check that the dictionary belongs to these two languages, source word first."
        raise BilexError(f"{lexicon.name}: only {coverage.sentence()}.{hint}")
    if coverage.fraction < FEW and coverage.frequent_missing:
        warn(f"{lexicon.name}: only {coverage.sentence()}.{advice}")


def command_line() -> str:
    """The command line that is being run, as it can be typed again."""
    return shlex.join(["bilex", *(click.get_current_context().find_root().obj or ())])
