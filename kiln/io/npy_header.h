// The header of NumPy's arrays: parsing with every check, and making one. For npy_file.cpp.
#pragma once

#include <functional>
#include <string>

#include "kiln/core/dtype.h"
#include "kiln/core/shape.h"
#include "kiln/io/input_file.h"

namespace kiln::io::detail {

struct NpyHeader {
  DType dtype = DType::f32;
  Shape shape;
  bool fortran_order = false;
  bool big_endian = false;
  std::string descr;    // as the file has it: "<f4"
  std::string refusal;  // why the values cannot be read; empty when they can
  uint64_t bytes = 0;   // of the header itself
  uint64_t data_bytes = 0;
};

// Reads the next bytes of the array.
using NpyRead = std::function<void(void* out, size_t bytes)>;

// Parses the header of an array of `total` bytes, which must be filled exactly by header and
// values. `who` names it in messages: "'x.npy'". Throws IoError; a dtype that Kiln lacks is a
// refusal instead.
NpyHeader read_npy_header(const std::string& op, const std::string& who, uint64_t total,
                          const NpyRead& read);

// The header, format 1.0, of values in row-major order; its size is a multiple of 64. The dtype
// must not be bfloat16, which NumPy lacks.
std::string make_npy_header(DType dtype, const Shape& shape);

}  // namespace kiln::io::detail
