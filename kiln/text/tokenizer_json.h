// Reading of tokenizer.json: members of objects, with messages that say what was expected. Internal
// to kiln/text.
#pragma once

#include <string>
#include <string_view>

#include "kiln/core/error.h"
#include "kiln/core/json.h"

namespace kiln::text {

[[noreturn]] void wrong(const std::string& subject, std::string_view what, const Json* got);

template <class T>
const T& member(const Json* values, const char* name, const char* expected,
                const std::string& subject) {
  const Json* value = values == nullptr ? nullptr : values->find(name);
  if (value == nullptr || value->as<T>() == nullptr) {
    wrong(subject, concat("'", name, "' must be ", expected), value);
  }
  return *value->as<T>();
}

const std::string& text_member(const Json* values, const char* name, const std::string& subject);
// `otherwise` where there is no such flag.
bool flag(const Json& values, const char* name, bool otherwise);
// Not null, and not missing.
bool is_there(const Json* values);
// From 0 to 2^31.
int64_t id_of(const Json* value, const std::string& subject);

// The bytes of a file, or of tokenizer.json in a folder; at most 256 MiB. Throws IoError.
std::string read_tokenizer_file(const char* who, const std::string& path);
// The values of a file whose 'model' is an object. Throws IoError.
Json decode_tokenizer_file(std::string_view json, const std::string& subject);

}  // namespace kiln::text
