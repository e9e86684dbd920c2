// Operators that make, move, cut and index.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/onnx/read/call.h"

namespace kiln::onnx {

namespace {

Shape shape_from(Call& c, const std::vector<int64_t>& sizes) {
  if (sizes.size() > static_cast<size_t>(kMaxRank)) {
    c.refuse(concat("a tensor of ", sizes.size(), " dims; expected at most ", kMaxRank));
  }
  for (const int64_t d : sizes) {
    if (d < 0) c.fail(concat("got the size ", d));
  }
  return Shape(sizes);
}
Tensor of_integers(const std::vector<int64_t>& values) {
  return Tensor(TensorData(values, {static_cast<int64_t>(values.size())}));
}

void constant(Call& c) {
  if (const auto* a = c.attribute("value"); a != nullptr && a->t.size() == 1) {
    return c.out(tensor_of(a->t[0]));
  }
  if (c.has("value_float")) return c.out(tensor(c.f("value_float", 0), {.dtype = DType::f32}));
  if (c.has("value_int")) return c.out(tensor(c.i("value_int", 0)));
  if (const auto* a = c.attribute("value_floats")) {
    return c.out(Tensor(TensorData(a->floats, {static_cast<int64_t>(a->floats.size())})));
  }
  if (c.has("value_ints")) return c.out(of_integers(c.ints("value_ints")));
  c.refuse("a constant that is neither a dense tensor nor numbers");
}
void constant_of_shape(Call& c) {
  const Shape shape = shape_from(c, c.integers(0));
  const auto* a = c.attribute("value");
  const Tensor value =
      a != nullptr && a->t.size() == 1 ? tensor_of(a->t[0]) : zeros({1}, {.dtype = DType::f32});
  if (value.numel() != 1) c.fail("expected a value of one element");
  c.out(value.reshape({}).expand(shape).contiguous());
}
void shape(Call& c) {
  const auto sizes = c.in(0).shape().to_vector();
  const auto rank = static_cast<int64_t>(sizes.size());
  const auto place = [&](int64_t v) { return std::clamp(v < 0 ? v + rank : v, int64_t{0}, rank); };
  const int64_t start = place(c.i("start", 0)), end = place(c.i("end", rank));
  std::vector<int64_t> out;
  for (int64_t d = start; d < end; ++d) out.push_back(sizes[static_cast<size_t>(d)]);
  c.out(of_integers(out));
}
void size(Call& c) { c.out(tensor(c.in(0).numel())); }
void range(Call& c) {
  const double start = c.number(0), limit = c.number(1), step = c.number(2);
  if (step == 0.0) c.fail("expected a step that is not 0");
  const double count = std::max(0.0, std::ceil((limit - start) / step));
  if (count > 1e9) c.fail("a range of more than a billion elements");
  std::vector<double> values;
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
    values.push_back(start + static_cast<double>(i) * step);
  }
  const auto n = static_cast<int64_t>(values.size());
  c.out(Tensor(TensorData(values, {n}).cast(c.in(0).dtype())));
}

void reshape(Call& c) {
  std::vector<int64_t> to = c.integers(1);
  const Tensor x = c.in(0);
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d] != 0 || c.i("allowzero", 0) != 0) continue;
    if (static_cast<int64_t>(d) >= x.dim()) c.fail("a 0 copies a dim that the input lacks");
    to[d] = x.size(static_cast<int64_t>(d));
  }
  if (to.size() > static_cast<size_t>(kMaxRank)) c.refuse("more dims than Kiln has");
  c.out(x.reshape(Shape(to)));
}
void flatten(Call& c) {
  const Tensor x = c.in(0);
  int64_t axis = c.i("axis", 1);
  if (axis < 0) axis += x.dim();
  if (axis < 0 || axis > x.dim()) c.fail(concat("axis ", axis));
  int64_t rows = 1;
  for (int64_t d = 0; d < axis; ++d) rows *= x.size(d);
  int64_t cols = 1;
  for (int64_t d = axis; d < x.dim(); ++d) cols *= x.size(d);
  c.out(x.reshape({rows, cols}));
}
void transpose(Call& c) {
  std::vector<int64_t> perm = c.ints("perm");
  if (perm.empty()) {
    for (int64_t d = c.in(0).dim() - 1; d >= 0; --d) perm.push_back(d);
  }
  c.out(c.in(0).permute(Dims(perm)));
}
void squeeze(Call& c) {
  const Tensor x = c.in(0);
  const auto axes = c.ints_or_input("axes", 1);
  if (!axes) return c.out(x.squeeze());
  Shape out;
  std::vector<char> gone(static_cast<size_t>(x.dim()), 0);
  for (const int64_t a : *axes) {
    const int64_t d = c.axis(a, x.dim());
    if (x.size(d) != 1) c.fail(concat("dim ", d, " has size ", x.size(d)));
    gone[static_cast<size_t>(d)] = 1;
  }
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (gone[static_cast<size_t>(d)] == 0) out.push_back(x.size(d));
  }
  c.out(x.reshape(out));
}
void unsqueeze(Call& c) {
  const auto axes = c.ints_or_input("axes", 1);
  if (!axes) c.fail("expected axes");
  const int64_t rank = c.in(0).dim() + static_cast<int64_t>(axes->size());
  if (rank > kMaxRank) c.refuse("more dims than Kiln has");
  Shape out = Shape::filled(static_cast<int>(rank), -1);
  for (const int64_t a : *axes) out[static_cast<int>(c.axis(a, rank))] = 1;
  int64_t next = 0;
  for (int64_t& d : out) {
    if (d == 1) continue;
    if (next == c.in(0).dim()) c.fail("axes that are there twice");
    d = c.in(0).size(next++);
  }
  c.out(c.in(0).reshape(out));
}
void expand(Call& c) {
  const Shape to = shape_from(c, c.integers(1));
  c.out(c.in(0).expand(broadcast_shapes("Expand", c.in(0).shape(), to)));
}
void tile(Call& c) { c.out(kiln::tile(c.in(0), shape_from(c, c.integers(1)))); }
void concat_all(Call& c) {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < c.inputs(); ++i) parts.push_back(c.in(i));
  c.out(cat(parts, c.axis_of("axis", 0, c.in(0).dim())));
}
void split(Call& c) {
  const Tensor x = c.in(0);
  const int64_t axis = c.axis_of("axis", 0, x.dim()), n = x.size(axis);
  const auto count = static_cast<int64_t>(c.outputs());
  std::vector<int64_t> sizes;
  if (const auto given = c.ints_or_input("split", 1)) {
    sizes = *given;
  } else {
    const int64_t each = (n + count - 1) / count;
    for (int64_t i = 0; i < count; ++i) {
      sizes.push_back(std::max<int64_t>(0, std::min(each, n - i * each)));
    }
  }
  if (static_cast<int64_t>(sizes.size()) != count) c.fail("expected a size for each output");
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || sizes[i] > n - begin) c.fail("sizes that are larger than the dim");
    c.out(x.narrow(axis, begin, sizes[i]), i);
    begin += sizes[i];
  }
}
void slice(Call& c) {
  Tensor x = c.in(0);
  const auto starts = c.version() < 10 ? c.ints("starts") : c.integers(1);
  const auto ends = c.version() < 10 ? c.ints("ends") : c.integers(2);
  auto axes = c.version() < 10 ? c.ints("axes") : c.has(3) ? c.integers(3) : std::vector<int64_t>{};
  auto steps = c.has(4) ? c.integers(4) : std::vector<int64_t>(starts.size(), 1);
  if (axes.empty()) {
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    c.fail("starts, ends, axes and steps of different lengths");
  }
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t dim = c.axis(axes[i], x.dim()), n = x.size(dim), step = steps[i];
    if (step == 0 || step == std::numeric_limits<int64_t>::min()) c.fail("a step of 0");
    const auto place = [&](int64_t v, int64_t low, int64_t high) {
      if (v < 0) v = v < -n ? -1 : v + n;
      return std::clamp(v, low, high);
    };
    if (step > 0) {
      const int64_t start = std::max<int64_t>(0, place(starts[i], 0, n));
      x = x.slice(dim, start, std::max(start, std::max<int64_t>(0, place(ends[i], 0, n))), step);
    } else {
      const int64_t start = place(starts[i], -1, n - 1), end = place(ends[i], -1, n - 1);
      if (start <= end) {
        x = x.narrow(dim, 0, 0);
      } else {
        x = x.narrow(dim, end + 1, start - end).flip({dim}).slice(dim, 0, {}, -step);
      }
    }
  }
  c.out(x);
}

// Negative indices count from the end.
Tensor from_the_start(const Tensor& index, int64_t n) {
  const Tensor i = index.to(DType::i64);
  return kiln::where(i.lt(0), i.add(n), i);
}
void gather(Call& c) {
  const Tensor x = c.in(0);
  const int64_t axis = c.axis_of("axis", 0, x.dim());
  const Tensor index = from_the_start(c.in(1), x.size(axis));
  const Tensor rows = x.index_select(axis, index.reshape({index.numel()}));
  Shape out;
  for (int64_t d = 0; d < axis; ++d) out.push_back(x.size(d));
  for (const int64_t d : index.shape()) out.push_back(d);
  for (int64_t d = axis + 1; d < x.dim(); ++d) out.push_back(x.size(d));
  c.out(rows.reshape(out));
}
void gather_elements(Call& c) {
  const int64_t axis = c.axis_of("axis", 0, c.in(0).dim());
  c.out(c.in(0).gather(axis, from_the_start(c.in(1), c.in(0).size(axis))));
}

// The rows that tuples of indices name, as places in x with its first dims made one.
Tensor rows_of(const Tensor& x, const Tensor& indices, int64_t k) {
  Tensor place = zeros({indices.numel() / std::max<int64_t>(1, k)}, {.dtype = DType::i64});
  const Tensor tuples = indices.reshape({-1, k});
  for (int64_t d = 0; d < k; ++d) {
    const Tensor at = from_the_start(tuples.select(1, d), x.size(d));
    place = place.mul(x.size(d)).add(at);
  }
  return place;
}
Tensor with_rows(const Tensor& x, int64_t k) {
  int64_t rows = 1;
  for (int64_t d = 0; d < k; ++d) rows *= x.size(d);
  return x.reshape({rows, x.numel() / std::max<int64_t>(1, rows)});
}
void gather_nd(Call& c) {
  const Tensor x = c.in(0), indices = c.in(1);
  if (indices.dim() < 1 || x.numel() == 0) c.fail("expected tuples of indices, and elements");
  const int64_t k = indices.size(-1), batch = c.i("batch_dims", 0);
  if (batch < 0 || batch >= indices.dim() || k < 1 || k > x.dim() - batch) {
    c.fail("tuples of as many indices as the input has dims, or fewer");
  }
  if (batch > 0) {  // the batches' dims as one, whose place goes before each tuple
    int64_t count = 1;
    Shape out, inner{0}, tuples{0};
    for (int64_t d = 0; d < batch; ++d) {
      if (indices.size(d) != x.size(d)) c.fail("batches of different sizes");
      count *= x.size(d);
      out.push_back(x.size(d));
    }
    inner[0] = tuples[0] = count;
    for (int64_t d = batch; d < x.dim(); ++d) inner.push_back(x.size(d));
    for (int64_t d = batch; d < indices.dim(); ++d) {
      tuples.push_back(indices.size(d));
      if (d + 1 < indices.dim()) out.push_back(indices.size(d));
    }
    for (int64_t d = batch + k; d < x.dim(); ++d) out.push_back(x.size(d));
    const Tensor those = indices.reshape(tuples).to(DType::i64);
    Shape first = tuples;
    first[first.rank() - 1] = 1;
    Shape along = Shape::filled(first.rank(), 1);
    along[0] = count;
    const Tensor place = arange(0, count).reshape(along).expand(first);
    const Tensor whole = cat({place, those}, -1), rows = x.reshape(inner);
    return c.out(with_rows(rows, k + 1).index_select(0, rows_of(rows, whole, k + 1)).reshape(out));
  }
  Shape out;
  for (int64_t d = 0; d + 1 < indices.dim(); ++d) out.push_back(indices.size(d));
  for (int64_t d = k; d < x.dim(); ++d) out.push_back(x.size(d));
  c.out(with_rows(x, k).index_select(0, rows_of(x, indices, k)).reshape(out));
}
const char* reduction_of(Call& c) {
  const std::string name = c.s("reduction", "none");
  if (name == "none") return "";
  if (name == "add") return "sum";
  if (name == "mul") return "prod";
  if (name == "max") return "amax";
  if (name == "min") return "amin";
  c.refuse("the reduction '" + name + "'");
}
void scatter_elements(Call& c) {
  const Tensor x = c.in(0);
  const int64_t axis = c.axis_of("axis", 0, x.dim());
  const Tensor index = from_the_start(c.in(1), x.size(axis));
  const std::string reduce = reduction_of(c);
  c.out(reduce.empty() ? x.scatter(axis, index, c.in(2))
                       : scatter_reduce(x, axis, index, c.in(2), reduce));
}
void scatter_nd(Call& c) {
  const Tensor x = c.in(0), indices = c.in(1), updates = c.in(2);
  if (indices.dim() < 1 || x.numel() == 0) c.fail("expected tuples of indices, and elements");
  const int64_t k = indices.size(-1);
  if (k < 1 || k > x.dim()) c.fail("tuples of as many indices as the input has dims, or fewer");
  const Tensor rows = with_rows(x, k), at = rows_of(x, indices, k);
  const Tensor values = updates.reshape({at.numel(), rows.size(1)});
  const Tensor spread = at.reshape({at.numel(), 1}).expand(values.shape());
  const std::string reduce = reduction_of(c);
  const Tensor out = reduce.empty() ? rows.scatter(0, spread, values)
                                    : scatter_reduce(rows, 0, spread, values, reduce);
  c.out(out.reshape(x.shape()));
}
void one_hot_of(Call& c) {
  const auto depth = static_cast<int64_t>(c.number(1));
  if (depth < 1 || depth > (int64_t{1} << 31)) c.fail(concat("depth ", depth));
  const Tensor index = from_the_start(c.in(0), depth);
  const int64_t axis = c.axis_of("axis", -1, index.dim() + 1);
  Shape classes = Shape::filled(static_cast<int>(index.dim()) + 1, 1);
  classes[static_cast<int>(axis)] = depth;
  const Tensor hot = index.unsqueeze(axis).eq(arange(0, depth).reshape(classes));
  const Tensor values = c.in(2);
  c.out(kiln::where(hot, values.select(0, 1), values.select(0, 0)));
}
void pad_of(Call& c) {
  const Tensor x = c.in(0);
  const auto pads = c.ints_or_input("pads", 1);
  if (!pads) c.fail("expected pads");
  std::vector<int64_t> axes;
  if (c.has(3)) {
    for (const int64_t a : c.integers(3)) axes.push_back(c.axis(a, x.dim()));
  } else {
    for (int64_t d = 0; d < x.dim(); ++d) axes.push_back(d);
  }
  if (pads->size() != 2 * axes.size()) c.fail("expected two pads for each axis");
  std::string mode = c.s("mode", "constant");
  Tensor y = x;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t before = (*pads)[i], after = (*pads)[i + axes.size()], n = y.size(axes[i]);
    if (before < -n || after < -n - before || before > (1 << 28) || after > (1 << 28)) {
      c.fail("pads that leave nothing or too much");
    }
    if (mode == "constant" || before < 0 || after < 0) continue;
    std::vector<int64_t> from;
    for (int64_t p = -before; p < n + after; ++p) {
      int64_t at = mode == "edge" ? std::clamp(p, int64_t{0}, n - 1) : p;
      if (mode == "wrap") at = n == 0 ? 0 : ((p % n) + n) % n;
      if (mode == "reflect" && n > 1) {
        const int64_t period = 2 * (n - 1);
        at = ((p % period) + period) % period;
        at = at < n ? at : period - at;
      } else if (mode == "reflect") {
        at = 0;
      }
      from.push_back(at);
    }
    y = y.index_select(axes[i], of_integers(from));
  }
  if (mode == "constant") {
    const double value = c.has(2) ? c.number(2) : c.f("value", 0.0);
    Shape list = Shape::filled(0, 0);
    Shape before = Shape::filled(static_cast<int>(x.dim()), 0), after = before;
    for (size_t i = 0; i < axes.size(); ++i) {
      before[static_cast<int>(axes[i])] = (*pads)[i];
      after[static_cast<int>(axes[i])] = (*pads)[i + axes.size()];
    }
    for (int d = static_cast<int>(x.dim()) - 1; d >= 0; --d) {
      if (list.rank() + 2 > kMaxRank) c.refuse("pads of more than six dims");
      list.push_back(before[d]);
      list.push_back(after[d]);
    }
    y = functional::pad(x, list, "constant", value);
  }
  c.out(y);
}
void trilu(Call& c) {
  const auto k = c.has(1) ? static_cast<int64_t>(c.number(1)) : 0;
  c.out(c.i("upper", 1) != 0 ? triu(c.in(0), k) : tril(c.in(0), k));
}
void eye_like(Call& c) {
  if (c.in(0).dim() != 2) c.fail("expected a matrix");
  const DType dtype = c.has("dtype") ? dtype_of_number(c.i("dtype", 1)) : c.in(0).dtype();
  const int64_t n = c.in(0).size(0), m = c.in(0).size(1), k = c.i("k", 0);
  const Tensor rows = arange(0, n).reshape({n, 1}), cols = arange(0, m).reshape({1, m});
  c.out(rows.add(k).eq(cols).to(dtype));
}
void depth_to_space(Call& c) {
  const Tensor x = c.in(0);
  const int64_t b = c.i("blocksize", 1);
  if (x.dim() != 4 || b < 1 || x.size(1) % (b * b) != 0) c.fail("expected [N, C b b, H, W]");
  const int64_t n = x.size(0), ch = x.size(1) / (b * b), h = x.size(2), w = x.size(3);
  const bool crd = c.s("mode", "DCR") == "CRD";
  const Tensor y = crd ? x.reshape({n, ch, b, b, h, w}).permute({0, 1, 4, 2, 5, 3})
                       : x.reshape({n, b, b, ch, h, w}).permute({0, 3, 4, 1, 5, 2});
  c.out(y.reshape({n, ch, h * b, w * b}));
}
void space_to_depth(Call& c) {
  const Tensor x = c.in(0);
  const int64_t b = c.i("blocksize", 1);
  if (x.dim() != 4 || b < 1 || x.size(2) % b != 0 || x.size(3) % b != 0) {
    c.fail("expected [N, C, H b, W b]");
  }
  const int64_t n = x.size(0), ch = x.size(1), h = x.size(2) / b, w = x.size(3) / b;
  if (c.s("mode", "DCR") == "CRD") {
    return c.out(
        x.reshape({n, ch, h, b, w, b}).permute({0, 1, 3, 5, 2, 4}).reshape({n, ch * b * b, h, w}));
  }
  c.out(x.reshape({n, ch, h, b, w, b}).permute({0, 3, 5, 1, 2, 4}).reshape({n, b * b * ch, h, w}));
}

constexpr Operator kShapesOperators[] = {
    {"Constant", constant},
    {"ConstantOfShape", constant_of_shape},
    {"Shape", shape},
    {"Size", size},
    {"Range", range},
    {"Reshape", reshape},
    {"Flatten", flatten},
    {"Transpose", transpose},
    {"Squeeze", squeeze},
    {"Unsqueeze", unsqueeze},
    {"Expand", expand},
    {"Tile", tile},
    {"Concat", concat_all},
    {"Split", split},
    {"Slice", slice},
    {"Gather", gather},
    {"GatherElements", gather_elements},
    {"GatherND", gather_nd},
    {"ScatterElements", scatter_elements},
    {"Scatter", scatter_elements},
    {"ScatterND", scatter_nd},
    {"OneHot", one_hot_of},
    {"Pad", pad_of},
    {"Trilu", trilu},
    {"EyeLike", eye_like},
    {"DepthToSpace", depth_to_space},
    {"SpaceToDepth", space_to_depth},
};

}  // namespace

std::span<const Operator> shape_operators() { return kShapesOperators; }

}  // namespace kiln::onnx
