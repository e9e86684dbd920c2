// Metrics of texts: hypotheses against references. All texts must be UTF-8 (ValueError).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/metrics/metric.h"

namespace kiln::metrics {

using Texts = std::vector<std::string>;

// How a text becomes tokens: "none" splits at white space; "13a" also at punctuation, as
// mteval-v13a and sacrebleu's default do; "char" takes each character but white space.
Texts tokenize(std::string_view text, const std::string& tokenizer);

// Papineni et al. (2002): the geometric mean of the precisions of 1- to n-grams of the whole
// corpus, times a penalty for short hypotheses; 0 to 1. sacrebleu's standard form is smooth = "exp"
// and tokenize = "13a".
class BLEUScore final : public Cloned<BLEUScore> {
 public:
  // smooth: "none"; "floor" gives orders without a match smooth_value (0.1) of one; "add-k" adds
  // smooth_value (1) to matches and totals above 1-grams; "exp" halves a match for each order
  // without one (Chen & Cherry, 2014). Throws ValueError.
  explicit BLEUScore(int64_t n_gram = 4, std::string smooth = "none",
                     std::optional<double> smooth_value = {}, std::string tokenize = "none");

  // references[i] are all references of hypothesis i. Throws ValueError unless there is one or
  // more.
  void update(const Texts& preds, const std::vector<Texts>& references);
  Tensor compute() const override;
  std::string description() const override;

 private:
  void visit_state(StateVisitor& visitor) override;

  std::string smooth_;
  double smooth_value_;
  std::string tokenize_;
  std::vector<int64_t> matches_, totals_;  // by order
  int64_t length_ = 0, reference_length_ = 0;
};

// ROUGE-L (Lin, 2004), the F-measure of the longest common subsequence of words, a mean over texts.
// Words are what is left of letters a to z and digits in lower case. Of several references the best
// counts, or their mean.
class RougeL final : public Cloned<RougeL> {
 public:
  // accumulate: "best" or "avg". Throws ValueError.
  explicit RougeL(std::string accumulate = "best");
  void update(const Texts& preds, const std::vector<Texts>& references);
  Tensor compute() const override;
  std::string description() const override { return "RougeL(accumulate=" + accumulate_ + ")"; }

 private:
  void visit_state(StateVisitor& visitor) override;
  std::string accumulate_;
  double sum_ = 0;
  int64_t count_ = 0;
};

// The fewest insertions, deletions and substitutions that turn hypotheses into references, over the
// references' length: in characters, and in words between white space. NaN before the first text.
class ErrorRate : public Metric {
 public:
  // Throws ValueError unless there is one reference for each hypothesis.
  void update(const Texts& preds, const Texts& references);
  Tensor compute() const override;

 protected:
  explicit ErrorRate(bool words) : words_(words) {}

 private:
  void visit_state(StateVisitor& visitor) override;
  bool words_;
  int64_t errors_ = 0, length_ = 0;
};
class CharErrorRate final : public Cloned<CharErrorRate, ErrorRate> {
 public:
  CharErrorRate() : Cloned(false) {}
  std::string description() const override { return "CharErrorRate()"; }
};
class WordErrorRate final : public Cloned<WordErrorRate, ErrorRate> {
 public:
  WordErrorRate() : Cloned(true) {}
  std::string description() const override { return "WordErrorRate()"; }
};

}  // namespace kiln::metrics
