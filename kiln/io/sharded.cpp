#include "kiln/io/sharded.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "kiln/core/error.h"
#include "kiln/io/atomic_file.h"
#include "kiln/tensor/host_memory.h"

namespace kiln::io {

namespace {

constexpr const char* kSave = "save_sharded";
constexpr const char* kExtension = ".safetensors";
constexpr const char* kIndexExtension = ".index.json";
constexpr uint64_t kLongestIndex = 100'000'000;  // as for a safetensors header

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

// "dir/model-00002-of-00003.safetensors" for "dir/model.safetensors".
std::string shard_path(const std::string& path, size_t shard, size_t shards) {
  char number[48];
  std::snprintf(number, sizeof number, "-%05zu-of-%05zu", shard + 1, shards);
  const bool has_extension = path.ends_with(kExtension);
  const std::string stem =
      has_extension ? path.substr(0, path.size() - std::string_view(kExtension).size()) : path;
  return stem + number + kExtension;
}

class ShardedModel final : public ModelReader {
 public:
  explicit ShardedModel(const std::string& path) {
    const InputFile file("load_model", path);
    if (file.size() > kLongestIndex) {
      throw_error<IoError>("load_model: '", path, "' is malformed: the index is too long; got ",
                           file.size(), " bytes; expected at most ", kLongestIndex);
    }
    std::string json(static_cast<size_t>(file.size()), '\0');
    file.read_at(0, json.data(), json.size());
    detail::ShardIndex index = detail::parse_shard_index(path, json);
    std::map<std::string, size_t> open;
    std::vector<TensorEntry> entries;
    entries.reserve(index.weight_map.size());
    for (const auto& [name, shard] : index.weight_map) {
      const auto [found, is_new] = open.try_emplace(shard, shards_.size());
      if (is_new) shards_.push_back(open_shard(folder_of(path) + shard));
      const TensorEntry* entry = shards_[found->second]->find(name);
      if (entry == nullptr) {
        throw_error<IoError>("load_model: '", path, "' is malformed: tensor '", printable(name),
                             "' is not in the file that the index names; got '", printable(shard),
                             "'; expected a file that has it");
      }
      entries.push_back(*entry);
      places_.push_back(found->second);
    }
    set_entries(path, std::move(entries));
    metadata_ = std::move(index.metadata);
    for (const auto& shard : shards_) {
      for (const auto& [key, value] : shard->metadata()) metadata_.emplace(key, value);
    }
  }
  FileFormat format() const override { return FileFormat::sharded; }

 private:
  static std::unique_ptr<ModelReader> open_shard(const std::string& path) {
    if (recognize(InputFile("load_model", path)) == FileFormat::sharded) {
      throw_error<IoError>("load_model: '", path, "' is an index, named by another index; got ",
                           "an index; expected a model file");
    }
    return open_model_file(path);
  }
  Tensor read_entry(size_t entry) const override {
    return shards_[places_[entry]]->read(entries()[entry].name);
  }

  std::vector<std::unique_ptr<ModelReader>> shards_;
  std::vector<size_t> places_;  // the shard of each entry
};

std::vector<NamedTensors> split(const nn::StateDict& tensors, uint64_t max_shard_size) {
  std::vector<NamedTensors> shards(1);
  uint64_t size = 0;
  for (const auto& [name, value] : tensors) {
    TensorData data = shared_data(value);
    if (!shards.back().empty() && size + data.bytes() > max_shard_size) {
      shards.emplace_back();
      size = 0;
    }
    size += data.bytes();
    shards.back().emplace_back(name, std::move(data));
  }
  return shards;
}

std::string index_json(const std::string& path, const std::vector<NamedTensors>& shards) {
  std::string map;
  uint64_t total = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_path(path, i, shards.size()).substr(folder_of(path).size());
    for (const auto& [key, data] : shards[i]) {
      map += concat(map.empty() ? "" : ",", "\n    ", nlohmann::json(key).dump(), ": ",
                    nlohmann::json(name).dump());
      total += data.bytes();
    }
  }
  return concat("{\n  \"metadata\": {\n    \"total_size\": ", total, "\n  },\n  \"weight_map\": {",
                map, "\n  }\n}\n");
}

// The files of an earlier save to this path: those its index names, if they are named as its shards
// are.
std::vector<std::string> old_shards(const std::string& path) {
  std::vector<std::string> out;
  const std::string index = path + kIndexExtension;
  std::error_code ignored;
  if (!std::filesystem::exists(index, ignored)) return out;
  try {
    const InputFile file(kSave, index);
    std::string json(static_cast<size_t>(std::min(file.size(), kLongestIndex)), '\0');
    file.read_at(0, json.data(), json.size());
    const std::string model = shard_path(path, 0, 1);
    for (const auto& [name, shard] : detail::parse_shard_index(index, json).weight_map) {
      const std::string old = folder_of(path) + shard;
      const size_t number = model.size() - std::string_view("00001-of-00001.safetensors").size();
      if (old.size() == model.size() && old.substr(0, number) == model.substr(0, number) &&
          old.ends_with(kExtension)) {
        out.push_back(old);
      }
    }
  } catch (const Error&) {
    // An index that cannot be read names nothing that may be removed.
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void remove_file(const std::string& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  if (error) {
    throw_error<IoError>(kSave, ": cannot remove the old file '", path, "'; got ", error.message(),
                         "; expected a folder that may be written");
  }
}

}  // namespace

std::vector<std::string> save_sharded(const std::string& path, const nn::StateDict& tensors,
                                      uint64_t max_shard_size, const Metadata& metadata) {
  if (max_shard_size == 0) {
    throw_error<ValueError>(kSave,
                            ": no file can be that small; got a size of 0 bytes; expected "
                            "at least 1");
  }
  const std::vector<NamedTensors> shards = split(tensors, max_shard_size);
  const std::string index = path + kIndexExtension;
  const bool single = shards.size() == 1;
  std::vector<std::string> paths;
  std::vector<std::unique_ptr<AtomicFile>> files;
  for (size_t i = 0; i < shards.size(); ++i) {
    paths.push_back(single ? path : shard_path(path, i, shards.size()));
    files.push_back(std::make_unique<AtomicFile>(kSave, paths.back()));
    detail::fill_safetensors(*files.back(), shards[i], metadata);
    files.back()->sync();
  }
  if (!single) {
    AtomicFile file(kSave, index);
    file.write(index_json(path, shards));
    file.sync();
    const std::vector<std::string> old = old_shards(path);
    remove_file(index);
    for (auto& shard : files) shard->commit();
    file.commit();
    for (const std::string& shard : old) {
      if (std::find(paths.begin(), paths.end(), shard) == paths.end()) remove_file(shard);
    }
    remove_file(path);  // an earlier save that fitted into one file
    paths.insert(paths.begin(), index);
    return paths;
  }
  const std::vector<std::string> old = old_shards(path);
  remove_file(index);
  files[0]->commit();
  for (const std::string& shard : old) remove_file(shard);
  return paths;
}

namespace detail {

std::unique_ptr<ModelReader> open_sharded(const std::string& path) {
  return std::make_unique<ShardedModel>(path);
}

}  // namespace detail
}  // namespace kiln::io
