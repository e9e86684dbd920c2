#include "kiln/tensor/shape/rearranging.h"

#include <numeric>

#include "kiln/tensor/autograd/formula.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/autograd/view_history.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/host.h"
#include "kiln/tensor/ops.h"

namespace kiln {

using namespace detail;

Tensor movedim(const Tensor& x, const Dims& source, const Dims& destination) {
  const Dims from = normalize_dims("movedim", source, x.dim());
  const Dims to = normalize_dims("movedim", destination, x.dim());
  if (from.rank() != to.rank()) {
    throw_error<ShapeError>("movedim: expected as many destinations as sources; got ", source,
                            " and ", destination);
  }
  if (x.dim() == 0) return x;
  Dims order = Shape::filled(x.dim(), -1);
  for (int i = 0; i < from.rank(); ++i) order[static_cast<int>(to[i])] = from[i];
  int next = 0;
  for (int i = 0; i < x.dim(); ++i) {
    if (order[i] >= 0) continue;
    while (from.contains(next)) ++next;
    order[i] = next++;
  }
  return x.permute(order);
}

Tensor unflatten(const Tensor& x, int64_t dim, const Shape& sizes) {
  const int d = normalize_dim("unflatten", dim, x.dim());
  if (x.dim() == 0 || sizes.empty()) {
    throw_error<ShapeError>("unflatten: expected a dim and sizes for it; got shape ", x.shape(),
                            " and sizes ", sizes);
  }
  int64_t known = 1;
  int unknown = -1;
  for (int i = 0; i < sizes.rank(); ++i) {
    if (sizes[i] == -1 && unknown < 0) {
      unknown = i;
    } else if (sizes[i] < 0 || __builtin_mul_overflow(known, sizes[i], &known)) {
      throw_error<ShapeError>("unflatten: expected sizes >= 0, one of them -1; got ", sizes);
    }
  }
  const int64_t size = x.shape()[d];
  Shape parts = sizes;
  if (unknown >= 0 && known != 0 && size % known == 0) {
    parts[unknown] = size / known;
    known = size;
  }
  if (known != size || parts.contains(-1)) {
    throw_error<ShapeError>("unflatten: the sizes do not multiply to the dim's; got ", sizes,
                            " for dim ", dim, " of ", x.shape());
  }
  Shape shape = x.shape();
  shape.erase(d);
  for (int i = 0; i < parts.rank(); ++i) shape.insert(d + i, parts[i]);
  return x.reshape(shape);
}

Tensor ravel(const Tensor& x) { return x.reshape({-1}); }

Tensor squeeze(const Tensor& x, const Dims& dims) {
  const Dims squeezed = normalize_dims("squeeze", dims, x.dim());
  Shape to;
  for (int i = 0; i < x.dim(); ++i) {
    if (x.shape()[i] != 1 || !squeezed.contains(i)) to.push_back(x.shape()[i]);
  }
  return x.reshape(to);
}

Tensor atleast_1d(const Tensor& x) { return x.dim() == 0 ? x.reshape({1}) : x; }
Tensor atleast_2d(const Tensor& x) {
  if (x.dim() == 0) return x.reshape({1, 1});
  return x.dim() == 1 ? x.unsqueeze(0) : x;
}
Tensor atleast_3d(const Tensor& x) {
  if (x.dim() == 0) return x.reshape({1, 1, 1});
  if (x.dim() == 1) return x.unsqueeze(0).unsqueeze(-1);
  return x.dim() == 2 ? x.unsqueeze(-1) : x;
}

std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors) {
  Shape shape;
  for (const Tensor& x : tensors) shape = broadcast_shapes("broadcast_tensors", shape, x.shape());
  std::vector<Tensor> out;
  for (const Tensor& x : tensors) out.push_back(x.expand(shape));
  return out;
}

// ---- Repeating

Tensor repeat(const Tensor& x, const Shape& times) {
  const int extra = times.rank() - x.dim();
  if (extra < 0) {
    throw_error<ShapeError>("repeat: expected a number for each dim; got ", times,
                            " for a tensor of ", x.shape());
  }
  Shape shape;
  Shape spread;
  Shape result;
  for (int i = 0; i < times.rank(); ++i) {
    const int64_t size = i < extra ? 1 : x.shape()[i - extra];
    int64_t total = 0;
    if (times[i] < 0 || __builtin_mul_overflow(times[i], size, &total)) {
      throw_error<ShapeError>("repeat: expected numbers >= 0 that do not overflow; got ", times,
                              " for a tensor of ", x.shape());
    }
    // Only what is repeated needs two dims, of which there are not that many.
    if (times[i] != 1) {
      shape.push_back(1);
      spread.push_back(times[i]);
    }
    shape.push_back(size);
    spread.push_back(size);
    result.push_back(total);
  }
  return own_memory(x, x.reshape(shape).expand(spread).reshape(result));
}

Tensor tile(const Tensor& x, const Shape& times) {
  Shape all = times;
  while (all.rank() < x.dim()) all.insert(0, 1);
  return repeat(x, all);
}

Tensor repeat_interleave(const Tensor& x, int64_t times, std::optional<int64_t> dim) {
  if (times < 0) {
    throw_error<ValueError>("repeat_interleave: expected a number >= 0; got ", times);
  }
  const int d = normalize_dim("repeat_interleave", dim.value_or(0), x.dim());
  if (!dim || x.dim() == 0) return repeat_interleave(x.reshape({-1}), times, 0);
  Shape spread = x.shape();
  Shape result = x.shape();
  spread.insert(d + 1, times);
  if (__builtin_mul_overflow(result[d], times, &result[d])) {
    throw_error<ShapeError>("repeat_interleave: the sizes overflow; got ", times, " for ",
                            x.shape());
  }
  return own_memory(x, x.unsqueeze(d + 1).expand(spread).reshape(result));
}

Tensor repeat_interleave(const Tensor& times) {
  if (times.dim() != 1 || !is_integral(times.dtype())) {
    throw_error<ShapeError>("repeat_interleave: expected integers in 1 dim; got ", times.dtype(),
                            " ", times.shape());
  }
  const std::vector<int64_t> counts = host_numbers(times);
  int64_t total = 0;
  for (const int64_t count : counts) {
    if (count < 0) {
      throw_error<ValueError>("repeat_interleave: expected numbers >= 0; got ", count);
    }
    if (__builtin_add_overflow(total, count, &total)) {
      throw_error<ShapeError>("repeat_interleave: the sizes overflow");
    }
  }
  checked_numel("repeat_interleave", {total});
  TensorData index(Shape{total}, i64);
  auto at = index.as_mutable<int64_t>().begin();
  for (size_t i = 0; i < counts.size(); ++i) {
    at = std::fill_n(at, counts[i], static_cast<int64_t>(i));
  }
  return Tensor(index, times.device());
}

Tensor repeat_interleave(const Tensor& x, const Tensor& times, std::optional<int64_t> dim) {
  if (times.numel() == 1 && is_integral(times.dtype())) {
    return repeat_interleave(x, times.item<int64_t>(), dim);
  }
  if (!dim || x.dim() == 0) return repeat_interleave(x.reshape({-1}), times, 0);
  const int d = normalize_dim("repeat_interleave", *dim, x.dim());
  if (times.dim() != 1 || times.numel() != x.shape()[d]) {
    throw_error<ShapeError>("repeat_interleave: expected a number for each slice; got ",
                            times.shape(), " for dim ", *dim, " of ", x.shape());
  }
  return x.index_select(d, repeat_interleave(times));
}

// ---- Turning

namespace {

// Writes `from`, moved by `by` along each dim from `dim` on, to `to`: by pieces that stay together.
void copy_rolled(Tensor to, const Tensor& from, const Shape& by, int dim) {
  while (dim < by.rank() && by[dim] == 0) ++dim;
  if (dim == by.rank()) {
    to.copy_(from);
    return;
  }
  const int64_t shift = by[dim];
  const int64_t rest = from.shape()[dim] - shift;
  copy_rolled(to.narrow(dim, 0, shift), from.narrow(dim, rest, shift), by, dim + 1);
  copy_rolled(to.narrow(dim, shift, rest), from.narrow(dim, 0, rest), by, dim + 1);
}

// x moved along each dim, by less than its size.
Tensor rolled(const Tensor& x, const Shape& by) {
  if (has_complex(x)) {
    Shape parts = by;
    parts.push_back(0);
    return from_parts(rolled(parts_of(x), parts));
  }
  const Value& value = value_of("roll", x);
  const Tensor out = empty(x.shape(), {x.dtype(), x.device()});
  {
    const NoGradGuard no_grad;
    copy_rolled(out, x.detach(), by, 0);
  }
  if (!is_tracked(value)) return out;
  Shape back = by;
  for (int d = 0; d < by.rank(); ++d) back[d] = by[d] == 0 ? 0 : x.shape()[d] - by[d];
  auto formula = [back](Pass& p) { p.give(0, value_in(rolled(wrap(p.take()), back))); };
  return wrap(recorded("roll", value_in(out).inner, std::move(formula), value));
}

}  // namespace

Tensor roll(const Tensor& x, const Shape& shifts, const Dims& dims) {
  if (dims.empty() && shifts.rank() == 1) {
    return roll(x.reshape({-1}), shifts, {0}).reshape(x.shape());
  }
  if (dims.rank() != shifts.rank() || dims.empty()) {
    throw_error<ShapeError>("roll: expected a dim for each shift; got shifts ", shifts,
                            " and dims ", dims);
  }
  Shape by = Shape::filled(x.dim(), 0);
  for (int i = 0; i < dims.rank(); ++i) {
    if (x.dim() == 0) {
      throw_error<IndexError>("roll: a 0-d tensor has no dims; got dims ", dims);
    }
    const int d = normalize_dim("roll", dims[i], x.dim());
    const int64_t n = x.shape()[d];
    if (n > 0) by[d] = ((by[d] + shifts[i] % n) % n + n) % n;
  }
  return x.numel() == 0 ? x.clone() : rolled(x, by);
}

Tensor fliplr(const Tensor& x) {
  if (x.dim() < 2) {
    throw_error<ShapeError>("fliplr: expected at least 2 dims; got ", x.shape());
  }
  return x.flip({1});
}
Tensor flipud(const Tensor& x) {
  if (x.dim() < 1) throw_error<ShapeError>("flipud: expected at least 1 dim; got a 0-d tensor");
  return x.flip({0});
}

Tensor rot90(const Tensor& x, int64_t k, const Dims& dims) {
  const Dims plane = normalize_dims("rot90", dims, x.dim());
  if (plane.rank() != 2 || x.dim() < 2) {
    throw_error<ShapeError>("rot90: expected two different dims of at least 2; got dims ", dims,
                            " for shape ", x.shape());
  }
  const int64_t a = plane[0];
  const int64_t b = plane[1];
  switch ((k % 4 + 4) % 4) {
    case 1:
      return x.flip({b}).transpose(a, b);
    case 2:
      return x.flip(plane);
    case 3:
      return x.flip({a}).transpose(a, b);
    default:
      return x.clone();
  }
}

}  // namespace kiln
