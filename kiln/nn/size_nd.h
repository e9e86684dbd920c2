// SizeNd: what a window has in each spatial dim (kernel, stride, padding), given as one number for
// all dims or as one for each.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

#include "kiln/core/json.h"
#include "kiln/core/shape.h"
#include "kiln/tensor/nn/sizes.h"

namespace kiln::nn {

// 3, {3, 5}, {1, 2, 3}, a Shape; prints as it was given.
class SizeNd {
 public:
  // In a list: the input's own size, None in Python (adaptive pooling).
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();

  SizeNd() : SizeNd(1) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  SizeNd(T each) : values_{static_cast<int64_t>(each)}, single_(true) {}
  SizeNd(std::initializer_list<int64_t> values)
      : values_(Shape(std::span<const int64_t>(values.begin(), values.size()))) {}
  SizeNd(const Shape& values) : values_(values) {}

  const Shape& values() const { return values_; }
  bool is_single() const { return single_; }
  // One for each of `dims` dims. Throws ValueError, naming `place` ("Conv1d: stride"), when there
  // are others than one or `dims`.
  SizeNd expanded(int dims, const std::string& place) const;
  // The same for an op.
  Sizes sizes() const { return Sizes(values_); }
  bool all(int64_t value) const;  // each is `value`
  friend bool operator==(const SizeNd& a, const SizeNd& b) { return a.values_ == b.values_; }

 private:
  Shape values_;
  bool single_ = false;
};

// In a configuration: a number, or a list of them.
Json to_config_json(const SizeNd& size);
bool from_config_json(const Json& json, SizeNd& size);
inline std::string config_type(const SizeNd&) { return "integer or list of integers"; }

}  // namespace kiln::nn
