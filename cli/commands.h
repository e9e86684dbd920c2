// The commands of the program: commands_all.cpp, or commands_digits.cpp, as KILN_COMMANDS says.
#pragma once

namespace CLI {
class App;
}

namespace kiln::cli {

void add_commands(CLI::App& app, int& status);

}  // namespace kiln::cli
