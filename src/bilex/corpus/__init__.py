"""From raw text to word vectors: reading, tokens, phrases, and fastText's training."""

from bilex.corpus.preparing import Preparation, Prepared, prepare
from bilex.corpus.training import TrainingReport, TrainingSettings, train_vectors

__all__ = ["Preparation", "Prepared", "TrainingReport", "TrainingSettings", "prepare", "train_vectors"]
