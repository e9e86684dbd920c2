// The table of op cases: how each public op is called, on what, and what is known of it. One table
// drives every check of this folder, the comparison with PyTorch (tests/python/test_op_cases.py),
// the page docs/tensor-ops.md and the table of `bench ops`.
//
// A case file holds one family:
//
//   KILN_OP_CASES(activations) {
//     op("nn.functional.elu", "F.elu(a, 0.5)",
//        [](const Tensors& x) { return functional::elu(x[0], 0.5); }, {real({3, 4}).away_from(0)})
//         .dtypes(kFloats)
//         .big({real({1024, 1024})});
//   }
//
// The name is PyTorch's without "torch." ("cumprod", "linalg.solve", "Tensor.fill_"). The second
// string is the same call in Python over the inputs a, b, c, ..., where `torch` is PyTorch or Kiln
// and `F` its nn.functional; inf, nan and math are known. A call may give a tensor, a pair, a tuple
// or a vector of tensors. In-place ops work on a clone: "a.clone().fill_(2)".
//
// What happens to a case unless it says otherwise:
//   - it runs in every dtype of its list on the cpu and on the reference backend: equal within the
//     dtype's tolerance, and its inputs are left as they were;
//   - it runs on inputs in memory with gaps and swapped dims: equal;
//   - its gradients with respect to every real() input are compared in double precision with
//     finite differences, and so are the gradients of these (create_graph);
//   - `big` inputs give bit-identical results with 1 and with several threads; the bench uses them;
//   - values, result dtypes and gradients equal PyTorch's, from C++ and from the Python package.
#pragma once

#include <deque>
#include <functional>
#include <initializer_list>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kiln/kiln.h"

namespace kiln::ops {

using Tensors = std::vector<Tensor>;

// How one input is made. All values are fixed by the case's name, its place and the input's place.
struct Input {
  enum class Kind : uint8_t {
    real,      // follows the dtype that is tested; differentiated when that is floating
    constant,  // follows the dtype; never differentiated
    index,     // whole numbers in [low, high), i64
    mask,      // bools
    complex,   // complex numbers with parts in [low, high); the case's dtypes are complex
  };
  Kind kind = Kind::real;
  Shape shape;
  double low = -2.0;
  double high = 2.0;
  std::vector<double> kinks = {};   // values keep 0.05 away from these (and from their period)
  double period = 0.0;              // distance between repeated kinks; 0: not repeated
  std::vector<double> values = {};  // exact values instead of random ones
  std::function<Tensor(Tensor)> made = {};  // applied to the f64 values before the dtype's cast

  // Draws no value near `kink` (near kink + k * every, when given): there derivatives jump.
  Input& away_from(double kink, double every = 0.0) {
    kinks.push_back(kink);
    period = every;
    return *this;
  }
  // Makes a special input from the random f64 values: a symmetric matrix, a probability, ...
  Input& then(std::function<Tensor(Tensor)> f) {
    made = std::move(f);
    return *this;
  }
};

Input real(const Shape& shape, double low = -2.0, double high = 2.0);
Input constant(const Shape& shape, double low = -2.0, double high = 2.0);
// Exact values in the tested dtype, not differentiated: corner cases (nan, inf, ties).
Input values(std::vector<double> values, const Shape& shape);
Input values(std::vector<double> values);  // 1-d
Input index(const Shape& shape, int64_t low, int64_t high);
Input indices(std::vector<double> values, const Shape& shape);
Input mask(const Shape& shape);
Input complex_(const Shape& shape, double low = -2.0, double high = 2.0);

using DTypes = std::vector<DType>;
inline const DTypes kFloats = {f64, f32, f16, bf16};
inline const DTypes kDoubles = {f64, f32};
inline const DTypes kInts = {i64, i32, i16, i8, u8};
inline const DTypes kReals = {f64, f32, f16, bf16, i64, i32, i16, i8, u8};
inline const DTypes kAll = {f64, f32, f16, bf16, i64, i32, i16, i8, u8, bool_};
inline const DTypes kBool = {bool_};
inline const DTypes kIntsAndBool = {i64, i32, i16, i8, u8, bool_};
inline const DTypes kComplex = {DType::c128, DType::c64};

struct Case {
  std::string name;
  std::string python;
  std::function<Tensors(const Tensors&)> call;
  std::vector<Input> inputs;
  std::vector<Input> big_inputs = {};
  DTypes dtype_list = kFloats;
  int derivatives = 2;               // the highest order that is compared with differences
  std::string derivatives_why = {};  // why less than 2
  double grad_tolerance = 1e-6;
  double rtol_factor = 1.0;   // of the dtype's tolerance
  std::string peer_why = {};  // why PyTorch is not compared with: a deviation, said on the page
  std::string peer = {};      // the call in PyTorch, where it has none of this name
  std::string shape_only_why = {};  // why only shapes and dtypes are compared (random numbers, ...)
  std::string strided_why = {};     // why strided inputs are not tried
  int number = 0;                   // among all cases

  Case& dtypes(DTypes list) {
    dtype_list = std::move(list);
    return *this;
  }
  // Inputs of about 1 Mi elements, for the comparison between numbers of threads and for the bench.
  Case& big(std::vector<Input> list) {
    big_inputs = std::move(list);
    return *this;
  }
  // No derivative exists or it is zero everywhere; `why` is printed on the page when it is not
  // obvious.
  Case& no_gradient(std::string why = {}) {
    derivatives = 0;
    derivatives_why = std::move(why);
    return *this;
  }
  // Only the first order is compared; say why.
  Case& first_order(std::string why) {
    derivatives = 1;
    derivatives_why = std::move(why);
    return *this;
  }
  // For sharply curved functions, where differences are inexact.
  Case& gradient_tolerance(double relative) {
    grad_tolerance = relative;
    return *this;
  }
  // Allows `factor` times the dtype's tolerance: for sums of many rounded terms.
  Case& loose(double factor) {
    rtol_factor = factor;
    return *this;
  }
  Case& no_peer(std::string why) {
    peer_why = std::move(why);
    return *this;
  }
  // PyTorch has no function of this name; its `call` over the same inputs computes the same.
  Case& same_as(std::string call) {
    peer = std::move(call);
    return *this;
  }
  Case& shapes_only(std::string why) {
    shape_only_why = std::move(why);
    return *this;
  }
  Case& not_strided(std::string why) {
    strided_why = std::move(why);
    return *this;
  }
};

// All cases of all files.
std::deque<Case>& cases();

// The inputs of a case in `dtype` on `device`. Complex ones are complex, real ones have the real
// dtype that belongs to it.
Tensors make_inputs(const Case& c, const std::vector<Input>& inputs, DType dtype,
                    Device device = {});

// What the results of ops become.
inline Tensors listed(Tensor x) { return {std::move(x)}; }
inline Tensors listed(Tensors x) { return x; }
inline Tensors listed(std::pair<Tensor, Tensor> x) { return {x.first, x.second}; }
template <class... T>
Tensors listed(std::tuple<T...> x) {
  return std::apply([](auto&... parts) { return Tensors{parts...}; }, x);
}

// Adds a case; set its options on the result.
template <class F>
Case& op(std::string name, std::string python, F call, std::vector<Input> inputs) {
  Case& c = cases().emplace_back();
  c.name = std::move(name);
  c.python = std::move(python);
  c.call = [call = std::move(call)](const Tensors& x) { return listed(call(x)); };
  c.inputs = std::move(inputs);
  c.number = static_cast<int>(cases().size()) - 1;
  return c;
}

struct Family {
  explicit Family(void (*add)()) { add(); }
};
#define KILN_OP_CASES(family)                                     \
  static void add_##family##_cases();                             \
  static const Family family##_cases_added(add_##family##_cases); \
  static void add_##family##_cases()

// Relative to the larger of 1 and the value: what a few roundings in this dtype leave.
double tolerance_of(DType dtype);
// The values; of complex numbers the parts in turn.
std::vector<double> doubles_of(const Tensor& x);
// "" when both lists hold the same shapes, dtypes and values (NaN equals NaN), else what differs.
std::string difference(const Tensors& got, const Tensors& expected, double tolerance);

// "cumprod  torch.cumprod(a, 1)  float32": where a check is.
std::string describe(const Case& c, DType dtype);

}  // namespace kiln::ops
