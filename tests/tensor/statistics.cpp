// Statistics, running results and searches: what they refuse, and the corners that the op cases
// leave out.
#include "kiln/tensor/reduce/statistics.h"

#include <cmath>

#include "kiln/tensor/index/sorting.h"
#include "kiln/tensor/index/unique.h"
#include "kiln/tensor/reduce/cumulative.h"
#include "kiln/tensor/reduce/reductions.h"
#include "kiln/tensor/shape/joining.h"
#include "kiln/tensor/shape/rearranging.h"
#include "tests/support/tensor_check.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("quantile, mode, bincount, histograms: errors") {
  const Tensor x = arange(6, {f32});
  CHECK_THROWS_AS(quantile(x, 1.5), ValueError);
  CHECK_THROWS_AS(quantile(x, 0.5, {}, false, "cubic"), ValueError);
  CHECK_THROWS_AS(quantile(x, tensor({0.5}, {f64})), ShapeError);
  CHECK_THROWS_AS(quantile(x.to(i64), 0.5), DTypeError);
  CHECK_THROWS_AS(quantile(zeros({0}), 0.5), ShapeError);
  CHECK_THROWS_AS(mode(zeros({2, 0})), ShapeError);
  CHECK_THROWS_AS(bincount(tensor({1, -1})), ValueError);
  CHECK_THROWS_AS(bincount(tensor({1, 2}), ones({3})), ShapeError);
  CHECK_THROWS_AS(bincount(tensor({INT64_MAX})), Error);
  CHECK(bincount(zeros({0}, {i64}), {}, 2).to_vector<int64_t>() == std::vector<int64_t>{0, 0});
  CHECK_THROWS_AS(histc(x, 0), ValueError);
  CHECK_THROWS_AS(histc(x, 5, 2, 1), ValueError);
  CHECK_THROWS_AS(histc(full({2}, INFINITY), 5), ValueError);
  CHECK_THROWS_AS(histogram(x, tensor({1.0}, {f32})), ShapeError);
  CHECK_THROWS_AS(cov(zeros({2, 2, 2})), ShapeError);
}

TEST_CASE("running results and searches: errors, and dims without elements") {
  CHECK_THROWS_AS(logcumsumexp(tensor({1, 2}), 0), DTypeError);
  CHECK_THROWS_AS(cumprod(ones({2}), 1), IndexError);
  CHECK_THROWS_AS(diff(ones({}), 1), ShapeError);
  CHECK_THROWS_AS(diff(ones({3}), -1), ValueError);
  CHECK(diff(ones({0, 3}), 1, 0).shape() == Shape{0, 3});
  CHECK(cummax(ones({2, 0}), 1).second.shape() == Shape{2, 0});
  CHECK(cumprod(ones({0, 2}), 0).shape() == Shape{0, 2});
  CHECK_THROWS_AS(searchsorted(ones({2, 3}), ones({3, 1})), ShapeError);
  CHECK_THROWS_AS(bucketize(ones({2}), ones({2, 2})), ShapeError);
  CHECK(searchsorted(zeros({0}), ones({2})).to_vector<int64_t>() == std::vector<int64_t>{0, 0});
  // NaN is larger than everything, as sort() has it.
  const double nan = std::nan("");
  const Tensor row = tensor({0.0, 1.0, nan});
  const Tensor wanted = tensor({nan, 2.0});
  CHECK(searchsorted(row, wanted).to_vector<int64_t>() == std::vector<int64_t>{2, 2});
  CHECK(searchsorted(row, wanted, true).to_vector<int64_t>() == std::vector<int64_t>{3, 2});
}

TEST_CASE("long rows: pieces and selections give what a walk from the front gives") {
  // A product whose pieces leave the range of double on their own.
  Tensor x = full({100000}, 1e10, {f64});
  x.narrow(0, 0, 1).fill_(0);
  CHECK(cumprod(x, 0).amax().item() == 0.0);
  const Tensor y = rand({200000}, {f32});
  const auto [sorted, order] = y.sort();
  CHECK(y.kthvalue(77777).second.item<int64_t>() == order.select(0, 77776).item<int64_t>());
  CHECK(y.topk(5, 0, false).second.equal(order.narrow(0, 0, 5)));
  CHECK(y.topk(150000, 0, false).first.equal(sorted.narrow(0, 0, 150000)));
  CHECK(cumprod(y.add(0.5), 0).dtype() == f32);
}

TEST_CASE("unique_consecutive counts runs that span pieces of a parallel loop") {
  // Runs of 1 to 3, a few long ones, and one of several pieces.
  std::vector<int64_t> want;
  for (int64_t i = 0; i < 60000; ++i) want.push_back(i % 5000 == 77 ? 40000 : i % 3 + 1);
  const Tensor counts = tensor(want, {i64});
  const Tensor values = arange(counts.numel()).remainder(2).to(f32);
  const Tensor x = repeat_interleave(values, counts);
  const Unique runs = unique_consecutive(x, true, true);
  CHECK(runs.values.eq(values).all().item<bool>());
  CHECK(runs.counts.shape() == counts.shape());
  CHECK(runs.counts.eq(counts).all().item<bool>());
  CHECK(runs.values.index_select(0, runs.inverse).eq(x).all().item<bool>());
  const Unique one = unique_consecutive(ones({100000}), false, true);
  CHECK(mismatch(one.counts, {1}, {100000}) == "");
}

TEST_CASE("norm, unique, split, repeat: errors") {
  CHECK_THROWS_AS(norm(tensor({1, 2})), DTypeError);
  CHECK_THROWS_AS(norm(zeros({0}), INFINITY), ShapeError);
  CHECK(norm(zeros({0})).item() == 0.0);
  CHECK_THROWS_AS(unique(zeros({}), false, false, 0), ShapeError);
  CHECK(unique(zeros({0})).values.numel() == 0);
  CHECK_THROWS_AS(split(zeros({5}), Shape{2, 2}), ShapeError);
  CHECK_THROWS_AS(tensor_split(zeros({5}), 0), ValueError);
  CHECK_THROWS_AS(hsplit(zeros({5}), 2), ShapeError);
  CHECK_THROWS_AS(repeat(zeros({2, 2}), {2}), ShapeError);
  CHECK_THROWS_AS(repeat(zeros({2}), {INT64_MAX}), ShapeError);
  CHECK_THROWS_AS(repeat_interleave(zeros({2}), tensor({1, -1}), 0), ValueError);
  CHECK_THROWS_AS(roll(zeros({2, 2}), {1, 1}, {0}), ShapeError);
  CHECK_THROWS_AS(movedim(zeros({2, 2}), {0}, {0, 1}), ShapeError);
  CHECK_THROWS_AS(unflatten(zeros({6}), 0, {4, -1}), ShapeError);
}
