// A model file as where a module takes its state from.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kiln/io/model_reader.h"
#include "kiln/nn/state_source.h"

namespace kiln::io::detail {

// The tensors of a file whose names begin with a prefix, under the rest of their names.
class ModelSource final : public nn::detail::StateSource {
 public:
  explicit ModelSource(const ModelReader& reader, std::string prefix = "")
      : reader_(reader), prefix_(std::move(prefix)) {}

  std::vector<std::string> keys() const override {
    std::vector<std::string> out;
    for (const TensorEntry& entry : reader_.entries()) {
      if (entry.name.starts_with(prefix_)) out.push_back(entry.name.substr(prefix_.size()));
    }
    return out;
  }
  bool contains(const std::string& key) const override {
    return reader_.find(prefix_ + key) != nullptr;
  }
  Shape shape(const std::string& key) const override { return reader_.find(prefix_ + key)->shape; }
  Tensor read(const std::string& key) const override { return reader_.read(prefix_ + key); }
  const nn::StateMetadata* metadata(const std::string& path) const override {
    const auto found = reader_.state_metadata().find(prefix_ + path);
    return found == reader_.state_metadata().end() ? nullptr : &found->second;
  }
  bool gives_away() const override { return true; }

 private:
  const ModelReader& reader_;
  std::string prefix_;
};

}  // namespace kiln::io::detail
