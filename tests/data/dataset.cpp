#include "kiln/data/dataset.h"

#include <doctest/doctest.h>

#include "kiln/data/digits.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::data;
using kiln::test::message_of;

namespace {

bool has_text(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// Rows 0, 1, ..: {{0, 1}, {2, 3}, ..} f32 and the row's number i64.
TensorDataset counting_dataset(int64_t rows) {
  return TensorDataset(arange(rows * 2, {f32}).reshape({rows, 2}), arange(rows));
}

std::vector<int64_t> numbers(const Tensor& x) { return x.to_vector<int64_t>(); }

}  // namespace

TEST_CASE("an Example is indexed, and its first two tensors bind to names") {
  Example e{ones({2}), tensor(Scalar(7)), zeros({3})};
  CHECK(e.size() == 3);
  CHECK(e.input().numel() == 2);
  CHECK(e.target().item<int>() == 7);
  CHECK(e[2].numel() == 3);
  const auto& [x, y] = e;
  CHECK(x.is_same(e[0]));
  CHECK(y.is_same(e[1]));
  auto [a, b] = std::move(e);
  CHECK(a.numel() == 2);
  CHECK(b.item<int>() == 7);
  CHECK_THROWS_AS(Example()[0], IndexError);
  CHECK(has_text(message_of<IndexError>([] { Example{ones({1})}.target(); }), "got 1 for 1"));
}

TEST_CASE("collate stacks each place: any dtype, 0-d, empty, not contiguous") {
  const std::vector<Example> two{{tensor({{1, 2}, {3, 4}}).t(), tensor(Scalar(5)), ones({0})},
                                 {tensor({{5, 6}, {7, 8}}), tensor(Scalar(6)), ones({0})}};
  const Batch batch = collate(two);
  CHECK(batch.size() == 3);
  CHECK(batch[0].shape() == Shape{2, 2, 2});
  CHECK(numbers(batch[0]) == std::vector<int64_t>{1, 3, 2, 4, 5, 6, 7, 8});
  CHECK(numbers(batch[1]) == std::vector<int64_t>{5, 6});
  CHECK(batch[2].shape() == Shape{2, 0});
  for (const DType t : {f64, f32, f16, bf16, i64, i32, i16, i8, u8, bool_}) {
    const std::vector<Example> one{{ones({3}, {t})}, {zeros({3}, {t})}};
    const Batch b = collate(one);
    CHECK(b[0].dtype() == t);
    CHECK(numbers(b[0]) == std::vector<int64_t>{1, 1, 1, 0, 0, 0});
  }
}

TEST_CASE("collate on another device") {
  const Device reference(kReference);
  const std::vector<Example> two{{ones({2}, {.device = reference})},
                                 {zeros({2}, {.device = reference})}};
  const Batch batch = collate(two);
  CHECK(batch[0].device() == reference);
  CHECK(batch[0].to_vector<float>() == std::vector<float>{1, 1, 0, 0});
}

TEST_CASE("collate says what does not fit") {
  const auto error = [](const Example& a, const Example& b) {
    const std::vector<Example> both{a, b};
    return message_of<Error>([&] { collate(both); });
  };
  CHECK(has_text(error({ones({2})}, {ones({3})}), "differs in shape; got [3]"));
  CHECK(has_text(error({ones({2})}, {ones({2}, {f64})}), "differs in dtype; got float64"));
  CHECK(has_text(error({ones({2})}, {ones({2}, {.device = Device(kReference)})}), "device"));
  CHECK(has_text(error({ones({2})}, {ones({2}), ones({2})}), "number of tensors"));
  CHECK_THROWS_AS(collate({}), ValueError);
}

TEST_CASE("TensorDataset: rows, as copies") {
  const Tensor x = arange(6, {f32}).reshape({3, 2});
  const TensorDataset set(x, arange(3));
  CHECK(set.size() == 3);
  const Example e = set.get(1);
  CHECK(e.input().shape() == Shape{2});
  CHECK(e.input().to_vector<float>() == std::vector<float>{2, 3});
  CHECK(e.target().shape() == Shape{});
  CHECK(e.target().item<int>() == 1);
  Tensor writable = e.input();
  writable.fill_(-1);
  CHECK(x.to_vector<float>() == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK_THROWS_AS(set.get(3), IndexError);
  CHECK_THROWS_AS(set.get(-1), IndexError);
}

TEST_CASE("TensorDataset: a batch gathers rows, in any order, repeated, none") {
  const TensorDataset set = counting_dataset(4);
  const std::vector<int64_t> indices{3, 0, 3};
  const Batch batch = set.get_batch(indices);
  CHECK(batch.input().to_vector<float>() == std::vector<float>{6, 7, 0, 1, 6, 7});
  CHECK(numbers(batch.target()) == indices);
  CHECK(set.get_batch({}).input().shape() == Shape{0, 2});
  const std::vector<int64_t> bad{0, 4};
  CHECK(has_text(message_of<IndexError>([&] { set.get_batch(bad); }), "got 4 for 4 samples"));
}

TEST_CASE("TensorDataset: views, tracked tensors, rows without elements") {
  const Tensor tracked = arange(6, {f32}).reshape({2, 3}).requires_grad_();
  const TensorDataset set{tracked.t()};
  const std::vector<int64_t> indices{2, 0};
  const Batch batch = set.get_batch(indices);
  CHECK(batch[0].to_vector<float>() == std::vector<float>{2, 5, 0, 3});
  CHECK_FALSE(batch[0].requires_grad());
  const TensorDataset hollow{zeros({3, 0, 2})};
  CHECK(hollow.get(2)[0].shape() == Shape{0, 2});
  CHECK(TensorDataset{zeros({0, 2})}.size() == 0);
}

TEST_CASE("TensorDataset: bad tensors") {
  CHECK_THROWS_AS(TensorDataset(ones({2, 1}), ones({3})), ShapeError);
  CHECK_THROWS_AS(TensorDataset{tensor(Scalar(1))}, ShapeError);
  CHECK_THROWS_AS(TensorDataset(std::vector<Tensor>()), ValueError);
}

TEST_CASE("TensorDataset of images adds the channel") {
  const ImageSet images = make_digits(20, 1);
  const TensorDataset set(images);
  CHECK(set.size() == 20);
  const Example e = set.get(7);
  CHECK(e.input().shape() == Shape{1, 28, 28});
  CHECK(e.input().dtype() == u8);
  CHECK(e.target().item<int64_t>() == images.labels.as<int64_t>()[7]);
}

TEST_CASE("FunctionDataset and MapDataset") {
  const FunctionDataset squares(5, [](int64_t i) { return Example{tensor(Scalar(i * i))}; });
  CHECK(squares.size() == 5);
  CHECK(squares.get(3)[0].item<int>() == 9);
  CHECK_THROWS_AS(squares.get(5), IndexError);
  const MapDataset doubled(squares, [](Example e) { return Example{e[0] * 2}; });
  CHECK(doubled.size() == 5);
  const std::vector<int64_t> indices{4, 1};
  CHECK(numbers(doubled.get_batch(indices)[0]) == std::vector<int64_t>{32, 2});
  CHECK_THROWS_AS(FunctionDataset(-1, [](int64_t) { return Example(); }), ValueError);
  CHECK_THROWS_AS(FunctionDataset(1, nullptr), ValueError);
  CHECK_THROWS_AS(MapDataset(squares, nullptr), ValueError);
}

TEST_CASE("Subset: indices, a range, subsets of subsets") {
  const auto set = std::make_shared<TensorDataset>(counting_dataset(10));
  const Subset some(set, {9, 2, 2});
  CHECK(some.size() == 3);
  CHECK(some.get(0).target().item<int>() == 9);
  const Subset part(set, 4, 8);
  CHECK(part.size() == 4);
  const Subset inner(part, {3, 0});
  const std::vector<int64_t> both{0, 1};
  CHECK(numbers(inner.get_batch(both).target()) == std::vector<int64_t>{7, 4});
  CHECK_THROWS_AS(Subset(set, {10}), IndexError);
  CHECK_THROWS_AS(Subset(set, 8, 11), IndexError);
  CHECK_THROWS_AS(Subset(set, 3, 2), IndexError);
  CHECK_THROWS_AS(inner.get(2), IndexError);
  CHECK_THROWS_AS(inner.get_batch(std::vector<int64_t>{2}), IndexError);
  CHECK_THROWS_AS(Subset(std::shared_ptr<const Dataset>(), {}), ValueError);
}

TEST_CASE("ConcatDataset") {
  const ConcatDataset all({counting_dataset(2), counting_dataset(0), counting_dataset(3)});
  CHECK(all.size() == 5);
  std::vector<int> seen;
  for (int64_t i = 0; i < 5; ++i) seen.push_back(all.get(i).target().item<int>());
  CHECK(seen == std::vector<int>{0, 1, 0, 1, 2});
  CHECK_THROWS_AS(all.get(5), IndexError);
  CHECK(ConcatDataset({}).size() == 0);
}

TEST_CASE("random_split: disjoint, a function of the seed") {
  const TensorDataset set = counting_dataset(100);
  const auto targets = [](const Subset& part) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < part.size(); ++i) all.push_back(part.get(i).target().item<int64_t>());
    return all;
  };
  const auto parts = random_split(set, {70, 25, 5}, 3);
  REQUIRE(parts.size() == 3);
  std::vector<bool> seen(100, false);
  for (const Subset& part : parts) {
    for (const int64_t i : targets(part)) {
      CHECK_FALSE(seen[static_cast<size_t>(i)]);
      seen[static_cast<size_t>(i)] = true;
    }
  }
  CHECK(targets(parts[2]).size() == 5);
  CHECK(targets(random_split(set, {70, 30}, 3)[0]) == targets(parts[0]));
  CHECK(targets(random_split(set, {70, 30}, 4)[0]) != targets(parts[0]));
  CHECK_THROWS_AS(random_split(set, {60, 41}, 0), ValueError);
  CHECK_THROWS_AS(random_split(set, {-1}, 0), ValueError);
  CHECK_THROWS_AS(random_split(set, {-1, 101}, 0), ValueError);
  CHECK(message_of<ValueError>([&] {
          random_split(set, {70, 20}, 0);
        }) == "random_split: the sizes must add up to the dataset's; got 90; expected 100");
}

TEST_CASE("random_split: fractions, the rest to the first parts") {
  const TensorDataset set = counting_dataset(10);
  const auto sizes = [&](const std::vector<double>& fractions) {
    std::vector<int64_t> out;
    for (const Subset& part : random_split(set, fractions, 1)) out.push_back(part.size());
    return out;
  };
  CHECK(sizes({0.8, 0.2}) == std::vector<int64_t>{8, 2});
  CHECK(sizes({0.33, 0.33, 0.34}) == std::vector<int64_t>{4, 3, 3});
  CHECK(sizes({0.25, 0.25, 0.5}) == std::vector<int64_t>{3, 2, 5});
  CHECK(sizes({1.0, 0.0}) == std::vector<int64_t>{10, 0});
  CHECK_THROWS_AS(sizes({0.5, 0.4}), ValueError);
  CHECK_THROWS_AS(sizes({1.5, -0.5}), ValueError);
  CHECK_THROWS_AS(sizes({}), ValueError);
}
