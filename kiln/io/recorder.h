// Recorders: records in files and in memory, in the formats that Burn's recorders have and in
// safetensors. The template argument is what the numbers are stored in: FullPrecisionSettings,
// HalfPrecisionSettings or DoublePrecisionSettings of kiln/nn/record.h.
//
//   model.save_file("model", io::NamedMpkFileRecorder<nn::HalfPrecisionSettings>());  // model.mpk
//   model.load_file("model", io::NamedMpkFileRecorder<nn::HalfPrecisionSettings>());
//
// Every file says which version of Kiln wrote it, and in which settings. A reader takes files of
// any settings (modules convert to their own dtypes) but none of another format or of a newer
// format version; it treats every file as hostile: IoError, and nothing is changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/nn/record.h"

namespace kiln::io {

namespace detail {

enum class RecordFormat : uint8_t { safetensors, message_pack, cbor, json, pretty_json };

std::string record_extension(RecordFormat format, bool gzip);
void write_record(const nn::RecordItem& item, const std::string& path, RecordFormat format,
                  bool gzip);
nn::RecordItem read_record(const std::string& path, RecordFormat format, bool gzip);

}  // namespace detail

template <detail::RecordFormat format, bool gzip, class Settings>
class FileRecorder final : public nn::Recorder {
 public:
  using nn::Recorder::record;
  std::string extension() const override { return detail::record_extension(format, gzip); }
  nn::PrecisionSettings settings() const override { return Settings::get(); }
  void record(const nn::RecordItem& item, const std::string& path) const override {
    detail::write_record(item, path, format, gzip);
  }
  nn::RecordItem load(const std::string& path) const override {
    return detail::read_record(path, format, gzip);
  }
};

// The native one, which other programs read too. It also loads safetensors files that others
// wrote.
template <class Settings = nn::FullPrecisionSettings>
using SafetensorsRecorder = FileRecorder<detail::RecordFormat::safetensors, false, Settings>;
// MessagePack with named fields, plain and gzipped.
template <class Settings = nn::FullPrecisionSettings>
using NamedMpkFileRecorder = FileRecorder<detail::RecordFormat::message_pack, false, Settings>;
template <class Settings = nn::FullPrecisionSettings>
using NamedMpkGzFileRecorder = FileRecorder<detail::RecordFormat::message_pack, true, Settings>;
template <class Settings = nn::FullPrecisionSettings>
using CborFileRecorder = FileRecorder<detail::RecordFormat::cbor, false, Settings>;
// Text that people read: every number exactly, as decimal digits.
template <class Settings = nn::FullPrecisionSettings>
using PrettyJsonFileRecorder = FileRecorder<detail::RecordFormat::pretty_json, false, Settings>;
template <class Settings = nn::FullPrecisionSettings>
using JsonFileRecorder = FileRecorder<detail::RecordFormat::json, false, Settings>;
template <class Settings = nn::FullPrecisionSettings>
using JsonGzFileRecorder = FileRecorder<detail::RecordFormat::json, true, Settings>;

// MessagePack in memory: for models inside programs, queues and databases.
template <class Settings = nn::FullPrecisionSettings>
class NamedMpkBytesRecorder;

std::vector<std::byte> record_to_bytes(const nn::RecordItem& item);
// Throws IoError for bytes that are no record.
nn::RecordItem record_from_bytes(std::span<const std::byte> bytes);

template <class Settings>
class NamedMpkBytesRecorder {
 public:
  std::vector<std::byte> record(const nn::Record& record) const {
    return record_to_bytes(record.into_item<Settings>());
  }
  nn::Record load(std::span<const std::byte> bytes, const Device& device = {}) const {
    return nn::Record::from_item(record_from_bytes(bytes), device);
  }
};

}  // namespace kiln::io
