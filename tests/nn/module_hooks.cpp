// Forward hooks.
#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"

using namespace kiln;
using kiln::nn::HookValue;
using kiln::nn::Linear;
using kiln::nn::Module;
using kiln::test::Block;
using kiln::test::near;

namespace {

struct HookedTwice : Module {
  KILN_MODULE(HookedTwice)
  Tensor forward(const Tensor& x) const { return x * 2.0; }
};

struct Mixed : Module {
  KILN_MODULE(Mixed)
  std::pair<Tensor, int> forward(const Tensor& x, int n, std::string& log) {
    log += "f";
    return {x, n};
  }
};

struct Void : Module {
  KILN_MODULE(Void)
  void forward(int) {}
};

struct Reference : Module {
  KILN_MODULE(Reference)
  const std::string& forward() const { return text; }
  std::string text = "held";
};

}  // namespace

TEST_CASE("hooks: see and replace inputs and outputs") {
  HookedTwice module;
  std::vector<std::string> order;
  auto pre = module.register_forward_pre_hook([&](Module& m, std::span<const HookValue> args) {
    CHECK(&m == &module);
    REQUIRE(args.size() == 1);
    order.push_back("pre");
    args[0].tensor() = args[0].tensor() + 1.0;
  });
  auto post = module.register_forward_hook(
      [&](Module& m, std::span<const HookValue> args, const HookValue& output) {
        CHECK(&m == &module);
        CHECK(near(args[0].tensor(), {2.0, 2.0}));
        order.push_back("post");
        output.tensor() = output.tensor() - 1.0;
      });
  const Tensor x = ones({2});
  CHECK(near(module(x), {3.0, 3.0}));
  CHECK(near(module(ones({2})), {3.0, 3.0}));
  CHECK(near(x, {1.0, 1.0}));
  const HookedTwice& constant = module;
  CHECK(near(constant(x), {3.0, 3.0}));
  CHECK(order == std::vector<std::string>{"pre", "post", "pre", "post", "pre", "post"});
  CHECK(near(module.forward(x), {2.0, 2.0}));
  pre.remove();
  post.remove();
  CHECK(near(module(x), {2.0, 2.0}));
}

TEST_CASE("hooks: any signature") {
  Mixed module;
  int seen = 0;
  module.register_forward_hook(
      [&](Module&, std::span<const HookValue> args, const HookValue& output) {
        ++seen;
        CHECK(args[0].is_tensor());
        CHECK(*args[1].get_if<int>() == 3);
        CHECK(args[1].get_if<double>() == nullptr);
        CHECK_THROWS_AS(args[1].tensor(), TypeError);
        *args[2].get_if<std::string>() += "h";
        auto* result = output.get_if<std::pair<Tensor, int>>();
        REQUIRE(result != nullptr);
        result->second = 10;
      });
  std::string log;
  CHECK(module(ones({1}), 3, log).second == 10);
  CHECK(log == "fh");
  CHECK(seen == 1);

  Void nothing;
  nothing.register_forward_hook([&](Module&, std::span<const HookValue>, const HookValue& output) {
    ++seen;
    CHECK(!output.has_value());
  });
  nothing(1);
  Reference reference;
  reference.register_forward_hook(
      [&](Module&, std::span<const HookValue> args, const HookValue& output) {
        ++seen;
        CHECK(args.empty());
        CHECK(*output.get_if<std::string>() == "held");
      });
  CHECK(&reference() == &reference.text);
  CHECK(seen == 3);
}

TEST_CASE("hooks: run inside a model, in order, and belong to one module") {
  Block block;
  std::vector<std::string> order;
  block.fc.register_forward_hook(
      [&](Module&, std::span<const HookValue>, const HookValue&) { order.push_back("1"); });
  block.fc.register_forward_hook([&](Module& m, std::span<const HookValue>, const HookValue&) {
    order.push_back("2");
    // One more from now on; this call goes on as it began.
    if (order.size() == 2) {
      m.register_forward_hook(
          [&](Module&, std::span<const HookValue>, const HookValue&) { order.push_back("3"); });
    }
  });
  block(ones({2}));
  CHECK(order == std::vector<std::string>{"1", "2"});
  nn::Sequential net{block};
  order.clear();
  net(ones({2}));
  CHECK(order == std::vector<std::string>{"1", "2", "3"});
}

TEST_CASE("hooks: an exception passes, and the module works on") {
  HookedTwice module;
  auto hook = module.register_forward_pre_hook(
      [](Module&, std::span<const HookValue>) { throw ValueError("no"); });
  CHECK_THROWS_AS(module(ones({1})), ValueError);
  hook.remove();
  CHECK(near(module(ones({1})), {2.0}));
}
