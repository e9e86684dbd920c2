// Reductions, running results and sorting as ONNX operators.
#include <cmath>

#include "kiln/onnx/write/writer.h"

namespace kiln::onnx {

namespace {

// No dims: nothing is reduced.
std::string reduced(Writer& w, const char* op, const std::string& x, const Dims& dims,
                    bool keepdim) {
  if (dims.empty()) return w.add("Identity", {x});
  return w.add(op, {x, w.ints(dims.to_vector())}, {{"keepdims", int64_t{keepdim}}});
}

enum class Reduction { sum, mean, prod, amax, amin, logsumexp };
constexpr const char* kOps[] = {"ReduceSum", "ReduceMean", "ReduceProd",
                                "ReduceMax", "ReduceMin",  "ReduceLogSumExp"};
template <Reduction kind>
void reduce(Writer& w, const Node& n) {
  w.out(n, reduced(w, kOps[static_cast<int>(kind)], w.in(n, 0), w.get<Shape>(n, 1),
                   w.get<bool>(n, 2)));
}

void var(Writer& w, const Node& n) {
  const Dims& dims = w.get<Shape>(n, 1);
  double count = 1.0;
  for (const int64_t d : dims) count *= static_cast<double>(w.shape(n, 0)[static_cast<int>(d)]);
  const std::string x = w.in(n, 0);
  const std::string d = w.add("Sub", {x, reduced(w, "ReduceMean", x, dims, true)});
  const std::string sum = reduced(w, "ReduceSum", w.add("Mul", {d, d}), dims, w.get<bool>(n, 3));
  const double by = std::fmax(0.0, count - w.get<double>(n, 2));
  w.out(n, w.add("Div", {sum, w.number(by, w.dtype(n, 0))}));
}

void norm(Writer& w, const Node& n) {
  const double p = w.get<double>(n, 1);
  const Dims& dims = w.get<Shape>(n, 2);
  const bool keepdim = w.get<bool>(n, 3);
  const std::string x = w.in(n, 0);
  if (!dims.empty() && (p == 1.0 || p == 2.0)) {
    return w.out(n, reduced(w, p == 1.0 ? "ReduceL1" : "ReduceL2", x, dims, keepdim));
  }
  const std::string size = w.add("Abs", {x});
  if (std::isinf(p)) {
    return w.out(n, reduced(w, p > 0 ? "ReduceMax" : "ReduceMin", size, dims, keepdim));
  }
  if (p == 0.0) w.refuse(n, "no ONNX operators stand for the norm of order 0");
  const std::string sum =
      reduced(w, "ReduceSum", w.add("Pow", {size, w.number(p, w.dtype(n, 0))}), dims, keepdim);
  w.out(n, w.add("Pow", {sum, w.number(1.0 / p, w.dtype(n, 0))}));
}

template <bool kMax>
void place(Writer& w, const Node& n) {
  w.out(n, w.add(kMax ? "ArgMax" : "ArgMin", {w.in(n, 0)},
                 {{"axis", int64_t{w.get<int>(n, 1)}}, {"keepdims", int64_t{w.get<bool>(n, 2)}}}));
}
void cumsum(Writer& w, const Node& n) {
  w.out(n, w.add("CumSum", {w.in(n, 0), w.scalar(Scalar(w.get<int>(n, 1)), DType::i64)}));
}
void sort(Writer& w, const Node& n) {
  const int dim = w.get<int>(n, 1);
  const auto both =
      w.add_many("TopK", {w.in(n, 0), w.ints({w.shape(n, 0)[dim]})},
                 {{"axis", int64_t{dim}}, {"largest", int64_t{w.get<bool>(n, 2)}}}, 2);
  w.out(n, both[0], 0);
  w.out(n, both[1], 1);
}
void argtopk(Writer& w, const Node& n) {
  const auto both =
      w.add_many("TopK", {w.in(n, 0), w.ints({w.get<int64_t>(n, 1)})},
                 {{"axis", int64_t{w.get<int>(n, 2)}}, {"largest", int64_t{w.get<bool>(n, 3)}}}, 2);
  w.out(n, both[1]);
}
template <bool kAny>
void test(Writer& w, const Node& n) {
  const std::string x = w.add("Cast", {w.in(n, 0)}, {{"to", int64_t{6}}});
  const std::string y =
      reduced(w, kAny ? "ReduceMax" : "ReduceMin", x, w.get<Shape>(n, 1), w.get<bool>(n, 2));
  w.out(n, w.add("Cast", {y}, {{"to", int64_t{9}}}));
}
// A sum in 64 bits.
void count(Writer& w, const Node& n) {
  const std::string x = w.add("Cast", {w.in(n, 0)}, {{"to", int64_t{7}}});
  w.out(n, reduced(w, "ReduceSum", x, w.get<Shape>(n, 1), w.get<bool>(n, 2)));
}

constexpr Translation kReductionsRows[] = {
    {graph::kRow_float_sum, reduce<Reduction::sum>},
    {graph::kRow_float_mean, reduce<Reduction::mean>},
    {graph::kRow_float_prod, reduce<Reduction::prod>},
    {graph::kRow_float_amax, reduce<Reduction::amax>},
    {graph::kRow_float_amin, reduce<Reduction::amin>},
    {graph::kRow_float_logsumexp, reduce<Reduction::logsumexp>},
    {graph::kRow_float_var, var},
    {graph::kRow_float_norm, norm},
    {graph::kRow_float_argmax, place<true>},
    {graph::kRow_float_argmin, place<false>},
    {graph::kRow_float_cumsum, cumsum},
    {graph::kRow_float_sort, sort},
    {graph::kRow_float_argtopk, argtopk},
    {graph::kRow_int_sum, count},
    {graph::kRow_int_prod, reduce<Reduction::prod>},
    {graph::kRow_int_amax, reduce<Reduction::amax>},
    {graph::kRow_int_amin, reduce<Reduction::amin>},
    {graph::kRow_int_argmax, place<true>},
    {graph::kRow_int_argmin, place<false>},
    {graph::kRow_int_cumsum, cumsum},
    {graph::kRow_int_argtopk, argtopk},
    {graph::kRow_bool_any, test<true>},
    {graph::kRow_bool_all, test<false>},
    {graph::kRow_bool_count, count},
};

}  // namespace

std::span<const Translation> reduction_translations() { return kReductionsRows; }

}  // namespace kiln::onnx
