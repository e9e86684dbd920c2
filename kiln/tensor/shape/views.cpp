#include "kiln/tensor/shape/views.h"

#include <algorithm>

#include "kiln/backend/dispatch/views.h"
#include "kiln/tensor/autograd/formula.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/autograd/region.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln {

using namespace detail;

namespace {

// How a view reaches the elements of x: in memory, and as positions in x's row-major order (which
// `elements` computes where the device's backend tells no layouts).
template <class Elements>
Tensor strided_view(const char* op, const Tensor& x, const Shape& shape, const Strides& strides,
                    int64_t offset, Elements elements) {
  const Value& value = value_of(op, x);
  if (kind_of_value(value) == Kind::quantized) {
    throw_wrong_dtype(op, DType::q8, "a floating point, integer or bool tensor");
  }
  if (!layout_of(value.inner)) {
    return x.reshape({-1}).index_select(0, elements()).reshape(shape);
  }
  ErasedTensor inner = views_of(value.inner).as_strided(value.inner, shape, strides, offset);
  if (!is_tracked(value)) return wrap_view(x, Value{std::move(inner)});
  const Handle<Region> region = make_handle<Region>(op, value, shape, strides, offset);
  auto formula = [region](Pass& p) { p.give(0, value_in(region->spread(wrap(p.take())))); };
  return wrap_view(x, recorded(op, std::move(inner), std::move(formula), value));
}

// A view whose steps are known in x's index space: `along(strides)` turns the strides of x's dims
// (in memory, or row-major) into those of the view, and `first(strides)` into its start.
template <class Along, class First>
Tensor regular_view(const char* op, const Tensor& x, const Shape& shape, Along along, First first) {
  const Value& value = value_of(op, x);
  const Layout layout = layout_of(value.inner);
  // Elements that share memory have gradients of their own. Nobody can write to one of them alone,
  // so a copy does as well.
  if (layout && is_tracked(value) && may_repeat(x.shape(), *layout.strides)) {
    return regular_view(op, x.contiguous(), shape, along, first);
  }
  const Strides rows = contiguous_strides(x.shape());
  const Strides& memory = layout ? *layout.strides : rows;
  return strided_view(op, x, shape, along(memory), layout.offset + first(memory),
                      [&] { return positions(shape, along(rows), first(rows), x.device()); });
}

void check_part(const char* op, const Shape& part, const Tensor& src) {
  if (part == src.shape()) return;
  throw_error<ShapeError>(op, ": the source does not fit; got ", src.shape(), "; expected ", part);
}

}  // namespace

namespace {

[[noreturn]] void throw_no_elements(const Tensor& x, DType dtype) {
  throw_error<ShapeError>("view: the last dim does not hold elements of that dtype; got ",
                          x.dtype(), " ", x.shape(), " with strides ", x.stride(), " for ", dtype,
                          "; expected a last stride of 1 and a size that divides evenly");
}

// Through the parts, which are real.
Tensor view_of_complex(const Tensor& x, DType dtype) {
  const Tensor parts = view_as_real(x);
  if (x.dim() == 0) return view_as_dtype(parts, dtype).view({});
  Shape flat = x.shape();
  flat.back() *= 2;
  return view_as_dtype(parts.view(flat), dtype);
}

Tensor view_as_parts(const Tensor& x, DType dtype) {
  const Tensor parts = view_as_dtype(x, real_dtype(dtype));
  Shape pairs = parts.shape();
  if (pairs.rank() == 0 || pairs.back() % 2 != 0) throw_no_elements(x, dtype);
  pairs.back() /= 2;
  pairs.push_back(2);
  return view_as_complex(parts.view(pairs));
}

// Shape, strides and offset of memory whose elements become `to` bytes large.
void resize_elements(const Tensor& x, DType dtype, Shape& shape, Strides& strides,
                     int64_t& offset) {
  const auto from = static_cast<int64_t>(size_of(x.dtype()));
  const auto to = static_cast<int64_t>(size_of(dtype));
  if (from == to) return;
  const int last = shape.rank() - 1;
  if (last < 0 || strides[last] != 1) throw_no_elements(x, dtype);
  const auto scaled = [&](int64_t n) {
    if (n * from % to != 0) throw_no_elements(x, dtype);
    return n * from / to;
  };
  shape[last] = scaled(shape[last]);
  offset = scaled(offset);
  for (int d = 0; d < last; ++d) strides[d] = scaled(strides[d]);
}

}  // namespace

Tensor view_as_dtype(const Tensor& x, DType dtype) {
  constexpr const char* op = "view";
  if (impl_of(op, x).dtype() == dtype) return x.view(x.shape());
  if (dtype == bool_ || dtype == DType::q8 || x.dtype() == DType::q8) {
    throw_wrong_dtype(op, dtype == bool_ ? dtype : DType::q8, "numbers, try ne(0) for bools");
  }
  if (has_complex(x)) return view_of_complex(x, dtype);
  if (is_complex(dtype)) return view_as_parts(x, dtype);
  const Value& value = value_of(op, x);
  if (is_tracked(value) && is_floating_point(dtype)) {
    throw_error<AutodiffError>(op,
                               ": the memory of a tensor that requires a gradient cannot be "
                               "read as another floating point dtype; try detach() first");
  }
  const Layout layout = layout_of(value.inner);
  const auto reinterpret = views_of(value.inner).reinterpret;
  if (!layout || reinterpret == nullptr) {
    throw_error<NotImplementedError>(op, ": the memory of ", x.device(), " is out of reach");
  }
  Shape shape = x.shape();
  Strides strides = *layout.strides;
  int64_t offset = layout.offset;
  resize_elements(x, dtype, shape, strides, offset);
  return wrap_view(x, Value{reinterpret(value.inner, dtype, shape, strides, offset)});
}

Tensor as_strided(const Tensor& x, const Shape& size, const Strides& stride,
                  std::optional<int64_t> storage_offset) {
  if (has_complex(x)) {
    Strides steps;
    for (const int64_t s : stride) steps.push_back(2 * s);
    steps.push_back(1);
    const auto first = storage_offset ? std::optional(2 * *storage_offset) : std::nullopt;
    return from_parts(as_strided(parts_of(x), parts_shape(size), steps, first));
  }
  const Layout layout = layout_of(value_of("as_strided", x).inner);
  if (size.rank() != stride.rank()) {
    throw_error<ShapeError>("as_strided: expected a stride for each size; got sizes ", size,
                            " and strides ", stride);
  }
  // Without memory that can be addressed, that of a row-major copy.
  const int64_t offset = storage_offset.value_or(layout.offset);
  const int64_t limit = layout ? layout.capacity : x.numel();
  checked_numel("as_strided", size);
  int64_t last = offset;
  bool fits = offset >= 0;
  bool empty = false;
  for (int d = 0; d < size.rank(); ++d) {
    if (stride[d] < 0) {
      throw_error<ValueError>("as_strided: strides cannot be negative; got ", stride);
    }
    empty = empty || size[d] == 0;
    int64_t reach = 0;
    fits = fits && !__builtin_mul_overflow(std::max<int64_t>(size[d] - 1, 0), stride[d], &reach) &&
           !__builtin_add_overflow(last, reach, &last);
  }
  if (!fits || (empty ? offset > limit : last >= limit)) {
    throw_error<ValueError>("as_strided: leaves the tensor's memory; got sizes ", size,
                            ", strides ", stride, ", offset ", offset, "; expected to stay within ",
                            limit, " elements");
  }
  return strided_view("as_strided", x, size, stride, offset,
                      [&] { return positions(size, stride, offset, x.device()); });
}

Tensor diagonal(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  const Shape& from = impl_of("diagonal", x).shape();
  const int a = normalize_dim("diagonal", dim1, from.rank());
  const int b = normalize_dim("diagonal", dim2, from.rank());
  if (a == b || from.rank() < 2) {
    throw_error<ShapeError>("diagonal: expected two different dims; got ", dim1, " and ", dim2,
                            " for shape ", from);
  }
  if (has_complex(x)) {
    return from_parts(diagonal(parts_of(x), offset, a, b).transpose(-2, -1));
  }
  const int64_t down = offset < 0 ? -offset : 0;
  const int64_t across = offset > 0 ? offset : 0;
  const int64_t n = std::max<int64_t>(0, std::min(from[a] - down, from[b] - across));
  const auto without_both = [&](Shape dims, int64_t last) {
    dims.erase(std::max(a, b));
    dims.erase(std::min(a, b));
    dims.push_back(last);
    return dims;
  };
  return regular_view(
      "diagonal", x, without_both(from, n),
      [&](const Strides& s) { return without_both(s, s[a] + s[b]); },
      [&](const Strides& s) { return n == 0 ? 0 : down * s[a] + across * s[b]; });
}

Tensor unfold(const Tensor& x, int64_t dim, int64_t size, int64_t step) {
  const Shape& given = impl_of("unfold", x).shape();
  if (given.rank() == 0) {
    return unfold(x.reshape({1}), dim, size, step).reshape({size});
  }
  const int d = normalize_dim("unfold", dim, given.rank());
  if (size < 0 || size > given[d] || step < 1) {
    throw_error<ValueError>("unfold: expected 0 <= size <= ", given[d],
                            ", the size of the dim, and step >= 1; got size ", size, ", step ",
                            step);
  }
  if (has_complex(x)) return from_parts(unfold(parts_of(x), d, size, step).transpose(-2, -1));
  Shape to = given;
  to[d] = (given[d] - size) / step + 1;
  to.push_back(size);
  return regular_view(
      "unfold", x, to,
      [&](Strides s) {
        s.push_back(s[d]);
        s[d] *= step;
        return s;
      },
      [](const Strides&) { return int64_t{0}; });
}

Tensor diag_embed(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  const Shape& from = impl_of("diag_embed", x).shape();
  if (from.rank() == 0) {
    throw_error<ShapeError>("diag_embed: expected at least 1 dim; got a 0-d tensor");
  }
  const int rank = from.rank() + 1;
  const int a = normalize_dim("diag_embed", dim1, rank);
  const int b = normalize_dim("diag_embed", dim2, rank);
  if (a == b) {
    throw_error<ShapeError>("diag_embed: expected two different dims; got ", dim1, " and ", dim2);
  }
  if (has_complex(x)) return from_parts(diag_embed(parts_of(x).transpose(-2, -1), offset, a, b));
  Shape to = from;
  const int64_t n = to.back() + std::abs(offset);
  to.erase(to.rank() - 1);
  to.insert(std::min(a, b), n);
  to.insert(std::max(a, b), n);
  checked_numel("diag_embed", to);
  return with_part_in("diag_embed", zeros(to, {x.dtype(), x.device()}), x,
                      [=](const Tensor& y) { return diagonal(y, offset, a, b); });
}

Tensor diag(const Tensor& x, int64_t offset) {
  const int rank = impl_of("diag", x).shape().rank();
  if (rank == 1) return diag_embed(x, offset);
  if (rank == 2) return diagonal(x, offset).clone();
  throw_error<ShapeError>("diag: expected 1 or 2 dims; got ", x.shape());
}

Tensor diagflat(const Tensor& x, int64_t offset) { return diag_embed(x.reshape({-1}), offset); }

Tensor select_scatter(const Tensor& x, const Tensor& src, int64_t dim, int64_t index) {
  check_part("select_scatter", x.detach().select(dim, index).shape(), src);
  return with_part("select_scatter", x, src, [=](const Tensor& y) { return y.select(dim, index); });
}

Tensor slice_scatter(const Tensor& x, const Tensor& src, int64_t dim, std::optional<int64_t> start,
                     std::optional<int64_t> end, int64_t step) {
  check_part("slice_scatter", x.detach().slice(dim, start, end, step).shape(), src);
  return with_part("slice_scatter", x, src,
                   [=](const Tensor& y) { return y.slice(dim, start, end, step); });
}

Tensor diagonal_scatter(const Tensor& x, const Tensor& src, int64_t offset, int64_t dim1,
                        int64_t dim2) {
  check_part("diagonal_scatter", diagonal(x.detach(), offset, dim1, dim2).shape(), src);
  return with_part("diagonal_scatter", x, src,
                   [=](const Tensor& y) { return diagonal(y, offset, dim1, dim2); });
}

Tensor& fill_diagonal_(Tensor& x, Scalar value, bool wrap_around) {
  const Shape& shape = impl_of("fill_diagonal_", x).shape();
  if (shape.rank() < 2) {
    throw_error<ShapeError>("fill_diagonal_: expected at least 2 dims; got ", shape);
  }
  for (int d = 1; d < shape.rank(); ++d) {
    if (shape.rank() > 2 && shape[d] != shape[0]) {
      throw_error<ShapeError>("fill_diagonal_: more than 2 dims must all be equal; got ", shape);
    }
  }
  const int64_t n = *std::min_element(shape.begin(), shape.end());
  Tensor mask = zeros({shape.numel()}, {bool_, x.device()});
  int64_t step = 0;
  for (const int64_t s : contiguous_strides(shape)) step += s;
  const int64_t end = wrap_around && shape.rank() == 2 ? shape.numel()
                      : n == 0                         ? 0
                                                       : (n - 1) * step + 1;
  if (end > 0) mask.slice(0, 0, end, step).fill_(1);
  return x.masked_fill_(mask.reshape(shape), value);
}

}  // namespace kiln
