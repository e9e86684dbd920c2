// Windows, diagonals, repetitions and turns; tensors joined and taken apart.
#include "integer_arg.h"
#include "kiln/tensor/nn/padding.h"
#include "kiln/tensor/shape/joining.h"
#include "kiln/tensor/shape/rearranging.h"
#include "kiln/tensor/shape/views.h"

namespace kiln::python {

namespace {

using T = const Tensor&;

// Tensors given one by one or as one sequence.
std::vector<Tensor> tensors_of(const char* op, const nb::args& args) {
  std::vector<Tensor> out;
  const bool one_sequence =
      args.size() == 1 && (PyList_Check(args[0].ptr()) || PyTuple_Check(args[0].ptr()));
  const nb::tuple items =
      one_sequence ? nb::tuple(nb::handle(args[0])) : nb::borrow<nb::tuple>(args);
  for (nb::handle item : items) out.push_back(tensor_arg(op, item));
  return out;
}

// Repeats as a number or as a tensor.
Tensor repeated(T x, const Operand& repeats, std::optional<int64_t> dim) {
  if (repeats.is_tensor()) return repeat_interleave(x, repeats.tensor(), dim);
  return repeat_interleave(x, integer_arg("repeat_interleave", repeats), dim);
}

// The result, whose size along dim (of a flat result without one) is what the caller expected.
Tensor of_size(Tensor out, std::optional<int64_t> dim, std::optional<int64_t> expected) {
  const int64_t got = out.size(static_cast<int>(dim.value_or(0)));
  if (expected && got != *expected) {
    throw_error<ValueError>("repeat_interleave: output_size is not the size of the result; got ",
                            *expected, "; expected ", got);
  }
  return out;
}

void bind_strided(nb::module_& m, TensorClass& c) {
  def_both(
      m, c, "as_strided",
      [](T x, const Shape& size, const Shape& stride, std::optional<int64_t> offset) {
        return as_strided(x, size, stride, offset);
      },
      "size"_a, "stride"_a, "storage_offset"_a = nb::none(),
      "A view of the tensor's memory with these sizes and strides.");
  c.def(
      "unfold",
      [](T x, int64_t dim, int64_t size, int64_t step) { return unfold(x, dim, size, step); },
      "dimension"_a, "size"_a, "step"_a,
      "Every window of `size` neighbours along a dim, as a new last dim.");
  def_both(
      m, c, "diagonal",
      [](T x, int64_t offset, int64_t dim1, int64_t dim2) {
        return diagonal(x, offset, dim1, dim2);
      },
      "offset"_a = 0, "dim1"_a = 0, "dim2"_a = 1, "The diagonal of two dims, as a last dim.");
  def_both(
      m, c, "diag",
      [](T x, int64_t offset) {
        Unlocked lock(x);
        return diag(x, offset);
      },
      "diagonal"_a = 0, "A matrix with x on its diagonal, or the diagonal of a matrix.");
  def_both(
      m, c, "diag_embed",
      [](T x, int64_t offset, int64_t dim1, int64_t dim2) {
        Unlocked lock(x);
        return diag_embed(x, offset, dim1, dim2);
      },
      "offset"_a = 0, "dim1"_a = -2, "dim2"_a = -1, "Zeros with the last dim on a diagonal.");
  def_both(
      m, c, "diagflat",
      [](T x, int64_t offset) {
        Unlocked lock(x);
        return diagflat(x, offset);
      },
      "offset"_a = 0, "diag() of all elements.");
}

void bind_turns(nb::module_& m, TensorClass& c) {
  def_both(
      m, c, "roll",
      [](T x, const IntList& shifts, const std::optional<IntList>& dims) {
        Unlocked lock(x);
        return roll(x, shifts.values, dims ? dims->values : Dims());
      },
      "shifts"_a, "dims"_a = nb::none(), "Elements moved along dims, around the ends.");
  def_both(
      m, c, "rot90",
      [](T x, int64_t k, const std::vector<int64_t>& dims) {
        Unlocked lock(x);
        return rot90(x, k, Shape(dims));
      },
      "k"_a = 1, "dims"_a = std::vector<int64_t>{0, 1}, "Turned by 90 degrees k times.");
  def_both(
      m, c, "fliplr", [](T x) { return fliplr(x); }, "The order of dim 1 reversed.");
  def_both(
      m, c, "flipud", [](T x) { return flipud(x); }, "The order of dim 0 reversed.");
  m.def(
      "repeat_interleave",
      [](T x, const std::optional<Operand>& repeats, std::optional<int64_t> dim,
         std::optional<int64_t> output_size) {
        Unlocked lock(x);
        return of_size(repeats ? repeated(x, *repeats, dim) : repeat_interleave(x),
                       repeats ? dim : 0, output_size);
      },
      "input"_a, "repeats"_a = nb::none(), "dim"_a = nb::none(), nb::kw_only(),
      "output_size"_a = nb::none(), "Each element (or slice of dim) several times in a row.");
  c.def(
      "repeat_interleave",
      [](T x, const Operand& repeats, std::optional<int64_t> dim,
         std::optional<int64_t> output_size) {
        Unlocked lock(x);
        return of_size(repeated(x, repeats, dim), dim, output_size);
      },
      "repeats"_a, "dim"_a = nb::none(), nb::kw_only(), "output_size"_a = nb::none(),
      "Each element (or slice of dim) several times in a row.");
  const auto atleast = [&](const char* name, Tensor (*f)(const Tensor&)) {
    const std::string op = name;
    m.def(
        name,
        [f, op](const nb::args& args) -> nb::object {
          const std::vector<Tensor> tensors = tensors_of(op.c_str(), args);
          if (args.size() == 1 && tensor_pointer(nb::handle(args[0]).ptr()) != nullptr) {
            return nb::cast(f(tensors[0]));
          }
          std::vector<Tensor> out;
          for (const Tensor& x : tensors) out.push_back(f(x));
          return tuple_of(out);
        },
        "With at least this many dims.");
  };
  atleast("atleast_1d", &atleast_1d);
  atleast("atleast_2d", &atleast_2d);
  atleast("atleast_3d", &atleast_3d);
  m.def(
      "broadcast_shapes",
      [](const nb::args& args) {
        Shape shape;
        for (nb::handle arg : args) {
          IntList list;
          if (!try_value(arg, list)) {
            throw nb::type_error("broadcast_shapes: expected sequences of integers");
          }
          shape = broadcast_shapes("broadcast_shapes", shape, list.values);
        }
        return size_object(shape);
      },
      "The shape that these broadcast to.");
}

void bind_joining(nb::module_& m, TensorClass& c) {
  const auto joins = [&](const char* name, Tensor (*f)(const std::vector<Tensor>&),
                         const char* doc) {
    m.def(
        name,
        [f](const std::vector<Tensor>& tensors) {
          Unlocked lock;
          return f(tensors);
        },
        "tensors"_a, doc);
  };
  joins("hstack", &hstack, "Joined along dim 1 (dim 0 for tensors of 1 dim).");
  joins("vstack", &vstack, "Joined as rows, along dim 0.");
  joins("row_stack", &vstack, "Joined as rows, along dim 0.");
  joins("dstack", &dstack, "Joined along dim 2.");
  joins("column_stack", &column_stack, "Joined as columns.");
  m.def(
      "block_diag", [](const nb::args& args) { return block_diag(tensors_of("block_diag", args)); },
      "A matrix with the given matrices along its diagonal.");
  def_both(
      m, c, "tensor_split",
      [](T x, const nb::object& parts, int64_t dim) {
        IntList list;
        if (const Tensor* t = tensor_pointer(parts.ptr())) {
          const std::vector<int64_t> values = t->to_vector<int64_t>();
          list.values = Shape(values);
          list.is_number = t->dim() == 0;
        } else if (!try_value(parts, list)) {
          throw nb::type_error("tensor_split: expected an integer, or indices");
        }
        return tuple_of(list.is_number ? tensor_split(x, list.values[0], dim)
                                       : tensor_split(x, list.values, dim));
      },
      "indices_or_sections"_a, "dim"_a = 0, "Parts of equal sizes, or between the indices.");
  const auto splits = [&](const char* name, auto sections, auto indices) {
    def_both(
        m, c, name,
        [sections, indices](T x, const IntList& parts) {
          return tuple_of(parts.is_number ? sections(x, parts.values[0])
                                          : indices(x, parts.values));
        },
        "indices_or_sections"_a);
  };
  splits(
      "hsplit", [](T x, int64_t n) { return hsplit(x, n); },
      [](T x, const Shape& at) { return hsplit(x, at); });
  splits(
      "vsplit", [](T x, int64_t n) { return vsplit(x, n); },
      [](T x, const Shape& at) { return vsplit(x, at); });
  splits(
      "dsplit", [](T x, int64_t n) { return dsplit(x, n); },
      [](T x, const Shape& at) { return dsplit(x, at); });
}

void bind_padding(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("_functional");
  m.def(
      "pad",
      [](T x, const Shape& pad, const std::string& mode, std::optional<double> value) {
        Unlocked lock(x);
        return functional::pad(x, pad, mode, value.value_or(0.0));
      },
      "input"_a, "pad"_a, "mode"_a = "constant", "value"_a = nb::none(),
      "More elements at the ends of the last dims: 'constant', 'reflect', 'replicate' or "
      "'circular'.");
}

}  // namespace

void bind_rearranging(nb::module_& m, TensorClass& c) {
  bind_strided(m, c);
  bind_turns(m, c);
  bind_joining(m, c);
  bind_padding(m);
}

}  // namespace kiln::python
