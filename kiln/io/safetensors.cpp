#include "kiln/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include <nlohmann/json.hpp>

#include "kiln/core/error.h"
#include "kiln/io/atomic_file.h"
#include "kiln/io/safetensors_header.h"

namespace kiln::io {

static_assert(std::endian::native == std::endian::little,
              "values are written as they lie in memory");

namespace {

constexpr const char* kSaveSafetensors = "save_safetensors";
constexpr const char* kLoadSafetensors = "load_safetensors";
constexpr uint64_t kLengthBytes = 8;

std::string json_string(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw_error<ValueError>(kSaveSafetensors, ": a name or metadata text is not UTF-8; got '",
                            printable(text), "'; expected UTF-8");
  }
}

void check_names(const NamedTensors& tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const auto& [name, data] : tensors) {
    if (name.empty()) {
      throw_error<ValueError>(kSaveSafetensors,
                              ": a tensor has no name; got ''; expected a non-empty name");
    }
    if (name == "__metadata__") {
      throw_error<ValueError>(kSaveSafetensors,
                              ": got the reserved name '__metadata__'; expected another");
    }
    if (detail::safetensors_name(data.dtype()) == nullptr) {
      throw_error<DTypeError>(kSaveSafetensors, ": tensor '", printable(name),
                              "' cannot be stored; got ", data.dtype(),
                              "; expected a dtype that is not quantized");
    }
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  const auto twin = std::adjacent_find(names.begin(), names.end());
  if (twin != names.end()) {
    throw_error<ValueError>(kSaveSafetensors, ": a name appears twice; got '",
                            printable(std::string(*twin)), "'; expected distinct names");
  }
}

// The positions of `tensors` in the order of the file.
std::vector<size_t> file_order(const NamedTensors& tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return size_of(tensors[a].second.dtype()) > size_of(tensors[b].second.dtype());
  });
  return order;
}

std::string header_json(const NamedTensors& tensors, const std::vector<size_t>& order,
                        const Metadata& metadata) {
  std::string json = "{";
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      json += json_string(key) + ':' + json_string(value) + ',';
    }
    json.back() = '}';
    json += ',';
  }
  uint64_t offset = 0;
  for (size_t i : order) {
    const auto& [name, data] = tensors[i];
    json += json_string(name) + ":{\"dtype\":\"" + detail::safetensors_name(data.dtype()) +
            "\",\"shape\":[";
    for (int d = 0; d < data.shape().rank(); ++d) {
      if (d > 0) json += ',';
      json += std::to_string(data.shape()[d]);
    }
    const uint64_t end = offset + data.bytes();
    json += concat("],\"data_offsets\":[", offset, ",", end, "]},");
    offset = end;
  }
  if (json.back() == ',') json.pop_back();
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');  // so that the data starts aligned
  return json;
}

// Every size was checked against the file's, but a sparse file may claim more than the machine has.
TensorData allocate(const detail::SafetensorsEntry& entry, const std::string& path) {
  try {
    return TensorData(entry.shape, entry.dtype);
  } catch (const ValueError&) {
    throw_error<IoError>(kLoadSafetensors, ": '", path, "': no memory for tensor '",
                         printable(entry.name), "'; got ", entry.end - entry.begin,
                         " bytes; expected fewer");
  }
}

}  // namespace

void detail::fill_safetensors(AtomicFile& file, const NamedTensors& tensors,
                              const Metadata& metadata) {
  check_names(tensors);
  const std::vector<size_t> order = file_order(tensors);
  const std::string json = header_json(tensors, order, metadata);
  if (json.size() > detail::kMaxSafetensorsHeader) {
    throw_error<ValueError>(kSaveSafetensors,
                            ": the names and metadata are too long; got a header of ", json.size(),
                            " bytes; expected at most ", detail::kMaxSafetensorsHeader);
  }
  const uint64_t length = json.size();
  file.write(&length, kLengthBytes);
  file.write(json);
  for (size_t i : order) file.write(tensors[i].second.data(), tensors[i].second.bytes());
}

void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const Metadata& metadata) {
  AtomicFile file(kSaveSafetensors, path);
  detail::fill_safetensors(file, tensors, metadata);
  file.commit();
}

SafetensorsReader::SafetensorsReader(const std::string& path) : file_(kLoadSafetensors, path) {
  const auto malformed = [&](const char* what, uint64_t got, const std::string& expected) {
    throw_error<IoError>(kLoadSafetensors, ": '", path, "' is malformed: ", what, "; got ", got,
                         " bytes; expected ", expected);
  };
  if (file_.size() < kLengthBytes) {
    malformed("it is too short", file_.size(), "8 bytes and a header");
  }
  uint64_t length = 0;
  file_.read_at(0, &length, kLengthBytes);
  if (length > detail::kMaxSafetensorsHeader) {
    malformed("the header is too long", length, concat("at most ", detail::kMaxSafetensorsHeader));
  }
  if (length > file_.size() - kLengthBytes) {
    malformed("the header is longer than the file", length,
              concat("at most ", file_.size() - kLengthBytes));
  }
  std::string json(static_cast<size_t>(length), '\0');
  file_.read_at(kLengthBytes, json.data(), json.size());
  data_offset_ = kLengthBytes + length;

  auto header = detail::parse_safetensors_header(path, json, file_.size() - data_offset_);
  metadata_ = std::move(header.metadata);
  entries_ = std::move(header.entries);
  keys_.reserve(entries_.size());
  for (const auto& entry : entries_) keys_.push_back(entry.name);
  std::sort(entries_.begin(), entries_.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
}

const detail::SafetensorsEntry* SafetensorsReader::find(std::string_view name) const {
  const auto it =
      std::lower_bound(entries_.begin(), entries_.end(), name,
                       [](const auto& entry, std::string_view n) { return entry.name < n; });
  return it != entries_.end() && it->name == name ? &*it : nullptr;
}

const detail::SafetensorsEntry& SafetensorsReader::at(const char* op, std::string_view name) const {
  const auto* entry = find(name);
  if (entry == nullptr) {
    throw_error<ValueError>("SafetensorsReader::", op, ": '", file_.path(),
                            "' has no such tensor; got '", printable(std::string(name)),
                            "'; expected one of its ", keys_.size(), " keys()");
  }
  return *entry;
}

bool SafetensorsReader::contains(std::string_view name) const { return find(name) != nullptr; }

const Shape& SafetensorsReader::shape(std::string_view name) const {
  return at("shape", name).shape;
}

DType SafetensorsReader::dtype(std::string_view name) const { return at("dtype", name).dtype; }

TensorData SafetensorsReader::read(std::string_view name) const {
  const auto& entry = at("read", name);
  TensorData data = allocate(entry, file_.path());
  file_.read_at(data_offset_ + entry.begin, data.mutable_data(), data.bytes());
  if (entry.dtype == DType::boolean) {
    // A bool that is neither 0 nor 1 would be undefined behaviour wherever it is used.
    const auto* bytes = reinterpret_cast<const uint8_t*>(data.data());
    const auto* bad = std::find_if(bytes, bytes + data.bytes(), [](uint8_t b) { return b > 1; });
    if (bad != bytes + data.bytes()) {
      throw_error<IoError>(kLoadSafetensors, ": '", file_.path(), "' is malformed: tensor '",
                           printable(entry.name), "' has a bad boolean; got ",
                           static_cast<unsigned>(*bad), "; expected 0 or 1");
    }
  }
  return data;
}

SafetensorsFile load_safetensors(const std::string& path) {
  const SafetensorsReader reader(path);
  SafetensorsFile file;
  file.metadata = reader.metadata();
  file.tensors.reserve(reader.keys().size());
  for (const std::string& name : reader.keys()) file.tensors.emplace_back(name, reader.read(name));
  return file;
}

}  // namespace kiln::io
