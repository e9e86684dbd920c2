#include "cli/commands.h"
#include "cli/digits.h"
#include "cli/info.h"

namespace kiln::cli {

void add_commands(CLI::App& app, int& status) {
  add_digits(app, status);
  add_info(app, status);
}

}  // namespace kiln::cli
