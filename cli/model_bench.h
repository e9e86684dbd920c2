// `kiln bench`: how long a model file takes.
#pragma once

namespace CLI {
class App;
}

namespace kiln::cli {

void add_bench(CLI::App& app, int& status);

}  // namespace kiln::cli
