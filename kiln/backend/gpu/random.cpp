// Random numbers: the kernel random.k where its arithmetic is exact on the device, else the host's
// numbers, which are the same.
#include <cmath>

#include "kiln/backend/gpu/loops.h"
#include "kiln/backend/random_fill.h"

namespace kiln::gpu {
namespace {

struct Draw {
  Literal body;  // none: on the host
  double a = 0.0;
  double b = 0.0;
  double c = 0.0;
  uint64_t range = 0;
};

// The number of draws k of `bits` bits with k / 2^bits < p.
uint64_t draws_below(double p, int bits) {
  if (!(p > 0.0)) return 0;
  const double count = std::ceil(std::ldexp(std::min(p, 1.0), bits));
  return static_cast<uint64_t>(count);
}

Draw float_draw(Distribution d, DType dtype, bool exact) {
  switch (d.type) {
    case Distribution::Type::uniform:
      return {
          "f32 u = (f32)(word >> 8) * 5.9604644775390625e-8f; f32 v = u * b; f32 y = a + v; "
          "y = c < y ? c : y;",
          d.a, d.b - d.a, host::largest_uniform(d, dtype)};
    case Distribution::Type::bernoulli:
      return {"f32 y = (u64)(word >> 8) < range ? 1.0f : 0.0f;", 0, 0, 0, draws_below(d.a, 24)};
    case Distribution::Type::exponential:
      if (!exact) return {};
      return {"f32 y = -JOIN(NAME, _log)(1.0f - (f32)(word >> 8) * 5.9604644775390625e-8f) / a;",
              d.a};
    case Distribution::Type::normal:
      if (!exact) return {};
      return {
          "int pair = (int)(i % 4) / 2 * 2; "
          "f32 u = (f32)(words.w[pair] >> 8) * 5.9604644775390625e-8f; "
          "f32 v = (f32)(words.w[pair + 1] >> 8) * 5.9604644775390625e-8f; "
          "f32 r = sqrt(-2.0f * JOIN(NAME, _log)(1.0f - u)); "
          "f32 w = r * JOIN(NAME, _wave)(v, i % 2 == 0); f32 z = b * w; f32 y = a + z;",
          d.a, d.b};
    default:
      return {};
  }
}

Draw double_draw(Distribution d) {
  switch (d.type) {
    case Distribution::Type::uniform:
      return {
          "f64 u = (f64)(both >> 11) * 1.1102230246251565404e-16; f64 v = u * b; f64 y = a + v; "
          "y = c < y ? c : y;",
          d.a, d.b - d.a, host::largest_uniform(d, DType::f64)};
    case Distribution::Type::bernoulli:
      return {"f64 y = (both >> 11) < range ? 1.0 : 0.0;", 0, 0, 0, draws_below(d.a, 53)};
    default:
      return {};
  }
}

Draw draw_of(Distribution d, DType dtype, bool exact) {
  if (dtype == DType::f64) return double_draw(d);
  if (kind_of(dtype) == Kind::floating) return float_draw(d, dtype, exact);
  if (d.type != Distribution::Type::integers) return {};
  const auto low = static_cast<int64_t>(d.a);
  const auto range = static_cast<uint64_t>(static_cast<int64_t>(d.b) - low);
  return {dtype == DType::i64
              ? Literal("i64 y = a + (i64)HIGH_PRODUCT64(both, range);")
              : Literal("i64 y = a + (i64)((u64)word * (range >> 32) + (((u64)word * (range & "
                        "0xffffffffu)) >> 32));"),
          static_cast<double>(low), 0, 0, range};
}

}  // namespace

H dropout(const H& x, double p, RandomStream stream) {
  // Draws are multiples of 2^-24: of them those below a whole number of steps are below p.
  const auto threshold = static_cast<uint32_t>(draws_below(p, 24));
  H to = empty(x->shape(), x->dtype(), x->device());
  if (to->numel() == 0) return to;
  Loop loop(x->shape());
  loop.add(to);
  loop.add(x);
  const auto defines = [&] {
    return define("INDEX", index_type(loop.is_wide())) + define("IN0", dialect_name(x->dtype())) +
           define("SCALAR", scalar_type(x->dtype()));
  };
  const Kernel kernel{.file = "dropout",
                      .choice = choice(loop.is_wide(), x->dtype()),
                      .libraries = {"philox"},
                      .defines = defines};
  const MapArgument m = loop.argument();
  const ScalarArgument scale(x->dtype(), 1.0 / (1.0 - p));
  const Argument arguments[] = {Argument::bytes(m),
                                Argument::memory(to->storage()->memory()),
                                Argument::memory(x->storage()->memory()),
                                Argument::bytes(stream.seed),
                                Argument::bytes(stream.offset),
                                Argument::bytes(threshold),
                                scale.argument()};
  x->gpu().launch(kernel, static_cast<size_t>(m.n), arguments);
  return to;
}

H random(const Shape& shape, Distribution distribution, RandomStream stream, DType dtype,
         Device device) {
  GpuDevice& gpu = GpuDevice::of(device);
  const Draw draw = draw_of(distribution, dtype, gpu.properties().exact_division);
  if (!draw.body) {
    TensorData data(shape, dtype);
    host::fill_random(data, distribution, stream);
    return from_data(data, device);
  }
  H to = empty(shape, dtype, device);
  const auto defines = [&] {
    return define("OUT", dialect_name(dtype)) + define("SCALAR", scalar_type(dtype)) +
           define("BODY", draw.body.get()) + (size_of(dtype) == 8 ? define("WIDE", "1") : "");
  };
  const Kernel kernel{.file = "random",
                      .parts = {draw.body},
                      .choice = choice(dtype),
                      .libraries = {"philox"},
                      .defines = defines};
  const int64_t n = shape.numel();
  const ScalarArgument a(dtype, draw.a);
  const ScalarArgument b(dtype, draw.b);
  const ScalarArgument c(dtype, draw.c);
  const Argument arguments[] = {Argument::memory(to->storage()->memory()),
                                Argument::bytes(n),
                                Argument::bytes(stream.seed),
                                Argument::bytes(stream.offset),
                                a.argument(),
                                b.argument(),
                                c.argument(),
                                Argument::bytes(draw.range)};
  gpu.launch(kernel, static_cast<size_t>(n), arguments);
  return to;
}

}  // namespace kiln::gpu
