// Parts that no KILN_MODULE line names: found when an object is first visited.
#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/core/warning.h"
#include "kiln/nn/nn.h"
#include "kiln/optim/optim.h"
#include "kiln/tensor/creation.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::Linear;
using kiln::nn::Module;
using kiln::nn::Param;
using kiln::test::message_of;

namespace {

struct Forgot : Module {
  Linear fc{2, 2};
  nn::Dropout drop{0.5};
  Linear out{2, 1};
  int64_t width = 2;
  KILN_MODULE(Forgot, fc, drop)
  Tensor forward(const Tensor& x) { return out(drop(fc(x))); }
};

struct ForgotParam : Module {
  Param<Tensor> scale = nn::parameter({3}, nn::init::ones_);
  Linear fc{2, 2};
  nn::Buffer mean{zeros({2, 2})};
  Param<Tensor> none;  // None belongs to no state dict
  nn::Buffer no_buffer;
  KILN_MODULE(ForgotParam, fc)
};

struct InStruct : Module {
  struct Heads {
    int64_t count = 1;
    Linear a{2, 2};
  };
  Heads heads;
  std::optional<Linear> some;
  KILN_MODULE(InStruct, some)
};

struct Optional : Module {
  explicit Optional(bool with) {
    if (with) norm.emplace(Shape{2});
  }
  Linear fc{2, 2};
  std::optional<nn::LayerNorm> norm;
  KILN_MODULE(Optional, fc)
};

// What is no part of the model on purpose is held by a pointer.
struct WithTeacher : Module {
  Linear fc{2, 2};
  std::shared_ptr<Linear> teacher = std::make_shared<Linear>(2, 2);
  KILN_MODULE(WithTeacher, fc)
};

struct ForgotVector : Module {
  Linear fc{2, 2};
  std::vector<Linear> heads;
  std::vector<nn::Sequential> blocks;
  KILN_MODULE(ForgotVector, fc, blocks)
};
struct ForgotEntries : Module {
  struct Entry {
    std::string name;
    Param<Tensor> scale;
  };
  std::vector<Entry> entries;
  KILN_MODULE(ForgotEntries)
};

struct Base : Module {
  Linear fc{2, 2};
  KILN_MODULE(Base, fc)
  Tensor forward(const Tensor& x) { return fc(x); }
};
struct NoLine : Base {
  Linear more{2, 2};
};
struct DerivedForgot : Base {
  Linear named{2, 2};
  Linear more{2, 2};
  KILN_MODULE_DERIVED(DerivedForgot, Base, named)
};

struct LineFirst : Module {
  KILN_MODULE_PARTS(LineFirst, Module, fc)
  Linear fc{2, 2};
};

// Visited while it is built, when it is a Base only.
struct Early : Base {
  Linear more{2, 2};
  KILN_MODULE_DERIVED(Early, Base)
};
struct EarlyBase : Module {
  EarlyBase() { parameters(); }
  Linear fc{2, 2};
  KILN_MODULE(EarlyBase, fc)
};
struct FromEarly : EarlyBase {
  Linear more{2, 2};
  KILN_MODULE_DERIVED(FromEarly, EarlyBase)
};

constexpr const char* kWhy =
    "; expected its name in the list, or a pointer to it where it is no part of the model";

std::string refusal(const Module& module) {
  return message_of<RuntimeError>([&module] { static_cast<void>(module.parameters()); });
}

}  // namespace

TEST_CASE("unnamed parts: the first visit says which, and where") {
  Forgot net;
  const std::string wanted = std::string(
                                 "KILN_MODULE(Forgot, ...): a part that it does not name is "
                                 "neither trained nor saved; got a "
                                 "Linear behind 'drop'") +
                             kWhy;
  CHECK(refusal(net) == wanted);
  CHECK(message_of<RuntimeError>([&net] { net.state_dict(); }) == wanted);
  CHECK(message_of<RuntimeError>([&net] { net.to(f64); }) == wanted);
  CHECK(message_of<RuntimeError>([&net] { net.train(); }) == wanted);
  CHECK(message_of<RuntimeError>([&net] { optim::SGD(net.parameters(), {.lr = 0.1}); }) == wanted);
  // Wherever the object lives.
  const auto owned = std::make_unique<Forgot>();
  CHECK(refusal(*owned) == wanted);
  nn::Sequential outer{Linear{2, 2}, Forgot{}};
  CHECK(refusal(outer) == wanted);
}

TEST_CASE("unnamed parts: parameters and buffers, but not those that are None") {
  CHECK(
      refusal(ForgotParam()) ==
      std::string("KILN_MODULE(ForgotParam, ...): a part that it does not name is neither trained "
                  "nor saved; got a parameter of shape [3] in front of all parts that it names, "
                  "a buffer of shape [2, 2] behind 'fc'") +
          kWhy);
}

TEST_CASE("unnamed parts: in structs and optionals") {
  CHECK(refusal(InStruct()).find("got a Linear in front of all parts") != std::string::npos);
  Optional without(false);
  CHECK(refusal(without).empty());
  CHECK(refusal(Optional(true)).find("got a LayerNorm behind 'fc'") != std::string::npos);
}

TEST_CASE("unnamed parts: what a pointer holds is the programmer's affair") {
  WithTeacher net;
  CHECK(net.parameters().size() == 2);
  CHECK(WithTeacher(net).parameters().size() == 2);
}

TEST_CASE("unnamed parts: what an unnamed std::vector holds is a warning, once for a class") {
  struct Heard {
    Heard() {
      before = set_warning_handler([this](const std::string& message) { said.push_back(message); });
    }
    ~Heard() { set_warning_handler(before); }
    WarningHandler before;
    std::vector<std::string> said;
  } heard;
  ForgotVector net;
  net.blocks.push_back(nn::Sequential{Linear{2, 2}, nn::Sequential{Linear{2, 2}, nn::ReLU{}}});
  CHECK(net.parameters().size() == 6);
  CHECK(heard.said.empty());  // an empty vector holds nothing
  ForgotVector full;
  for (int i = 0; i < 3; ++i) full.heads.emplace_back(2, 2);
  CHECK(full.parameters().size() == 2);
  REQUIRE(heard.said.size() == 1);
  CHECK(
      heard.said[0] ==
      "KILN_MODULE(ForgotVector, ...): a part that it does not name is neither trained nor saved; "
      "got a std::vector that holds a Linear behind 'fc'; expected the vector's name in the list, "
      "or pointers in it where they are no parts of the model");
  CHECK(ForgotVector(full).parameters().size() == 2);
  CHECK(heard.said.size() == 1);
  ForgotEntries other;
  other.entries.resize(2);
  CHECK(other.parameters().empty());
  CHECK(heard.said.size() == 1);  // parameters that are None belong to no state dict
  ForgotEntries entries;
  entries.entries.push_back(
      {"a name that is long enough for memory of its own", nn::parameter({3}, nn::init::ones_)});
  CHECK(entries.parameters().empty());
  REQUIRE(heard.said.size() == 2);
  CHECK(heard.said[1].find("holds a parameter of shape [3]") != std::string::npos);
}

TEST_CASE("unnamed parts: in classes that derive from modules") {
  CHECK(refusal(DerivedForgot()).find("KILN_MODULE(DerivedForgot, ...)") == 0);
  CHECK(refusal(DerivedForgot()).find("got a Linear behind 'named'") != std::string::npos);
  CHECK(refusal(Early()).find("got a Linear behind 'fc'") != std::string::npos);
  CHECK(refusal(FromEarly()).find("got a Linear behind 'fc'") != std::string::npos);
  const std::string message = refusal(NoLine());
  CHECK(message.find("NoLine derives from Base and has no such line") != std::string::npos);
  CHECK(message.find("expected KILN_MODULE_DERIVED(") != std::string::npos);
}

TEST_CASE("unnamed parts: the line stands behind what it names") {
  CHECK(refusal(LineFirst()).find("the line stands in front of 'fc'") != std::string::npos);
}

TEST_CASE("unnamed parts: copies, moves and what was checked before") {
  Forgot net;
  Forgot copy = net;
  const Forgot moved = std::move(net);
  CHECK(!refusal(copy).empty());
  CHECK(!refusal(moved).empty());
  Base good;
  CHECK(refusal(good).empty());
  std::vector<Base> grown;
  for (int i = 0; i < 10; ++i) {
    grown.emplace_back();
    CHECK(refusal(grown.back()).empty());
  }
  for (Base& each : grown) CHECK(refusal(each).empty());
}
