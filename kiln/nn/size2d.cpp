#include "kiln/nn/size2d.h"

namespace kiln::nn {

Json to_config_json(const Size2d& size) {
  if (size.height() == size.width()) return size.height();
  return Json(Json::Array()).add(size.height()).add(size.width());
}

bool from_config_json(const Json& json, Size2d& size) {
  if (const int64_t* both = json.as<int64_t>()) {
    size = Size2d(*both);
    return true;
  }
  const auto* items = json.as<Json::Array>();
  if (items == nullptr || items->size() != 2) return false;
  const int64_t* height = (*items)[0].as<int64_t>();
  const int64_t* width = (*items)[1].as<int64_t>();
  if (height == nullptr || width == nullptr) return false;
  size = Size2d(*height, *width);
  return true;
}

}  // namespace kiln::nn
