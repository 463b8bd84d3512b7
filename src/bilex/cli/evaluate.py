"""`bilex evaluate`: a model against a test dictionary."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from click import IntRange

import bilex
from bilex.cli import options as opt
from bilex.cli.console import progress, show, warn
from bilex.core.errors import BilexError
from bilex.core.files import check_writable, write_text

if TYPE_CHECKING:
    from bilex.model.space import Direction


@opt.as_command(
    "bilex evaluate en-fi test.tsv",
    "bilex evaluate en-fi test.tsv --json > scores.json",
    "bilex evaluate en-fi test.tsv --json --predictions > answers.json",
    "bilex evaluate en-fi                                  (no test dictionary: what can be known)",
    "bilex evaluate many --tests tests --plot matrix.svg   (a model of several languages: every pair)",
    "bilex evaluate many test.tsv --from fi --to ru",
)
def command(
    model: str,
    test_dictionary: str | None = None,
    *,
    tests: opt.InputOrNone = None,
    plot: str | None = None,
    words: opt.InputOrNone = None,
    from_: str | None = None,
    to: str | None = None,
    bootstrap: Annotated[int, {"type": IntRange(0, 1_000_000)}] = 1000,
    random_seed: opt.RandomSeed = 0,
    predictions: bool = False,
    layout: opt.DictionaryLayout,
    device: opt.Device = "auto",
    json: bool = False,
) -> None:
    """Score a MODEL on a TEST_DICTIONARY: P@1, P@5, P@10 and MRR, both directions, NN and CSLS.

    The standard scores count the distinct source words whose pair is covered by the vectors, as
    the paper does. Words whose pairs were among the model's seeds are left out of the leak-free
    score beside them. Without a dictionary, what can be known from the model alone is shown: the accuracy
    to expect, held-out seeds, and first answers that answer back.

    Input:
        --tests FOLDER: Of a model of many: test dictionaries named like en-fi.tsv, all at once.
        --words FILE: Without a dictionary: words, one per line, to expect an accuracy for.
        --from --to
    Output:
        --plot FILE.svg: With --tests: a heat map of all pairs.
        --json
        --predictions: With --json: the answers to every word too.
    Advanced:
        --bootstrap: How many resamplings the intervals come from; 0 for no intervals.
    """
    faults = {
        "a test dictionary and --tests were given; give one of the two.": test_dictionary and tests,
        "--plot draws the matrix of --tests; give a folder of test dictionaries.": plot and not tests,
        "--words is for an evaluation without a dictionary.": words and (test_dictionary or tests),
        "--tests scores every pair of its dictionaries; leave out --from and --to.": tests and (from_ or to),
    }
    for sentence, wrong in faults.items():
        if wrong:
            raise BilexError(sentence)
    if tests is not None:
        _show_matrix(model, tests, plot, layout, device, {"bootstrap": bootstrap, "seed": random_seed}, json)
        return
    if test_dictionary is None:
        _show_judgement(model, from_, to, words, device, json)
        return
    from bilex.model.many import open_pair

    translator, direction = open_pair(model, from_, to, device)
    one, other = translator.provenance.languages
    space, backward = translator.space, direction == "backward"
    lexicon = layout.read(test_dictionary, translator.lowercase, (other, one) if backward else (one, other))
    lexicon = lexicon.swapped() if backward else lexicon
    lexicon = lexicon.as_units(space.source.key_to_index, space.target.key_to_index)
    coverage = lexicon.coverage(space.source.key_to_index, space.target.key_to_index)
    if 0 < coverage.fraction < opt.FEW:
        warn(f"{lexicon.name}: only {coverage.sentence()}.{coverage.advice()}")
    result = bilex.evaluate(
        space,
        lexicon,
        train=translator.seeds or None,
        bootstrap=bootstrap,
        seed=random_seed,
        compose=translator.phrase_vectors,
        progress=progress(),
    )
    if json:
        sys.stdout.write(result.to_json(predictions=predictions) + "\n")
    else:
        show(result.table(translator.languages))


def _show_matrix(
    model: str,
    tests: str,
    plot: str | None,
    layout: opt.DictionaryLayout,
    device: str,
    settings: dict[str, int],
    as_json: bool,
) -> None:
    """Every pair of a model of many languages that there is a test dictionary of."""
    from bilex.evaluation.matrix import evaluate_pairs
    from bilex.model.many import read_dictionaries

    if plot is not None:
        check_writable(plot)
    many = bilex.ManyLanguages.load(model, device=device)
    case = many.lowercase
    found = read_dictionaries(tests, many.languages, lambda path, two: layout.read(str(path), case, two))
    matrix = evaluate_pairs(many, found, **settings, progress=progress())
    if plot is not None:
        write_text(plot, matrix.svg())
    if as_json:
        opt.write_json_line(matrix.as_dict(), indent=2)
    else:
        show(matrix.table())


def _show_judgement(
    model: str, source: str | None, target: str | None, words: str | None, device: str, as_json: bool
) -> None:
    """What can be known without a test dictionary: of two languages, or of every two that had seeds."""
    from bilex.evaluation.without_gold import judge
    from bilex.model.filters import read_words
    from bilex.model.many import open_pair
    from bilex.model.storage import load_model

    direction: Direction = "forward"
    if source is not None or target is not None:
        translator, direction = open_pair(model, source, target, device)
        translators = [translator]
    else:
        opened = load_model(model, device=device)
        translators = [opened.pair(*pair) for pair in opened.seeds]
    if words is not None and len(translators) > 1:
        raise BilexError("--words are of one language; name it and another with --from and --to.")
    listed = {direction: read_words(words)} if words is not None else None
    found = {t.languages: judge(t, words=listed, progress=progress()) for t in translators}
    if as_json:
        opt.write_json_line({"-".join(names): result for names, result in found.items()}, indent=2)
        return
    for names, result in found.items():
        show(result.table(names))
