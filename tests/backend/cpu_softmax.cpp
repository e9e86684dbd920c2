// Cpu's softmax family, cross-entropy and dropout against Reference.
#include <limits>

#include "kiln/backend/random_fill.h"
#include "kiln/core/error.h"
#include "neural_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

HostHandle scaled(const HostHandle& x, double factor) {
  return Reference::float_mul_scalar(x, factor);
}

void check_softmax(const Shape& shape, int dim, DType dtype) {
  CAPTURE(to_string(shape));
  CAPTURE(dim);
  CAPTURE(to_string(dtype));
  const HostHandle x = scaled(random_tensor(shape, dtype, 1), 10.0);
  const HostHandle g = random_tensor(shape, dtype, 2);
  const double tolerance = kernel_tolerance(dtype);
  const HostHandle y = Reference::float_softmax(x, dim);
  const HostHandle log_y = Reference::float_log_softmax(x, dim);
  check_close(Cpu::float_softmax(x, dim), y, tolerance);
  check_close(Cpu::float_log_softmax(x, dim), log_y, tolerance);
  check_close(Cpu::float_softmax_backward(g, y, dim), Reference::float_softmax_backward(g, y, dim),
              tolerance);
  check_close(Cpu::float_log_softmax_backward(g, log_y, dim),
              Reference::float_log_softmax_backward(g, log_y, dim), tolerance * 4);
  for (const bool keepdim : {false, true}) {
    check_close(Cpu::float_logsumexp(x, {dim}, keepdim),
                Reference::float_logsumexp(x, {dim}, keepdim), tolerance);
  }
}

HostHandle targets_of(std::vector<int64_t> values) {
  const auto n = static_cast<int64_t>(values.size());
  return host::from_data(TensorData(values, {n}), Device());
}

}  // namespace

TEST_CASE("softmax, log_softmax, logsumexp: rows and columns of every length") {
  at_every_target([] {
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const int64_t n : {1, 2, 10, 15, 16, 17, 63, 64, 65, 1000})
        check_softmax({3, n}, 1, dtype);
      for (int64_t n = 2; n < 36; ++n) check_softmax({n % 3 == 0 ? 67 : 16, n}, 1, dtype);
      for (const int64_t n : {1, 3, 16, 17, 130}) check_softmax({5, n}, 0, dtype);
      check_softmax({2, 5, 7}, 1, dtype);
      check_softmax({2, 3, 4, 33}, 2, dtype);
      check_softmax({4}, 0, dtype);
    }
  });
  for (const DType dtype : {DType::f16, DType::bf16}) {
    check_softmax({3, 10}, 1, dtype);
    check_softmax({3, 10}, 0, dtype);
  }
  check_softmax({0, 4}, 1, DType::f32);
  check_softmax({3, 0, 2}, 0, DType::f32);
}

TEST_CASE("logsumexp: several dims, none, an empty one") {
  const HostHandle x = random_tensor({3, 4, 5}, DType::f32, 1);
  for (const Dims& dims : {Dims{0, 2}, Dims{0, 1, 2}, Dims{1}, Dims{}}) {
    check_close(Cpu::float_logsumexp(x, dims, false), Reference::float_logsumexp(x, dims, false),
                1e-5);
  }
  const HostHandle empty = random_tensor({3, 0}, DType::f32, 1);
  check_close(Cpu::float_logsumexp(empty, {1}, false),
              Reference::float_logsumexp(empty, {1}, false), 0.0);
}

TEST_CASE("softmax: infinities, NaN, large and small logits") {
  at_every_target([] {
    for (const int64_t n : {5, 40}) {
      // As one of a few rows, and of more.
      HostHandle x = random_tensor({20, n}, DType::f32, 1);
      auto* v = x->data_as<float>();
      for (int64_t i = 0; i < n; ++i) v[i] = -kInfinity;  // all -inf
      v[n + 3] = kInfinity;                               // one +inf
      v[2 * n + 1] = std::numeric_limits<float>::quiet_NaN();
      v[3 * n + 2] = -kInfinity;
      for (int64_t i = 0; i < n; ++i) v[4 * n + i] = 1e30f;
      v[5 * n] = -1e30f;
      v[6 * n + 2] = 200.0f;
      for (int64_t i = 0; i < n; ++i) v[7 * n + i] = std::numeric_limits<float>::quiet_NaN();
      for (const int64_t rows : {8, 20}) {
        const HostHandle some = host::slice(x, 0, Range{0, rows, 1});
        check_close(Cpu::float_softmax(some, 1), Reference::float_softmax(some, 1), 1e-6);
        check_close(Cpu::float_log_softmax(some, 1), Reference::float_log_softmax(some, 1), 1e-6);
        check_close(Cpu::float_logsumexp(some, {1}, false),
                    Reference::float_logsumexp(some, {1}, false), 1e-6);
      }
      const HostHandle columns =
          host::into_data(host::permute(x, {1, 0})).numel() == 0
              ? x
              : host::from_data(host::into_data(host::permute(x, {1, 0})), Device());
      check_close(Cpu::float_softmax(columns, 0), Reference::float_softmax(columns, 0), 1e-6);
      check_close(Cpu::float_log_softmax(columns, 0), Reference::float_log_softmax(columns, 0),
                  1e-6);
    }
  });
}

TEST_CASE("cross_entropy: smoothing, ignored rows, gradients") {
  at_every_target([] {
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      for (const int64_t classes : {1, 10, 17, 300}) {
        for (const double smoothing : {0.0, 0.1, 1.0}) {
          CAPTURE(classes);
          const CrossEntropyOptions options{-100, smoothing};
          const HostHandle x = scaled(random_tensor({18, classes}, dtype, 1), 5.0);
          const int64_t last = classes - 1, middle = classes / 2;
          const HostHandle targets = targets_of({0, last, -100, middle, 0, -100, 0, last, -100,
                                                 middle, 0, -100, 0, last, -100, middle, 0, last});
          const HostHandle g = random_tensor({18}, dtype, 2);
          const auto [loss, lse] = Cpu::float_cross_entropy(x, targets, options);
          const auto [want, want_lse] = Reference::float_cross_entropy(x, targets, options);
          check_close(loss, want, kernel_tolerance(dtype));
          check_close(lse, want_lse, kernel_tolerance(dtype));
          check_close(Cpu::float_cross_entropy_backward(g, x, targets, want_lse, options),
                      Reference::float_cross_entropy_backward(g, x, targets, want_lse, options),
                      kernel_tolerance(dtype) * 2);
        }
      }
    }
  });
  const auto [loss, lse] =
      Cpu::float_cross_entropy(random_tensor({0, 5}, DType::f32, 1), targets_of({}), {});
  CHECK(loss->shape() == Shape{0});
  CHECK(lse->shape() == Shape{0});
}

TEST_CASE("cross_entropy: a class that is out of range") {
  const HostHandle x = random_tensor({2, 5}, DType::f32, 1);
  const std::string message =
      "cross_entropy: target out of range; got 5 in row 1; expected 0 to 4 or ignore_index -100";
  CHECK_THROWS_WITH_AS(Cpu::float_cross_entropy(x, targets_of({0, 5}), {}), message.c_str(),
                       IndexError);
  CHECK_THROWS_AS(Cpu::float_cross_entropy(x, targets_of({-1, 0}), {}), IndexError);
  CHECK_NOTHROW(Cpu::float_cross_entropy(x, targets_of({5, 0}), {5, 0.0}));
}

TEST_CASE(
    "softmax and cross_entropy: donated and strided operands, the same bits at any number of "
    "threads") {
  const HostHandle x = random_tensor({300, 500}, DType::f32, 1);
  const HostHandle g = random_tensor({300, 500}, DType::f32, 2);
  const HostHandle y = Cpu::float_softmax(x, 1);
  CHECK(same_bits(Cpu::float_softmax(random_tensor({300, 500}, DType::f32, 1), 1), y));
  CHECK(same_bits(Cpu::float_softmax(stored_with_gaps(x), 1), y));
  CHECK(same_bits(Cpu::float_log_softmax(random_tensor({300, 500}, DType::f32, 1), 0),
                  Cpu::float_log_softmax(x, 0)));
  CHECK(same_bits(Cpu::float_softmax_backward(random_tensor({300, 500}, DType::f32, 2), y, 1),
                  Cpu::float_softmax_backward(g, y, 1)));
  HostHandle donated = random_tensor({300, 500}, DType::f32, 1);
  const void* memory = donated->data();
  CHECK(Cpu::float_softmax(std::move(donated), 1)->data() == memory);
  const HostHandle targets = random_ints({300}, DType::i64, 500, 3);
  const HostHandle weights = random_tensor({300}, DType::f32, 4);
  check_deterministic([&] {
    const auto [loss, lse] = Cpu::float_cross_entropy(x, targets, {-100, 0.1});
    return std::vector<HostHandle>{
        Cpu::float_softmax(x, 1),
        Cpu::float_softmax(x, 0),
        Cpu::float_log_softmax(x, 0),
        Cpu::float_softmax_backward(g, y, 0),
        Cpu::float_log_softmax_backward(g, y, 1),
        Cpu::float_logsumexp(x, {0}, false),
        loss,
        lse,
        Cpu::float_cross_entropy_backward(weights, x, targets, lse, {-100, 0.1})};
  });
}

TEST_CASE("dropout: the mask is that of the stream") {
  at_every_target([] {
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      for (const int64_t n : {1, 3, 4, 63, 64, 65, 1000, 5001}) {
        for (const double p : {0.0, 0.3, 0.5, 1.0}) {
          const HostHandle x = random_tensor({n}, dtype, 1);
          // An offset just below 2^32: the counters' halves must carry.
          for (const RandomStream stream :
               {RandomStream{7, 0}, RandomStream{0x123456789abcdefull, 0xfffffffaull}}) {
            check_close(Cpu::float_dropout(x, p, stream), Reference::float_dropout(x, p, stream),
                        kernel_tolerance(dtype));
          }
        }
      }
    }
  });
  const RandomStream stream{3, 5};
  TensorData draws({100}, DType::f32);
  host::fill_random(draws, Distribution::uniform(), stream);
  const HostHandle ones = Cpu::float_full({100}, 1.0, DType::f32, Device());
  const auto kept = values_of(Cpu::float_dropout(ones, 0.25, stream));
  const auto uniform = draws.to_doubles();
  for (size_t i = 0; i < kept.size(); ++i) CHECK((kept[i] != 0.0) == (uniform[i] >= 0.25));
  const HostHandle x = random_tensor({100000}, DType::f32, 1);
  check_deterministic([&] { return std::vector<HostHandle>{Cpu::float_dropout(x, 0.5, stream)}; });
}

TEST_CASE("Cpu: softmax of 16-bit floats is float's, rounded once") {
  for (const DType dtype : {f16, bf16}) {
    for (const Shape& shape : {Shape{700, 33}, Shape{3, 9000}, Shape{40, 257, 70}}) {
      CAPTURE(to_string(shape));
      const HostHandle x = random_tensor(shape, dtype, 4);
      const HostHandle wide = CpuOps::float_cast(x, f32);
      for (int dim = 0; dim < shape.rank(); ++dim) {
        CHECK(same_bits(CpuOps::float_softmax(x, dim),
                        CpuOps::float_cast(CpuOps::float_softmax(wide, dim), dtype)));
        CHECK(same_bits(CpuOps::float_log_softmax(x, dim),
                        CpuOps::float_cast(CpuOps::float_log_softmax(wide, dim), dtype)));
      }
    }
  }
}
