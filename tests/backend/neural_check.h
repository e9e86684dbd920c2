// What the tests of Cpu share: operands of every layout, comparison with Reference, and runs
// at every instruction set and number of threads.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/matmul/amx.h"
#include "kiln/backend/reference/reference.h"
#include "kiln/core/parallel.h"

namespace kiln::test {

// A small generator of its own, so that values depend on nothing that is under test.
class Values {
 public:
  explicit Values(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}
  double next() {  // in [-1, 1)
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<double>(state_ >> 11) * 0x1p-52 - 1.0;
  }
  int64_t next_int(int64_t count) {
    return static_cast<int64_t>((next() + 1.0) * 0.5 * static_cast<double>(count));
  }

 private:
  uint64_t state_;
};

inline HostHandle random_tensor(const Shape& shape, DType dtype, uint64_t seed) {
  Values values(seed);
  std::vector<double> data(static_cast<size_t>(shape.numel()));
  for (double& v : data) v = values.next();
  return host::from_data(TensorData(data, shape).cast(dtype), Device());
}

inline HostHandle random_ints(const Shape& shape, DType dtype, int64_t count, uint64_t seed) {
  Values values(seed);
  std::vector<int64_t> data(static_cast<size_t>(shape.numel()));
  for (int64_t& v : data) v = values.next_int(count);
  return host::from_data(TensorData(data, shape).cast(dtype), Device());
}

// The same values with the last two dims stored the other way around.
inline HostHandle stored_transposed(const HostHandle& x) {
  Dims order = all_dims(x->shape().rank());
  std::swap(order[x->shape().rank() - 1], order[x->shape().rank() - 2]);
  const TensorData turned = host::into_data(host::permute(x, order));
  return host::permute(host::from_data(turned, Device()), order);
}

// The same values in memory that has gaps and does not start at an aligned address.
inline HostHandle stored_with_gaps(const HostHandle& x) {
  Shape wide = x->shape();
  for (int64_t& n : wide) n = n * 2 + 1;
  const HostHandle base = random_tensor(wide, x->dtype(), 99);
  HostHandle view = base;
  for (int d = 0; d < wide.rank(); ++d) {
    view = host::slice(view, d, Range{1, 1 + 2 * x->shape()[d], 2});
  }
  Reference::float_assign(view, x);
  return view;
}

inline std::vector<double> values_of(const HostHandle& x) {
  return host::into_data(x).to_doubles();
}

// |got - want| <= tolerance (1 + |want|), where NaN equals NaN.
inline void check_close(const HostHandle& got, const HostHandle& want, double tolerance) {
  REQUIRE(got->shape() == want->shape());
  REQUIRE(got->dtype() == want->dtype());
  const auto a = values_of(got);
  const auto b = values_of(want);
  double worst = 0.0;
  size_t at = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i]) continue;
    const double gap = std::abs(a[i] - b[i]) / (1.0 + std::abs(b[i]));
    if (!(gap <= worst)) {
      worst = gap;
      at = i;
    }
  }
  CAPTURE(at);
  if (!a.empty()) {
    CAPTURE(a[at]);
    CAPTURE(b[at]);
  }
  CHECK(worst <= tolerance);
}

inline bool same_bits(const HostHandle& a, const HostHandle& b) {
  const TensorData x = host::into_data(a);
  const TensorData y = host::into_data(b);
  return x.shape() == y.shape() && x.dtype() == y.dtype() &&
         (x.bytes() == 0 || std::memcmp(x.data(), y.data(), x.bytes()) == 0);
}

// Calls f() once for each instruction set that this machine has and the kernels were compiled for,
// and once with all of them where tile registers come into it.
template <class F>
void at_every_target(F&& f) {
  struct Restore {
    ~Restore() { cpu::restrict_targets_for_test(0); }
  } restore;
  int64_t left = cpu::supported_targets();
  while (left != 0) {
    const int64_t target = left & -left;
    left &= left - 1;
    cpu::restrict_targets_for_test(target);
    CAPTURE(std::string(cpu::target_name()));
    f();
  }
  cpu::restrict_targets_for_test(0);
  if (cpu::amx_kernels<bfloat16>() == nullptr) return;
  CAPTURE("with AMX");
  f();
}

// What f() returns (a list of tensors) must have the same bits at one thread and at many, and
// again.
template <class F>
void check_deterministic(F&& f) {
  const int threads = num_threads();
  struct Restore {
    int threads;
    ~Restore() { set_num_threads(threads); }
  } restore{threads};
  set_num_threads(1);
  const std::vector<HostHandle> one = f();
  for (const int n : {max_num_threads(), 2, max_num_threads()}) {
    set_num_threads(n);
    const std::vector<HostHandle> many = f();
    REQUIRE(one.size() == many.size());
    for (size_t i = 0; i < one.size(); ++i) CHECK(same_bits(one[i], many[i]));
  }
}

inline double kernel_tolerance(DType dtype) {
  return dtype == DType::f64   ? 1e-12
         : dtype == DType::f32 ? 2e-5
         : dtype == DType::f16 ? 2e-3
                               : 2e-2;
}

// The same bits, but for the signs of NaNs: of two, a sum gives one or the other, as the compiler
// ordered its operands. Without vectors it has two orders in one tile.
inline bool same_but_for_nans(const HostHandle& a, const HostHandle& b) {
  const std::vector<double> x = values_of(a), y = values_of(b);
  for (size_t i = 0; i < x.size(); ++i) {
    const bool same = std::bit_cast<uint64_t>(x[i]) == std::bit_cast<uint64_t>(y[i]);
    if (!same && !(std::isnan(x[i]) && std::isnan(y[i]))) return false;
  }
  return a->shape() == b->shape() && a->dtype() == b->dtype();
}

}  // namespace kiln::test
