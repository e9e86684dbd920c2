// Shapes: views and rearrangements, joining and splitting.
#include "binding.h"

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

Tensor repeat(const Tensor& x, const Shape& times) {
  const int extra = times.rank() - x.dim();
  if (extra < 0) {
    throw_error<ShapeError>("repeat: expected a number for each dim; got ", times.rank(),
                            " numbers for a tensor of ", x.shape());
  }
  Shape shape;
  Shape spread;
  Shape result;
  for (int i = 0; i < times.rank(); ++i) {
    const int64_t size = i < extra ? 1 : x.shape()[i - extra];
    shape.push_back(1);
    shape.push_back(size);
    spread.push_back(times[i]);
    spread.push_back(size);
    result.push_back(times[i] * size);
  }
  return x.reshape(shape).expand(spread).reshape(result);
}

Tensor movedim(const Tensor& x, const IntList& source, const IntList& destination) {
  const Dims from = normalize_dims("movedim", source.values, x.dim());
  const Dims to = normalize_dims("movedim", destination.values, x.dim());
  if (from.rank() != to.rank()) {
    throw_error<ValueError>("movedim: expected as many destinations as sources; got ", from,
                            " and ", to);
  }
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

std::vector<Tensor> split(const Tensor& x, const IntList& sizes, int64_t dim) {
  if (sizes.is_number) return x.split(sizes.values[0], dim);
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const int64_t size : sizes.values) {
    parts.push_back(x.narrow(dim, start, size));
    start += size;
  }
  if (start != x.size(dim)) {
    throw_error<ShapeError>("split: the sizes must add up to the dim's; got ", sizes.values,
                            " for ", x.size(dim));
  }
  return parts;
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
          throw_error<NotImplementedError>(
              "view: reading memory as another dtype is not supported; try to(dtype)");
        }
        return x.view(shape_of_args("view", args));
      },
      "The same memory in another shape; an error where that takes a copy.",
      nb::sig("def view(self, *shape: int | collections.abc.Sequence[int]) -> Tensor"));
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
      &m, c, "tile",
      [](T x, const Shape& s) {
        Shape times = s;
        while (times.rank() < x.dim()) times.insert(0, 1);
        return repeat(x, times);
      },
      "dims", "repeat() that fills up missing numbers with 1, as NumPy's tile.",
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
    def_both(m, c, name, &movedim, "source"_a, "destination"_a, "Dims moved to other positions.");
  }
  def_both(
      m, c, "t", [](T x) { return x.t(); }, "A matrix transposed.");
  def_both(
      m, c, "squeeze",
      [](T x, const std::optional<IntList>& dim) {
        if (!dim) return x.squeeze();
        Tensor out = x;
        Dims dims = normalize_dims("squeeze", dim->values, x.dim());
        std::sort(dims.begin(), dims.end(), std::greater<>());
        for (const int64_t d : dims) out = out.squeeze(d);
        return out;
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
      [](T x, int64_t dim, const Shape& sizes) {
        Shape shape = x.shape();
        const int d = normalize_dim("unflatten", dim, x.dim());
        shape.erase(d);
        for (int i = 0; i < sizes.rank(); ++i) shape.insert(d + i, sizes[i]);
        Shape resolved = shape;
        return x.reshape(resolved);
      },
      "dim"_a, "sizes"_a, "One dim as several.");
  def_both(
      m, c, "ravel", [](T x) { return x.reshape({-1}); }, "As one dim.");
  const auto matrix_transpose = [](T x) {
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
        return x.narrow(
            dim, start.is_tensor() ? start.tensor().item<int64_t>() : start.scalar().to_int(),
            length);
      },
      "dim"_a, "start"_a, "length"_a);
  def_both(
      m, c, "split", [](T x, const IntList& s, int64_t d) { return tuple_of(split(x, s, d)); },
      "split_size_or_sections"_a, "dim"_a = 0);
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
        Shape shape;
        for (nb::handle arg : args) {
          tensors.push_back(tensor_arg("broadcast_tensors", arg));
          shape = broadcast_shapes("broadcast_tensors", shape, tensors.back().shape());
        }
        for (Tensor& x : tensors) x = x.expand(shape);
        return tuple_of(tensors);
      },
      "Views of one shape.");
}

}  // namespace

void bind_shapes(nb::module_& m, TensorClass& c) {
  bind_views(m, c);
  bind_parts(m, c);
}

}  // namespace kiln::python
