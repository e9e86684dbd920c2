// How `--help` looks.
#pragma once

#include <sstream>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

namespace kiln::cli {

// Options as "--epochs N", with "(default: 5)" after the description; commands with the first line
// of theirs.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() {
    column_width(24);
    label("SUBCOMMAND", "COMMAND");
  }

  std::string make_description(const CLI::App* app) const override {
    return app->get_description() + "\n\n";
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    usage.erase(usage.find_last_not_of('\n') + 1);
    if (app->get_prefix_command()) usage += " PROGRAM [ARGUMENTS...]";
    return usage + '\n';
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    const bool is_flag = option->get_items_expected_max() == 0;
    if (is_flag) return "";
    // What stands after a colon describes the check: the description does so in words.
    const std::string type = option->get_type_name();
    std::string out = type.empty() ? "" : " " + type.substr(0, type.find(':'));
    if (option->get_items_expected_max() > 1) out += "...";
    return out;
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    std::string out = option->get_description();
    if (!option->get_default_str().empty()) out += " (default: " + option->get_default_str() + ")";
    if (option->get_required()) out += " (required)";
    return out;
  }

  std::string make_subcommand(const CLI::App* sub) const override {
    const std::string description = sub->get_description();
    std::stringstream out;
    CLI::detail::format_help(out, sub->get_name(), description.substr(0, description.find('\n')),
                             get_column_width());
    return out.str();
  }
};

}  // namespace kiln::cli
