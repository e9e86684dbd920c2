// Which tensors of a PyTorch file are the model: the state dict inside a checkpoint.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kiln/io/model_reader.h"
#include "kiln/io/torch_file.h"

namespace kiln::io::detail {

struct TorchState {
  std::vector<std::pair<std::string, StoredTensor>> tensors;  // nested names joined by dots
  std::map<std::string, nn::StateMetadata, std::less<>> state_metadata;
  Metadata metadata;  // plain values of the checkpoint, and what save_model_file wrote
};

// The attribute of the dict that holds the metadata of save_model_file.
inline constexpr const char* kMetadataAttribute = "_kiln_metadata";

// Finds the state dict; see ReadOptions::key. Throws IoError, with the places that there are, when
// it is not clear.
TorchState find_state(const std::string& path, const PickleValue& value, const std::string& key,
                      Budget& budget);

std::unique_ptr<ModelReader> open_torch_model(const std::string& path, const ReadOptions& options);

}  // namespace kiln::io::detail
