// kiln.fft: Fourier transforms.
#include "binding.h"
#include "default_device.h"

namespace kiln::python {

namespace {

using OneDim = Tensor (*)(const Tensor&, std::optional<int64_t>, int64_t, const std::string&);
using SeveralDims = Tensor (*)(const Tensor&, const fft::Sizes&, const fft::OptionalDims&,
                               const std::string&);

std::optional<Shape> optional_list(const std::optional<IntList>& list) {
  if (!list) return std::nullopt;
  return list->values;
}

void bind_transforms(nb::module_& m) {
  const auto one = [&m](const char* name, OneDim f, const char* doc) {
    m.def(
        name,
        [f](const Tensor& x, std::optional<int64_t> n, int64_t dim,
            const std::optional<std::string>& norm) {
          Unlocked lock(x);
          return f(x, n, dim, norm.value_or("backward"));
        },
        "input"_a, "n"_a = nb::none(), "dim"_a = -1, "norm"_a = nb::none(), doc);
  };
  one("fft", &fft::fft, "The discrete Fourier transform over a dim.");
  one("ifft", &fft::ifft, "The inverse of fft.");
  one("rfft", &fft::rfft, "The first n / 2 + 1 numbers of the transform of a real input.");
  one("irfft", &fft::irfft, "The inverse of rfft: n real numbers.");
  one("hfft", &fft::hfft, "The real spectrum of half of a Hermitian-symmetric signal.");
  one("ihfft", &fft::ihfft, "The inverse of hfft.");
  const auto several = [&m](const char* name, SeveralDims f, bool last_two, const char* doc) {
    const auto call = [f](const Tensor& x, const std::optional<IntList>& s,
                          const std::optional<IntList>& dim,
                          const std::optional<std::string>& norm) {
      Unlocked lock(x);
      return f(x, optional_list(s), optional_list(dim), norm.value_or("backward"));
    };
    if (last_two) {
      m.def(name, call, "input"_a, "s"_a = nb::none(), "dim"_a = nb::make_tuple(-2, -1),
            "norm"_a = nb::none(), doc);
    } else {
      m.def(name, call, "input"_a, "s"_a = nb::none(), "dim"_a = nb::none(), "norm"_a = nb::none(),
            doc);
    }
  };
  several("fftn", &fft::fftn, false, "The transform over several dims.");
  several("ifftn", &fft::ifftn, false, "The inverse of fftn.");
  several("rfftn", &fft::rfftn, false, "The transform of a real input; halves the last dim.");
  several("irfftn", &fft::irfftn, false, "The inverse of rfftn.");
  several("hfftn", &fft::hfftn, false, "hfft over several dims.");
  several("ihfftn", &fft::ihfftn, false, "The inverse of hfftn.");
  several("fft2", &fft::fftn, true, "fftn over two dims.");
  several("ifft2", &fft::ifftn, true, "ifftn over two dims.");
  several("rfft2", &fft::rfftn, true, "rfftn over two dims.");
  several("irfft2", &fft::irfftn, true, "irfftn over two dims.");
  several("hfft2", &fft::hfftn, true, "hfftn over two dims.");
  several("ihfft2", &fft::ihfftn, true, "ihfftn over two dims.");
}

void bind_frequencies(nb::module_& m) {
  const auto frequencies = [&m](const char* name, Tensor (*f)(int64_t, double, TensorOptions),
                                const char* doc) {
    m.def(
        name,
        [f](int64_t n, double d, std::optional<DType> dtype, std::optional<Device> device,
            bool requires_grad) {
          return f(n, d, TensorOptions{dtype, device_or_default(device), requires_grad});
        },
        "n"_a, "d"_a = 1.0, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(),
        "requires_grad"_a = false, doc);
  };
  frequencies("fftfreq", &fft::fftfreq, "The frequencies of fft's numbers.");
  frequencies("rfftfreq", &fft::rfftfreq, "The frequencies of rfft's numbers.");
  const auto shift = [&m](const char* name, Tensor (*f)(const Tensor&, const fft::OptionalDims&),
                          const char* doc) {
    m.def(
        name,
        [f](const Tensor& x, const std::optional<IntList>& dim) {
          return f(x, optional_list(dim));
        },
        "input"_a, "dim"_a = nb::none(), doc);
  };
  shift("fftshift", &fft::fftshift, "Frequency 0 to the middle.");
  shift("ifftshift", &fft::ifftshift, "The inverse of fftshift.");
}

}  // namespace

void bind_fft(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("_fft", "Fourier transforms.");
  bind_transforms(m);
  bind_frequencies(m);
}

}  // namespace kiln::python
