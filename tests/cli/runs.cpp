// `kiln runs`, `kiln plot` and `kiln summary`, run as a user would run them.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/compile/graph_model.h"
#include "kiln/core/json.h"
#include "kiln/kiln.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

using namespace kiln;
using kiln::test::contains;
using kiln::test::ProgramResult;
using kiln::test::TempDir;

namespace {

using Arguments = std::vector<std::string>;

size_t line_count(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

void check_refused(const ProgramResult& result, int status, const std::string& part) {
  CAPTURE(result.out);
  CAPTURE(result.err);
  CHECK(result.status == status);
  CHECK(line_count(result.err) == 1);
  CHECK(contains(result.err, part));
}

const Json& member(const Json& json, const char* name) {
  const Json* found = json.find(name);
  REQUIRE(found != nullptr);
  return *found;
}

int64_t whole(const Json& json, const char* name) {
  const auto* value = member(json, name).as<int64_t>();
  REQUIRE(value != nullptr);
  return *value;
}

std::string text(const Json& json, const char* name) {
  const auto* value = member(json, name).as<std::string>();
  REQUIRE(value != nullptr);
  return *value;
}

// A log by hand, as the Learner writes it: the numbers below are read off it.
void write_log(const std::string& folder, const std::vector<double>& valid) {
  std::filesystem::create_directories(folder);
  std::string log;
  for (size_t i = 0; i < valid.size(); ++i) {
    log += "{\"event\":\"epoch\",\"epoch\":" + std::to_string(i + 1) +
           ",\"step\":" + std::to_string(10 * (i + 1)) +
           ",\"time\":" + std::to_string(1000 + 2 * i) +
           ",\"train/loss\":" + std::to_string(2.0 - 0.1 * i) +
           ",\"valid/loss\":" + std::to_string(valid[i]) + "}\n";
  }
  test::write_bytes(folder + "/log.jsonl", log + "{\"event\":\"epo");  // half a line
}

}  // namespace

TEST_CASE("runs: what is in the logs, the configurations and run.json") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const std::string runs = dir.path("runs");
  write_log(runs + "/first", {0.9, 0.5, 0.7});
  write_log(runs + "/below/second", {0.8, 0.6});
  test::write_bytes(
      runs + "/first/config.json",
      R"({"model": {"name": "mlp", "hidden": [4]}, "seed": 1, "data": {"kind": "csv"}})");
  test::write_bytes(
      runs + "/below/second/config.json",
      R"({"model": {"name": "mlp", "hidden": [8]}, "seed": 1, "data": {"kind": "csv"}})");
  test::write_bytes(runs + "/first/run.json",
                    R"({"state": "running", "epochs": 5, "seconds": [1, 2, 3.5], "started": 2})");
  std::filesystem::create_directories(runs + "/no run");

  const ProgramResult table = test::run_program({"runs", runs});
  CAPTURE(table.out);
  REQUIRE(table.status == 0);
  CHECK(line_count(table.out) == 3);
  CHECK(contains(table.out,
                 "first         mlp    csv   3/5     valid/loss 0.5000 (2)  6.5 s  killed"));
  CHECK(contains(table.out, "below/second  mlp    csv   2       valid/loss 0.6000 (2)  2.0 s  -"));

  const Json json = decode_json(test::run_program({"runs", runs, "--json"}).out);
  const auto* list = json.as<Json::Array>();
  REQUIRE(list != nullptr);
  REQUIRE(list->size() == 2);
  CHECK(text((*list)[0], "state") == "killed");
  CHECK(whole((*list)[0], "epochs") == 3);
  CHECK(whole(member((*list)[0], "best"), "epoch") == 2);
  CHECK(*member(member((*list)[0], "best"), "value").as<double>() == 0.5);

  const Json compared = decode_json(test::run_program({"runs", "compare", runs, "--json"}).out);
  const auto* fields = member(compared, "differing").as<Json::Object>();
  REQUIRE(fields != nullptr);
  REQUIRE(fields->size() == 1);
  CHECK((*fields)[0].first == "model.hidden");
  CHECK((*fields)[0].second == Json(Json::Array{Json("[4]"), Json("[8]")}));

  const std::string page = dir.path("page.html");
  REQUIRE(test::run_program({"runs", "compare", runs + "/first", runs + "/below", "--out", page})
              .status == 0);
  const std::string html = test::read_bytes(page);
  CHECK(contains(html, "2 runs compared"));
  CHECK(contains(html, "first"));
  CHECK(contains(html, "aria-label=\"valid/loss\""));
  CHECK(contains(html, "second, epoch 2: 0.6"));
  CHECK(contains(html, "model.hidden"));
  CHECK_FALSE(contains(html, "<td class=\"sticky\">seed"));
  // Nothing is loaded from elsewhere, and no script is run.
  CHECK_FALSE(contains(html, "http://"));
  CHECK_FALSE(contains(html, "https://"));
  CHECK_FALSE(contains(html, "<script"));
  CHECK(contains(html, "default-src 'none'"));

  check_refused(test::run_program({"runs", dir.path("none")}), 1, "there is no folder");
  check_refused(test::run_program({"runs", "compare", runs + "/no run"}), 1, "holds no run");
  check_refused(test::run_program({"runs", "compare"}), 2, "DIR");
  CHECK(test::run_program({"runs", runs + "/no run"}).out == "no runs in " + runs + "/no run\n");
  test::write_bytes(runs + "/first/run.json", "{");
  check_refused(test::run_program({"runs", runs}), 1, "run.json");
}

TEST_CASE("runs: names in files are text, never markup or control characters") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const std::string run = dir.path("runs/<b>x");
  write_log(run, {1.0});
  test::write_bytes(run + "/config.json",
                    "{\"model\": \"<script>alert(1)</script>\\u001b[31m\", \"a\": \"<i>\"}");
  write_log(dir.path("runs/y"), {1.0});
  const ProgramResult table = test::run_program({"runs", dir.path("runs")});
  CHECK_FALSE(contains(table.out, "\x1b"));
  const std::string page = dir.path("page.html");
  REQUIRE(test::run_program({"runs", "compare", dir.path("runs"), "--out", page}).status == 0);
  const std::string html = test::read_bytes(page);
  CHECK_FALSE(contains(html, "<script"));
  CHECK_FALSE(contains(html, "<b>x"));
  CHECK_FALSE(contains(html, "<i>"));
  CHECK(contains(html, "&lt;b&gt;x"));
}

TEST_CASE("plot: a chart of characters, or the numbers") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const std::string run = dir.path("run");
  write_log(run, {0.0, 1.0, 2.0, 3.0, 4.0});
  const ProgramResult one =
      test::run_program({"plot", run, "valid/loss", "--ascii", "--width", "30", "--height", "5"});
  // A straight line from the lower left to the upper right.
  CHECK(one.out ==
        "run: valid/loss\n"
        "4 +                        ***\n"
        "  |                 *******\n"
        "  |           ******\n"
        "  |    *******\n"
        "0 +****\n"
        "  +---------------------------\n"
        "   1          epoch          5\n");
  const ProgramResult both = test::run_program({"plot", run, "--ascii"});
  CHECK(contains(both.out, "run: loss   * train/loss  o valid/loss"));
  CHECK(contains(both.out, "o"));
  CHECK(line_count(both.out) == 19);
  CHECK_FALSE(contains(both.out, "\x1b"));
  const Json json = decode_json(test::run_program({"plot", run, "loss", "--json"}).out);
  const auto* points = member(json, "valid/loss").as<Json::Array>();
  REQUIRE(points != nullptr);
  CHECK(points->size() == 5);
  CHECK((*points)[3] == Json(Json::Array{Json(4), Json(3.0)}));
  CHECK(text(json, "x") == "epoch");
  check_refused(test::run_program({"plot", run, "los"}), 2, "did you mean 'loss'?");
  check_refused(test::run_program({"plot", dir.path("none")}), 1, "holds no run");
  check_refused(test::run_program({"plot"}), 2, "RUN");
}

TEST_CASE("summary: what a model multiplies, counted by hand") {
  NEEDS_PROGRAM();
  const TempDir dir;
  REQUIRE(test::run_program({"train", "--example", "digits", "--out", dir.path("digits")}).status ==
          0);
  const std::string config = dir.path("digits/config.json");
  const Json json = decode_json(test::run_program({"summary", config, "--json"}).out);
  // LeNet on 28x28: 5x5 convolutions on 28x28 and 10x10, then 400-120-84-10.
  CHECK(whole(json, "parameters") ==
        6 * 25 + 6 + 16 * 150 + 16 + 400 * 120 + 120 + 120 * 84 + 84 + 84 * 10 + 10);
  CHECK(whole(json, "multiply_adds") ==
        28 * 28 * 6 * 25 + 10 * 10 * 16 * 150 + 400 * 120 + 120 * 84 + 84 * 10);
  CHECK(whole(json, "parameter_bytes") == 4 * whole(json, "parameters"));
  CHECK(whole(json, "activation_bytes") == 4 * (28 * 28 * 6 + 10 * 10 * 16 + 120 + 84 + 10));
  const auto* layers = member(json, "layers").as<Json::Array>();
  REQUIRE(layers != nullptr);
  CHECK(text((*layers)[1], "name") == "conv1");
  CHECK(member((*layers)[1], "output_shape") ==
        Json(Json::Array{Json(1), Json(6), Json(28), Json(28)}));
  const ProgramResult table = test::run_program({"summary", config});
  CHECK(contains(table.out, "conv2 (Conv2d)"));
  CHECK(contains(table.out, "61,706"));

  // A model file with its graph: 4 * 3 products for each of 2 samples.
  nn::Linear net(3, 4);
  capture(net, randn({2, 3})).save(dir.path("net.kiln"));
  const Json graph =
      decode_json(test::run_program({"summary", dir.path("net.kiln"), "--json"}).out);
  CHECK(whole(graph, "parameters") == 16);
  CHECK(whole(graph, "multiply_adds") >= 24);
  CHECK(whole(graph, "multiply_adds") <= 24 + 8);  // and perhaps the sums with the bias
  io::save_model(net, dir.path("net.safetensors"));
  const Json weights =
      decode_json(test::run_program({"summary", dir.path("net.safetensors"), "--json"}).out);
  CHECK(whole(weights, "elements") == 16);
  CHECK(whole(weights, "bytes") == 64);
  check_refused(test::run_program({"summary", dir.path()}), 1, "holds no config.json");
  check_refused(test::run_program({"summary", dir.path("none.pt")}), 1, "none.pt");
}
