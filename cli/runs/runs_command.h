// `kiln runs`, `kiln runs compare`, `kiln plot` and `kiln summary`.
#pragma once

namespace CLI {
class App;
}

namespace kiln::cli {

// Each adds its command, which sets `status`, the program's exit status.
void add_runs(CLI::App& app, int& status);
void add_plot(CLI::App& app, int& status);
void add_summary(CLI::App& app, int& status);

}  // namespace kiln::cli
