#include "kiln/tensor/index/advanced_index.h"

#include <doctest/doctest.h>

#include "kiln/kiln.h"

using namespace kiln;

namespace {

Tensor base() { return arange(24.0).reshape({2, 3, 4}); }

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }

}  // namespace

TEST_CASE("index: integers and slices give a view") {
  const Tensor x = base();
  const IndexEntry entries[] = {IndexItem(1), IndexItem(Ellipsis), IndexItem(Slice(1, 3))};
  Tensor view = index(x, entries);
  CHECK(view.shape() == Shape{3, 2});
  view.fill_(-1);
  CHECK(x.sum().item() == 24 * 23 / 2 - (13 + 14 + 17 + 18 + 21 + 22) - 6);
}

TEST_CASE("index: one tensor takes the place of its dim") {
  const IndexEntry entries[] = {IndexItem(Slice()), tensor({2, -3}), IndexItem(0)};
  const Tensor y = index(base(), entries);
  CHECK(y.shape() == Shape{2, 2});
  CHECK(values(y) == std::vector<double>{8, 0, 20, 12});
}

TEST_CASE("index: tensors broadcast; neighbours stay in place, others go to the front") {
  const IndexEntry together[] = {IndexItem(Slice()), tensor({{0}, {2}}), tensor({1, 3})};
  CHECK(index(base(), together).shape() == Shape{2, 2, 2});
  CHECK(values(index(base(), together)) == std::vector<double>{1, 3, 9, 11, 13, 15, 21, 23});
  const IndexEntry apart[] = {tensor({0, 1, 1}), IndexItem(Slice()), tensor({0, 1, 3})};
  CHECK(index(base(), apart).shape() == Shape{3, 3});
  CHECK(values(index(base(), apart)) == std::vector<double>{0, 4, 8, 13, 17, 21, 15, 19, 23});
}

TEST_CASE("index: masks of one and several dims, and none that holds") {
  const IndexEntry rows[] = {tensor({true, false})};
  CHECK(index(base(), rows).shape() == Shape{1, 3, 4});
  const IndexEntry large[] = {base().gt(20.0)};
  CHECK(values(index(base(), large)) == std::vector<double>{21, 22, 23});
  const IndexEntry none[] = {base().gt(99.0)};
  CHECK(index(base(), none).shape() == Shape{0});
}

TEST_CASE("index: what is refused") {
  const Tensor x = base();
  const auto at = [&x](IndexEntry entry) { return index(x, std::span(&entry, 1)); };
  CHECK_THROWS_AS(at(tensor({2})), IndexError);
  CHECK_THROWS_AS(at(tensor({-3})), IndexError);
  CHECK_THROWS_AS(at(tensor({0.5})), DTypeError);
  CHECK_THROWS_AS(at(tensor({true, false, true})), IndexError);
  const IndexEntry many[] = {IndexItem(0), IndexItem(0), tensor({0}), tensor({0})};
  CHECK_THROWS_AS(index(x, many), IndexError);
  const IndexEntry dots[] = {IndexItem(Ellipsis), IndexItem(Ellipsis)};
  CHECK_THROWS_AS(index(x, dots), IndexError);
}

TEST_CASE("index: the gradient of an element counts how often it was taken") {
  Tensor x = base().requires_grad_();
  const IndexEntry entries[] = {IndexItem(0), tensor({1, 1, 2})};
  const Gradients grads = index(x, entries).sum().backward();
  const Tensor grad = *grads.get(x);
  CHECK(values(grad.sum(Dims{0, 2})) == std::vector<double>{0, 8, 4});
}

TEST_CASE("index_put_: writes, broadcasts, converts, adds") {
  Tensor x = zeros({2, 3}, {i64});
  const IndexEntry corner[] = {tensor({0, 1}), tensor({2, 0})};
  index_put_(x, corner, tensor({5.0, 7.0}));
  CHECK(values(x) == std::vector<double>{0, 0, 5, 7, 0, 0});
  const IndexEntry row[] = {IndexItem(1)};
  index_put_(x, row, tensor({{1, 2, 3}}));
  CHECK(values(x) == std::vector<double>{0, 0, 5, 1, 2, 3});
  const IndexEntry twice[] = {tensor({0, 0})};
  index_put_(x, twice, tensor({1}), true);
  CHECK(values(x) == std::vector<double>{2, 2, 7, 1, 2, 3});
  const IndexEntry mask[] = {x.gt(2)};
  index_put_(x, mask, tensor(0));
  CHECK(values(x) == std::vector<double>{2, 2, 0, 1, 2, 0});
  CHECK_THROWS_AS(index_put_(x, row, ones({2})), ShapeError);
}

TEST_CASE("index_put_: where a mask holds, of some or all dims") {
  const Tensor mask = base().gt(10.0);
  Tensor x = base();
  const IndexEntry all[] = {mask};
  index_put_(x, all, full({}, -1.0));
  CHECK(values(x) == values(where(mask, full({}, -1.0), base())));
  index_put_(x, all, arange(13.0));
  CHECK(x.sum().item() == 55 + 78);
  index_put_(x, all, ones({13}), true);
  CHECK(x.sum().item() == 55 + 78 + 13);
  x = base();
  const IndexEntry leading[] = {base().select(2, 0).gt(10.0)};
  index_put_(x, leading, zeros({4}));
  CHECK(x.sum().item() == 66);
  CHECK_THROWS_AS(index_put_(x, std::vector<IndexEntry>{ones({2, 4}, {bool_})}, zeros({4})),
                  IndexError);
  Tensor tracked = base().mul(1.0).requires_grad_();
  Tensor y = tracked.clone();
  Tensor source = ones({13}).requires_grad_();
  index_put_(y, all, source);
  const Gradients grads = y.sum().backward();
  CHECK(grads.get(source)->sum().item() == 13);
  CHECK(grads.get(tracked)->sum().item() == 11);
}

TEST_CASE("index_put_: indices apart, some of them in every dim") {
  Tensor x = base();
  const IndexEntry apart[] = {tensor({0, 1, 1}), IndexItem(Slice()), tensor({0, 1, 3})};
  index_put_(x, apart, full({3, 3}, -1.0));
  CHECK(values(index(x, apart)) == std::vector<double>(9, -1.0));
  CHECK(x.eq(-1.0).sum().item() == 9);
  Tensor view = base().transpose(0, 2);  // [4, 3, 2], not contiguous
  const Tensor whole = view;
  const IndexEntry pair[] = {tensor({0, 3, 0}), tensor({1, 2, 1})};
  index_put_(view, pair, ones({3, 2}), true);
  CHECK(whole.sum().item() == 24 * 23 / 2 + 6);
  CHECK(values(whole.select(0, 0).select(0, 1)) == std::vector<double>{4 + 2, 16 + 2});
}

TEST_CASE("index_put_: into a view that is not contiguous") {
  Tensor x = zeros({3, 2});
  Tensor t = x.t();
  const IndexEntry entries[] = {IndexItem(Slice()), tensor({0, 2})};
  index_put_(t, entries, tensor({{1, 2}, {3, 4}}));
  CHECK(values(x) == std::vector<double>{1, 3, 0, 0, 2, 4});
}

TEST_CASE("index_put_: recorded, with gradients for what was kept and what was written") {
  Tensor x = ones({3}).requires_grad_();
  Tensor v = full({2}, 5.0).requires_grad_();
  Tensor y = x * 2;
  const IndexEntry entries[] = {tensor({2, 0})};
  index_put_(y, entries, v);
  const Gradients grads = (y * tensor({1.0, 10.0, 100.0})).sum().backward();
  CHECK(values(*grads.get(x)) == std::vector<double>{0, 20, 0});
  CHECK(values(*grads.get(v)) == std::vector<double>{100, 1});
}

TEST_CASE("nonzero and masked_select") {
  CHECK(nonzero(tensor({{0, 3}, {5, 0}})).to_vector<int64_t>() == std::vector<int64_t>{0, 1, 1, 0});
  CHECK(nonzero(zeros({2, 2})).shape() == Shape{0, 2});
  CHECK(nonzero(tensor(3.0)).shape() == Shape{1, 0});
  CHECK(values(masked_select(base(), tensor({true, false, false, true}))).size() == 12);
  CHECK_THROWS_AS(masked_select(base(), ones({4})), DTypeError);
}
