// The Meta backend: each row has a rule, and the rule agrees with Cpu.
#include "kiln/backend/meta/meta.h"

#include <set>

#include <doctest/doctest.h>

#include "kiln/backend/conformance/conformance.h"
#include "kiln/kiln.h"

using namespace kiln;

TEST_CASE("meta: every row of the op table has a rule of its own") {
  const std::vector<const char*> missing = meta::rows_without_rule();
  for (const char* row : missing) {
    FAIL_CHECK(std::string(row),
               " has no rule in kiln/backend/meta/meta.h, or one with other parameters than "
               "ops.def gives it");
  }
}

TEST_CASE("meta: every row gives the shapes, dtypes and strides of Cpu") {
  const ConformanceOptions options{.float_dtypes = {f32, f16}, .int_dtypes = {i64, u8}};
  std::set<std::string> need_values;
  for (const ConformanceFailure& failure : run_shape_conformance<Meta>(kMeta, options)) {
    if (failure.what.ends_with("needs values")) {
      need_values.insert(failure.op);
    } else {
      FAIL_CHECK(to_string(failure));
    }
  }
  std::string names;
  for (const std::string& name : need_values) names += name + " ";
  CHECK(names == "bool_nonzero ");
}

namespace {

// Meta but for one wrong rule.
struct WrongShape : Meta {
  static MetaHandle float_softmax(Arg<MetaHandle> x, int dim) {
    return meta::of_shape(x, infer::resized(x->shape(), dim, 1));
  }
};
struct WrongDtype : Meta {
  static MetaHandle float_argmax(Arg<MetaHandle> x, int dim, bool keepdim) {
    return meta::of_shape(x, reduced_shape(x->shape(), {dim}, keepdim), i32);
  }
};
struct WrongStrides : Meta {
  static MetaHandle float_cumsum(Arg<MetaHandle> x, int) {
    return make_handle<MetaTensor>(x->shape(), x->dtype(), x->device(), x->strides(), 0,
                                   x->storage());
  }
};
struct Throws : Meta {
  static MetaHandle float_relu(Arg<MetaHandle>) { meta::throw_no_values("float_relu"); }
};

template <class Bk>
bool finds(const std::string& op, const std::string& words) {
  const ConformanceOptions options{.float_dtypes = {f32}, .int_dtypes = {i64}, .only = op};
  for (const ConformanceFailure& failure : run_shape_conformance<Bk>(kMeta, options)) {
    INFO(to_string(failure));
    if (failure.op == op && failure.what.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("meta: a wrong rule is found and named") {
  CHECK(finds<WrongShape>("float_softmax", "; expected float32 ["));
  CHECK(finds<WrongDtype>("float_argmax", "result 0 is int32"));
  CHECK(finds<WrongStrides>("float_cumsum", "permuted: result 0"));
  CHECK(finds<Throws>("float_relu", "needs values"));
}

TEST_CASE("meta: tensors have no memory, and say so where values are needed") {
  const Device on("meta");
  CHECK(to_string(on) == "meta");
  const Tensor x = zeros({1 << 20, 1 << 20, 16}, {f32, on});
  CHECK(x.numel() == int64_t{1} << 44);
  CHECK(x.stride() == Strides{int64_t{1} << 24, 16, 1});
  CHECK((x + 1).relu().matmul(x.transpose(-1, -2)).shape() == Shape{1 << 20, 1 << 20, 1 << 20});
  CHECK_THROWS_AS(zeros({int64_t{1} << 62, 2}, {f32, on}), Error);
  const auto says = [](const std::function<void()>& f) {
    try {
      f();
    } catch (const NotImplementedError& error) {
      return std::string(error.what()).find("meta tensor has none") != std::string::npos;
    }
    return false;
  };
  const Tensor one = ones({1}, {f32, on});
  CHECK(says([&] { one.item<float>(); }));
  CHECK(says([&] { one.to_vector<double>(); }));
  CHECK(says([&] { one.to(Device("cpu")); }));
  CHECK(says([&] { nonzero(one.gt(Scalar(0))); }));
  CHECK(to_string(zeros({2}, {f32, on})) == "tensor(..., device='meta', size=(2,))");
  CHECK(to_string(zeros({2, 3}, {f64, on})) ==
        "tensor(..., device='meta', size=(2, 3), dtype=kiln.float64)");
  CHECK_THROWS_AS(one + ones({1}), DeviceError);
}

TEST_CASE("meta: views share what they are views of, and writes have their gradients") {
  const Device on("meta");
  const Tensor x = zeros({4, 6}, {.dtype = f32, .device = on, .requires_grad = true});
  Tensor y = x * 1;
  Tensor v = y.select(0, 1);
  CHECK(v.stride() == Strides{1});
  v.mul_(3);
  CHECK(y.grad_fn() == "copy_slices");
  const Gradients grads = y.sum().backward();
  CHECK(grads.get(x)->shape() == Shape{4, 6});
  CHECK(grads.get(x)->device() == on);
  // A saved value that was written is noticed, as on other devices.
  Tensor z = x * 2;
  const Tensor w = z.exp();
  const Tensor product = w * z;
  z.add_(1);
  CHECK_THROWS_AS((void)product.sum().backward(), AutodiffError);
}
