#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/digits.h"
#include "cli/info.h"
#include "cli/launch.h"
#include "cli/model_bench.h"
#include "cli/model_convert.h"
#include "cli/model_inspect.h"
#include "cli/model_run.h"
#include "cli/predict/predict_command.h"
#include "cli/runs/runs_command.h"
#include "cli/train/train_command.h"

namespace kiln::cli {

void add_commands(CLI::App& app, int& status) {
  add_digits(app, status);
  add_train(app, status);
  add_predict(app, status);
  add_runs(app, status);
  add_plot(app, status);
  add_summary(app, status);
  add_inspect(app, status);
  add_convert(app, status);
  add_run(app, status);
  add_bench(app, status);
  add_launch(app, status);
  add_info(app, status);
  add_completion(app, status);
}

}  // namespace kiln::cli
