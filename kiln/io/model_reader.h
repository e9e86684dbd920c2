// One way to read every model file: named tensors, taken one at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/io/file_format.h"
#include "kiln/io/safetensors.h"
#include "kiln/nn/state_dict.h"

namespace kiln::io {

class PickleValue;  // of pickle_value.h

// A tensor of a file, as its directory describes it.
struct TensorEntry {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
  uint64_t bytes = 0;     // of the values
  std::string type_name;  // "float32"; of a tensor that cannot be read, what the file calls it
  std::string refusal;    // why it cannot be read; empty when it can
};

class ModelReader {
 public:
  virtual ~ModelReader() = default;

  virtual FileFormat format() const = 0;
  // In the order of the file.
  const std::vector<TensorEntry>& entries() const { return entries_; }
  // Texts beside the tensors: safetensors' metadata, plain values of a PyTorch checkpoint.
  const Metadata& metadata() const { return metadata_; }
  // What a PyTorch state dict says of its modules, by their paths: {"norm": {"version": 2}}.
  const std::map<std::string, nn::StateMetadata, std::less<>>& state_metadata() const {
    return state_metadata_;
  }
  // All of a PyTorch file; null for another format.
  virtual const PickleValue* value() const { return nullptr; }

  // Null when there is none of that name.
  const TensorEntry* find(std::string_view name) const;
  // The values, row-major, in memory of their own. Throws ValueError for an unknown name, IoError
  // when they cannot be read.
  Tensor read(std::string_view name) const;
  // All of them. Those of a PyTorch file that share a storage share memory, and keep their strides.
  nn::StateDict read_all() const;

 protected:
  // Fills the index; throws IoError when a name occurs twice.
  void set_entries(const std::string& path, std::vector<TensorEntry> entries);
  virtual Tensor read_entry(size_t entry) const = 0;
  virtual std::vector<Tensor> read_entries() const;

  Metadata metadata_;
  std::map<std::string, nn::StateMetadata, std::less<>> state_metadata_;

 private:
  void check_readable(const TensorEntry& entry) const;

  std::string path_;
  std::vector<TensorEntry> entries_;
  std::map<std::string, size_t, std::less<>> index_;
};

struct ReadOptions {
  // Where in a PyTorch checkpoint the state dict lies: "model", "ema.state_dict"; "." for
  // everything, nested names joined by dots. Empty: the one dict of tensors that there is, or the
  // one with a usual name ("state_dict", "model_state_dict", "model", ...). Other formats have no
  // such place: then a ValueError.
  std::string key;
  // The most bytes of memory that a compressed file may take for each of its own, beside 16 MiB
  // (see Budget). A larger one is for files that you trust: zeros are compressed a thousand to one.
  uint64_t max_ratio = Budget::kRatio;
};

// Opens a model file of any format, recognized by what it holds. Throws IoError when it is missing,
// malformed, refused or of no known format, or when it is not clear which part is meant.
std::unique_ptr<ModelReader> open_model_file(const std::string& path,
                                             const ReadOptions& options = {});

}  // namespace kiln::io
