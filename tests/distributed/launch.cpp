// Programs that are started as several processes.
#include "kiln/distributed/launch.h"

#include <chrono>
#include <cstdlib>

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/distributed/environment.h"
#include "tests/support/temp_dir.h"

using namespace kiln;
using namespace kiln::distributed;

namespace {

std::vector<std::string> shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

// Sets a variable as long as it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("each process is told who it is") {
  const test::TempDir folder;
  const std::string words =
      "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR; test $MASTER_PORT -gt 0";
  CHECK(launch(shell(words), {.processes = 3, .log_folder = folder.path()}) == 0);
  CHECK(test::read_bytes(folder.path("0.log")) == "0 0 3 3 127.0.0.1\n");
  CHECK(test::read_bytes(folder.path("2.log")) == "2 2 3 3 127.0.0.1\n");
  CHECK(launch(shell(words), {.processes = 2,
                              .nodes = 2,
                              .node_rank = 1,
                              .master_host = "far",
                              .master_port = 1234,
                              .log_folder = folder.path()}) == 0);
  CHECK(test::read_bytes(folder.path("3.log")) == "3 1 4 2 far\n");
}

TEST_CASE("when one fails the others end, with its status") {
  const auto start = std::chrono::steady_clock::now();
  CHECK(launch(shell("test $RANK = 1 && exit 7; sleep 60"), {.processes = 3}) == 7);
  CHECK(launch(shell("test $RANK = 0 && kill -9 $$; sleep 60"), {.processes = 2}) == 128 + 9);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
}

TEST_CASE("a run begins again as often as it may") {
  const test::TempDir folder;
  const std::string script =
      "echo x >> " + folder.path("runs") + "; test $TORCHELASTIC_RESTART_COUNT = 2 || exit 3";
  CHECK(launch(shell(script), {.max_restarts = 1}) == 3);
  CHECK(test::read_bytes(folder.path("runs")) == "x\nx\n");
  CHECK(launch(shell(script), {.max_restarts = 5}) == 0);
  CHECK(test::read_bytes(folder.path("runs")) == "x\nx\nx\nx\nx\n");
}

TEST_CASE("what cannot be started") {
  CHECK_THROWS_AS(launch({}, {}), ValueError);
  CHECK_THROWS_AS(launch({"true"}, {.processes = 0}), ValueError);
  CHECK_THROWS_AS(launch({"true"}, {.nodes = 2, .node_rank = 2}), ValueError);
  CHECK_THROWS_AS(launch({"true"}, {.nodes = 2}), ValueError);
  CHECK_THROWS_WITH_AS(launch({"/no/such/program"}, {}), doctest::Contains("/no/such/program"),
                       IoError);
  CHECK_THROWS_AS(launch({"true"}, {.log_folder = "/no/such/folder"}), IoError);
}

TEST_CASE("the variables of launchers") {
  CHECK_FALSE(is_launched());
  CHECK_THROWS_WITH_AS(environment(), doctest::Contains("RANK"), ValueError);
  const Variable rank("OMPI_COMM_WORLD_RANK", "1");
  const Variable size("OMPI_COMM_WORLD_SIZE", "2");
  CHECK(is_launched());
  CHECK_THROWS_WITH_AS(environment(), doctest::Contains("MASTER_ADDR"), ValueError);
  const Variable host("MASTER_ADDR", "node");
  {
    const Variable port("MASTER_PORT", "99999");
    CHECK_THROWS_WITH_AS(environment(), doctest::Contains("MASTER_PORT"), ValueError);
  }
  const Variable port("MASTER_PORT", "29500");
  CHECK(environment().rank == 1);
  CHECK(environment().world_size == 2);
  CHECK(environment().master_host == "node");
  const Variable own("RANK", "2");
  CHECK_THROWS_WITH_AS(environment(), doctest::Contains("RANK"), ValueError);
}
