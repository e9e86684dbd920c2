// Where the storages of a PyTorch file lie, in both of its forms. For torch_file.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kiln/core/storage.h"
#include "kiln/io/pickle_value.h"
#include "kiln/io/torch_objects.h"

namespace kiln::io::detail {

// A file's pickle and the bytes of its storages.
class TorchContents {
 public:
  virtual ~TorchContents() = default;

  virtual const InputFile& file() const = 0;
  // All bytes of a storage, checked by what checksum there is.
  virtual void read_storage(size_t storage, void* out) const = 0;
  // Whether it must be inflated as a whole.
  virtual bool is_compressed(size_t storage) const = 0;
  // A part of a storage that is not compressed.
  virtual void read_part(size_t storage, uint64_t begin, void* out, size_t bytes) const = 0;

  const PickleValue& value() const { return value_; }
  const std::vector<TorchStorage>& storages() const { return storages_; }
  bool is_big_endian() const { return big_endian_; }
  virtual bool is_legacy() const = 0;

 protected:
  PickleValue value_;
  std::vector<TorchStorage> storages_;
  bool big_endian_ = false;
};

// Each throws IoError.
std::unique_ptr<TorchContents> open_torch_zip(InputFile file);
std::unique_ptr<TorchContents> open_torch_legacy(InputFile file);

}  // namespace kiln::io::detail
