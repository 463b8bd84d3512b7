"""`bilex demo`: the whole way, on the sample that the package carries."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bilex.cli.options import check_device, device_option, examples
from bilex.fit import DEFAULT_METHOD

if TYPE_CHECKING:
    from rich.table import Table

    from bilex.evaluation import Evaluation

_SHOWN_WORDS = 12


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

    FOLDER receives the model (en-fi), a dictionary (en-fi.tsv) and the scores (scores.json). With --lm the
    scores of both stages are shown; confidences, which take a second fit of both, are left out.
    """
    check_device(device)
    started = time.monotonic()
    from bilex.aligners import get_method
    from bilex.cli.console import progress, show
    from bilex.cli.tables import answers_table, calibration_lines
    from bilex.core.files import write_text
    from bilex.data import sample_path
    from bilex.evaluation import evaluate
    from bilex.lexicon import Lexicon
    from bilex.model import Translator
    from bilex.model.space import Space
    from bilex.model.storage import check_destination
    from bilex.vectors import WordVectors

    model = Path(output) / "en-fi"
    check_destination(model)
    listener = progress()
    sample = sample_path()
    english, finnish = WordVectors.load(sample / "en"), WordVectors.load(sample / "fi")
    seeds, test = Lexicon.load(sample / "seeds.tsv"), Lexicon.load(sample / "test.tsv")
    listener.say(
        f"English {len(english):,} words, Finnish {len(finnish):,} words, {len(seeds):,} seed pairs, "
        f"{len(test.translations()):,} test words, method {method}{f' and {lm}' if lm else ''}."
    )
    encoder = None
    if lm is not None:
        from bilex.encoders.settings import C2

        encoder = C2(lm, preset="demo", mixing="prior")
    aligner = get_method(method)(**{"device": device, **_quick_settings(method)})
    translator = Translator(aligner, encoder=encoder).fit(
        english, finnish, seeds, calibrate=lm is None, languages=("en", "fi"), progress=listener
    )
    results = {}
    if lm is not None:
        alone = Space.from_aligner(translator.aligner_, english, finnish)
        results[method] = evaluate(alone, test, train=seeds, progress=listener)
    name = f"{method} + {lm}" if lm else method
    results[name] = evaluate(translator.space, test, train=seeds, progress=listener)
    with listener.task("Writing the model"):
        translator.save(model)
    translator.lexicon(mutual=True, progress=listener).save(Path(output) / "en-fi.tsv")
    write_text(Path(output) / "scores.json", results[name].to_json() + "\n")
    show(_accuracies(results))
    unlike = [found.source for found in results[name].forward.predictions if not found.identical]
    shown = unlike[:: max(1, len(unlike) // _SHOWN_WORDS)][:_SHOWN_WORDS]
    title = "Words of the test dictionary, none of them a seed"
    show(answers_table(translator.translate(shown, 3), title, languages=translator.languages))
    for line in calibration_lines(translator):
        show(line)
    show(f"Wrote {model}, {output}/en-fi.tsv and {output}/scores.json in {time.monotonic() - started:.0f} s.")
    show(
        f"Next: bilex translate {shlex.quote(str(model))} friend, or with your own files: bilex align --help"
    )


def _quick_settings(method: str) -> dict[str, Any]:
    """Settings with which a method shows itself in a minute."""
    if method != "c1":
        return {}
    from bilex.aligners.c1_settings import SUPERVISED, long_steps

    # After 40 updates the loss on the sample has settled; 20 in longer steps go as far.
    return {"preset": "paper", **long_steps(40, SUPERVISED.learning_rate, SUPERVISED.decay)}


def _accuracies(results: dict[str, Evaluation]) -> Table:
    """P@1 and P@5 of each model, both ways."""
    from rich.table import Table

    table = Table(title="How many test words are translated rightly", title_justify="left")
    for heading in ("model", "direction", "search"):
        table.add_column(heading)
    for heading in ("P@1", "95 %", "P@5", "words"):
        table.add_column(heading, justify="right")
    for name, result in results.items():
        for direction, found in (
            ("English to Finnish", result.forward),
            ("Finnish to English", result.backward),
        ):
            for search, label, metrics in (("nn", "NN", found.nn), ("csls", "CSLS", found.csls)):
                low, high = found.intervals[search]["p@1"]
                table.add_row(
                    name,
                    direction,
                    label,
                    f"{metrics.p_at_1:.1%}",
                    f"{low:.1%}–{high:.1%}",
                    f"{metrics.p_at_5:.1%}",
                    str(found.covered),
                )
    return table
