"""SummaryWriter: TensorBoard's event files, by torch.utils.tensorboard's name."""

from __future__ import annotations

import os
import socket
import time
import warnings
from typing import TYPE_CHECKING

from .. import _C, errors

if TYPE_CHECKING:
    from typing import Any, Self

__all__ = ["SummaryWriter"]


def _check_time(walltime: Any) -> None:
    if walltime is not None:
        raise errors.ValueError(
            f"SummaryWriter: events have the time at which they are written; got walltime={walltime}"
        )


def _number(value: Any) -> float:
    if isinstance(value, (int, float)):
        return float(value)
    if hasattr(value, "item"):
        return float(value.item())
    raise errors.TypeError(f"SummaryWriter: expected a number; got {type(value).__name__}")


def _tensor(values: Any) -> Any:
    x = values.detach() if isinstance(values, _C.Tensor) else _C.as_tensor(values)
    return x.cpu()


def _pixels(image: Any, dataformats: str) -> Any:
    """uint8 [H, W] or [C, H, W] of an image whose dims dataformats names; floats are of [0, 1]."""
    x = _tensor(image)
    names = dataformats.upper()
    if sorted(names) not in (sorted("CHW"), sorted("HW")) or x.dim() != len(names):
        raise errors.ValueError(
            f"SummaryWriter: expected an image of the dims {dataformats}; got {list(x.shape)}"
        )
    x = x.permute([names.index(name) for name in ("CHW" if "C" in names else "HW")])
    if x.is_floating_point():
        x = (x * 255).clamp(0, 255)
    elif x.dtype == _C.bool_:
        x = x.int() * 255
    x = x.to(_C.uint8)
    if x.dim() == 3 and x.shape[0] == 4:  # the transparency
        x = x[:3]
    return x.contiguous()


def _in_rows(images: Any, across: int = 8) -> Any:
    """[N, C, H, W] -> [C, H', W']: so many beside each other."""
    n, channels, height, width = images.shape
    across = min(across, max(n, 1))
    rows = -(-n // across)
    full = _C.zeros(rows * across, channels, height, width, dtype=images.dtype)
    full[:n] = images
    full = full.reshape(rows, across, channels, height, width).permute(2, 0, 3, 1, 4)
    return full.reshape(channels, rows * height, across * width)


class SummaryWriter:
    """Writes numbers, images and texts to a folder that TensorBoard shows.

    log_dir: the folder; without it runs/<date>_<host><comment>. comment: the end of that name.
    filename_suffix: the end of the file's name. purge_step: TensorBoard is told nothing of a restart.
    max_queue, flush_secs: every event is written at once.

    Each method takes tag, the name under which TensorBoard shows it, global_step, where it stands (0
    without it), and walltime, which must be None: events have the time at which they are written.

    >>> import os
    >>> from kiln.utils.tensorboard import SummaryWriter
    >>> with SummaryWriter("runs/example") as writer:
    ...     writer.add_scalar("loss", 0.5, 1)
    >>> len(os.listdir("runs/example"))
    1
    """

    _files = 0

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if purge_step is not None:
            raise errors.ValueError(
                "SummaryWriter: purge_step: nothing is removed from what an earlier run has written"
            )
        if not log_dir:
            now = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.filename_suffix = filename_suffix
        self._events: Any = None
        self._runs: dict[str, SummaryWriter] = {}
        self._open()

    def _open(self) -> Any:
        if self._events is None:
            from ..train import EventFile

            os.makedirs(self.log_dir, exist_ok=True)
            SummaryWriter._files += 1
            name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}"
            name = f"{name}.{SummaryWriter._files - 1}{self.filename_suffix}"
            self._events = EventFile(os.path.join(self.log_dir, name))
        return self._events

    def _run(self, name: str) -> SummaryWriter:
        """The writer of a folder below."""
        if name not in self._runs:
            self._runs[name] = SummaryWriter(os.path.join(self.log_dir, name))
        return self._runs[name]

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """One number of a curve: a float, or a tensor or array of one element. new_style,
        double_precision: how PyTorch's files store it, which is no choice here."""
        _check_time(walltime)
        self._open().scalar(tag, _number(scalar_value), int(global_step or 0))

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Numbers of several curves in one diagram, each in a folder of its own below this one."""
        _check_time(walltime)
        for tag, value in tag_scalar_dict.items():
            name = f"{main_tag}_{tag}".replace("/", "_")
            self._run(name).add_scalar(main_tag, value, global_step)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """How often values, of a tensor or an array, lie in each of 30 stretches of equal width: bins
        and max_bins, PyTorch's choice of stretches, must be left as they are."""
        _check_time(walltime)
        if bins not in ("tensorflow", "auto") or max_bins is not None:
            raise errors.ValueError(
                "SummaryWriter.add_histogram: there are 30 stretches of equal width; expected bins and "
                "max_bins to be left out"
            )
        self._open().histogram(tag, _tensor(values), int(global_step or 0))

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """An image: uint8, or floats of [0, 1]. dataformats: its dims, "CHW", "HWC" or "HW"."""
        _check_time(walltime)
        self._open().image(tag, _pixels(img_tensor, dataformats), int(global_step or 0))

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Several images in one, eight beside each other. dataformats: their dims, "NCHW" or
        "NHWC"."""
        _check_time(walltime)
        names = dataformats.upper()
        if sorted(names) != sorted("NCHW"):
            raise errors.ValueError(
                f"SummaryWriter.add_images: expected the dims N, C, H and W; got {dataformats}"
            )
        batch = _tensor(img_tensor).movedim(names.index("N"), 0)
        one = names.replace("N", "")
        images = _C.stack([_pixels(image, one) for image in batch])
        self._open().image(tag, _in_rows(images), int(global_step or 0))

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: Any = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """A figure of matplotlib, or a list of them, as an image. close: closes it."""
        import numpy as np

        figures = figure if isinstance(figure, (list, tuple)) else [figure]
        images = []
        for one in figures:
            one.canvas.draw()
            images.append(_C.as_tensor(np.array(one.canvas.buffer_rgba())[:, :, :3]))
            if close:
                import matplotlib.pyplot as plt  # type: ignore[import-not-found, unused-ignore]

                plt.close(one)
        if isinstance(figure, (list, tuple)):
            self.add_images(tag, _C.stack(images), global_step, walltime, "NHWC")
        else:
            self.add_image(tag, images[0], global_step, walltime, "HWC")

    def add_text(
        self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """A text in Markdown."""
        _check_time(walltime)
        self._open().text(tag, text_string, int(global_step or 0))

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: Any = None,
    ) -> None:
        """The settings of a run, as a table in a text, and what came of them, as numbers, in the
        folder run_name below this one. hparam_domain_discrete: the settings' values, for TensorBoard's
        page of settings, which the files do not feed."""
        run = self._run(str(time.time()) if run_name is None else run_name)
        rows = [f"|{name}|{value}|" for name, value in hparam_dict.items()]
        run.add_text("hparams", "\n".join(["|setting|value|", "|-|-|", *rows]), global_step)
        for name, value in metric_dict.items():
            run.add_scalar(name, value, global_step)

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Warns: no graph of the model is written."""
        warnings.warn(
            "SummaryWriter.add_graph: no graph is written; see kiln.capture", stacklevel=2
        )

    def flush(self) -> None:
        """Nothing to do: every event is written at once."""

    def close(self) -> None:
        """Closes the files. What is added later goes to new ones."""
        self._events = None
        for run in self._runs.values():
            run.close()
        self._runs = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
