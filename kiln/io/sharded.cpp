#include "kiln/io/sharded.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "kiln/core/error.h"
#include "kiln/io/atomic_file.h"
#include "kiln/tensor/host_memory.h"

namespace kiln::io {

namespace {

constexpr const char* kSaveSharded = "save_sharded";
constexpr std::string_view kExtension = ".safetensors";
constexpr const char* kIndexExtension = ".index.json";
constexpr uint64_t kLongestIndex = 100'000'000;  // as for a safetensors header

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

std::string stem_of(const std::string& path) {
  const bool has_extension = path.ends_with(kExtension);
  return has_extension ? path.substr(0, path.size() - kExtension.size()) : path;
}

// A set has plain names, or these where the set that it replaces has plain ones.
constexpr std::string_view kOtherNames = "-v2";

// "dir/model-00002-of-00003.safetensors" for "dir/model.safetensors".
std::vector<std::string> shard_paths(const std::string& path, size_t shards,
                                     std::string_view names) {
  std::vector<std::string> out;
  for (size_t i = 0; i < shards; ++i) {
    char number[48];
    std::snprintf(number, sizeof number, "-%05zu-of-%05zu", i + 1, shards);
    out.push_back(concat(stem_of(path), names, number, kExtension));
  }
  return out;
}

// Whether `name` is one that shard_paths gives for `path`, without its folder.
bool is_shard_name(const std::string& path, std::string_view name) {
  const std::string stem = stem_of(path).substr(folder_of(path).size());
  if (!name.starts_with(stem) || !name.ends_with(kExtension)) return false;
  name = name.substr(stem.size(), name.size() - stem.size() - kExtension.size());
  if (name.starts_with(kOtherNames)) name.remove_prefix(kOtherNames.size());
  // "-00001-of-00003"; more digits where there are more files.
  const auto take = [&](std::string_view word) {
    if (!name.starts_with(word)) return false;
    name.remove_prefix(word.size());
    const size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    name.remove_prefix(digits);
    return digits >= 5;
  };
  return take("-") && take("-of-") && name.empty();
}

class ShardedModel final : public ModelReader {
 public:
  ShardedModel(const std::string& path, const ReadOptions& options) {
    const std::string json = InputFile("load_model", path).read_whole(kLongestIndex);
    detail::ShardIndex index = detail::parse_shard_index(path, json);
    std::map<std::string, size_t> open;
    std::vector<TensorEntry> entries;
    entries.reserve(index.weight_map.size());
    for (const auto& [name, shard] : index.weight_map) {
      const auto [found, is_new] = open.try_emplace(shard, shards_.size());
      if (is_new) shards_.push_back(open_shard(folder_of(path) + shard, options));
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
  static std::unique_ptr<ModelReader> open_shard(const std::string& path,
                                                 const ReadOptions& options) {
    if (recognize(InputFile("load_model", path)) == FileFormat::sharded) {
      throw_error<IoError>("load_model: '", path, "' is an index, named by another index; got ",
                           "an index; expected a model file");
    }
    return open_model_file(path, {.key = "", .max_ratio = options.max_ratio});
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

std::string index_json(const std::vector<std::string>& paths,
                       const std::vector<NamedTensors>& shards) {
  std::string map;
  uint64_t total = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = paths[i].substr(folder_of(paths[i]).size());
    for (const auto& [key, data] : shards[i]) {
      map += concat(map.empty() ? "" : ",", "\n    ", nlohmann::json(key).dump(), ": ",
                    nlohmann::json(name).dump());
      total += data.bytes();
    }
  }
  return concat("{\n  \"metadata\": {\n    \"total_size\": ", total, "\n  },\n  \"weight_map\": {",
                map, "\n  }\n}\n");
}

// The names of files, without their folder, that the index of an earlier save uses.
std::set<std::string> names_in_use(const std::string& path) {
  std::set<std::string> out;
  const std::string index = path + kIndexExtension;
  std::error_code ignored;
  if (!std::filesystem::exists(index, ignored)) return out;
  try {
    const std::string json = InputFile(kSaveSharded, index).read_whole(kLongestIndex);
    for (const auto& [name, shard] : detail::parse_shard_index(index, json).weight_map) {
      out.insert(shard);
    }
  } catch (const Error&) {
    // An index that cannot be read leads to nothing that could be lost.
  }
  return out;
}

// The paths of the new set: none of them is in use.
std::vector<std::string> free_paths(const std::string& path, size_t shards) {
  const std::set<std::string> used = names_in_use(path);
  std::vector<std::string> paths = shard_paths(path, shards, "");
  for (const std::string& plain : paths) {
    if (used.contains(plain.substr(folder_of(plain).size()))) {
      return shard_paths(path, shards, kOtherNames);
    }
  }
  return paths;
}

void remove_file(const std::string& path) {
  detail::before_file_step("unlink");
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return;
  throw_error<IoError>(kSaveSharded, ": cannot remove the old file '", path, "'; got ",
                       std::generic_category().message(errno),
                       "; expected a folder that may be written");
}

// What earlier saves to this path left: their sets, and what they had written when they were
// killed.
void remove_other_shards(const std::string& path, const std::vector<std::string>& kept) {
  const std::string folder = folder_of(path);
  std::vector<std::string> old;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder.empty() ? "." : folder, error), end;
       !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (is_shard_name(path, name) &&
        std::find(kept.begin(), kept.end(), folder + name) == kept.end()) {
      old.push_back(folder + name);
    }
  }
  for (const std::string& name : old) remove_file(name);
}

}  // namespace

std::vector<std::string> save_sharded(const std::string& path, const nn::StateDict& tensors,
                                      uint64_t max_shard_size, const Metadata& metadata) {
  if (max_shard_size == 0) {
    throw_error<ValueError>(kSaveSharded,
                            ": no file can be that small; got a size of 0 bytes; expected "
                            "at least 1");
  }
  const std::vector<NamedTensors> shards = split(tensors, max_shard_size);
  const std::string index = path + kIndexExtension;
  const bool single = shards.size() == 1;
  std::vector<std::string> paths =
      single ? std::vector<std::string>{path} : free_paths(path, shards.size());
  std::vector<std::unique_ptr<AtomicFile>> files;
  for (size_t i = 0; i < shards.size(); ++i) {
    files.push_back(std::make_unique<AtomicFile>(kSaveSharded, paths[i]));
    detail::fill_safetensors(*files.back(), shards[i], metadata);
    files.back()->sync();
  }
  if (single) {
    files[0]->commit();
    remove_file(index);
    remove_other_shards(path, {});
    return paths;
  }
  AtomicFile file(kSaveSharded, index);
  file.write(index_json(paths, shards));
  file.sync();
  for (auto& shard : files) shard->commit();
  file.commit();
  remove_other_shards(path, paths);
  remove_file(path);  // an earlier save that fitted into one file
  paths.insert(paths.begin(), index);
  return paths;
}

namespace detail {

std::unique_ptr<ModelReader> open_sharded(const std::string& path, const ReadOptions& options) {
  return std::make_unique<ShardedModel>(path, options);
}

}  // namespace detail
}  // namespace kiln::io
