"""How well a space translates: metrics under every usual convention, with their uncertainty."""

from bilex.evaluation.result import DirectionResult, Evaluation, Group, Metrics, Prediction
from bilex.evaluation.scoring import evaluate

__all__ = ["DirectionResult", "Evaluation", "Group", "Metrics", "Prediction", "evaluate"]
