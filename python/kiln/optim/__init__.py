"""Optimizers and their schedules. Gradient clipping is in kiln.nn.utils."""

from . import lr_scheduler as lr_scheduler
from . import swa_utils as swa_utils
from .adadelta import Adadelta
from .adafactor import Adafactor
from .adagrad import Adagrad
from .adam import Adam
from .adamax import Adamax
from .adamw import AdamW
from .adamw_8bit import AdamW8bit
from .adan import Adan
from .asgd import ASGD
from .lamb import LAMB
from .lbfgs import LBFGS
from .lion import Lion
from .muon import Muon
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "AdamW8bit",
    "Adamax",
    "Adan",
    "LAMB",
    "LBFGS",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
]
