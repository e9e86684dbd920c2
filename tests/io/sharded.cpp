#include "kiln/io/sharded.h"

#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln/io/atomic_file.h"
#include "kiln/io/model_file.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/hostile.h"

using namespace kiln;
using namespace kiln::io;
using kiln::test::check_refused;
using kiln::test::fuzz;
using kiln::test::message_of;
using kiln::test::TempDir;

namespace {

// Tensors of 40, 80, ... bytes.
nn::StateDict tensors(int count, float first = 0) {
  nn::StateDict out;
  for (int i = 0; i < count; ++i) {
    out.set("layer." + std::to_string(count - i), full({10 * (i + 1)}, first + i));
  }
  return out;
}

std::vector<std::string> sorted_names(const TempDir& dir) {
  std::vector<std::string> names = dir.names();
  std::sort(names.begin(), names.end());
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("sharded: written as Hugging Face names them, and read through the index") {
  TempDir dir;
  const nn::StateDict all = tensors(5);  // 40, 80, 120, 160, 200 bytes
  const auto paths = save_sharded(dir.path("model.safetensors"), all, 240, {{"format", "pt"}});
  CHECK(paths == Names{dir.path("model.safetensors.index.json"),
                       dir.path("model-00001-of-00003.safetensors"),
                       dir.path("model-00002-of-00003.safetensors"),
                       dir.path("model-00003-of-00003.safetensors")});
  CHECK(sorted_names(dir) ==
        Names{"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
              "model-00003-of-00003.safetensors", "model.safetensors.index.json"});
  // By hand: 40 + 80 + 120 = 240 fill the first, 160 the second (with 200 it would be 360).
  CHECK(load_safetensors(paths[1]).tensors.size() == 3);
  CHECK(load_safetensors(paths[2]).tensors.size() == 1);
  CHECK(load_safetensors(paths[3]).tensors.size() == 1);
  CHECK(test::read_bytes(paths[0]) ==
        "{\n  \"metadata\": {\n    \"total_size\": 600\n  },\n  \"weight_map\": {\n"
        "    \"layer.5\": \"model-00001-of-00003.safetensors\",\n"
        "    \"layer.4\": \"model-00001-of-00003.safetensors\",\n"
        "    \"layer.3\": \"model-00001-of-00003.safetensors\",\n"
        "    \"layer.2\": \"model-00002-of-00003.safetensors\",\n"
        "    \"layer.1\": \"model-00003-of-00003.safetensors\"\n  }\n}\n");
  const ModelFile back = load_model_file(paths[0]);
  CHECK(back.format == FileFormat::sharded);
  CHECK(back.tensors.keys() == all.keys());
  for (const auto& [name, value] : all) CHECK(back.tensors.at(name).equal(value));
  CHECK(back.metadata == Metadata{{"format", "pt"}, {"total_size", "600"}});
}

TEST_CASE("sharded: one file when all fits, and a tensor too large gets its own") {
  TempDir dir;
  const auto one = save_sharded(dir.path("m.safetensors"), tensors(3), 1000);
  CHECK(one == Names{dir.path("m.safetensors")});
  CHECK(load_model_file(one[0]).format == FileFormat::safetensors);
  CHECK(save_sharded(dir.path("n.safetensors"), tensors(3), 1).size() == 4);
  CHECK_THROWS_AS(save_sharded(dir.path("n.safetensors"), tensors(3), 0), ValueError);
  CHECK_THROWS_AS(save_model_file(dir.path("n.pt"), tensors(1), {.max_shard_size = 100}),
                  ValueError);
}

TEST_CASE("sharded: a new save replaces the whole old set") {
  TempDir dir;
  const std::string path = dir.path("m.safetensors");
  save_sharded(path, tensors(5), 40);  // five files
  CHECK(dir.names().size() == 6);
  save_sharded(path, tensors(5, 7), 400);  // two: 40 + 80 + 120 + 160, and 200 bytes
  CHECK(sorted_names(dir) == Names{"m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors",
                                   "m.safetensors.index.json"});
  CHECK(load_model_file(path + ".index.json").tensors.at("layer.5")[0].item() == 7);
  save_sharded(path, tensors(2, 9), 1000);  // one
  CHECK(sorted_names(dir) == Names{"m.safetensors"});
  save_sharded(path, tensors(2, 9), 50);
  CHECK(sorted_names(dir) == Names{"m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors",
                                   "m.safetensors.index.json"});
}

TEST_CASE("sharded: a set of as many files does not touch the old one before it is whole") {
  TempDir dir;
  const std::string path = dir.path("m.safetensors");
  save_sharded(path, tensors(2), 50);
  const auto second = save_sharded(path, tensors(2, 5), 50);
  CHECK(sorted_names(dir) == Names{"m-v2-00001-of-00002.safetensors",
                                   "m-v2-00002-of-00002.safetensors", "m.safetensors.index.json"});
  CHECK(second == Names{path + ".index.json", dir.path("m-v2-00001-of-00002.safetensors"),
                        dir.path("m-v2-00002-of-00002.safetensors")});
  CHECK(load_model_file(second[0]).tensors.at("layer.2")[0].item() == 5);
  save_sharded(path, tensors(2, 7), 50);
  CHECK(sorted_names(dir) == Names{"m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors",
                                   "m.safetensors.index.json"});
}

namespace {

int steps_left = 0;

// Runs save() in a child that ends itself, as if it was killed, before its `step`-th step. Whether
// it came to its end.
template <class Save>
bool killed_at(int step, Save&& save) {
  const pid_t child = ::fork();
  if (child == 0) {
    steps_left = step;
    io::detail::file_step = [](const char*) {
      if (--steps_left < 0) ::_exit(9);
    };
    save();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  REQUIRE((WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 9));
  return WEXITSTATUS(status) == 0;
}

// The value that all tensors of a model have besides their number; -1 when there is no such model.
// A mixture fails the test.
double generation_of(const std::string& path, int count) {
  if (!std::filesystem::exists(path)) return -1;
  const ModelFile file = load_model_file(path);
  REQUIRE(file.tensors.size() == static_cast<size_t>(count));
  const double first = file.tensors.at("layer." + std::to_string(count))[0].item();
  for (int i = 0; i < count; ++i) {
    const double value = file.tensors.at("layer." + std::to_string(count - i))[0].item();
    REQUIRE(value - i == first);
  }
  return first;
}

}  // namespace

TEST_CASE("sharded: killed at any step, the old set or the new one can be loaded") {
  // 40, 80, 120 and 160 bytes: in four files, three, and one.
  const std::pair<uint64_t, uint64_t> sizes[] = {{50, 50}, {50, 200}, {1000, 50}, {50, 1000}};
  for (const auto& [before, after] : sizes) {
    CAPTURE(before);
    CAPTURE(after);
    bool whole = false;
    int step = 0;
    for (; !whole; ++step) {
      CAPTURE(step);
      TempDir dir;
      const std::string path = dir.path("m.safetensors");
      save_sharded(path, tensors(4, 100), before);
      const uint64_t size = after;
      whole = killed_at(step, [&] { save_sharded(path, tensors(4, 200), size); });
      const double single = generation_of(path, 4);
      const double several = generation_of(path + ".index.json", 4);
      // What the user opened before still opens, or what the new save would have given him does.
      CHECK((single == 100 || single == 200 || several == 100 || several == 200));
      if (before != 1000 && after != 1000) CHECK((several == 100 || several == 200));
      if (whole) CHECK((after == 1000 ? single : several) == 200);
      // The next save works, and leaves nothing of either behind.
      save_sharded(path, tensors(4, 300), after);
      CHECK(generation_of(after == 1000 ? path : path + ".index.json", 4) == 300);
      CHECK(dir.names().size() == (after == 1000 ? 1u : after == 200 ? 4u : 5u));
    }
    CHECK(step > 5);
  }
}

TEST_CASE("sharded: a save that fails leaves the old set as it was") {
  TempDir dir;
  const std::string path = dir.path("m.safetensors");
  save_sharded(path, tensors(3), 50);
  const auto names = sorted_names(dir);
  nn::StateDict bad = tensors(3, 5);
  bad.set("q", quantize(ones({4}), {}));
  CHECK_THROWS_AS(save_sharded(path, bad, 50), Error);
  // A folder stands where a shard must go: found out before anything is replaced.
  std::filesystem::create_directory(dir.path("m-00002-of-00004.safetensors"));
  CHECK_THROWS_AS(save_sharded(path, tensors(4, 5), 50), IoError);
  std::filesystem::remove(dir.path("m-00002-of-00004.safetensors"));
  CHECK(sorted_names(dir) == names);
  CHECK(load_model_file(path + ".index.json").tensors.at("layer.3")[0].item() == 0);
}

TEST_CASE("sharded: a file that the old index names, but not as its own, stays") {
  TempDir dir;
  const std::string path = dir.path("m.safetensors");
  save_model_file(dir.path("precious.safetensors"), tensors(1));
  test::write_bytes(path + ".index.json",
                    "{\"weight_map\": {\"layer.1\": \"precious.safetensors\"}}");
  CHECK(load_model_file(path + ".index.json").tensors.size() == 1);
  save_sharded(path, tensors(2), 50);
  CHECK(std::filesystem::exists(dir.path("precious.safetensors")));
}

TEST_CASE("sharded: shards may be of any format, and may hold more than the index names") {
  TempDir dir;
  save_model_file(dir.path("a.pt"), {{"x", ones({2})}, {"more", zeros({1})}});
  save_model_file(dir.path("b.npz"), {{"y", zeros({3})}});
  test::write_bytes(
      dir.path("i.json"),
      "{\"metadata\": {\"note\": \"n\", \"deep\": {\"a\": [1, {}]}},\n"
      " \"other\": [[{}], null], \"weight_map\": {\"y\": \"b.npz\", \"x\": \"a.pt\"}}");
  const ModelFile file = load_model_file(dir.path("i.json"));
  CHECK(file.tensors.keys() == Names{"y", "x"});
  CHECK(file.metadata.at("note") == "n");
}

TEST_CASE("sharded: an index that lies or leads elsewhere is refused") {
  TempDir dir;
  save_model_file(dir.path("a.safetensors"), {{"x", ones({2})}});
  const auto open = [](const std::string& path) { load_model_file(path); };
  const auto refused = [&](const std::string& bytes, const char* message) {
    check_refused(dir, bytes.substr(0, 100), bytes, message, open);
  };
  const auto names = [](const std::string& file) {
    return "{\"weight_map\": {\"x\": \"" + file + "\"}}";
  };
  for (const char* file : {"/etc/passwd", "../a.safetensors", "sub/a.safetensors", "..", ".", "",
                           "..\\\\a.safetensors", "a\\u0000b", "sub/../../a.safetensors"}) {
    refused(names(file), "outside the folder");
  }
  refused(names(std::string(256, 'n')), "outside the folder");
  refused(names("f"), "named by another index");  // itself
  refused("{}", "no weight_map");
  refused("{\"weight_map\": {}}", "no weight_map");
  refused("{\"weight_map\": 3}", "no list of names");
  refused("{\"weight_map\": [\"a.safetensors\"]}", "no list of names");
  refused("{\"weight_map\": {\"x\": 3}}", "no list of names");
  refused("{\"weight_map\": {\"x\": {\"y\": \"a.safetensors\"}}}", "no list of names");
  refused("{\"weight_map\": {\"x\": [\"a.safetensors\"]}}", "no list of names");
  refused("{\"weight_map\": {\"x\": \"a.safetensors\", \"x\": \"a.safetensors\"}}", "twice");
  refused("{\"weight_map\": {\"\": \"a.safetensors\"}}", "no name");
  refused("{\"weight_map\": {}, \"weight_map\": {}}", "appears twice");
  refused("{\"weight_map\": {\"x\": \"a.safetensors\"}", "no valid JSON");
  refused("{\"weight_map\": {\"x\": \"a.safetensors\"}} x", "no valid JSON");
  refused("{\"a\": " + std::string(100'000, '['), "no valid JSON");
  // A shard that is missing, or lacks the tensor.
  test::write_bytes(dir.path("g"), names("b.safetensors"));
  CHECK(message_of<IoError>([&] { load_model_file(dir.path("g")); }).find("b.safetensors") !=
        std::string::npos);
  refused("{\"weight_map\": {\"y\": \"a.safetensors\"}}", "not in the file");
}

TEST_CASE("sharded: mutations of an index give a result or an IoError") {
  TempDir dir;
  save_model_file(dir.path("a.safetensors"), {{"x", ones({2})}});
  const auto count = fuzz(dir,
                          "{\"metadata\": {\"total_size\": 8}, \"weight_map\": {\"x\": "
                          "\"a.safetensors\"}}",
                          2000, 5, [](const std::string& path) { load_model_file(path); });
  CHECK(count.results > 20);
  CHECK(count.errors > 500);
}
