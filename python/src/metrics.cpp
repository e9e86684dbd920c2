// kiln.metrics: what training and evaluation measure. The arithmetic is C++'s.
#include "kiln/metrics/metrics.h"

#include "binding.h"
#include "parts.h"

namespace kiln::python {

namespace {

using namespace kiln::metrics;

nb::dict dict_of(const nn::StateDict& state) {
  nb::dict out;
  for (const auto& [name, value] : state) out[name.c_str()] = value;
  return out;
}

nn::StateDict state_of(const nb::dict& dict) {
  nn::StateDict out;
  for (const auto& [name, value] : dict) {
    out.set(value_arg<std::string>("load_state_dict", name, "names"),
            tensor_arg("load_state_dict", value).detach());
  }
  return out;
}

nb::object clone_of(const Metric& metric) {
  return nb::cast(metric.clone().release(), nb::rv_policy::take_ownership);
}

// One text, or several.
Texts texts_of(const char* op, nb::handle object) {
  if (PyUnicode_Check(object.ptr())) return {value_arg<std::string>(op, object, "a str")};
  return value_arg<Texts>(op, object, "a str, or a list of them");
}

// For each hypothesis one reference, or several.
std::vector<Texts> references_of(const char* op, nb::handle object) {
  std::vector<Texts> out;
  if (PyUnicode_Check(object.ptr())) {
    out.push_back(texts_of(op, object));
    return out;
  }
  if (!PyList_Check(object.ptr()) && !PyTuple_Check(object.ptr())) {
    throw nb::type_error(concat(op, ": expected a list of references").c_str());
  }
  const nb::list items(nb::borrow(object));
  for (nb::handle item : items) out.push_back(texts_of(op, item));
  return out;
}

void bind_base(nb::module_& m) {
  nb::class_<Metric>(m, "Metric",
                     "A number, or several, measured over the batches of a pass: update() adds a "
                     "batch, compute() gives the value of all.")
      .def("compute", &Metric::compute, "What was measured since the last reset().")
      .def("reset", &Metric::reset, "Begins anew.")
      .def(
          "state_dict", [](const Metric& self) { return dict_of(self.state_dict()); },
          "All running values, with their exact bits.")
      .def(
          "load_state_dict",
          [](Metric& self, const nb::dict& state) { self.load_state_dict(state_of(state)); },
          "state_dict"_a, "Goes on exactly as the metric that gave the state.")
      .def("merge", &Metric::merge, "other"_a,
           "As if this metric had also seen what the other one saw.")
      .def("clone", &clone_of, "A copy with the same running values.")
      .def("__copy__", &clone_of)
      .def(
          "__deepcopy__", [](const Metric& self, nb::handle) { return clone_of(self); }, "memo"_a)
      .def("__repr__", &Metric::description);
}

ClassOptions class_options(std::string task, double threshold, std::optional<int64_t> num_classes,
                           std::optional<int64_t> num_labels, std::optional<std::string> average,
                           int64_t top_k, std::optional<int64_t> ignore_index, double zero_division,
                           std::optional<bool> from_logits) {
  return {std::move(task),
          threshold,
          num_classes.value_or(0),
          num_labels.value_or(0),
          average.value_or("none"),
          top_k,
          ignore_index,
          zero_division,
          from_logits};
}

template <class M>
nb::class_<M, Metric> bind_counts(nb::module_& m, const char* name, const char* average,
                                  const char* doc) {
  nb::class_<M, Metric> c(m, name, doc);
  if constexpr (!std::is_same_v<M, FBetaScore>) {
    c.def(
        "__init__",
        [](M* self, const std::string& task, double threshold, std::optional<int64_t> num_classes,
           std::optional<int64_t> num_labels, const std::optional<std::string>& average,
           int64_t top_k, std::optional<int64_t> ignore_index, double zero_division,
           std::optional<bool> from_logits) {
          new (self) M(class_options(task, threshold, num_classes, num_labels, average, top_k,
                                     ignore_index, zero_division, from_logits));
        },
        "task"_a, "threshold"_a = 0.5, "num_classes"_a = nb::none(), "num_labels"_a = nb::none(),
        "average"_a = average, "top_k"_a = 1, "ignore_index"_a = nb::none(), nb::kw_only(),
        "zero_division"_a = 0.0, "from_logits"_a = nb::none());
  }
  c.def("update", &M::update, "preds"_a, "target"_a,
        "Scores, logits or classes, and what was right.");
  return c;
}

void bind_classification(nb::module_& m) {
  bind_counts<Accuracy>(m, "Accuracy", "micro", "The share of right decisions.");
  bind_counts<HammingDistance>(m, "HammingDistance", "micro", "The share of wrong decisions.");
  bind_counts<Precision>(m, "Precision", "micro", "tp / (tp + fp).");
  bind_counts<Recall>(m, "Recall", "micro", "tp / (tp + fn).");
  bind_counts<Specificity>(m, "Specificity", "micro", "tn / (tn + fp).");
  bind_counts<F1Score>(m, "F1Score", "micro", "FBetaScore with beta = 1.");
  bind_counts<JaccardIndex>(m, "JaccardIndex", "macro", "Intersection over union.");
  bind_counts<FBetaScore>(m, "FBetaScore", "micro",
                          "(1 + beta^2) precision recall / (beta^2 precision + recall).")
      .def(
          "__init__",
          [](FBetaScore* self, const std::string& task, double beta, double threshold,
             std::optional<int64_t> num_classes, std::optional<int64_t> num_labels,
             const std::optional<std::string>& average, int64_t top_k,
             std::optional<int64_t> ignore_index, double zero_division,
             std::optional<bool> from_logits) {
            new (self)
                FBetaScore(beta, class_options(task, threshold, num_classes, num_labels, average,
                                               top_k, ignore_index, zero_division, from_logits));
          },
          "task"_a, "beta"_a = 1.0, "threshold"_a = 0.5, "num_classes"_a = nb::none(),
          "num_labels"_a = nb::none(), "average"_a = "micro", "top_k"_a = 1,
          "ignore_index"_a = nb::none(), nb::kw_only(), "zero_division"_a = 0.0,
          "from_logits"_a = nb::none());
  nb::class_<ConfusionMatrix, Metric>(
      m, "ConfusionMatrix", "How often each class was taken for each: [target, predicted].")
      .def(
          "__init__",
          [](ConfusionMatrix* self, const std::string& task, double threshold,
             std::optional<int64_t> num_classes, std::optional<int64_t> num_labels,
             const std::optional<std::string>& normalize, std::optional<int64_t> ignore_index,
             std::optional<bool> from_logits) {
            new (self) ConfusionMatrix(class_options(task, threshold, num_classes, num_labels, "",
                                                     1, ignore_index, 0, from_logits),
                                       normalize.value_or("none"));
          },
          "task"_a, "threshold"_a = 0.5, "num_classes"_a = nb::none(), "num_labels"_a = nb::none(),
          "normalize"_a = nb::none(), "ignore_index"_a = nb::none(), nb::kw_only(),
          "from_logits"_a = nb::none())
      .def("update", &ConfusionMatrix::update, "preds"_a, "target"_a);
}

template <class M>
const char* name_of() {
  return std::is_same_v<M, AUROC> ? "AUROC" : "AveragePrecision";
}

metrics::Thresholds thresholds_of(const char* name, nb::handle given) {
  if (given.is_none()) return {};
  if (nb::isinstance<nb::int_>(given)) return metrics::even_thresholds(nb::cast<int64_t>(given));
  metrics::Thresholds out;
  for (nb::handle item :
       nb::isinstance<Tensor>(given) ? nb::object(given.attr("tolist")()) : nb::borrow(given)) {
    out.push_back(nb::cast<double>(item));
  }
  if (out.empty()) {
    throw_error<ValueError>(name,
                            ": thresholds must be None, a number from 2 on or a list; got none");
  }
  return out;
}

template <class M>
void bind_curve(nb::module_& m, const char* name, const char* doc) {
  nb::class_<M, Metric>(m, name, doc)
      .def(
          "__init__",
          [](M* self, const std::string& task, std::optional<int64_t> num_classes,
             std::optional<int64_t> num_labels, const std::optional<std::string>& average,
             std::optional<int64_t> ignore_index, nb::handle thresholds,
             std::optional<bool> from_logits) {
            new (self) M(class_options(task, 0.5, num_classes, num_labels, average, 1, ignore_index,
                                       0, from_logits),
                         thresholds_of(name_of<M>(), thresholds));
          },
          "task"_a, "num_classes"_a = nb::none(), "num_labels"_a = nb::none(),
          "average"_a = "macro", "ignore_index"_a = nb::none(), nb::kw_only(),
          "thresholds"_a = nb::none(), "from_logits"_a = nb::none(),
          "thresholds: None: exact, all scores are kept; a number: so many from 0 to 1, at which "
          "samples are counted; or a list of them.")
      .def("update", &M::update, "preds"_a, "target"_a, "Scores or logits, and what was right.");
}

void bind_ranking(nb::module_& m) {
  bind_curve<AUROC>(m, "AUROC", "The area under the receiver operating characteristic.");
  bind_curve<AveragePrecision>(m, "AveragePrecision", "The area under precision over recall.");
  nb::class_<CalibrationError, Metric>(m, "CalibrationError",
                                       "How far confidence is from accuracy, in bins.")
      .def(
          "__init__",
          [](CalibrationError* self, const std::string& task, int64_t n_bins,
             const std::string& norm, std::optional<int64_t> num_classes,
             std::optional<int64_t> ignore_index, std::optional<bool> from_logits) {
            new (self) CalibrationError(
                class_options(task, 0.5, num_classes, {}, "", 1, ignore_index, 0, from_logits),
                n_bins, norm);
          },
          "task"_a, "n_bins"_a = 15, "norm"_a = "l1", "num_classes"_a = nb::none(),
          "ignore_index"_a = nb::none(), nb::kw_only(), "from_logits"_a = nb::none())
      .def("update", &CalibrationError::update, "preds"_a, "target"_a);
}

void bind_numbers(nb::module_& m) {
  nb::class_<MeanAbsoluteError, Metric>(m, "MeanAbsoluteError", "The mean of |preds - target|.")
      .def(nb::init<>())
      .def("update", &MeanAbsoluteError::update, "preds"_a, "target"_a);
  nb::class_<MeanSquaredError, Metric>(m, "MeanSquaredError",
                                       "The mean of (preds - target)^2, or its root.")
      .def(nb::init<bool>(), "squared"_a = true)
      .def("update", &MeanSquaredError::update, "preds"_a, "target"_a);
  nb::class_<R2Score, Metric>(m, "R2Score", "The coefficient of determination.")
      .def(nb::init<std::string>(), "multioutput"_a = "uniform_average")
      .def("update", &R2Score::update, "preds"_a, "target"_a);
  nb::class_<Perplexity, Metric>(
      m, "Perplexity", "exp of the mean cross-entropy of logits [.., V] and targets [..].")
      .def(nb::init<std::optional<int64_t>>(), "ignore_index"_a = nb::none())
      .def("update", &Perplexity::update, "preds"_a, "target"_a);

  nb::class_<MeanMetric, Metric>(m, "MeanMetric", "The weighted mean of values.")
      .def("__init__", [](MeanMetric* self) { new (self) MeanMetric(); })
      .def(
          "update",
          [](MeanMetric& self, const Operand& value, double weight) {
            if (value.is_tensor()) {
              self.update(value.tensor(), weight);
            } else {
              self.update(value.scalar().to_double(), weight);
            }
          },
          "value"_a, "weight"_a = 1.0, "A number, or each of a tensor, with this weight.");
  nb::class_<Loss, MeanMetric>(m, "Loss", "The mean of losses.").def(nb::init<>());
  nb::class_<CumulativeReward, MeanMetric>(m, "CumulativeReward",
                                           "The mean of the total rewards of episodes.")
      .def(nb::init<>());
  nb::class_<EpisodeLength, MeanMetric>(m, "EpisodeLength", "The mean of the lengths of episodes.")
      .def(nb::init<>());
  nb::class_<ExplorationRate, MeanMetric>(m, "ExplorationRate", "How often an agent explores.")
      .def(nb::init<>());
  nb::class_<LearningRate, Metric>(m, "LearningRate", "The latest rate.")
      .def(nb::init<>())
      .def("update", &LearningRate::update, "value"_a);
  nb::class_<IterationSpeed, Metric>(m, "IterationSpeed", "Iterations per second.")
      .def(nb::init<>())
      .def("update", &IterationSpeed::update, "count"_a = 1, "seconds"_a = nb::none(),
           "So many iterations are over, since the last update or in so many seconds.");
  nb::class_<CpuUse, Metric>(m, "CpuUse", "The processor time in use between updates, in percent.")
      .def(nb::init<std::string>(), "root"_a = "/")
      .def("update", &CpuUse::update);
  nb::class_<CpuMemory, Metric>(m, "CpuMemory", "The mean of the memory in use, in GiB.")
      .def(nb::init<std::string>(), "root"_a = "/")
      .def("update", &CpuMemory::update);
  nb::class_<CpuTemperature, Metric>(m, "CpuTemperature",
                                     "The mean of the warmest sensor, in degrees Celsius.")
      .def(nb::init<std::string>(), "root"_a = "/")
      .def("update", &CpuTemperature::update);
}

void bind_texts(nb::module_& m) {
  nb::class_<BLEUScore, Metric>(
      m, "BLEUScore",
      "The precision of n-grams of a corpus, 0 to 1. sacrebleu's standard "
      "form: smooth='exp', tokenize='13a'.")
      .def(nb::init<int64_t, std::string, std::optional<double>, std::string>(), "n_gram"_a = 4,
           "smooth"_a = "none", "smooth_value"_a = nb::none(), "tokenize"_a = "none")
      .def(
          "update",
          [](BLEUScore& self, nb::handle preds, nb::handle target) {
            self.update(texts_of("BLEUScore", preds), references_of("BLEUScore", target));
          },
          "preds"_a, "target"_a, "Texts, and for each one reference or a list of them.");
  nb::class_<RougeL, Metric>(m, "RougeL",
                             "The F-measure of the longest common subsequence of words.")
      .def(nb::init<std::string>(), "accumulate"_a = "best")
      .def(
          "update",
          [](RougeL& self, nb::handle preds, nb::handle target) {
            self.update(texts_of("RougeL", preds), references_of("RougeL", target));
          },
          "preds"_a, "target"_a, "Texts, and for each one reference or a list of them.");
  const auto rate = [&m]<class M>(M*, const char* name, const char* doc) {
    nb::class_<M, Metric>(m, name, doc)
        .def(nb::init<>())
        .def(
            "update",
            [name](M& self, nb::handle preds, nb::handle target) {
              self.update(texts_of(name, preds), texts_of(name, target));
            },
            "preds"_a, "target"_a, "Texts, and what they should be.");
  };
  rate(static_cast<CharErrorRate*>(nullptr), "CharErrorRate",
       "Wrong characters for each right one.");
  rate(static_cast<WordErrorRate*>(nullptr), "WordErrorRate", "Wrong words for each right one.");
}

}  // namespace

void bind_metrics(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("_metrics", "What training and evaluation measure.");
  bind_base(m);
  bind_classification(m);
  bind_ranking(m);
  bind_numbers(m);
  bind_texts(m);
  bind_image_metrics(m);
}

}  // namespace kiln::python
