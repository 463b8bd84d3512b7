"""What a dictionary by lemmas gains: its first answers beside those of a dictionary by forms.

    bilex align en.npy fi.npy --seeds seeds.tsv --method procrustes --limit 20000 -o en-fi
    python -m research.lemmas en-fi test.tsv freedict-eng-fin.index [--reverse]

Each test word is looked up as it is in the one, and under its lemma in the other. "strict" counts the form
that stands in the dictionary, "lemma" any form of the same lemma. Words of the seeds are left out, and known
translations do not come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bilex import Translator
from bilex.lexicon.lemmas import Lemmatiser, lemmatiser
from bilex.model.space import Direction
from research.model_tests import parser_of, read_test


@dataclass(frozen=True)
class Answers:
    """The first answer of each word, by forms and by lemmas."""

    forms: dict[str, str]
    lemmas: dict[str, str]
    query_side: Lemmatiser
    key_side: Lemmatiser

    def by_lemma(self) -> dict[str, str]:
        """The first answer of each lemma; of several headwords of one lemma, the most frequent."""
        found: dict[str, str] = {}
        for word, answer in self.lemmas.items():
            found.setdefault(self.query_side(word), answer)
        return found


def answers_of(translator: Translator, direction: Direction) -> Answers:
    """Both dictionaries of a model."""
    codes = [str(code) for code in translator.provenance.languages]
    ends = ("source", "target") if direction == "forward" else ("target", "source")
    query_side, key_side = map(lemmatiser, codes if direction == "forward" else codes[::-1])
    found = []
    for lemmas in (False, True):
        entries = translator.lexicon(direction=direction, model_only=True, lemmas=lemmas)
        found.append({getattr(entry, ends[0]): getattr(entry, ends[1]) for entry in entries})
    return Answers(found[0], found[1], query_side, key_side)


def shares(golds: dict[str, set[str]], words: Iterable[str], answers: Answers) -> tuple[int, list[float]]:
    """How many words, and the share that is right: forms strict, by lemma; lemmas strict, by lemma."""
    by_lemma = answers.by_lemma()
    counts, total = [0, 0, 0, 0], 0
    for word in words:
        lemmas = {answers.key_side(gold) for gold in golds[word]}
        entry = answers.lemmas.get(word) or by_lemma.get(answers.query_side(word))
        if entry is None:
            continue
        total += 1
        for place, answer in ((0, answers.forms[word]), (2, entry)):
            counts[place] += answer in golds[word]
            counts[place + 1] += answers.key_side(answer) in lemmas
    return total, [100 * count / max(total, 1) for count in counts]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print two lines for each test dictionary: all words, and headwords alone."""
    options = parser_of(__doc__).parse_args(arguments)
    translator = Translator.load(options.model)
    answers = answers_of(translator, "backward" if options.reverse else "forward")
    seeds = translator.seeds.swapped() if options.reverse else translator.seeds
    known = set(seeds.translations())
    key_side = translator.space.source if options.reverse else translator.space.target
    print(f"{len(answers.forms):,} entries by forms, {len(answers.lemmas):,} by lemmas")
    print("test                             words      number | forms: strict  lemma | lemmas: strict  lemma")
    for test in options.tests:
        golds: dict[str, set[str]] = {}
        for word, gold in read_test(test, options).pairs:
            if word in answers.forms and gold in key_side and word not in known:
                golds.setdefault(word, set()).add(gold)
        for name, words in (
            ("all", golds),
            ("headwords", [word for word in golds if word in answers.lemmas]),
        ):
            total, found = shares(golds, words, answers)
            print(
                f"{test.name[:32]:32} {name:10} {total:6} |        {found[0]:6.1f} {found[1]:6.1f} |"
                f"         {found[2]:6.1f} {found[3]:6.1f}"
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
