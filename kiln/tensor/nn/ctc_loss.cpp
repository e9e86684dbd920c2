#include "kiln/tensor/nn/ctc_loss.h"

#include <limits>

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/host.h"
#include "kiln/tensor/nn/functional_support.h"

namespace kiln::functional {

using namespace detail;

namespace {

constexpr const char* kCtcOp = "ctc_loss";
// Stands for the logarithm of 0. Finite, so that what has probability 0 adds exact zeros to sums
// and gradients instead of NaN.
constexpr double kImpossible = -1e30;

std::vector<int64_t> lengths_of(const Tensor& lengths, int64_t batch, int64_t most,
                                const char* what) {
  static_cast<void>(index_value(kCtcOp, lengths));
  if (lengths.numel() != batch || lengths.dim() > 1) {
    throw_error<ShapeError>(kCtcOp, ": expected ", what, " [", batch, "]; got ", lengths.shape());
  }
  std::vector<int64_t> out = host_numbers(lengths);
  for (const int64_t n : out) {
    if (n < 0 || n > most) {
      throw_error<ValueError>(kCtcOp, ": ", what, " are out of range; got ", n, "; expected 0 to ",
                              most);
    }
  }
  return out;
}

// Each target as its row's labels with a blank before, between and after: [N, 2 S + 1].
struct Labels {
  std::vector<int64_t> extended;
  // 0 where the state two before may be skipped to (its label differs), else kImpossible.
  std::vector<double> skip;
  int64_t states = 1;
};

Labels labels_of(const Tensor& targets, const std::vector<int64_t>& lengths, int64_t blank,
                 int64_t classes) {
  const auto batch = static_cast<int64_t>(lengths.size());
  int64_t longest = 0, total = 0;
  for (const int64_t n : lengths) {
    longest = std::max(longest, n);
    total += n;
  }
  const bool padded = targets.dim() == 2;
  if (!padded && (targets.dim() != 1 || targets.numel() != total)) {
    throw_error<ShapeError>(kCtcOp, ": the targets do not fit; got ", targets.shape(),
                            "; expected [N, S], or all of them in one row [", total, "]");
  }
  if (padded && (targets.size(0) != batch || targets.size(1) < longest)) {
    throw_error<ShapeError>(kCtcOp, ": the targets do not fit; got ", targets.shape(),
                            "; expected [", batch, ", S] with S >= ", longest);
  }
  const std::vector<int64_t> values = host_numbers(wrap(index_value(kCtcOp, targets)));
  Labels out;
  out.states = 2 * longest + 1;
  out.extended.assign(static_cast<size_t>(batch * out.states), blank);
  out.skip.assign(out.extended.size(), kImpossible);
  int64_t at = 0;
  for (int64_t n = 0; n < batch; ++n) {
    if (padded) at = n * targets.size(1);
    const int64_t length = lengths[static_cast<size_t>(n)];
    for (int64_t s = 0; s < length; ++s, ++at) {
      const int64_t label = values[static_cast<size_t>(at)];
      if (label < 0 || label >= classes || label == blank) {
        throw_error<ValueError>(kCtcOp, ": a target is no label; got ", label,
                                "; expected classes below ", classes, " other than the blank ",
                                blank);
      }
      const auto state = static_cast<size_t>(n * out.states + 2 * s + 1);
      out.extended[state] = label;
      if (s > 0 && out.extended[state - 2] != label) out.skip[state] = 0.0;
    }
  }
  return out;
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, int64_t blank, Reduction reduction,
                bool zero_infinity) {
  KILN_AUTOCAST(f32, ctc_loss, log_probs, targets, input_lengths, target_lengths, blank, reduction,
                zero_infinity);
  require_floating(kCtcOp, log_probs);
  if (log_probs.dim() != 2 && log_probs.dim() != 3) {
    throw_error<ShapeError>(kCtcOp, ": expected log_probs [T, N, C] or [T, C]; got ",
                            log_probs.shape());
  }
  const bool batched = log_probs.dim() == 3;
  const DType dtype = log_probs.dtype();
  const Tensor x = (batched ? log_probs : log_probs.unsqueeze(1)).to(wide_dtype(dtype));
  const int64_t steps = x.size(0), batch = x.size(1), classes = x.size(2);
  if (blank < 0 || blank >= classes) {
    throw_error<ValueError>(kCtcOp, ": blank is no class; got ", blank, "; expected 0 <= blank < ",
                            classes);
  }
  const std::vector<int64_t> ends = lengths_of(input_lengths, batch, steps, "input_lengths");
  const std::vector<int64_t> sizes =
      lengths_of(target_lengths, batch, std::numeric_limits<int32_t>::max(), "target_lengths");
  const Labels labels = labels_of(targets, sizes, blank, classes);
  const int64_t states = labels.states;
  const TensorOptions options{x.dtype(), x.device()};

  // What each state emits at each step: [T, N, states].
  const Tensor index = beside(x, labels.extended).reshape({1, batch, states});
  const Tensor emitted = x.gather(2, index.expand({steps, batch, states})).clamp(kImpossible, {});
  const Tensor skip = from_vector(labels.skip, {batch, states}, options);
  const int64_t shortest = batch == 0 ? 0 : *std::min_element(ends.begin(), ends.end());
  int64_t longest = 0;
  for (const int64_t n : ends) longest = std::max(longest, n);
  const Tensor length = from_vector(ends, {batch, 1}, {i64, x.device()});

  // Two impossible states stand in front of the first, so that the states one and two before are
  // views.
  const Tensor front = full({batch, 2}, kImpossible, options);
  Tensor alpha;  // [N, 2 + states]
  for (int64_t t = 0; t < longest; ++t) {
    Tensor next;
    if (t == 0) {  // the first blank or the first label
      const int64_t starts = std::min<int64_t>(2, states);
      next = padded_dim(emitted[0].narrow(1, 0, starts), 1, 0, states - starts, kImpossible);
    } else {
      const Tensor same = alpha.narrow(1, 2, states), one_before = alpha.narrow(1, 1, states);
      const Tensor two_before = alpha.narrow(1, 0, states) + skip;
      next = stack({same, one_before, two_before}).logsumexp(0) + emitted[t];
      // A sequence that has ended keeps its last state.
      if (t >= shortest) next = where(length.gt(t), next, same);
    }
    alpha = cat({front, next}, 1);
  }
  alpha =
      alpha.defined() ? alpha.narrow(1, 2, states) : full({batch, states}, kImpossible, options);

  // The last label or the blank after it.
  std::vector<int64_t> last;
  std::vector<double> before, weights;
  for (const int64_t n : sizes) {
    last.push_back(2 * n);
    last.push_back(std::max<int64_t>(0, 2 * n - 1));
    before.push_back(0.0);
    before.push_back(n > 0 ? 0.0 : kImpossible);
    weights.push_back(static_cast<double>(std::max<int64_t>(1, n)));
  }
  const Tensor final_states = alpha.gather(1, beside(x, last).reshape({batch, 2})) +
                              from_vector(before, {batch, 2}, options);
  Tensor loss = -final_states.logsumexp(1);
  // A sequence of no outputs spells the empty target, and nothing else.
  std::vector<double> silent;
  for (size_t n = 0; n < ends.size(); ++n) silent.push_back(ends[n] == 0 && sizes[n] == 0);
  if (shortest == 0 && batch > 0) {
    const Tensor no_steps = length.squeeze(1).eq(0);
    const Tensor nothing = from_vector(silent, {batch}, options).gt(0.5);
    loss = loss.masked_fill(no_steps, -kImpossible).masked_fill(nothing, 0.0);
  }
  const Tensor hopeless = loss.detach().gt(-kImpossible * 0.5);
  loss = loss.masked_fill(hopeless, zero_infinity ? 0.0 : std::numeric_limits<double>::infinity());
  if (reduction == Reduction::mean) {
    loss = (loss / from_vector(weights, {batch}, options)).mean();
  } else if (reduction == Reduction::sum) {
    loss = loss.sum();
  } else if (!batched) {
    loss = loss.squeeze(0);
  }
  return loss.to(dtype);
}

}  // namespace kiln::functional
