// Cpu's matrix products against Reference: sizes around every block, all layouts, instruction sets
// and dtypes.
#include "kiln/backend/activated.h"
#include "neural_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

void check_product(const HostHandle& a, const HostHandle& b) {
  CAPTURE(to_string(a->shape()));
  CAPTURE(to_string(b->shape()));
  const HostHandle got = Cpu::float_matmul(a, b);
  const double depth = static_cast<double>(a->shape().back());
  check_close(got, Reference::float_matmul(a, b),
              kernel_tolerance(a->dtype()) * (1.0 + depth / 64.0));
}

}  // namespace

TEST_CASE("matmul: sizes around the kernels' blocks, stored in every way") {
  at_every_target([] {
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const int64_t m : {1, 5, 6, 7, 13, 14, 15, 29}) {
        for (const int64_t n : {1, 3, 8, 15, 16, 17, 31, 33, 65}) {
          for (const int64_t k : {1, 4, 17}) {
            const HostHandle a = random_tensor({m, k}, dtype, 1);
            const HostHandle b = random_tensor({k, n}, dtype, 2);
            check_product(a, b);
            check_product(stored_transposed(a), b);
            check_product(a, stored_transposed(b));
            check_product(stored_transposed(a), stored_transposed(b));
          }
        }
      }
    }
  });
}

TEST_CASE("matmul: larger than the packed blocks") {
  struct Size {
    int64_t m, n, k;
  };
  at_every_target([] {
    for (const auto& [m, n, k] : {Size{130, 70, 1030}, Size{37, 1100, 300}, Size{600, 40, 513},
                                  Size{3, 5, 2000}, Size{256, 256, 256}, Size{128, 512, 512},
                                  Size{60, 2600, 20}, Size{100, 90, 2100}, Size{15, 128, 1025}}) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        if (dtype == DType::f64 && m * n * k > 16 * 1000 * 1000) continue;
        const HostHandle a = random_tensor({m, k}, dtype, 1);
        const HostHandle b = random_tensor({k, n}, dtype, 2);
        check_product(a, b);
        check_product(stored_transposed(a), b);
        check_product(a, stored_transposed(b));
        check_product(stored_transposed(a), stored_transposed(b));
      }
    }
  });
}

TEST_CASE("matmul: many rows from memory times few columns") {
  struct Size {
    int64_t m, n, k;
  };
  at_every_target([] {
    for (const auto& [m, n, k] : {Size{8200, 33, 40}, Size{2700, 48, 101}, Size{950, 17, 300},
                                  Size{150, 50, 2000}, Size{70000, 20, 5}}) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        const HostHandle a = random_tensor({m, k}, dtype, 1);
        const HostHandle b = random_tensor({k, n}, dtype, 2);
        check_product(a, b);
        check_product(stored_transposed(a), b);
        check_product(a, stored_transposed(b));
      }
    }
  });
}

TEST_CASE("matmul: few rows times a transposed matrix") {
  at_every_target([] {
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const int64_t m : {2, 3, 4, 5, 6, 7, 8, 11, 13, 24}) {
        for (const auto& [n, k] :
             {std::pair<int64_t, int64_t>{1, 100}, {2, 64}, {7, 129}, {70, 67}, {203, 320}}) {
          const HostHandle b = stored_transposed(random_tensor({k, n}, dtype, 2));
          check_product(random_tensor({m, k}, dtype, 1), b);
          check_product(host::slice(random_tensor({m, k + 3}, dtype, 1), 1, Range{2, k + 2, 1}), b);
        }
      }
    }
  });
}

TEST_CASE("matmul: few rows times few columns, in many sums") {
  at_every_target([] {
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const int64_t m : {2, 3, 4, 5}) {
        for (const int64_t n : {2, 3, 8, 15, 16, 17, 31, 32, 33, 47, 64, 65}) {
          for (const int64_t k : {63, 64, 67, 130, 937}) {
            const HostHandle a = random_tensor({m, k}, dtype, 1),
                             b = random_tensor({k, n}, dtype, 2);
            check_product(a, b);
            if (k > 67) continue;
            check_product(stored_transposed(a), b);
            check_product(host::slice(random_tensor({m, k + 3}, dtype, 1), 1, Range{2, k + 2, 1}),
                          host::slice(random_tensor({k, n + 2}, dtype, 2), 1, Range{1, n + 1, 1}));
          }
        }
      }
    }
  });
}

TEST_CASE("matmul: few rows times a large matrix, a column or two beyond whole vectors") {
  struct Size {
    int64_t m, n, k;
  };
  at_every_target([] {
    for (const auto& [m, n, k] :
         {Size{2, 700, 300}, Size{3, 66001, 2}, Size{4, 257, 1030}, Size{5, 1030, 1025},
          Size{8, 2100, 500}, Size{16, 3001, 1400}, Size{70, 17, 67}, Size{70, 18, 130},
          Size{130, 33, 64}, Size{66, 49, 300}, Size{70, 9, 64}, Size{64, 65, 64}}) {
      CAPTURE(m);
      const HostHandle a = random_tensor({m, k}, DType::f32, 1);
      const HostHandle b = random_tensor({k, n}, DType::f32, 2);
      check_product(a, b);
      check_product(stored_transposed(a), b);
      check_product(a, stored_transposed(b));
      check_product(a,
                    host::slice(random_tensor({k, n + 5}, DType::f32, 3), 1, Range{3, n + 3, 1}));
    }
    check_product(random_tensor({3, 350}, DType::f64, 1), random_tensor({350, 260}, DType::f64, 2));
    check_product(random_tensor({70, 90}, DType::f64, 1), random_tensor({90, 17}, DType::f64, 2));
  });
}

TEST_CASE("matmul: gaps between elements, unaligned memory, 16-bit floats") {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const HostHandle a = random_tensor({19, 23}, dtype, 1);
    const HostHandle b = random_tensor({23, 37}, dtype, 2);
    check_product(stored_with_gaps(a), b);
    check_product(a, stored_with_gaps(b));
    check_product(stored_with_gaps(a), stored_with_gaps(b));
  }
}

TEST_CASE("matmul: batches") {
  const HostHandle a = random_tensor({3, 2, 5, 7}, DType::f32, 1);
  const HostHandle b = random_tensor({3, 2, 7, 4}, DType::f32, 2);
  check_product(a, b);
  check_product(stored_transposed(a), stored_transposed(b));
  check_product(a, random_tensor({7, 4}, DType::f32, 3));  // one B for all: a single product
  check_product(random_tensor({5, 7}, DType::f32, 3), b);  // one A for all
  check_product(a, random_tensor({2, 7, 4}, DType::f32, 3));
  check_product(random_tensor({3, 1, 5, 7}, DType::f32, 3),
                random_tensor({1, 2, 7, 4}, DType::f32, 4));
  check_product(host::permute(a, {1, 0, 2, 3}), host::permute(b, {1, 0, 2, 3}));
  check_product(host::permute(a, {1, 0, 2, 3}), random_tensor({7, 4}, DType::f32, 3));
  check_product(host::expand(random_tensor({1, 5, 7}, DType::f32, 5), {4, 5, 7}),
                random_tensor({4, 7, 6}, DType::f32, 6));
  check_product(host::expand(random_tensor({1, 7}, DType::f32, 5), {5, 7}),
                host::expand(random_tensor({7, 1}, DType::f32, 6), {7, 20}));
  check_product(random_tensor({2, 200, 300}, DType::f32, 7),
                random_tensor({2, 300, 200}, DType::f32, 8));
}

TEST_CASE("matmul: batches of small products") {
  at_every_target([] {
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const int64_t m : {2, 3, 7, 13, 48}) {
        for (const int64_t n : {2, 8, 15, 17, 33, 48}) {
          for (const int64_t k : {1, 2, 17, 48}) {
            const HostHandle a = random_tensor({3, m, k}, dtype, 1);
            const HostHandle b = random_tensor({3, k, n}, dtype, 2);
            check_product(a, b);
            check_product(stored_transposed(a), stored_transposed(b));
          }
        }
      }
    }
  });
}

TEST_CASE("matmul: nothing to multiply") {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16}) {
    check_product(random_tensor({3, 0}, dtype, 1), random_tensor({0, 4}, dtype, 2));
    check_product(random_tensor({0, 3}, dtype, 1), random_tensor({3, 4}, dtype, 2));
    check_product(random_tensor({2, 3}, dtype, 1), random_tensor({3, 0}, dtype, 2));
    check_product(random_tensor({0, 2, 3}, dtype, 1), random_tensor({0, 3, 2}, dtype, 2));
    check_product(random_tensor({2, 3, 0}, dtype, 1), random_tensor({2, 0, 5}, dtype, 2));
  }
}

TEST_CASE("matmul: infinities and NaN stay where they belong") {
  HostHandle a = random_tensor({20, 20}, DType::f32, 1);
  HostHandle b = random_tensor({20, 20}, DType::f32, 2);
  a->data_as<float>()[3 * 20 + 5] = std::numeric_limits<float>::infinity();
  b->data_as<float>()[7 * 20 + 2] = std::numeric_limits<float>::quiet_NaN();
  check_product(a, b);
}

TEST_CASE("int_matmul: every dtype, wrapping") {
  for (const DType dtype : {DType::i64, DType::i32, DType::i16, DType::i8, DType::u8}) {
    const HostHandle a = random_ints({2, 9, 17}, dtype, 120, 1);
    const HostHandle b = random_ints({17, 11}, dtype, 120, 2);
    CHECK(same_bits(Cpu::int_matmul(a, b), Reference::int_matmul(a, b)));
    CHECK(same_bits(
        Cpu::int_matmul(host::permute(a, {0, 2, 1}), random_ints({9, 3}, dtype, 100, 3)),
        Reference::int_matmul(host::permute(a, {0, 2, 1}), random_ints({9, 3}, dtype, 100, 3))));
  }
  const HostHandle none =
      Cpu::int_matmul(random_ints({2, 0}, DType::i32, 9, 1), random_ints({0, 2}, DType::i32, 9, 1));
  CHECK(values_of(none) == std::vector<double>{0, 0, 0, 0});
}

TEST_CASE("linear: any rank, with and without bias") {
  const auto check = [](const HostHandle& x, const HostHandle& w, const HostHandle* bias) {
    CAPTURE(to_string(x->shape()));
    check_close(Cpu::float_linear(x, w, bias), Reference::float_linear(x, w, bias),
                kernel_tolerance(x->dtype()) * 4);
  };
  at_every_target([&] {
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      const HostHandle w = random_tensor({33, 40}, dtype, 1);
      const HostHandle bias = random_tensor({33}, dtype, 2);
      for (const Shape& shape :
           {Shape{40}, Shape{1, 40}, Shape{7, 40}, Shape{2, 3, 40}, Shape{0, 40}, Shape{64, 40}}) {
        const HostHandle x = random_tensor(shape, dtype, 3);
        check(x, w, &bias);
        check(x, w, nullptr);
        check(stored_with_gaps(x), stored_with_gaps(w), &bias);
        check(x, stored_transposed(w), &bias);
      }
      const HostHandle empty_w = random_tensor({5, 0}, dtype, 1);
      const HostHandle five = random_tensor({5}, dtype, 2);
      for (const int64_t rows : {1, 3}) {
        const HostHandle empty_x = random_tensor({rows, 0}, dtype, 1);
        check(empty_x, empty_w, &five);
        check(empty_x, stored_transposed(empty_w), nullptr);
      }
    }
  });
  const HostHandle x = random_tensor({4, 3, 6, 40}, DType::f32, 3);
  const HostHandle w = random_tensor({10, 40}, DType::f32, 1);
  check(host::permute(x, {1, 0, 2, 3}), w, nullptr);  // rows at no even distance
}

TEST_CASE("linear_activation: the bits of linear, the activation and the sum one after another") {
  struct Size {
    int64_t m, n, k;
  };
  // Vectors, few rows, tiles; both operands packed, one, none; several runs of k; no k at all.
  const Size sizes[] = {{1, 70, 33},     {9, 1, 40},     {2, 40, 64},    {30, 17, 40},
                        {64, 300, 100},  {7, 5, 0},      {40, 700, 300}, {300, 40, 200},
                        {33, 600, 2100}, {128, 530, 64}, {8300, 40, 33}};
  const auto check = [&](const Size& size, DType dtype) {
    const HostHandle x = random_tensor({size.m, size.k}, dtype, 1);
    const HostHandle w = random_tensor({size.n, size.k}, dtype, 2);
    const HostHandle bias = random_tensor({size.n}, dtype, 3);
    const HostHandle residual = random_tensor({size.m, size.n}, dtype, 4);
    using enum Activation;
    for (const Activation activation : {none, relu, gelu, gelu_tanh, silu, tanh, sigmoid}) {
      CAPTURE(to_string(Shape{size.m, size.n, size.k}));
      CAPTURE(static_cast<int>(activation));
      const HostHandle active = activated<Cpu>(Cpu::float_linear(x, w, &bias), activation);
      CHECK(same_bits(Cpu::float_linear_activation(x, w, &bias, nullptr, activation), active));
      CHECK(same_bits(
          Cpu::float_linear_activation(x, stored_transposed(w), &bias, &residual, activation),
          Cpu::float_add(
              activated<Cpu>(Cpu::float_linear(x, stored_transposed(w), &bias), activation),
              residual)));
    }
  };
  at_every_target([&] {
    for (const Size& size : sizes) check(size, DType::f32);
    check({20, 70, 33}, DType::f64);
    check({64, 300, 100}, DType::f64);
    for (const Size& size : sizes) check(size, DType::bf16);
    check({20, 70, 33}, DType::f16);
  });
  const HostHandle x = random_tensor({300, 300}, DType::f32, 1);
  const HostHandle w = random_tensor({500, 300}, DType::f32, 2);
  const HostHandle residual = random_tensor({300, 500}, DType::f32, 3);
  check_deterministic([&] {
    return std::vector<HostHandle>{
        Cpu::float_linear_activation(x, w, nullptr, &residual, Activation::gelu)};
  });
}

TEST_CASE("matmul and linear: the same bits at any number of threads") {
  struct Size {
    int64_t m, n, k;
  };
  for (const auto& [m, n, k] :
       {Size{64, 64, 64}, Size{64, 256, 784}, Size{300, 300, 700}, Size{1, 1000, 512},
        Size{1000, 1, 512}, Size{2, 700, 900}, Size{4, 2000, 300}, Size{12, 9000, 500},
        Size{300, 49, 800}, Size{100, 90, 3000}, Size{9000, 40, 50}}) {
    const HostHandle a = random_tensor({m, k}, DType::f32, 1);
    const HostHandle b = random_tensor({n, k}, DType::f32, 2);
    const HostHandle bias = random_tensor({n}, DType::f32, 3);
    check_deterministic([&] {
      return std::vector<HostHandle>{
          Cpu::float_matmul(a, host::permute(b, {1, 0})),
          Cpu::float_matmul(a, stored_transposed(host::permute(b, {1, 0}))),
          Cpu::float_linear(a, b, &bias)};
    });
  }
  const HostHandle a = random_tensor({40, 30, 20}, DType::f32, 1);
  const HostHandle b = random_tensor({40, 20, 30}, DType::f32, 2);
  check_deterministic([&] { return std::vector<HostHandle>{Cpu::float_matmul(a, b)}; });
}
