#include "kiln/onnx/read/external.h"

#include <charconv>
#include <filesystem>

#include "kiln/core/error.h"
#include "kiln/onnx/read/call.h"

namespace kiln::onnx {

namespace {

namespace fs = std::filesystem;

// What the parts of a file may add up to, for each of its bytes: tensors may share their values.
constexpr uint64_t kMostShares = 4;

uint64_t bytes_from(const std::string& key, const std::string& text) {
  uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw_error<ValueError>("external data with the ", key, " '", printable(text, 40),
                            "'; expected a number of bytes");
  }
  return out;
}

}  // namespace

ExternalData::ExternalData(const std::string& model_path)
    : folder_(fs::path(model_path).parent_path().string()) {}

io::InputFile& ExternalData::open(const std::string& location) {
  const auto known = files_.find(location);
  if (known != files_.end()) return known->second;
  const auto refuse = [&](const char* why) {
    throw_error<ValueError>("external data in '", printable(location, 80), "': ", why);
  };
  const fs::path path(location);
  if (location.empty() || location.find('\0') != std::string::npos || path.is_absolute() ||
      location.find('\\') != std::string::npos) {
    refuse("expected a path relative to the model's folder");
  }
  for (const fs::path& part : path) {
    if (part == "..") refuse("expected a file in the model's folder");
  }
  std::error_code error;
  const fs::path folder = fs::canonical(folder_.empty() ? "." : folder_, error);
  const fs::path full = error ? fs::path() : fs::canonical(folder / path, error);
  if (error) refuse("there is no such file beside the model");
  const auto [in_folder, in_full] =
      std::mismatch(folder.begin(), folder.end(), full.begin(), full.end());
  if (in_folder != folder.end() || in_full == full.end()) {
    refuse("it is no file in the model's folder");
  }
  return files_.try_emplace(location, "onnx", full.string(), kMostShares).first->second;
}

void ExternalData::fill(wire::Tensor& tensor) {
  if (tensor.data_location == 0 && tensor.external_data.empty()) return;
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  for (const wire::Entry& entry : tensor.external_data) {
    if (entry.key == "location") location = entry.value;
    if (entry.key == "offset") offset = bytes_from("offset", entry.value);
    if (entry.key == "length") length = bytes_from("length", entry.value);
  }
  const uint64_t item = size_of(dtype_of_number(tensor.data_type));
  uint64_t bytes = item;
  for (const int64_t d : tensor.dims) {
    if (d < 0 || (d != 0 && bytes > (uint64_t{1} << 48) / static_cast<uint64_t>(d))) {
      throw_error<ValueError>("external data of a tensor with the size ", d);
    }
    bytes *= static_cast<uint64_t>(d);
  }
  io::InputFile& file = open(location);
  if (length && *length != bytes) {
    throw_error<ValueError>("external data of ", *length, " bytes; its tensor has ", bytes);
  }
  if (offset > file.size() || bytes > file.size() - offset) {
    throw_error<ValueError>("external data of ", bytes, " bytes at ", offset, " of '",
                            printable(location, 80), "', which has ", file.size());
  }
  file.budget().charge(bytes, "its tensors");
  tensor.raw_data.resize(bytes);
  if (bytes != 0) file.read_at(offset, tensor.raw_data.data(), bytes);
  tensor.external_data.clear();
  tensor.data_location = 0;
}

void ExternalData::fill_attributes(std::vector<wire::Node>& nodes) {
  for (wire::Node& node : nodes) {
    for (wire::Attribute& attribute : node.attribute) {
      for (wire::Tensor& t : attribute.t) fill(t);
      for (wire::Tensor& t : attribute.tensors) fill(t);
      for (wire::Graph& g : attribute.g) fill_attributes(g.node);
      for (wire::Graph& g : attribute.graphs) fill_attributes(g.node);
    }
  }
}

}  // namespace kiln::onnx
