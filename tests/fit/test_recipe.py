"""Settings are constructor arguments: they survive plain data, and a fit never changes them."""

from __future__ import annotations

import numpy as np
import pytest

import bilex
from bilex import C1, C2, BilexError, Lexicon, Translator
from bilex.aligners import get_method
from bilex.encoders import TuningSettings
from bilex.fit import fit
from planted import planted


@pytest.mark.parametrize("mixing", ["prior", "auto", 0.4])
def test_settings_of_stage_c2_survive_plain_data(mixing: object) -> None:
    encoder = C2("some model", mixing=mixing, tune=False, tuning=TuningSettings(epochs=3), random_seed=4)  # type: ignore[arg-type]
    assert C2.from_settings(encoder.settings()) == encoder


def test_reprs_show_what_differs_from_the_defaults() -> None:
    assert repr(C2("e5-small-q4")) == "C2('e5-small-q4')"
    assert repr(C2("e5-small-q4", mixing=0.3, tune=False)) == "C2('e5-small-q4', mixing=0.3, tune=False)"
    shown = repr(Translator(C1(preset="quick"), encoder="e5-small-q4"))
    assert shown == "Translator(C1(preset='quick'), encoder=C2('e5-small-q4'))"
    assert repr(Translator()) == "Translator(C1())"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mixing": 1.5}, "from 0 to 1"),
        ({"mixing": True}, "from 0 to 1"),
        ({"mixing": "much"}, "from 0 to 1"),
        ({"preset": "heavy"}, "'heavy' is not known"),
        ({"metod": 1}, "not settings of stage C2"),
    ],
)
def test_senseless_settings_of_stage_c2_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(BilexError, match=message):
        C2.from_settings(settings)


def test_an_unknown_method_is_named() -> None:
    with pytest.raises(BilexError, match=r"method 'procrust' is not known.*Did you mean 'procrustes'"):
        Translator("procrust")


def test_a_fit_leaves_its_settings_as_they_are() -> None:
    world = planted(500, 12, 0.5)
    aligner = C1(iterations=1, updates=10, negatives=5, device="cpu")
    translator = Translator(aligner).fit(world.source, world.target, world.pairs(0, 250))
    assert aligner == C1(iterations=1, updates=10, negatives=5, device="cpu") and not hasattr(
        aligner, "source_map_"
    )
    assert translator.provenance.settings["preset"] == translator.aligner_.settings()["preset"] == "auto"


def test_fit_makes_what_the_translator_makes() -> None:
    world = planted(500, 12, 0.5)
    seeds = world.pairs(0, 300)
    result = fit(get_method("procrustes")(), world.source, world.target, seeds)
    made = Translator("procrustes").fit(world.source, world.target, seeds, languages=("en", "fi"))
    assert np.array_equal(result.maps[0].matrix, made.source_map.matrix)
    assert result.calibration == made.calibration and result.stage is None
    assert made.languages == ("English", "Finnish")


def test_a_second_fit_forgets_the_first() -> None:
    first, second = planted(120, 8, 0.3), planted(100, 8, 0.3)
    translator = Translator("procrustes")
    known = first.pairs(0, 40)
    learned = {source for source, _ in second.pairs(50, 90).pairs}
    word, answer = next(pair for pair in known.pairs if pair[0] not in learned and pair[0] in second.source)
    translator.fit(first.source, first.target, known, calibrate=False)
    assert translator.translate(word)[0].word == answer and translator.translate(word)[0].known
    translator.fit(second.source, second.target, second.pairs(50, 90), calibrate=False)
    assert not translator.translate(word)[0].known and len(translator.space.source) == 100


def test_a_translator_that_learned_nothing_says_so() -> None:
    with pytest.raises(BilexError, match="call its fit first"):
        Translator().translate("dog")
    assert not hasattr(Translator(), "space")


def test_rejected_pairs_leave_the_seeds() -> None:
    world = planted(100, 8, 0.3)
    seeds = world.pairs(0, 50)
    wrong = seeds.pairs[3]
    aligner = get_method("procrustes")()
    fitted = fit(aligner, world.source, world.target, seeds, rejected=[wrong], calibrate=False)
    assert wrong not in fitted.seeds.pairs and list(fitted.seeds.rejected) == [wrong]
    assert len(fitted.seeds) == 49


def test_a_share_that_cannot_be_held_out_is_refused() -> None:
    world = planted(100, 8, 0.3)
    with pytest.raises(BilexError, match="cannot be held out"):
        Translator("procrustes").fit(world.source, world.target, world.pairs(0, 50), held_out=1.0)


@pytest.mark.parametrize(("setting", "value"), [("updates", "many"), ("learning_rate", -1.0)])
def test_a_setting_of_a_wrong_kind_is_refused_before_the_trial(setting: str, value: object) -> None:
    world = planted(400, 8, 0.3)
    with pytest.raises(BilexError, match=f"setting '{setting}' of c1 is {value!r}"):
        Translator(C1(**{setting: value})).fit(world.source, world.target, world.pairs(0, 350))


def test_evaluation_by_attributes() -> None:
    world = planted(400, 12, 0.3)
    made = Translator("procrustes").fit(world.source, world.target, world.pairs(0, 200))
    found = made.evaluate(Lexicon(list(world.pairs(200, 400).pairs)), bootstrap=0)
    assert found.csls.p_at_1 == found.forward.metrics["csls"]["p@1"]  # type: ignore[index]
    assert found.backward.nn.mrr == found.backward.metrics["nn"]["mrr"]  # type: ignore[index]
    with pytest.raises(AttributeError, match="p_at_7"):
        found.csls.p_at_7  # noqa: B018


def test_the_public_names_are_listed() -> None:
    assert {"C1", "C2", "Lexicon", "Translator", "WordVectors", "evaluate"} <= set(dir(bilex))
    for name in bilex.__all__:
        assert getattr(bilex, name) is not None
