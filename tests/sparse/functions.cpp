// Functions of sparse tensors beside the same of dense ones, their gradients beside differences.
#include <functional>

#include "kiln/kiln.h"
#include "kiln/tensor/autograd/vmap.h"
#include "kiln/tensor/linalg/csr.h"
#include "tests/support/tensor_check.h"
#include "tests/support/throws.h"

namespace kiln::test {
namespace {

using SparseLoss = std::function<Tensor(const std::vector<Tensor>&)>;

// The gradient of a scalar by central differences.
Tensor sparse_difference(const SparseLoss& f, const std::vector<Tensor>& inputs, size_t which) {
  constexpr double kStep = 1e-6;
  const Tensor flat = inputs[which].detach().flatten();
  std::vector<double> out;
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const auto moved = [&](double by) {
      std::vector<Tensor> other = inputs;
      Tensor x = flat.clone();
      x[i].add_(by);
      other[which] = x.reshape(inputs[which].shape());
      return f(other).item();
    };
    out.push_back((moved(kStep) - moved(-kStep)) / (2 * kStep));
  }
  return tensor(out).reshape(inputs[which].shape());
}

// First and second derivatives of f in every input.
void check_sparse_gradients(const SparseLoss& f, const std::vector<Tensor>& given) {
  std::vector<Tensor> inputs;
  for (const Tensor& x : given) inputs.push_back(x.detach().clone().requires_grad_());
  const auto gradients = [](const SparseLoss& of, const std::vector<Tensor>& at) {
    const std::vector<Tensor> y = {of(at)};
    return grad(y, at, GradOptions{.create_graph = true});
  };
  const auto found = gradients(f, inputs);
  // A number that depends on all gradients; its own gradient is that of second order.
  const SparseLoss second = [&](const std::vector<Tensor>& at) {
    std::vector<Tensor> own;
    for (const Tensor& x : at) {
      own.push_back(x.requires_grad() ? x : x.detach().clone().requires_grad_());
    }
    Tensor sum = zeros({}, f64);
    for (const Tensor& g : gradients(f, own)) {
      sum = sum + (g * linspace(0.5, 1.5, g.numel(), {f64}).reshape(g.shape())).square().sum();
    }
    return sum;
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    INFO("input ", i);
    CHECK(found[i].allclose(sparse_difference(f, inputs, i), 1e-5, 1e-6));
    const Tensor twice = gradients(second, inputs)[i];
    CHECK(twice.allclose(sparse_difference(second, inputs, i), 1e-4, 1e-5));
  }
}

Tensor sparse_numbers(const Shape& shape, uint64_t seed = 1) {
  Generator generator(seed);
  return randn(shape, {.dtype = f64}, &generator);
}

// 4 x 5, an empty row, an index that occurs twice.
const Tensor& sparse_places() {
  static const Tensor at = tensor({{0, 3, 0, 1, 3, 0}, {4, 1, 2, 3, 1, 0}});
  return at;
}
SparseTensor sparse_of(const Tensor& values) {
  return sparse_coo_tensor(sparse_places(), values, Shape{4, 5});
}

TEST_CASE("sparse: sums and products of elements") {
  const SparseTensor x = sparse_of(sparse_numbers({6}));
  const SparseTensor y =
      sparse_coo_tensor(tensor({{0, 2, 3}, {4, 2, 1}}), sparse_numbers({3}, 2), Shape{4, 5});
  const Tensor dx = x.to_dense(), dy = y.to_dense();
  for (const bool csr : {false, true}) {
    const SparseTensor a = csr ? x.to_sparse_csr() : x;
    const SparseTensor b = csr ? y.to_sparse_csr() : y;
    CHECK((a + b).layout() == a.layout());
    CHECK((a + b).to_dense().allclose(dx + dy));
    CHECK(add(a, b, 3).to_dense().allclose(dx + dy * 3));
    CHECK((a - b).to_dense().allclose(dx - dy));
    CHECK((a * b).to_dense().allclose(dx * dy));
    CHECK((a * b).nnz() == 2);
    CHECK((a * 2.5).to_dense().allclose(dx * 2.5));
    CHECK((a / 2).to_dense().allclose(dx / 2));
    CHECK((-a).to_dense().allclose(-dx));
    CHECK((dy + a).allclose(dx + dy));
    CHECK((dy - a).allclose(dy - dx));
    for (const Shape& shape : {Shape{4, 5}, Shape{4, 1}, Shape{5}, Shape{}}) {
      const Tensor dense = sparse_numbers(shape, 3);
      CHECK((a * dense).to_dense().allclose(dx * dense));
      CHECK(div(a, dense).to_dense().allclose(dx / dense));
    }
    CHECK_THROWS_AS(a * ones({3, 5}, f64), ShapeError);
    CHECK_THROWS_AS(a * ones({2, 4, 5}, f64), ShapeError);
    CHECK_THROWS_AS(a + b.to(f32), DTypeError);
    CHECK_THROWS_AS(a + b.t(), ShapeError);
  }
  const SparseTensor hybrid =
      sparse_coo_tensor(tensor({{1, 0, 1}}), sparse_numbers({3, 2}), Shape{3, 2});
  CHECK((hybrid * tensor({2.0, 3.0}, f64))
            .to_dense()
            .allclose(hybrid.to_dense() * tensor({2.0, 3.0}, f64)));
  CHECK((hybrid * hybrid).to_dense().allclose(hybrid.to_dense().square()));
  CHECK(sparse::map(x, [](const Tensor& v) { return v.abs(); }).to_dense().allclose(dx.abs()));
}

TEST_CASE("sparse: products of matrices") {
  on_devices([](Device device) {
    const SparseTensor x = sparse_of(sparse_numbers({6})).to(device);
    const Tensor dx = x.to_dense();
    const Tensor y = sparse_numbers({5, 3}, 2).to(device);
    const Tensor turned = sparse_numbers({3, 5}, 2).to(device).t();
    const Tensor left = sparse_numbers({2, 4}, 3).to(device);
    const SparseTensor z = to_sparse(sparse_numbers({5, 4}, 4).to(device).clamp(0.0));
    for (const SparseTensor& a : {x, x.coalesce(), x.to_sparse_csr()}) {
      CHECK(sparse::mm(a, y).allclose(dx.matmul(y)));
      CHECK(sparse::mm(a, turned).allclose(dx.matmul(turned)));
      CHECK(sparse::mm(left, a).allclose(left.matmul(dx)));
      CHECK(sparse::mv(a, y.select(1, 0)).allclose(dx.matmul(y.select(1, 0))));
      CHECK(sparse::mm(a, z).to_dense().allclose(dx.matmul(z.to_dense())));
      CHECK(sparse::mm(a, z).layout() == a.layout());
      CHECK(
          sparse::addmm(ones({3}, {f64, device}), a, y, 2, 0.5).allclose(dx.matmul(y) * 0.5 + 2.0));
      const SparseTensor sampled = sparse::sampled_addmm(a, left.t(), left.matmul(dx), 3, 0.5);
      const Tensor whole = left.t().matmul(left.matmul(dx)) * 0.5 + dx * 3;
      CHECK(sampled.to_dense().allclose(whole * dx.ne(0).to(f64)));
      CHECK_THROWS_AS(sparse::mm(a, y.t()), ShapeError);
      CHECK_THROWS_AS(sparse::mm(a, y.to(f32)), DTypeError);
      CHECK_THROWS_AS(sparse::mv(a, y), ShapeError);
      CHECK_THROWS_AS(sparse::sampled_addmm(a, y, y.t()), ShapeError);
    }
    CHECK(sparse::mm(x.t(), left.t()).allclose(dx.t().matmul(left.t())));
  });
}

TEST_CASE("sparse: products of integers and of complex numbers") {
  const Tensor whole = tensor({{0, 2, 0}, {3, 0, -1}});
  const Tensor right = tensor({{1, 2}, {3, 4}, {5, 6}});
  CHECK(mismatch(sparse::mm(to_sparse(whole), right), {2, 2}, {6, 8, -2, 0}) == "");
  const Tensor z = complex(whole.to(f64), whole.to(f64) * 2);
  const Tensor w = complex(right.to(f64), right.to(f64) - 1);
  CHECK(sparse::mm(to_sparse(z), w).allclose(z.matmul(w)));
}

TEST_CASE("sparse: sums over dims, slices, parts side by side") {
  const SparseTensor x = sparse_of(sparse_numbers({6}));
  const Tensor dx = x.to_dense();
  CHECK(sparse::sum(x).allclose(dx.sum()));
  CHECK(sparse::sum(x, {0}).sparse.to_dense().allclose(dx.sum(0)));
  CHECK(sparse::sum(x, {-1}).sparse.to_dense().allclose(dx.sum(1)));
  CHECK(sparse::sum(x, {0, 1}).dense.allclose(dx.sum()));
  const SparseTensor hybrid =
      sparse_coo_tensor(tensor({{1, 0, 1}, {0, 2, 2}}), sparse_numbers({3, 2}), Shape{2, 3, 2});
  const Tensor dh = hybrid.to_dense();
  CHECK(sparse::sum(hybrid, {2}).sparse.to_dense().allclose(dh.sum(2)));
  CHECK(sparse::sum(hybrid, {0, 2}).sparse.to_dense().allclose(dh.sum({0, 2})));
  CHECK(sparse::sum(hybrid, {0, 1}).dense.allclose(dh.sum({0, 1})));
  CHECK_THROWS_AS(sparse::sum(x, {2}), IndexError);

  const Tensor rows = tensor({3, 0, 0, 2});
  for (const SparseTensor& a : {x, x.to_sparse_csr()}) {
    CHECK(sparse::index_select(a, 0, rows).to_dense().allclose(dx.index_select(0, rows)));
    CHECK(sparse::index_select(a, 1, rows).to_dense().allclose(dx.index_select(1, rows)));
    CHECK(sparse::select(a, 0, 3).sparse.to_dense().allclose(dx.select(0, 3)));
    CHECK(sparse::select(a, 1, -1).sparse.to_dense().allclose(dx.select(1, -1)));
    CHECK_THROWS_AS(sparse::index_select(a, 0, tensor({4})), IndexError);
    CHECK_THROWS_AS(sparse::select(a, 0, 4), IndexError);
    CHECK(cat(std::vector{a, a, a}, 0).to_dense().allclose(cat({dx, dx, dx}, 0)));
    CHECK(cat(std::vector{a, a}, 1).to_dense().allclose(cat({dx, dx}, 1)));
  }
  CHECK(sparse::index_select(hybrid, 2, tensor({1, 1}))
            .to_dense()
            .allclose(dh.index_select(2, tensor({1, 1}))));
  CHECK(sparse::select(hybrid, 2, 1).sparse.to_dense().allclose(dh.select(2, 1)));
  const SparseTensor line = sparse_coo_tensor(tensor({{1, 1, 0}}), sparse_numbers({3, 2}));
  CHECK(sparse::select(line, 0, 1).dense.allclose(line.to_dense().select(0, 1)));
  CHECK(cat(std::vector{hybrid, hybrid}, 2).to_dense().allclose(cat({dh, dh}, 2)));
  CHECK_THROWS_AS(cat(std::vector<SparseTensor>{}, 0), ValueError);
  CHECK_THROWS_AS(cat(std::vector{x, x.t()}, 0), ShapeError);
}

TEST_CASE("sparse: softmax over what is stored") {
  const SparseTensor x = sparse_of(sparse_numbers({6})).coalesce();
  const Tensor dx = x.to_dense();
  const double far = -std::numeric_limits<double>::infinity();
  const Tensor filled = dx.masked_fill(dx.eq(0), far);
  for (const int dim : {0, 1, -1}) {
    const Tensor whole = filled.softmax(dim).nan_to_num();
    CHECK(sparse::softmax(x, dim).to_dense().allclose(whole));
    CHECK(sparse::softmax(x.to_sparse_csr(), dim).to_dense().allclose(whole));
    const Tensor logs = sparse::log_softmax(x, dim).values().exp();
    CHECK(logs.allclose(sparse::softmax(x, dim).values()));
  }
  const SparseTensor large = sparse_coo_tensor(tensor({{0, 1}}), tensor({1000.0, 1000.0}, f64));
  CHECK(mismatch(sparse::softmax(large, 0).values(), {2}, {0.5, 0.5}) == "");
  const SparseTensor hybrid = sparse_coo_tensor(tensor({{1, 0, 2}}), sparse_numbers({3, 2}));
  CHECK(sparse::softmax(hybrid, 1).values().allclose(hybrid.coalesce().values().softmax(1)));
  CHECK(sparse::softmax(hybrid, 0).to_dense().allclose(hybrid.to_dense().softmax(0)));
  CHECK_THROWS_AS(sparse::softmax(x.to(i64), 0), DTypeError);
}

TEST_CASE("sparse: gradients of products, of first and second order") {
  const std::vector<Tensor> both = {sparse_numbers({6}), sparse_numbers({5, 2}, 2)};
  const auto squares = [](const Tensor& y) { return y.sin().square().sum(); };
  for (const bool csr : {false, true}) {
    const auto matrix = [&](const Tensor& v) {
      return csr ? sparse_of(v).to_sparse_csr() : sparse_of(v);
    };
    check_sparse_gradients(
        [&](const auto& in) { return squares(sparse::mm(matrix(in[0]), in[1])); }, both);
    check_sparse_gradients(
        [&](const auto& in) { return squares(sparse::mm(in[1].t(), matrix(in[0]).t())); }, both);
    check_sparse_gradients(
        [&](const auto& in) {
          return squares(
              sparse::sampled_addmm(matrix(in[0]), in[1].slice(0, 0, 4), in[1].t(), 2, 0.5)
                  ._values());
        },
        both);
    check_sparse_gradients(
        [&](const auto& in) {
          return squares(sparse::mm(matrix(in[0]), matrix(in[0]).t())._values());
        },
        {both[0]});
  }
}

TEST_CASE("sparse: gradients of the other functions") {
  const auto squares = [](const Tensor& y) { return y.sin().square().sum(); };
  const std::vector<Tensor> values = {sparse_numbers({6})};
  using V = std::vector<Tensor>;
  const std::vector<std::function<Tensor(const SparseTensor&)>> functions = {
      [](const SparseTensor& x) { return x.to_dense(); },
      [](const SparseTensor& x) { return x.coalesce().values(); },
      [](const SparseTensor& x) { return (x + x.coalesce() * 2).values(); },
      [](const SparseTensor& x) { return (x * x).values(); },
      [](const SparseTensor& x) { return sparse::sum(x, {0}).sparse.values(); },
      [](const SparseTensor& x) { return sparse::softmax(x, 1).values(); },
      [](const SparseTensor& x) { return sparse::log_softmax(x, 0).values(); },
      [](const SparseTensor& x) { return sparse::select(x, 0, 0).sparse.to_dense(); },
      [](const SparseTensor& x) {
        return sparse::index_select(x, 1, tensor({4, 1, 1})).to_dense();
      },
      [](const SparseTensor& x) {
        return cat(std::vector{x, x * 2}, 1).to_dense();
      },
  };
  for (const auto& f : functions) {
    check_sparse_gradients([&](const V& in) { return squares(f(sparse_of(in[0]))); }, values);
  }
  const Tensor dense = sparse_numbers({4, 5}, 3);
  check_sparse_gradients([&](const V& in) { return squares((sparse_of(in[0]) * in[1])._values()); },
                         {values[0], dense});
  check_sparse_gradients([&](const V& in) { return squares(in[1] + sparse_of(in[0])); },
                         {values[0], dense});
  check_sparse_gradients([&](const V& in) { return squares(to_sparse(in[0]).values()); }, {dense});
  check_sparse_gradients(
      [&](const V& in) { return squares(sparse_mask(in[0], sparse_of(values[0])).values()); },
      {dense});
}

TEST_CASE("sparse: the gradient of a leaf has its indices") {
  SparseTensor x = sparse_of(sparse_numbers({6})).coalesce().requires_grad_();
  sparse::mm(x, ones({5, 2}, f64)).sum().backward_accumulate();
  CHECK(x.grad().nnz() == x.nnz());
  CHECK(x.grad().values().equal(full({x.nnz()}, 2.0, f64)));
}

TEST_CASE("csr_matmul: batches of vmap, graphs, and what it refuses") {
  const SparseTensor x = sparse_of(sparse_numbers({6})).to_sparse_csr();
  const Tensor crow = x.crow_indices(), col = x.col_indices(), v = x.values();
  const Tensor batch = sparse_numbers({3, 5, 2}, 5);
  const auto f = [&](const TensorList& in) { return TensorList{csr_matmul(crow, col, v, in[0])}; };
  const Tensor all = vmap(f, {batch})[0];
  for (int64_t i = 0; i < 3; ++i) {
    CHECK(all.select(0, i).allclose(x.to_dense().matmul(batch.select(0, i))));
  }
  const Tensor factors = sparse_numbers({3, v.size(0)}, 6);
  const auto g = [&](const TensorList& in) {
    return TensorList{csr_matmul(crow, col, in[0], in[1]),
                      csr_sampled_matmul(crow, col, in[2], in[1])};
  };
  const Tensor left = sparse_numbers({3, 4, 2}, 7);
  const auto two = vmap(g, {factors, batch, left});
  for (int64_t i = 0; i < 3; ++i) {
    const auto one = g({factors.select(0, i), batch.select(0, i), left.select(0, i)});
    CHECK(two[0].select(0, i).allclose(one[0]));
    CHECK(two[1].select(0, i).allclose(one[1]));
  }
  const Tensor y = sparse_numbers({5, 2});
  CHECK_THROWS_AS(csr_matmul(tensor({0, 1}), col, v, y), IndexError);
  CHECK_THROWS_AS(csr_matmul(crow, col + 5, v, y), IndexError);
  CHECK_THROWS_AS(csr_matmul(crow, col - 1, v, y), IndexError);
  CHECK_THROWS_AS(csr_matmul(crow, col, v.to(f32), y), DTypeError);
  CHECK_THROWS_AS(csr_matmul(crow, col, v, y.select(1, 0)), ShapeError);
  CHECK_THROWS_AS(csr_matmul(crow, col, v.slice(0, 1), y), ShapeError);
  CHECK_THROWS_AS(csr_matmul(crow.to(f64), col, v, y), DTypeError);
  CHECK_THROWS_AS(csr_transposed_matmul(crow, col, v, y, 5), ShapeError);
  CHECK_THROWS_AS(csr_sampled_matmul(crow, col, y, y), ShapeError);
}

}  // namespace
}  // namespace kiln::test
