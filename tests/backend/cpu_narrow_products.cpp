// Products of bf16, f16 and int8 on the Cpu backend: bounds on their errors, at every instruction
// set, and the same bits at any number of threads.
#include <limits>

#include "kiln/backend/cpu/matmul/gemm_int8.h"
#include "kiln/core/kept_data.h"
#include "tests/backend/neural_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

struct NarrowSizes {
  int64_t m, k, n;
};
// Vectors, odd depths, what is less than a panel, a panel, and several with a rest.
constexpr NarrowSizes kNarrowSizes[] = {{1, 1, 1},    {1, 37, 50},   {33, 70, 1},     {2, 3, 5},
                                        {14, 64, 32}, {15, 65, 33},  {31, 1, 47},     {97, 129, 70},
                                        {5, 0, 3},    {64, 300, 64}, {130, 259, 161}, {3, 5000, 40},
                                        {48, 32, 96}, {70, 448, 49}, {3, 1541, 300}};

std::vector<double> magnitudes(const HostHandle& a, const HostHandle& b) {
  return values_of(Reference::float_matmul(Reference::float_abs(Reference::float_cast(a, f64)),
                                           Reference::float_abs(Reference::float_cast(b, f64))));
}

// Half a unit of the last place for the result, and for each of the k + 1 additions in float one of
// float's, of all that is added.
void check_product(const HostHandle& got, const HostHandle& a, const HostHandle& b) {
  const auto want = values_of(
      Reference::float_matmul(Reference::float_cast(a, f64), Reference::float_cast(b, f64)));
  const auto all = magnitudes(a, b);
  const auto values = values_of(got);
  REQUIRE(values.size() == want.size());
  const double unit = got->dtype() == bf16 ? 0x1p-8 : 0x1p-11;
  const double steps = static_cast<double>(a->shape().back() + 1) * 0x1p-24;
  double worst = 0.0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double bound = unit * std::abs(want[i]) + steps * (1 + unit) * all[i] +
                         (got->dtype() == f16 ? 0x1p-25 : 0);
    if (values[i] != want[i]) worst = std::max(worst, std::abs(values[i] - want[i]) / bound);
  }
  CHECK(worst <= 1.0);
}

}  // namespace

TEST_CASE("products of 16-bit floats: rounded once, sums in float") {
  at_every_target([] {
    for (const DType dtype : {bf16, f16}) {
      for (const NarrowSizes& s : kNarrowSizes) {
        CAPTURE(s.m);
        CAPTURE(s.k);
        CAPTURE(s.n);
        const HostHandle a = random_tensor({s.m, s.k}, dtype, 1);
        const HostHandle b = random_tensor({s.k, s.n}, dtype, 2);
        for (const HostHandle& x : {a, stored_transposed(a), stored_with_gaps(a)}) {
          for (const HostHandle& y : {b, stored_transposed(b), stored_with_gaps(b)}) {
            check_product(Cpu::float_matmul(x, y), a, b);
          }
        }
      }
    }
  });
}

TEST_CASE("products of 16-bit floats: batches and biases") {
  at_every_target([] {
    for (const DType dtype : {bf16, f16}) {
      const HostHandle a = random_tensor({3, 1, 20, 33}, dtype, 1);
      const HostHandle b = random_tensor({2, 33, 35}, dtype, 2);
      check_close(Cpu::float_matmul(a, b), Reference::float_matmul(a, b),
                  dtype == bf16 ? 0x1p-7 : 0x1p-10);
      const HostHandle w = random_tensor({35, 33}, dtype, 3);
      const HostHandle bias = random_tensor({35}, dtype, 4);
      for (const HostHandle& x : {a, random_tensor({33}, dtype, 5)}) {
        check_close(Cpu::float_linear(x, w, &bias), Reference::float_linear(x, w, &bias),
                    dtype == bf16 ? 0x1p-7 : 0x1p-10);
      }
    }
  });
}

TEST_CASE("products of bf16: infinities and NaN where they belong, subnormal numbers near zero") {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto matrix = [](const std::vector<double>& x, const Shape& shape) {
    return host::from_data(TensorData(x, shape).cast(bf16), Device());
  };
  at_every_target([&] {
    for (const int64_t rows : {1, 3}) {
      std::vector<double> a;
      for (int64_t i = 0; i < rows; ++i) a.insert(a.end(), {1, inf, 2});
      const HostHandle x = matrix(a, {rows, 3});
      const HostHandle y = matrix({1, 1, nan, 1, 1, 0, 1, -1, 1, -inf, 1, 1}, {3, 4});
      for (int64_t i = 0; i < rows; ++i) {
        const auto got = values_of(Cpu::float_matmul(x, y));
        CHECK(got[static_cast<size_t>(4 * i)] == inf);
        CHECK(std::isnan(got[static_cast<size_t>(4 * i + 1)]));  // inf * 0 and -inf
        CHECK(std::isnan(got[static_cast<size_t>(4 * i + 2)]));
        CHECK(got[static_cast<size_t>(4 * i + 3)] == -inf);
      }
      // Overflow of the sum, and of its rounding to bf16.
      const HostHandle big =
          matrix(std::vector<double>(static_cast<size_t>(rows * 2), 3e38), {rows, 2});
      CHECK(values_of(Cpu::float_matmul(big, matrix({1, 1, 1, 1}, {2, 2})))[0] == inf);
      // Subnormal operands may count as zero: off by less than 2^-126 each.
      const HostHandle small =
          matrix(std::vector<double>(static_cast<size_t>(rows * 2), 0x1p-130), {rows, 2});
      const double sum = values_of(Cpu::float_matmul(small, matrix({1, 1, 1, 1}, {2, 2})))[0];
      CHECK(sum >= 0.0);
      CHECK(sum <= 0x1p-129);
    }
  });
}

TEST_CASE("products of narrow numbers: the same bits at any number of threads") {
  at_every_target([] {
    check_deterministic([] {
      std::vector<HostHandle> out;
      for (const DType dtype : {bf16, f16}) {
        for (const NarrowSizes& s : {NarrowSizes{1, 900, 700}, {700, 900, 1}, {200, 257, 170}}) {
          out.push_back(Cpu::float_matmul(random_tensor({s.m, s.k}, dtype, 1),
                                          random_tensor({s.k, s.n}, dtype, 2)));
        }
      }
      for (const QuantActivations activations :
           {QuantActivations::floating, QuantActivations::dynamic}) {
        for (const QuantScheme& scheme :
             {QuantScheme{.level = QuantLevel::channel, .activations = activations},
              QuantScheme{.bits = 4,
              .level = QuantLevel::block,
              .block = 32,
              .activations = activations}}) {
          const QuantizedHandle w = Cpu::float_quantize(random_tensor({300, 257}, f32, 3), scheme);
          for (const int64_t rows : {1, 130}) {
            out.push_back(
                Cpu::float_linear_quantized(random_tensor({rows, 257}, f32, 4), w, nullptr));
          }
        }
      }
      return out;
    });
  });
}

TEST_CASE("quantize: the integers of exact quotients, at every instruction set") {
  // Multiples of a half of the scale, and their neighbours.
  std::vector<float> x;
  const float scale = 0.037f;
  for (int i = -300; i <= 300; ++i) {
    const float at = static_cast<float>(static_cast<double>(scale) * 0.5 * i);
    for (const float value : {at, std::nextafter(at, 100.0f), std::nextafter(at, -100.0f)}) {
      x.push_back(value);
    }
  }
  const auto n = static_cast<int64_t>(x.size());
  const HostHandle values = host::from_data(TensorData(x, {n}), Device());
  for (const double given : {static_cast<double>(scale), 0.037, 1e-42}) {
    for (const int bits : {8, 4}) {
      const QuantScheme scheme{.scale = given, .bits = bits};
      const auto want =
          values_of(Reference::q_dequantize(Reference::float_quantize(values, scheme), f64));
      at_every_target([&] {
        CHECK(values_of(Cpu::q_dequantize(Cpu::float_quantize(values, scheme), f64)) == want);
      });
    }
  }
}

TEST_CASE("products of int8: sums of any length are exact") {
  // 127 * 127 * 140000 is more than 32 bits hold.
  const int64_t k = 140000;
  const QuantScheme scheme{.scale = 1.0};
  at_every_target([&] {
    const QuantizedHandle a =
        Cpu::float_quantize(Reference::float_full({2, k}, 127.0, f32, Device()), scheme);
    const QuantizedHandle b =
        Cpu::float_quantize(Reference::float_full({3, k}, -127.0, f32, Device()), scheme);
    for (const double got : values_of(Cpu::q_matmul(a, b, true, f32))) {
      CHECK(got == doctest::Approx(-127.0 * 127.0 * static_cast<double>(k)).epsilon(1e-6));
    }
  });
}

TEST_CASE(
    "products of int8: any shape, scales of rows and blocks, the weight packed once or anew") {
  struct Keeping {
    Keeping() { kiln::detail::set_keeps_data(true); }
    ~Keeping() { kiln::detail::set_keeps_data(false); }
  };
  for (const NarrowSizes& s :
       {NarrowSizes{7, 130, 33}, {33, 700, 97}, {64, 1500, 40}, {130, 2048, 64}}) {
    CAPTURE(s.m);
    CAPTURE(s.k);
    const HostHandle x = random_tensor({s.m, s.k}, f32, 1);
    const HostHandle bias = random_tensor({s.n}, f32, 2);
    for (const int64_t block : {0, 32, 256, 640}) {
      for (const int bits : {8, 4}) {
        CAPTURE(block);
        CAPTURE(bits);
        QuantScheme scheme{.bits = bits,
                           .level = block == 0 ? QuantLevel::channel : QuantLevel::block,
                           .activations = QuantActivations::dynamic};
        if (block != 0) scheme.block = block;
        const QuantizedHandle w = Cpu::float_quantize(random_tensor({s.n, s.k}, f32, 3), scheme);
        const auto want = values_of(Reference::float_linear_quantized(x, w, &bias));
        at_every_target([&] {
          const Keeping keeping;
          const HostHandle first = Cpu::float_linear_quantized(x, w, &bias);
          const auto got = values_of(first);
          double worst = 0;
          for (size_t i = 0; i < want.size(); ++i) {
            worst = std::max(worst, std::abs(got[i] - want[i]));
          }
          CHECK(worst < 1e-4 * std::sqrt(static_cast<double>(s.k)));
          for (int i = 0; i < 4; ++i) {
            CHECK(same_bits(Cpu::float_linear_quantized(x, w, &bias), first));
          }
        });
      }
    }
  }
}
