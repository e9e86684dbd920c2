// Fields of a file's JSON, checked: what is missing or of another kind is a ValueError that names
// the field. Internal to kiln/pt2.
#pragma once

#include <string>
#include <utility>

#include "kiln/core/json.h"

namespace kiln::pt2 {

// Null when there is none, or when it is JSON's null.
const Json* find(const Json& object, const char* key);
const Json& member(const Json& object, const char* key);

const std::string& text_of(const Json& value, const char* what);
int64_t integer_of(const Json& value, const char* what);
// Also "Infinity", "-Infinity" and "NaN", for which JSON has no numbers.
double number_of(const Json& value, const char* what);
bool bool_of(const Json& value, const char* what);
const Json::Array& list_of(const Json& value, const char* what);
const Json::Object& object_of(const Json& value, const char* what);

// The only member of an object that is not null: how the format writes unions.
const std::pair<std::string, Json>& only_member(const Json& value, const char* what);

}  // namespace kiln::pt2
