#include "kiln/tensor/autograd/region.h"

#include <algorithm>

#include "kiln/backend/dispatch/views.h"
#include "kiln/core/dim_order.h"
#include "kiln/graph/capture.h"
#include "kiln/tensor/autograd/formula.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/index/scatter.h"

namespace kiln::detail {

bool may_repeat(const Shape& shape, const Strides& strides) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 0) return false;
    if (shape[d] > 1) dims.emplace_back(strides[d], shape[d]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

namespace {

// The last place that a region starting at `offset` reaches.
int64_t last_of(const Shape& shape, const Strides& strides, int64_t offset) {
  for (int d = 0; d < shape.rank(); ++d) offset += (shape[d] - 1) * strides[d];
  return offset;
}

[[noreturn]] void throw_outside(const char* op, const Shape& base) {
  throw_error<AutodiffError>(
      op, ": reaches memory that is no element of the tensor, and so has no gradient; got shape ",
      base, "; try detach() first");
}

// The place of each element of the region in base's row-major order, through the map of memory.
Tensor places_of(const char* op, const Value& base, const Shape& shape, const Strides& strides,
                 int64_t offset) {
  const NoGradGuard no_grad;
  const graph::PauseCapture constant;  // of a graph: it depends on places in memory alone
  const Layout memory = layout_of(base.inner);
  const std::vector<int64_t> own =
      positions(shape_of(base), *memory.strides, memory.offset, {}).to_vector<int64_t>();
  std::vector<int64_t> wanted = positions(shape, strides, offset, {}).to_vector<int64_t>();
  int64_t end = 0;
  for (const int64_t at : own) end = std::max(end, at + 1);
  for (const int64_t at : wanted) end = std::max(end, at + 1);
  std::vector<int64_t> place(static_cast<size_t>(end), -1);
  for (size_t i = 0; i < own.size(); ++i) {
    int64_t& p = place[static_cast<size_t>(own[i])];
    if (p >= 0) {
      throw_error<AutodiffError>(
          op, ": has no gradient for a tensor whose elements share memory; got shape ",
          shape_of(base), " with strides ", *memory.strides, "; try contiguous() first");
    }
    p = static_cast<int64_t>(i);
  }
  for (int64_t& at : wanted) {
    at = place[static_cast<size_t>(at)];
    if (at < 0) throw_outside(op, shape_of(base));
  }
  return tensor(wanted, {i64, base.inner->device()});
}

}  // namespace

Tensor positions(const Shape& shape, const Strides& steps, int64_t base, Device device) {
  Tensor out = full(Shape::filled(shape.rank(), 1), base, {i64, device});
  for (int d = 0; d < shape.rank(); ++d) {
    Shape along = Shape::filled(shape.rank(), 1);
    along[d] = shape[d];
    out = out.add(arange(shape[d], {i64, device}).mul(steps[d]).reshape(along));
  }
  return out.reshape({-1});
}

Handle<Region> Region::of(const char* op, const Value& base, const Value& view) {
  const Layout at = layout_of(view.inner);
  return make_handle<Region>(op, base, shape_of(view), *at.strides, at.offset);
}

Region::Region(const char* op, const Value& base, const Shape& shape, const Strides& strides,
               int64_t offset)
    : base_shape_(shape_of(base)), shape_(shape), strides_(strides) {
  const Layout memory = layout_of(base.inner);
  if (!is_contiguous(base_shape_, *memory.strides)) {
    order_ = by_stride(*memory.strides);
    if (!is_contiguous(permuted(base_shape_, order_), permuted(*memory.strides, order_))) {
      places_ = places_of(op, base, shape, strides, offset);
      repeats_ = true;
      return;
    }
  }
  offset_ = offset - memory.offset;
  repeats_ = may_repeat(shape, strides);
  if (shape.numel() > 0 &&
      (offset_ < 0 || last_of(shape, strides, offset_) >= base_shape_.numel())) {
    throw_outside(op, base_shape_);
  }
}

// x as row-major memory, its dims in order_.
Tensor Region::in_rows(const Tensor& x) const {
  return (order_.empty() ? x : x.permute(order_)).contiguous();
}
Tensor Region::out_of_rows(const Tensor& rows) const {
  return order_.empty() ? rows : rows.permute(inverse(order_));
}

ErasedTensor Region::view_of(const Value& rows) const {
  const int64_t first = shape_.numel() == 0 ? 0 : layout_of(rows.inner).offset + offset_;
  return views_of(rows.inner).as_strided(rows.inner, shape_, strides_, first);
}

Tensor Region::take(const Tensor& x) const {
  if (is_listed()) return x.reshape({-1}).index_select(0, places_).reshape(shape_);
  const Value& value = value_in(x);
  ErasedTensor out = view_of(value_in(in_rows(x.detach())));
  if (!is_tracked(value)) return wrap(std::move(out));
  auto formula = [r = self()](Pass& p) { p.give(0, value_in(r->spread(wrap(p.take())))); };
  return wrap(recorded("take_region", std::move(out), std::move(formula), value));
}

void Region::clear_in_place(Value& x) const { Dispatch::float_fill(view_of(x), Scalar(0.0)); }

Tensor Region::clear(const Tensor& x) const {
  if (is_listed()) {
    return index_fill(x.reshape({-1}), 0, places_, Scalar(0.0)).reshape(base_shape_);
  }
  const Value& value = value_in(x);
  Value rows{value_in(in_rows(x.detach()).clone()).inner};
  clear_in_place(rows);
  Tensor out = out_of_rows(wrap(std::move(rows)));
  if (!is_tracked(value)) return out;
  auto formula = [r = self()](Pass& p) { p.give(0, value_in(r->clear(wrap(p.take())))); };
  return wrap(recorded("clear_region", value_in(out).inner, std::move(formula), value));
}

Tensor Region::spread(const Tensor& part) const {
  const TensorOptions like{part.dtype(), part.device()};
  if (repeats_) {
    const Tensor sums = zeros({base_shape_.numel()}, like);
    if (is_listed()) return sums.index_add(0, places_, part.reshape({-1})).reshape(base_shape_);
    const Tensor at = positions(shape_, strides_, offset_, part.device());
    const Shape rows = order_.empty() ? base_shape_ : permuted(base_shape_, order_);
    return out_of_rows(sums.index_add(0, at, part.reshape({-1})).reshape(rows));
  }
  const Value& value = value_in(part);
  const Value rows =
      value_in(zeros(order_.empty() ? base_shape_ : permuted(base_shape_, order_), like));
  Dispatch::float_assign(view_of(rows), value.inner);
  Tensor out = out_of_rows(wrap(rows));
  if (!is_tracked(value)) return out;
  auto formula = [r = self()](Pass& p) { p.give(0, value_in(r->take(wrap(p.take())))); };
  return wrap(recorded("spread_region", value_in(out).inner, std::move(formula), value));
}

}  // namespace kiln::detail
