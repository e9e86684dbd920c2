#include "kiln/io/model_file.h"

#include <charconv>

#include "kiln/core/error.h"
#include "kiln/core/random.h"
#include "kiln/io/model_source.h"
#include "kiln/io/npy_file.h"
#include "kiln/io/sharded.h"
#include "kiln/io/torch_state.h"
#include "kiln/nn/module.h"
#include "kiln/optim/optimizer.h"
#include "kiln/tensor/host_memory.h"

namespace kiln::io {
namespace {

const std::string kModelPrefix = "model.";
const std::string kOptimizerPrefix = "optimizer.";
const std::string kRandomSeed = "random.seed";
const std::string kRandomOffset = "random.offset";

void append(const nn::StateDict& tensors, const std::string& prefix, NamedTensors& out) {
  for (const auto& [name, value] : tensors) out.emplace_back(prefix + name, shared_data(value));
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

optim::OptimizerState read_optimizer(const ModelReader& reader, Metadata& metadata) {
  optim::OptimizerState state;
  state.scalars = take_prefixed(kOptimizerPrefix, metadata);
  const detail::ModelSource source(reader, kOptimizerPrefix);
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

// A PyTorch state dict; the metadata is an attribute of it, which PyTorch carries along.
void save_torch_state(const std::string& path, const nn::StateDict& tensors,
                      const Metadata& metadata) {
  PickleDict dict = pickle_of(tensors);
  if (!metadata.empty()) {
    PickleDict texts;
    for (const auto& [key, value] : metadata) texts.items.push_back({key, value});
    dict.attributes.push_back({detail::kMetadataAttribute, std::move(texts)});
  }
  save_torch(path, PickleValue(std::move(dict)));
}

// In the format that the name asks for. Of the others, NumPy's have no place for what is no tensor.
void save_state(const char* op, const std::string& path, const NamedTensors& tensors,
                const Metadata& metadata) {
  const FileFormat format = format_for_writing(path);
  if (format == FileFormat::safetensors) return save_safetensors(path, tensors, metadata);
  if (format != FileFormat::torch) {
    throw_error<ValueError>(op, ": ", to_string(format), " holds tensors alone; got '", path,
                            "'; expected .safetensors or .pt");
  }
  nn::StateDict state;
  for (const auto& [name, data] : tensors) state.set(name, tensor_over(data));
  save_torch_state(path, state, metadata);
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
  save_model_file(path, module.state_dict(), {.metadata = metadata});
}

LoadedModel load_model(nn::Module& module, const std::string& path, bool strict,
                       const ReadOptions& options) {
  const auto reader = open_model_file(path, options);
  LoadedModel out;
  try {
    out.keys = nn::detail::load_state(module, detail::ModelSource(*reader, ""), strict);
  } catch (const RuntimeError& error) {
    throw_error<RuntimeError>("load_model: '", path, "': ", error.what());
  }
  out.metadata = reader->metadata();
  return out;
}

ModelFile load_model_file(const std::string& path, const ReadOptions& options) {
  const auto reader = open_model_file(path, options);
  ModelFile out;
  out.format = reader->format();
  out.tensors = reader->read_all();
  out.metadata = reader->metadata();
  return out;
}

void save_model_file(const std::string& path, const nn::StateDict& tensors,
                     const SaveOptions& options) {
  const FileFormat format = format_for_writing(path);
  if ((options.max_shard_size != 0 && format != FileFormat::safetensors) ||
      (options.compressed && format != FileFormat::npz)) {
    throw_error<ValueError>("save_model_file: ", to_string(format), " has no such option; got ",
                            options.compressed ? "compressed" : "max_shard_size", " for '", path,
                            "'; expected it for ", options.compressed ? ".npz" : ".safetensors",
                            " only");
  }
  switch (format) {
    case FileFormat::torch:
      save_torch_state(path, tensors, options.metadata);
      break;
    case FileFormat::npz:
      save_npz(path, tensors, options.compressed);
      break;
    case FileFormat::npy:
      if (tensors.size() != 1) {
        throw_error<ValueError>("save_model_file: an .npy holds one array; got ", tensors.size(),
                                " tensors for '", path, "'; expected one (try .npz)");
      }
      save_npy(path, tensors.begin()->second);
      break;
    default:
      if (options.max_shard_size != 0) {
        save_sharded(path, tensors, options.max_shard_size, options.metadata);
      } else {
        NamedTensors all;
        append(tensors, "", all);
        save_safetensors(path, all, options.metadata);
      }
  }
}

void save_optimizer(const optim::Optimizer& optimizer, const std::string& path,
                    const Metadata& metadata) {
  check_free("save_optimizer", metadata);
  NamedTensors tensors;
  Metadata all = metadata;
  append(optimizer.state_dict(), kOptimizerPrefix, tensors, all);
  save_state("save_optimizer", path, tensors, all);
}

Metadata load_optimizer(optim::Optimizer& optimizer, const std::string& path) {
  const auto reader = open_model_file(path);
  Metadata metadata = reader->metadata();
  optimizer.load_state_dict(read_optimizer(*reader, metadata));
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
  save_state("save_checkpoint", path, tensors, all);
}

Metadata load_checkpoint(const std::string& path, nn::Module& module, optim::Optimizer& optimizer) {
  const auto reader = open_model_file(path);
  Metadata metadata = reader->metadata();
  RandomStream random;
  random.seed = take_number(path, kRandomSeed, metadata);
  random.offset = take_number(path, kRandomOffset, metadata);
  const optim::OptimizerState before = optimizer.state_dict();
  optimizer.load_state_dict(read_optimizer(*reader, metadata));
  try {
    nn::detail::load_state(module, detail::ModelSource(*reader, kModelPrefix), true);
  } catch (...) {
    optimizer.load_state_dict(before);
    throw;
  }
  default_generator().set_state(random);
  return metadata;
}

}  // namespace kiln::io
