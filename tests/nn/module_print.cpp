// Modules as text: PyTorch's layout.
#include <sstream>

#include <doctest/doctest.h>

#include "tests/nn/models.h"

using namespace kiln;
using kiln::nn::Linear;
using kiln::nn::Module;

namespace {

struct Lists : Module {
  std::vector<nn::Param<Tensor>> ws;
  KILN_MODULE(Lists, ws)
};

struct OneLine : Module {
  KILN_MODULE(OneLine)
  std::string extra_repr() const override { return "x=1"; }
};

struct TwoLines : Module {
  KILN_MODULE(TwoLines)
  std::string extra_repr() const override { return "x=1\ny=2"; }
};

}  // namespace

TEST_CASE("module text: nested, with lines of its own and folded lists") {
  const std::string expected =
      "Net(\n"
      "  a=1\n"
      "  b=2\n"
      "  (conv): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))\n"
      "  (layers): ModuleList(\n"
      "    (0-1): 2 x Linear(in_features=2, out_features=2, bias=True)\n"
      "    (2): Linear(in_features=2, out_features=3, bias=True)\n"
      "  )\n"
      "  (block): Block(\n"
      "    (fc): Linear(in_features=2, out_features=2, bias=True)\n"
      "    (act): ReLU()\n"
      "  )\n"
      "  (head): Sequential(\n"
      "    (0): Linear(in_features=3, out_features=2, bias=True)\n"
      "    (1): Tanh()\n"
      "  )\n"
      ")";
  CHECK(to_string(test::Net()) == expected);
  std::ostringstream out;
  out << test::Net();
  CHECK(out.str() == expected);
}

TEST_CASE("module text: equal neighbours fold in lists only") {
  CHECK(to_string(nn::Sequential{Linear{1, 2}, Linear{1, 2}}) ==
        "Sequential(\n"
        "  (0): Linear(in_features=1, out_features=2, bias=True)\n"
        "  (1): Linear(in_features=1, out_features=2, bias=True)\n"
        ")");
  nn::ModuleList list;
  CHECK(to_string(list) == "ModuleList()");
  list.push_back(test::Block()).push_back(test::Block());
  CHECK(to_string(list) ==
        "ModuleList(\n"
        "  (0-1): 2 x Block(\n"
        "    (fc): Linear(in_features=2, out_features=2, bias=True)\n"
        "    (act): ReLU()\n"
        "  )\n"
        ")");
}

TEST_CASE("module text: extra lines without parts") {
  CHECK(to_string(OneLine()) == "OneLine(x=1)");
  CHECK(to_string(TwoLines()) == "TwoLines(\n  x=1\n  y=2\n)");
  Lists lists;
  CHECK(to_string(lists) == "Lists(\n  (ws): ModuleList()\n)");
  lists.ws.push_back(nn::parameter({2, 3}, nn::init::zeros_));
  lists.ws.push_back(nn::parameter({4}, nn::init::zeros_));
  CHECK(to_string(lists) ==
        "Lists(\n"
        "  (ws): ParameterList(\n"
        "      (0): Parameter containing: [float32 of size 2x3]\n"
        "      (1): Parameter containing: [float32 of size 4]\n"
        "  )\n"
        ")");
}
