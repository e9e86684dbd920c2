// Models, optimizers and checkpoints in files. Every function that writes replaces a file only when
// the new one is complete; every function that reads changes nothing when the file is malformed or
// does not fit.
//
// A file to read is recognized by what it holds: safetensors (one file or an index of shards),
// PyTorch's .pt in both forms, .npz, .npy. A file to write has the format of its extension:
// .safetensors, NumPy's .npz and .npy; anything else (.pt, .ckpt, none) is PyTorch's.
#pragma once

#include <string>

#include "kiln/io/model_reader.h"
#include "kiln/io/safetensors.h"
#include "kiln/nn/state_dict.h"

namespace kiln::nn {
class Module;
}
namespace kiln::optim {
class Optimizer;
}

namespace kiln::io {

// What a file gave beside the values.
struct LoadedModel {
  nn::IncompatibleKeys keys;
  Metadata metadata;
};

struct SaveOptions {
  // Kept by safetensors and PyTorch's format; NumPy's have no place for it.
  Metadata metadata = {};
  // Bytes of values in one file; more go to several with an index (see save_sharded). 0: one file.
  // Safetensors only.
  uint64_t max_shard_size = 0;
  // .npz only.
  bool compressed = false;
};

// Writes a module's state dict.
void save_model(const nn::Module& module, const std::string& path, const Metadata& metadata = {});
// Reads it back, from a file of any format: lazy parameters take the tensors as they come from the
// file, initialized ones are copied into, both converted to the module's dtypes and devices. Throws
// IoError for a malformed file, and RuntimeError with all that does not fit, as
// Module::load_state_dict does; nothing is changed then.
LoadedModel load_model(nn::Module& module, const std::string& path, bool strict = true,
                       const ReadOptions& options = {});

// A file's tensors without a module.
struct ModelFile {
  FileFormat format = FileFormat::safetensors;
  nn::StateDict tensors;
  Metadata metadata;
};
ModelFile load_model_file(const std::string& path, const ReadOptions& options = {});
// Throws ValueError for an option that the format lacks, for an .npy unless there is one tensor,
// and what the format's own function throws.
void save_model_file(const std::string& path, const nn::StateDict& tensors,
                     const SaveOptions& options = {});

// An optimizer's state; see optim::OptimizerState for the names. As with save_model_file, the
// extension decides the format: .safetensors, or PyTorch's.
void save_optimizer(const optim::Optimizer& optimizer, const std::string& path,
                    const Metadata& metadata = {});
Metadata load_optimizer(optim::Optimizer& optimizer, const std::string& path);

// All that training continues from, in one file: the module ("model." before its names), the
// optimizer ("optimizer."), the state of the default random generator, and `metadata`, which the
// loader returns.
void save_checkpoint(const std::string& path, const nn::Module& module,
                     const optim::Optimizer& optimizer, const Metadata& metadata = {});
Metadata load_checkpoint(const std::string& path, nn::Module& module, optim::Optimizer& optimizer);

}  // namespace kiln::io
