"""load_url, the older name of kiln.hub's load_state_dict_from_url."""

from ..hub import load_state_dict_from_url as load_url

try:  # torchvision imports it from here
    from tqdm import tqdm as tqdm  # type: ignore[import-untyped, unused-ignore]
except ImportError:
    pass

__all__ = ["load_url"]
