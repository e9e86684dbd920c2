#include "kiln/core/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include <nlohmann/json.hpp>

#include "kiln/core/budget.h"
#include "kiln/core/error.h"
#include "kiln/core/utf8.h"

namespace kiln {
namespace {

using Library = nlohmann::json;

constexpr size_t kMaxDepth = 64;

std::string number_text(double value) {
  char text[64];
  std::string out(text, std::to_chars(text, text + sizeof text, value).ptr);
  // 3 would come back as an integer.
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

const char* not_finite(double value) {
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

// ---- Text

void append_string(std::string& out, const std::string& text) {
  try {
    out += Library(text).dump();
  } catch (const Library::exception&) {
    throw_error<ValueError>("encode_json: a string is not UTF-8");
  }
}

void append_text(std::string& out, const Json& value, bool pretty, int depth) {
  const auto line = [&](int at) {
    if (pretty) out += '\n' + std::string(static_cast<size_t>(2 * at), ' ');
  };
  if (const bool* b = value.as<bool>()) {
    out += *b ? "true" : "false";
  } else if (const int64_t* i = value.as<int64_t>()) {
    out += std::to_string(*i);
  } else if (const double* d = value.as<double>()) {
    out += std::isfinite(*d) ? number_text(*d) : concat('"', not_finite(*d), '"');
  } else if (const std::string* s = value.as<std::string>()) {
    append_string(out, *s);
  } else if (value.as<Json::Bytes>() != nullptr) {
    throw_error<ValueError>("encode_json: JSON text holds no bytes");
  } else if (const Json::Array* items = value.as<Json::Array>()) {
    // Numbers go on one line: there may be many.
    bool nested = false;
    for (const Json& item : *items) {
      nested = nested || item.as<Json::Array>() != nullptr || item.as<Json::Object>() != nullptr;
    }
    out += '[';
    for (size_t n = 0; n < items->size(); ++n) {
      if (n > 0) out += pretty && !nested ? ", " : ",";
      if (nested) line(depth + 1);
      append_text(out, (*items)[n], pretty, depth + 1);
    }
    if (nested) line(depth);
    out += ']';
  } else if (const Json::Object* members = value.as<Json::Object>()) {
    out += '{';
    for (size_t n = 0; n < members->size(); ++n) {
      if (n > 0) out += ',';
      line(depth + 1);
      append_string(out, (*members)[n].first);
      out += pretty ? ": " : ":";
      append_text(out, (*members)[n].second, pretty, depth + 1);
    }
    if (!members->empty()) line(depth);
    out += '}';
  } else {
    out += "null";
  }
}

// ---- The binary forms, written by the library

Library to_library(const Json& value) {
  if (const bool* b = value.as<bool>()) return *b;
  if (const int64_t* i = value.as<int64_t>()) return *i;
  if (const double* d = value.as<double>()) return *d;
  if (const std::string* s = value.as<std::string>()) return *s;
  if (const Json::Bytes* bytes = value.as<Json::Bytes>()) {
    const auto* from = reinterpret_cast<const uint8_t*>(bytes->data());
    return Library::binary(std::vector<uint8_t>(from, from + bytes->size()));
  }
  if (const Json::Array* items = value.as<Json::Array>()) {
    Library out = Library::array();
    for (const Json& item : *items) out.push_back(to_library(item));
    return out;
  }
  if (const Json::Object* members = value.as<Json::Object>()) {
    Library out = Library::object();
    for (const auto& [key, member] : *members) out[key] = to_library(member);
    return out;
  }
  return nullptr;
}

// ---- Reading

// Builds the value from the parser's events, and stops at what nests too deeply: the library's
// readers of binary forms recurse. Everything that the value holds is charged.
class Builder {
 public:
  explicit Builder(Budget& budget) : budget_(budget) {}

  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Library::number_integer_t value) { return add(value); }
  bool number_unsigned(Library::number_unsigned_t value) {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return add(static_cast<double>(value));
    }
    return add(static_cast<int64_t>(value));
  }
  bool number_float(Library::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) {
    charge_box<std::string>(value.capacity());  // all of which moves
    return add(std::move(value));
  }
  bool binary(Library::binary_t& value) {
    charge_box<Json::Bytes>(value.size());
    const auto* from = reinterpret_cast<const std::byte*>(value.data());
    return add(Json::Bytes(from, from + value.size()));
  }
  bool start_object(size_t) { return open(Json::Object()); }
  bool start_array(size_t) { return open(Json::Array()); }
  bool end_object() {
    const Json::Object& members = *levels_.back().value.as<Json::Object>();
    const uint64_t bytes = members.size() * sizeof(std::string_view);
    budget_.charge(bytes, kWhat);
    std::vector<std::string_view> keys(members.size());
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = members[i].first;
    std::sort(keys.begin(), keys.end());
    const auto twin = std::adjacent_find(keys.begin(), keys.end());
    if (twin != keys.end()) {
      return refuse(concat("the key '", printable(*twin), "' occurs twice"));
    }
    budget_.release(bytes);
    return close();
  }
  bool end_array() { return close(); }
  bool key(std::string& value) {
    budget_.charge(value.capacity(), kWhat);
    levels_.back().key = std::move(value);
    return true;
  }
  bool parse_error(size_t position, const std::string&, const Library::exception&) {
    return refuse(concat("it is malformed at byte ", position));
  }

  Json result;
  std::string error;

 private:
  struct Level {
    Json value;
    std::string key;
  };
  static constexpr const char* kWhat = "what it describes";

  // A value on the heap, with what an allocation costs.
  template <class T>
  void charge_box(size_t bytes) {
    budget_.charge(sizeof(T) + bytes + 32, kWhat);
  }

  bool refuse(std::string why) {
    if (error.empty()) error = std::move(why);
    return false;
  }
  bool open(Json value) {
    if (levels_.size() == kMaxDepth)
      return refuse(concat("it nests deeper than ", kMaxDepth, " levels"));
    charge_box<Json::Array>(0);
    levels_.push_back({std::move(value), {}});
    return true;
  }
  bool close() {
    Json value = std::move(levels_.back().value);
    levels_.pop_back();
    return add(std::move(value));
  }
  bool add(Json value) {
    if (levels_.empty()) {
      result = std::move(value);
    } else if (auto* items = levels_.back().value.as<Json::Array>()) {
      budget_.grow(*items, 1, kWhat);
      items->push_back(std::move(value));
    } else {
      auto* members = levels_.back().value.as<Json::Object>();
      budget_.grow(*members, 1, kWhat);
      members->emplace_back(std::move(levels_.back().key), std::move(value));
    }
    return true;
  }

  Budget& budget_;
  std::vector<Level> levels_;
};

Library::input_format_t library_format(JsonFormat format) {
  return format == JsonFormat::message_pack ? Library::input_format_t::msgpack
         : format == JsonFormat::cbor       ? Library::input_format_t::cbor
                                            : Library::input_format_t::json;
}

}  // namespace

template <class T>
void Json::hold(Kind kind, T value) {
  value_.held = new T(std::move(value));
  kind_ = kind;
}

Json::Json(const char* text) { hold(Kind::text, std::string(text)); }
Json::Json(std::string text) { hold(Kind::text, std::move(text)); }
Json::Json(std::string_view text) { hold(Kind::text, std::string(text)); }
Json::Json(Bytes bytes) { hold(Kind::bytes, std::move(bytes)); }
Json::Json(Array items) { hold(Kind::array, std::move(items)); }
Json::Json(Object members) { hold(Kind::object, std::move(members)); }

Json::Json(const Json& other) {
  if (const auto* text = other.as<std::string>()) {
    hold(Kind::text, *text);
  } else if (const auto* bytes = other.as<Bytes>()) {
    hold(Kind::bytes, *bytes);
  } else if (const auto* items = other.as<Array>()) {
    hold(Kind::array, *items);
  } else if (const auto* members = other.as<Object>()) {
    hold(Kind::object, *members);
  } else {
    value_ = other.value_;
    kind_ = other.kind_;
  }
}

// `other` may be a part of this value.
Json& Json::operator=(Json&& other) noexcept {
  Json taken(std::move(other));
  std::swap(kind_, taken.kind_);
  std::swap(value_, taken.value_);
  return *this;
}

void Json::destroy() noexcept {
  delete as<std::string>();
  delete as<Bytes>();
  delete as<Array>();
  delete as<Object>();
}

bool Json::equals(const Json& other) const {
  if (kind_ != other.kind_) return false;
  const auto same = [&]<class T>(const T* value) {
    return value != nullptr && *value == *other.as<T>();
  };
  return is_null() || same(as<bool>()) || same(as<int64_t>()) || same(as<double>()) ||
         same(as<std::string>()) || same(as<Bytes>()) || same(as<Array>()) || same(as<Object>());
}

const Json* Json::find(std::string_view key) const {
  if (const Object* members = as<Object>()) {
    for (const auto& [name, value] : *members) {
      if (name == key) return &value;
    }
  }
  return nullptr;
}

Json& Json::add(std::string key, Json value) {
  if (as<Object>() == nullptr) *this = Object();
  as<Object>()->emplace_back(std::move(key), std::move(value));
  return *this;
}

Json& Json::add(Json item) {
  if (as<Array>() == nullptr) *this = Array();
  as<Array>()->push_back(std::move(item));
  return *this;
}

std::string Json::describe() const {
  if (const bool* b = as<bool>()) return *b ? "true" : "false";
  if (const int64_t* i = as<int64_t>()) return concat("the integer ", *i);
  if (const double* d = as<double>()) return concat("the number ", *d);
  if (const std::string* s = as<std::string>()) {
    return concat("the string '", printable(*s), "'");
  }
  if (as<Bytes>() != nullptr) return "bytes";
  if (const Array* items = as<Array>()) return concat("a list of ", items->size());
  if (as<Object>() != nullptr) return "an object";
  return "null";
}

std::string encode_json(const Json& value, JsonFormat format) {
  if (format == JsonFormat::text || format == JsonFormat::pretty_text) {
    std::string out;
    append_text(out, value, format == JsonFormat::pretty_text, 0);
    return out;
  }
  const Library tree = to_library(value);
  std::string out;
  try {
    if (format == JsonFormat::cbor) {
      Library::to_cbor(tree, out);
    } else {
      Library::to_msgpack(tree, out);
    }
  } catch (const Library::exception&) {
    throw_error<ValueError>("encode_json: a string is not UTF-8, or the value is too large");
  }
  return out;
}

Json decode_json(std::string_view input, JsonFormat format, Budget* budget) {
  const bool text = format == JsonFormat::text || format == JsonFormat::pretty_text;
  std::optional<Budget> own;
  if (budget == nullptr) budget = &own.emplace("decode_json: the input", input.size());
  // The parser's own copy of the string or the bytes that it is reading, which grows by doubling;
  // of a text it has two, one as it stands there.
  const uint64_t copies = (text ? 6 : 3) * static_cast<uint64_t>(input.size());
  budget->charge(copies, "the longest of its strings");
  Builder builder(*budget);
  // The parser would take a zero byte for the end and ignore what follows.
  if (text && input.find('\0') != std::string_view::npos) {
    throw_error<ValueError>("decode_json: it is malformed at byte ", input.find('\0') + 1);
  }
  const bool good =
      Library::sax_parse(input.begin(), input.end(), &builder, library_format(format), true);
  if (!good || !builder.error.empty()) {
    throw_error<ValueError>("decode_json: ",
                            builder.error.empty() ? "it is malformed" : builder.error);
  }
  budget->release(copies);
  return std::move(builder.result);
}

}  // namespace kiln
