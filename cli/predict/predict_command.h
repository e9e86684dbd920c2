// `kiln predict`: what a trained model says of new data.
#pragma once

namespace CLI {
class App;
}

namespace kiln::cli {

void add_predict(CLI::App& app, int& status);

}  // namespace kiln::cli
