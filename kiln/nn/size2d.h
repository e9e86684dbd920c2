// Size2d: height and width of a kernel, stride or padding, given as one number or as two.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include "kiln/backend/options.h"
#include "kiln/core/json.h"

namespace kiln::nn {

class Size2d {
 public:
  Size2d() : Size2d(1) {}
  template <std::integral T>
  Size2d(T both) : sizes_{static_cast<int64_t>(both), static_cast<int64_t>(both)}, single_(true) {}
  Size2d(int64_t height, int64_t width) : sizes_{height, width} {}
  Size2d(IntPair sizes) : sizes_(sizes) {}

  int64_t height() const { return sizes_[0]; }
  int64_t width() const { return sizes_[1]; }
  bool is_single() const { return single_; }
  operator const IntPair&() const { return sizes_; }
  friend bool operator==(const Size2d& a, const Size2d& b) { return a.sizes_ == b.sizes_; }

 private:
  IntPair sizes_;
  bool single_ = false;
};

// In a configuration: one number, or [height, width].
Json to_config_json(const Size2d& size);
bool from_config_json(const Json& json, Size2d& size);
inline std::string config_type(const Size2d&) { return "integer or [height, width]"; }

}  // namespace kiln::nn
