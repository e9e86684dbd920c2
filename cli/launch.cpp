#include "cli/launch.h"

#include <charconv>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>

#include "cli/numbers.h"
#include "cli/suggest.h"
#include "cli/usage_error.h"
#include "cli/words.h"
#include "kiln/core/error.h"
#include "kiln/distributed/launch.h"

namespace kiln::cli {

namespace {

struct LaunchFlags {
  distributed::LaunchOptions options;
  std::string master;
};

// HOST:PORT; of an IPv6 number [HOST]:PORT.
void read_master(const std::string& text, distributed::LaunchOptions& options) {
  const size_t colon = text.rfind(':');
  const char* const end = text.data() + text.size();
  const auto parsed = colon == std::string::npos
                          ? std::from_chars_result{text.data(), std::errc::invalid_argument}
                          : std::from_chars(text.data() + colon + 1, end, options.master_port);
  if (parsed.ec != std::errc() || parsed.ptr != end || colon == 0 || options.master_port == 0) {
    throw UsageError("--master: expected HOST:PORT with a port from 1 to 65535; got " + text);
  }
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  options.master_host = host;
}

int launch(const CLI::App& app, LaunchFlags& flags) {
  const std::vector<std::string> command = app.remaining();
  if (command.empty()) throw UsageError("expected a program (try kiln launch --help)");
  if (command[0].starts_with('-')) {
    throw UsageError("unknown argument '" + command[0] + "'" +
                     did_you_mean(command[0], words_of(app)) + " (try kiln launch --help)");
  }
  if (!flags.master.empty()) read_master(flags.master, flags.options);
  if (!flags.options.log_folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(flags.options.log_folder, error);
    if (error) {
      throw_error<IoError>("cannot make the folder ", flags.options.log_folder, ": ",
                           error.message());
    }
  }
  try {
    return distributed::launch(command, flags.options);
  } catch (const ValueError& e) {
    throw UsageError(e.what());
  }
}

}  // namespace

void add_launch(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "launch",
      "Starts a program as several processes that form a group.\n"
      "Options come before the program; all that follows it is the program's. Each process finds\n"
      "its number in RANK. When one fails the others are ended.\n"
      "\n"
      "  kiln launch -n 2 ./train --epochs 3\n"
      "  kiln launch -n 2 python train.py");
  command->group("Commands");
  command->prefix_command();
  auto flags = std::make_shared<LaunchFlags>();
  distributed::LaunchOptions& options = flags->options;
  command->add_option("-n,--processes", options.processes, "on this machine (default: 1)")
      ->type_name("N")
      ->check(whole_number(1, 4096));
  command->add_option("--nodes", options.nodes, "machines (default: 1)")
      ->type_name("N")
      ->check(whole_number(1, 65536));
  command->add_option("--node-rank", options.node_rank, "which machine this is, from 0 on")
      ->type_name("I")
      ->check(whole_number(0, 65535));
  command
      ->add_option("--master", flags->master,
                   "HOST:PORT, the machine of number 0 and a port of\nit (default: 127.0.0.1 and a "
                   "free port)")
      ->type_name("ADDRESS");
  command
      ->add_option("--restarts", options.max_restarts,
                   "how often all begin again after one failed\n(default: 0)")
      ->type_name("N")
      ->check(whole_number(0, 1'000'000));
  command
      ->add_option("--logs", options.log_folder, "where output goes, as RANK.log (default: here)")
      ->type_name("FOLDER");
  command->callback([flags, command, &status] { status = launch(*command, *flags); });
}

}  // namespace kiln::cli
