"""SummaryWriter, read by TensorBoard itself."""

import importlib.util
import io

import numpy as np
import pytest

import kiln
from kiln.utils.tensorboard import SummaryWriter

needs_tensorboard = pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is None, reason="SKIPPED: TensorBoard is not installed"
)


def events_of(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={"images": 0, "tensors": 0, "scalars": 0})
    return found.Reload()


def pixels_of(event):
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(event.encoded_image_string)))


@needs_tensorboard
def test_numbers_and_texts(tmp_path):
    with SummaryWriter(tmp_path / "run") as writer:
        assert writer.get_logdir() == writer.log_dir == str(tmp_path / "run")
        for step, value in enumerate((0.5, kiln.tensor(0.25), np.float32(2), 3)):
            writer.add_scalar("loss/train", value, step)
        writer.add_scalar("last", 7.0)
        writer.add_text("notes", "**bold**", 2)
        writer.add_histogram("weights", kiln.arange(10.0), 1)
        writer.add_scalars("both", {"a": 1, "b": 2}, kiln.tensor(4))
        writer.add_hparams({"lr": 0.1}, {"accuracy": 0.75}, run_name="first")
        writer.flush()
    found = events_of(tmp_path / "run")
    assert [(e.step, e.value) for e in found.Scalars("loss/train")] == [(0, 0.5), (1, 0.25), (2, 2), (3, 3)]
    assert [(e.step, e.value) for e in found.Scalars("last")] == [(0, 7)]
    text = found.Tensors("notes/text_summary")[0] if "notes/text_summary" in found.Tags()["tensors"] else (
        found.Tensors("notes")[0]
    )  # fmt: skip
    assert text.tensor_proto.string_val == [b"**bold**"] and text.step == 2
    assert found.Histograms("weights")[0].histogram_value.num == 10
    for name, value in (("a", 1), ("b", 2)):
        (event,) = events_of(tmp_path / "run" / f"both_{name}").Scalars("both")
        assert (event.step, event.value) == (4, value)
    assert events_of(tmp_path / "run" / "first").Scalars("accuracy")[0].value == 0.75


@needs_tensorboard
def test_images(tmp_path):
    image = np.random.default_rng(1).integers(0, 256, (3, 4, 5)).astype("uint8")
    batch = np.stack([image] * 9 + [255 - image])
    writer = SummaryWriter(tmp_path)
    writer.add_image("bytes", image)
    writer.add_image("floats", kiln.tensor(image / 255.0))
    writer.add_image("last", image.transpose(1, 2, 0), dataformats="HWC")
    writer.add_image("gray", image[0], dataformats="HW")
    writer.add_images("many", batch)
    writer.add_images("many last", batch.transpose(0, 2, 3, 1), dataformats="NHWC")
    writer.close()
    found = events_of(tmp_path)
    expected = image.transpose(1, 2, 0)
    for name in ("bytes", "last"):
        np.testing.assert_array_equal(pixels_of(found.Images(name)[0]), expected)
    assert np.abs(pixels_of(found.Images("floats")[0]).astype(int) - expected).max() <= 1
    np.testing.assert_array_equal(pixels_of(found.Images("gray")[0]).squeeze(), image[0])
    for name in ("many", "many last"):
        grid = pixels_of(found.Images(name)[0])
        assert grid.shape == (8, 40, 3) and not grid[4:, 10:].any()
        np.testing.assert_array_equal(grid[:4, 35:], expected)
        np.testing.assert_array_equal(grid[4:, 5:10], 255 - expected)


def test_files_of_a_writer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writer = SummaryWriter(comment="_mine", filename_suffix=".end")
    assert writer.log_dir.startswith("runs") and writer.log_dir.endswith("_mine")
    writer.close()
    writer.add_scalar("after", 1)  # goes to a new file
    names = sorted(path.name for path in (tmp_path / writer.log_dir).iterdir())
    assert len(names) == 2 and all("tfevents" in name and name.endswith(".end") for name in names)


def test_what_is_refused(tmp_path):
    writer = SummaryWriter(tmp_path)
    with pytest.raises(ValueError, match="walltime"):
        writer.add_scalar("loss", 1, walltime=3.0)
    with pytest.raises(ValueError, match="purge_step"):
        SummaryWriter(tmp_path, purge_step=3)
    with pytest.raises(TypeError, match="expected a number; got str"):
        writer.add_scalar("loss", "1")
    with pytest.raises(ValueError, match="dims CHW; got"):
        writer.add_image("image", kiln.ones(2, 2))
    with pytest.raises(ValueError, match="N, C, H and W"):
        writer.add_images("image", kiln.ones(1, 2, 2), dataformats="CHW")
    with pytest.raises(ValueError, match="30 stretches"):
        writer.add_histogram("w", kiln.ones(2), bins=[0, 1])
    with pytest.warns(UserWarning, match="no graph"):
        writer.add_graph(kiln.nn.Linear(1, 1))
