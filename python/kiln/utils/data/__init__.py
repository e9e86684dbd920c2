"""Data sets, samplers and loaders, under torch.utils.data's names; and data sets over files."""

from . import distributed as distributed
from .cache import DiskCache
from .collate import default_collate, default_convert
from .dataloader import DataLoader
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .detection import COCODetection, collate_detections
from .files import (
    CIFAR10,
    CIFAR100,
    IDXDataset,
    NumPyDataset,
    TextLinesDataset,
)
from .folders import AudioFolder, ImageFolder
from .sampler import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .splits import BucketBatchSampler, k_fold, stratified_split
from .streams import MapDataset, ShuffleBuffer, TarShards, WindowDataset
from .tables import (
    ArrowDataset,
    CSVDataset,
    JSONLinesDataset,
    ParquetDataset,
    SQLiteDataset,
    TableDataset,
)
from .worker import get_worker_info

__all__ = [
    "ArrowDataset",
    "AudioFolder",
    "BatchSampler",
    "BucketBatchSampler",
    "CIFAR10",
    "CIFAR100",
    "COCODetection",
    "CSVDataset",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DiskCache",
    "DistributedSampler",
    "IDXDataset",
    "ImageFolder",
    "IterableDataset",
    "JSONLinesDataset",
    "MapDataset",
    "NumPyDataset",
    "ParquetDataset",
    "RandomSampler",
    "SQLiteDataset",
    "Sampler",
    "SequentialSampler",
    "ShuffleBuffer",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TableDataset",
    "TarShards",
    "TensorDataset",
    "TextLinesDataset",
    "WeightedRandomSampler",
    "WindowDataset",
    "collate_detections",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "k_fold",
    "random_split",
    "stratified_split",
]
