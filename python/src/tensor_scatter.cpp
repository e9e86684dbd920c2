// Ops that read or write at indices and masks.
#include "binding.h"
#include "kiln/tensor/index/advanced_index.h"
#include "kiln/tensor/index/scatter.h"
#include "kiln/tensor/shape/views.h"

namespace kiln::python {

namespace {

using T = const Tensor&;

// A pure op as method and function, and its in-place form as a method.
template <class Pure, class InPlace, class... Extra>
void def_pair(nb::module_& m, TensorClass& c, const std::string& name, Pure pure, InPlace in_place,
              const Extra&... extra) {
  def_both(m, c, name.c_str(), pure, extra...);
  c.def((name + "_").c_str(), in_place, extra...);
}

void bind_reads(nb::module_& m, TensorClass& c) {
  def_both(
      m, c, "index_select",
      [](T x, int64_t dim, T index) {
        Unlocked lock(x, index);
        return x.index_select(dim, index);
      },
      "dim"_a, "index"_a, "The slices of dim that index names.");
  def_both(
      m, c, "gather",
      [](T x, int64_t dim, T index, bool) {
        Unlocked lock(x, index);
        return x.gather(dim, index);
      },
      "dim"_a, "index"_a, nb::kw_only(), "sparse_grad"_a = false,
      "out[i][j] = x[index[i][j]][j] for dim 0.");
  def_both(
      m, c, "take",
      [](T x, T index) {
        Unlocked lock(x, index);
        return take(x, index);
      },
      "index"_a, "Elements of the flattened tensor.");
  def_both(
      m, c, "take_along_dim",
      [](T x, T indices, std::optional<int64_t> dim) {
        Unlocked lock(x, indices);
        return take_along_dim(x, indices, dim);
      },
      "indices"_a, "dim"_a = nb::none(),
      "gather() with broadcasting; of the flattened tensor without a dim.");
  m.def(
      "gather_nd",
      [](T x, T indices) {
        Unlocked lock(x, indices);
        return gather_nd(x, indices);
      },
      "input"_a, "indices"_a, "The slices x[i0, .., ik] for each row of the indices.");
  m.def(
      "scatter_nd",
      [](T x, T indices, T values, const std::optional<std::string>& reduce) {
        Unlocked lock(x, indices);
        return scatter_nd(x, indices, values, reduce.value_or(""));
      },
      "input"_a, "indices"_a, "values"_a, nb::kw_only(), "reduce"_a = nb::none(),
      "x with slices x[i0, .., ik] replaced by those of values, or combined with them.");
  def_both(
      m, c, "masked_select",
      [](T x, T mask) {
        Unlocked lock(x);
        return kiln::masked_select(x, mask);
      },
      "mask"_a, "The elements where the mask holds, in one dim.");
  def_both(
      m, c, "nonzero",
      [](T x, bool as_tuple) -> nb::object {
        Tensor positions;
        std::vector<Tensor> parts;
        {
          Unlocked lock(x);
          if (as_tuple) {
            parts = kiln::where(x);
          } else {
            positions = kiln::nonzero(x);
          }
        }
        return as_tuple ? nb::object(tuple_of(parts)) : nb::cast(positions);
      },
      nb::kw_only(), "as_tuple"_a = false, "The positions of what is not zero.");
  m.def(
      "where",
      [](T condition) {
        std::vector<Tensor> parts;
        {
          Unlocked lock(condition);
          parts = kiln::where(condition);
        }
        return tuple_of(parts);
      },
      "condition"_a, "nonzero(condition, as_tuple=True)");
  def_both(
      m, c, "argwhere",
      [](T x) {
        Unlocked lock(x);
        return argwhere(x);
      },
      "The positions of what is not zero, as rows.");
}

void bind_scatters(nb::module_& m, TensorClass& c) {
  const auto source_of = [](const std::optional<Operand>& src,
                            const std::optional<Scalar>& value) -> Operand {
    if (src.has_value() == value.has_value()) {
      throw nb::type_error("scatter: expected src or value");
    }
    // A tensor without dims is a value for all places.
    const bool is_value = src && src->is_tensor() && src->tensor().dim() == 0 &&
                          !is_complex(src->tensor().dtype()) && !src->tensor().requires_grad();
    return is_value ? Operand(src->tensor().item_scalar()) : src ? *src : Operand(*value);
  };
  def_pair(
      m, c, "scatter",
      [source_of](T x, int64_t dim, T index, const std::optional<Operand>& src,
                  const std::optional<Scalar>& value, const std::optional<std::string>& reduce) {
        const Operand from = source_of(src, value);
        Unlocked lock(x, index);
        return from.is_tensor() ? scatter(x, dim, index, from.tensor(), reduce.value_or(""))
                                : scatter(x, dim, index, from.scalar(), reduce.value_or(""));
      },
      [source_of](Tensor& x, int64_t dim, T index, const std::optional<Operand>& src,
                  const std::optional<Scalar>& value, const std::optional<std::string>& reduce) {
        const Operand from = source_of(src, value);
        Unlocked lock(x, index);
        if (from.is_tensor()) {
          scatter_(x, dim, index, from.tensor(), reduce.value_or(""));
        } else {
          scatter_(x, dim, index, from.scalar(), reduce.value_or(""));
        }
        return x;
      },
      "dim"_a, "index"_a, "src"_a = nb::none(), nb::kw_only(), "value"_a = nb::none(),
      "reduce"_a = nb::none(),
      "x with out[index[i][j]][j] = src[i][j] for dim 0; reduce: 'add' or 'multiply'.");
  def_pair(
      m, c, "scatter_add",
      [](T x, int64_t dim, T index, T src) {
        Unlocked lock(x, index);
        return x.scatter_add(dim, index, src);
      },
      [](Tensor& x, int64_t dim, T index, T src) {
        Unlocked lock(x, index);
        scatter_add_(x, dim, index, src);
        return x;
      },
      "dim"_a, "index"_a, "src"_a, "As scatter, but added.");
  def_pair(
      m, c, "scatter_reduce",
      [](T x, int64_t dim, T index, T src, const std::string& reduce, bool include_self) {
        Unlocked lock(x, index);
        return scatter_reduce(x, dim, index, src, reduce, include_self);
      },
      [](Tensor& x, int64_t dim, T index, T src, const std::string& reduce, bool include_self) {
        Unlocked lock(x, index);
        scatter_reduce_(x, dim, index, src, reduce, include_self);
        return x;
      },
      "dim"_a, "index"_a, "src"_a, "reduce"_a, nb::kw_only(), "include_self"_a = true,
      "As scatter, but what meets is reduced: 'sum', 'prod', 'mean', 'amax' or 'amin'.");
  def_pair(
      m, c, "put",
      [](T x, T index, T source, bool accumulate) {
        Unlocked lock(x, index);
        return put(x, index, source, accumulate);
      },
      [](Tensor& x, T index, T source, bool accumulate) {
        Unlocked lock(x, index);
        put_(x, index, source, accumulate);
        return x;
      },
      "index"_a, "source"_a, "accumulate"_a = false,
      "Elements of the flattened tensor replaced, or added to.");
}

void bind_slices(nb::module_& m, TensorClass& c) {
  def_pair(
      m, c, "index_add",
      [](T x, int64_t dim, T index, T source, Scalar alpha) {
        Unlocked lock(x, index);
        const bool one = alpha.is_integral() && alpha.to_int() == 1;
        return x.index_add(dim, index, one ? source : source.mul(alpha));
      },
      [](Tensor& x, int64_t dim, T index, T source, Scalar alpha) {
        Unlocked lock(x, index);
        index_add_(x, dim, index, source, alpha);
        return x;
      },
      "dim"_a, "index"_a, "source"_a, nb::kw_only(), "alpha"_a = 1,
      "x with slices of source added where index says.");
  def_pair(
      m, c, "index_copy",
      [](T x, int64_t dim, T index, T source) {
        Unlocked lock(x, index);
        return index_copy(x, dim, index, source);
      },
      [](Tensor& x, int64_t dim, T index, T source) {
        Unlocked lock(x, index);
        index_copy_(x, dim, index, source);
        return x;
      },
      "dim"_a, "index"_a, "source"_a, "x with slices of source where index says.");
  def_pair(
      m, c, "index_fill",
      [](T x, int64_t dim, T index, const Operand& value) {
        Unlocked lock(x, index);
        return value.is_tensor() ? index_fill(x, dim, index, value.tensor())
                                 : index_fill(x, dim, index, value.scalar());
      },
      [](Tensor& x, int64_t dim, T index, const Operand& value) {
        Unlocked lock(x, index);
        if (value.is_tensor()) {
          index_fill_(x, dim, index, value.tensor());
        } else {
          index_fill_(x, dim, index, value.scalar());
        }
        return x;
      },
      "dim"_a, "index"_a, "value"_a, "x with the slices that index names filled.");
  def_pair(
      m, c, "index_reduce",
      [](T x, int64_t dim, T index, T source, const std::string& reduce, bool include_self) {
        Unlocked lock(x, index);
        return index_reduce(x, dim, index, source, reduce, include_self);
      },
      [](Tensor& x, int64_t dim, T index, T source, const std::string& reduce, bool include_self) {
        Unlocked lock(x, index);
        index_reduce_(x, dim, index, source, reduce, include_self);
        return x;
      },
      "dim"_a, "index"_a, "source"_a, "reduce"_a, nb::kw_only(), "include_self"_a = true,
      "As index_copy, but what meets is reduced: 'prod', 'mean', 'amax' or 'amin'.");
}

void bind_masks(nb::module_& m, TensorClass& c) {
  def_both(
      m, c, "masked_fill",
      [](T x, T mask, const Operand& value) {
        Unlocked lock(x);
        return value.is_tensor() ? masked_fill(x, mask, value.tensor())
                                 : x.masked_fill(mask, value.scalar());
      },
      "mask"_a, "value"_a, "x with value where the mask holds.");
  c.def(
      "masked_fill_",
      [](Tensor& x, T mask, const Operand& value) {
        Unlocked lock(x);
        if (value.is_tensor() && value.tensor().requires_grad()) {
          x.copy_(masked_fill(x, mask, value.tensor()));
        } else {
          x.masked_fill_(mask, value.is_tensor() ? value.tensor().item_scalar() : value.scalar());
        }
        return x;
      },
      "mask"_a, "value"_a);
  def_pair(
      m, c, "masked_scatter",
      [](T x, T mask, T source) {
        Unlocked lock(x);
        return masked_scatter(x, mask, source);
      },
      [](Tensor& x, T mask, T source) {
        Unlocked lock(x);
        masked_scatter_(x, mask, source);
        return x;
      },
      "mask"_a, "source"_a, "x with elements of source, in order, where the mask holds.");
}

void bind_parts(nb::module_& m, TensorClass& c) {
  def_both(
      m, c, "select_scatter",
      [](T x, T src, int64_t dim, int64_t index) {
        Unlocked lock(x);
        return select_scatter(x, src, dim, index);
      },
      "src"_a, "dim"_a, "index"_a, "A copy of x whose select(dim, index) is src.");
  def_both(
      m, c, "slice_scatter",
      [](T x, T src, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
         int64_t step) {
        Unlocked lock(x);
        return slice_scatter(x, src, dim, start, end, step);
      },
      "src"_a, "dim"_a = 0, "start"_a = nb::none(), "end"_a = nb::none(), "step"_a = 1,
      "A copy of x whose slice of dim is src.");
  def_both(
      m, c, "diagonal_scatter",
      [](T x, T src, int64_t offset, int64_t dim1, int64_t dim2) {
        Unlocked lock(x);
        return diagonal_scatter(x, src, offset, dim1, dim2);
      },
      "src"_a, "offset"_a = 0, "dim1"_a = 0, "dim2"_a = 1, "A copy of x whose diagonal is src.");
  c.def(
      "fill_diagonal_",
      [](Tensor& x, Scalar value, bool wrap) {
        Unlocked lock(x);
        fill_diagonal_(x, value, wrap);
        return x;
      },
      "fill_value"_a, "wrap"_a = false);
}

}  // namespace

void bind_scatter(nb::module_& m, TensorClass& c) {
  bind_reads(m, c);
  bind_scatters(m, c);
  bind_slices(m, c);
  bind_masks(m, c);
  bind_parts(m, c);
}

}  // namespace kiln::python
