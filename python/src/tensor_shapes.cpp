// Shapes: views and rearrangements, joining and splitting.
#include "integer_arg.h"
#include "kiln/tensor/shape/joining.h"
#include "kiln/tensor/shape/rearranging.h"
#include "kiln/tensor/shape/view_in_place.h"
#include "kiln/tensor/shape/views.h"

namespace kiln::python {

namespace {

// x.permute(2, 0, 1) or x.permute((2, 0, 1)); as a function only the second.
template <class F>
void def_sizes(nb::module_* m, TensorClass& c, const char* name, F f, const char* argument,
               const char* doc, const char* method_signature) {
  const std::string op = name;
  c.def(
      name,
      [f, op](const Tensor& x, const nb::args& args) {
        const Shape sizes = shape_of_args(op.c_str(), args);
        Unlocked lock(x);
        return Tensor(f(x, sizes));
      },
      doc, nb::sig(method_signature));
  if (m == nullptr) return;
  m->def(
      name,
      [f](const Tensor& x, const Shape& sizes) {
        Unlocked lock(x);
        return Tensor(f(x, sizes));
      },
      "input"_a, nb::arg(argument), doc);
}

void bind_views_in_place(TensorClass& c) {
  for (const char* name : {"transpose_", "swapaxes_", "swapdims_"}) {
    c.def(
        name, [](Tensor& x, int64_t a, int64_t b) { return transpose_(x, a, b); }, "dim0"_a,
        "dim1"_a, "Becomes a view of itself with two dims exchanged.");
  }
  c.def(
      "t_", [](Tensor& x) { return t_(x); }, "Becomes a view of itself: a matrix transposed.");
  c.def(
      "squeeze_",
      [](Tensor& x, const std::optional<IntList>& dim) {
        return dim ? squeeze_(x, dim->values) : squeeze_(x);
      },
      "dim"_a = nb::none(), "Becomes a view of itself without dims of size 1.");
  c.def(
      "unsqueeze_", [](Tensor& x, int64_t dim) { return unsqueeze_(x, dim); }, "dim"_a,
      "Becomes a view of itself with a new dim of size 1.");
  c.def(
      "detach_", [](Tensor& x) { return detach_(x); }, "Forgets how it was computed.");
}

void bind_views(nb::module_& m, TensorClass& c) {
  using T = const Tensor&;
  def_sizes(
      &m, c, "reshape", [](T x, const Shape& s) { return x.reshape(s); }, "shape",
      "The same values in another shape; one size may be -1.",
      "def reshape(self, *shape: int | collections.abc.Sequence[int]) -> Tensor");
  c.def(
      "view",
      [](T x, const nb::args& args) {
        DType dtype;
        if (args.size() == 1 && dtype_from(args[0].ptr(), &dtype)) {
          return view_as_dtype(x, dtype);
        }
        return x.view(shape_of_args("view", args));
      },
      "The same memory in another shape, or as elements of another dtype; an error where that "
      "takes a copy.",
      nb::sig("def view(self, *shape: typing.Any) -> Tensor"));
  def_sizes(
      &m, c, "permute", [](T x, const Shape& s) { return x.permute(s); }, "dims",
      "The dims in another order.",
      "def permute(self, *dims: int | collections.abc.Sequence[int]) -> Tensor");
  def_sizes(
      nullptr, c, "expand", [](T x, const Shape& s) { return x.expand(s); }, "size",
      "A view that repeats dims of size 1; -1 keeps a size.",
      "def expand(self, *size: int | collections.abc.Sequence[int]) -> Tensor");
  def_sizes(
      nullptr, c, "repeat", [](T x, const Shape& s) { return repeat(x, s); }, "repeats",
      "Copies of the tensor side by side.",
      "def repeat(self, *repeats: int | collections.abc.Sequence[int]) -> Tensor");
  def_sizes(
      &m, c, "tile", [](T x, const Shape& s) { return tile(x, s); }, "dims",
      "repeat() that fills up missing numbers with 1, as NumPy's tile.",
      "def tile(self, *dims: int | collections.abc.Sequence[int]) -> Tensor");
  def_sizes(
      &m, c, "flip", [](T x, const Shape& s) { return x.flip(s); }, "dims",
      "The order of these dims reversed.",
      "def flip(self, *dims: int | collections.abc.Sequence[int]) -> Tensor");
  def_both(
      m, c, "broadcast_to", [](T x, const Shape& s) { return x.expand(s); }, "size"_a);
  c.def(
      "view_as", [](T x, T other) { return x.view(other.shape()); }, "other"_a);
  c.def(
      "reshape_as", [](T x, T other) { return x.reshape(other.shape()); }, "other"_a);
  c.def(
      "expand_as", [](T x, T other) { return x.expand(other.shape()); }, "other"_a);
  for (const char* name : {"transpose", "swapaxes", "swapdims"}) {
    def_both(
        m, c, name, [](T x, int64_t a, int64_t b) { return x.transpose(a, b); }, "dim0"_a, "dim1"_a,
        "Two dims exchanged.");
  }
  for (const char* name : {"movedim", "moveaxis"}) {
    def_both(
        m, c, name,
        [](T x, const IntList& source, const IntList& destination) {
          return movedim(x, source.values, destination.values);
        },
        "source"_a, "destination"_a, "Dims moved to other positions.");
  }
  def_both(
      m, c, "t", [](T x) { return x.t(); }, "A matrix transposed.");
  def_both(
      m, c, "squeeze",
      [](T x, const std::optional<IntList>& dim) {
        if (!dim) return x.squeeze();
        return dim->is_number ? x.squeeze(dim->values[0]) : squeeze(x, dim->values);
      },
      "dim"_a = nb::none(), "Without dims of size 1.");
  def_both(
      m, c, "unsqueeze", [](T x, int64_t dim) { return x.unsqueeze(dim); }, "dim"_a,
      "With a new dim of size 1.");
  def_both(
      m, c, "flatten",
      [](T x, int64_t start, int64_t end) {
        Unlocked lock(x);
        return x.flatten(start, end);
      },
      "start_dim"_a = 0, "end_dim"_a = -1, "The dims from start to end as one.");
  def_both(
      m, c, "unflatten",
      [](T x, int64_t dim, const IntList& sizes) { return unflatten(x, dim, sizes.values); },
      "dim"_a, "sizes"_a, "One dim as several.");
  def_both(
      m, c, "ravel", [](T x) { return x.reshape({-1}); }, "As one dim.");
  const auto matrix_transpose = [](T x) {
    if (x.dim() == 0) return x;
    if (x.dim() < 2) {
      throw_error<ShapeError>("mT: expected at least 2 dims; got ", x.shape());
    }
    return x.transpose(-2, -1);
  };
  c.def_prop_ro(
      "T",
      [](T x) {
        Dims order;
        for (int i = x.dim() - 1; i >= 0; --i) order.push_back(i);
        return x.permute(order);
      },
      "The dims in reverse order.");
  c.def_prop_ro("mT", matrix_transpose, "The last two dims exchanged.");
}

void bind_parts(nb::module_& m, TensorClass& c) {
  using T = const Tensor&;
  def_both(
      m, c, "select", [](T x, int64_t dim, int64_t i) { return x.select(dim, i); }, "dim"_a,
      "index"_a);
  def_both(
      m, c, "narrow",
      [](T x, int64_t dim, const Operand& start, int64_t length) {
        return x.narrow(dim, integer_arg("narrow", start), length);
      },
      "dim"_a, "start"_a, "length"_a);
  def_both(
      m, c, "split",
      [](T x, const IntList& s, int64_t d) {
        return tuple_of(s.is_number ? x.split(s.values[0], d) : kiln::split(x, s.values, d));
      },
      "split_size_or_sections"_a, "dim"_a = 0);
  c.def(
      "split_with_sizes",
      [](T x, const Shape& s, int64_t d) { return tuple_of(kiln::split(x, s, d)); },
      "split_sizes"_a, "dim"_a = 0);
  def_both(
      m, c, "chunk",
      [](T x, int64_t chunks, int64_t dim) { return tuple_of(x.chunk(chunks, dim)); }, "chunks"_a,
      "dim"_a = 0);
  def_both(
      m, c, "unbind", [](T x, int64_t dim) { return tuple_of(x.unbind(dim)); }, "dim"_a = 0);
  const auto cat = [](const std::vector<Tensor>& tensors, int64_t dim) {
    Unlocked lock;
    return kiln::cat(std::span<const Tensor>(tensors), dim);
  };
  for (const char* name : {"cat", "concat", "concatenate"}) {
    m.def(name, cat, "tensors"_a, "dim"_a = 0, "The tensors one after another along dim.");
  }
  m.def(
      "stack",
      [](const std::vector<Tensor>& tensors, int64_t dim) {
        Unlocked lock;
        return kiln::stack(std::span<const Tensor>(tensors), dim);
      },
      "tensors"_a, "dim"_a = 0, "The tensors side by side along a new dim.");
  m.def(
      "broadcast_tensors",
      [](const nb::args& args) {
        std::vector<Tensor> tensors;
        for (nb::handle arg : args) tensors.push_back(tensor_arg("broadcast_tensors", arg));
        return tuple_of(broadcast_tensors(tensors));
      },
      "Views of one shape.");
}

}  // namespace

void bind_shapes(nb::module_& m, TensorClass& c) {
  bind_views(m, c);
  bind_views_in_place(c);
  bind_parts(m, c);
}

}  // namespace kiln::python
