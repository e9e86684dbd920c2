// Rows that make, move, cut and index as ONNX operators.
#include <algorithm>
#include <limits>

#include "kiln/onnx/write/writer.h"

namespace kiln::onnx {

namespace {

using Names = Writer::Names;

void reshape(Writer& w, const Node& n) { w.out(n, w.reshaped(w.in(n, 0), w.get<Shape>(n, 1))); }
void permute(Writer& w, const Node& n) { w.out(n, w.permuted(w.in(n, 0), w.get<Shape>(n, 1))); }
void expand(Writer& w, const Node& n) {
  w.out(n, w.add("Expand", {w.in(n, 0), w.ints(w.get<Shape>(n, 1).to_vector())}));
}
void slice(Writer& w, const Node& n) {
  const Range& r = w.get<Range>(n, 2);
  w.out(n, w.sliced(w.in(n, 0), w.get<int>(n, 1), r.start, r.end, r.step));
}
void flip(Writer& w, const Node& n) {
  const Dims& dims = w.get<Shape>(n, 1);
  const std::vector<int64_t> start(dims.size(), -1), step(dims.size(), -1);
  const std::vector<int64_t> end(dims.size(), std::numeric_limits<int64_t>::min());
  w.out(n, w.add("Slice",
                 {w.in(n, 0), w.ints(start), w.ints(end), w.ints(dims.to_vector()), w.ints(step)}));
}
void same(Writer& w, const Node& n) { w.out(n, w.in(n, 0)); }

// What is made of numbers alone is computed once: a constant.
std::string filled(Writer& w, const Shape& shape, const std::string& value) {
  return w.add("Expand", {value, w.ints(shape.to_vector())});
}
void full(Writer& w, const Node& n) {
  w.out(n, filled(w, w.get<Shape>(n, 0), w.scalar(w.get<Scalar>(n, 1), w.get<DType>(n, 2))));
}
void bool_full(Writer& w, const Node& n) {
  w.out(n, filled(w, w.get<Shape>(n, 0), w.scalar(Scalar(w.get<bool>(n, 1)), DType::boolean)));
}
void empty(Writer& w, const Node& n) {  // it is written before it is read
  w.out(n, filled(w, w.get<Shape>(n, 0), w.number(0.0, w.result(n).dtype)));
}
void float_arange(Writer& w, const Node& n) {
  w.out(n, w.counted(w.get<double>(n, 0), w.get<double>(n, 1), w.get<int64_t>(n, 2),
                     w.get<DType>(n, 3)));
}
void int_arange(Writer& w, const Node& n) {
  const int64_t start = w.get<int64_t>(n, 0), step = w.get<int64_t>(n, 1);
  const int64_t count = w.get<int64_t>(n, 2);
  if (w.has_free_sizes()) {
    return w.out(n, w.counted(static_cast<double>(start), static_cast<double>(step), count,
                              w.get<DType>(n, 3)));
  }
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(start + i * step);
  w.out(n, w.constant(TensorData(values, {count}).cast(w.get<DType>(n, 3))));
}

void assign(Writer& w, const Node& n) {
  std::string y = w.in(n, 1);
  if (!(w.shape(n, 0) == w.shape(n, 1))) {
    y = w.add("Expand", {y, w.ints(w.shape(n, 0).to_vector())});
  }
  w.write(n, n.arguments[0].operands[0].value, y);
}
void fill(Writer& w, const Node& n) {
  w.write(n, n.arguments[0].operands[0].value,
          filled(w, w.shape(n, 0), w.scalar(w.get<Scalar>(n, 1), w.dtype(n, 0))));
}

int64_t axis(Writer& w, const Node& n, size_t argument = 1) { return w.get<int>(n, argument); }

void gather(Writer& w, const Node& n) {
  w.out(n, w.add("GatherElements", {w.in(n, 0), w.in(n, 2)}, {{"axis", axis(w, n)}}));
}
void index_select(Writer& w, const Node& n) {
  w.out(n, w.add("Gather", {w.in(n, 0), w.in(n, 2)}, {{"axis", axis(w, n)}}));
}
std::string scattered(Writer& w, const Node& n, const std::string& index, const char* reduction) {
  return w.add("ScatterElements", {w.in(n, 0), index, w.in(n, 3)},
               {{"axis", axis(w, n)}, {"reduction", std::string(reduction)}});
}
void scatter(Writer& w, const Node& n) { w.out(n, scattered(w, n, w.in(n, 2), "none")); }
void scatter_add(Writer& w, const Node& n) { w.out(n, scattered(w, n, w.in(n, 2), "add")); }
void scatter_reduce(Writer& w, const Node& n) {
  const char* const names[] = {"mul", "max", "min"};
  const auto which = static_cast<size_t>(w.get<ScatterReduction>(n, 4));
  w.out(n, scattered(w, n, w.in(n, 2), names[which]));
}
// An index of one dim, in the shape of the rows that it names.
std::string spread_index(Writer& w, const Node& n) {
  const Shape& rows = w.shape(n, 3);
  Shape column = Shape::filled(rows.rank(), 1);
  column[w.get<int>(n, 1)] = w.shape(n, 2)[0];
  return w.add("Expand", {w.reshaped(w.in(n, 2), column), w.ints(rows.to_vector())});
}
void index_add(Writer& w, const Node& n) { w.out(n, scattered(w, n, spread_index(w, n), "add")); }
void index_copy(Writer& w, const Node& n) { w.out(n, scattered(w, n, spread_index(w, n), "none")); }
void cat(Writer& w, const Node& n) {
  w.out(n, w.add("Concat", w.list(n, 0), {{"axis", axis(w, n)}}));
}
void mask_where(Writer& w, const Node& n) {
  w.out(n, w.add("Where", {w.in(n, 1), w.in(n, 2), w.in(n, 0)}));
}
void mask_fill(Writer& w, const Node& n) {
  const std::string value = w.scalar(w.get<Scalar>(n, 2), w.dtype(n, 0));
  w.out(n, w.add("Where", {w.in(n, 1), value, w.in(n, 0)}));
}
void pad_edges(Writer& w, const Node& n) {
  std::vector<int64_t> pads = w.get<Shape>(n, 1).to_vector();
  for (const int64_t d : w.get<Shape>(n, 2)) pads.push_back(d);
  const char* const modes[] = {"reflect", "edge", "wrap"};
  const auto mode = static_cast<size_t>(w.get<EdgeMode>(n, 3));
  w.out(n, w.add("Pad", {w.in(n, 0), w.ints(pads)}, {{"mode", std::string(modes[mode])}}));
}

void pad(Writer& w, const Node& n) {
  std::vector<int64_t> pads = w.get<Shape>(n, 1).to_vector();
  for (const int64_t d : w.get<Shape>(n, 2)) pads.push_back(d);
  const std::string value = w.scalar(w.get<Scalar>(n, 3), w.dtype(n, 0));
  w.out(n, w.add("Pad", {w.in(n, 0), w.ints(pads), value}));
}

// Each dim by itself: elements picked, or a product with the matrix of its map.
void resample(Writer& w, const Node& n) {
  std::string x = w.in(n, 0);
  const int rank = w.shape(n, 0).rank();
  for (const DimMap& m : *w.get<DimMaps>(n, 1)) {
    if (m.map.picks()) {
      const TensorData index(m.map.index, {m.map.out});
      x = w.add("Gather", {x, w.constant(index)}, {{"axis", int64_t{m.dim}}});
      continue;
    }
    std::vector<double> matrix(static_cast<size_t>(m.map.in * m.map.out), 0.0);
    for (int64_t o = 0; o < m.map.out; ++o) {
      const auto end = static_cast<size_t>(m.map.first[static_cast<size_t>(o) + 1]);
      for (auto t = static_cast<size_t>(m.map.first[static_cast<size_t>(o)]); t < end; ++t) {
        matrix[static_cast<size_t>(m.map.index[t] * m.map.out + o)] += m.map.weight[t];
      }
    }
    const std::string by =
        w.constant(TensorData(matrix, {m.map.in, m.map.out}).cast(w.dtype(n, 0)));
    Dims last;  // brings the dim to the end, which is its own inverse
    for (int d = 0; d < rank; ++d) last.push_back(d);
    std::swap(last[m.dim], last[rank - 1]);
    const bool moves = m.dim != rank - 1;
    x = w.add("MatMul", {moves ? w.permuted(x, last) : x, by});
    if (moves) x = w.permuted(x, last);
  }
  w.out(n, x);
}

constexpr Translation kShapesRows[] = {{graph::kRow_float_full, full},
                                       {graph::kRow_int_full, full},
                                       {graph::kRow_bool_full, bool_full},
                                       {graph::kRow_float_empty, empty},
                                       {graph::kRow_int_empty, empty},
                                       {graph::kRow_bool_empty, empty},
                                       {graph::kRow_float_arange, float_arange},
                                       {graph::kRow_int_arange, int_arange},
                                       {graph::kRow_float_scatter_add, scatter_add},
                                       {graph::kRow_int_scatter_add, scatter_add},
                                       {graph::kRow_float_scatter_reduce, scatter_reduce},
                                       {graph::kRow_int_scatter_reduce, scatter_reduce},
                                       {graph::kRow_float_index_add, index_add},
                                       {graph::kRow_int_index_add, index_add},
                                       {graph::kRow_float_resample, resample},
#define KILN_SHAPES(kind)                                                                         \
  {graph::kRow_##kind##_reshape, reshape}, {graph::kRow_##kind##_permute, permute},               \
      {graph::kRow_##kind##_expand, expand}, {graph::kRow_##kind##_slice, slice},                 \
      {graph::kRow_##kind##_flip, flip}, {graph::kRow_##kind##_contiguous, same},                 \
      {graph::kRow_##kind##_to_device, same}, {graph::kRow_##kind##_assign, assign},              \
      {graph::kRow_##kind##_fill, fill}, {graph::kRow_##kind##_gather, gather},                   \
      {graph::kRow_##kind##_scatter, scatter}, {graph::kRow_##kind##_index_select, index_select}, \
      {graph::kRow_##kind##_index_copy, index_copy}, {graph::kRow_##kind##_cat, cat},             \
      {graph::kRow_##kind##_mask_where, mask_where}, {graph::kRow_##kind##_mask_fill, mask_fill}, \
      {graph::kRow_##kind##_pad_edges, pad_edges}, {graph::kRow_##kind##_pad, pad},
                                       // clang-format off
    KILN_SHAPES(float)
    KILN_SHAPES(int)
    KILN_SHAPES(bool)
// clang-format on
#undef KILN_SHAPES
};

}  // namespace

std::span<const Translation> shape_translations() { return kShapesRows; }

}  // namespace kiln::onnx
