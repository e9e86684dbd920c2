// The words that a command understands.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace kiln::cli {

// Its commands, and its options with their dashes.
inline std::vector<std::string> words_of(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    out.push_back(command->get_name());
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
    for (const std::string& name : option->get_snames()) out.push_back("-" + name);
  }
  return out;
}

}  // namespace kiln::cli
