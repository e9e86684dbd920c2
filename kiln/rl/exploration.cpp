#include "kiln/rl/exploration.h"

#include <algorithm>
#include <cmath>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"

namespace kiln::rl {

namespace {

void check_rows(const char* op, const Tensor& x) {
  if (x.dim() != 2 || x.size(1) < 1) {
    throw_error<ShapeError>(op, ": expected [N, actions]; got ", x.shape());
  }
}

}  // namespace

void Epsilon::check() const {
  if (!(start >= 0 && start <= 1 && end >= 0 && end <= 1)) {
    throw_error<ValueError>("Epsilon: start and end must be from 0 to 1; got ", start, " and ",
                            end);
  }
  if (steps < 1) throw_error<ValueError>("Epsilon: steps must be at least 1; got ", steps);
  if (exponential && (start <= 0 || end <= 0)) {
    throw_error<ValueError>("Epsilon: an exponential schedule never reaches 0; got ", start, " to ",
                            end);
  }
}

double Epsilon::at(int64_t step) const {
  const double part = std::clamp(static_cast<double>(step) / static_cast<double>(steps), 0.0, 1.0);
  return exponential ? start * std::pow(end / start, part) : start + (end - start) * part;
}

Tensor epsilon_greedy(const Tensor& values, double epsilon, Random& random) {
  check_rows("epsilon_greedy", values);
  if (!(epsilon >= 0 && epsilon <= 1)) {
    throw_error<ValueError>("epsilon_greedy: epsilon must be from 0 to 1; got ", epsilon);
  }
  Tensor best = values.detach().argmax(1).to(Device(kCpu)).contiguous();
  const int64_t actions = values.size(1);
  for (int64_t i = 0; i < best.numel(); ++i) {
    if (random.uniform() < epsilon) best.data_ptr<int64_t>()[i] = random.below(actions);
  }
  return best;
}

Tensor sample_categorical(const Tensor& logits, Random& random) {
  check_rows("sample_categorical", logits);
  const int64_t n = logits.size(0), actions = logits.size(1);
  const std::vector<double> p = logits.detach().to(f64).softmax(1).to_vector<double>();
  Tensor out = empty({n}, {.dtype = i64});
  for (int64_t i = 0; i < n; ++i) {
    const double* row = p.data() + i * actions;
    if (!std::isfinite(row[0])) {
      throw_error<ValueError>("sample_categorical: the logits of row ", i, " are not finite");
    }
    double left = random.uniform();
    int64_t action = 0;
    while (action + 1 < actions && left >= row[action]) left -= row[action++];
    out.data_ptr<int64_t>()[i] = action;
  }
  return out;
}

}  // namespace kiln::rl
