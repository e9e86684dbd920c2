#include "kiln/io/model_reader.h"

#include "kiln/core/error.h"
#include "kiln/io/npy_file.h"
#include "kiln/io/sharded.h"
#include "kiln/io/torch_state.h"
#include "kiln/tensor/host_memory.h"

namespace kiln::io {

namespace {

constexpr const char* kOp = "load_model";

uint64_t bytes_of(const Shape& shape, DType dtype) {
  return static_cast<uint64_t>(shape.numel()) * size_of(dtype);
}

TensorEntry readable(const std::string& name, const Shape& shape, DType dtype) {
  return {name, shape, dtype, bytes_of(shape, dtype), to_string(dtype), ""};
}

class SafetensorsModel final : public ModelReader {
 public:
  explicit SafetensorsModel(const std::string& path) : reader_(path) {
    std::vector<TensorEntry> entries;
    entries.reserve(reader_.keys().size());
    for (const std::string& key : reader_.keys()) {
      entries.push_back(readable(key, reader_.shape(key), reader_.dtype(key)));
    }
    set_entries(path, std::move(entries));
    metadata_ = reader_.metadata();
  }
  FileFormat format() const override { return FileFormat::safetensors; }

 private:
  Tensor read_entry(size_t entry) const override {
    return tensor_over(reader_.read(entries()[entry].name));
  }
  SafetensorsReader reader_;
};

class NpzModel final : public ModelReader {
 public:
  explicit NpzModel(const std::string& path, uint64_t max_ratio) : reader_(path, max_ratio) {
    std::vector<TensorEntry> entries;
    for (const NpyArray& a : reader_.arrays()) {
      entries.push_back({a.name, a.shape, a.dtype,
                         a.refusal.empty() ? bytes_of(a.shape, a.dtype) : 0, a.type_name,
                         a.refusal});
    }
    set_entries(path, std::move(entries));
  }
  FileFormat format() const override { return FileFormat::npz; }

 private:
  Tensor read_entry(size_t entry) const override { return reader_.read(entry); }
  NpzReader reader_;
};

// One array, which has no name of its own.
class NpyModel final : public ModelReader {
 public:
  explicit NpyModel(const std::string& path) : path_(path) {
    const NpyArray a = describe_npy(path);
    set_entries(path,
                {{"array", a.shape, a.dtype, a.refusal.empty() ? bytes_of(a.shape, a.dtype) : 0,
                  a.type_name, a.refusal}});
  }
  FileFormat format() const override { return FileFormat::npy; }

 private:
  Tensor read_entry(size_t) const override { return load_npy(path_); }
  std::string path_;
};

}  // namespace

void ModelReader::set_entries(const std::string& path, std::vector<TensorEntry> entries) {
  path_ = path;
  entries_ = std::move(entries);
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!index_.try_emplace(entries_[i].name, i).second) {
      throw_error<IoError>(kOp, ": '", path, "' is malformed: two tensors have one name; got '",
                           printable(entries_[i].name), "'; expected distinct names");
    }
  }
}

const TensorEntry* ModelReader::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

Tensor ModelReader::read(std::string_view name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) {
    throw_error<ValueError>(kOp, ": '", path_, "' has no such tensor; got '",
                            printable(std::string(name)), "'; expected one of its ",
                            entries_.size());
  }
  check_readable(entries_[found->second]);
  return read_entry(found->second);
}

void ModelReader::check_readable(const TensorEntry& entry) const {
  if (entry.refusal.empty()) return;
  throw_error<IoError>(kOp, ": '", path_, "': the tensor '", printable(entry.name),
                       "' cannot be read: ", entry.refusal, "; got ", printable(entry.type_name),
                       " ", entry.shape, "; expected a dtype of Kiln");
}

std::vector<Tensor> ModelReader::read_entries() const {
  std::vector<Tensor> out;
  out.reserve(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) out.push_back(read_entry(i));
  return out;
}

nn::StateDict ModelReader::read_all() const {
  for (const TensorEntry& entry : entries_) check_readable(entry);
  std::vector<Tensor> tensors = read_entries();
  nn::StateDict out;
  out.metadata() = state_metadata_;
  for (size_t i = 0; i < entries_.size(); ++i) out.set(entries_[i].name, std::move(tensors[i]));
  return out;
}

std::unique_ptr<ModelReader> open_model_file(const std::string& path, const ReadOptions& options) {
  const FileFormat format = recognize(InputFile(kOp, path));
  const bool is_torch = format == FileFormat::torch || format == FileFormat::torch_legacy;
  if (!options.key.empty() && !is_torch) {
    throw_error<ValueError>(kOp, ": only a PyTorch checkpoint has places inside; got key '",
                            printable(options.key), "' for '", path, "', which is ",
                            to_string(format), "; expected no key");
  }
  switch (format) {
    case FileFormat::safetensors:
      return std::make_unique<SafetensorsModel>(path);
    case FileFormat::sharded:
      return detail::open_sharded(path, options);
    case FileFormat::torch:
    case FileFormat::torch_legacy:
      return detail::open_torch_model(path, options);
    case FileFormat::npz:
      return std::make_unique<NpzModel>(path, options.max_ratio);
    case FileFormat::npy:
      return std::make_unique<NpyModel>(path);
  }
  throw_error<IoError>(kOp, ": '", path, "': unknown format");
}

}  // namespace kiln::io
