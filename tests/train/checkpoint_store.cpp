#include "kiln/train/checkpoint_store.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln/core/error.h"
#include "kiln/io/atomic_file.h"
#include "kiln/io/torch_file.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/train/snapshot.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::train;
using test::TempDir;

namespace {

io::PickleValue state_of(const Tensor& x, int64_t step) {
  io::PickleDict state;
  state.set("x", x);
  state.set("step", step);
  state.set("names", io::PickleList{io::PickleValue("a"), io::PickleValue(true), {}});
  return state;
}

float first_of(const std::string& path) {
  return (*io::load_torch(path)["x"].get<Tensor>()).to_vector<float>()[0];
}

std::vector<int64_t> steps_of(const CheckpointStore& store) {
  std::vector<int64_t> out;
  for (const CheckpointInfo& info : store.list()) out.push_back(info.step);
  return out;
}

}  // namespace

TEST_CASE("a checkpoint is the state at the call, whatever is done with it then") {
  const TempDir dir;
  CheckpointStore store(dir.path("run"), {.keep_last = 3});
  Tensor x = zeros({1000});
  for (int64_t step = 0; step < 3; ++step) {
    CHECK(store.save(state_of(x, step), step, kiln::train::CheckpointInfo{}.metric, true));
    x.fill_(static_cast<double>(step + 1));
  }
  store.wait();
  REQUIRE(store.list().size() == 3);
  for (int64_t step = 0; step < 3; ++step) {
    const std::string path = store.list()[static_cast<size_t>(step)].path;
    CHECK(first_of(path) == static_cast<float>(step));
    CHECK(*io::load_torch(path)["step"].get<int64_t>() == step);
    CHECK(io::load_torch(path)["names"].get<io::PickleList>()->size() == 3);
  }
}

TEST_CASE("the last and the best stay, and the index outlives the store") {
  const TempDir dir;
  const CheckpointPolicy policy{.keep_last = 2, .keep_best = 2, .larger_is_better = true};
  {
    CheckpointStore store(dir.path(), policy);
    const double metrics[] = {0.5, 0.9, 0.7, 0.1, std::nan(""), 0.2};
    for (int64_t step = 1; step <= 6; ++step) {
      store.save(state_of(ones({2}), step), step, metrics[step - 1], true);
    }
    store.wait();
    CHECK(steps_of(store) == std::vector<int64_t>{2, 3, 5, 6});
    CHECK(store.best()->step == 2);
  }
  CheckpointStore again(dir.path(), policy);
  CHECK(steps_of(again) == std::vector<int64_t>{2, 3, 5, 6});
  CHECK(again.best()->metric == 0.9);
  again.discard_after(3);
  CHECK(steps_of(again) == std::vector<int64_t>{2, 3});
  CHECK(dir.names().size() == 3);
  // An index that is damaged costs the metrics alone.
  test::write_bytes(dir.path("checkpoints.json"), "{\"checkpoints\": [3, {\"step\"");
  CheckpointStore damaged(dir.path(), policy);
  CHECK(steps_of(damaged) == std::vector<int64_t>{2, 3});
  CHECK_FALSE(damaged.best().has_value());
}

TEST_CASE("what is wrong is said, and the good ones stay") {
  const TempDir dir;
  CHECK_THROWS_AS(CheckpointStore(dir.path(), {.keep_last = 0}), ValueError);
  test::write_bytes(dir.path("file"), "");
  CHECK_THROWS_AS(CheckpointStore(dir.path("file/run")), IoError);
  CheckpointStore store(dir.path("run"));
  CHECK_THROWS_AS(store.save(state_of(ones({1}), 0), -1), ValueError);
  store.save(state_of(ones({1}), 1), 1);
  store.wait();
  // A folder stands where the next one is to go.
  REQUIRE(::mkdir(dir.path("run/step-000000002.pt").c_str(), 0755) == 0);
  store.save(state_of(ones({1}), 2), 2);
  const auto message = test::message_of<IoError>([&] { store.wait(); });
  CHECK(message.find("step-000000002.pt") != std::string::npos);
  CHECK(store.take_error().empty());
  CHECK(steps_of(store) == std::vector<int64_t>{1});
  CHECK(store.save(state_of(ones({1}), 3), 3, 0.5, true));
  store.wait();
  CHECK(steps_of(store) == std::vector<int64_t>{1, 3});
}

namespace {

std::atomic<bool> gate_is_open{true};
const std::thread::id* passes = nullptr;  // a thread that need not wait at the gate

void wait_at_the_gate() {
  if (passes == nullptr || *passes != std::this_thread::get_id()) gate_is_open.wait(false);
}
void write_slowly(const char*) { ::usleep(3000); }

// While one lives, whoever copies stops before each piece.
struct Gate {
  Gate() {
    gate_is_open = false;
    train::detail::before_piece = wait_at_the_gate;
  }
  ~Gate() {
    open();
    train::detail::before_piece = nullptr;
    passes = nullptr;
  }
  void open() {
    gate_is_open = true;
    gate_is_open.notify_all();
  }
};

}  // namespace

TEST_CASE("a copy that is made while the caller goes on is the state at the call") {
  const TempDir dir;
  CheckpointStore store(dir.path("run"), {.keep_last = 9});
  Tensor x = zeros({5 << 20});  // three pieces
  Tensor columns = zeros({2, 3}).transpose(0, 1);
  io::detail::file_step = write_slowly;
  for (int64_t step = 0; step < 4; ++step) {
    io::PickleDict state;
    state.set("x", x);
    state.set("columns", columns);
    state.set("none", zeros({0}));
    CHECK(store.save_overlapped(std::move(state), step, 0.5, true));
    store.wait_copied();
    CHECK_FALSE(store.is_copying());
    x.add_(1.0);
    columns.add_(1.0);
    CHECK(store.is_writing());  // from the copy
    x.add_(1.0);
    x.sub_(1.0);
  }
  store.wait();
  io::detail::file_step = nullptr;
  CHECK_FALSE(store.take_spoiled());
  REQUIRE(store.list().size() == 4);
  for (const CheckpointInfo& info : store.list()) {
    const io::PickleValue saved = io::load_torch(info.path);
    const auto value = static_cast<float>(info.step);
    CHECK(saved["x"].get<Tensor>()->eq(value).all().item<bool>());
    CHECK(saved["columns"].get<Tensor>()->eq(value).all().item<bool>());
    CHECK(saved["columns"].get<Tensor>()->shape() == Shape{3, 2});
  }
}

TEST_CASE("who waits for a copy does the work that its writer has not begun") {
  const TempDir dir;
  CheckpointStore store(dir.path("run"));
  Tensor x = zeros({9 << 20});
  {
    Gate gate;
    const std::thread::id me = std::this_thread::get_id();
    passes = &me;
    REQUIRE(store.save_overlapped(state_of(x, 1), 1));
    CHECK(store.is_copying());
    std::thread opens([&] {
      ::usleep(20000);
      gate.open();
    });
    store.wait_copied();
    opens.join();
  }
  x.fill_(7.0);
  store.wait();
  CHECK_FALSE(store.take_spoiled());
  REQUIRE(steps_of(store) == std::vector<int64_t>{1});
  CHECK(io::load_torch(store.list()[0].path)["x"].get<Tensor>()->eq(0.0).all().item<bool>());
}

TEST_CASE("a copy into whose originals something has written is given up") {
  const TempDir dir;
  CheckpointStore store(dir.path("run"));
  Tensor x = zeros({5 << 20});
  store.save(state_of(x, 1), 1);
  store.wait();
  for (const bool asks : {false, true}) {
    Gate gate;
    REQUIRE(store.save_overlapped(state_of(x, 2), 2));
    x.narrow(0, 100, 1).fill_(1.0);  // through a view
    gate.open();
    if (asks) store.wait_copied();
    store.wait();
    CHECK(store.take_spoiled());
    CHECK_FALSE(store.take_spoiled());
    CHECK(steps_of(store) == std::vector<int64_t>{1});
  }
  // While the caller waits nothing is watched, and nothing is given up.
  CHECK(store.save(state_of(x, 3), 3));
  store.wait();
  CHECK(steps_of(store) == std::vector<int64_t>{1, 3});
}

namespace {

std::atomic<int> steps_left{0};

void die_at_a_step(const char*) {
  if (--steps_left == 0) ::kill(::getpid(), SIGKILL);
}

}  // namespace

// At each step that a save takes the process is killed; what has its name is whole then.
TEST_CASE("killed at every step of a save") {
  const TempDir dir;
  bool survived = false;
  for (int step = 1; step < 200 && !survived; ++step) {
    const std::string folder = dir.path("run" + std::to_string(step));
    const pid_t child = ::fork();
    if (child == 0) {
      CheckpointStore store(folder, {.keep_last = 1});
      store.save(state_of(zeros({50}), 1), 1, 0.5, true);
      store.wait();
      steps_left = step;
      io::detail::file_step = die_at_a_step;
      store.save(state_of(ones({50}), 2), 2, 0.25, true);
      store.wait();
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    survived = WIFEXITED(status);
    CheckpointStore store(folder, {.keep_last = 1});
    const std::vector<CheckpointInfo> all = store.list();
    REQUIRE_FALSE(all.empty());
    for (const CheckpointInfo& info : all) {
      CHECK(first_of(info.path) == static_cast<float>(info.step - 1));
    }
    // And the next one is written as if nothing had been.
    store.save(state_of(ones({50}), 3), 3, 0.1, true);
    store.wait();
    CHECK(steps_of(store) == std::vector<int64_t>{3});
  }
  CHECK(survived);
}
