"""`bilex evaluate`: a model against a test dictionary."""

from __future__ import annotations

from typing import Any

import click

from bilex.cli.dictionaries import DictionaryLayout, dictionary_options
from bilex.cli.options import check_device, check_readable, device_option, examples, json_option

_FEW = 0.5
_UNMEASURED: dict[str, Any] = {"words": {}, "right": {}, "how": ""}


@click.command(
    epilog=examples(
        "bilex evaluate en-fi test.tsv",
        "bilex evaluate en-fi test.tsv --json > scores.json",
        "bilex evaluate en-fi test.tsv --json --predictions > answers.json",
    )
)
@click.argument("model", type=click.Path())
@click.argument("test_dictionary", type=click.Path())
@click.option("--bootstrap", type=click.IntRange(min=0), default=1000, show_default=True, help="Resamplings.")
@click.option("--seed", type=int, default=0, show_default=True, help="Fixes the resampling.")
@click.option("--predictions", is_flag=True, help="With --json: the answers to every word too.")
@dictionary_options
@device_option
@json_option
def command(
    model: str,
    test_dictionary: str,
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
    score beside them.
    """
    check_readable(model, test_dictionary)
    check_device(device)
    import sys

    from bilex.cli.console import progress, show, warn
    from bilex.evaluation import evaluate
    from bilex.recipe.expectation import Expectation
    from bilex.translator import Translator

    translator = Translator.load(model, device=device)
    made = translator.provenance
    languages = (made.get("source_language"), made.get("target_language"))
    lexicon = layout.read(test_dictionary, translator.lowercase, languages)
    space = translator.space
    coverage = lexicon.coverage(space.source.key_to_index, space.target.key_to_index)
    if 0 < coverage.fraction < _FEW:
        warn(f"{lexicon.name}: only {coverage.sentence()}.{coverage.advice()}")
    train = translator.seeds if len(translator.seeds) else None
    result = evaluate(space, lexicon, train=train, bootstrap=bootstrap, seed=seed, progress=progress())
    if as_json:
        sys.stdout.write(result.to_json(predictions=predictions) + "\n")
        return
    show(result.table(translator.languages))
    if Expectation(**made.get("expectation", _UNMEASURED)).measured:
        show(
            "'bilex align' measured other words: seeds that a second fit did not see. The two figures differ "
            "by several points either way; docs/translator.md#what-to-expect says why."
        )
