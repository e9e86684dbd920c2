// Programs of torch.export: one that PyTorch 2.13.0 wrote (tests/fixtures/make_pt2.py), and damaged
// ones.
#include "kiln/pt2/model.h"

#include <algorithm>
#include <random>

#include <doctest/doctest.h>

#include "kiln/io/safetensors.h"
#include "kiln/io/zip_reader.h"
#include "kiln/kiln.h"
#include "kiln/pt2/sizes.h"
#include "tests/support/fixtures.h"
#include "tests/support/hostile.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"
#include "tests/support/zip_bytes.h"

using namespace kiln;
using kiln::test::fixture;
using kiln::test::message_of;

namespace {

Tensor expected(const char* name) {
  return Tensor(io::SafetensorsReader(fixture("pt2/expected.safetensors")).read(name));
}
bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("pt2: a program runs as in PyTorch") {
  const auto model = pt2::Model::load(fixture("pt2/net.pt2"));
  const Tensor y = model({expected("x")})[0];
  CHECK(y.allclose(expected("y"), 1e-5, 1e-6));
  y.square().mean().backward_accumulate();
  const auto parameters = model.named_parameters();
  REQUIRE(parameters.size() == 6);
  CHECK(parameters[0].first == "fc1.weight");
  CHECK(parameters[0].second.grad().allclose(expected("gradient"), 1e-5, 1e-6));
  CHECK(model.named_buffers().size() == 3);
  CHECK(model.input_names() == std::vector<std::string>{"x"});
  CHECK(model.output_tree().leaves() == 1);
  const auto modules = model.modules();
  CHECK(std::ranges::find(modules, std::pair<std::string, std::string>("norm", "BatchNorm1d")) !=
        modules.end());
}

TEST_CASE("pt2: a program trains, and is captured as a graph") {
  const auto model = pt2::Model::load(fixture("pt2/net.pt2"));
  const Tensor x = expected("x");
  optim::SGD optimizer(model.parameters(), {.lr = 0.05});
  const auto loss = [&] { return model({x})[0].square().mean(); };
  const double before = loss().item();
  for (int i = 0; i < 20; ++i) {
    optimizer.zero_grad();
    loss().backward_accumulate();
    optimizer.step();
  }
  CHECK(loss().item() < 0.7 * before);
  const GraphModel graph = model.capture({x});
  CHECK(graph(x).allclose(model({x})[0].detach(), 1e-6, 1e-7));
}

TEST_CASE("pt2: sizes are those that the program takes") {
  const auto model = pt2::Model::load(fixture("pt2/net.pt2"));
  CHECK(model({randn({7, 4})})[0].shape() == Shape{7, 2});
  CHECK(holds(message_of<ShapeError>([&] { model({randn({65, 4})}); }), "at most 64"));
  CHECK(holds(message_of<ShapeError>([&] { model({randn({3, 5})}); }), "size 5 in dim 1"));
  CHECK(holds(message_of<DTypeError>([&] { model({arange(12).reshape({3, 4})}); }), "int64"));
  CHECK(holds(message_of<ValueError>([&] { model({}); }), "got 0 inputs; expected 1"));
  CHECK(holds(message_of<IoError>([] { pt2::Model::load("there is none.pt2"); }), "there is none"));
}

TEST_CASE("pt2: expressions of sizes") {
  using pt2::SizeExpression;
  const SizeExpression two("Mul(Integer(2), Symbol('s7', positive=True, integer=True))");
  const SizeExpression sum("Add(Integer(-1), Mul(Integer(3), Symbol('a')), Symbol('b'))");
  CHECK(two.value({{"s7", 5}}) == 10);
  CHECK_FALSE(two.value({}));
  CHECK_FALSE(two.value({{"s7", int64_t{1} << 62}}));  // it overflows
  pt2::Symbols symbols;
  CHECK(two.solve(14, symbols));
  CHECK(symbols == pt2::Symbols{{"s7", 7}});
  pt2::Symbols none;
  CHECK_FALSE(two.solve(13, none));
  pt2::Symbols both{{"a", 2}};
  CHECK(sum.solve(9, both));
  CHECK(both == pt2::Symbols{{"a", 2}, {"b", 4}});
  CHECK(sum.value(both) == 9);
  for (const char* text :
       {"", "Mul(", "Mul(Integer(2)", "Integer(99999999999999999999)", "Symbol('a'",
        "FloorDiv(Symbol('a'), Integer(2))", "Integer(2) x", "Symbol(a)"}) {
    CHECK_FALSE(SizeExpression(text).value({{"a", 4}}));
  }
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "Add(";
  CHECK_FALSE(SizeExpression(deep).value({}));
}

TEST_CASE("pt2: the operators are listed") {
  const std::vector<std::string> names = pt2::operators();
  CHECK(names.size() > 900);
  CHECK(std::ranges::is_sorted(names));
  CHECK(std::ranges::find(names, "aten.convolution.default") != names.end());
}

TEST_CASE("pt2: damaged archives give Kiln's errors alone") {
  const io::ZipReader zip(io::InputFile("test", fixture("pt2/net.pt2")));
  std::vector<test::ZipPart> parts;
  for (const io::ZipEntry& entry : zip.entries()) {
    parts.push_back({.name = entry.name, .content = zip.read(entry, 1 << 20)});
  }
  const std::string good = test::zip_of(parts);
  const test::TempDir folder;
  const Tensor x = expected("x");
  std::mt19937 random(7);
  int refused = 0, ran = 0;
  for (int i = 0; i < 400; ++i) {
    std::string bad;
    if (i % 4 == 0) {
      bad = test::mutated(good, random);
    } else {  // what is in the archive, whose checksums are right
      std::vector<test::ZipPart> changed = parts;
      auto& part = changed[random() % changed.size()];
      auto& program = *std::ranges::find_if(changed, [](const test::ZipPart& one) {
        return one.name.ends_with("models/model.json");
      });
      auto& target = i % 4 == 1 ? part : program;
      target.content = test::mutated(target.content, random);
      bad = test::zip_of(changed);
    }
    try {
      pt2::Model::load(test::rewrite(folder.path("bad.pt2"), bad))({x});
      ++ran;
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 200);
  CHECK(ran > 10);
}
