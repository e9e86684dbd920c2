// What every optimizer refuses: no parameters, the state of another one. Nothing changes then.
#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "tests/support/throws.h"

using namespace kiln;
using optim::Optimizer;

namespace {

using Make = std::unique_ptr<Optimizer> (*)(std::vector<Tensor>);

template <class O>
std::unique_ptr<Optimizer> made(std::vector<Tensor> params) {
  return std::make_unique<O>(std::move(params));
}

struct Made {
  const char* name;
  Make make;
};
const Made kKinds[] = {{"SGD", made<optim::SGD>},
                       {"Adam", made<optim::Adam>},
                       {"AdamW", made<optim::AdamW>},
                       {"AdamW8bit", made<optim::AdamW8bit>},
                       {"Adamax", made<optim::Adamax>},
                       {"NAdam", made<optim::NAdam>},
                       {"RAdam", made<optim::RAdam>},
                       {"Adagrad", made<optim::Adagrad>},
                       {"Adadelta", made<optim::Adadelta>},
                       {"RMSprop", made<optim::RMSprop>},
                       {"Rprop", made<optim::Rprop>},
                       {"ASGD", made<optim::ASGD>},
                       {"Adafactor", made<optim::Adafactor>},
                       {"Adan", made<optim::Adan>},
                       {"Lion", made<optim::Lion>},
                       {"LAMB", made<optim::LAMB>},
                       {"Muon", made<optim::Muon>},
                       {"SparseAdam", made<optim::SparseAdam>}};

Tensor parameter(uint64_t seed) {
  manual_seed(seed);
  Tensor p = randn({3, 2}).requires_grad_();
  p.set_grad(randn({3, 2}));
  return p;
}

}  // namespace

TEST_CASE("every optimizer: no parameters") {
  for (const Made& kind : kKinds) {
    CAPTURE(kind.name);
    CHECK_THROWS_AS(kind.make({}), ValueError);
    CHECK_THROWS_AS(kind.make({Tensor()}), Error);
  }
}

TEST_CASE("every optimizer: the state of another one") {
  for (const Made& kind : kKinds) {
    for (const Made& other : kKinds) {
      if (std::string(kind.name) == other.name) continue;
      CAPTURE(kind.name);
      CAPTURE(other.name);
      Tensor p = parameter(1), q = parameter(2);
      const auto mine = kind.make({p}), theirs = other.make({q});
      mine->step();
      theirs->step();
      const optim::OptimizerState before = mine->state_dict();
      bool refused = false;
      try {
        mine->load_state_dict(theirs->state_dict());
      } catch (const Error&) {
        refused = true;
      }
      CHECK(refused);
      const optim::OptimizerState after = mine->state_dict();
      CHECK(after.tensors.size() == before.tensors.size());
      for (const auto& [name, value] : before.tensors) {
        const Tensor* now = after.tensors.find(name);
        REQUIRE(now != nullptr);
        CHECK(now->equal(value));
      }
    }
  }
}

TEST_CASE("clipping: gradients that are not finite") {
  Tensor p = parameter(1), q = parameter(2);
  {
    NoGradGuard guard;
    q.grad().fill_(INFINITY);
  }
  const Tensor before = p.grad().clone();
  const std::vector<Tensor> both = {p, q};
  CHECK_THROWS_AS(optim::clip_grad_norm_(both, 1.0, 2.0, true), ValueError);
  CHECK(p.grad().equal(before));
  CHECK(std::isinf(q.grad().max().item()));
}
