// Reductions, running results and sorting.
#include <cmath>
#include <limits>

#include "kiln/onnx/read/call.h"

namespace kiln::onnx {

namespace {

enum class Kind { sum, mean, prod, max, min, l1, l2, sum_square, log_sum, log_sum_exp };

Tensor apply(Kind kind, const Tensor& x, const Dims& dims, bool keep) {
  switch (kind) {
    case Kind::sum:
      return x.sum(dims, keep);
    case Kind::mean:
      return x.mean(dims, keep);
    case Kind::prod: {
      Tensor y = x;
      for (const int64_t d : dims) y = y.prod(d, true);
      return keep ? y : kiln::squeeze(y, dims);
    }
    case Kind::max:
      return x.amax(dims, keep);
    case Kind::min:
      return x.amin(dims, keep);
    case Kind::l1:
      return x.abs().sum(dims, keep);
    case Kind::l2:
      return x.square().sum(dims, keep).sqrt();
    case Kind::sum_square:
      return x.square().sum(dims, keep);
    case Kind::log_sum:
      return x.sum(dims, keep).log();
    case Kind::log_sum_exp:
      return x.logsumexp(dims, keep);
  }
  return x;
}

// The extreme of no elements: what any element is at least or at most.
Tensor extreme_of_nothing(bool max, const Tensor& x, const Dims& dims, bool keep) {
  Tensor counted = x.to(DType::f32).sum(dims, keep);  // its shape
  const double infinity = std::numeric_limits<double>::infinity();
  if (x.dtype() == DType::boolean) return full_like(counted, max ? 0 : 1).to(DType::boolean);
  return full_like(counted, max ? -infinity : infinity).to(x.dtype());
}

template <Kind kind>
void reduce(Call& c) {
  const Tensor x = c.in(0);
  const auto axes = c.ints_or_input("axes", 1);
  Dims dims;
  if (axes && !axes->empty()) {
    for (const int64_t a : *axes) dims.push_back(c.axis(a, x.dim()));
  } else if (c.i("noop_with_empty_axes", 0) == 0) {
    for (int64_t d = 0; d < x.dim(); ++d) dims.push_back(d);
  }
  const bool keep = c.i("keepdims", 1) != 0;
  const bool is_bool = x.dtype() == DType::boolean;
  constexpr bool kExtreme = kind == Kind::max || kind == Kind::min;
  if (kExtreme && x.numel() == 0 && (is_bool || x.is_floating_point())) {
    c.out(extreme_of_nothing(kind == Kind::max, x, dims, keep));
    return;
  }
  const Tensor given = is_bool ? x.to(DType::i32) : x;
  c.out(
      (dims.empty() ? apply(kind, given.unsqueeze(0), {0}, false) : apply(kind, given, dims, keep))
          .to(x.dtype()));
}

template <bool kMax>
void place(Call& c) {
  const Tensor x = c.in(0);
  const int64_t axis = c.axis_of("axis", 0, x.dim());
  const bool keep = c.i("keepdims", 1) != 0, last = c.i("select_last_index", 0) != 0;
  const Tensor from = last ? x.flip({axis}) : x;
  const Tensor at = kMax ? from.argmax(axis, keep) : from.argmin(axis, keep);
  c.out(last ? at.neg().add(x.size(axis) - 1) : at);
}

template <bool kProduct>
void running(Call& c) {
  Tensor x = c.in(0);
  const int64_t axis = c.axis(static_cast<int64_t>(c.number(1)), x.dim());
  const bool reverse = c.i("reverse", 0) != 0;
  if (reverse) x = x.flip({axis});
  Tensor y = (kProduct ? cumprod(x, axis) : x.cumsum(axis)).to(x.dtype());
  if (c.i("exclusive", 0) != 0) {
    const Tensor first =
        full_like(x.narrow(axis, 0, std::min<int64_t>(1, x.size(axis))), kProduct ? 1 : 0);
    y = cat({first, y.narrow(axis, 0, std::max<int64_t>(0, x.size(axis) - 1))}, axis);
  }
  c.out(reverse ? y.flip({axis}) : y);
}

void top_k(Call& c) {
  const Tensor x = c.in(0);
  const int64_t axis = c.axis_of("axis", -1, x.dim());
  const int64_t k = c.version() < 10 ? c.i("k", 0) : static_cast<int64_t>(c.number(1));
  const bool largest = c.i("largest", 1) != 0;
  if (k < 0 || k > x.size(axis)) c.fail(concat("k is ", k));
  const auto [values, at] = x.sort(axis, largest);  // equal ones keep their order
  c.out(values.narrow(axis, 0, k), 0);
  c.out(at.narrow(axis, 0, k), 1);
}

constexpr Operator kReductionsOperators[] = {
    {"ReduceSum", reduce<Kind::sum>},
    {"ReduceMean", reduce<Kind::mean>},
    {"ReduceProd", reduce<Kind::prod>},
    {"ReduceMax", reduce<Kind::max>},
    {"ReduceMin", reduce<Kind::min>},
    {"ReduceL1", reduce<Kind::l1>},
    {"ReduceL2", reduce<Kind::l2>},
    {"ReduceSumSquare", reduce<Kind::sum_square>},
    {"ReduceLogSum", reduce<Kind::log_sum>},
    {"ReduceLogSumExp", reduce<Kind::log_sum_exp>},
    {"ArgMax", place<true>},
    {"ArgMin", place<false>},
    {"CumSum", running<false>},
    {"CumProd", running<true>},
    {"TopK", top_k},
};

}  // namespace

std::span<const Operator> reduction_operators() { return kReductionsOperators; }

}  // namespace kiln::onnx
