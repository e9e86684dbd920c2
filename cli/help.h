// How `--help` looks.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace kiln::cli {

// Options as "--epochs N", with "(default: 5)" after the description; commands with the first line
// of theirs.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();

  std::string make_description(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* sub) const override;
};

}  // namespace kiln::cli
