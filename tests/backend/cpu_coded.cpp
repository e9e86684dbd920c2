// Cpu's AdamW with coded state against Reference.
#include <bit>
#include <cmath>

#include "kiln/backend/cpu/optim/coded_kernels.h"
#include "kiln/backend/dynamic_code.h"
#include "neural_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

struct Parameter {
  HostHandle p, g, codes1, largest1, codes2, largest2;

  Parameter(const Shape& shape, DType dtype, int64_t block)
      : p(random_tensor(shape, dtype, 1)),
        g(random_tensor(shape, dtype, 2)),
        codes1(random_ints(shape, DType::u8, 256, 3)),
        largest1(positive(blocks(shape, block), 4)),
        codes2(random_ints(shape, DType::u8, 256, 5)),
        largest2(positive(blocks(shape, block), 6)) {}

  static Shape blocks(const Shape& shape, int64_t block) {
    return {shape.numel() == 0 ? 0 : (shape.numel() - 1) / block + 1};
  }
  static HostHandle positive(const Shape& shape, uint64_t seed) {
    return Reference::float_abs(random_tensor(shape, DType::f32, seed));
  }
  template <class B>
  void step(const AdamW8bitStep& by) {
    B::float_adamw_8bit(p, g, codes1, largest1, codes2, largest2, by);
  }
  std::vector<HostHandle> all() const { return {p, codes1, largest1, codes2, largest2}; }
};

// Rounding may move a number over the middle between two others: few codes, and to a neighbour.
void check_codes(const HostHandle& got, const HostHandle& want) {
  const std::vector<double> a = values_of(got), b = values_of(want);
  REQUIRE(a.size() == b.size());
  size_t others = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    ++others;
    CHECK(std::abs(a[i] - b[i]) == 1.0);
  }
  CHECK(others <= 2 + a.size() / 1000);
}

void check_alike(const Parameter& got, const Parameter& want, DType dtype) {
  check_close(got.p, want.p, dtype == DType::bf16 ? 1e-2 : dtype == DType::f32 ? 1e-5 : 1e-12);
  check_codes(got.codes1, want.codes1);
  check_codes(got.codes2, want.codes2);
  check_close(got.largest1, want.largest1, 1e-6);
  check_close(got.largest2, want.largest2, 1e-6);
}

const Shape kShapes[] = {{7}, {0, 3}, {300, 130}, {}, {17, 3}, {256}, {257}};
const AdamW8bitStep kStep{.lr = 0.01, .beta2 = 0.99, .weight_decay = 0.1, .step = 3};

}  // namespace

TEST_CASE("adamw_8bit: cells find the code that a search finds") {
  for (const bool with_signs : {false, true}) {
    const DynamicCode& code = dynamic_code(with_signs);
    const cpu::CodeCells& cells = cpu::code_cells(with_signs);
    const auto check = [&](float x) {
      if (cells.code_of(x) != code.code_of(x)) FAIL_CHECK("at ", x);
    };
    // Both ends of every cell, the floats around every middle, and some others.
    for (uint32_t cell = 0; cell < 65536; ++cell) {
      for (const uint32_t low : {0x0u, 0x1u, 0x7fffu, 0xffffu}) {
        const auto x = std::bit_cast<float>((cell << 16) | low);
        if (std::isfinite(x)) check(x);
      }
    }
    for (const auto& numbers : {std::vector<float>(code.middles.begin(), code.middles.end()),
                                std::vector<float>(code.numbers.begin(), code.numbers.end())}) {
      for (const float x : numbers) {
        check(x);
        check(std::nextafter(x, -2.0F));
        check(std::nextafter(x, 2.0F));
      }
    }
    for (int i = 0; i < 256; ++i) CHECK(code.code_of(code.numbers[static_cast<size_t>(i)]) == i);
  }
}

TEST_CASE("adamw_8bit: every dtype and size, at every instruction set") {
  at_every_target([] {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      for (const Shape& shape : kShapes) {
        for (const int64_t block : {5, 256, 100000}) {
          CAPTURE(to_string(dtype));
          CAPTURE(to_string(shape));
          AdamW8bitStep step = kStep;
          step.block = block;
          Parameter got(shape, dtype, block), want(shape, dtype, block);
          got.step<Cpu>(step);
          want.step<Reference>(step);
          check_alike(got, want, dtype == DType::f16 ? DType::bf16 : dtype);
        }
      }
    }
  });
}

TEST_CASE("adamw_8bit: the composition") {
  for (const Shape& shape : kShapes) {
    for (const int64_t block : {5, 256, 100000}) {
      AdamW8bitStep step = kStep;
      step.block = block;
      Parameter got(shape, DType::f64, block), want(shape, DType::f64, block);
      got.step<BackendDefaults<Reference>>(step);
      want.step<Reference>(step);
      check_alike(got, want, DType::f64);
    }
  }
}

TEST_CASE("adamw_8bit: a gradient that is no number spoils its block and no other") {
  Parameter x({600}, DType::f32, 256);
  x.g->data_as<float>()[300] = std::nanf("");
  x.step<Cpu>(kStep);
  const std::vector<double> p = values_of(x.p), largest = values_of(x.largest1);
  for (size_t i = 0; i < p.size(); ++i) CHECK(std::isnan(p[i]) == (i == 300));
  CHECK(std::isfinite(largest[0]));
  CHECK(std::isnan(largest[1]));
  CHECK(std::isfinite(largest[2]));
}

TEST_CASE("adamw_8bit: views, versions, blocks of zeros") {
  Parameter x({40, 30}, DType::f32, 16), want({40, 30}, DType::f32, 16);
  AdamW8bitStep step = kStep;
  step.block = 16;
  x.p = stored_transposed(x.p);
  x.g = stored_with_gaps(x.g);
  x.codes2 = stored_transposed(x.codes2);
  const uint32_t before = x.codes1->version();
  x.step<Cpu>(step);
  want.step<Reference>(step);
  check_alike(x, want, DType::f32);
  CHECK(x.codes1->version() > before);

  Parameter zero({20}, DType::f32, 16);
  for (const HostHandle& all : {zero.g, zero.largest1, zero.largest2}) {
    Reference::float_fill(all, Scalar(0.0));
  }
  zero.step<Cpu>(step);
  CHECK(values_of(zero.largest1) == std::vector<double>{0, 0});
  CHECK(values_of(zero.largest2) == std::vector<double>{0, 0});
  const uint8_t none = dynamic_code(true).code_of(0.0F);
  for (const double code : values_of(zero.codes1)) CHECK(code == none);
  for (const double code : values_of(zero.codes2)) CHECK(code == 0);
}

TEST_CASE("adamw_8bit: the same bits at any number of threads") {
  check_deterministic([] {
    Parameter x({300, 1300}, DType::f32, 256);
    x.step<Cpu>(kStep);
    return x.all();
  });
}
