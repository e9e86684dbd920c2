// Models in several safetensors files with an index, as Hugging Face writes them:
// model.safetensors.index.json beside model-00001-of-00003.safetensors and so on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kiln/io/model_reader.h"
#include "kiln/nn/state_dict.h"

namespace kiln::io {

// Writes `tensors` to files of at most `max_shard_size` bytes of values each (a larger tensor gets
// a file of its own), in the order given. For the path "dir/model.safetensors": that one file when
// all fit into it, else dir/model-00001-of-00003.safetensors, ..., and
// dir/model.safetensors.index.json; "model-v2-00001-of-..." where the set that is there has the
// plain names. Returns the paths of the files, the one to open first in front.
//
// At every moment the old set or the new one can be loaded: every file is complete and on disk
// before the first gets its name, no name is one that the old index uses, the index comes last, and
// then all files named like shards of this path that are not of the new set are removed. Throws
// ValueError for a size of 0, and what save_safetensors throws; the old set is then as it was.
std::vector<std::string> save_sharded(const std::string& path, const nn::StateDict& tensors,
                                      uint64_t max_shard_size, const Metadata& metadata = {});

namespace detail {

// The index file: which tensor lies in which file, and metadata.
struct ShardIndex {
  std::vector<std::pair<std::string, std::string>> weight_map;  // in the order of the file
  Metadata metadata;
};
// Throws IoError when it is malformed, repeats a name, or names a file outside its folder.
ShardIndex parse_shard_index(const std::string& path, std::string_view json);

// Opens the index and every file that it names. Throws IoError.
std::unique_ptr<ModelReader> open_sharded(const std::string& path, const ReadOptions& options);

}  // namespace detail
}  // namespace kiln::io
