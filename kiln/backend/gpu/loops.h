// How ops become launches of the kernels in kernels/. Internal.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string>

#include "kiln/backend/gpu/gpu_tensor.h"
#include "kiln/core/random.h"
#include "kiln/core/scalar.h"

namespace kiln::gpu {

using T = Arg<H>;

// The struct Map of the prelude.
struct MapArgument {
  int64_t n = 0;
  int64_t rank = 1;
  int64_t size[kMaxRank] = {};
  int64_t offset[4] = {};
  int64_t step[4][kMaxRank] = {};
};

// Operand k of a loop over `shape`: strides and offset of x read in that (broadcast) shape.
struct Loop {
  explicit Loop(const Shape& shape) : shape(shape) {}
  void add(const GpuTensor& x);  // the next operand
  void add(const H& x) { add(*x); }
  void add(const Strides& strides, int64_t offset);  // likewise
  void skip() { ++operands; }                        // an operand that is not there
  // Joins dims that lie behind one another in all operands. `as_written` goes over the elements in
  // the order in which they lie in the first one, not in that of the shape.
  MapArgument argument(bool as_written = false) const;
  // Whether numbers of elements need 64 bits.
  bool is_wide() const { return shape.numel() >= (int64_t{1} << 31); }

  Shape shape;
  int operands = 0;
  std::array<Strides, 4> strides;
  std::array<int64_t, 4> offsets{};
};

// The type that places are divided in.
inline const char* index_type(bool wide) { return wide ? "u64" : "u32"; }
// "f32", "boolean".
const char* dialect_name(DType dtype);
// The type of the numbers that a kernel of this dtype takes: "f64", "f32" or "i64".
const char* scalar_type(DType dtype);
// A number as that type.
class ScalarArgument {
 public:
  ScalarArgument(DType dtype, double value);
  ScalarArgument(DType dtype, int64_t value);
  Argument argument() const { return {Argument::Kind::bytes, bytes_.data(), size_}; }

 private:
  std::array<std::byte, 8> bytes_{};
  size_t size_ = 8;
};
// `value` as a tensor of the dtype would hold it.
double rounded(Scalar value, DType dtype);

// Elements of a dtype that are read and written at once: 16 bytes, at most 8.
inline int64_t pack_of(DType dtype) {
  return std::min<int64_t>(16 / static_cast<int64_t>(size_of(dtype)), 8);
}
// Tensors of fewer elements are read one by one: packs would only mean another kernel to compile.
inline constexpr int64_t kFewElements = 4096;
// How a group holds a packed row of `length` elements: in `packs` of `vector` for each of its
// work-items. No packs where the row is too long or not made of whole ones, or all `rows` are few
// elements.
struct HeldRow {
  static constexpr int64_t kMost = 4;
  HeldRow() = default;
  HeldRow(DType dtype, int64_t length, int64_t rows) : vector(pack_of(dtype)) {
    const int64_t groups = (length + vector * static_cast<int64_t>(kGroup) - 1) /
                           (vector * static_cast<int64_t>(kGroup));
    if (length % vector == 0 && groups <= kMost && length * rows >= kFewElements) packs = groups;
  }
  std::string defines() const;
  int64_t vector = 1;
  int64_t packs = 0;
};

inline std::string define(const char* name, const std::string& value) {
  return "#define " + std::string(name) + " " + value + "\n";
}
inline std::string HeldRow::defines() const {
  return define("VECTOR", std::to_string(vector)) + define("PACKS", std::to_string(packs));
}
// Defines A and W, in which kernels compute for this dtype: ACC(dtype), and what wraps around.
std::string arithmetic(DType dtype);
// Defines FLOATS where the dtype is a float.
inline std::string floats_flag(DType dtype) {
  return kind_of(dtype) == Kind::floating ? define("FLOATS", "1") : std::string();
}
// Defines PRODUCT_SUM(v, w, s) = v w + s, fused where the dtype is a float.
std::string product_sum(DType dtype);
// Strides but for those of a dim.
inline Strides without(const Strides& strides, int dim) {
  Strides out = strides;
  out.erase(dim);
  return out;
}

struct Numbers {
  double s0 = 0.0;
  double s1 = 0.0;
  double s2 = 0.0;
};
struct Integers {
  int64_t s0 = 0;
  int64_t s1 = 0;
};

// What map.k computes for each element, with the library that it calls, if any.
struct Body {
  constexpr Body() = default;
  consteval Body(const char* text) : text(text) {}
  constexpr Body(Literal text, Literal library = {}) : text(text), library(library) {}
  constexpr explicit operator bool() const { return static_cast<bool>(text); }
  Literal text;
  Literal library;
};
using Inputs = std::initializer_list<T>;

// y = body(x0, x1, x2, s0, s1, s2) for each element of what the inputs broadcast to, which a fresh
// tensor of dtype `out` gets; or the first input's memory, where it was donated or is to be written
// over, and fits.
H map(const Body& body, DType out, Inputs inputs, Numbers numbers = {});
H map(const Body& body, DType out, Inputs inputs, Integers numbers);
// The same for one whose body says FAULT where an element of x1 is 0.
H map_checked(const char* op, const Body& body, DType out, Inputs inputs);
// Writes the elements of `to`.
void map_into(const H& to, const Body& body, std::initializer_list<H> inputs, Numbers numbers = {});
void map_into(const H& to, const Body& body, std::initializer_list<H> inputs, Integers numbers);
void fill_into(const H& to, Scalar value);
void copy_elements(const H& to, const H& from);

// A reduction over dims: `first` is what it begins with, `each` what becomes of an element x,
// `joined` joins a and b, and `finish` makes the result of a.
struct Reducer {
  Literal first;
  Literal each;
  Literal joined;
  Literal finish = "a";
};
H reduce(const Reducer& reducer, const H& x, const Dims& dims, bool keepdim, DType out,
         double number = 0.0);
H arg_reduce(Literal better, const H& x, int dim, bool keepdim);

// As the libraries of a runtime name it; nothing for a dtype that they have not.
std::optional<Product::Element> element_of(DType dtype);
H matmul(const H& x, const H& y);
// The row float_linear in one product; null where no library takes it.
H linear(const H& x, const H& weight, const H* bias);

H gather(const char* op, const H& x, int dim, const H& index);
H index_select(const H& x, int dim, const H& index);
// x with src combined into it: "b" replaces, "a + b" adds.
H scatter(const char* op, Literal combined, const H& x, int dim, const H& index, const H& src);
H spread_index(const H& index, int dim, const Shape& shape);

// y = body of x0 (and x1) along a dim; `state` declares what goes from element to element.
H scan(Literal state, Literal body, const H& x, int dim, DType out, const H* second = nullptr,
       bool reversed = false);
H argsort(const H& x, int dim, bool descending);
H searchsorted(const H& sorted, const H& values, bool right);
H nonzero(const H& mask);
H random(const Shape& shape, Distribution distribution, RandomStream stream, DType dtype,
         Device device);

}  // namespace kiln::gpu
