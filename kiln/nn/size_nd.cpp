#include "kiln/nn/size_nd.h"

#include <algorithm>

#include "kiln/core/error.h"

namespace kiln::nn {

SizeNd SizeNd::expanded(int dims, const std::string& place) const {
  if (values_.rank() == dims && !single_) return *this;
  if (values_.rank() != 1) {
    throw_error<ValueError>(place, ": expected one integer or ", dims, "; got ", values_);
  }
  Shape out;
  for (int i = 0; i < dims; ++i) out.push_back(values_[0]);
  return SizeNd(out);
}

bool SizeNd::all(int64_t value) const {
  return std::all_of(values_.begin(), values_.end(), [value](int64_t v) { return v == value; });
}

Json to_config_json(const SizeNd& size) {
  if (size.is_single()) return size.values()[0];
  Json out = Json::Array();
  for (const int64_t value : size.values()) out.add(value == SizeNd::kNone ? Json() : Json(value));
  return out;
}

bool from_config_json(const Json& json, SizeNd& size) {
  if (const int64_t* each = json.as<int64_t>()) {
    size = SizeNd(*each);
    return true;
  }
  const auto* items = json.as<Json::Array>();
  if (items == nullptr || items->empty() || items->size() > 6) return false;
  Shape values;
  for (const Json& item : *items) {
    const int64_t* value = item.as<int64_t>();
    if (value == nullptr && !item.is_null()) return false;
    values.push_back(value == nullptr ? SizeNd::kNone : *value);
  }
  size = SizeNd(values);
  return true;
}

}  // namespace kiln::nn
