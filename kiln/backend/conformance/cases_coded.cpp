// AdamW with coded state. A backend may round m and v otherwise than the reference does; so
// gradients are chosen after which no number lies where that would change its code.
#include <algorithm>
#include <cmath>

#include "kiln/backend/conformance/cases.h"
#include "kiln/backend/dynamic_code.h"

namespace kiln::conformance {
namespace {

// What a state holds of each element.
std::vector<double> decoded(const Operand& codes, const Operand& largest, const DynamicCode& code,
                            int64_t block) {
  std::vector<double> out = codes.data.to_doubles();
  const std::vector<double> scales = largest.data.to_doubles();
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = code.numbers[static_cast<size_t>(out[i])] * scales[i / static_cast<size_t>(block)];
  }
  return out;
}

// Marks the elements whose share of their block's largest magnitude is near the middle between two
// numbers of the code.
void mark_doubtful(const std::vector<double>& x, const DynamicCode& code, int64_t block,
                   std::vector<bool>& doubtful) {
  const auto width = static_cast<size_t>(block);
  for (size_t begin = 0; begin < x.size(); begin += width) {
    const size_t end = std::min(x.size(), begin + width);
    double largest = 0.0;
    for (size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(x[i]));
    for (size_t i = begin; i < end && largest > 0.0; ++i) {
      const double share = x[i] / largest;
      const auto above = std::lower_bound(code.middles.begin(), code.middles.end(), share);
      const auto near = [&](float middle) {
        return std::abs(share - middle) < 1e-5 * std::abs(middle);
      };
      if ((above != code.middles.end() && near(*above)) ||
          (above != code.middles.begin() && near(above[-1]))) {
        doubtful[i] = true;
      }
    }
  }
}

struct Coded {
  Operand codes1, largest1, codes2, largest2;
};

Operand gradients(CaseList& list, const Shape& shape, DType dtype, const Coded& state,
                  const AdamW8bitStep& step) {
  Operand g = list.uniform(shape, dtype, -1.0, 1.0);
  const std::vector<double> m0 =
      decoded(state.codes1, state.largest1, dynamic_code(true), step.block);
  const std::vector<double> v0 =
      decoded(state.codes2, state.largest2, dynamic_code(false), step.block);
  for (int round = 0; round < 100; ++round) {
    std::vector<double> values = g.data.to_doubles();
    std::vector<double> m = m0, v = v0;
    for (size_t i = 0; i < values.size(); ++i) {
      m[i] = step.beta1 * m0[i] + (1.0 - step.beta1) * values[i];
      v[i] = step.beta2 * v0[i] + (1.0 - step.beta2) * values[i] * values[i];
    }
    std::vector<bool> doubtful(values.size(), false);
    mark_doubtful(m, dynamic_code(true), step.block, doubtful);
    mark_doubtful(v, dynamic_code(false), step.block, doubtful);
    if (std::find(doubtful.begin(), doubtful.end(), true) == doubtful.end()) break;
    for (size_t i = 0; i < values.size(); ++i) {
      if (doubtful[i]) values[i] *= 0.75;
    }
    g.data = TensorData(values, shape).cast(dtype);
  }
  return g;
}

}  // namespace

void add_coded_cases(CaseList& list) {
  for (const DType dtype : list.floats) {
    for (const Shape& shape :
         {Shape{12}, Shape{3, 4}, Shape{0}, Shape{}, Shape{67}, Shape{130, 300}}) {
      const int64_t n = shape.numel();
      if (n > 10000 && dtype != f32) continue;
      for (const int64_t block : {5, 256}) {
        const AdamW8bitStep step{
            .lr = 0.01, .beta2 = 0.9, .weight_decay = 0.1, .step = 3, .block = block};
        const Shape blocks{n == 0 ? 0 : (n - 1) / block + 1};
        const Coded state{list.integers(shape, u8, 0, 255), list.uniform(blocks, f32, 0.01, 1.0),
                          list.integers(shape, u8, 0, 255), list.uniform(blocks, f32, 0.01, 1.0)};
        const Operand g = gradients(list, shape, dtype, state, step);
        list.add("float_adamw_8bit",
                 {list.uniform(shape, dtype, -1.0, 1.0), g, state.codes1, state.largest1,
                  state.codes2, state.largest2, step},
                 {16, 16});
      }
    }
  }
}

}  // namespace kiln::conformance
