#include "kiln/io/model_store.h"

#include "kiln/nn/module.h"
#include "kiln/nn/state_source.h"

namespace kiln::io {
namespace {

class FileSource final : public nn::detail::StateSource {
 public:
  explicit FileSource(const std::string& path) : reader_(path) {}
  std::vector<std::string> keys() const override { return reader_.keys(); }
  bool contains(const std::string& key) const override { return reader_.contains(key); }
  Shape shape(const std::string& key) const override { return reader_.shape(key); }
  Tensor read(const std::string& key) const override { return Tensor(reader_.read(key)); }
  bool gives_away() const override { return true; }

 private:
  SafetensorsReader reader_;
};

}  // namespace

void save_into(const nn::Module& module, const std::string& path,
               const nn::TransferOptions& options, const Metadata& metadata) {
  NamedTensors tensors;
  for (const auto& [name, value] : nn::collect(module, options)) {
    tensors.emplace_back(name, value.to_data());
  }
  save_safetensors(path, tensors, metadata);
}

nn::ApplyResult load_from(nn::Module& module, const std::string& path,
                          const nn::TransferOptions& options) {
  return nn::detail::apply_source(module, FileSource(path), options);
}

}  // namespace kiln::io
