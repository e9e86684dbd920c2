// What is chosen by values: the shapes of results follow from them.
#include "kiln/onnx/read/call.h"
#include "kiln/tensor/index/advanced_index.h"
#include "kiln/tensor/index/scatter.h"
#include "kiln/tensor/index/unique.h"

namespace kiln::onnx {

namespace {

void nonzero_of(Call& c) { c.out(kiln::nonzero(c.in(0)).transpose(0, 1)); }

void compress(Call& c) {
  const bool flat = !c.has("axis");
  const Tensor x = flat ? c.in(0).flatten() : c.in(0);
  const int64_t axis = flat ? 0 : c.axis_of("axis", 0, x.dim());
  const Tensor condition = c.in(1);
  if (condition.dim() != 1 || condition.size(0) > x.size(axis)) {
    c.fail(concat("expected one flag for each of ", x.size(axis), "; got ", condition.shape()));
  }
  c.out(x.index_select(axis, kiln::nonzero(condition).select(1, 0)));
}

// Ascending, or in the order in which the values come first.
void unique_of(Call& c) {
  const bool flat = !c.has("axis");
  const Tensor x = flat ? c.in(0).flatten() : c.in(0);
  const int64_t axis = flat ? 0 : c.axis_of("axis", 0, x.dim());
  Unique found = kiln::unique(x, true, true, axis);
  const int64_t n = x.size(axis), k = found.values.size(axis);
  const Tensor inverse = found.inverse.flatten();
  const Tensor first = scatter_reduce(kiln::full({k}, n, {.dtype = DType::i64}), 0, inverse,
                                      kiln::arange(n), "amin");
  if (c.i("sorted", 1) != 0) {
    c.out(found.values, 0);
    c.out(first, 1);
    c.out(inverse, 2);
    c.out(found.counts, 3);
    return;
  }
  const Tensor order = first.argsort();
  c.out(found.values.index_select(axis, order), 0);
  c.out(first.index_select(0, order), 1);
  c.out(order.argsort().index_select(0, inverse), 2);
  c.out(found.counts.index_select(0, order), 3);
}

// The first elements of each row, so many as its length says, the other way round.
void reverse_sequence(Call& c) {
  const Tensor x = c.in(0), lengths = c.in(1);
  if (x.dim() < 2) c.fail(concat("expected time and batch; got ", x.shape()));
  const int64_t time = c.axis_of("time_axis", 0, x.dim()),
                batch = c.axis_of("batch_axis", 1, x.dim());
  if (time == batch || lengths.dim() != 1 || lengths.size(0) != x.size(batch)) {
    c.fail(concat("expected a length for each of ", x.size(batch), "; got ", lengths.shape()));
  }
  Shape along_time = Shape::filled(static_cast<int>(x.dim()), 1), along_batch = along_time;
  along_time[static_cast<int>(time)] = x.size(time);
  along_batch[static_cast<int>(batch)] = x.size(batch);
  const Tensor t = kiln::arange(x.size(time)).reshape(along_time);
  const Tensor n = lengths.to(DType::i64).reshape(along_batch);
  const Tensor from = kiln::where(t.lt(n), n.sub(t).sub(1), t);
  c.out(x.gather(time, from.expand(x.shape())));
}

constexpr Operator kOperators[] = {
    {"NonZero", nonzero_of},
    {"Compress", compress},
    {"Unique", unique_of},
    {"ReverseSequence", reverse_sequence},
};

}  // namespace

std::span<const Operator> selection_operators() { return kOperators; }

}  // namespace kiln::onnx
