// Order, prepend, always_call, removal and global hooks; firing as PyTorch's _call_impl does it.
#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/core/warning.h"
#include "kiln/tensor/creation.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::HookArgs;
using kiln::nn::HookValue;
using kiln::nn::Module;
using kiln::test::message_of;
using kiln::test::near;

namespace {

using Names = std::vector<std::string>;

struct Twice : Module {
  KILN_MODULE(Twice)
  Tensor forward(const Tensor& x) const { return x * 2.0; }
};

struct Fails : Module {
  KILN_MODULE(Fails)
  Tensor forward(const Tensor&) const { throw ValueError("forward failed"); }
};

struct Sum : Module {
  KILN_MODULE(Sum)
  Tensor forward(const Tensor& x, const Tensor& y, double scale) const { return (x + y) * scale; }
};

// Appends a name whenever it is called.
auto noting(Names& order, std::string name) {
  return [&order, name](Module&, HookArgs&, auto&&...) { order.push_back(name); };
}
nn::ForwardPreHook note_pre(Names& order, std::string name) {
  return [&order, name](Module&, HookArgs&) { order.push_back(name); };
}
nn::ForwardHook note(Names& order, std::string name) { return noting(order, name); }

// Collects warnings while it lives.
struct Warnings {
  Warnings() {
    before = set_warning_handler([this](const std::string& text) { seen.push_back(text); });
  }
  ~Warnings() { set_warning_handler(before); }
  Names seen;
  WarningHandler before;
};

}  // namespace

TEST_CASE("hook order: prepend goes first, global hooks before all") {
  Twice module;
  Names order;
  module.register_forward_pre_hook(note_pre(order, "pre1"));
  module.register_forward_pre_hook(note_pre(order, "pre2"));
  module.register_forward_pre_hook(note_pre(order, "pre0"), true);
  module.register_forward_hook(note(order, "post1"));
  module.register_forward_hook(note(order, "post0"), {.prepend = true});
  const ScopedHook global_pre(nn::register_module_forward_pre_hook(note_pre(order, "global pre")));
  const ScopedHook global(nn::register_module_forward_hook(note(order, "global")));
  module(ones({1}));
  CHECK(order == Names{"global pre", "pre0", "pre1", "pre2", "global", "post0", "post1"});
}

TEST_CASE("hook order: global hooks see every module, until they are removed") {
  test::Block block;
  Names types;
  {
    const ScopedHook hook(nn::register_module_forward_pre_hook(
        [&](Module& m, HookArgs&) { types.push_back(m.type_name()); }));
    CHECK(block.has_forward_hooks());
    block(ones({2}));
  }
  CHECK(types == Names{"Block", "Linear", "ReLU"});
  CHECK(!block.has_forward_hooks());
  block(ones({2}));
  CHECK(types.size() == 3);
}

TEST_CASE("hook handles: remove twice, from a copy, and out of order") {
  Twice module;
  Names order;
  HookHandle a = module.register_forward_hook(note(order, "a"));
  HookHandle b = module.register_forward_hook(note(order, "b"));
  RemovableHandle c = module.register_forward_hook(note(order, "c"));
  HookHandle again = b;
  b.remove();
  again.remove();
  b.remove();
  module(ones({1}));
  CHECK(order == Names{"a", "c"});
  a.remove();
  c.remove();
  CHECK(!module.has_forward_hooks());
  HookHandle().remove();
}

TEST_CASE("hook handles: outlive the module, follow it when it moves; copies keep their hooks") {
  Names order;
  HookHandle handle;
  {
    Twice module;
    handle = module.register_forward_hook(note(order, "x"));
    Twice moved = std::move(module);
    const Twice copy = moved;
    moved(ones({1}));
    handle.remove();
    moved(ones({1}));
    CHECK(order == Names{"x"});
    copy(ones({1}));
    CHECK(order == Names{"x", "x"});
    handle = moved.register_forward_hook(note(order, "y"));
    moved = copy;
    order.clear();
    moved(ones({1}));
    CHECK(order == Names{"x"});
  }
  handle.remove();
}

TEST_CASE("hooks: removed and added ones count from the next call") {
  Twice module;
  Names order;
  HookHandle second;
  module.register_forward_hook([&](Module& m, HookArgs&, HookValue&) {
    order.push_back("first");
    second.remove();
    if (order.size() == 1) m.register_forward_hook(note(order, "third"));
  });
  second = module.register_forward_hook(note(order, "second"));
  module(ones({1}));
  CHECK(order == Names{"first", "second"});
  module(ones({1}));
  CHECK(order == Names{"first", "second", "first", "third"});
}

TEST_CASE("hooks: a forward hook that replaces, chained") {
  Twice module;
  module.register_forward_hook(
      [](Module&, HookArgs&, HookValue& y) { y.tensor() = y.tensor() + 1.0; });
  module.register_forward_hook(
      [](Module&, HookArgs&, HookValue& y) { y = HookValue::own(y.tensor() * 10.0); });
  CHECK(near(module(ones({2})), {30, 30}));
}

TEST_CASE("hooks: arguments can be put in place by value; their number cannot change") {
  Sum module;
  auto hook = module.register_forward_pre_hook([](Module&, HookArgs& args) {
    CHECK(args.size() == 3);
    CHECK(args.kwargs.empty());
    args[1] = HookValue::own(full({1}, 5.0));
  });
  const Tensor x = full({1}, 1.0);
  CHECK(near(module(x, x, 2.0), {12.0}));
  hook.remove();
  hook = module.register_forward_pre_hook([](Module&, HookArgs& args) { args.args.pop_back(); });
  CHECK(message_of<TypeError>([&] { module(x, x, 2.0); }) ==
        "forward pre-hook: a hook changed the number of arguments of Sum; got 2; expected 3");
  hook.remove();
  hook = module.register_forward_pre_hook(
      [](Module&, HookArgs& args) { args[0] = HookValue::own(std::string("text")); });
  CHECK(message_of<TypeError>([&] { module(x, x, 2.0); }) ==
        "hook: an argument of Sum was replaced by a value of another type");
}

TEST_CASE("always_call: runs when forward throws, once; the error goes on") {
  Fails module;
  Names order;
  module.register_forward_hook(note(order, "plain"));
  module.register_forward_hook(
      [&](Module&, HookArgs& args, HookValue& output) {
        order.push_back("always");
        CHECK(args.size() == 1);
        CHECK(!output.has_value());
      },
      {.always_call = true});
  const ScopedHook global(nn::register_module_forward_hook(note(order, "global always"), true));
  CHECK(message_of<ValueError>([&] { module(ones({1})); }) == "forward failed");
  CHECK(order == Names{"global always", "always"});
}

TEST_CASE("always_call: not twice when a later hook throws, and when a pre-hook throws") {
  Twice module;
  Names order;
  module.register_forward_hook(note(order, "always 1"), {.always_call = true});
  module.register_forward_hook(
      [](Module&, HookArgs&, HookValue&) { throw IndexError("hook failed"); });
  module.register_forward_hook(note(order, "always 2"), {.always_call = true});
  CHECK_THROWS_AS(module(ones({1})), IndexError);
  CHECK(order == Names{"always 1", "always 2"});
  // PyTorch: an always_call hook that threw itself has been called.
  Twice other;
  int runs = 0;
  other.register_forward_hook(
      [&](Module&, HookArgs&, HookValue&) {
        ++runs;
        throw IndexError("always failed");
      },
      {.always_call = true});
  CHECK_THROWS_AS(other(ones({1})), IndexError);
  CHECK(runs == 1);
  order.clear();
  Twice third;
  third.register_forward_pre_hook([](Module&, HookArgs&) { throw ValueError("pre failed"); });
  third.register_forward_hook(note(order, "always"), {.always_call = true});
  CHECK_THROWS_AS(third(ones({1})), ValueError);
  CHECK(order == Names{"always"});
}

TEST_CASE("always_call: its own error is silenced with a warning") {
  const Warnings warnings;
  Fails module;
  module.register_forward_hook([](Module&, HookArgs&, HookValue&) { throw IndexError("second"); },
                               {.always_call = true});
  CHECK(message_of<ValueError>([&] { module(ones({1})); }) == "forward failed");
  CHECK(warnings.seen ==
        Names{"module forward hook with ``always_call=True`` raised an exception that was silenced "
              "as another error was raised in forward: second"});
}

TEST_CASE("hooks: callers without static types use the same mechanism") {
  Twice module;
  Names order;
  module.register_forward_pre_hook([&](Module&, HookArgs& args) {
    order.push_back(args.kwargs[0].first);
    args[0].tensor() = args[0].tensor() + 1.0;
    *args.kwargs[0].second.get_if<double>() = 3.0;
  });
  module.register_forward_hook([&](Module&, HookArgs& args, HookValue& output) {
    order.push_back(std::to_string(args.size()));
    output = HookValue::own(output.tensor() * 10.0);
  });
  Tensor x = ones({1});
  double scale = 1.0;
  HookArgs args;
  args.args.emplace_back(x);
  args.kwargs.emplace_back("scale", HookValue(scale));
  const HookValue out = nn::detail::call_module(
      module, args, [&] { return HookValue::own(args[0].tensor() * scale); });
  CHECK(near(out.tensor(), {60.0}));
  CHECK(order == Names{"scale", "1"});
}
