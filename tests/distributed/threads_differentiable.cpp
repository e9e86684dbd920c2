// Operations with gradients, and SyncBatchNorm: beside one process that has all values.
#include <functional>
#include <mutex>

#include <doctest/doctest.h>

#include "kiln/distributed/differentiable.h"
#include "kiln/distributed/sync_batch_norm.h"
#include "kiln/kiln.h"
#include "tests/distributed/ranks.h"

using namespace kiln;
using namespace kiln::distributed;
using test::in_group;

namespace {

constexpr int kSize = 3;

Tensor values(int rank) { return (arange(4.0) + 1.3 * rank).sin(); }

// What a rank's part of the loss makes of an operation's results.
Tensor weighed(const Tensor& x, int rank) { return (x.square() * (1.0 + rank)).sum(); }

// Zeros where the loss does not depend on one.
TensorList gradients_of(const Tensor& loss, const TensorList& inputs) {
  TensorList out =
      grad(std::span<const Tensor>(&loss, 1), inputs, {.create_graph = true, .allow_unused = true});
  for (size_t i = 0; i < out.size(); ++i) {
    if (!out[i].defined()) out[i] = zeros_like(inputs[i]);
  }
  return out;
}

// Of the sum of all ranks' losses: by the operation in several processes, and by `whole`, which has
// the values of all ranks and gives what each rank gets. First and second derivatives agree.
void compare(const std::function<Tensor(const Tensor&, const differentiable::Group&)>& part,
             const std::function<TensorList(const TensorList&)>& whole) {
  TensorList all;
  for (int rank = 0; rank < kSize; ++rank) all.push_back(values(rank).requires_grad_());
  const TensorList results = whole(all);
  Tensor loss = zeros({});
  for (int rank = 0; rank < kSize; ++rank) loss = loss + weighed(results[rank], rank);
  const TensorList grads = gradients_of(loss, all);
  Tensor second_loss = zeros({});
  for (int rank = 0; rank < kSize; ++rank) second_loss = second_loss + weighed(grads[rank], rank);
  const TensorList seconds = gradients_of(second_loss, all);
  in_group(kSize, [&](ProcessGroup& group) {
    const differentiable::Group shared(&group, [](ProcessGroup*) {});
    const auto rank = static_cast<size_t>(group.rank());
    const Tensor x = values(group.rank()).requires_grad_();
    const Tensor result = part(x, shared);
    CHECK(allclose(result.detach(), results[rank].detach(), 1e-5, 1e-6));
    const Tensor first = gradients_of(weighed(result, group.rank()), {x})[0];
    CHECK(allclose(first.detach(), grads[rank].detach(), 1e-5, 1e-6));
    const Tensor second = gradients_of(weighed(first, group.rank()), {x})[0];
    CHECK(allclose(second.detach(), seconds[rank].detach(), 1e-5, 1e-6));
  });
}

Tensor sum_of(const TensorList& all) { return all[0] + all[1] + all[2]; }

}  // namespace

TEST_CASE("gradients of all_reduce, reduce and broadcast") {
  compare([](const Tensor& x, const auto& group) { return differentiable::all_reduce(x, group); },
          [](const TensorList& all) { return TensorList(kSize, sum_of(all)); });
  compare(
      [](const Tensor& x, const auto& group) {
        return differentiable::all_reduce(x * x, group, ReduceOp::avg);
      },
      [](const TensorList& all) {
        return TensorList(kSize, sum_of({all[0] * all[0], all[1] * all[1], all[2] * all[2]}) / 3.0);
      });
  compare([](const Tensor& x, const auto& group) { return differentiable::broadcast(x, 1, group); },
          [](const TensorList& all) { return TensorList(kSize, all[1] * 1.0); });
  // Others than the root have a copy without a part in the gradient.
  compare([](const Tensor& x, const auto& group) { return differentiable::reduce(x, 2, group); },
          [](const TensorList& all) {
            return TensorList{all[0].detach(), all[1].detach(), sum_of(all)};
          });
}

TEST_CASE("gradients of all_gather, reduce_scatter and all_to_all") {
  compare(
      [](const Tensor& x, const auto& group) {
        return stack(differentiable::all_gather(x, group), 0) * (1.0 + group->rank());
      },
      [](const TensorList& all) {
        const Tensor rows = stack(all, 0);
        return TensorList{rows, rows * 2.0, rows * 3.0};
      });
  compare(
      [](const Tensor& x, const auto& group) {
        return differentiable::reduce_scatter({x, x * x, x * 3.0}, group);
      },
      [](const TensorList& all) {
        return TensorList{sum_of(all), sum_of({all[0] * all[0], all[1] * all[1], all[2] * all[2]}),
                          sum_of(all) * 3.0};
      });
  // Rank r sends r + 1 numbers to each.
  compare(
      [](const Tensor& x, const auto& group) {
        const int64_t own = group->rank() + 1;
        TensorList parts;
        for (int peer = 0; peer < kSize; ++peer)
          parts.push_back(x.narrow(0, 0, own) * (peer + 1.0));
        return cat(differentiable::all_to_all(parts, {Shape{1}, Shape{2}, Shape{3}}, group), 0);
      },
      [](const TensorList& all) {
        TensorList out;
        for (int rank = 0; rank < kSize; ++rank) {
          out.push_back(
              cat({all[0].narrow(0, 0, 1), all[1].narrow(0, 0, 2), all[2].narrow(0, 0, 3)}, 0) *
              (rank + 1.0));
        }
        return out;
      });
}

TEST_CASE("what has no gradient is refused") {
  in_group(2, [](ProcessGroup& group) {
    const differentiable::Group shared(&group, [](ProcessGroup*) {});
    CHECK_THROWS_AS(differentiable::all_reduce(ones({1}), shared, ReduceOp::max), ValueError);
    CHECK_THROWS_AS(differentiable::all_reduce(ones({1}), nullptr), ValueError);
    CHECK_THROWS_AS(SyncBatchNorm(3, nullptr), ValueError);
  });
}

TEST_CASE("SyncBatchNorm is BatchNorm over the batches of all processes") {
  for (const Shape& shape : {Shape{9, 4}, Shape{9, 4, 3, 2}}) {
    const Tensor x = (arange(static_cast<double>(shape.numel())) * 0.7).sin().view(shape);
    const Tensor weights = (arange(static_cast<double>(shape.numel())) * 0.3).cos().view(shape);
    nn::BatchNorm2d norm2(4);
    nn::BatchNorm1d norm1(4);
    const Tensor whole = x.clone().requires_grad_();
    const Tensor y = shape.size() == 2 ? norm1(whole) : norm2(whole);
    (y * y * weights).sum().backward_accumulate();
    const nn::StateDict state = shape.size() == 2 ? norm1.state_dict() : norm2.state_dict();
    const Tensor weight_grad =
        shape.size() == 2 ? norm1.weight.val().grad() : norm2.weight.val().grad();
    std::mutex mutex;
    Tensor sum = zeros({4});
    in_group(2, [&](ProcessGroup& group) {
      const differentiable::Group shared(&group, [](ProcessGroup*) {});
      SyncBatchNorm norm(4, shared);
      // 2 rows here, 7 there.
      const int64_t begin = group.rank() == 0 ? 0 : 2;
      const int64_t rows = group.rank() == 0 ? 2 : 7;
      const Tensor part = x.narrow(0, begin, rows).clone().requires_grad_();
      const Tensor out = norm(part);
      CHECK(allclose(out.detach(), y.detach().narrow(0, begin, rows), 1e-5, 1e-5));
      (out * out * weights.narrow(0, begin, rows)).sum().backward_accumulate();
      CHECK(allclose(part.grad(), whole.grad().narrow(0, begin, rows), 1e-4, 1e-5));
      for (const char* name : {"running_mean", "running_var", "num_batches_tracked"}) {
        CHECK(allclose(norm.state_dict().at(name).to(f32), state.at(name).to(f32), 1e-5, 1e-6));
      }
      {
        const std::lock_guard lock(mutex);
        sum = sum + norm.weight.val().grad();
      }
      norm.eval();
      CHECK(norm(part).shape() == part.shape());
      CHECK_THROWS_AS(norm(zeros({2, 5})), ShapeError);
    });
    CHECK(allclose(sum, weight_grad, 1e-4, 1e-4));
  }
}
