#include "cli/info.h"

#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/machine.h"

namespace kiln::cli {

namespace {

void print_text() {
  for (const auto& [name, value] : machine_facts()) {
    std::printf("%-18s %s\n", (name + ":").c_str(), value.c_str());
  }
}

// Names in lower case, with _ for blanks.
void print_json() {
  nlohmann::ordered_json out;
  for (auto [name, value] : machine_facts()) {
    for (char& c : name) {
      if (c == ' ') c = '_';
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    out[name] = value;
  }
  std::printf("%s\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

}  // namespace

void add_info(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("info",
                         "Shows versions, processor, instruction set, threads and memory.\n"
                         "Put what it prints into a report of a fault.");
  command->group("Commands");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print JSON");
  command->callback([json, &status] {
    *json ? print_json() : print_text();
    status = 0;
  });
}

}  // namespace kiln::cli
