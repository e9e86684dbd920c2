// The loss of an RNN transducer: sequences side by side, their lattices in double precision. See
// Note [Lattice of a transducer] in composed_rnnt.h.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kiln/backend/cpu/lattice/targets.h"
#include "kiln/backend/cpu/norm/softmax_kernels.h"

namespace kiln {
namespace {

constexpr double kUnreached = -std::numeric_limits<double>::infinity();

struct RnntBatch : cpu::LatticeTargets {
  RnntBatch(const HostHandle& x, Arg<HostHandle> all_targets, Arg<HostHandle> all_ends,
            Arg<HostHandle> all_sizes, int64_t blank_class, double most, bool scores)
      : LatticeTargets(all_targets, all_ends, all_sizes),
        batch(x->shape()[0]),
        steps(x->shape()[1]),
        columns(x->shape()[2]),
        classes(x->shape()[3]),
        blank(blank_class),
        clamp(most),
        softmax(scores) {
    check("rnnt_loss", "logit_lengths", 1, steps, classes);
  }

  int64_t batch, steps, columns, classes, blank;
  double clamp;
  bool softmax;
};

double log_add(double a, double b) {
  const double high = std::max(a, b);
  return high == kUnreached ? kUnreached : high + std::log1p(std::exp(std::min(a, b) - high));
}

// The alignments of one sequence.
template <class T>
class RnntLattice {
 public:
  RnntLattice(const RnntBatch& batch, int64_t n, const T* x)
      : b_(batch),
        n_(n),
        x_(x + n * batch.steps * batch.columns * batch.classes),
        steps_(batch.end(n)),
        columns_(batch.size(n) + 1) {
    const auto places = static_cast<size_t>(steps_ * columns_);
    norm_.resize(places, T(0));
    blank_.resize(places);
    emit_.resize(places, kUnreached);
    const cpu::SoftmaxKernels<T>& kernels = cpu::softmax_kernels<T>();
    for (int64_t t = 0; t < steps_; ++t) {
      if (b_.softmax) kernels.logsumexp_rows(row_of(t, 0), &norm_[at(t, 0)], columns_, b_.classes);
      for (int64_t u = 0; u < columns_; ++u) {
        const T* row = row_of(t, u);
        const auto norm = static_cast<double>(norm_[at(t, u)]);
        blank_[at(t, u)] = static_cast<double>(row[b_.blank]) - norm;
        if (u + 1 < columns_) emit_[at(t, u)] = static_cast<double>(row[b_.label(n, u)]) - norm;
      }
    }
  }

  // The log probability of all that may follow each place; gives that of the whole.
  double run_back() {
    beta_.resize(blank_.size());
    for (int64_t t = steps_ - 1; t >= 0; --t) {
      for (int64_t u = columns_ - 1; u >= 0; --u) {
        const double stay = t + 1 < steps_ ? blank_[at(t, u)] + beta_[at(t + 1, u)] : kUnreached;
        const double go = u + 1 < columns_ ? emit_[at(t, u)] + beta_[at(t, u + 1)] : kUnreached;
        beta_[at(t, u)] =
            t + 1 == steps_ && u + 1 == columns_ ? blank_[at(t, u)] : log_add(stay, go);
      }
    }
    return beta_[0];
  }

  // g times the gradient of the scores, into memory that holds zeros.
  void gradient(double g, T* out) const {
    out += n_ * b_.steps * b_.columns * b_.classes;
    const double total = beta_[0];
    if (total == kUnreached) return;
    std::vector<double> alpha(static_cast<size_t>(columns_), kUnreached);
    for (int64_t t = 0; t < steps_; ++t) {
      for (int64_t u = 0; u < columns_; ++u) {
        const auto k = static_cast<size_t>(u);
        // alpha holds the step before, and from its left neighbour on this one.
        const double stay = t > 0 ? alpha[k] + blank_[at(t - 1, u)] : (u == 0 ? 0.0 : kUnreached);
        alpha[k] = u > 0 ? log_add(stay, alpha[k - 1] + emit_[at(t, u - 1)]) : stay;
        const bool last = t + 1 == steps_ && u + 1 == columns_;
        const double after = last ? 0.0 : t + 1 < steps_ ? beta_[at(t + 1, u)] : kUnreached;
        const double here = alpha[k] - total;
        const double blank = std::exp(here + blank_[at(t, u)] + after);
        const bool labelled = u + 1 < columns_;
        const double label =
            labelled ? std::exp(here + emit_[at(t, u)] + beta_[at(t, u + 1)]) : 0.0;
        write(g, t, u, blank, label, out + (t * b_.columns + u) * b_.classes);
      }
    }
  }

 private:
  size_t at(int64_t t, int64_t u) const { return static_cast<size_t>(t * columns_ + u); }
  const T* row_of(int64_t t, int64_t u) const { return x_ + (t * b_.columns + u) * b_.classes; }

  // The gradient at a place, from how probable it is to emit the blank and the label there.
  void write(double g, int64_t t, int64_t u, double blank, double label, T* out) const {
    const bool clamped = b_.clamp > 0.0;
    const double scale = clamped ? 1.0 : g;
    if (b_.softmax) {
      cpu::softmax_kernels<T>().cross_entropy_backward_row(row_of(t, u), norm_[at(t, u)],
                                                           static_cast<T>(scale * (blank + label)),
                                                           T(0), out, b_.classes);
    }
    out[b_.blank] -= static_cast<T>(scale * blank);
    if (u + 1 < columns_) out[b_.label(n_, u)] -= static_cast<T>(scale * label);
    if (!clamped) return;
    const T most = static_cast<T>(b_.clamp), by = static_cast<T>(g);
    for (int64_t c = 0; c < b_.classes; ++c) out[c] = std::clamp(out[c], -most, most) * by;
  }

  const RnntBatch& b_;
  int64_t n_;
  const T* x_;
  int64_t steps_, columns_;
  std::vector<T> norm_;
  std::vector<double> blank_, emit_, beta_;
};

template <class T>
HostHandle rnnt_losses(const HostHandle& x, const RnntBatch& batch) {
  HostHandle out = host::empty(Shape{batch.batch}, x->dtype(), x->device());
  const T* from = x->data_as<const T>();
  T* to = out->data_as<T>();
  parallel_for(batch.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      to[n] = static_cast<T>(-RnntLattice<T>(batch, n, from).run_back());
    }
  });
  return out;
}

template <class T>
HostHandle rnnt_gradient(const HostHandle& g, const HostHandle& x, const RnntBatch& batch) {
  HostHandle out = CpuOps::float_full(x->shape(), 0.0, x->dtype(), x->device());
  const T* from = x->data_as<const T>();
  const T* scale = g->data_as<const T>();
  T* to = out->data_as<T>();
  parallel_for(batch.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      RnntLattice<T> lattice(batch, n, from);
      lattice.run_back();
      lattice.gradient(static_cast<double>(scale[n]), to);
    }
  });
  return out;
}

}  // namespace

HostHandle CpuOps::float_rnnt_loss(Arg<HostHandle> x, Arg<HostHandle> targets, Arg<HostHandle> ends,
                                   Arg<HostHandle> sizes, int64_t blank, double clamp,
                                   bool softmax) {
  const DType dtype = x.get()->dtype();
  if (cpu::is_half(dtype)) {
    return cpu::narrowed(
        float_rnnt_loss(cpu::widened(x), targets, ends, sizes, blank, clamp, softmax), dtype);
  }
  const HostHandle from = cpu::contiguous(x.get());
  const RnntBatch batch(from, targets, ends, sizes, blank, clamp, softmax);
  return dtype == DType::f64 ? rnnt_losses<double>(from, batch) : rnnt_losses<float>(from, batch);
}

HostHandle CpuOps::float_rnnt_loss_backward(Arg<HostHandle> g, Arg<HostHandle> x,
                                            Arg<HostHandle> targets, Arg<HostHandle> ends,
                                            Arg<HostHandle> sizes, int64_t blank, double clamp,
                                            bool softmax) {
  const DType dtype = x.get()->dtype();
  if (cpu::is_half(dtype)) {
    return cpu::narrowed(float_rnnt_loss_backward(cpu::widened(g), cpu::widened(x), targets, ends,
                                                  sizes, blank, clamp, softmax),
                         dtype);
  }
  const HostHandle from = cpu::contiguous(x.get()), scale = cpu::contiguous(g.get());
  const RnntBatch batch(from, targets, ends, sizes, blank, clamp, softmax);
  return dtype == DType::f64 ? rnnt_gradient<double>(scale, from, batch)
                             : rnnt_gradient<float>(scale, from, batch);
}

}  // namespace kiln
