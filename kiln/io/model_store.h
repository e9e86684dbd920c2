// A part of a model's state in files of any format, renamed and re-laid on the way: what
// kiln/nn/transfer.h does, with files.
#pragma once

#include <string>

#include "kiln/io/model_reader.h"
#include "kiln/io/safetensors.h"
#include "kiln/nn/transfer.h"

namespace kiln::io {

// Writes collect(module, options) in the format of the path's extension.
void save_into(const nn::Module& module, const std::string& path,
               const nn::TransferOptions& options = {}, const Metadata& metadata = {});
// Reads what the options ask for, tensor by tensor, and applies it as nn::apply does. `read` says
// where in a PyTorch checkpoint the tensors lie. Throws IoError for a malformed file.
nn::ApplyResult load_from(nn::Module& module, const std::string& path,
                          const nn::TransferOptions& options = {}, const ReadOptions& read = {});

}  // namespace kiln::io
