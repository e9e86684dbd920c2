#include "kiln/optim/adamw_8bit.h"

#include <algorithm>
#include <cmath>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/index/sorting.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/shape/views.h"

namespace kiln::optim {

std::vector<float> dynamic_code(bool with_signs) {
  constexpr int kExponents = 7;
  std::vector<float> code{0.0F, 1.0F};
  for (int e = 0; e < kExponents; ++e) {
    const double scale = std::pow(10.0, e - (kExponents - 1));
    const int fractions = 1 << (with_signs ? e : e + 1);
    // The middles of equal parts of [0.1, 1].
    for (int k = 0; k < fractions; ++k) {
      const double middle = 0.1 + 0.9 * (k + 0.5) / fractions;
      code.push_back(static_cast<float>(scale * middle));
      if (with_signs) code.push_back(static_cast<float>(-scale * middle));
    }
  }
  std::sort(code.begin(), code.end());
  return code;
}

namespace {

// The numbers of a code, and the middles between neighbours, on a device.
struct Code {
  Tensor numbers;  // [256]
  Tensor middles;  // [255]

  Code(bool with_signs, Device device) {
    const std::vector<float> values = dynamic_code(with_signs);
    std::vector<float> between;
    for (size_t i = 0; i + 1 < values.size(); ++i) {
      between.push_back((values[i] + values[i + 1]) / 2.0F);
    }
    numbers = from_vector(values, {static_cast<int64_t>(values.size())}).to(device);
    middles = from_vector(between, {static_cast<int64_t>(between.size())}).to(device);
  }

  // codes [blocks, width] u8, scales [blocks] -> f32
  Tensor decoded(const Tensor& codes, const Tensor& scales) const {
    const Tensor picked = numbers.index_select(0, codes.reshape({-1}).to(i32));
    return picked.reshape(codes.shape()) * scales.unsqueeze(1);
  }
  // Writes x [blocks, width] to codes and scales. A block of zeros has the scale 0.
  void encode(const Tensor& x, Tensor codes, Tensor scales) const {
    const Tensor largest = x.abs().amax(1);
    const Tensor divisor = where(largest.gt(0.0), largest, 1.0).unsqueeze(1);
    codes.copy_(bucketize(x / divisor, middles, false, true));
    scales.copy_(largest);
  }
};

// What a step does to numbers of any shape, in f32: AdamW.
struct Formula {
  const AdamW8bitOptions& options;
  int64_t t;

  void moments(Tensor& m, Tensor& v, const Tensor& g) const {
    m.mul_(options.beta1).add_(g, 1.0 - options.beta1);
    v.mul_(options.beta2).add_(g * g, 1.0 - options.beta2);
  }
  void apply(Tensor& p, const Tensor& m, const Tensor& v) const {
    const auto steps = static_cast<double>(t);
    const double first = 1.0 - std::pow(options.beta1, steps);
    const double second = std::sqrt(1.0 - std::pow(options.beta2, steps));
    if (options.weight_decay != 0.0) p.mul_(1.0 - options.lr * options.weight_decay);
    p.add_(m / (v.sqrt() / second).add_(options.eps), -options.lr / first);
  }
};

// So many elements at a time: what they need in between stays in a processor's cache.
constexpr int64_t kElements = int64_t{1} << 16;

// Rows [first, first + count) of width elements each, of p and of its state.
struct Rows {
  int64_t first_element, first_block, count, width;

  Tensor of(const Tensor& flat) const {
    return flat.narrow(0, first_element, count * width).view({count, width});
  }
  Tensor scales_of(const Tensor& scales) const { return scales.narrow(0, first_block, count); }
};

}  // namespace

void AdamW8bitRule::check(const std::string& op, const Options& options) {
  detail::check_not_negative(op, "eps", options.eps);
  detail::check_betas(op, options.beta1, options.beta2);
  if (options.block_size < 1) {
    throw_error<ValueError>(op, ": block_size must be at least 1; got ", options.block_size);
  }
  if (options.min_8bit_size < 0) {
    throw_error<ValueError>(op, ": min_8bit_size must not be negative; got ",
                            options.min_8bit_size);
  }
}

std::vector<StateInfo> AdamW8bitRule::slots(const Options& options) {
  const int64_t least = options.min_8bit_size;
  const StateInfo codes{.name = "state1", .dtype = u8, .from = least};
  const StateInfo scales{.name = "absmax1",
                         .like = StateShape::blocks,
                         .dtype = f32,
                         .from = least,
                         .block = options.block_size};
  const StateInfo small{.name = "state1", .dtype = f32, .below = least};
  const auto second = [](StateInfo info, const char* name) {
    info.name = name;
    return info;
  };
  return {codes, second(codes, "state2"), scales, second(scales, "absmax2"),
          small, second(small, "state2")};
}

void AdamW8bitRule::compose(const Options& options, int64_t t, Tensor& p, const Tensor& g,
                            std::span<Tensor> slots) {
  const Formula formula{options, t};
  if (p.numel() == 0) return;
  if (!slots[0].defined()) {
    formula.moments(slots[4], slots[5], g.to(f32));
    Tensor wide = p.to(f32);
    formula.apply(wide, slots[4], slots[5]);
    if (!wide.is_same(p)) p.copy_(wide);
    return;
  }
  const Code signs(true, p.device());
  const Code squares(false, p.device());
  const int64_t n = p.numel();
  const int64_t width = std::min(options.block_size, n);
  Tensor flat = p.is_contiguous() ? p.view({n}) : p.reshape({n});
  const Tensor gradient = g.reshape({n});
  const Tensor codes1 = slots[0].view({n}), codes2 = slots[1].view({n});
  const auto step = [&](const Rows& rows) {
    Tensor m = signs.decoded(rows.of(codes1), rows.scales_of(slots[2]));
    Tensor v = squares.decoded(rows.of(codes2), rows.scales_of(slots[3]));
    formula.moments(m, v, rows.of(gradient).to(f32));
    Tensor values = rows.of(flat);
    Tensor wide = values.to(f32);
    formula.apply(wide, m, v);
    if (!wide.is_same(values)) values.copy_(wide);
    signs.encode(m, rows.of(codes1), rows.scales_of(slots[2]));
    squares.encode(v, rows.of(codes2), rows.scales_of(slots[3]));
  };
  const int64_t blocks = n / width;
  const int64_t together = std::max<int64_t>(1, kElements / width);
  for (int64_t b = 0; b < blocks; b += together) {
    step({b * width, b, std::min(together, blocks - b), width});
  }
  if (const int64_t rest = n % width; rest > 0) step({n - rest, blocks, 1, rest});
  if (!p.is_contiguous()) p.copy_(flat.reshape(p.shape()));
}

}  // namespace kiln::optim
