#include "kiln/tensor/nn/sequence_targets.h"

#include "kiln/tensor/creation.h"
#include "kiln/tensor/host.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/value_check.h"

namespace kiln::detail {

Tensor sequence_lengths(const SequenceOp& of, const Tensor& lengths, int64_t least, int64_t most,
                        const char* what) {
  const char* const op = of.name;
  const Tensor out = wrap(index_value(op, lengths));
  if (out.numel() != of.batch || out.dim() > 1) {
    throw_error<ShapeError>(op, ": expected ", what, " [", of.batch, "]; got ", out.shape());
  }
  check_values(op, out, [op, least, most, what](const Tensor& now) {
    for (const int64_t n : host_numbers(now)) {
      if (n >= least && n <= most) continue;
      throw_error<ValueError>(op, ": ", what, " are out of range; got ", n, "; expected ", least,
                              " to ", most);
    }
  });
  return (out.dim() == 1 ? out : out.reshape({of.batch})).to(of.x.device());
}

void check_labels(const char* op, const Tensor& targets, const Tensor& sizes, int64_t classes,
                  int64_t blank) {
  const Device device = targets.device();
  const Tensor place = arange(targets.size(1), {i64, device});
  const Tensor behind = place.ge(sizes.to(device).unsqueeze(1));
  const Tensor known = targets.masked_fill(behind, kNoLabel);
  check_values(op, known, [op, classes, blank](const Tensor& now) {
    for (const int64_t label : host_numbers(now)) {
      if (label == kNoLabel || (label >= 0 && label < classes && label != blank)) continue;
      throw_error<ValueError>(op, ": a target is no label; got ", label,
                              "; expected classes below ", classes, " other than the blank ",
                              blank);
    }
  });
}

}  // namespace kiln::detail
