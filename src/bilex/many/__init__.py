"""Any number of languages in one space: joined from models of two, or aligned together."""

from bilex.many.core import ManyLanguages
from bilex.many.polyglot import Polyglot, PolyglotEntry

__all__ = ["ManyLanguages", "Polyglot", "PolyglotEntry"]
