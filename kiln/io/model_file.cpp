#include "kiln/io/model_file.h"

#include <charconv>

#include "kiln/core/error.h"
#include "kiln/core/random.h"
#include "kiln/nn/module.h"
#include "kiln/nn/state_source.h"
#include "kiln/optim/optimizer.h"

namespace kiln::io {
namespace {

const std::string kModelPrefix = "model.";
const std::string kOptimizerPrefix = "optimizer.";
const std::string kRandomSeed = "random.seed";
const std::string kRandomOffset = "random.offset";

// The tensors of a file whose names begin with a prefix, under the rest of their names.
class FileSource final : public nn::detail::StateSource {
 public:
  FileSource(const SafetensorsReader& reader, std::string prefix)
      : reader_(reader), prefix_(std::move(prefix)) {}

  std::vector<std::string> keys() const override {
    std::vector<std::string> out;
    for (const std::string& key : reader_.keys()) {
      if (key.starts_with(prefix_)) out.push_back(key.substr(prefix_.size()));
    }
    return out;
  }
  bool contains(const std::string& key) const override { return reader_.contains(prefix_ + key); }
  Shape shape(const std::string& key) const override { return reader_.shape(prefix_ + key); }
  Tensor read(const std::string& key) const override { return Tensor(reader_.read(prefix_ + key)); }
  bool gives_away() const override { return true; }

 private:
  const SafetensorsReader& reader_;
  std::string prefix_;
};

void append(const nn::StateDict& tensors, const std::string& prefix, NamedTensors& out) {
  for (const auto& [name, value] : tensors) out.emplace_back(prefix + name, value.to_data());
}

void append(const optim::OptimizerState& state, const std::string& prefix, NamedTensors& tensors,
            Metadata& metadata) {
  append(state.tensors, prefix, tensors);
  for (const auto& [name, value] : state.scalars) metadata[prefix + name] = value;
}

// Moves the entries whose names begin with a prefix out of `metadata`, under the rest of their
// names.
Metadata take_prefixed(const std::string& prefix, Metadata& metadata) {
  Metadata out;
  for (auto it = metadata.begin(); it != metadata.end();) {
    if (it->first.starts_with(prefix)) {
      out[it->first.substr(prefix.size())] = std::move(it->second);
      it = metadata.erase(it);
    } else {
      ++it;
    }
  }
  return out;
}

optim::OptimizerState read_optimizer(const SafetensorsReader& reader, Metadata& metadata) {
  optim::OptimizerState state;
  state.scalars = take_prefixed(kOptimizerPrefix, metadata);
  const FileSource source(reader, kOptimizerPrefix);
  for (const std::string& key : source.keys()) state.tensors.set(key, source.read(key));
  return state;
}

void check_free(const char* op, const Metadata& metadata) {
  for (const auto& [name, value] : metadata) {
    if (name.starts_with(kOptimizerPrefix) || name == kRandomSeed || name == kRandomOffset) {
      throw_error<ValueError>(op, ": the metadata name '", name, "' is taken by the file format");
    }
  }
}

uint64_t take_number(const std::string& path, const std::string& key, Metadata& metadata) {
  uint64_t out = 0;
  const auto found = metadata.find(key);
  const std::string text = found == metadata.end() ? "" : found->second;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), out);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) {
    throw_error<IoError>("load_checkpoint: '", path, "' is no checkpoint: '", key,
                         "' is no number; got '", printable(text), "'");
  }
  metadata.erase(found);
  return out;
}

}  // namespace

void save_model(const nn::Module& module, const std::string& path, const Metadata& metadata) {
  NamedTensors tensors;
  append(module.state_dict(), "", tensors);
  save_safetensors(path, tensors, metadata);
}

LoadedModel load_model(nn::Module& module, const std::string& path, bool strict) {
  const SafetensorsReader reader(path);
  const FileSource source(reader, "");
  LoadedModel out;
  out.keys = nn::detail::load_state(module, source, strict);
  out.metadata = reader.metadata();
  return out;
}

void save_optimizer(const optim::Optimizer& optimizer, const std::string& path,
                    const Metadata& metadata) {
  check_free("save_optimizer", metadata);
  NamedTensors tensors;
  Metadata all = metadata;
  append(optimizer.state_dict(), kOptimizerPrefix, tensors, all);
  save_safetensors(path, tensors, all);
}

Metadata load_optimizer(optim::Optimizer& optimizer, const std::string& path) {
  const SafetensorsReader reader(path);
  Metadata metadata = reader.metadata();
  optimizer.load_state_dict(read_optimizer(reader, metadata));
  return metadata;
}

void save_checkpoint(const std::string& path, const nn::Module& module,
                     const optim::Optimizer& optimizer, const Metadata& metadata) {
  check_free("save_checkpoint", metadata);
  NamedTensors tensors;
  Metadata all = metadata;
  append(module.state_dict(), kModelPrefix, tensors);
  append(optimizer.state_dict(), kOptimizerPrefix, tensors, all);
  const RandomStream random = default_generator().state();
  all[kRandomSeed] = std::to_string(random.seed);
  all[kRandomOffset] = std::to_string(random.offset);
  save_safetensors(path, tensors, all);
}

Metadata load_checkpoint(const std::string& path, nn::Module& module, optim::Optimizer& optimizer) {
  const SafetensorsReader reader(path);
  Metadata metadata = reader.metadata();
  RandomStream random;
  random.seed = take_number(path, kRandomSeed, metadata);
  random.offset = take_number(path, kRandomOffset, metadata);
  const optim::OptimizerState before = optimizer.state_dict();
  optimizer.load_state_dict(read_optimizer(reader, metadata));
  try {
    nn::detail::load_state(module, FileSource(reader, kModelPrefix), true);
  } catch (...) {
    optimizer.load_state_dict(before);
    throw;
  }
  default_generator().set_state(random);
  return metadata;
}

}  // namespace kiln::io
