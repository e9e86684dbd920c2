// `kiln digits ...`: learning to read handwritten digits.
#pragma once

namespace CLI {
class App;
}

namespace kiln::cli {

// Adds the command and those below it. The one that runs sets `status`, the program's exit status.
void add_digits(CLI::App& app, int& status);

void add_digits_train(CLI::App& digits, int& status);
void add_digits_eval(CLI::App& digits, int& status);
void add_digits_predict(CLI::App& digits, int& status);
void add_digits_sample(CLI::App& digits, int& status);

}  // namespace kiln::cli
