// Training in several processes beside training in one.
#include <mutex>

#include <doctest/doctest.h>

#include "kiln/distributed/error.h"
#include "kiln/kiln.h"
#include "kiln/train/learner.h"
#include "tests/distributed/ranks.h"

using namespace kiln;
using namespace kiln::distributed;
using functional::mse_loss;
using test::in_group;

namespace {

class Net : public nn::Module {
 public:
  nn::Linear a{4, 8};
  nn::BatchNorm1d norm{8};
  nn::Linear b{8, 3};
  nn::Linear unused{2, 2};

  Tensor forward(const Tensor& x) { return b(relu(norm(a(x)))); }
  KILN_MODULE(Net, a, norm, b, unused)
};

Tensor batch(int64_t rows, int64_t columns, int seed) {
  return (arange(rows * columns) * seed + 1.0).sin().view({rows, columns});
}

}  // namespace

TEST_CASE("hooks exchange gradients in their own way") {
  in_group(2, [](ProcessGroup& group) {
    const std::shared_ptr<ProcessGroup> shared(&group, [](ProcessGroup*) {});
    nn::Linear net{4, 3};
    net.load_state_dict({{"weight", batch(3, 4, 2)}, {"bias", batch(1, 3, 3).view({3})}});
    const Tensor x = batch(6, 4, 5).narrow(0, 3 * group.rank(), 3);
    const auto gradient = [&](GradientHook hook) {
      DistributedDataParallel replicas(net, shared, {.bucket_cap_mb = 1e-5});
      replicas.register_comm_hook(std::move(hook));
      net.zero_grad();
      net.forward(x).pow(2).mean().backward_accumulate();
      return net.weight.val().grad().clone();
    };
    const Tensor mean = gradient({});
    const Tensor rounded = gradient(compressed_gradients(shared, DType::bf16));
    CHECK(allclose(rounded, mean, 1e-2, 1e-3));
    CHECK_FALSE(rounded.equal(mean));
    CHECK(rounded.to(DType::bf16).to(DType::f32).equal(rounded));
    std::vector<int64_t> seen;
    const Tensor twice = gradient([&](const GradientBucket& bucket) {
      seen.push_back(bucket.index);
      CHECK(bucket.is_last == (bucket.index == 1));
      CHECK(bucket.gradients()[0].shape() == bucket.parameters[0].shape());
      const Work work = shared->all_reduce(bucket.buffer, ReduceOp::sum, true);
      return [work, buffer = bucket.buffer] {
        work.wait();
        return buffer;
      };
    });
    CHECK(allclose(twice, mean * 2.0, 1e-6, 1e-7));
    CHECK(seen == std::vector<int64_t>{0, 1});
    const auto nothing = [](const GradientBucket&) { return [] { return Tensor(); }; };
    CHECK_THROWS_WITH_AS(static_cast<void>(gradient(nothing)),
                         doctest::Contains("a hook must give 3 elements"), ValueError);
    CHECK_THROWS_AS(compressed_gradients(shared, DType::i64), ValueError);
  });
}

TEST_CASE("gradients are the mean over the processes, in buckets of any size") {
  manual_seed(1);
  Net reference;
  reference.materialize();
  reference.eval();  // statistics that batches do not change
  const Tensor x = batch(12, 4, 2);
  const Tensor y = batch(12, 3, 3);
  mse_loss(reference.forward(x), y).backward_accumulate();
  for (const double bucket : {25.0, 1e-4}) {
    in_group(3, [&](ProcessGroup& group) {
      static std::mutex mutex;
      Net net;
      {
        const std::lock_guard lock(mutex);  // random numbers are the process's own
        net.materialize();
      }
      net.eval();
      if (group.rank() == 0) net.load_state_dict(reference.state_dict());
      const std::shared_ptr<ProcessGroup> shared(&group, [](ProcessGroup*) {});
      DistributedDataParallel replicas(net, shared, {.bucket_cap_mb = bucket});
      CHECK((replicas.reducer().buckets().size() > 3) == (bucket < 1));
      const Tensor own_x = x.narrow(0, 4 * group.rank(), 4);
      const Tensor own_y = y.narrow(0, 4 * group.rank(), 4);
      for (int pass = 0; pass < 3; ++pass) {
        net.zero_grad();
        mse_loss(net.forward(own_x), own_y).backward_accumulate();
        const std::vector<Tensor> expected = reference.parameters();
        const std::vector<Tensor> found = net.parameters();
        for (size_t i = 0; i < found.size(); ++i) {
          REQUIRE(found[i].grad().defined() == expected[i].grad().defined());
          if (found[i].grad().defined())
            CHECK(allclose(found[i].grad(), expected[i].grad(), 1e-5, 1e-7));
        }
      }
      // The same of gradients that are apart from the parameters.
      const Gradients apart = mse_loss(net.forward(own_x), own_y).backward();
      CHECK(allclose(apart[net.b.weight.val()], reference.b.weight.val().grad(), 1e-5, 1e-7));
      CHECK_FALSE(apart.get(net.unused.weight.val()).has_value());
      // Two passes add up in each process alone; the third makes the mean of all.
      net.zero_grad();
      {
        const auto alone = replicas.no_sync();
        for (int i = 0; i < 2; ++i) mse_loss(net.forward(own_x), own_y).backward_accumulate();
      }
      mse_loss(net.forward(own_x), own_y).backward_accumulate();
      CHECK(allclose(net.a.weight.val().grad(), reference.a.weight.val().grad() * 3, 1e-5, 1e-6));
    });
  }
}

TEST_CASE("a part that only some processes use counts as 0 in the others") {
  in_group(2, [](ProcessGroup& group) {
    Tensor a = ones({2}, {.requires_grad = true});
    Tensor b = ones({2}, {.requires_grad = true});
    Tensor c = ones({2}, {.requires_grad = true});
    const std::shared_ptr<ProcessGroup> shared(&group, [](ProcessGroup*) {});
    {
      const GradientReducer reducer({a, b, c}, shared);
      Tensor loss = (a * 2).sum();
      if (group.rank() == 1) loss = loss + (b * 8).sum();
      loss.backward_accumulate();
      CHECK(a.grad().to_vector<float>() == std::vector<float>{2, 2});
      CHECK(b.grad().to_vector<float>() == std::vector<float>{4, 4});
      CHECK_FALSE(c.grad().defined());
      // A pass that fails leaves nothing behind.
      a.zero_grad();
      b.zero_grad();
      Tensor bad = a * 1;
      bad.register_hook([](const Tensor& g) -> Tensor {
        throw_error<ValueError>("no");
        return g;
      });
      if (group.rank() == 2) bad.sum().backward_accumulate();
      CHECK_THROWS_AS(bad.sum().backward_accumulate(), ValueError);
      (a * 3).sum().backward_accumulate();
      CHECK(a.grad().to_vector<float>() == std::vector<float>{3, 3});
    }
    // Without the reducer each process has its own.
    a.zero_grad();
    (a * (1 + group.rank())).sum().backward_accumulate();
    CHECK(a.grad().to_vector<float>() == std::vector<float>(2, 1.0f + group.rank()));
    CHECK_THROWS_AS(GradientReducer({}, shared), ValueError);
    CHECK_THROWS_AS(GradientReducer({a}, nullptr), ValueError);
    CHECK_THROWS_AS(GradientReducer({a}, shared, 0), ValueError);
  });
}

TEST_CASE("models that differ are refused, buffers follow rank 0") {
  in_group(2, [](ProcessGroup& group) {
    const std::shared_ptr<ProcessGroup> shared(&group, [](ProcessGroup*) {});
    nn::BatchNorm1d norm(3);
    DistributedDataParallel replicas(norm, shared);
    norm.forward(full({4, 3}, 1.0 + group.rank()));
    CHECK(norm.buffers()[0][0].item<float>() == doctest::Approx(0.1 * (1 + group.rank())));
    replicas.sync_buffers();
    CHECK(norm.buffers()[0][0].item<float>() == doctest::Approx(0.1));
  });
  const auto store = std::make_shared<HashStore>();
  const auto refused = [&](int rank) {
    const auto group = std::make_shared<ProcessGroup>(store, rank, 2);
    nn::Linear net(2, 3 + rank);
    CHECK_THROWS_AS(
        [&] {
          DistributedDataParallel replicas(net, group);
          group->barrier();
        }(),
        DistBackendError);
  };
  std::thread other([&] { refused(1); });
  refused(0);
  other.join();
}
