// `kiln launch`, run as a user would run it.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

using kiln::test::contains;
using kiln::test::run_program;
using kiln::test::TempDir;

TEST_CASE("kiln launch: processes, their numbers and their output") {
  NEEDS_PROGRAM();
  const TempDir folder;
  const auto done = run_program({"launch", "-n", "2", "--logs", folder.path("logs"), "sh", "-c",
                                 "echo $RANK of $WORLD_SIZE: -n $1", "x", "--help"});
  CHECK(done.status == 0);
  CHECK(done.err.empty());
  CHECK(kiln::test::read_bytes(folder.path("logs/1.log")) == "1 of 2: -n --help\n");
  CHECK(run_program({"launch", "-n", "3", "sh", "-c", "exit 5"}).status == 5);
  // The second process ends first, as one does that lost the first.
  const std::string late = "if [ $RANK = 0 ]; then sleep 0.5; exit 7; fi; exit 1";
  CHECK(run_program({"launch", "-n", "2", "sh", "-c", late}).status == 7);
  const auto again = run_program(
      {"launch", "--restarts", "2", "sh", "-c", "echo x; exit $((2-TORCHELASTIC_RESTART_COUNT))"});
  CHECK(again.status == 0);
  CHECK(again.out == "x\nx\nx\n");
}

TEST_CASE("kiln train in two processes trains and measures as in one, and goes on") {
  NEEDS_PROGRAM();
  const TempDir folder;
  const std::string config = folder.path("data/config.json");
  REQUIRE(run_program({"train", "--example", "csv", "--out", folder.path("data")}).status == 0);
  const auto train = [&](const char* out, std::vector<std::string> more) {
    std::vector<std::string> arguments{"train", config, "--out", folder.path(out), "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const auto launched = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"launch", "-n", "2", kiln::test::program_path()});
    return run_program(arguments);
  };
  const auto alone = run_program(train("alone", {"--epochs", "3"}));
  const auto both = launched(train("both", {"--epochs", "3"}));
  CAPTURE(both.err);
  CHECK(both.status == 0);
  // What is shown has 4 digits; one line, of the first process.
  CHECK(both.out == alone.out);
  const auto again = launched(train("both", {"--epochs", "3", "--resume"}));
  CHECK(again.status == 0);
  CHECK(again.out == alone.out);
  CHECK(launched(train("both", {})).status == 2);
  const auto odd = launched(train("odd", {"--set", "batch_size=15"}));
  CHECK(odd.status == 2);
  CHECK(contains(odd.err, "multiple of the number of processes"));
}

TEST_CASE("kiln launch: what is wrong with a call") {
  NEEDS_PROGRAM();
  const auto check = [](std::vector<std::string> arguments, int status, const char* part) {
    arguments.insert(arguments.begin(), "launch");
    const auto result = run_program(arguments);
    CAPTURE(result.err);
    CHECK(result.status == status);
    CHECK(contains(result.err, part));
  };
  check({}, 2, "expected a program");
  check({"--proceses", "2", "true"}, 2, "did you mean '--processes'");
  check({"-n", "two", "true"}, 2, "two");
  check({"-n", "0", "true"}, 2, "0");
  check({"--master", "here", "true"}, 2, "HOST:PORT");
  check({"--master", "here:70000", "true"}, 2, "65535");
  check({"--nodes", "2", "true"}, 2, "port");
  check({"/no/such/program"}, 1, "/no/such/program");
  check({"--logs", "/proc/x", "true"}, 1, "/proc/x");
}
