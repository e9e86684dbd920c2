// `kiln launch`: a program as several processes that form a group.
#pragma once

namespace CLI {
class App;
}

namespace kiln::cli {

void add_launch(CLI::App& app, int& status);

}  // namespace kiln::cli
