// PyTorch's files, .pt and .pth: read without Python and without running anything from them, and
// written so that torch.load(path, weights_only=True) takes them, with mmap=True too.
//
// Read: the zip form (PyTorch 1.6 and later; stored or deflated entries) and the older stream of
// pickles. Tensors of every dtype that Kiln has, views with their strides, storages that several
// tensors share, parameters, dicts, lists, tuples, sets, numbers and texts. A pickle that names
// anything else - a function, a class - is refused, and the message says which.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kiln/core/budget.h"
#include "kiln/io/pickle_value.h"
#include "kiln/nn/state_dict.h"

namespace kiln::io {

// Opens a file and reads its pickle; a tensor's values are read when asked for. Throws IoError when
// the file is missing, malformed, or refused. Reading from several threads at once is fine.
class TorchReader {
 public:
  // `max_ratio`: the file may take that many times its size in memory (see Budget).
  explicit TorchReader(const std::string& path, uint64_t max_ratio = Budget::kRatio);
  ~TorchReader();
  TorchReader(TorchReader&&) noexcept;
  TorchReader& operator=(TorchReader&&) noexcept;

  // What torch.load would give, with a StoredTensor for each tensor.
  const PickleValue& value() const;
  // Whether it is the older form.
  bool is_legacy() const;
  // Where the tensor's storage was when it was saved: "cpu", "cuda:0".
  const std::string& location(const StoredTensorInfo& tensor) const;
  // Of the file.
  Budget& budget() const;

  // The tensor's values, row-major, in memory of its own. Throws IoError when they cannot be read,
  // with the refusal where there is one.
  Tensor read(const StoredTensorInfo& tensor) const;
  // Several tensors: those that share a storage share memory, whatever their dtypes; strides are
  // kept, and a storage is read once.
  std::vector<Tensor> read(const std::vector<StoredTensor>& tensors) const;
  // The whole value with its tensors, which share memory as above. A tensor that cannot be read is
  // an IoError that names its place.
  PickleValue read_all() const;

 private:
  class Sharer;
  struct File;
  std::unique_ptr<File> file_;
};

// TorchReader(path, max_ratio).read_all().
PickleValue load_torch(const std::string& path, uint64_t max_ratio = Budget::kRatio);

// Writes a value, tensors as Tensor; tensors that share memory share a storage in the file, views
// stay views. Throws ValueError for a StoredTensor, DTypeError for a dtype that PyTorch's files
// lack, IoError when it cannot be written (an existing file is then as it was).
void save_torch(const std::string& path, const PickleValue& value);
// A state dict as PyTorch has it: an OrderedDict with the attribute `_metadata`.
PickleDict pickle_of(const nn::StateDict& state);
// A value that PyTorch reads as a torch.nn.Parameter, and TorchReader as a StoredTensor with
// is_parameter.
PickleObject pickled_parameter(const Tensor& value, bool requires_grad = true);
// Writes pickle_of(state).
void save_torch(const std::string& path, const nn::StateDict& state);

}  // namespace kiln::io
