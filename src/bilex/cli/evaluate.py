"""`bilex evaluate`: a model against a test dictionary."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from bilex.cli.dictionaries import DictionaryLayout, dictionary_options
from bilex.cli.model_options import pair_options
from bilex.cli.options import (
    check_device,
    check_readable,
    device_option,
    examples,
    json_option,
    seed_option,
    write_json_line,
)
from bilex.core.errors import BilexError

if TYPE_CHECKING:
    from bilex.lexicon import Lexicon
    from bilex.model import Translator
    from bilex.model.space import Direction

_FEW = 0.5


@click.command(
    epilog=examples(
        "bilex evaluate en-fi test.tsv",
        "bilex evaluate en-fi test.tsv --json > scores.json",
        "bilex evaluate en-fi test.tsv --json --predictions > answers.json",
        "bilex evaluate en-fi                                  (no test dictionary: what can be known)",
        "bilex evaluate many --tests tests --plot matrix.svg   (a model of several languages: every pair)",
        "bilex evaluate many test.tsv --from fi --to ru",
    )
)
@click.argument("model", type=click.Path())
@click.argument("test_dictionary", type=click.Path(), required=False)
@click.option(
    "--tests",
    metavar="FOLDER",
    help="Of a model of many: test dictionaries named like en-fi.tsv, all at once.",
)
@click.option("--plot", metavar="FILE.svg", help="With --tests: a heat map of all pairs.")
@click.option(
    "--words", metavar="FILE", help="Without a dictionary: words, one per line, to expect an accuracy for."
)
@pair_options
@click.option(
    "--bootstrap", type=click.IntRange(0, 1_000_000), default=1000, show_default=True, help="Resamplings."
)
@seed_option
@click.option("--predictions", is_flag=True, help="With --json: the answers to every word too.")
@dictionary_options
@device_option
@json_option
def command(
    model: str,
    test_dictionary: str | None,
    tests: str | None,
    plot: str | None,
    words: str | None,
    source: str | None,
    target: str | None,
    bootstrap: int,
    seed: int,
    predictions: bool,
    layout: DictionaryLayout,
    device: str,
    as_json: bool,
) -> None:
    """Score a MODEL on a TEST_DICTIONARY: P@1, P@5, P@10 and MRR, both directions, NN and CSLS.

    The standard figures count the distinct source words whose pair is covered by the vectors, as
    the paper does. Words whose pairs were among the model's seeds are left out of the leak-free
    score beside them. Without a dictionary, what can be known from the model alone is shown: the accuracy
    to expect, held-out seeds, and first answers that answer back.
    """
    check_readable(model, test_dictionary, tests, words)
    check_device(device)
    _check_one_way(test_dictionary, tests, plot, words)
    if tests is not None and (source is not None or target is not None):
        raise BilexError("--tests scores every pair that it has a dictionary of; leave out --from and --to.")
    if tests is not None:
        _show_matrix(model, tests, plot, layout, device, bootstrap, seed, as_json)
    elif test_dictionary is None:
        _show_judgement(model, source, target, words, device, as_json)
    else:
        from bilex.model.many.core import open_pair

        translator, direction = open_pair(model, source, target, device)
        one, other = translator.provenance.languages
        languages = (one, other) if direction == "forward" else (other, one)
        lexicon = layout.read(test_dictionary, translator.lowercase, languages)
        if direction == "backward":
            lexicon = lexicon.swapped()
        _show_scores(translator, lexicon, bootstrap, seed, predictions, as_json)


def _check_one_way(dictionary: str | None, tests: str | None, plot: str | None, words: str | None) -> None:
    """Make sure that the options go together."""
    if dictionary is not None and tests is not None:
        raise BilexError("a test dictionary and --tests were given; give one of the two.")
    if plot is not None and tests is None:
        raise BilexError("--plot draws the matrix of --tests; give a folder of test dictionaries.")
    if words is not None and (dictionary is not None or tests is not None):
        raise BilexError("--words is for an evaluation without a dictionary; leave the dictionary out.")
    if plot is not None:
        from bilex.core.files import check_writable

        check_writable(plot)


def _show_scores(
    translator: Translator, lexicon: Lexicon, bootstrap: int, seed: int, predictions: bool, as_json: bool
) -> None:
    """Two languages on a test dictionary."""
    from bilex.cli.console import progress, show, warn
    from bilex.evaluation import evaluate

    space = translator.space
    lexicon = lexicon.as_units(space.source.key_to_index, space.target.key_to_index)
    coverage = lexicon.coverage(space.source.key_to_index, space.target.key_to_index)
    if 0 < coverage.fraction < _FEW:
        warn(f"{lexicon.name}: only {coverage.sentence()}.{coverage.advice()}")
    train = translator.seeds if len(translator.seeds) else None
    result = evaluate(
        space,
        lexicon,
        train=train,
        bootstrap=bootstrap,
        seed=seed,
        compose=translator.phrase_vectors,
        progress=progress(),
    )
    if as_json:
        sys.stdout.write(result.to_json(predictions=predictions) + "\n")
        return
    show(result.table(translator.languages))


def _show_matrix(
    model: str,
    tests: str,
    plot: str | None,
    layout: DictionaryLayout,
    device: str,
    bootstrap: int,
    seed: int,
    as_json: bool,
) -> None:
    """Every pair of a model of many languages that there is a test dictionary of."""
    from bilex.cli.console import progress, show
    from bilex.core.files import write_text
    from bilex.evaluation.matrix import evaluate_pairs, heat_map
    from bilex.model.many import ManyLanguages
    from bilex.model.many.core import open_model, read_dictionaries

    many = open_model(model, device)
    if not isinstance(many, ManyLanguages):
        raise BilexError(f"{model}: holds two languages; give it one test dictionary, without --tests.")
    found = read_dictionaries(
        tests, many.languages, lambda path, two: layout.read(str(path), many.lowercase, two)
    )
    matrix = evaluate_pairs(many, found, bootstrap=bootstrap, seed=seed, progress=progress())
    if plot is not None:
        write_text(plot, heat_map(matrix))
    if as_json:
        write_json_line(matrix.as_dict(), indent=2)
    else:
        show(matrix.table())


def _show_judgement(
    model: str, source: str | None, target: str | None, words: str | None, device: str, as_json: bool
) -> None:
    """What can be known without a test dictionary: of two languages, or of every two that had seeds."""
    from bilex.cli.console import progress, show
    from bilex.evaluation.without_gold import judge
    from bilex.model import Translator
    from bilex.model.filters import read_words
    from bilex.model.many.core import open_model, open_pair

    opened = open_model(model, device)
    direction: Direction = "forward"
    if isinstance(opened, Translator) or source is not None or target is not None:
        translator, direction = open_pair(model, source, target, device)
        translators = [translator]
    else:
        translators = [opened.pair(*two) for two in opened.seeds]
    if words is not None and len(translators) > 1:
        raise BilexError("--words are of one language; name it and another with --from and --to.")
    listed = {direction: read_words(words)} if words is not None else None
    found = {t.languages: judge(t, words=listed, progress=progress()) for t in translators}
    if as_json:
        write_json_line({"-".join(names): result.as_dict() for names, result in found.items()}, indent=2)
        return
    for names, result in found.items():
        show(result.table(names))
