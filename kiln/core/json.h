// Json: a value as JSON, MessagePack and CBOR have them. What configurations and records are made
// of on their way into and out of files.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/core/box.h"

namespace kiln {

class Budget;

class Json {
 public:
  using Bytes = std::vector<std::byte>;  // JSON text has none; the binary forms do
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;  // in order; keys are distinct

  Json() = default;  // null
  Json(bool value) : value_(value) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Json(T value) : value_(static_cast<int64_t>(value)) {}
  Json(double value) : value_(value) {}
  Json(const char* text) : value_(Box(std::string(text))) {}
  Json(std::string text) : value_(Box(std::move(text))) {}
  Json(std::string_view text) : value_(Box(std::string(text))) {}
  Json(Bytes bytes) : value_(Box(std::move(bytes))) {}
  Json(Array items) : value_(Box(std::move(items))) {}
  Json(Object members) : value_(Box(std::move(members))) {}

  // Null when the value is of another type.
  template <class T>
  const T* as() const {
    return const_cast<Json*>(this)->as<T>();
  }
  template <class T>
  T* as() {
    if constexpr (is_boxed<T>) {
      auto* box = std::get_if<Box<T>>(&value_);
      return box == nullptr ? nullptr : box->get();
    } else {
      return std::get_if<T>(&value_);
    }
  }
  bool is_null() const { return value_.index() == 0; }
  // The member of an object; null when there is none, or when this is no object.
  const Json* find(std::string_view key) const;
  // Appends to an object (whose keys the caller keeps distinct) or to a list; anything else becomes
  // one.
  Json& add(std::string key, Json value);
  Json& add(Json item);
  // "null", "a boolean", "the integer 3", "a string", ...: for messages.
  std::string describe() const;

  friend bool operator==(const Json&, const Json&) = default;

 private:
  template <class T>
  static constexpr bool is_boxed = std::same_as<T, std::string> || std::same_as<T, Bytes> ||
                                   std::same_as<T, Array> || std::same_as<T, Object>;

  // 16 bytes: a file of numbers becomes one of these for each.
  std::variant<std::monostate, bool, int64_t, double, Box<std::string>, Box<Bytes>, Box<Array>,
               Box<Object>>
      value_;
};

enum class JsonFormat : uint8_t { text, pretty_text, message_pack, cbor };

// Numbers in text have the fewest digits that give them back; those that are not finite, which JSON
// has no word for, become the strings "nan", "inf" and "-inf". Throws ValueError for text that is
// not UTF-8 and for bytes in a text format.
std::string encode_json(const Json& value, JsonFormat format = JsonFormat::pretty_text);
// Throws ValueError, which says at which byte, for malformed or nested input (more than 64 levels),
// for keys that occur twice, and for what follows the value. What it holds is charged to `budget`,
// whose IoError it throws; without one, to a budget of the input's own length.
Json decode_json(std::string_view input, JsonFormat format = JsonFormat::text,
                 Budget* budget = nullptr);

}  // namespace kiln
