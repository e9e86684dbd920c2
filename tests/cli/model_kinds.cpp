// `kiln run`, `inspect`, `bench model` and `convert` on ONNX files and programs of torch.export.
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/compile/graph_model.h"
#include "kiln/io/npy_file.h"
#include "kiln/io/safetensors.h"
#include "kiln/kiln.h"
#include "kiln/onnx/model.h"
#include "kiln/onnx/onnx.h"
#include "tests/support/fixtures.h"
#include "tests/support/hostile.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

using namespace kiln;
using kiln::test::check_error;
using kiln::test::check_prints;
using kiln::test::fixture;
using kiln::test::run_program;
using kiln::test::TempDir;

namespace {

// A net of [batch, 3] -> [batch, 2] and what it gives.
struct Net {
  nn::Sequential net{nn::Linear(3, 4), nn::ReLU(), nn::Linear(4, 2)};
  Tensor x, y;

  Net() {
    manual_seed(5);
    x = randn({5, 3});
    y = no_grad([&] { return net(x); });
  }
  GraphModel graph() {
    return capture(net, x,
                   {.input_names = {"x"},
                    .output_names = {"scores"},
                    .dynamic_axes = {{"x", {{0, "batch"}}}}});
  }
};

Tensor of_torch(const char* name) {
  return Tensor(io::SafetensorsReader(fixture("pt2/expected.safetensors")).read(name));
}

}  // namespace

TEST_CASE("run, inspect and bench model: an ONNX file, whatever its name") {
  NEEDS_PROGRAM();
  const TempDir dir;
  Net net;
  const std::string path = dir.path("net.model"), x = dir.path("x.npy"), y = dir.path("y.npy");
  onnx::save(net.graph(), path);
  io::save_npy(x, net.x);
  check_prints(run_program({"run", path, "--input", "x=" + x, "--output", y}),
               {"scores: float32 [5, 2] in "});
  CHECK(io::load_npy(y).allclose(net.y, 1e-5, 1e-6));
  check_prints(run_program({"run", path, "--input", x}), {"scores\n"});
  check_prints(run_program({"inspect", path}),
               {"net.model: ONNX, operator set 20", "input        x  float32", "[batch, 3]",
                "output  scores", "2 Gemm, 1 Identity, 1 Relu", "0.weight",
                "4 tensors, 26 elements, 104 bytes"});
  check_prints(run_program({"inspect", path, "--json", "--filter", "*.bias"}),
               {"\"format\": \"ONNX, operator set 20\"", "\"batch\",\n        3", "\"Gemm\": 2",
                "\"tensors\": 2"});
  check_prints(run_program({"bench", "model", path, "--size", "batch=7", "--calls", "3", "--json"}),
               {"\"x\": [\n      7,\n      3", "\"calls\": 3"});
  check_error(run_program({"run", path}), 2, "there is none for 'x'");
  check_error(run_program({"inspect", path, "--key", "model"}), 2, "only a PyTorch checkpoint");
  check_error(run_program({"bench", "model", path, "--size", "time=7"}), 2,
              "expected NAME=SIZE, of batch");
}

TEST_CASE("run, inspect and bench model: a program of torch.export") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const std::string x = dir.path("x.npy"), y = dir.path("y.npy"), path = dir.path("program");
  std::filesystem::copy_file(fixture("pt2/net.pt2"), path);
  io::save_npy(x, of_torch("x"));
  check_prints(run_program({"run", path, "--input", x, "--output", y}), {"float32"});
  CHECK(io::load_npy(y).allclose(of_torch("y"), 1e-5, 1e-6));
  check_prints(run_program({"inspect", path}), {"program: a program of torch.export", "fc1.weight",
                                                "aten.linear.default", "float32"});
  check_prints(run_program({"inspect", path, "--json"}),
               {"\"format\": \"a program of torch.export\"", "\"aten.linear.default\""});
  check_prints(run_program({"bench", "model", path, "--calls", "3"}), {"x float32 [", "median"});
}

TEST_CASE("convert: models from kind to kind keep what they compute") {
  NEEDS_PROGRAM();
  const TempDir dir;
  Net net;
  const std::string onnx = dir.path("net.onnx"), kiln = dir.path("net.kiln"),
                    again = dir.path("again.onnx"), fixed = dir.path("fixed.kiln");
  onnx::save(net.graph(), onnx);
  check_prints(run_program({"convert", onnx, kiln}), {"net.kiln: a graph of Kiln", "batch"});
  const GraphModel graph = GraphModel::load(kiln);
  CHECK(graph(net.x).allclose(net.y, 1e-5, 1e-6));
  CHECK(graph.free_dims() == std::vector<std::string>{"batch"});
  check_prints(run_program({"convert", kiln, again}), {"again.onnx: ONNX"});
  CHECK(onnx::Model::load(again)({net.x})[0].allclose(net.y, 1e-5, 1e-6));
  check_prints(run_program({"convert", onnx, fixed, "--size", "batch=5"}), {"fixed.kiln"});
  CHECK(GraphModel::load(fixed).free_dims().empty());
  CHECK(GraphModel::load(fixed)(net.x).allclose(net.y, 1e-5, 1e-6));
  check_prints(run_program({"convert", kiln, fixed, "--size", "batch=2", "--force"}), {"fixed"});
  CHECK(GraphModel::load(fixed)(net.x.narrow(0, 0, 2)).allclose(net.y.narrow(0, 0, 2), 1e-5, 1e-6));

  const std::string program = dir.path("program.kiln");
  const Tensor x = of_torch("x");
  check_prints(run_program({"convert", fixture("pt2/net.pt2"), program}), {"a graph of Kiln"});
  CHECK(GraphModel::load(program)(x).allclose(of_torch("y"), 1e-5, 1e-6));

  check_error(run_program({"convert", onnx, kiln}), 1, "the file is there already");
  check_error(run_program({"convert", onnx, dir.path("a.kiln"), "--dtype", "float16"}), 2,
              "--dtype is for files of tensors");
  check_error(run_program({"convert", onnx, dir.path("a.kiln"), "--size", "time=2"}), 2,
              "of batch");
  check_error(run_program({"convert", kiln, dir.path("a.pt"), "--size", "batch=2"}), 2,
              "OUT ends with .kiln or .onnx");
}

TEST_CASE("run, bench model and convert: files of no kind and damaged ones") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const std::string x = dir.path("x.npy"), weights = dir.path("w.safetensors");
  io::save_npy(x, ones({2}));
  io::save_safetensors(weights, {{"w", ones({2}).to_data()}});
  for (const std::string& path : {x, weights, fixture("torch/checkpoint.pt")}) {
    for (std::vector<std::string> command : {std::vector<std::string>{"run", path, "--input", x},
                                             {"bench", "model", path},
                                             {"convert", path, dir.path("out.onnx")}}) {
      check_error(run_program(command), 1, "(.kiln), an ONNX model (.onnx) or a program");
    }
  }
  check_error(run_program({"run", x}), 1, "got NumPy .npy");
  check_error(run_program({"run", dir.path("none.onnx")}), 1, "kiln: run: ");
  const std::string text = dir.path("text"), empty = dir.path("empty");
  test::write_bytes(text, "hello, this is a text\n");
  test::write_bytes(empty, "");
  check_error(run_program({"run", text}), 1, "a file of another kind");
  check_error(run_program({"run", empty}), 1, "a file of another kind");

  // Cut off: the reader that the name asks for says where.
  Net net;
  const std::string whole = dir.path("whole.onnx"), cut = dir.path("cut.onnx");
  onnx::save(net.graph(), whole);
  const std::string bytes = test::read_bytes(whole);
  test::write_bytes(cut, bytes.substr(0, bytes.size() / 2));
  check_error(run_program({"run", cut, "--input", x}), 1, "onnx: '");
  check_error(run_program({"inspect", cut}), 1, "onnx: '");
  const std::string pt2 = dir.path("cut.pt2");
  const std::string archive = test::read_bytes(fixture("pt2/net.pt2"));
  test::write_bytes(pt2, archive.substr(0, archive.size() / 2));
  check_error(run_program({"run", pt2, "--input", x}), 1, "pt2: '");
}

TEST_CASE("the kind of a file: changed bytes never break the program") {
  const TempDir dir;
  Net net;
  const std::string path = dir.path("net.onnx");
  onnx::save(net.graph(), path);
  int models = 0;
  test::fuzz(dir, test::read_bytes(path), 500, 3,
             [&](const std::string& changed) { models += onnx::is_model(changed) ? 1 : 0; });
  CHECK(models > 0);
  CHECK(models < 500);
}
