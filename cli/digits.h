// `kiln digits ...`: learning to read handwritten digits.
#pragma once

namespace CLI {
class App;
}

namespace kiln::cli {

// Adds the command and those below it. The one that runs sets `status`, the program's exit status.
void add_digits(CLI::App& app, int& status);

}  // namespace kiln::cli
