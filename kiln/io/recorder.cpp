#include "kiln/io/recorder.h"

#include <algorithm>
#include <map>

#include "kiln/core/error.h"
#include "kiln/io/atomic_file.h"
#include "kiln/io/gzip.h"
#include "kiln/io/input_file.h"
#include "kiln/io/record_json.h"
#include "kiln/io/safetensors.h"

namespace kiln::io {
namespace {

using detail::RecordFormat;
using nn::RecordItem;

constexpr const char* kSave = "save_record";
constexpr const char* kLoad = "load_record";

// ---- safetensors: what the format has no place for stands in its metadata, as text

const std::string kPrefix = "kiln.";

void write_safetensors(const RecordItem& item, const std::string& path) {
  NamedTensors tensors;
  Json ids = Json::Object();
  for (const RecordItem::Entry& entry : item.entries) {
    tensors.emplace_back(entry.path, entry.data);
    if (entry.id) ids.add(entry.path, to_string(*entry.id));
  }
  save_safetensors(
      path, tensors,
      {{kPrefix + "record_version", std::to_string(detail::kRecordVersion)},
       {kPrefix + "version", KILN_VERSION},
       {kPrefix + "settings", item.settings.name},
       {kPrefix + "float", to_string(item.settings.float_type)},
       {kPrefix + "int", to_string(item.settings.int_type)},
       {kPrefix + "ids", encode_json(ids, JsonFormat::text)},
       {kPrefix + "values", encode_json(detail::values_to_json(item.values), JsonFormat::text)}});
}

// A file's metadata as JSON; `missing` when it has none of that name.
Json metadata_json(const Metadata& metadata, const std::string& name, const std::string& where) {
  const auto found = metadata.find(kPrefix + name);
  if (found == metadata.end()) return Json::Object();
  try {
    return decode_json(found->second);
  } catch (const ValueError& error) {
    throw_error<IoError>(where, " is malformed: its metadata '", kPrefix, name,
                         "' is no JSON; got ", printable(error.what()), "; expected an object");
  }
}

RecordItem read_safetensors(const std::string& path) {
  const std::string where = concat(kLoad, ": '", path, "'");
  SafetensorsFile file = load_safetensors(path);
  const auto text = [&](const std::string& name, const char* otherwise) {
    const auto found = file.metadata.find(kPrefix + name);
    return found == file.metadata.end() ? std::string(otherwise) : found->second;
  };
  const std::string version = text("record_version", "1");
  if (version != std::to_string(detail::kRecordVersion)) {
    throw_error<IoError>(where, " was written by kiln ", printable(text("version", "?"), 40),
                         " in another layout; got record version '", printable(version, 20),
                         "'; expected at most ", detail::kRecordVersion);
  }
  RecordItem item;
  item.settings = detail::parse_settings(text("settings", "FullPrecisionSettings"),
                                         text("float", "float32"), text("int", "int32"), where);
  item.values = detail::values_from_json(metadata_json(file.metadata, "values", where), where);
  const Json ids = metadata_json(file.metadata, "ids", where);
  std::map<std::string_view, const Json*> id_of;
  if (const auto* members = ids.as<Json::Object>()) {
    for (const auto& [name, id] : *members) id_of.emplace(name, &id);
  }
  for (auto& [name, data] : file.tensors) {
    RecordItem::Entry entry{name, std::nullopt, std::move(data)};
    if (const auto found = id_of.find(name); found != id_of.end()) {
      const Json* id = found->second;
      const std::string* digits = id->as<std::string>();
      try {
        entry.id = nn::ParamId::parse(digits == nullptr ? "" : *digits);
      } catch (const ValueError&) {
        throw_error<IoError>(where, " is malformed: tensor '", printable(name),
                             "' has a bad id; got ", printable(id->describe()),
                             "; expected a parameter's id");
      }
    }
    item.entries.push_back(std::move(entry));
  }
  return item;
}

// ---- The JSON family

JsonFormat json_format(RecordFormat format) {
  switch (format) {
    case RecordFormat::message_pack:
      return JsonFormat::message_pack;
    case RecordFormat::cbor:
      return JsonFormat::cbor;
    case RecordFormat::pretty_json:
      return JsonFormat::pretty_text;
    default:
      return JsonFormat::text;
  }
}

std::string encode(const RecordItem& item, RecordFormat format) {
  const bool text = format == RecordFormat::json || format == RecordFormat::pretty_json;
  return encode_json(detail::record_to_json(item, text), json_format(format));
}

RecordItem decode(std::string_view content, RecordFormat format, const std::string& where,
                  Budget& budget) {
  Json json;
  try {
    json = decode_json(content, json_format(format), &budget);
  } catch (const ValueError& error) {
    throw_error<IoError>(where, " is malformed; got ", printable(error.what(), 160),
                         "; expected a record");
  }
  return detail::record_from_json(json, where, budget);
}

// About what reading a record costs, from above: its text several times, and its values.
uint64_t reading_cost(std::string_view content, RecordFormat format) {
  const bool text = format == RecordFormat::json || format == RecordFormat::pretty_json;
  const auto values = text ? std::count(content.begin(), content.end(), ',') : 0;
  return 10 * content.size() + (3 * sizeof(Json) + 8) * static_cast<uint64_t>(values);
}

// The path with the extension, once.
std::string with_extension(const std::string& path, RecordFormat format, bool gzip) {
  const std::string end = "." + detail::record_extension(format, gzip);
  return path.ends_with(end) ? path : path + end;
}

}  // namespace

namespace detail {

std::string record_extension(RecordFormat format, bool gzip) {
  const char* name = format == RecordFormat::safetensors    ? "safetensors"
                     : format == RecordFormat::message_pack ? "mpk"
                     : format == RecordFormat::cbor         ? "cbor"
                                                            : "json";
  return std::string(name) + (gzip ? ".gz" : "");
}

void write_record(const RecordItem& item, const std::string& path, RecordFormat format, bool gzip) {
  const std::string target = with_extension(path, format, gzip);
  if (format == RecordFormat::safetensors) return write_safetensors(item, target);
  const std::string content = encode(item, format);
  if (!gzip) return write_file_atomically(kSave, target, content);
  // No shorter than what a reader's budget asks for: zeros are compressed a thousand to one.
  const uint64_t cost = reading_cost(content, format);
  const uint64_t at_least = cost < Budget::kAllowance ? 0 : cost / (Budget::kRatio - 8);
  write_file_atomically(kSave, target, compress_gzip(content, 6, at_least));
}

RecordItem read_record(const std::string& path, RecordFormat format, bool gzip) {
  const std::string source = with_extension(path, format, gzip);
  if (format == RecordFormat::safetensors) return read_safetensors(source);
  GzipFile file(kLoad, source);
  const std::vector<std::byte> content = read_all(file, UINT64_MAX);
  return decode({reinterpret_cast<const char*>(content.data()), content.size()}, format,
                concat(kLoad, ": '", source, "'"), file.budget());
}

}  // namespace detail

std::vector<std::byte> record_to_bytes(const RecordItem& item) {
  const std::string content = encode(item, RecordFormat::message_pack);
  const auto* begin = reinterpret_cast<const std::byte*>(content.data());
  return {begin, begin + content.size()};
}

RecordItem record_from_bytes(std::span<const std::byte> bytes) {
  const std::string where = concat(kLoad, ": a record of ", bytes.size(), " bytes");
  Budget budget(where, bytes.size());
  return decode({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                RecordFormat::message_pack, where, budget);
}

}  // namespace kiln::io
