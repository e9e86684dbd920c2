// Fourier transforms: every length class (powers of two, mixed radices, primes), cut and padded,
// every norm.
#include "tests/ops/case.h"

namespace kiln::ops {

namespace {

using OneDim = Tensor (*)(const Tensor&, std::optional<int64_t>, int64_t, const std::string&);
using SeveralDims = Tensor (*)(const Tensor&, const fft::Sizes&, const fft::OptionalDims&,
                               const std::string&);

void one_dim(const std::string& name, OneDim f, Input (*input)(const Shape&, double, double),
             const DTypes& dtypes) {
  const auto add = [&](const std::string& arguments, auto call, Input in) -> Case& {
    return op("fft." + name, "torch.fft." + name + "(a" + arguments + ")",
              [=](const Tensors& x) { return call(x[0]); }, {std::move(in)})
        .dtypes(dtypes)
        .loose(8);
  };
  add(
      "", [=](const Tensor& x) { return f(x, {}, -1, "backward"); }, input({3, 8}, -2, 2))
      .big({input({1024, 1024}, -2, 2)});
  add(
      ", 5", [=](const Tensor& x) { return f(x, 5, -1, "backward"); }, input({2, 8}, -2, 2));
  add(
      ", 12, 0, 'ortho'", [=](const Tensor& x) { return f(x, 12, 0, "ortho"); },
      input({7, 2}, -2, 2));
  add(
      ", 9, dim=1, norm='forward'", [=](const Tensor& x) { return f(x, 9, 1, "forward"); },
      input({2, 5, 2}, -2, 2));
  for (const int64_t n : {1, 2, 3, 4, 15, 16, 30, 49, 64, 77, 101, 128, 210, 1009, 1024, 4400}) {
    add(
        ", " + std::to_string(n), [=](const Tensor& x) { return f(x, n, -1, "backward"); },
        input({n}, -1, 1))
        .loose(static_cast<double>(8 + n / 16))
        .no_gradient();
  }
}

void several_dims(const std::string& name, SeveralDims f,
                  Input (*input)(const Shape&, double, double), const DTypes& dtypes) {
  op("fft." + name, "torch.fft." + name + "(a)",
     [=](const Tensors& x) { return f(x[0], {}, {}, "backward"); }, {input({2, 3, 4}, -2, 2)})
      .dtypes(dtypes)
      .loose(8);
  op("fft." + name, "torch.fft." + name + "(a, (4, 6), (0, 2), 'ortho')",
     [=](const Tensors& x) {
       return f(x[0], Shape{4, 6}, Dims{0, 2}, "ortho");
     },
     {input({3, 2, 5}, -2, 2)})
      .dtypes(dtypes)
      .loose(8);
  op("fft." + name, "torch.fft." + name + "(a, s=(3, -1), norm='forward')",
     [=](const Tensors& x) {
       return f(x[0], Shape{3, -1}, {}, "forward");
     },
     {input({2, 4, 4}, -2, 2)})
      .dtypes(dtypes)
      .loose(8);
}

}  // namespace

KILN_OP_CASES(fft) {
  one_dim("fft", &fft::fft, complex_, kComplex);
  one_dim("ifft", &fft::ifft, complex_, kComplex);
  one_dim("rfft", &fft::rfft, real, kDoubles);
  one_dim("irfft", &fft::irfft, complex_, kComplex);
  one_dim("hfft", &fft::hfft, complex_, kComplex);
  one_dim("ihfft", &fft::ihfft, real, kDoubles);
  op("fft.fft", "torch.fft.fft(a)", [](const Tensors& x) { return fft::fft(x[0]); }, {real({3, 6})})
      .dtypes({f64, f32, i64, u8, bool_})
      .loose(8);
  several_dims("fftn", &fft::fftn, complex_, kComplex);
  several_dims("ifftn", &fft::ifftn, complex_, kComplex);
  several_dims("rfftn", &fft::rfftn, real, kDoubles);
  several_dims("irfftn", &fft::irfftn, complex_, kComplex);
  several_dims("hfftn", &fft::hfftn, complex_, kComplex);
  several_dims("ihfftn", &fft::ihfftn, real, kDoubles);
#define KILN_CASE(name, input, list)                                                           \
  op("fft." #name, "torch.fft." #name "(a)", [](const Tensors& x) { return fft::name(x[0]); }, \
     {input({2, 4, 6})})                                                                       \
      .dtypes(list)                                                                            \
      .loose(8);
  KILN_CASE(fft2, complex_, kComplex)
  KILN_CASE(ifft2, complex_, kComplex)
  KILN_CASE(rfft2, real, kDoubles)
  KILN_CASE(irfft2, complex_, kComplex)
#undef KILN_CASE
  for (const int64_t n : {1, 2, 5, 8}) {
    op("fft.fftfreq", "torch.fft.fftfreq(" + std::to_string(n) + ", 0.5)",
       [=](const Tensors& x) {
         return fft::fftfreq(n, 0.5, {f32, x[0].device()});
       },
       {constant({1})})
        .dtypes({f32});
    op("fft.rfftfreq", "torch.fft.rfftfreq(" + std::to_string(n) + ", 0.5)",
       [=](const Tensors& x) {
         return fft::rfftfreq(n, 0.5, {f32, x[0].device()});
       },
       {constant({1})})
        .dtypes({f32});
  }
  op("fft.fftshift", "torch.fft.fftshift(a)", [](const Tensors& x) { return fft::fftshift(x[0]); },
     {real({3, 4})});
  op("fft.ifftshift", "torch.fft.ifftshift(a, -1)",
     [](const Tensors& x) { return fft::ifftshift(x[0], Dims{-1}); }, {real({2, 5})});
}

}  // namespace kiln::ops
