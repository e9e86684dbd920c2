#include "kiln/tensor/nn/rnnt_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "kiln/core/parallel.h"
#include "kiln/tensor/autograd/formula.h"
#include "kiln/tensor/host.h"
#include "kiln/tensor/host_memory.h"
#include "kiln/tensor/nn/functional_support.h"

namespace kiln::functional {

using namespace detail;

namespace {

constexpr const char* kRnntOp = "rnnt_loss";
constexpr double kInf = std::numeric_limits<double>::infinity();

// One batch of sequences, checked.
struct Problem {
  int64_t batch, steps, columns, classes, blank;  // columns: U + 1
  std::vector<int64_t> lengths, sizes, targets;   // [N], [N], [N, U]
  double clamp;
  bool softmax;

  int64_t target(int64_t n, int64_t u) const {
    return targets[static_cast<size_t>(n * (columns - 1) + u)];
  }
};

std::vector<int64_t> lengths_of(const Tensor& x, int64_t batch, int64_t least, int64_t most,
                                const char* what) {
  static_cast<void>(index_value(kRnntOp, x));
  if (!(x.shape() == Shape{batch})) {
    throw_error<ShapeError>(kRnntOp, ": expected ", what, " [", batch, "]; got ", x.shape());
  }
  std::vector<int64_t> out = host_numbers(x.to(i64));
  for (const int64_t n : out) {
    if (n < least || n > most) {
      throw_error<ValueError>(kRnntOp, ": ", what, " are out of range; got ", n, "; expected ",
                              least, " to ", most);
    }
  }
  return out;
}

Problem problem_of(const Tensor& logits, const Tensor& targets, const Tensor& logit_lengths,
                   const Tensor& target_lengths, int64_t blank, double clamp, bool softmax) {
  require_floating(kRnntOp, logits);
  if (logits.dim() != 4 || logits.size(2) < 1 || logits.size(3) < 1) {
    throw_error<ShapeError>(kRnntOp, ": expected logits [N, T, U + 1, C]; got ", logits.shape());
  }
  Problem p;
  p.batch = logits.size(0);
  p.steps = logits.size(1);
  p.columns = logits.size(2);
  p.classes = logits.size(3);
  p.blank = blank < 0 ? blank + p.classes : blank;
  p.clamp = clamp;
  p.softmax = softmax;
  if (p.blank < 0 || p.blank >= p.classes) {
    throw_error<ValueError>(kRnntOp, ": blank is no class; got ", blank, "; expected ", -p.classes,
                            " <= blank < ", p.classes);
  }
  p.lengths = lengths_of(logit_lengths, p.batch, 1, p.steps, "logit_lengths");
  p.sizes = lengths_of(target_lengths, p.batch, 0, p.columns - 1, "target_lengths");
  if (!(targets.shape() == Shape{p.batch, p.columns - 1})) {
    throw_error<ShapeError>(kRnntOp, ": the targets do not fit; got ", targets.shape(),
                            "; expected [N, U] = [", p.batch, ", ", p.columns - 1, "]");
  }
  p.targets = host_numbers(wrap(index_value(kRnntOp, targets)));
  for (int64_t n = 0; n < p.batch; ++n) {
    for (int64_t u = 0; u < p.sizes[static_cast<size_t>(n)]; ++u) {
      const int64_t label = p.target(n, u);
      if (label < 0 || label >= p.classes || label == p.blank) {
        throw_error<ValueError>(kRnntOp, ": a target is no label; got ", label,
                                "; expected classes below ", p.classes, " other than the blank ",
                                p.blank);
      }
    }
  }
  return p;
}

double log_add(double a, double b) {
  const double high = std::max(a, b);
  return high == -kInf ? -kInf : high + std::log1p(std::exp(std::min(a, b) - high));
}

// The alignments of one sequence: a grid of T steps by U + 1 columns.
template <class T>
class Lattice {
 public:
  Lattice(const Problem& p, int64_t n, const T* logits)
      : p_(p),
        n_(n),
        x_(logits + n * p.steps * p.columns * p.classes),
        steps_(p.lengths[static_cast<size_t>(n)]),
        columns_(p.sizes[static_cast<size_t>(n)] + 1) {
    const auto places = static_cast<size_t>(steps_ * columns_);
    norm_.resize(places);
    blank_.resize(places);
    emit_.resize(places, -kInf);
    for (int64_t t = 0; t < steps_; ++t) {
      for (int64_t u = 0; u < columns_; ++u) {
        const T* row = row_of(t, u);
        norm_[at(t, u)] = p.softmax ? log_sum(row) : 0.0;
        blank_[at(t, u)] = static_cast<double>(row[p.blank]) - norm_[at(t, u)];
        if (u + 1 < columns_) {
          emit_[at(t, u)] = static_cast<double>(row[p.target(n, u)]) - norm_[at(t, u)];
        }
      }
    }
  }

  // The log probability of all that may follow place (t, u); gives that of the whole.
  double run_back() {
    beta_.resize(norm_.size());
    for (int64_t t = steps_ - 1; t >= 0; --t) {
      for (int64_t u = columns_ - 1; u >= 0; --u) {
        const double stay = t + 1 < steps_ ? blank_[at(t, u)] + beta_[at(t + 1, u)] : -kInf;
        const double go = u + 1 < columns_ ? emit_[at(t, u)] + beta_[at(t, u + 1)] : -kInf;
        beta_[at(t, u)] =
            t + 1 == steps_ && u + 1 == columns_ ? blank_[at(t, u)] : log_add(stay, go);
      }
    }
    return beta_[0];
  }

  // d loss / d logits, into memory that holds zeros.
  void gradients(T* out) const {
    out += n_ * p_.steps * p_.columns * p_.classes;
    const double total = beta_[0];
    if (total == -kInf) return;  // no alignment is possible: nothing moves
    std::vector<double> alpha(static_cast<size_t>(columns_), -kInf);
    for (int64_t t = 0; t < steps_; ++t) {
      for (int64_t u = 0; u < columns_; ++u) {
        const auto k = static_cast<size_t>(u);
        // alpha holds the step before, and from its left neighbour on this one.
        const double stay = t > 0 ? alpha[k] + blank_[at(t - 1, u)] : (u == 0 ? 0.0 : -kInf);
        alpha[k] = u > 0 ? log_add(stay, alpha[k - 1] + emit_[at(t, u - 1)]) : stay;
        const bool last = t + 1 == steps_ && u + 1 == columns_;
        const double here = alpha[k] - total;
        // How probable it is to be here, to emit the blank here, and to emit the label here.
        const double blank = std::exp(here + blank_[at(t, u)] +
                                      (last             ? 0.0
                                       : t + 1 < steps_ ? beta_[at(t + 1, u)]
                                                        : -kInf));
        const double label =
            u + 1 < columns_ ? std::exp(here + emit_[at(t, u)] + beta_[at(t, u + 1)]) : 0.0;
        write(row_of(t, u), norm_[at(t, u)], blank, label, u + 1 < columns_ ? p_.target(n_, u) : -1,
              out + (t * p_.columns + u) * p_.classes);
      }
    }
  }

 private:
  size_t at(int64_t t, int64_t u) const { return static_cast<size_t>(t * columns_ + u); }
  const T* row_of(int64_t t, int64_t u) const { return x_ + (t * p_.columns + u) * p_.classes; }

  double log_sum(const T* row) const {
    double high = -kInf;
    for (int64_t c = 0; c < p_.classes; ++c) high = std::max(high, static_cast<double>(row[c]));
    if (high == -kInf) return 0.0;
    double sum = 0.0;
    for (int64_t c = 0; c < p_.classes; ++c) sum += std::exp(static_cast<double>(row[c]) - high);
    return high + std::log(sum);
  }

  void write(const T* row, double norm, double blank, double label, int64_t target, T* out) const {
    const double here = blank + label;
    for (int64_t c = 0; c < p_.classes; ++c) {
      double g = p_.softmax ? std::exp(static_cast<double>(row[c]) - norm) * here : 0.0;
      if (c == p_.blank) g -= blank;
      if (c == target) g -= label;
      if (p_.clamp > 0.0) g = std::clamp(g, -p_.clamp, p_.clamp);
      out[c] = static_cast<T>(g);
    }
  }

  const Problem& p_;
  int64_t n_;
  const T* x_;
  int64_t steps_, columns_;
  std::vector<double> norm_, blank_, emit_, beta_;
};

template <class T>
void run(const Problem& p, const TensorData& logits_data, TensorData& losses_data,
         TensorData* gradients_data) {
  const T* logits = logits_data.as<T>().data();
  T* losses = losses_data.as_mutable<T>().data();
  T* gradients = nullptr;
  if (gradients_data != nullptr) {
    const std::span<T> all = gradients_data->as_mutable<T>();
    std::fill(all.begin(), all.end(), T(0));
    gradients = all.data();
  }
  parallel_for(p.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      Lattice<T> lattice(p, n, logits);
      losses[n] = static_cast<T>(-lattice.run_back());
      if (gradients != nullptr) lattice.gradients(gradients);
    }
  });
}

// The same out of recorded ops, diagonal by diagonal, for derivatives of the gradient.
Tensor composed(const Problem& p, const Tensor& logits) {
  const Tensor x = p.softmax ? logits.log_softmax(3) : logits;
  const int64_t u = p.columns, diagonals = p.steps + u - 1;
  std::vector<int64_t> labels, last;
  for (int64_t n = 0; n < p.batch; ++n) {
    for (int64_t k = 0; k < u; ++k) {
      const bool real = k < p.sizes[static_cast<size_t>(n)];
      labels.push_back(real ? p.target(n, k) : p.blank);
    }
    last.push_back(p.lengths[static_cast<size_t>(n)] - 1 + p.sizes[static_cast<size_t>(n)]);
  }
  // Step d - k of column k at [d, k]; what lies outside is never reached from the start.
  std::vector<int64_t> step_of;
  for (int64_t d = 0; d < diagonals; ++d) {
    for (int64_t k = 0; k < u; ++k) {
      step_of.push_back(std::clamp<int64_t>(d - k, 0, p.steps - 1));
    }
  }
  const Tensor index =
      beside(x, step_of).reshape({1, diagonals, u}).expand({p.batch, diagonals, u});
  const Tensor blank = x.select(3, p.blank).gather(1, index);
  const Tensor targets =
      beside(x, labels).reshape({p.batch, 1, u, 1}).expand({p.batch, p.steps, u, 1});
  const Tensor emit = x.gather(3, targets).squeeze(3).gather(1, index);
  // Finite, so that what is impossible adds exact zeros.
  constexpr double impossible = -1e30;
  const TensorOptions like{x.dtype(), x.device()};
  const Tensor start = full({p.batch, 1}, impossible, like);
  Tensor alpha = cat({zeros({p.batch, 1}, like), full({p.batch, u - 1}, impossible, like)}, 1);
  std::vector<Tensor> ends;
  std::vector<int64_t> sizes(p.sizes.begin(), p.sizes.end());
  const Tensor size = beside(x, sizes).reshape({p.batch, 1});
  for (int64_t d = 0; d < diagonals; ++d) {
    const Tensor leaves = alpha + blank.select(1, d);
    ends.push_back(leaves.gather(1, size));
    // A column is open at diagonals k .. k + T - 1.
    std::vector<double> open;
    for (int64_t k = 0; k < u; ++k) open.push_back(d + 1 >= k && d + 1 - k < p.steps);
    const Tensor moved = cat({start, (alpha + emit.select(1, d)).narrow(1, 0, u - 1)}, 1);
    const Tensor next = stack({leaves, moved}).logsumexp(0).clamp(impossible, {});
    alpha = where(beside(x, open, {1, u}).gt(0.5), next, full({}, impossible, like));
  }
  return -cat(ends, 1).gather(1, beside(x, last).reshape({p.batch, 1})).squeeze(1);
}

}  // namespace

Tensor rnnt_loss(const Tensor& logits, const Tensor& targets, const Tensor& logit_lengths,
                 const Tensor& target_lengths, int64_t blank, double clamp, Reduction reduction,
                 bool fused_log_softmax) {
  const Problem p =
      problem_of(logits, targets, logit_lengths, target_lengths, blank, clamp, fused_log_softmax);
  const DType dtype = logits.dtype();
  const Tensor x = logits.to(wide_dtype(dtype));
  const bool tracked = is_tracked(value_of(kRnntOp, x));
  const TensorData values = host_values(x);
  TensorData losses(Shape{p.batch}, x.dtype());
  std::optional<TensorData> slopes;
  if (tracked) {
    slopes.emplace(x.shape(), x.dtype());
  }
  const auto run_in = x.dtype() == f64 ? &run<double> : &run<float>;
  run_in(p, values, losses, slopes ? &*slopes : nullptr);
  Tensor loss = Tensor(losses, x.device());
  if (tracked) {
    const Tensor slope = Tensor(*slopes, x.device());
    auto formula = [p, slope,
                    x_ = autodiff::SavedInput<Dispatch>(value_of(kRnntOp, x))](Pass& pass) {
      const Value g = pass.take();
      if (!pass.create_graph()) {
        pass.give(0, value_in(slope * wrap(g).reshape({p.batch, 1, 1, 1})));
        return;
      }
      const Value from = x_.get(pass);
      const Value again = value_in(composed(p, wrap(from)));
      const Value ones = value_in(full({p.batch}, 1.0, {dtype_of_value(g), g.inner->device()}));
      auto found =
          AD::grad_of(std::span(&again, 1), std::span(&ones, 1), std::span(&from, 1),
                      {.retain_graph = true, .create_graph = true, .end_at_targets = true});
      Tensor slopes_again = wrap(std::move(*found[0]));
      if (p.clamp > 0.0) slopes_again = slopes_again.clamp(-p.clamp, p.clamp);
      pass.give(0, value_in(slopes_again * wrap(g).reshape({p.batch, 1, 1, 1})));
    };
    loss = wrap(recorded(kRnntOp, value_in(loss).inner, std::move(formula), value_of(kRnntOp, x)));
  }
  return reduced_loss(loss, reduction).to(dtype);
}

}  // namespace kiln::functional
