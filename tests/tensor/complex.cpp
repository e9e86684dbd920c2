// Complex tensors: what they are, their parts, shapes, conversions and gradients.
#include "kiln/tensor/complex/complex.h"

#include "tests/support/tensor_check.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::test;

namespace {

using Complex = std::complex<double>;
using Complexes = std::vector<Complex>;
constexpr Complex i(0, 1);

Complexes values(const Tensor& z) { return z.to_vector<Complex>(); }

// 0, 1 + i, 2 + 2i, ...
Tensor counted(const Shape& shape, DType dtype, Device device) {
  const Tensor x = arange(shape.numel(), {real_dtype(dtype), device}).reshape(shape);
  return complex(x, x);
}

}  // namespace

TEST_CASE("a complex tensor is pairs of floats that look like one number") {
  for (const Device device : {Device(kCpu), Device(kReference)}) {
    for (const DType dtype : {c64, c128}) {
      const Tensor re = tensor({1.0, 2.0, 3.0}, {real_dtype(dtype), device});
      const Tensor im = tensor({-1.0, 0.5, 0.0}, {real_dtype(dtype), device});
      const Tensor z = complex(re, im);
      CHECK(z.dtype() == dtype);
      CHECK(z.shape() == Shape{3});
      CHECK(z.numel() == 3);
      CHECK(z.stride() == Strides{1});
      CHECK(z.is_contiguous());
      CHECK(is_complex(z));
      CHECK_FALSE(z.is_floating_point());
      CHECK(values(z) == Complexes{1.0 - i, 2.0 + 0.5 * i, 3.0});
      CHECK(values(conj(z)) == Complexes{1.0 + i, 2.0 - 0.5 * i, 3.0});
      CHECK(real(z).to_vector<double>() == re.to_vector<double>());
      CHECK(imag(z).to_vector<double>() == im.to_vector<double>());
      CHECK(real(re).is_same(re));
      CHECK(conj(re).is_same(re));
      CHECK(isreal(z).to_vector<bool>() == std::vector<bool>{false, false, true});
      CHECK(z[1].item<Complex>() == 2.0 + 0.5 * i);
      CHECK(z.to_data().dtype() == dtype);
      CHECK(values(Tensor(z.to_data(), device)) == values(z));
    }
  }
  CHECK(counted({2}, c64, kCpu).data_ptr<std::complex<float>>()[1] == std::complex<float>(1, 1));
  CHECK(counted({2}, c128, kCpu).data_ptr<Complex>()[1] == 1.0 + i);
  CHECK(error_lacks<DTypeError>([] { counted({2}, c64, kCpu).data_ptr<float>(); },
                                {"data_ptr: ", "complex64", "float32"}) == "");
}

TEST_CASE("complex tensors are made as real ones are") {
  for (const Device device : {Device(kCpu), Device(kReference)}) {
    CHECK(values(zeros({2}, {c64, device})) == Complexes{0, 0});
    CHECK(values(ones({2}, {c128, device})) == Complexes{1, 1});
    CHECK(values(full({2}, 2.0 - i, {.device = device})) == Complexes{2.0 - i, 2.0 - i});
    CHECK(full({2}, 2.0 - i).dtype() == c64);
    CHECK(values(full({1}, 3, {c64, device})) == Complexes{3});
    CHECK(values(tensor(Complexes{i, 2})) == Complexes{i, 2});
    CHECK(tensor(std::vector<std::complex<float>>{1}).dtype() == c64);
    CHECK(values(from_vector(Complexes{1, i, -1, -i}, {2, 2}).select(0, 1)) == Complexes{-1, -i});
    CHECK(empty({2, 3}, {c64, device}).shape() == Shape{2, 3});
    CHECK(zeros_like(zeros({4}, {c128, device})).dtype() == c128);
    CHECK(values(polar(tensor({2.0}, {f64, device}), tensor({0.0}, {f64, device}))) ==
          Complexes{2});
    CHECK(tensor(i, {c128, device}).item<Complex>() == i);
    CHECK(zeros({}, {c64, device}).dim() == 0);
    CHECK(zeros({0, 3}, {c64, device}).numel() == 0);
  }
  // Both parts have half the variance.
  const Tensor noise = randn({10000}, {c128});
  CHECK(real(noise).square().mean().item() == doctest::Approx(0.5).epsilon(0.1));
  CHECK(imag(noise).square().mean().item() == doctest::Approx(0.5).epsilon(0.1));
  CHECK(error_lacks<DTypeError>([] { complex(zeros({2}), zeros({2}, {f64})); },
                                {"complex: ", "float32", "float64"}) == "");
  CHECK(error_lacks<DTypeError>([] { complex(zeros({2}, {f16}), zeros({2}, {f16})); },
                                {"complex: ", "float16"}) == "");
  CHECK(error_lacks<DTypeError>([] { imag(zeros({2})); }, {"imag: ", "float32"}) == "");
}

TEST_CASE("parts of a complex tensor are views") {
  const Tensor z = counted({2, 2}, c64, kCpu);
  Tensor im = imag(z);
  im.fill_(7);
  CHECK(values(z) == Complexes{7.0 * i, 1.0 + 7.0 * i, 2.0 + 7.0 * i, 3.0 + 7.0 * i});
  Tensor first = view_as_real(z).select(0, 0);
  first.fill_(1);
  CHECK(values(z[0]) == Complexes{1.0 + i, 1.0 + i});
  Tensor pairs = arange(8, {f64}).reshape({2, 2, 2});
  const Tensor w = view_as_complex(pairs);
  CHECK(values(w.t().reshape({4})) == Complexes{i, 4.0 + 5.0 * i, 2.0 + 3.0 * i, 6.0 + 7.0 * i});
  pairs.fill_(2);
  CHECK(values(w[0]) == Complexes{2.0 + 2.0 * i, 2.0 + 2.0 * i});
  CHECK(error_lacks<ShapeError>(
            [&] {
              view_as_complex(zeros({2, 3}));
            },
            {"view_as_complex: ", "[2, 3]"}) == "");
  CHECK(error_lacks<ShapeError>(
            [&] {
              view_as_complex(zeros({2, 2}).t());
            },
            {"view_as_complex: ", "strides"}) == "");
  CHECK(error_lacks<DTypeError>([&] { view_as_complex(zeros({2}, {i64})); },
                                {"view_as_complex: ", "int64"}) == "");
}

TEST_CASE("shapes of complex tensors change as those of real ones") {
  for (const Device device : {Device(kCpu), Device(kReference)}) {
    const Tensor z = counted({2, 3, 4}, c128, device);
    const Tensor x = arange(24, {f64, device}).reshape({2, 3, 4});
    const auto same = [&](const Tensor& got, const Tensor& expected) {
      CHECK(got.dtype() == c128);
      CHECK(got.shape() == expected.shape());
      CHECK(real(got).to_vector<double>() == expected.to_vector<double>());
      CHECK(imag(got).to_vector<double>() == expected.to_vector<double>());
    };
    same(z.reshape({6, -1}), x.reshape({6, -1}));
    same(z.view({24}), x.view({24}));
    same(z.permute({2, 0, 1}), x.permute({2, 0, 1}));
    same(z.transpose(-1, 0), x.transpose(-1, 0));
    same(z.unsqueeze(-1), x.unsqueeze(-1));
    same(z.unsqueeze(-1).squeeze(-1), x);
    same(z.unsqueeze(0).squeeze(), x);
    same(z.flatten(1), x.flatten(1));
    same(z.flip({-1, 0}), x.flip({-1, 0}));
    same(z.select(-1, 2), x.select(-1, 2));
    same(z.slice(-1, 1, 4, 2), x.slice(-1, 1, 4, 2));
    same(z.narrow(1, 1, 2), x.narrow(1, 1, 2));
    same(z.index({1, None, Ellipsis, Slice(1, 3)}), x.index({1, None, Ellipsis, Slice(1, 3)}));
    same(z.expand({2, 2, 3, 4}), x.expand({2, 2, 3, 4}));
    same(z.split(2, -1)[1], x.split(2, -1)[1]);
    same(z.unbind(1)[2], x.unbind(1)[2]);
    same(cat({z, z}, -1), cat({x, x}, -1));
    same(stack({z, z}, -1), stack({x, x}, -1));
    same(z.permute({2, 0, 1}).contiguous(), x.permute({2, 0, 1}));
    same(z.clone(), x);
    CHECK(real(cat({z, x}, 0)).to_vector<double>() == cat({x, x}, 0).to_vector<double>());
    CHECK(imag(cat({z, x}, 0)).select(0, 3).to_vector<double>() == Doubles(12));
    CHECK_THROWS_AS(z.select(3, 0), IndexError);
    CHECK_THROWS_AS(z.reshape({5}), ShapeError);
  }
  CHECK(counted({2, 3}, c64, kCpu).t().stride() == Strides{1, 3});
  CHECK(counted({2, 3}, c64, kCpu).t().is_contiguous() == false);
}

TEST_CASE("casts from and to complex dtypes") {
  for (const Device device : {Device(kCpu), Device(kReference)}) {
    const Tensor z = tensor(Complexes{1.0 + i, 0, i}, {.device = device});
    CHECK(values(z.to(c64)) == values(z));
    CHECK(z.to(c64).dtype() == c64);
    CHECK(z.to(bool_).to_vector<bool>() == std::vector<bool>{true, false, true});
    CHECK(z.to(f32).to_vector<double>() == Doubles{1, 0, 0});
    CHECK(z.to(i64).to_vector<double>() == Doubles{1, 0, 0});
    for (const DType from : {f64, f32, f16, bf16, i64, u8, bool_}) {
      CHECK(values(tensor({1, 0}, {from, device}).to(c64)) == Complexes{1, 0});
    }
  }
  const TensorData data = tensor(Complexes{i, 2.0 - i}).to_data();
  CHECK(data.cast(f32).as<float>()[1] == 2.0f);
  CHECK(data.cast(bool_).as<bool>()[0]);
  CHECK(data.cast(c64).as<std::complex<float>>()[1] == std::complex<float>(2, -1));
}

TEST_CASE("arithmetic of many complex numbers is that of each") {
  const auto check = [](DType dtype, double tolerance) {
    for (const int64_t n : {1, 2, 3, 7, 16, 37}) {
      const Tensor x = complex(randn({n}, {f64}), randn({n}, {f64})).to(dtype);
      const Tensor y = complex(randn({n}, {f64}), randn({n}, {f64})).to(dtype);
      const auto of = [](const Tensor& z) {
        const Doubles parts = view_as_real(z).to(f64).to_data().to_doubles();
        std::vector<std::complex<double>> out;
        for (size_t i = 0; i < parts.size(); i += 2) out.emplace_back(parts[i], parts[i + 1]);
        return out;
      };
      const auto a = of(x), b = of(y), product = of(x * y), quotient = of(x / y);
      const auto inverse = of(y.reciprocal()), turned = of(conj(x)), square = of(pow(x, 2));
      const auto cube = of(pow(x, 3)), inner = of(x * conj(y));
      for (size_t i = 0; i < a.size(); ++i) {
        const auto near = [&](std::complex<double> got, std::complex<double> want) {
          CHECK(std::abs(got - want) <= tolerance * (1 + std::abs(want)));
        };
        near(product[i], a[i] * b[i]);
        near(inner[i], a[i] * std::conj(b[i]));
        near(quotient[i], a[i] / b[i]);
        near(inverse[i], 1.0 / b[i]);
        near(square[i], a[i] * a[i]);
        near(cube[i], a[i] * a[i] * a[i]);
        CHECK(turned[i] == std::conj(a[i]));
      }
    }
  };
  check(c128, 1e-14);
  check(c64, 1e-6);
  // No square overflows, and a number divided by 0 is not a number.
  const Tensor large = complex(tensor({3e30}, {f32}), tensor({4e30}, {f32}));
  CHECK((large / large).eq(1).all().item<bool>());
  CHECK(large.reciprocal().abs().item() == doctest::Approx(2e-31));
}

TEST_CASE("complex leaves have complex gradients") {
  for (const Device device : {Device(kCpu), Device(kReference)}) {
    const Tensor z = tensor(Complexes{1.0 + 2.0 * i, 3.0 - i}, {.device = device});
    Tensor leaf = z.clone();
    leaf.requires_grad_();
    CHECK(leaf.is_leaf());
    const Tensor loss = real(leaf).mul(2).sum() + imag(leaf).square().sum();
    const Gradients grads = loss.backward();
    CHECK(grads.get(leaf)->dtype() == c128);
    CHECK(values(*grads.get(leaf)) == Complexes{2.0 + 4.0 * i, 2.0 - 2.0 * i});
    Complexes seen;
    leaf.register_hook([&](const Tensor& g) {
      seen = values(g);
      return Tensor();
    });
    imag(leaf).sum().backward_accumulate();
    CHECK(values(leaf.grad()) == Complexes{i, i});
    CHECK(seen == Complexes{i, i});
    CHECK(error_lacks<AutodiffError>([&] { leaf[0].backward_accumulate(); },
                                     {"backward: ", "real", "complex128"}) == "");
    leaf.zero_grad();
    conj(leaf).backward_accumulate(full({2}, 1.0 + i, {c128, device}));
    CHECK(values(leaf.grad()) == Complexes{1.0 - i, 1.0 - i});
    CHECK(view_as_real(leaf).is_leaf() == false);
  }
}
