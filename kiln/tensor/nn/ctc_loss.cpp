#include "kiln/tensor/nn/ctc_loss.h"

#include <algorithm>
#include <limits>

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/host.h"
#include "kiln/tensor/nn/functional_support.h"
#include "kiln/tensor/nn/sequence_targets.h"
#include "kiln/tensor/value_check.h"

namespace kiln::functional {

using namespace detail;

namespace {

constexpr const char* kCtcOp = "ctc_loss";

[[noreturn]] void refuse_row(int64_t got, int64_t total) {
  throw_error<ShapeError>(kCtcOp, ": the targets do not fit; got [", got,
                          "]; expected [N, S], or all of them in one row [", total, "]");
}

// The only target, as a row [1, S].
Tensor ctc_row(const Tensor& targets, const Tensor& size) {
  const int64_t all = targets.numel();
  check_values(kCtcOp, size, [all](const Tensor& now) {
    const int64_t total = host_numbers(now).front();
    if (total != all) refuse_row(all, total);
  });
  return targets.reshape({1, all});
}

// Targets that stand one behind the other, as rows [N, S].
Tensor ctc_rows(const Tensor& targets, const std::vector<int64_t>& sizes) {
  int64_t longest = 0, total = 0;
  for (const int64_t n : sizes) {
    longest = std::max(longest, n);
    total += n;
  }
  if (targets.numel() != total) refuse_row(targets.numel(), total);
  const std::vector<int64_t> labels = host_numbers(targets);
  const auto batch = static_cast<int64_t>(sizes.size());
  std::vector<int64_t> rows(static_cast<size_t>(batch * longest), kNoLabel);
  auto from = labels.begin();
  for (int64_t n = 0; n < batch; ++n) {
    const int64_t size = sizes[static_cast<size_t>(n)];
    std::copy_n(from, size, rows.begin() + n * longest);
    from += size;
  }
  return from_vector(rows, {batch, longest}, {i64, targets.device()});
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
  const int64_t batch = x.size(1), classes = x.size(2);
  if (blank < 0 || blank >= classes) {
    throw_error<ValueError>(kCtcOp, ": blank is no class; got ", blank, "; expected 0 <= blank < ",
                            classes);
  }
  const SequenceOp of{kCtcOp, x, batch};
  const Tensor ends = sequence_lengths(of, input_lengths, 0, x.size(0), "input_lengths");
  Tensor labels = wrap(index_value(kCtcOp, targets));
  const bool rows = labels.dim() == 2;
  const int64_t most = rows ? labels.size(1) : labels.numel();
  const Tensor sizes = sequence_lengths(of, target_lengths, 0, most, "target_lengths");
  if (rows ? labels.size(0) != batch : labels.dim() != 1) {
    throw_error<ShapeError>(kCtcOp, ": the targets do not fit; got ", targets.shape(),
                            "; expected [", batch, ", S], or all of them in one row");
  }
  if (!rows) labels = batch == 1 ? ctc_row(labels, sizes) : ctc_rows(labels, host_numbers(sizes));
  check_labels(kCtcOp, labels, sizes, classes, blank);
  labels = labels.to(x.device());

  Tensor loss =
      wrap(AD::float_ctc_loss(value_of(kCtcOp, x), value_of(kCtcOp, labels).inner,
                              value_of(kCtcOp, ends).inner, value_of(kCtcOp, sizes).inner, blank));
  if (zero_infinity) {
    loss = loss.masked_fill(loss.detach().eq(std::numeric_limits<double>::infinity()), 0.0);
  }
  if (reduction == Reduction::mean) {
    loss = (loss / sizes.clamp(1, {}).to(loss.dtype())).mean();
  } else if (reduction == Reduction::sum) {
    loss = loss.sum();
  } else if (!batched) {
    loss = loss.squeeze(0);
  }
  return loss.to(dtype);
}

}  // namespace kiln::functional
