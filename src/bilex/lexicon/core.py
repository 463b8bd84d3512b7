"""A bilingual word list."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.core.files import check_input
from bilex.core.tables import Tabular, html_table
from bilex.core.text import listed
from bilex.lexicon.entries import Dictionary, Entry, Languages, NormalForm, Pair, normalized
from bilex.lexicon.files import Layout, ReadReport
from bilex.lexicon.statistics import Coverage, LeakReport, RankSummary, lacks_frequent
from bilex.vectors.phrases import unit_of

if TYPE_CHECKING:
    import pandas

_SHOWN_PAIRS, _SHOWN_ROWS = 3, 10


@dataclass(frozen=True, repr=False)
class Lexicon(Tabular):
    """Word pairs, source first, in file order, repeats kept.

    A source word with several translations is in several pairs.

    Args:
        pairs: The pairs.
        name: What messages call the list, usually its file.
        report: What was found in the file it was read from.
        spelt: The pairs as spelt in that file, before lower-casing; the same as `pairs` if empty.
        rejected: Pairs that are known not to be translations.

    Examples:
        >>> lexicon = Lexicon([("dog", "koira"), ("cat", "kissa"), ("cat", "katti")])
        >>> lexicon.translations()["cat"]
        ('kissa', 'katti')
    """

    pairs: Sequence[Pair]
    name: str = "the dictionary"
    report: ReadReport | None = field(default=None, compare=False, repr=False)
    spelt: Sequence[Pair] = field(default=(), compare=False, repr=False)
    rejected: Sequence[Pair] = ()

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        return f"Lexicon({self._caption()}: {listed(map('–'.join, self.pairs), _SHOWN_PAIRS)})"

    def _caption(self) -> str:
        rejected = f", {len(self.rejected):,} rejected" if self.rejected else ""
        return f"{len(self):,} pairs of {self.name}{rejected}"

    def _repr_html_(self) -> str:
        return html_table(("source", "target"), self.pairs, _SHOWN_ROWS, self._caption())

    def __add__(self, other: Lexicon) -> Lexicon:
        """Both lists, one after the other; pairs of both are kept once."""
        if not isinstance(other, Lexicon):
            return NotImplemented
        known = set(self.pairs)
        new = other._only(i for i, pair in enumerate(other.pairs) if pair not in known)
        spelt = [*(self.spelt or self.pairs), *(new.spelt or new.pairs)] if self.spelt or new.spelt else ()
        names = ", ".join(dict.fromkeys((self.name, other.name)))
        rejected = tuple(dict.fromkeys((*self.rejected, *other.rejected)))
        return Lexicon([*self.pairs, *new.pairs], names, self.report, spelt, rejected)

    @classmethod
    def load(
        cls,
        path: str | Path,
        format: str | None = None,
        *,
        lowercase: bool = True,
        normal_form: NormalForm | None = "NFC",
        columns: tuple[int | str, int | str] | None = None,
        delimiter: str | None = None,
        split: str | None = None,
        languages: Languages = (None, None),
        verdicts: bool = False,
    ) -> Lexicon:
        """Read pairs from a file.

        Args:
            path: One pair per line, separated by tab, semicolon or space, a `.csv` or `.jsonl` file, or any
                other format of `docs/reference/formats.md`. A first line of column names is recognised.
            format: The name of the format; None to detect it.
            lowercase: Whether to lower-case the words, as the vectors usually are.
            normal_form: The Unicode normal form to bring the words into; None leaves them.
            columns: The columns of source and target words: numbers from 1, or names of the first line.
            delimiter: What separates the columns; None to detect it.
            split: Characters that separate several translations in one cell, such as ";/".
            languages: Codes of the source and the target language, to recognise their columns by, and to
                choose by in files that hold more than two.
            verdicts: Whether a third column holds "yes" or "no" for each pair; a "no" makes it `rejected`.

        Returns:
            The list, with what was unusual about the file in `report`.

        Raises:
            BilexError: The file cannot be read, is no Unicode text, lacks a column, or holds hardly any pair.
        """
        from bilex.lexicon import formats

        check_input(path)
        wanted = None if columns is None else (str(columns[0]), str(columns[1]))
        reading = formats.read(path, Layout(wanted, delimiter, split, languages, verdicts), format)
        spelt = [(entry.source, entry.target) for entry in reading.entries]
        wrong = [(entry.source, entry.target) for entry in reading.rejected]
        pairs = normalized(spelt, lowercase=lowercase, normal_form=normal_form)
        rejected = normalized(wrong, lowercase=lowercase, normal_form=normal_form)
        return cls(pairs, str(path), reading.report, spelt if pairs != spelt else (), tuple(rejected))

    @classmethod
    def from_pandas(
        cls, frame: pandas.DataFrame, source: str | int = 0, target: str | int = 1, *, lowercase: bool = True
    ) -> Lexicon:
        """The pairs of two columns, by name or place, of a pandas DataFrame, but rows with an empty cell."""
        chosen = []
        for column in (source, target):
            try:
                chosen.append(frame.iloc[:, column] if isinstance(column, int) else frame[column])
            except (KeyError, IndexError) as error:
                names = ", ".join(map(str, frame.columns))
                raise BilexError(f"the table has no column {column!r}; it has {names}.") from error
        whole = chosen[0].notna() & chosen[1].notna()
        words = ([str(word).strip() for word in column[whole]] for column in chosen)
        pairs = [(a, b) for a, b in zip(*words, strict=True) if a and b]
        return cls(normalized(pairs, lowercase=lowercase, normal_form="NFC"), "the table")

    def columns(self) -> dict[str, list[str]]:
        """The source words and the target words."""
        return {"source": [a for a, _ in self.pairs], "target": [b for _, b in self.pairs]}

    def corrected(self, corrections: Lexicon) -> Lexicon:
        """This list, overruled by another one that is certain.

        A source word that `corrections` translate keeps their translations only; pairs that they reject are
        left out and kept in `rejected`.
        """
        overruled = {source for source, _ in corrections.pairs}
        wrong = set(corrections.rejected) - set(corrections.pairs)
        kept = (i for i, pair in enumerate(self.pairs) if pair[0] not in overruled and pair not in wrong)
        joined = self._only(kept) + corrections
        right = set(corrections.pairs)
        return replace(joined, rejected=tuple(pair for pair in joined.rejected if pair not in right))

    def save(
        self, path: str | Path, format: str | None = None, *, languages: Languages = (None, None)
    ) -> None:
        """Write the pairs, atomically.

        Args:
            path: The file.
            format: The name of the format; None for the one that the suffix of the file names.
            languages: Codes of the two languages, for formats that mark words with them.
        """
        from bilex.lexicon import formats

        formats.write(path, Dictionary([Entry(*pair) for pair in self.pairs], languages), format)

    def translations(self) -> dict[str, tuple[str, ...]]:
        """Every source word with its distinct translations, both in file order."""
        found: dict[str, dict[str, None]] = {}
        for source, target in self.pairs:
            found.setdefault(source, {})[target] = None
        return {source: tuple(targets) for source, targets in found.items()}

    def index(self, source: Mapping[str, int], target: Mapping[str, int]) -> npt.NDArray[np.int64]:
        """The covered pairs as rows of the two vocabularies, repeats kept, shape (n, 2)."""
        found = [(source[a], target[b]) for a, b in self.pairs if a in source and b in target]
        return np.array(found, np.int64).reshape(-1, 2)

    def rejected_index(self, source: Mapping[str, int], target: Mapping[str, int]) -> npt.NDArray[np.int64]:
        """The rejected pairs that are covered, as rows of the two vocabularies, each once, shape (n, 2)."""
        return Lexicon(list(dict.fromkeys(self.rejected))).index(source, target)

    def as_units(self, source: Mapping[str, int], target: Mapping[str, int]) -> Lexicon:
        """The same pairs, phrases spelt as the vocabularies spell them: "new york" as "new_york".

        Words, and phrases that a vocabulary does not hold, stay as they are.
        """

        def respelt_pairs(pairs: Sequence[Pair]) -> list[Pair]:
            return [(unit_of(a, source) or a, unit_of(b, target) or b) for a, b in pairs]

        pairs, rejected = respelt_pairs(self.pairs), respelt_pairs(self.rejected)
        if pairs == list(self.pairs) and rejected == list(self.rejected):
            return self
        return Lexicon(pairs, self.name, self.report, self.spelt or self.pairs, tuple(rejected))

    def coverage(self, source: Mapping[str, int], target: Mapping[str, int]) -> Coverage:
        """How much of the list the vocabularies cover, and what would cover more."""

        def covered(pairs: Iterable[Pair]) -> int:
            return sum(a in source and b in target for a, b in pairs)

        spelt = self.spelt or self.pairs
        others = {
            "read the dictionary lower-cased": normalized(spelt, lowercase=True, normal_form="NFC"),
            "keep the dictionary's upper case": normalized(spelt, lowercase=False, normal_form="NFC"),
            "read the dictionary in Unicode form NFD": normalized(
                self.pairs, lowercase=False, normal_form="NFD"
            ),
            "swap source and target (the two vector files, or the dictionary's columns)": [
                (b, a) for a, b in self.pairs
            ],
        }
        sources, targets = (dict.fromkeys(words) for words in self.columns().values())
        return Coverage(
            pairs=len(self),
            covered=covered(self.pairs),
            source_words=len(sources),
            target_words=len(targets),
            source_missing=tuple(word for word in sources if word not in source),
            target_missing=tuple(word for word in targets if word not in target),
            frequent_missing=lacks_frequent(sources, source) or lacks_frequent(targets, target),
            alternatives={remedy: covered(pairs) for remedy, pairs in others.items()},
        )

    def ranks(self, source: Mapping[str, int], target: Mapping[str, int]) -> tuple[RankSummary, RankSummary]:
        """How frequent the source words and the target words are."""
        words = self.columns()
        return RankSummary.of(words["source"], source), RankSummary.of(words["target"], target)

    def covered(self, source: Mapping[str, int], target: Mapping[str, int]) -> Lexicon:
        """Only the pairs with both words in the vocabularies."""
        return self._only(i for i, (a, b) in enumerate(self.pairs) if a in source and b in target)

    def swapped(self) -> Lexicon:
        """The other direction: target words first."""
        pairs, spelt, rejected = (
            [(b, a) for a, b in pairs] for pairs in (self.pairs, self.spelt, self.rejected)
        )
        return Lexicon(pairs, f"{self.name} (swapped)", self.report, spelt, rejected)

    def head(self, limit: int | None) -> Lexicon:
        """The first `limit` pairs (all for None)."""
        return self if limit is None else self._only(range(min(max(limit, 0), len(self))))

    def leaks(self, train: Lexicon) -> LeakReport:
        """What this list, for testing, shares with a training list."""
        known, distinct = set(train.pairs), list(dict.fromkeys(self.pairs))
        train_sources, train_targets = map(set, train.columns().values())
        sources, targets = dict.fromkeys(a for a, _ in distinct), dict.fromkeys(b for _, b in distinct)
        return LeakReport(
            test_pairs=len(distinct),
            test_sources=len(sources),
            pairs=tuple(pair for pair in distinct if pair in known),
            reversed_pairs=tuple((a, b) for a, b in distinct if (b, a) in known),
            sources=tuple(word for word in sources if word in train_sources),
            targets=tuple(word for word in targets if word in train_targets),
            touched=sum(a in train_sources or b in train_targets for a, b in distinct),
        )

    def without(self, other: Lexicon, by: Literal["pair", "source", "word"] = "pair") -> Lexicon:
        """The pairs that share with another list neither the "pair", the "source" word, nor any "word"."""
        pairs = set(other.pairs) if by == "pair" else set()
        sources = {a for a, _ in other.pairs} if by != "pair" else set()
        targets = {b for _, b in other.pairs} if by == "word" else set()
        return self._only(
            i
            for i, (a, b) in enumerate(self.pairs)
            if (a, b) not in pairs and a not in sources and b not in targets
        )

    def split(self, held_out: float | int, seed: int = 0) -> tuple[Lexicon, Lexicon]:
        """Cut the list in two that share neither a source nor a target word.

        Source words are drawn at random for the second list, with all their pairs. Pairs of other
        source words whose target is among those drawn are in neither list: keeping them would reveal
        the answer, and drawing whole groups of connected words instead would favour words with one
        translation. Both lists are in file order.

        Args:
            held_out: How many source words the second list gets: a number, or a fraction below 1.
            seed: The random seed.
        """
        sources = sorted({a for a, _ in self.pairs})
        count = round(held_out * len(sources)) if isinstance(held_out, float) else held_out
        if not 0 <= count <= len(sources) or (isinstance(held_out, float) and held_out > 1):
            raise BilexError(
                f"{self.name}: {held_out} source words cannot be held out of {len(sources)}; "
                "give a smaller number or a fraction between 0 and 1."
            )
        drawn = set(random.Random(seed).sample(sources, count))
        kept = self._only(i for i, (a, _) in enumerate(self.pairs) if a in drawn)
        return self.without(kept, by="word"), kept

    def _only(self, positions: Iterable[int]) -> Lexicon:
        """The pairs at some positions, with their spelling."""
        chosen = list(positions)
        spelt = [self.spelt[i] for i in chosen] if self.spelt else ()
        return Lexicon([self.pairs[i] for i in chosen], self.name, self.report, spelt, self.rejected)
