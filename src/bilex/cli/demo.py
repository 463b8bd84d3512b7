"""`bilex demo`: the whole way, on the sample that the package carries."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bilex.cli.options import check_device, device_option, examples
from bilex.core.errors import BilexError
from bilex.fit import DEFAULT_METHOD

if TYPE_CHECKING:
    from rich.table import Table

    from bilex.evaluation import Evaluation
    from bilex.model import Translator

_SHOWN_WORDS, _LISTED_ENTRIES = 12, 200
_SHORTEST = 4
_HEADINGS = ("model", "direction", "search", "P@1", "95 %", "P@5", "words")


@click.command(
    epilog=examples(
        "bilex demo",
        "bilex demo --output /tmp/demo --method procrustes",
        "bilex demo --lm e5-small-q4        (both stages, as 'make demo' does)",
    )
)
@click.option(
    "-o", "--output", default="demo-output", show_default=True, metavar="FOLDER", help="Where the results go."
)
@click.option(
    "--method", default=DEFAULT_METHOD, show_default=True, help="How to align; see 'bilex methods'."
)
@click.option("--lm", metavar="NAME", help="Add a language model (stage C2), lightly tuned.")
@device_option
def command(output: str, method: str, lm: str | None, device: str) -> None:
    """Align the packaged English–Finnish sample, and show what comes out.

    FOLDER receives the model (en-fi), a dictionary (en-fi.tsv), the scores (scores.json) and a page of
    results to look at (index.html). With --lm the scores of both stages are shown.
    """
    check_device(device)
    started = time.monotonic()
    from bilex.aligners import get_method
    from bilex.cli.console import progress, show
    from bilex.cli.demo_page import page
    from bilex.core.files import write_text
    from bilex.data import sample_path
    from bilex.encoders.settings import C2
    from bilex.evaluation import evaluate
    from bilex.lexicon import Lexicon
    from bilex.model import Translator
    from bilex.model.space import Space
    from bilex.model.storage import check_destination, holds_model
    from bilex.vectors import WordVectors

    model = Path(output) / "en-fi"
    check_destination(model)
    written = [Path(output) / name for name in ("en-fi.tsv", "scores.json", "index.html")]
    if not holds_model(model):  # else they are an earlier demo's
        for path in written:
            if path.exists():
                raise BilexError(f"{path}: is there already; choose another folder with --output.")
    listener = progress()
    sample = sample_path()
    english, finnish = WordVectors.load(sample / "en"), WordVectors.load(sample / "fi")
    seeds, test = Lexicon.load(sample / "seeds.tsv"), Lexicon.load(sample / "test.tsv")
    listener.say(
        f"English {len(english):,} words, Finnish {len(finnish):,} words, {len(seeds):,} seed pairs, "
        f"{len(test.translations()):,} test words, method {method}{f' and {lm}' if lm else ''}."
    )
    encoder = C2(lm, preset="demo", mixing="prior") if lm else None
    aligner = get_method(method)(**{"device": device, **_quick_settings(method)})
    translator = Translator(aligner, encoder=encoder).fit(
        english, finnish, seeds, languages=("en", "fi"), progress=listener
    )
    results = {}
    if lm is not None:
        alone = Space.from_aligner(translator.aligner_, english, finnish)
        results[method] = evaluate(alone, test, train=seeds, progress=listener)
    name = f"{method} + {lm}" if lm else method
    results[name] = evaluate(translator.space, test, train=seeds, progress=listener)
    with listener.task("Writing the model"):
        translator.save(model)
    dictionary = translator.lexicon(mutual=True, progress=listener)
    dictionary.save(written[0])
    write_text(written[1], results[name].to_json() + "\n")
    scores = _scores(results)
    new = [e for e in dictionary if not e.known and e.source != e.target and len(e.source) >= _SHORTEST]
    spaces = (english, finnish), (translator.space.source, translator.space.target)
    write_text(written[2], page(name, scores, new[:_LISTED_ENTRIES], test, *spaces))
    _show(translator, results[name], scores)
    show(f"Wrote {model}, {output}/en-fi.tsv and {output}/scores.json in {time.monotonic() - started:.0f} s.")
    show(f"Look at the results in a browser: {Path(output) / 'index.html'}")
    translate = f"bilex translate {shlex.quote(str(model))} friend river"
    show("\n  ".join(["Next:", *_activation(), translate, "bilex init    (asks for your own files)"]))


def _show(translator: Translator, result: Evaluation, scores: list[tuple[str, ...]]) -> None:
    """Show scores, some translations, and how far confidences can be trusted."""
    from bilex.cli.console import show
    from bilex.cli.tables import answers_table, calibration_lines

    show(_table(scores))
    unlike = [found.source for found in result.forward.predictions if not found.identical]
    shown = unlike[:: max(1, len(unlike) // _SHOWN_WORDS)][:_SHOWN_WORDS]
    title = "Words of the test dictionary, none of them a seed"
    show(answers_table(translator.translate(shown, 3), title, languages=translator.languages))
    for line in calibration_lines(translator):
        show(line)


def _activation() -> list[str]:
    """The command that activates the virtual environment of this Python, where the shell does not find it."""
    here = Path(sys.prefix)
    found = shutil.which("bilex")
    if sys.prefix == sys.base_prefix or (found and Path(found).resolve().is_relative_to(here.resolve())):
        return []
    short = Path(os.path.relpath(here)) if here.is_relative_to(Path.cwd()) else here
    return [f"{short}\\Scripts\\activate" if os.name == "nt" else f". {shlex.quote(str(short))}/bin/activate"]


def _quick_settings(method: str) -> dict[str, Any]:
    """Settings with which a method shows itself in a minute."""
    if method != "c1":
        return {}
    from bilex.aligners.c1_settings import SUPERVISED, long_steps

    # After 40 updates the loss on the sample has settled; 20 in longer steps go as far.
    return {"preset": "paper", **long_steps(40, SUPERVISED.learning_rate, SUPERVISED.decay)}


def _scores(results: dict[str, Evaluation]) -> list[tuple[str, ...]]:
    """P@1 and P@5 of each model in both directions, headings first."""
    rows: list[tuple[str, ...]] = [_HEADINGS]
    for name, result in results.items():
        both = (("English to Finnish", result.forward), ("Finnish to English", result.backward))
        for direction, found in both:
            for search, label, metrics in (("nn", "NN", found.nn), ("csls", "CSLS", found.csls)):
                low, high = found.intervals[search]["p@1"]
                chances = f"{metrics.p_at_1:.1%}", f"{low:.1%}–{high:.1%}", f"{metrics.p_at_5:.1%}"
                rows.append((name, direction, label, *chances, str(found.covered)))
    return rows


def _table(scores: list[tuple[str, ...]]) -> Table:
    """The scores for the terminal."""
    from rich.table import Table

    table = Table(title="Share of test words with a right translation", title_justify="left")
    for place, heading in enumerate(scores[0]):
        table.add_column(heading, justify="left" if place < 3 else "right")
    for row in scores[1:]:
        table.add_row(*row)
    return table
