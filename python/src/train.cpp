// kiln.train: checkpoints, logs, progress and reports of training runs.
#include <string>
#include <utility>
#include <vector>

#include "binding.h"
#include "kiln/dashboard/dashboard.h"
#include "kiln/train/checkpoint_store.h"
#include "kiln/train/interrupt.h"
#include "kiln/train/progress.h"
#include "kiln/train/report.h"
#include "kiln/train/run_log.h"
#include "kiln/train/text.h"
#include "parts.h"
#include "pickle_objects.h"

namespace kiln::python {

namespace {

using train::CheckpointStore;
using train::Progress;
using train::ProgressStyle;
using train::RunLog;

nb::object object_of(const train::CheckpointInfo& info) {
  nb::dict out;
  out["path"] = nb::steal(PyUnicode_DecodeFSDefaultAndSize(
      info.path.data(), static_cast<Py_ssize_t>(info.path.size())));
  out["step"] = info.step;
  out["metric"] = info.metric;
  return out;
}

// What was copied may belong to Python: it goes under Python's lock.
void wait_copied(CheckpointStore& store) {
  {
    Unlocked lock;
    store.wait_until_copied();
  }
  store.wait_copied();
}

void bind_store(nb::module_& m) {
  nb::class_<CheckpointStore>(m, "CheckpointStore",
                              "Checkpoints in a folder, written in the background from a copy.")
      .def(
          "__init__",
          [](CheckpointStore* self, nb::handle folder, int64_t keep_last, int64_t keep_best,
             bool larger_is_better) {
            new (self)
                CheckpointStore(file_name_of(folder), {keep_last, keep_best, larger_is_better});
          },
          "folder"_a, "keep_last"_a = 2, "keep_best"_a = 0, "larger_is_better"_a = false)
      .def(
          "save",
          [](CheckpointStore& self, nb::handle state, int64_t step, double metric, bool wait) {
            if (!wait && self.is_writing()) return false;
            const io::PickleValue value = pickle_value_of(state);
            Unlocked lock;
            return self.save(value, step, metric, wait);
          },
          "state"_a, "step"_a, "metric"_a = std::numeric_limits<double>::quiet_NaN(),
          "wait"_a = false,
          "Copies the state and writes the copy in the background. False while another is being "
          "written; with wait it waits for that one.")
      .def(
          "save_overlapped",
          [](CheckpointStore& self, nb::handle state, int64_t step, double metric, bool wait) {
            if (!wait && self.is_writing()) return false;
            io::PickleValue value = pickle_value_of(state);
            wait_copied(self);
            Unlocked lock;
            return self.save_overlapped(std::move(value), step, metric, wait);
          },
          "state"_a, "step"_a, "metric"_a = std::numeric_limits<double>::quiet_NaN(),
          "wait"_a = false,
          "The same, but the writer makes the copy: nothing may write into the tensors before "
          "wait_copied(). Where something has, nothing is saved: take_spoiled().")
      .def("wait_copied", wait_copied, "Until the copy is made; this thread does its share of it.")
      .def("take_spoiled", &CheckpointStore::take_spoiled,
           "Whether the last overlapped copy was given up, since something wrote into the state; "
           "once.")
      .def_prop_ro("is_copying", &CheckpointStore::is_copying)
      .def_prop_ro("is_writing", &CheckpointStore::is_writing)
      .def(
          "wait",
          [](CheckpointStore& self) {
            Unlocked lock;
            self.wait();
          },
          "Until all is on the disk. Raises IoError for a write that failed.")
      .def("take_error", &CheckpointStore::take_error,
           "What the last write failed with, once; '' when none did.")
      .def(
          "list",
          [](const CheckpointStore& self) {
            nb::list out;
            for (const auto& info : self.list()) out.append(object_of(info));
            return out;
          },
          "Dicts with path, step and metric, the oldest first.")
      .def(
          "best",
          [](const CheckpointStore& self) -> nb::object {
            const auto info = self.best();
            return info ? object_of(*info) : nb::none();
          },
          "The best by metric, or None.")
      .def(
          "discard_after",
          [](CheckpointStore& self, int64_t step) {
            Unlocked lock;
            self.discard_after(step);
          },
          "step"_a, "Removes those of later steps.");
}

train::NamedNumbers numbers_of(const nb::dict& values) {
  train::NamedNumbers out;
  for (const auto& [name, value] : values) {
    out.emplace_back(nb::cast<std::string>(name), nb::cast<double>(value));
  }
  return out;
}

void bind_log(nb::module_& m) {
  nb::class_<train::EventFile>(m, "EventFile", "An event file of TensorBoard's.")
      .def(
          "__init__",
          [](train::EventFile* self, nb::handle path, int64_t position) {
            new (self) train::EventFile(file_name_of(path), position);
          },
          "path"_a, "position"_a = 0)
      .def(
          "scalar",
          [](train::EventFile& self, const std::string& tag, double value, int64_t step) {
            self.scalar(tag, value, step);
          },
          "tag"_a, "value"_a, "step"_a)
      .def(
          "histogram",
          [](train::EventFile& self, const std::string& tag, nb::handle values, int64_t step) {
            self.histogram(tag, tensor_arg("histogram", values), step);
          },
          "tag"_a, "values"_a, "step"_a,
          "How often values lie in each of 30 stretches of equal width.")
      .def(
          "image",
          [](train::EventFile& self, const std::string& tag, nb::handle pixels, int64_t step) {
            self.image(tag, tensor_arg("image", pixels), step);
          },
          "tag"_a, "pixels"_a, "step"_a, "uint8, [H, W], [1, H, W] or [3, H, W].")
      .def(
          "text",
          [](train::EventFile& self, const std::string& tag, const std::string& text,
             int64_t step) { self.text(tag, text, step); },
          "tag"_a, "text"_a, "step"_a, "Markdown.")
      .def_prop_ro("position", &train::EventFile::position);
  nb::class_<RunLog>(m, "RunLog", "What a run measures: log.jsonl, log.csv and TensorBoard's file.")
      .def(
          "__init__",
          [](RunLog* self, nb::handle folder, bool json, bool csv, bool tensorboard,
             nb::tuple position) {
            train::RunLogPosition at;
            if (nb::len(position) == 4) {
              at = {nb::cast<int64_t>(position[0]), nb::cast<int64_t>(position[1]),
                    nb::cast<int64_t>(position[2]), nb::cast<std::string>(position[3])};
            }
            new (self) RunLog(file_name_of(folder), {json, csv, tensorboard}, at);
          },
          "folder"_a, "json"_a = true, "csv"_a = true, "tensorboard"_a = true,
          "position"_a = nb::tuple())
      .def(
          "numbers",
          [](RunLog& self, const std::string& event, int64_t epoch, int64_t step,
             const nb::dict& values) { self.numbers(event, epoch, step, numbers_of(values)); },
          "event"_a, "epoch"_a, "step"_a, "values"_a)
      .def(
          "note",
          [](RunLog& self, const std::string& event, int64_t epoch, int64_t step,
             const std::string& details) { self.note(event, epoch, step, details); },
          "event"_a, "epoch"_a, "step"_a, "details"_a)
      .def_prop_ro(
          "events", [](RunLog& self) { return self.events(); }, nb::rv_policy::reference_internal,
          "The EventFile, or None.")
      .def_prop_ro("position", [](const RunLog& self) {
        const train::RunLogPosition at = self.position();
        return nb::make_tuple(at.json, at.csv, at.events, at.event_file);
      });
}

void bind_terminal(nb::module_& m) {
  nb::class_<Progress>(m, "Progress", "How far an epoch is: a bar on a terminal, lines elsewhere.")
      .def(
          "__init__",
          [](Progress* self, const std::string& style) {
            const std::pair<const char*, ProgressStyle> known[] = {
                {"auto", ProgressStyle::automatic},
                {"bar", ProgressStyle::bar},
                {"plain", ProgressStyle::plain},
                {"quiet", ProgressStyle::quiet}};
            for (const auto& [name, value] : known) {
              if (style == name) {
                new (self) Progress(value);
                return;
              }
            }
            throw_error<ValueError>("Progress: unknown style; got '", style,
                                    "'; expected 'auto', 'bar', 'plain' or 'quiet'");
          },
          "style"_a = "auto")
      .def("start", &Progress::start, "label"_a, "total"_a, "done"_a = 0, "later"_a = 0)
      .def("advance", &Progress::advance, "samples"_a, "Whether it is time for show().")
      .def(
          "show",
          [](Progress& self, const nb::dict& values) {
            std::vector<std::pair<std::string, std::string>> texts;
            for (const auto& [name, value] : values) {
              texts.emplace_back(nb::cast<std::string>(name), nb::cast<std::string>(value));
            }
            self.show(std::move(texts));
          },
          "values"_a, "Draws, with these texts by name.")
      .def("finish", &Progress::finish, "Removes the bar.")
      .def("print", &Progress::print, "line"_a, "Prints a line and keeps the bar below it.");
  nb::class_<train::Interrupt>(m, "Interrupt",
                               "While one lives, the first Ctrl-C, SIGTERM or SIGHUP is noted, and "
                               "the second ends the process.")
      .def(nb::init<>())
      .def_prop_ro("signal", &train::Interrupt::signal, "The first that came, or 0.")
      .def(
          "close", [](train::Interrupt& self) { self.restore(); },
          "Restores what the signals did before.");
  m.def("format_duration", &train::duration, "seconds"_a);
}

// A Learner of Python's. What is shown is asked for anew each time: a dashboard draws ten times a
// second.
class PythonRun final : public dashboard::WatchedRun {
 public:
  explicit PythonRun(nb::object learner) : learner_(std::move(learner)) {}
  const std::vector<train::NamedNumbers>& history() override {
    const auto rows = nb::cast<nb::list>(learner_.attr("history"));
    for (size_t i = history_.size(); i < nb::len(rows); ++i) {
      history_.push_back(numbers_of(nb::cast<nb::dict>(rows[i])));
    }
    return history_;
  }
  const std::vector<double>& step_loss() override {
    const nb::object losses = learner_.attr("step_loss");
    for (size_t i = losses_.size(); i < nb::len(losses); ++i) {
      losses_.push_back(nb::cast<double>(nb::object(losses[i])));
    }
    return losses_;
  }
  void save_soon() override { learner_.attr("_save_soon")(); }

 private:
  nb::object learner_;
  std::vector<train::NamedNumbers> history_;
  std::vector<double> losses_;
};

struct PythonDashboard {
  PythonDashboard(nb::object learner, Progress& progress, const std::string& title,
                  std::vector<std::string> metrics, int64_t steps_per_epoch, nb::object interrupted)
      : run(std::move(learner)) {
    dashboard::DashboardOptions options;
    options.title = title;
    options.metrics = std::move(metrics);
    options.steps_per_epoch = steps_per_epoch;
    options.is_share = [](const std::string& name) { return name.ends_with("accuracy"); };
    options.interrupted = [interrupted] {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      return nb::cast<bool>(interrupted());
    };
    shown.emplace(std::move(options), progress);
  }
  PythonRun run;
  std::optional<dashboard::Dashboard> shown;
};

void bind_dashboard(nb::module_& m) {
  nb::class_<PythonDashboard>(m, "_Dashboard", "A run on the whole terminal.")
      .def(nb::init<nb::object, Progress&, const std::string&, std::vector<std::string>, int64_t,
                    nb::object>(),
           "learner"_a, "progress"_a, "title"_a, "metrics"_a, "steps_per_epoch"_a, "interrupted"_a,
           nb::keep_alive<1, 3>())
      .def(
          "poll",
          [](PythonDashboard& self) {
            if (!self.shown) return false;
            self.shown->poll(self.run);
            return self.shown->stops();
          },
          "Reads keys and draws. Whether one asked for the end.")
      .def(
          "close", [](PythonDashboard& self) { self.shown.reset(); }, "Gives the terminal back.");
  m.def("_has_screen", &dashboard::Screen::is_there, "Whether the dashboard can be drawn.");
}

double number_or_nan(const nb::dict& values, const char* name) {
  return values.contains(name) ? nb::cast<double>(values[name]) : train::kNotMeasured;
}

train::TrainingReport::Facts facts_of(const nb::dict& facts) {
  train::TrainingReport::Facts out;
  for (const auto& [name, value] : facts) {
    out.emplace_back(nb::cast<std::string>(nb::str(name)), nb::cast<std::string>(nb::str(value)));
  }
  return out;
}

void bind_report(nb::module_& m) {
  m.def(
      "write_report",
      [](nb::handle path, const std::string& title, const std::string& subtitle,
         const nb::dict& config, const nb::dict& machine, const nb::list& epochs,
         const std::vector<double>& step_loss, const nb::dict& metrics) {
        train::TrainingReport report;
        report.title = title;
        report.subtitle = subtitle;
        report.config = facts_of(config);
        report.machine = facts_of(machine);
        for (nb::handle item : epochs) {
          const auto e = nb::cast<nb::dict>(item);
          report.epochs.push_back({nb::cast<int64_t>(e["epoch"]), number_or_nan(e, "train/loss"),
                                   number_or_nan(e, "train/accuracy"),
                                   number_or_nan(e, "valid/loss"),
                                   number_or_nan(e, "valid/accuracy"), number_or_nan(e, "seconds"),
                                   number_or_nan(e, "lr")});
        }
        report.step_loss = step_loss;
        for (const auto& [name, lines] : metrics) {
          train::MetricCurve curve{nb::cast<std::string>(name), {}};
          for (const auto& [line, points] : nb::cast<nb::dict>(lines)) {
            curve.lines.push_back({nb::cast<std::string>(line), {}});
            for (nb::handle point : nb::cast<nb::list>(points)) {
              curve.lines.back().points.emplace_back(nb::cast<double>(nb::object(point[0])),
                                                     nb::cast<double>(nb::object(point[1])));
            }
          }
          report.metrics.push_back(std::move(curve));
        }
        train::write_html_report(file_name_of(path), report);
      },
      "path"_a, "title"_a, "subtitle"_a, "config"_a, "machine"_a, "epochs"_a, "step_loss"_a,
      "metrics"_a, "Writes the HTML report of a run.");
}

}  // namespace

void bind_train(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("_train", "Checkpoints, logs, progress and reports.");
  bind_store(m);
  bind_log(m);
  bind_terminal(m);
  bind_report(m);
  bind_dashboard(m);
}

}  // namespace kiln::python
