"""How well a space translates: figures under every usual convention, with their uncertainty."""

from bilex.evaluation.core import evaluate
from bilex.evaluation.result import DirectionResult, Evaluation, Group, Prediction

__all__ = ["DirectionResult", "Evaluation", "Group", "Prediction", "evaluate"]
