// What the tests of tensors share: both of Kiln's devices, dtypes by family, and comparison with
// worked-out values.
#pragma once

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor.h"

namespace kiln::test {

using Doubles = std::vector<double>;

inline constexpr DType kFloatTypes[] = {f64, f32, f16, bf16};
inline constexpr DType kIntTypes[] = {i64, i32, i16, i8, u8};
inline constexpr DType kNumberTypes[] = {f64, f32, f16, bf16, i64, i32, i16, i8, u8};
inline constexpr DType kAllTypes[] = {f64, f32, f16, bf16, i64, i32, i16, i8, u8, bool_};

// Calls f(device) for each device that comes with Kiln.
template <class F>
void on_devices(F&& f) {
  for (const Device device : {Device(kCpu), Device(kReference)}) {
    INFO("device ", to_string(device));
    f(device);
  }
}

// Calls f(device, dtype) for each device and each of the dtypes.
template <size_t N, class F>
void on_devices(const DType (&dtypes)[N], F&& f) {
  on_devices([&](Device device) {
    for (const DType dtype : dtypes) {
      INFO("dtype ", to_string(dtype));
      f(device, dtype);
    }
  });
}

// The relative error that a few roundings in this dtype leave; 0 for integers and bools.
double tolerance_of(DType dtype);

// "" when x has this shape and these values in row-major order, else what differs. NaN equals NaN;
// a difference may be `tolerance` of the value (of 1, for smaller values). Use: CHECK(mismatch(x,
// {2}, {1, 2}) == "").
std::string mismatch(const Tensor& x, const Shape& shape, const Doubles& values,
                     double tolerance = -1);

// The same values in memory with gaps and swapped dims, so that no kernel can take its short way.
Tensor scattered(const Tensor& x);

// The value of the error E that f throws must contain each of these words; returns "" then, else
// what is wrong.
template <class E, class F>
std::string error_lacks(F&& f, const std::vector<std::string>& words) {
  try {
    f();
  } catch (const E& error) {
    const std::string text = error.what();
    for (const std::string& word : words) {
      if (text.find(word) == std::string::npos) return "'" + word + "' is not in: " + text;
    }
    return "";
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "no error";
}

}  // namespace kiln::test
