// `kiln completion`: a script that lets a shell complete commands and options.
#pragma once

namespace CLI {
class App;
}

namespace kiln::cli {

// To be called after all other commands are there.
void add_completion(CLI::App& app, int& status);

}  // namespace kiln::cli
