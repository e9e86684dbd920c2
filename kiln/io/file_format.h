// The forms of model files, and how one is recognized.
#pragma once

#include <string>

#include "kiln/io/input_file.h"

namespace kiln::io {

enum class FileFormat {
  safetensors,
  sharded,       // an index.json beside the files that it names
  torch,         // PyTorch's zip
  torch_legacy,  // PyTorch's stream of pickles
  npz,
  npy
};

// "safetensors", "sharded safetensors", "PyTorch", "PyTorch (legacy)", "NumPy .npz", "NumPy .npy".
std::string to_string(FileFormat format);

// By what the file holds; its name does not matter. Throws IoError when it is none of them.
FileFormat recognize(const InputFile& file);
// By its name: .safetensors, NumPy's .npz and .npy; anything else is PyTorch's, as with torch.save.
FileFormat format_for_writing(const std::string& path);

}  // namespace kiln::io
