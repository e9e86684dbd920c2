#include "cli/digits.h"

#include <CLI/CLI.hpp>

namespace kiln::cli {

void add_digits(CLI::App& app, int& status) {
  CLI::App* digits =
      app.add_subcommand("digits", "Trains and uses a network that reads handwritten digits.");
  digits->group("Commands");
  digits->require_subcommand(1);
  add_digits_train(*digits, status);
  add_digits_eval(*digits, status);
  add_digits_predict(*digits, status);
  add_digits_sample(*digits, status);
  for (CLI::App* command : digits->get_subcommands({})) command->group("Commands");
}

}  // namespace kiln::cli
