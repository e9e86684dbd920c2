// What a user reads when an op refuses its operands: the op's name, what was given and what would
// be legal.
#include <functional>

#include "kiln/tensor/nn/convolution.h"
#include "kiln/tensor/nn/embedding.h"
#include "kiln/tensor/nn/losses.h"
#include "kiln/tensor/nn/pooling.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("shapes that do not fit") {
  const Tensor a = zeros({2, 3});
  const Tensor b = zeros({4, 3});
  const auto lacks = [](const std::function<void()>& f, std::vector<std::string> words) {
    return error_lacks<ShapeError>(f, words);
  };
  CHECK(lacks([&] { a + b; }, {"add: ", "[2, 3] and [4, 3]", "expected"}) == "");
  CHECK(lacks([&] { a - b; }, {"sub: ", "[2, 3] and [4, 3]"}) == "");
  CHECK(lacks([&] { a* b; }, {"mul: ", "[2, 3] and [4, 3]"}) == "");
  CHECK(lacks([&] { a / b; }, {"div: ", "[2, 3] and [4, 3]"}) == "");
  CHECK(lacks([&] { a % b; }, {"remainder: ", "[2, 3] and [4, 3]"}) == "");
  CHECK(lacks([&] { a.pow(b); }, {"pow: ", "[2, 3] and [4, 3]"}) == "");
  CHECK(lacks([&] { a.to(i64).pow(b.to(i64)); }, {"pow: ", "[2, 3] and [4, 3]"}) == "");
  CHECK(lacks([&] { a.maximum(b); }, {"maximum: ", "[2, 3] and [4, 3]"}) == "");
  CHECK(lacks([&] { a.floor_divide(b); }, {"floor_divide: ", "[2, 3] and [4, 3]"}) == "");
  CHECK(lacks([&] { atan2(a, b); }, {"atan2: ", "[2, 3] and [4, 3]"}) == "");
  CHECK(lacks([&] { a == b; }, {"eq: ", "[2, 3] and [4, 3]"}) == "");
  CHECK(lacks([&] { a < b; }, {"lt: ", "[2, 3] and [4, 3]"}) == "");
  CHECK(lacks([&] { a.logical_or(b); }, {"logical_or: ", "[2, 3] and [4, 3]"}) == "");
  CHECK(lacks([&] { a.to(i64) & b.to(i64); }, {"bitwise_and: ", "[2, 3] and [4, 3]"}) == "");
  CHECK(lacks([&] { where(a > 0, a, b); }, {"where: ", "[2, 3]", "[4, 3]"}) == "");
  CHECK(lacks([&] { a.masked_fill(b > 0, 0); }, {"masked_fill: ", "[2, 3] and [4, 3]"}) == "");
  CHECK(lacks([&] { a.matmul(b); }, {"matmul: ", "[2, 3] and [4, 3]", "expected"}) == "");
  CHECK(lacks(
            [&] {
              zeros({2, 3, 4}).matmul(zeros({3, 4, 5}));
            },
            {"matmul: ", "[2] and [3]"}) == "");
  CHECK(lacks([&] { tensor(1.0).matmul(a); }, {"matmul: ", "[] and [2, 3]"}) == "");
  CHECK(lacks([&] { a.mm(a[0]); }, {"mm: ", "[2, 3] and [3]", "matmul"}) == "");
  CHECK(lacks([&] { cat({a, zeros({2, 4})}); }, {"cat: ", "[2, 3] and [2, 4]", "dim 0"}) == "");
  CHECK(lacks([&] { stack({a, b}); }, {"stack: ", "[2, 3] and [4, 3]"}) == "");
  CHECK(lacks([&] { a.reshape({4, 2}); }, {"reshape: ", "[2, 3]", "[4, 2]", "6", "8"}) == "");
  CHECK(lacks([&] { a.t().view({6}); }, {"view: ", "[3, 2]", "[6]", "reshape"}) == "");
  CHECK(lacks([&] { a.expand({3, 3}); }, {"expand: ", "[2, 3]", "[3, 3]"}) == "");
  CHECK(lacks([&] { a.permute({1}); }, {"permute: ", "[1]", "[2, 3]"}) == "");
  CHECK(lacks([&] { a.gather(0, zeros({5}, {i64})); }, {"gather: ", "[5]", "[2, 3]"}) == "");
  CHECK(lacks(
            [&] {
              a.scatter(0, zeros({2, 3}, {i64}), zeros({1, 3}));
            },
            {"scatter: ", "[1, 3]", "[2, 3]"}) == "");
  CHECK(lacks(
            [&] {
              a.index_add(0, zeros({2}, {i64}), zeros({3, 3}));
            },
            {"index_add: ", "[3, 3]", "[2, 3]"}) == "");
  CHECK(lacks([&] { Tensor(a).add_(b); }, {"add_: ", "[2, 3] and [4, 3]"}) == "");
  CHECK(lacks([&] { Tensor(a[0]).copy_(a); }, {"copy_: ", "[2, 3]", "[3]"}) == "");
  CHECK(lacks(
            [&] {
              functional::linear(a, zeros({5, 4}));
            },
            {"linear: ", "[2, 3]", "[5, 4]"}) == "");
  CHECK(lacks(
            [&] {
              functional::linear(a, zeros({5, 3}), zeros({4}));
            },
            {"linear: ", "bias", "[4]", "[5]"}) == "");
  CHECK(lacks(
            [&] {
              functional::conv2d(zeros({1, 3, 8, 8}), zeros({4, 2, 3, 3}));
            },
            {"conv2d: ", "[1, 3, 8, 8]", "[4, 2, 3, 3]", "groups"}) == "");
  CHECK(lacks(
            [&] {
              functional::conv2d(zeros({1, 2, 2, 8}), zeros({4, 2, 3, 3}));
            },
            {"conv2d: ", "kernel", "[1, 2, 2, 8]", "[4, 2, 3, 3]"}) == "");
  CHECK(lacks(
            [&] {
              functional::max_pool2d(zeros({1, 2, 1, 8}), 2);
            },
            {"max_pool2d: ", "[1, 2, 1, 8]", "[2, 2]"}) == "");
  CHECK(lacks([&] { functional::batch_norm(a, zeros({2}), ones({3})); },
              {"batch_norm: ", "running_mean", "[2]", "[3]"}) == "");
  CHECK(lacks([&] { functional::layer_norm(a, {2}); }, {"layer_norm: ", "[2, 3]", "[2]"}) == "");
  CHECK(lacks([&] { functional::cross_entropy(a, zeros({3}, {i64})); },
              {"cross_entropy: ", "[2, 3]", "[3]", "[2]"}) == "");
  CHECK(lacks([&] { functional::mse_loss(a, b); }, {"mse_loss: ", "[2, 3] and [4, 3]"}) == "");
  CHECK(lacks([&] { zeros({0, 2}).max(0); }, {"max: ", "[0, 2]", "empty"}) == "");
  CHECK(lacks([&] { tensor({{1, 2}, {3}}); }, {"tensor: ", "[2, 2]"}) == "");
  CHECK(lacks([&] { from_vector(std::vector<float>{1}, {2}); }, {"tensor: ", "1", "[2]"}) == "");
  CHECK(lacks([&] { zeros({2, -3}); }, {"zeros: ", "[2, -3]", "negative"}) == "");
  CHECK(lacks([&] { ones({-1}); }, {"ones: ", "[-1]", "negative"}) == "");
  CHECK(lacks([&] { full({-1}, 2); }, {"full: ", "[-1]", "negative"}) == "");
}

TEST_CASE("dims and indices outside their range") {
  const Tensor a = zeros({2, 3});
  const auto lacks = [](const std::function<void()>& f, std::vector<std::string> words) {
    return error_lacks<IndexError>(f, words);
  };
  CHECK(lacks([&] { a.sum(2); }, {"sum: ", "dim 2", "-2 to 1"}) == "");
  CHECK(lacks([&] { a.softmax(-3); }, {"softmax: ", "dim -3", "-2 to 1"}) == "");
  CHECK(lacks([&] { a.transpose(0, 5); }, {"transpose: ", "dim 5"}) == "");
  CHECK(lacks([&] { a.unsqueeze(4); }, {"unsqueeze: ", "dim 4", "-3 to 2"}) == "");
  CHECK(lacks([&] { cat({a, a}, 2); }, {"cat: ", "dim 2"}) == "");
  CHECK(lacks([&] { a.size(7); }, {"size: ", "dim 7"}) == "");
  CHECK(lacks([&] { a[2]; }, {"select: ", "2", "[2, 3]", "-2 <= index < 2"}) == "");
  CHECK(lacks([&] { a.narrow(1, 2, 2); }, {"narrow: ", "start 2", "length 2", "[2, 3]"}) == "");
  CHECK(lacks([&] { a.index({0, 0, 0}); }, {"index: ", "3", "[2, 3]"}) == "");
  for (const Device device : {Device(kCpu), Device(kReference)}) {
    const Tensor x = a.to(device);
    const Tensor far = tensor({5}, {.device = device});
    CHECK(lacks([&] { x.index_select(1, far); }, {"index_select: ", "5", "expected"}) == "");
    CHECK(lacks([&] { x.gather(1, far.unsqueeze(0)); }, {"gather: ", "5", "expected"}) == "");
    CHECK(lacks([&] { x.scatter(1, far.unsqueeze(0), x); }, {"scatter: ", "5", "expected"}) == "");
    CHECK(lacks([&] { x.scatter_add(1, far.unsqueeze(0), x); }, {"scatter_add: ", "5"}) == "");
    CHECK(lacks([&] { x.index_add(0, far, x.slice(0, 0, 1)); }, {"index_add: ", "5"}) == "");
    CHECK(lacks([&] { functional::embedding(far, x); }, {"embedding: ", "5", "expected"}) == "");
    CHECK(lacks([&] { functional::cross_entropy(x.slice(0, 0, 1), far); },
                {"cross_entropy: ", "5", "expected"}) == "");
    CHECK(lacks(
              [&] {
                functional::cross_entropy(x.slice(0, 0, 1), far,
                                          {.weight = ones({3}, {.device = device})});
              },
              {"cross_entropy: ", "5", "expected"}) == "");
  }
}

TEST_CASE("dtypes that have no meaning") {
  const Tensor f = ones({2});
  const Tensor i = ones({2}, {i64});
  const Tensor b = ones({2}, {bool_});
  const auto lacks = [](const std::function<void()>& f_, std::vector<std::string> words) {
    return error_lacks<DTypeError>(f_, words);
  };
  CHECK(lacks([&] { b - b; }, {"sub: ", "bool", "expected"}) == "");
  CHECK(lacks([&] { i.mean(); }, {"mean: ", "int64", "floating point"}) == "");
  CHECK(lacks([&] { i.softmax(0); }, {"softmax: ", "int64", "floating point"}) == "");
  CHECK(lacks([&] { f& f; }, {"bitwise_and: ", "float32", "integer or bool"}) == "");
  CHECK(lacks([&] { f.masked_fill(i, 0); }, {"masked_fill: ", "int64", "bool"}) == "");
  CHECK(lacks([&] { f.index_select(0, f); }, {"index_select: ", "float32", "int"}) == "");
  CHECK(lacks([&] { f.unsqueeze(0).matmul(i.unsqueeze(1)); },
              {"matmul: ", "float32", "int64", "one dtype"}) == "");
  CHECK(lacks([&] { b.matmul(b); }, {"matmul: ", "bool"}) == "");
  CHECK(lacks([&] { Tensor(i).add_(0.5); }, {"add_: ", "float32", "int64"}) == "");
  CHECK(lacks([&] { Tensor(i).sqrt_(); }, {"sqrt_: ", "float32", "int64"}) == "");
  CHECK(lacks([&] { functional::linear(i, i.unsqueeze(0)); }, {"linear: ", "int64"}) == "");
  CHECK(lacks([&] { functional::dropout(i, 0.5); }, {"dropout: ", "int64"}) == "");
  CHECK(lacks([&] { Tensor(i).requires_grad_(); }, {"requires_grad_: ", "int64"}) == "");
  CHECK(lacks([&] { i.gelu(); }, {"gelu: ", "int64"}) == "");
  CHECK(lacks([&] { b.neg(); }, {"neg: ", "bool"}) == "");
  CHECK(lacks([&] { rand({2}, {i64}); }, {"rand: ", "int64"}) == "");
  CHECK(lacks([&] { bernoulli(i); }, {"bernoulli: ", "int64"}) == "");
  CHECK(lacks([&] { f.data_ptr<double>(); }, {"data_ptr: ", "float64", "float32"}) == "");
}

TEST_CASE("ops that complex numbers have no meaning for") {
  for (const Device device : {Device(kCpu), Device(kReference)}) {
    const Tensor z = zeros({2, 3}, {DType::c64, device});
    CHECK(error_lacks<DTypeError>(
              [&] {
                arange(3, {DType::c64, device});
              },
              {"arange: ", "complex64"}) == "");
    CHECK(error_lacks<DTypeError>([&] { z.relu(); }, {"relu: ", "complex64"}) == "");
    CHECK(error_lacks<DTypeError>([&] { z.floor(); }, {"floor: ", "complex64"}) == "");
    CHECK(error_lacks<DTypeError>([&] { z.sort(); }, {"sort: ", "complex64"}) == "");
    CHECK(error_lacks<DTypeError>([&] { z.amax(); }, {"amax: ", "complex64"}) == "");
    CHECK(error_lacks<DTypeError>([&] { z.softmax(0); }, {"softmax: ", "complex64"}) == "");
    CHECK(error_lacks<DTypeError>([&] { z.gt(z); }, {"gt: ", "complex64"}) == "");
    CHECK(error_lacks<DTypeError>([&] { z % 2; }, {"remainder: ", "complex64"}) == "");
    CHECK(error_lacks<DTypeError>([&] { functional::layer_norm(z, {3}); },
                                  {"layer_norm: ", "complex64"}) == "");
    CHECK(error_lacks<DTypeError>([&] { quantize(z); }, {"quantize: ", "complex64"}) == "");
  }
}

TEST_CASE("integer division by zero names the op") {
  for (const Device device : {Device(kCpu), Device(kReference)}) {
    const Tensor x = tensor({1, 2}, {.device = device});
    const Tensor zero = zeros({2}, {i64, device});
    CHECK(error_lacks<ValueError>([&] { x % zero; }, {"remainder: ", "zero"}) == "");
    CHECK(error_lacks<ValueError>([&] { x.floor_divide(zero); }, {"floor_divide: ", "zero"}) == "");
    CHECK(error_lacks<ValueError>([&] { x.floor_divide(0); }, {"floor_divide: ", "zero"}) == "");
  }
}

TEST_CASE("undefined tensors") {
  const Tensor none;
  const Tensor x = ones({2, 2});
  CHECK_FALSE(none.defined());
  const auto named = [](const char* op, const std::function<void()>& f) {
    return error_lacks<ValueError>(f, {std::string(op) + ": ", "undefined"});
  };
  CHECK(named("add", [&] { none + x; }) == "");
  CHECK(named("add", [&] { x + none; }) == "");
  CHECK(named("add", [&] { none + 1; }) == "");
  CHECK(named("exp", [&] { none.exp(); }) == "");
  CHECK(named("exp_", [&] { Tensor().exp_(); }) == "");
  CHECK(named("sum", [&] { none.sum(); }) == "");
  CHECK(named("std", [&] { none.std(); }) == "");
  CHECK(named("max", [&] { none.max(0); }) == "");
  CHECK(named("argmax", [&] { none.argmax(); }) == "");
  CHECK(named("reshape", [&] { none.reshape({1}); }) == "");
  CHECK(named("squeeze", [&] { none.squeeze(); }) == "");
  CHECK(named("flatten", [&] { none.flatten(); }) == "");
  CHECK(named("select", [&] { none[0]; }) == "");
  CHECK(named("index", [&] { none.index({0}); }) == "");
  CHECK(named("split", [&] { none.split(1); }) == "");
  CHECK(named("cat", [&] { cat({x, none}); }) == "");
  CHECK(named("stack", [&] { stack({none, x}); }) == "");
  CHECK(named("stack", [&] { stack({x, none}); }) == "");
  CHECK(named("where", [&] { where(x > 0, x, none); }) == "");
  CHECK(named("matmul", [&] { x.matmul(none); }) == "");
  CHECK(named("mm", [&] { none.mm(x); }) == "");
  CHECK(named("eq", [&] { none == x; }) == "");
  CHECK(named("linear", [&] { functional::linear(x, none); }) == "");
  CHECK(named("conv2d", [&] { functional::conv2d(none, x); }) == "");
  CHECK(named("embedding", [&] { functional::embedding(none, x); }) == "");
  CHECK(named("cross_entropy", [&] { functional::cross_entropy(x, none); }) == "");
  CHECK(named("mse_loss", [&] { functional::mse_loss(none, x); }) == "");
  CHECK(named("add_", [&] { Tensor().add_(1); }) == "");
  CHECK(named("copy_", [&] { Tensor(x).copy_(none); }) == "");
  CHECK(named("fill_", [&] { Tensor().fill_(1); }) == "");
  CHECK(named("backward", [&] { (void)none.backward(); }) == "");
  CHECK(named("requires_grad_", [&] { Tensor().requires_grad_(); }) == "");
  CHECK(named("detach", [&] { none.detach(); }) == "");
  CHECK(named("item", [&] { none.item(); }) == "");
  CHECK(named("shape", [&] { none.shape(); }) == "");
  CHECK(named("to", [&] { none.to(f64); }) == "");
  CHECK(named("clone", [&] { none.clone(); }) == "");
  CHECK(named("size", [&] { none.size(0); }) == "");
  CHECK(named("bernoulli", [&] { bernoulli(none); }) == "");
  CHECK(none.is_same(Tensor()));
  // What was given away is no longer there: an error or the old values, never a crash.
  for (const Device device : {Device(kCpu), Device(kReference)}) {
    Tensor given = ones({2, 2}, {.device = device});
    const Tensor y = std::move(given) + 1.0;
    try {
      (void)given.sum().item();
    } catch (const ValueError&) {
    }
    CHECK(mismatch(y, {2, 2}, {2, 2, 2, 2}) == "");
    Tensor moved = ones({2}, {i32, device});
    const Tensor z = std::move(moved) * 2;
    try {
      (void)moved.sum().item();
    } catch (const ValueError&) {
    }
    CHECK(mismatch(z, {2}, {2, 2}) == "");
  }
}
