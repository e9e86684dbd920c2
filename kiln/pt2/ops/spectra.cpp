// Fourier transforms.
#include "kiln/pt2/ops/forms.h"
#include "kiln/tensor/fft/fft.h"
#include "kiln/tensor/fft/stft.h"

namespace kiln::pt2 {

namespace {

fft::Norm norm(Call& c) { return c.s("norm", "backward"); }

using One = Tensor (*)(const Tensor&, std::optional<int64_t>, int64_t, const fft::Norm&);
template <One F>
void one_dim(Call& c) {
  c.out(F(c.x(), c.maybe_i("n"), c.i("dim", -1), norm(c)));
}
using Two = Tensor (*)(const Tensor&, const fft::Sizes&, const Dims&, const fft::Norm&);
template <Two F>
void two_dims(Call& c) {
  c.out(F(c.x(), c.maybe_ints("s"), c.maybe_ints("dim").value_or(Shape{-2, -1}), norm(c)));
}
using Many = Tensor (*)(const Tensor&, const fft::Sizes&, const fft::OptionalDims&,
                        const fft::Norm&);
template <Many F>
void many_dims(Call& c) {
  c.out(F(c.x(), c.maybe_ints("s"), c.maybe_ints("dim"), norm(c)));
}
template <Tensor (*F)(const Tensor&, const fft::OptionalDims&)>
void shift(Call& c) {
  c.out(F(c.x(), c.maybe_ints("dim")));
}
template <Tensor (*F)(int64_t, double, TensorOptions)>
void frequencies(Call& c) {
  c.out(F(c.i("n"), c.f("d", 1.0), c.options()));
}

// What the transforms become inside of PyTorch: normalization 0 is none, 1 by the root of the
// count, 2 by the count.
fft::Norm inner_norm(Call& c, bool forward) {
  switch (c.i("normalization")) {
    case 0:
      return forward ? "backward" : "forward";
    case 1:
      return "ortho";
    case 2:
      return forward ? "forward" : "backward";
    default:
      c.fail("a normalization that does not exist");
  }
}
void inner_r2c(Call& c) {
  const fft::Norm norm = inner_norm(c, true);
  const Dims dims = c.ints("dim");
  c.out(c.b("onesided") ? fft::rfftn(c.x(), {}, dims, norm) : fft::fftn(c.x(), {}, dims, norm));
}
void inner_c2c(Call& c) {
  const bool forward = c.b("forward");
  const fft::Norm norm = inner_norm(c, forward);
  const Dims dims = c.ints("dim");
  c.out(forward ? fft::fftn(c.x(), {}, dims, norm) : fft::ifftn(c.x(), {}, dims, norm));
}
void inner_c2r(Call& c) {
  const Dims dims = c.ints("dim");
  Shape sizes;
  for (const int64_t d : dims) sizes.push_back(c.x().size(d));
  if (sizes.empty()) c.fail("expected dims");
  sizes.back() = c.i("last_dim_size");
  c.out(fft::irfftn(c.x(), sizes, dims, inner_norm(c, false)));
}

void stft_of(Call& c) {
  StftOptions options;
  options.n_fft = c.i("n_fft");
  options.hop_length = c.maybe_i("hop_length");
  options.win_length = c.maybe_i("win_length");
  options.window = c.maybe("window");
  // The older form does not pad: who wrote it did.
  options.center = c.is_overload("center") && c.b("center", true);
  options.pad_mode = c.s("pad_mode", "reflect");
  options.normalized = c.b("normalized", false);
  const auto one_sided = c.maybe_scalar("onesided"), complex = c.maybe_scalar("return_complex");
  if (one_sided) options.onesided = one_sided->to_bool();
  if (complex) options.return_complex = complex->to_bool();
  if (c.has("align_to_window") && c.b("align_to_window")) c.refuse("align_to_window");
  c.out(stft(c.x(), options));
}
void istft_of(Call& c) {
  IstftOptions options;
  options.n_fft = c.i("n_fft");
  options.hop_length = c.maybe_i("hop_length");
  options.win_length = c.maybe_i("win_length");
  options.window = c.maybe("window");
  options.center = c.b("center", true);
  options.normalized = c.b("normalized", false);
  const auto one_sided = c.maybe_scalar("onesided");
  if (one_sided) options.onesided = one_sided->to_bool();
  options.length = c.maybe_i("length");
  options.return_complex = c.b("return_complex", false);
  c.out(istft(c.x(), options));
}

constexpr Operator kSpectraOperators[] = {
    {"fft_fft", "default", one_dim<fft::fft>},
    {"fft_ifft", "default", one_dim<fft::ifft>},
    {"fft_rfft", "default", one_dim<fft::rfft>},
    {"fft_irfft", "default", one_dim<fft::irfft>},
    {"fft_hfft", "default", one_dim<fft::hfft>},
    {"fft_ihfft", "default", one_dim<fft::ihfft>},
    {"fft_fft2", "default", two_dims<fft::fft2>},
    {"fft_ifft2", "default", two_dims<fft::ifft2>},
    {"fft_rfft2", "default", two_dims<fft::rfft2>},
    {"fft_irfft2", "default", two_dims<fft::irfft2>},
    {"fft_hfft2", "default", two_dims<fft::hfft2>},
    {"fft_ihfft2", "default", two_dims<fft::ihfft2>},
    {"fft_fftn", "default", many_dims<fft::fftn>},
    {"fft_ifftn", "default", many_dims<fft::ifftn>},
    {"fft_rfftn", "default", many_dims<fft::rfftn>},
    {"fft_irfftn", "default", many_dims<fft::irfftn>},
    {"fft_hfftn", "default", many_dims<fft::hfftn>},
    {"fft_ihfftn", "default", many_dims<fft::ihfftn>},
    {"fft_fftshift", "default", shift<fft::fftshift>},
    {"fft_ifftshift", "default", shift<fft::ifftshift>},
    {"fft_fftfreq", "default", frequencies<fft::fftfreq>},
    {"fft_rfftfreq", "default", frequencies<fft::rfftfreq>},
    {"_fft_r2c", "default", inner_r2c},
    {"_fft_c2c", "default", inner_c2c},
    {"_fft_c2r", "default", inner_c2r},
    {"stft", "default center", stft_of},
    {"istft", "default", istft_of},
};

}  // namespace

std::span<const Operator> spectrum_operators() { return kSpectraOperators; }

}  // namespace kiln::pt2
