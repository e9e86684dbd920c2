// The program `kiln`.
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/help.h"
#include "cli/suggest.h"
#include "cli/usage_error.h"
#include "cli/words.h"

namespace {

constexpr int kRuntimeStatus = 1;
constexpr int kUsageStatus = 2;

// One line, whatever the message holds.
int fail(const std::string& message, int status) {
  std::string line = message;
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  std::fflush(stdout);
  std::fprintf(stderr, "kiln: %s\n", line.c_str());
  return status;
}

// The innermost command that was typed: of `kiln digits train` it is train.
const CLI::App& innermost(const CLI::App& app) {
  const auto used = app.get_subcommands();
  return used.empty() ? app : innermost(*used[0]);
}

// "kiln digits train".
std::string command_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : command_of(*parent) + " " + app.get_name();
}

std::string message_of(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining(true);
  // What follows a command that starts a program is that program's.
  if (unknown.empty() || innermost(app).get_prefix_command()) return error.what();
  return "unknown argument '" + unknown[0] + "'" +
         kiln::cli::did_you_mean(unknown[0], kiln::cli::words_of(innermost(app)));
}

int run(int argc, char** argv) {
  CLI::App app{"Kiln: deep learning in C++. Each command explains itself with --help.", "kiln"};
  app.formatter(std::make_shared<kiln::cli::HelpFormatter>());
  app.set_version_flag("--version", std::string("kiln ") + KILN_VERSION, "print the version");
  app.set_help_flag("-h,--help", "print this");
  app.require_subcommand(1);
  int status = 0;
  kiln::cli::add_commands(app, status);
  try {
    app.parse(argc, argv);
    return status;
  } catch (const CLI::ParseError& e) {
    // Help and version, printed where they belong.
    if (e.get_exit_code() == 0) return app.exit(e);
    const CLI::App& command = innermost(app);
    // A command that only holds others, and none of them: what there is.
    if (std::string(e.what()) == "A subcommand is required" && app.remaining(true).empty()) {
      std::fputs(
          command.help(command.get_parent() ? command_of(*command.get_parent()) : "").c_str(),
          stdout);
      return 0;
    }
    return fail(message_of(app, e) + " (try " + command_of(command) + " --help)", kUsageStatus);
  } catch (const kiln::cli::UsageError& e) {
    return fail(e.what(), kUsageStatus);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int status = run(argc, argv);
    if (std::fflush(stdout) != 0) return fail("cannot write to standard output", kRuntimeStatus);
    return status;
  } catch (const std::bad_alloc&) {
    return fail("out of memory", kRuntimeStatus);
  } catch (const std::exception& e) {
    return fail(e.what(), kRuntimeStatus);
  }
}
