#include "kiln/io/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include <nlohmann/json.hpp>

namespace kiln::io::detail {

namespace {

struct DTypeName {
  const char* name;
  DType dtype;
};
constexpr DTypeName kNames[] = {
    {"F64", DType::f64}, {"F32", DType::f32}, {"F16", DType::f16},   {"BF16", DType::bf16},
    {"I64", DType::i64}, {"I32", DType::i32}, {"I16", DType::i16},   {"I8", DType::i8},
    {"U8", DType::u8},   {"C64", DType::c64}, {"C128", DType::c128}, {"BOOL", DType::boolean}};

[[noreturn]] void malformed_header(const std::string& path, const std::string& what,
                                   const std::string& got, const char* expected) {
  throw_error<IoError>("load_safetensors: '", path, "' is malformed: ", what, "; got ", got,
                       "; expected ", expected);
}

// Takes the events of the JSON parser and accepts nothing but the three levels that the format has:
// {"__metadata__": {"key": "text"}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0,
// 24]}}. It keeps only entries and metadata, so memory stays proportional to the header whatever
// that nests or repeats.
class HeaderHandler {
 public:
  using Json = nlohmann::json;

  HeaderHandler(const std::string& path, SafetensorsHeader& out) : path_(path), out_(out) {}

  bool null() { return unexpected("null"); }
  bool boolean(bool value) { return unexpected(value ? "true" : "false"); }
  bool number_integer(Json::number_integer_t value) {
    return unexpected(concat("the negative number ", value));
  }
  bool number_float(Json::number_float_t, const std::string& text) {
    return unexpected(concat("the number ", printable(text, 40)));
  }
  bool binary(Json::binary_t&) { return unexpected("binary data"); }

  bool number_unsigned(Json::number_unsigned_t value) {
    if (level_ == Level::shape) {
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        fail("a dim is too large", concat(value));
      }
      if (entry_.shape.rank() == kMaxRank) {
        fail("a shape has too many dims", concat("more than ", kMaxRank));
      }
      entry_.shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (level_ == Level::offsets && offsets_ < 2) {
      (offsets_++ == 0 ? entry_.begin : entry_.end) = value;
      return true;
    }
    return unexpected(concat("the number ", value));
  }

  bool string(std::string& value) {
    if (level_ == Level::metadata) {
      out_.metadata[key_] = std::move(value);
      return true;
    }
    if (level_ == Level::tensor && key_ == "dtype") {
      for (const DTypeName& n : kNames) {
        if (value == n.name) {
          entry_.dtype = n.dtype;
          return true;
        }
      }
      fail("unknown dtype", concat("'", printable(value, 20), "'"),
           "F64, F32, F16, BF16, I64, I32, I16, I8, U8, C64, C128 or BOOL");
    }
    return unexpected("a string");
  }

  bool start_object(size_t) {
    if (level_ == Level::nothing) {
      level_ = Level::root;
    } else if (level_ == Level::root && key_ == "__metadata__") {
      level_ = Level::metadata;
    } else if (level_ == Level::root) {
      level_ = Level::tensor;
      entry_ = SafetensorsEntry{};
      entry_.name = key_;
      seen_ = 0;
    } else {
      return unexpected("an object");
    }
    return true;
  }

  bool key(std::string& value) {
    key_ = std::move(value);
    if (level_ == Level::metadata && out_.metadata.contains(key_)) {
      fail("a metadata key appears twice", concat("'", printable(key_), "'"));
    }
    if (level_ == Level::root && key_ == "__metadata__" && std::exchange(has_metadata_, true)) {
      fail("the metadata appears twice", "a second __metadata__");
    }
    if (level_ == Level::tensor) {
      const int field = key_ == "dtype" ? 1 : key_ == "shape" ? 2 : key_ == "data_offsets" ? 4 : 0;
      if (field == 0) fail("a tensor has an unknown field", concat("'", printable(key_), "'"));
      if ((seen_ & field) != 0) fail("a tensor has a field twice", key_);
      seen_ |= field;
    }
    return true;
  }

  bool end_object() {
    if (level_ == Level::tensor) {
      if (seen_ != 7) {
        fail("a tensor lacks a field", (seen_ & 1) == 0   ? "no dtype"
                                       : (seen_ & 2) == 0 ? "no shape"
                                                          : "no data_offsets");
      }
      out_.entries.push_back(std::move(entry_));
      level_ = Level::root;
    } else if (level_ == Level::metadata) {
      level_ = Level::root;
    }
    return true;
  }

  bool start_array(size_t) {
    if (level_ == Level::tensor && key_ == "shape") {
      level_ = Level::shape;
    } else if (level_ == Level::tensor && key_ == "data_offsets") {
      level_ = Level::offsets;
      offsets_ = 0;
    } else {
      return unexpected("an array");
    }
    return true;
  }

  bool end_array() {
    if (level_ == Level::offsets && offsets_ != 2) {
      fail("data_offsets are incomplete", concat(offsets_, " numbers"), "two");
    }
    level_ = Level::tensor;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const Json::exception&) {
    fail("the header is no valid JSON", concat("an error at byte ", position));
  }

 private:
  enum class Level { nothing, root, metadata, tensor, shape, offsets };

  bool unexpected(const std::string& what) {
    const char* place = level_ == Level::nothing    ? "for the header"
                        : level_ == Level::root     ? "for a tensor"
                        : level_ == Level::metadata ? "in the metadata"
                        : level_ == Level::shape    ? "in a shape"
                        : level_ == Level::offsets  ? "in data_offsets"
                                                    : "in a tensor's fields";
    fail(concat("there is a wrong value ", place), what);
  }

  [[noreturn]] void fail(const std::string& what, const std::string& got,
                         const char* expected = "a safetensors header") {
    const bool in_tensor =
        level_ == Level::tensor || level_ == Level::shape || level_ == Level::offsets;
    malformed_header(path_,
                     in_tensor ? concat("tensor '", printable(entry_.name), "': ", what) : what,
                     got, expected);
  }

  const std::string& path_;
  SafetensorsHeader& out_;
  Level level_ = Level::nothing;
  std::string key_;
  SafetensorsEntry entry_;
  int seen_ = 0;     // bits of the fields of the tensor at hand
  int offsets_ = 0;  // numbers of data_offsets so far
  bool has_metadata_ = false;
};

// The bytes that a shape needs, or nothing when that overflows. Dims of 0 do not excuse the others:
// strides and views of the tensor multiply those too.
std::optional<uint64_t> checked_bytes(const Shape& shape, DType dtype) {
  int64_t product = static_cast<int64_t>(size_of(dtype));
  bool empty = false;
  for (int64_t dim : shape) {
    empty = empty || dim == 0;
    if (__builtin_mul_overflow(product, std::max<int64_t>(dim, 1), &product)) return std::nullopt;
  }
  return empty ? 0 : static_cast<uint64_t>(product);
}

// Offsets in order, without overlap or gap, each the size of its tensor, together all of the data.
void check_layout(const std::string& path, std::vector<SafetensorsEntry>& entries,
                  uint64_t data_bytes) {
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t position = 0;
  for (const SafetensorsEntry& e : entries) {
    const std::string who = concat("tensor '", printable(e.name), "'");
    const std::string offsets = concat("[", e.begin, ", ", e.end, "]");
    if (e.end < e.begin || e.end > data_bytes) {
      malformed_header(path, concat(who, " lies outside the data of ", data_bytes, " bytes"),
                       offsets, "offsets within the data");
    }
    if (e.begin != position) {
      malformed_header(
          path,
          concat(who, e.begin < position ? " overlaps another one" : " leaves a gap before it"),
          offsets, "tensors one after the other");
    }
    const std::optional<uint64_t> bytes = checked_bytes(e.shape, e.dtype);
    if (!bytes.has_value()) {
      malformed_header(path, concat(who, " has a size that overflows"), concat("shape ", e.shape),
                       "fewer than 2^63 bytes");
    }
    if (*bytes != e.end - e.begin) {
      malformed_header(path,
                       concat(who, " has another size than its shape ", e.shape, " of ", e.dtype),
                       concat(e.end - e.begin, " bytes"), concat(*bytes, " bytes").c_str());
    }
    position = e.end;
  }
  if (position != data_bytes) {
    malformed_header(path, "there is data that belongs to no tensor",
                     concat(data_bytes - position, " bytes at the end"), "none");
  }
}

void check_names(const std::string& path, const std::vector<SafetensorsEntry>& entries) {
  std::vector<const std::string*> names;
  names.reserve(entries.size());
  for (const SafetensorsEntry& e : entries) names.push_back(&e.name);
  std::sort(names.begin(), names.end(), [](auto* a, auto* b) { return *a < *b; });
  const auto twin =
      std::adjacent_find(names.begin(), names.end(), [](auto* a, auto* b) { return *a == *b; });
  if (twin != names.end()) {
    malformed_header(path, "a name appears twice", concat("'", printable(**twin), "'"),
                     "distinct names");
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view json,
                                           uint64_t data_bytes) {
  if (json.empty() || json.front() != '{') {
    malformed_header(path, "the header is no JSON object",
                     json.empty() ? "nothing" : "another first byte", "'{'");
  }
  // The JSON parser would take a zero byte for the end and ignore what follows.
  if (json.find('\0') != std::string_view::npos) {
    malformed_header(path, "the header is no valid JSON", "a zero byte", "a safetensors header");
  }
  SafetensorsHeader header;
  HeaderHandler handler(path, header);
  nlohmann::json::sax_parse(json.begin(), json.end(), &handler);
  check_layout(path, header.entries, data_bytes);
  check_names(path, header.entries);
  return header;
}

const char* safetensors_name(DType dtype) {
  for (const DTypeName& n : kNames) {
    if (n.dtype == dtype) return n.name;
  }
  return nullptr;
}

}  // namespace kiln::io::detail
