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
#include <vector>

namespace kiln {

class Budget;

class Json {
 public:
  using Bytes = std::vector<std::byte>;  // JSON text has none; the binary forms do
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;  // in order; keys are distinct

  Json() = default;  // null
  Json(bool value) : kind_(Kind::boolean) { value_.boolean = value; }
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Json(T value) : kind_(Kind::integer) {
    value_.integer = static_cast<int64_t>(value);
  }
  Json(double value) : kind_(Kind::number) { value_.number = value; }
  Json(const char* text);
  Json(std::string text);
  Json(std::string_view text);
  Json(Bytes bytes);
  Json(Array items);
  Json(Object members);
  Json(const Json& other);
  Json(Json&& other) noexcept  // which is null then
      : kind_(std::exchange(other.kind_, Kind::null)), value_(other.value_) {}
  Json& operator=(const Json& other) { return *this = Json(other); }
  Json& operator=(Json&& other) noexcept;
  ~Json() {
    if (kind_ > Kind::number) destroy();
  }

  // Null when the value is of another type: bool, int64_t, double, std::string, Bytes, Array or
  // Object.
  template <class T>
  const T* as() const {
    return const_cast<Json*>(this)->as<T>();
  }
  template <class T>
  T* as() {
    if (kind_ != kind_of<T>()) return nullptr;
    if constexpr (kind_of<T>() == Kind::boolean) {
      return &value_.boolean;
    } else if constexpr (kind_of<T>() == Kind::integer) {
      return &value_.integer;
    } else if constexpr (kind_of<T>() == Kind::number) {
      return &value_.number;
    } else {
      return static_cast<T*>(value_.held);
    }
  }
  bool is_null() const { return kind_ == Kind::null; }
  // The member of an object; null when there is none, or when this is no object.
  const Json* find(std::string_view key) const;
  // Appends to an object (whose keys the caller keeps distinct) or to a list; anything else becomes
  // one.
  Json& add(std::string key, Json value);
  Json& add(Json item);
  // "null", "a boolean", "the integer 3", "a string", ...: for messages.
  std::string describe() const;

  friend bool operator==(const Json& a, const Json& b) { return a.equals(b); }

 private:
  // Those behind `number` are on the heap.
  enum class Kind : uint8_t { null, boolean, integer, number, text, bytes, array, object };
  template <class T>
  static constexpr Kind kind_of() {
    if constexpr (std::same_as<T, bool>)
      return Kind::boolean;
    else if constexpr (std::same_as<T, int64_t>)
      return Kind::integer;
    else if constexpr (std::same_as<T, double>)
      return Kind::number;
    else if constexpr (std::same_as<T, std::string>)
      return Kind::text;
    else if constexpr (std::same_as<T, Bytes>)
      return Kind::bytes;
    else if constexpr (std::same_as<T, Array>)
      return Kind::array;
    else
      static_assert(std::same_as<T, Object>, "a Json holds no such type");
    return Kind::object;
  }

  template <class T>
  void hold(Kind kind, T value);
  void destroy() noexcept;
  bool equals(const Json& other) const;

  // 16 bytes: a file of numbers becomes one of these for each. Not a std::variant, which every
  // program that includes Kiln would compile.
  Kind kind_ = Kind::null;
  union {
    bool boolean;
    int64_t integer;
    double number;
    void* held;
  } value_ = {};
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
