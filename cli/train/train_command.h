// `kiln train`.
#pragma once

namespace CLI {
class App;
}

namespace kiln::cli {

// Adds the command, which sets `status`, the program's exit status.
void add_train(CLI::App& app, int& status);

}  // namespace kiln::cli
