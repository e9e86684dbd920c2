// Connectionist temporal classification: sequences side by side, the states of a step in vectors,
// in double precision. See Note [Lattice of CTC] in composed_ctc.h.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kiln/backend/cpu/lattice/lattice_kernels.h"
#include "kiln/backend/cpu/lattice/targets.h"
#include "kiln/backend/cpu/rounding.h"

namespace kiln {
namespace {

// Stands for the logarithm of 0. Finite, so that sums of it are.
constexpr double kNever = -1e30;
constexpr double kNoLoss = std::numeric_limits<double>::infinity();
// Two states in front of the first, which a walk never reaches.
constexpr int64_t kFront = 2;

struct CtcBatch : cpu::LatticeTargets {
  CtcBatch(const HostHandle& x, Arg<HostHandle> all_targets, Arg<HostHandle> all_ends,
           Arg<HostHandle> all_sizes, int64_t blank_class)
      : LatticeTargets(all_targets, all_ends, all_sizes),
        steps(x->shape()[0]),
        batch(x->shape()[1]),
        classes(x->shape()[2]),
        blank(blank_class) {
    check("ctc_loss", "input_lengths", 0, steps, classes);
  }

  int64_t steps, batch, classes, blank;
};

// The walks of one sequence. Rows of states begin with two that are never reached, and end with as
// many as whole vectors and the two states behind the last take.
template <class T>
class CtcWalks {
 public:
  CtcWalks(const CtcBatch& batch, int64_t n, const T* x)
      : x_(x + n * batch.classes),
        step_(batch.batch * batch.classes),
        end_(batch.end(n)),
        size_(batch.size(n)),
        states_(2 * size_ + 1),
        whole_(cpu::round_up(states_, cpu::kLatticeVector)),
        row_(kFront + whole_ + 2),
        labels_(static_cast<size_t>(states_), batch.blank),
        skip_(static_cast<size_t>(row_), kNever),
        emitted_(static_cast<size_t>(whole_), 0.0) {
    for (int64_t s = 0; s < size_; ++s) {
      const int64_t state = 2 * s + 1, label = batch.label(n, s);
      labels_[at(state)] = label;
      if (s > 0 && label != batch.label(n, s - 1)) skip_[at(state)] = 0.0;
    }
  }

  // The loss alone: two rows are enough.
  double loss() {
    std::vector<double> rows(at(2 * row_), kNever);
    for (int64_t t = 0; t < end_; ++t) {
      forward(t, rows.data() + (t + 1) % 2 * row_, rows.data() + t % 2 * row_);
    }
    return loss_at(rows.data() + (end_ + 1) % 2 * row_);
  }

  // Adds to a gradient in the form of x, which holds zeros.
  void gradient(double g, T* out, std::vector<double>& by_class) {
    std::vector<double> alpha(at(end_ * row_), kNever);
    for (int64_t t = 0; t < end_; ++t) {
      double* const now = alpha.data() + t * row_;
      forward(t, t == 0 ? now : now - row_, now);
    }
    if (end_ == 0) return;
    const double loss = loss_at(alpha.data() + (end_ - 1) * row_);
    if (loss == kNoLoss) return;
    std::vector<double> beta(at(row_), kNever), after(at(row_), kNever);
    const std::vector<double> nothing(at(whole_), 0.0);
    std::vector<double> weights(at(whole_));
    beta[at(2 * size_)] = 0.0;
    if (size_ > 0) beta[at(2 * size_ - 1)] = 0.0;
    const cpu::LatticeKernels& kernels = cpu::lattice_kernels();
    for (int64_t t = end_ - 1; t >= 0; --t) {
      if (t + 1 < end_) {
        emit(t + 1);
        for (int64_t s = 0; s < states_; ++s) after[at(s)] = beta[at(s)] + emitted_[at(s)];
        kernels.step(after.data(), after.data() + 1, after.data() + 2, skip_.data() + 2,
                     nothing.data(), beta.data(), whole_);
      }
      kernels.weights(alpha.data() + t * row_ + kFront, beta.data(), loss, weights.data(), whole_);
      for (int64_t s = 0; s < states_; ++s) by_class[at(labels_[at(s)])] += weights[at(s)];
      T* const row = out + t * step_;
      for (int64_t s = 0; s < states_; ++s) {
        const int64_t label = labels_[at(s)];
        row[label] = static_cast<T>(-g * by_class[at(label)]);
      }
      for (const int64_t label : labels_) by_class[at(label)] = 0.0;
    }
  }

 private:
  static size_t at(int64_t i) { return static_cast<size_t>(i); }

  void emit(int64_t t) {
    const T* const row = x_ + t * step_;
    for (int64_t s = 0; s < states_; ++s) {
      const auto value = static_cast<double>(row[labels_[at(s)]]);
      emitted_[at(s)] = value < kNever ? kNever : value;
    }
  }

  // `now` at step t from `before`; both are whole rows.
  void forward(int64_t t, const double* before, double* now) {
    emit(t);
    if (t == 0) {  // the first blank or the first label
      for (int64_t s = 0; s < std::min<int64_t>(2, states_); ++s) {
        now[kFront + s] = emitted_[at(s)];
      }
      return;
    }
    cpu::lattice_kernels().step(before + kFront, before + kFront - 1, before + kFront - 2,
                                skip_.data(), emitted_.data(), now + kFront, whole_);
    // What lies behind the last state in its vector.
    std::fill(now + kFront + states_, now + row_, kNever);
  }

  double loss_at(const double* last) const {
    if (end_ == 0) return size_ == 0 ? 0.0 : kNoLoss;
    const double a = last[kFront + 2 * size_];
    const double b = size_ > 0 ? last[kFront + 2 * size_ - 1] : kNever;
    const double most = std::max(a, b);
    const double loss = -(most + std::log(std::exp(a - most) + std::exp(b - most)));
    return loss > -0.5 * kNever ? kNoLoss : loss;
  }

  const T* x_;
  int64_t step_, end_, size_, states_, whole_, row_;
  std::vector<int64_t> labels_;
  std::vector<double> skip_, emitted_;
};

template <class T>
HostHandle ctc_losses(const HostHandle& x, const CtcBatch& batch) {
  HostHandle out = host::empty(Shape{batch.batch}, x->dtype(), x->device());
  const T* from = x->data_as<const T>();
  T* to = out->data_as<T>();
  parallel_for(batch.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      to[n] = static_cast<T>(CtcWalks<T>(batch, n, from).loss());
    }
  });
  return out;
}

template <class T>
HostHandle ctc_gradient(const HostHandle& g, const HostHandle& x, const CtcBatch& batch) {
  HostHandle out = CpuOps::float_full(x->shape(), 0.0, x->dtype(), x->device());
  const T* from = x->data_as<const T>();
  const T* scale = g->data_as<const T>();
  T* to = out->data_as<T>();
  parallel_for(batch.batch, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> by_class(static_cast<size_t>(batch.classes), 0.0);
    for (int64_t n = begin; n < end; ++n) {
      CtcWalks<T>(batch, n, from)
          .gradient(static_cast<double>(scale[n]), to + n * batch.classes, by_class);
    }
  });
  return out;
}

}  // namespace

HostHandle CpuOps::float_ctc_loss(Arg<HostHandle> x, Arg<HostHandle> targets, Arg<HostHandle> ends,
                                  Arg<HostHandle> sizes, int64_t blank) {
  const DType dtype = x.get()->dtype();
  if (cpu::is_half(dtype)) {
    return cpu::narrowed(float_ctc_loss(cpu::widened(x), targets, ends, sizes, blank), dtype);
  }
  const HostHandle from = cpu::contiguous(x.get());
  const CtcBatch batch(from, targets, ends, sizes, blank);
  return dtype == DType::f64 ? ctc_losses<double>(from, batch) : ctc_losses<float>(from, batch);
}

HostHandle CpuOps::float_ctc_loss_backward(Arg<HostHandle> g, Arg<HostHandle> x,
                                           Arg<HostHandle> targets, Arg<HostHandle> ends,
                                           Arg<HostHandle> sizes, int64_t blank) {
  const DType dtype = x.get()->dtype();
  if (cpu::is_half(dtype)) {
    return cpu::narrowed(
        float_ctc_loss_backward(cpu::widened(g), cpu::widened(x), targets, ends, sizes, blank),
        dtype);
  }
  const HostHandle from = cpu::contiguous(x.get()), scale = cpu::contiguous(g.get());
  const CtcBatch batch(from, targets, ends, sizes, blank);
  return dtype == DType::f64 ? ctc_gradient<double>(scale, from, batch)
                             : ctc_gradient<float>(scale, from, batch);
}

}  // namespace kiln
