// `kiln inspect` and `kiln convert`, run as a user would run them.
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/compile/graph_model.h"
#include "kiln/core/error.h"
#include "kiln/io/model_file.h"
#include "kiln/io/npy_file.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/fixtures.h"
#include "tests/support/near.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

using namespace kiln;
using kiln::test::check_error;
using kiln::test::check_prints;
using kiln::test::fixture;
using kiln::test::near;
using kiln::test::ProgramResult;
using kiln::test::run_program;
using kiln::test::TempDir;

TEST_CASE("inspect: format, values, tensors and totals") {
  NEEDS_PROGRAM();
  check_prints(run_program({"inspect", fixture("torch/checkpoint.pt")}),
               {"checkpoint.pt: PyTorch\n", "  epoch = 3\n", "  name = h\xc3\xa9llo\n",
                "  device = torch.device('cpu')\n", "optimizer.param_groups.0.lr = 0.01\n",
                "model.weight", "optimizer.state.0.exp_avg", "11 tensors, 37 elements, 148 bytes"});
  check_prints(run_program({"inspect", fixture("torch/checkpoint_legacy.pt"), "--key", "model"}),
               {"PyTorch (legacy)\n", "weight  float32  [2, 3]     24\n", "2 tensors, 8 elements"});
  check_prints(run_program({"inspect", fixture("numpy/arrays.npz"), "--filter", "*bias*"}),
               {"NumPy .npz\n", "layer/bias  int64    [3]     24\n", "1 tensor, 3 elements"});
  check_prints(run_program({"inspect", fixture("numpy/f4.npy")}), {"NumPy .npy", "array"});
  check_prints(run_program({"inspect", fixture("torch/sparse.pt")}),
               {"unreadable", "s cannot be read: Kiln reads sparse tensors in Python alone"});
}

TEST_CASE("inspect: JSON") {
  NEEDS_PROGRAM();
  const ProgramResult result =
      run_program({"inspect", fixture("torch/float8.pt"), "--json", "--filter", "*"});
  check_prints(result,
               {"\"format\": \"PyTorch\"", "\"name\": \"good\"", "\"dtype\": \"float8_e4m3fn\"",
                "\"unreadable\": \"Kiln has no such dtype\"",
                "\"total\": {\n    \"tensors\": 3,\n    \"elements\": 7,\n    \"bytes\": 8\n"});
}

TEST_CASE("inspect: what is wrong is one line") {
  NEEDS_PROGRAM();
  const TempDir dir;
  check_error(run_program({"inspect"}), 2, "FILE is required");
  check_error(run_program({"inspect", dir.path("none")}), 1, "cannot open");
  check_error(run_program({"inspect", dir.path()}), 1, "a directory");
  check_error(run_program({"inspect", fixture("make_fixtures.py")}), 1, "is no model file");
  check_error(run_program({"inspect", test::write_bytes(dir.path("empty"), "")}), 1,
              "an empty file");
  check_error(run_program({"inspect", test::write_bytes(dir.path("gz"), "\x1f\x8b\x08")}), 1,
              "gzip");
  check_error(run_program({"inspect", fixture("torch/module.pt")}), 1, "model.state_dict()");
  check_error(run_program({"inspect", fixture("torch/views.pt"), "--key", "x"}), 1,
              "nothing at this key");
  check_error(run_program({"inspect", fixture("numpy/f4.npy"), "--key", "x"}), 1, "no key");
}

TEST_CASE("convert: format, dtype and names") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const std::string out = dir.path("n.safetensors");
  check_prints(run_program({"convert", fixture("torch/network.pt"), out, "--dtype", "bf16",
                            "--rename", "^fc\\.=head.", "--rename",
                            "(norm)\\.running_(.*)=$2_of_$1", "--prefix", "net."}),
               {"n.safetensors: safetensors, 9 tensors, 490 bytes\n"});
  const io::ModelFile file = io::load_model_file(out);
  CHECK(file.tensors.at("net.head.weight").dtype() == bf16);
  CHECK(file.tensors.at("net.norm.num_batches_tracked").dtype() == i64);
  CHECK(file.tensors.contains("net.mean_of_norm"));
  // And back, as PyTorch's.
  check_prints(run_program({"convert", out, dir.path("b.pt"), "--strip-prefix", "net.", "--dtype",
                            "float32"}),
               {"PyTorch, 9 tensors"});
  const io::ModelFile back = io::load_model_file(dir.path("b.pt"));
  CHECK(back.format == io::FileFormat::torch);
  const io::ModelFile original = io::load_model_file(fixture("torch/network.pt"));
  CHECK(back.tensors.at("head.weight").allclose(original.tensors.at("fc.weight"), 1.0 / 256, 1e-6));
}

TEST_CASE("convert: metadata, keys, shards and compression") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const std::string checkpoint = fixture("torch/checkpoint.pt");
  check_prints(run_program({"convert", checkpoint, dir.path("c.safetensors")}), {"2 tensors"});
  CHECK(io::load_model_file(dir.path("c.safetensors")).metadata.at("epoch") == "3");
  check_prints(run_program({"convert", checkpoint, dir.path("o.npz"), "--key", "optimizer.state.0",
                            "--compress"}),
               {"3 tensors", "NumPy's files have none"});
  CHECK(io::load_model_file(dir.path("o.npz")).tensors.contains("exp_avg_sq"));
  check_prints(run_program({"convert", checkpoint, dir.path("m.safetensors"), "--key", ".",
                            "--max-shard-size", "100 B"}),
               {"11 tensors"});
  CHECK(io::load_model_file(dir.path("m.safetensors.index.json")).tensors.size() == 11);
}

TEST_CASE("convert: what is wrong is one line, and writes nothing") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const std::string in = fixture("torch/views.pt");
  const std::string out = dir.path("out.safetensors");
  const auto convert = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"convert", in, out});
    return run_program(more);
  };
  check_error(run_program({"convert", in}), 2, "OUT is required");
  check_error(run_program({"convert", in, in, "--force"}), 2, "same file");
  check_error(convert({"--dtype", "float7"}), 2, "no such dtype: 'float7'");
  check_error(convert({"--dtype", "int8"}), 2, "floating point");
  check_error(convert({"--rename", "abc"}), 2, "REGEX=REPLACEMENT");
  check_error(convert({"--rename", "[=x"}), 2, "no regular expression");
  check_error(convert({"--rename", ".*=x"}), 1, "two tensors would have one name");
  check_error(convert({"--strip-prefix", "module."}), 1, "no name begins with 'module.'");
  check_error(convert({"--max-shard-size", "5 parsecs"}), 2, "no size of a file");
  check_error(convert({"--compress"}), 1, "compressed");
  check_error(run_program({"convert", in, dir.path("x.npy")}), 1, "holds one array");
  check_error(run_program({"convert", fixture("torch/float8.pt"), out}), 1, "'f'");
  check_error(run_program({"convert", in, dir.path("no/folder.pt")}), 1, "no/folder.pt");
  CHECK(dir.names().empty());
  test::write_bytes(out, "precious");
  check_error(convert({}), 1, "is there already");
  CHECK(test::read_bytes(out) == "precious");
  check_prints(convert({"--force"}), {"9 tensors"});
}

TEST_CASE("convert: a name that is too long for regular expressions is an error") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const std::string in = dir.path("long.safetensors");
  io::save_model_file(in, {{std::string(300'000, 'a'), zeros({1})}});
  const auto convert = [&](const std::string& rename) {
    return run_program({"convert", in, dir.path("o.safetensors"), "--rename", rename});
  };
  check_error(convert("(a|b)*c=x"), 1, "too long for a regular expression; got 300000");
  check_error(convert(std::string(100'000, '(') + "=x"), 2, "regular expression is too long");
  check_error(convert("(a|b=x"), 2, "no regular expression");
  CHECK(dir.names().size() == 1);
}

TEST_CASE("convert: a name without an extension is PyTorch's") {
  NEEDS_PROGRAM();
  const TempDir dir;
  check_prints(run_program({"convert", fixture("torch/network.pt"), dir.path("out")}),
               {"out: PyTorch, 9 tensors"});
}

TEST_CASE("run: a graph on arrays, by order and by name; inspect shows it") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const Tensor w = from_vector(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2});
  const GraphModel model = capture(
      [&](const TensorList& xs) {
        const Tensor y = xs[0].matmul(w) + xs[1];
        return TensorList{y, y.relu()};
      },
      {ones({2, 3}), ones({2})}, {.tensors = {{"w", w}}, .input_names = {"x", "bias"}});
  const std::string path = dir.path("m.kiln"), x = dir.path("x.npy"), b = dir.path("b.npy");
  model.save(path);
  io::save_npy(x, ones({2, 3}));
  io::save_npy(b, full({2}, -10.0));
  check_prints(run_program({"inspect", path}),
               {"safetensors", "w", "input", "bias", "output1", "1 float_matmul", "3 nodes"});
  check_prints(run_program({"run", path, "--input", x, "--input", b}), {"output0", "-1", "2"});
  const std::string out = dir.path("y.npy"), relu = dir.path("relu.npy");
  check_prints(run_program({"run", path, "--input", "bias=" + b, "--input", x, "--output", out,
                            "--output", relu}),
               {"output0: float32 [2, 2]", "output1: float32 [2, 2]"});
  CHECK(near(io::load_npy(out), {-1, 2, -1, 2}));
  CHECK(near(io::load_npy(relu), {0, 2, 0, 2}));
  check_error(run_program({"run", path, "--input", x}), 2, "there is none for 'bias'");
  check_error(run_program({"run", path, "--input", x, "--input", "x=" + x}), 2, "takes 2 inputs");
  check_error(run_program({"run", path, "--input", b, "--input", x}), 1, "has shape [2]");
  check_error(run_program({"run", x, "--input", x}), 1, "");
}

TEST_CASE("bench model: the time of a call, and what is wrong with its flags") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const std::string path = dir.path("m.kiln");
  const Tensor table = randn({4, 3});
  capture([&](const TensorList& xs) { return TensorList{table.index_select(0, xs[0]).relu()}; },
          {arange(2)}, {.input_names = {"ids"}, .dynamic_axes = {{"ids", {{0, "count"}}}}})
      .save(path);
  check_prints(
      run_program({"bench", "model", path, "--calls", "7"}),
      {"ids int64 [2]", "threads:", "calls:     7", "median", "values of inputs a second"});
  check_prints(run_program({"bench", "model", path, "--calls", "7", "--explain"}),
               {"8 replays measured, ", " %  ", "1 x float_index_select", "1 x float_relu"});
  check_prints(run_program({"bench", "model", path, "--calls", "7", "--explain", "--json"}),
               {"\"explain\": [", "1 x float_relu"});
  check_prints(run_program({"bench", "model", path, "--size", "count=9", "--calls", "3",
                            "--threads", "1", "--json"}),
               {"\"ids\": [\n      9", "\"threads\": 1", "\"calls\": 3", "median_seconds"});
  check_error(run_program({"bench", "model", path, "--size", "batch=9"}), 2,
              "expected NAME=SIZE, of count");
  check_error(run_program({"bench", "model", path, "--size", "count=0"}), 2, "got 'count=0'");
  check_error(run_program({"bench", "model", dir.path("none.kiln")}), 1, "none.kiln");
}

TEST_CASE("run: a graph with a free dim takes any size of it") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const std::string path = dir.path("m.kiln"), x = dir.path("x.npy");
  capture([](const TensorList& xs) { return TensorList{xs[0].reshape({-1}).relu()}; },
          {ones({2, 3})}, {.input_names = {"x"}, .dynamic_axes = {{"x", {{0, "batch"}}}}})
      .save(path);
  check_prints(run_program({"inspect", path}), {"input", "[batch, 3]"});
  const std::string out = dir.path("y.npy");
  for (const int64_t n : {1, 5}) {
    io::save_npy(x, ones({n, 3}));
    check_prints(run_program({"run", path, "--input", x, "--output", out}),
                 {concat("output0: float32 [", 3 * n, "]")});
  }
  io::save_npy(x, ones({5, 4}));
  check_error(run_program({"run", path, "--input", x}), 1, "expected [batch, 3]");
}
