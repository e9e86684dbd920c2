// Graphs in files: every op case that a file may hold, saved and loaded; files with changed bytes.
#include <cmath>
#include <set>

#include <doctest/doctest.h>

#include "kiln/compile/graph_model.h"
#include "kiln/graph/capture.h"
#include "kiln/graph/file/graph_json.h"
#include "kiln/io/safetensors.h"
#include "kiln/kiln.h"
#include "tests/ops/case.h"
#include "tests/support/hostile.h"

namespace kiln {
namespace {

using test::TempDir;

bool same(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) return false;
  const std::vector<double> x = a.to_data().to_doubles(), y = b.to_data().to_doubles();
  for (size_t i = 0; i < x.size(); ++i) {
    if (!(x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i])))) return false;
  }
  return true;
}

// The graph after it was text; its constants keep their values.
GraphModel through_text(const GraphModel& model) {
  const graph::Graph& graph = model.graph();
  std::vector<std::string> names;
  std::map<std::string, ErasedTensor> values;
  for (const graph::ValueId id : graph.constants()) {
    names.push_back(concat("c", names.size()));
    values[names.back()] = graph[id].constant;
  }
  const std::string text =
      encode_json(graph::to_json(graph, names, model.output_names()), JsonFormat::text);
  graph::StoredGraph stored = graph::graph_of(decode_json(text), [&](const std::string& name) {
    return graph::TensorInfo{values.at(name)->shape(), values.at(name)->dtype()};
  });
  size_t i = 0;
  for (const graph::ValueId id : stored.graph.constants()) {
    stored.graph[id].constant = values.at(stored.tensors[i++]);
  }
  return {std::move(stored.graph), std::move(stored.outputs)};
}

TEST_CASE("model files: op cases compute the same from a file") {
  int held = 0, refused = 0;
  std::set<std::string> rows;  // that are refused
  for (const ops::Case& c : ops::cases()) {
    for (const DType dtype : c.dtype_list) {
      INFO(ops::describe(c, dtype));
      const TensorList inputs = ops::make_inputs(c, c.inputs, dtype);
      std::optional<GraphModel> model;
      TensorList eager;
      try {
        manual_seed(3);
        eager = no_grad([&] { return c.call(inputs); });
        manual_seed(3);
        model = capture([&](const TensorList& xs) { return c.call(xs); }, inputs);
      } catch (const Error&) {
        continue;  // complex and quantized ones, and what is no graph
      }
      std::optional<GraphModel> loaded;
      std::string why;
      try {
        loaded = through_text(*model);
      } catch (const ValueError& error) {
        why = error.what();
      }
      if (!loaded) {
        INFO(why);
        CHECK(why.starts_with("save: node "));  // what was written is read
        const size_t open = why.find('(');
        rows.insert(why.substr(open + 1, why.find(')') - open - 1));
        ++refused;
        continue;
      }
      ++held;
      if (c.name.find("empty") != std::string::npos) continue;
      const TensorList found = (*loaded)(inputs);
      REQUIRE(found.size() == eager.size());
      for (size_t i = 0; i < found.size(); ++i) CHECK(same(found[i], eager[i]));
    }
  }
  MESSAGE(held, " graphs in files, ", refused, " refused");
  CHECK(held > 40 * refused);
  std::string all;
  for (const std::string& row : rows) all += row + " ";
  CHECK(all == "float_dropout float_random int_random ");
}

TEST_CASE("model files: a C++ model is loaded without its class") {
  const TempDir dir;
  manual_seed(1);
  nn::Sequential net(nn::Linear(4, 8), nn::GELU(), nn::Linear(8, 3));
  net.eval();
  const Tensor x = randn({2, 4});
  const std::string path = dir.path("mlp.kiln");
  capture(net, x, {.input_names = {"x"}, .output_names = {"y"}}).save(path);
  const GraphModel model = GraphModel::load(path);
  CHECK(model.input_names() == std::vector<std::string>{"x"});
  CHECK(model.output_names() == std::vector<std::string>{"y"});
  CHECK(same(model(x), no_grad([&] { return net(x); })));
  CHECK(io::SafetensorsReader(path).keys().size() == net.parameters().size());
}

TEST_CASE("model files: changed bytes give a result or an IoError") {
  const TempDir dir;
  manual_seed(1);
  nn::Sequential net(nn::Conv2d(1, 2, 3), nn::BatchNorm2d(2), nn::ReLU(), nn::MaxPool2d(2),
                     nn::Flatten(), nn::Linear(2 * 3 * 3, 4), nn::Softmax(1));
  net.eval();
  const Tensor x = randn({2, 1, 8, 8});
  const std::string path = dir.path("cnn.kiln");
  capture(net, x).save(path);
  const std::string good = test::read_bytes(path);
  const test::FuzzCount count = test::fuzz(dir, good, 1500, 5, [&](const std::string& changed) {
    const GraphModel model = GraphModel::load(changed);
    try {
      model(x);
    } catch (const Error&) {  // its inputs are others now
    }
  });
  CHECK(count.results > 0);
  CHECK(count.errors > 500);
}

}  // namespace
}  // namespace kiln
