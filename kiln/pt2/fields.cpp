#include "kiln/pt2/fields.h"

#include <limits>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"

namespace kiln::pt2 {

namespace {

[[noreturn]] void wrong(const Json& value, const char* what, const char* expected) {
  throw_error<ValueError>(printable(what, 60), " is ", printable(value.describe(), 80),
                          "; expected ", expected);
}

template <class T>
const T& as(const Json& value, const char* what, const char* expected) {
  const T* out = value.as<T>();
  if (out == nullptr) wrong(value, what, expected);
  return *out;
}

}  // namespace

const Json* find(const Json& object, const char* key) {
  const Json* out = object.find(key);
  return out == nullptr || out->is_null() ? nullptr : out;
}
const Json& member(const Json& object, const char* key) {
  object_of(object, key);
  const Json* out = find(object, key);
  if (out == nullptr) throw_error<ValueError>("the field '", key, "' is missing");
  return *out;
}

const std::string& text_of(const Json& value, const char* what) {
  return as<std::string>(value, what, "a string");
}
int64_t integer_of(const Json& value, const char* what) {
  return as<int64_t>(value, what, "an integer");
}
double number_of(const Json& value, const char* what) {
  if (const auto* i = value.as<int64_t>()) return static_cast<double>(*i);
  if (const auto* text = value.as<std::string>()) {
    if (*text == "Infinity") return std::numeric_limits<double>::infinity();
    if (*text == "-Infinity") return -std::numeric_limits<double>::infinity();
    if (*text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  }
  return as<double>(value, what, "a number");
}
bool bool_of(const Json& value, const char* what) { return as<bool>(value, what, "a boolean"); }
const Json::Array& list_of(const Json& value, const char* what) {
  return as<Json::Array>(value, what, "a list");
}
const Json::Object& object_of(const Json& value, const char* what) {
  return as<Json::Object>(value, what, "an object");
}

const std::pair<std::string, Json>& only_member(const Json& value, const char* what) {
  const std::pair<std::string, Json>* out = nullptr;
  for (const auto& one : object_of(value, what)) {
    if (one.second.is_null()) continue;
    if (out != nullptr) wrong(value, what, "one member");
    out = &one;
  }
  if (out == nullptr) wrong(value, what, "one member");
  return *out;
}

}  // namespace kiln::pt2
