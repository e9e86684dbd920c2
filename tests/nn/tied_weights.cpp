// Parameters that hold one tensor: tying them, and what keeps them tied.
#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/nn/nn.h"
#include "kiln/optim/optim.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::Linear;
using kiln::nn::Module;
using kiln::nn::Param;
using kiln::nn::tie_weights;
using kiln::test::message_of;
using kiln::test::near;

namespace {

// A language model in small: the head reads the token table.
struct TiedWeights : Module {
  nn::Embedding tokens{5, 3};
  std::vector<Linear> layers;
  Linear head{3, 5, false};
  KILN_MODULE(TiedWeights, tokens, layers, head)

  TiedWeights() {
    layers.emplace_back(3, 3);
    layers.emplace_back(3, 3);
    tie_weights(layers[1].weight, layers[0].weight);
    tie_weights(head.weight, tokens.weight);
  }
  Tensor forward(const Tensor& ids) {
    Tensor x = tokens(ids);
    for (Linear& layer : layers) x = layer(x);
    return head(x);
  }
};

// Cannot be moved: a std::vector that grows copies it.
struct CopyOnly : TiedWeights {
  CopyOnly() = default;
  CopyOnly(const CopyOnly&) = default;
  CopyOnly& operator=(const CopyOnly&) = default;
  KILN_MODULE_DERIVED(CopyOnly, TiedWeights)
};

struct Outer : Module {
  TiedWeights inner;
  nn::Sequential rest{Linear{3, 3, false}, Linear{3, 3, false}};
  KILN_MODULE(Outer, inner, rest)
  Outer() {
    tie_weights(rest.at<Linear>(0).weight, inner.layers[0].weight);
    tie_weights(rest.at<Linear>(1).weight, inner.layers[0].weight);
  }
};

// Both parts are copies of one model: equal, and not tied.
struct Prototypes : Module {
  Linear a;
  Linear b;
  std::vector<Linear> more;
  KILN_MODULE(Prototypes, a, b, more)
  explicit Prototypes(const Linear& prototype) : a(prototype), b(prototype), more(3, prototype) {}
};

struct Sliceable : TiedWeights {
  Param<Tensor> extra = Param<Tensor>::from_tensor(ones({1}));
  KILN_MODULE_DERIVED(Sliceable, TiedWeights, extra)
};

bool is_tied(const TiedWeights& model) {
  return model.head.weight->is_same(*model.tokens.weight) &&
         model.layers[1].weight->is_same(*model.layers[0].weight);
}
bool share(const TiedWeights& a, const TiedWeights& b) {
  return a.head.weight->is_same(*b.head.weight) ||
         a.head.weight->data_ptr<float>() == b.head.weight->data_ptr<float>();
}

}  // namespace

TEST_CASE("tie_weights: one tensor, trained once, saved under both names") {
  TiedWeights model;
  CHECK(is_tied(model));
  CHECK(model.parameters().size() == 4);  // of 6: table, one weight, two biases
  CHECK(model.state_dict().contains("head.weight"));
  CHECK(model.num_params() == 15 + 9 + 6);
  optim::SGD sgd(model.parameters(), {.lr = 0.1});
  const Tensor before = model.tokens.weight->detach().clone();
  sgd.step(model(tensor({0, 1})).square().sum().backward());
  CHECK(!before.equal(*model.head.weight));
  CHECK(is_tied(model));
}

TEST_CASE("tie_weights: what cannot be tied") {
  Linear a(2, 3);
  Linear b(3, 2);
  CHECK(message_of<ShapeError>([&] { tie_weights(a.weight, b.weight); }) ==
        "tie_weights: the shapes differ; got [3, 2] and [2, 3]");
  Param<Tensor> none;
  CHECK_THROWS_AS(tie_weights(none, a.weight), ValueError);
  CHECK_THROWS_AS(tie_weights(a.weight, none), ValueError);
}

TEST_CASE("ties: a plain copy keeps them, and is independent") {
  const TiedWeights model;
  TiedWeights copy = model;
  CHECK(is_tied(copy));
  CHECK(!share(copy, model));
  CHECK(copy.tokens.weight->equal(*model.tokens.weight));
  CHECK(copy.head.weight->requires_grad());
  {
    const NoGradGuard no_grad;
    copy.head.weight->fill_(1.0);
  }
  CHECK(!copy.tokens.weight->equal(*model.tokens.weight));
  TiedWeights assigned;
  assigned = model;
  CHECK(is_tied(assigned));
  CHECK(!share(assigned, model));
}

TEST_CASE("ties: through vectors that grow, by move and by copy") {
  std::vector<TiedWeights> moved;
  for (int i = 0; i < 5; ++i) moved.emplace_back();
  for (const TiedWeights& each : moved) CHECK(is_tied(each));
  std::vector<CopyOnly> copied;
  for (int i = 0; i < 5; ++i) copied.emplace_back();
  for (const CopyOnly& each : copied) CHECK(is_tied(each));
  CHECK(!share(copied[0], copied[1]));
}

TEST_CASE("ties: between modules within modules, and through containers") {
  const Outer model;
  const auto tied = [](const Outer& m) {
    const Tensor& weight = *m.inner.layers[0].weight;
    return is_tied(m.inner) && m.rest.at<Linear>(0).weight->is_same(weight) &&
           m.rest.at<Linear>(1).weight->is_same(weight);
  };
  CHECK(tied(model));
  const Outer copy = model;
  CHECK(tied(copy));
  CHECK(tied(*copy.clone()));
  CHECK(tied(*copy.valid()));
  // A part alone has the ties within it, and none with where it came from.
  const nn::Sequential rest = model.rest;
  CHECK(rest.at<Linear>(0).weight->is_same(*rest.at<Linear>(1).weight));
  CHECK(!rest.at<Linear>(0).weight->is_same(*model.inner.layers[0].weight));
}

TEST_CASE("ties: copies of one module are not tied to each other") {
  Linear prototype(2, 2);
  prototype.materialize();
  const Prototypes model(prototype);
  CHECK(model.a.weight->equal(*model.b.weight));
  CHECK(!model.a.weight->is_same(*model.b.weight));
  CHECK(!model.more[0].weight->is_same(*model.more[1].weight));
  const Prototypes copy = model;
  CHECK(!copy.a.weight->is_same(*copy.b.weight));
  CHECK(!copy.a.weight->is_same(*model.a.weight));
  Linear again = prototype;
  Linear once_more = prototype;
  CHECK(!again.weight->is_same(*once_more.weight));
}

TEST_CASE("ties: casting, moving, mapping, loading and slicing keep them") {
  TiedWeights model;
  model.to(f64);
  CHECK(is_tied(model));
  model.to(Device(kReference)).cpu();
  CHECK(is_tied(model));
  model.float_();
  TiedWeights other;
  other.load_state_dict(model.state_dict());
  CHECK(is_tied(other));
  CHECK(other.head.weight->equal(*model.head.weight));
  const Sliceable derived;
  const TiedWeights sliced = derived;  // the base alone
  CHECK(is_tied(sliced));
  const TiedWeights after = derived;
  CHECK(is_tied(after));
  CHECK(!share(sliced, after));
}
