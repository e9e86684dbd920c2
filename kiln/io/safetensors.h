// The safetensors format: named tensors and string metadata in one file that holds nothing to
// execute.
//
// Layout: 8 bytes header size N (little-endian), N bytes JSON, then the values of all tensors
// without gaps. See https://huggingface.co/docs/safetensors. Dtypes: F64 F32 F16 BF16 I64 I32 I16
// I8 U8 BOOL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/core/tensor_data.h"
#include "kiln/io/input_file.h"

namespace kiln::io {

using NamedTensors = std::vector<std::pair<std::string, TensorData>>;
using Metadata = std::map<std::string, std::string>;

struct SafetensorsFile {
  NamedTensors tensors;  // in the order of the file
  Metadata metadata;
};

// Writes the tensors to `path`, replacing a file only when the new one is complete and on disk.
// Wider dtypes come first (otherwise in the order given), so that every tensor is aligned for its
// dtype. Throws ValueError for an empty, repeated or non-UTF-8 name, DTypeError for a dtype the
// format lacks, IoError when the file cannot be written; an existing file is then as it was.
void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const Metadata& metadata = {});

// Reads a whole file. Throws IoError when it is missing or malformed in any way.
SafetensorsFile load_safetensors(const std::string& path);

class AtomicFile;

namespace detail {

// What save_safetensors writes, without committing it.
void fill_safetensors(AtomicFile& file, const NamedTensors& tensors, const Metadata& metadata);

// One tensor as the header describes it, checked against the size of the data.
struct SafetensorsEntry {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
  uint64_t begin = 0;  // from the start of the data
  uint64_t end = 0;
};

}  // namespace detail

// Opens a file and validates its header; values are read only when asked for, each by itself.
// Reading from several threads at once is fine.
class SafetensorsReader {
 public:
  // Throws IoError when the file is missing or its header malformed.
  explicit SafetensorsReader(const std::string& path);

  // Names in the order of the file.
  const std::vector<std::string>& keys() const { return keys_; }
  const Metadata& metadata() const { return metadata_; }
  bool contains(std::string_view name) const;
  // Each throws ValueError when there is no tensor of that name.
  const Shape& shape(std::string_view name) const;
  DType dtype(std::string_view name) const;
  // Throws IoError when the values cannot be read, or are no booleans in a boolean tensor.
  TensorData read(std::string_view name) const;

 private:
  const detail::SafetensorsEntry* find(std::string_view name) const;
  const detail::SafetensorsEntry& at(const char* op, std::string_view name) const;

  InputFile file_;
  uint64_t data_offset_ = 0;
  Metadata metadata_;
  std::vector<std::string> keys_;
  std::vector<detail::SafetensorsEntry> entries_;  // by name
};

}  // namespace kiln::io
