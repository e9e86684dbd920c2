// A part of a model's state in model files of any format, renamed and re-laid on the way: what
// kiln/nn/transfer.h does, with files.
#pragma once

#include <string>

#include "kiln/io/safetensors.h"
#include "kiln/nn/transfer.h"

namespace kiln::io {

// Writes collect(module, options).
void save_into(const nn::Module& module, const std::string& path,
               const nn::TransferOptions& options = {}, const Metadata& metadata = {});
// Reads what the options ask for, tensor by tensor, and applies it as nn::apply does. Throws
// IoError for a malformed file.
nn::ApplyResult load_from(nn::Module& module, const std::string& path,
                          const nn::TransferOptions& options = {});

}  // namespace kiln::io
