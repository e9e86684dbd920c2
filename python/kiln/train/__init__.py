"""Training: a Learner that loses no run. docs/learner.md tells more."""

from .._C._train import CheckpointStore, EventFile, RunLog
from .callbacks import Callback, EarlyStopping
from .checkpoints import Checkpoints
from .finder import LearningRates
from .history import History
from .learner import Interrupted, Learner
from .predicting import predict
from .schedules import Schedule
from .summary import summary

__all__ = [
    "Callback",
    "CheckpointStore",
    "Checkpoints",
    "EarlyStopping",
    "EventFile",
    "History",
    "Interrupted",
    "LearningRates",
    "Learner",
    "RunLog",
    "Schedule",
    "predict",
    "summary",
]
