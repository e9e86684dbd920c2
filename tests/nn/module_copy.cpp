// Copies of modules are independent models.
#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/data/data_loader.h"
#include "kiln/nn/any_module.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::Linear;
using kiln::nn::Module;
using kiln::nn::Param;
using kiln::test::Block;
using kiln::test::message_of;
using kiln::test::near;
using kiln::test::Net;

namespace {

// Whether two models have the same names and values, and no tensor in common.
bool are_independent_twins(const Module& a, const Module& b) {
  const auto first = a.named_parameters();
  const auto second = b.named_parameters();
  if (first.size() != second.size()) return false;
  for (size_t i = 0; i < first.size(); ++i) {
    const Tensor& x = first[i].second;
    const Tensor& y = second[i].second;
    if (first[i].first != second[i].first || !x.equal(y)) return false;
    if (x.is_same(y) || x.data_ptr<float>() == y.data_ptr<float>()) return false;
    if (x.requires_grad() != y.requires_grad()) return false;
  }
  return true;
}

struct Sharing : Module {
  std::shared_ptr<Linear> a = std::make_shared<Linear>(2, 2);
  std::shared_ptr<Linear> b = a;
  Linear tied{2, 2, false};
  KILN_MODULE(Sharing, a, b, tied)
};

struct Owning : Module {
  std::unique_ptr<Linear> part = std::make_unique<Linear>(2, 2);
  KILN_MODULE(Owning, part)
};

struct Sliced : Block {};

}  // namespace

TEST_CASE("copy: values are cloned") {
  Net net;
  net.materialize();
  net.eval();
  net.conv.requires_grad_(false);
  Net copy = net;
  CHECK(are_independent_twins(net, copy));
  CHECK(!copy.is_training());
  {
    NoGradGuard no_grad;
    net.steps->fill_(7);
    net.conv.weight->fill_(3.0);
  }
  CHECK(copy.steps->item<int64_t>() == 0);
  CHECK(!copy.conv.weight->equal(*net.conv.weight));
  // What is trained is the copy's own.
  const Tensor before = net.scale->detach().clone();
  copy(ones({1, 1, 3, 3})).sum().backward_accumulate();
  CHECK(copy.scale->grad().defined());
  CHECK(!net.scale->grad().defined());
  Net assigned;
  assigned = net;
  CHECK(are_independent_twins(net, assigned));
}

TEST_CASE("copy: what is lazy stays lazy, and becomes equal") {
  manual_seed(1);
  Linear layer(3, 3);
  const Linear copy = layer;
  CHECK(!copy.weight.is_initialized());
  CHECK(layer.weight->equal(*copy.weight));
  CHECK(layer.weight->data_ptr<float>() != copy.weight->data_ptr<float>());
  // The last copy needs the values alone.
  const Linear last = [] {
    const Linear first(2, 2);
    return Linear(first);
  }();
  CHECK(last.weight->requires_grad());
  CHECK(last.weight->is_leaf());
}

TEST_CASE("copy: moving keeps the tensors") {
  Net net;
  const Tensor weight = *net.conv.weight;
  const Tensor head = *net.head.at<Linear>(0).weight;
  const Net moved = std::move(net);
  CHECK(moved.conv.weight->is_same(weight));
  CHECK(moved.head.at<Linear>(0).weight->is_same(head));
}

TEST_CASE("clone: the copy has the static type") {
  Net net;
  const std::unique_ptr<Net> copy = net.clone();
  net.materialize();
  const std::unique_ptr<Module> erased = static_cast<const Module&>(net).clone();
  CHECK(erased->type_name() == "Net");
  CHECK(erased->as<Net>() != nullptr);
  CHECK(are_independent_twins(net, *erased));
}

TEST_CASE("clone: shared parts are copied and stay shared, tied parameters stay tied") {
  Sharing net;
  net.tied.weight = Param<Tensor>::initialized(nn::ParamId(), *net.a->weight);
  const Sharing plain = net;
  CHECK(plain.a == net.a);

  const auto copy = net.clone();
  CHECK(copy->a != net.a);
  CHECK(copy->a == copy->b);
  CHECK(copy->a->weight->equal(*net.a->weight));
  CHECK(!copy->a->weight->is_same(*net.a->weight));
  CHECK(copy->tied.weight->is_same(*copy->a->weight));
  CHECK(copy->parameters().size() == net.parameters().size());
}

TEST_CASE("clone: what cannot be copied says so") {
  CHECK(message_of<NotImplementedError>([] { Owning().clone(); }) ==
        "clone: Owning cannot be copied: it has no copy constructor");
  CHECK(message_of<NotImplementedError>([] { Sliced().clone(); }).find("no KILN_MODULE_DERIVED") !=
        std::string::npos);
}

TEST_CASE("copy: parts registered at run time") {
  Block block;
  Linear& extra = block.register_module("extra", Linear{2, 2});
  block.register_parameter("gain", ones({2}));
  block.register_buffer("count", zeros({1}));
  block.materialize();
  Block copy = block;
  CHECK(are_independent_twins(block, copy));
  CHECK(copy.named_parameters().size() == 5);
  NoGradGuard no_grad;
  extra.weight->fill_(1.0);
  CHECK(!copy.named_parameters().back().second.equal(block.named_parameters().back().second) ==
        false);
  CHECK(!copy.state_dict().at("extra.weight").equal(*extra.weight));
}

TEST_CASE("objects that were moved away are errors where they are used") {
  const Tensor w = ones({2}, {.requires_grad = true});
  Gradients gradients = (w * w).sum().backward();
  const Gradients taken = std::move(gradients);
  CHECK(taken.size() == 1);
  CHECK_THROWS_AS(static_cast<void>(gradients.size()), AutodiffError);  // NOLINT
  CHECK_THROWS_AS(static_cast<void>(gradients[w]), AutodiffError);      // NOLINT
  nn::AnyModule module(nn::Linear(2, 2));
  const nn::AnyModule kept = std::move(module);
  CHECK(kept(ones({1, 2})).shape() == Shape{1, 2});
  CHECK_THROWS_AS(module(ones({1, 2})), TypeError);  // NOLINT
  const data::TensorDataset set({ones({4, 2})});
  data::DataLoader loader(set);
  const data::DataLoader other = std::move(loader);
  CHECK(other.size() == 4);
  CHECK_THROWS_AS(static_cast<void>(loader.begin()), ValueError);  // NOLINT
  CHECK_THROWS_AS(static_cast<void>(loader.size()), ValueError);   // NOLINT
}
