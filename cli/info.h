// `kiln info`: what a report of a fault should say about Kiln and the machine.
#pragma once

namespace CLI {
class App;
}

namespace kiln::cli {

void add_info(CLI::App& app, int& status);

}  // namespace kiln::cli
