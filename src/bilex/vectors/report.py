"""What a reader met in a file of word vectors and what it left out."""

from __future__ import annotations

from dataclasses import dataclass, field

PLACES_KEPT = 20


@dataclass
class Tally:
    """How often something was met, and where the first times."""

    count: int = 0
    places: list[int] = field(default_factory=list)

    def add(self, place: int) -> None:
        """Count one more, at line (or entry) `place`, counted from 1."""
        self.count += 1
        if len(self.places) < PLACES_KEPT:
            self.places.append(place)

    def __bool__(self) -> bool:
        return self.count > 0


@dataclass
class LoadReport:
    """The account of one reading: everything that was not taken over as it stood.

    Args:
        source: The name of the file.
        unit: What `places` count: "line" in text, "entry" or "row" elsewhere; from 1.
        format: The name of the format that was read.
        entries: How many lines or entries were read (blank lines and a header are none).
        kept: How many words have a vector in the result.
        broken: Entries that hold no word with the right number of numbers; left out.
        duplicates: Entries whose word had come before; left out, the first stays.
        not_finite: Entries with NaN or an infinite number; left out.
        zero: Entries with nothing but zeros; left out.
        markers: Entries that are no words but markers of a trainer, such as "</s>"; left out.
        merged: Entries left out because lower-casing made their word one that had come before.
        notes: Whole clauses on the file itself, such as a header that lies.
    """

    source: str
    unit: str = "line"
    format: str = ""
    entries: int = 0
    kept: int = 0
    broken: Tally = field(default_factory=Tally)
    duplicates: Tally = field(default_factory=Tally)
    not_finite: Tally = field(default_factory=Tally)
    zero: Tally = field(default_factory=Tally)
    markers: Tally = field(default_factory=Tally)
    merged: int = 0
    notes: list[str] = field(default_factory=list)

    def sentences(self) -> list[str]:
        """One sentence for each thing worth a warning; none for a clean file."""
        found = [f"{self.source}: {note}." for note in self.notes]
        for tally, one, many in (
            (self.broken, "is broken and was left out", "are broken and were left out"),
            (self.duplicates, "repeats a word and was left out", "repeat a word and were left out"),
            (
                self.not_finite,
                "holds NaN or infinity and was left out",
                "hold NaN or infinity and were left out",
            ),
            (self.zero, "holds only zeros and was left out", "hold only zeros and were left out"),
        ):
            if tally:
                found.append(f"{self.source}: {self._places(tally)} {one if tally.count == 1 else many}.")
        if self.merged:
            words = "1 word was" if self.merged == 1 else f"{self.merged:,} words were"
            found.append(f"{self.source}: {words} merged into an earlier word by lower-casing.")
        return found

    def _places(self, tally: Tally) -> str:
        if tally.count == 1:
            return f"{self.unit} {tally.places[0]}"
        plural = "entries" if self.unit == "entry" else f"{self.unit}s"
        listed = ", ".join(map(str, tally.places)) + (", ..." if tally.count > len(tally.places) else "")
        return f"{tally.count:,} {plural} ({listed})"
