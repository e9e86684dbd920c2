// NumPy's files: one array (.npy) and several by name (.npz).
//
// Read: formats 1.0 to 3.0, either byte order, C and Fortran order, stored and compressed .npz; the
// dtypes f8 f4 f2 i8 i4 i2 i1 u1 b1. Arrays of objects are refused: they hold pickles.
// Written: format 1.0, little-endian, row-major. NumPy has no bfloat16: such a tensor is written as
// float32, which holds its values exactly, and comes back as float32.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kiln/core/budget.h"
#include "kiln/nn/state_dict.h"

namespace kiln::io {

// An array, as its header describes it.
struct NpyArray {
  std::string name;  // in an .npz, without ".npy"
  Shape shape;
  DType dtype = DType::f32;
  std::string type_name;  // "float32"; as the file has it when there is a refusal
  std::string refusal;    // why it cannot be read; empty when it can
};
// Reads the header alone. Throws IoError when the file is missing or malformed.
NpyArray describe_npy(const std::string& path);

// Throws IoError when the file is missing, malformed, or of a dtype that Kiln lacks.
Tensor load_npy(const std::string& path);
// Replaces a file only when the new one is complete and on disk. Throws DTypeError for a quantized
// tensor, IoError when it cannot be written.
void save_npy(const std::string& path, const Tensor& x);

// Opens an .npz and reads the headers of its arrays; values are read when asked for.
class NpzReader {
 public:
  // `max_ratio`: the file may take that many times its size in memory (see Budget).
  explicit NpzReader(const std::string& path, uint64_t max_ratio = Budget::kRatio);
  ~NpzReader();
  NpzReader(NpzReader&&) noexcept;
  NpzReader& operator=(NpzReader&&) noexcept;

  // In the order of the file.
  const std::vector<NpyArray>& arrays() const;
  // Row-major, in memory of its own. Throws IoError for an array that cannot be read.
  Tensor read(size_t array) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// All arrays of an .npz, in its order.
nn::StateDict load_npz(const std::string& path, uint64_t max_ratio = Budget::kRatio);
// Writes the tensors as NAME.npy each; compressed (DEFLATE), or in place for numpy's mmap_mode.
// Compressed files stay within what load_npz takes without a larger max_ratio: some zeros in them
// are stored. Throws ValueError for a name that no zip entry can have (empty, or with "..").
void save_npz(const std::string& path, const nn::StateDict& tensors, bool compressed = false);

}  // namespace kiln::io
