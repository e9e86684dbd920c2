// The commands that the pages of `kiln train` show, run in their order, for one epoch each.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/support/fixtures.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

using namespace kiln;
using kiln::test::TempDir;

namespace {

// What stands between ```sh and ```.
std::string commands_of(const std::string& page) {
  std::string out;
  const std::string begin = "```sh\n", end = "```\n";
  for (size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at)) {
    at += begin.size();
    const size_t stop = page.find(end, at);
    REQUIRE(stop != std::string::npos);
    out += page.substr(at, stop - at);
    at = stop;
  }
  return out;
}

// A program of the name kiln, which other programs find, too. What trains does so for one epoch.
void write_program(const TempDir& dir) {
  std::filesystem::create_directory(dir.path("bin"));
  const std::string path =
      test::write_bytes(dir.path("bin/kiln"),
                        "#!/bin/sh\n"
                        "case \" $* \" in\n"
                        "  *' --example '* | *' --check '*) exec \"$KILN_PROGRAM\" \"$@\" ;;\n"
                        "  ' train '*) exec \"$KILN_PROGRAM\" \"$@\" --epochs 1 ;;\n"
                        "  *) exec \"$KILN_PROGRAM\" \"$@\" ;;\n"
                        "esac\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

// Runs a page's commands in a folder of their own.
void run_page(const char* name, const std::vector<std::string>& left) {
  CAPTURE(name);
  const TempDir dir;
  const std::string commands =
      commands_of(test::read_bytes(test::fixture(std::string("../../docs/") + name)));
  CHECK(commands.find("kiln train ") != std::string::npos);
  write_program(dir);
  const std::string script =
      test::write_bytes(dir.path("page.sh"), "set -e\ncd '" + dir.path() + "'\nPATH='" +
                                                 dir.path("bin") + "':$PATH\n" + commands);
  const int status = std::system(
      ("bash '" + script + "' >'" + dir.path("out") + "' 2>'" + dir.path("err") + "'").c_str());
  CAPTURE(test::read_bytes(dir.path("out")));
  CAPTURE(test::read_bytes(dir.path("err")));
  CHECK(status == 0);
  CHECK(test::read_bytes(dir.path("err")).empty());
  for (const std::string& path : left) {
    CAPTURE(path);
    CHECK(std::filesystem::exists(dir.path(path)));
  }
}

}  // namespace

TEST_CASE("train.md") {
  NEEDS_PROGRAM();
  run_page("train.md", {"runs/images/report.html", "runs/pair/report.html", "compare.html"});
}

TEST_CASE("tutorial-images.md") {
  NEEDS_PROGRAM();
  run_page("tutorial-images.md",
           {"runs/images/model.safetensors", "runs/images/report.html", "runs/lenet/report.html",
            "compare.html", "runs/cifar10/model.safetensors"});
}

TEST_CASE("tutorial-texts.md") {
  NEEDS_PROGRAM();
  run_page("tutorial-texts.md", {"runs/reviews/model.safetensors", "reviews.html"});
}

TEST_CASE("tutorial-tables.md") {
  NEEDS_PROGRAM();
  run_page("tutorial-tables.md", {"runs/houses/model.safetensors"});
}

TEST_CASE("tutorial-segmentation.md") {
  NEEDS_PROGRAM();
  run_page("tutorial-segmentation.md", {"runs/segmentation/report.html"});
}
