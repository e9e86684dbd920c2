#include "kiln/metrics/text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"

namespace kiln::metrics {

namespace {

using Grams = std::map<Texts, int64_t>;

// The n-grams of 1 to `most` tokens, with how often each occurs.
Grams grams_of(const Texts& tokens, size_t most) {
  Grams out;
  for (size_t n = 1; n <= most; ++n) {
    for (size_t i = 0; i + n <= tokens.size(); ++i) {
      const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(i);
      ++out[Texts(first, first + static_cast<std::ptrdiff_t>(n))];
    }
  }
  return out;
}

void check_references(const char* op, const Texts& preds, const std::vector<Texts>& references) {
  if (preds.size() != references.size()) {
    throw_error<ValueError>(op, ": got ", preds.size(), " hypotheses and references for ",
                            references.size());
  }
  for (size_t i = 0; i < references.size(); ++i) {
    if (references[i].empty()) {
      throw_error<ValueError>(op, ": hypothesis ", i, " has no reference; expected one or more");
    }
  }
}

// Characters as numbers of their own, words as texts.
std::vector<char32_t> characters_of(std::string_view text) {
  if (!is_utf8(text)) {
    throw_error<ValueError>("CharErrorRate: the text is no UTF-8; got '", printable(text), "'");
  }
  std::vector<char32_t> out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0) == 0x80) {
      out.back() = out.back() << 8 | byte;
    } else {
      out.push_back(byte);
    }
  }
  return out;
}

template <class T>
int64_t edit_distance(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<int64_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int64_t>(j);
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t corner = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const int64_t changed = corner + (a[i] == b[j] ? 0 : 1);
      corner = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, corner + 1});
    }
  }
  return row.back();
}

size_t longest_common(const Texts& a, const Texts& b) {
  std::vector<size_t> row(b.size() + 1);
  for (const std::string& word : a) {
    size_t corner = 0;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t above = row[j + 1];
      row[j + 1] = word == b[j] ? corner + 1 : std::max(above, row[j]);
      corner = above;
    }
  }
  return row.back();
}

// Letters in lower case and digits; all else is space.
Texts rouge_words(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9')) c = ' ';
  }
  return tokenize(text, "none");
}

}  // namespace

BLEUScore::BLEUScore(int64_t n_gram, std::string smooth, std::optional<double> smooth_value,
                     std::string tokenizer)
    : smooth_(std::move(smooth)), smooth_value_(0), tokenize_(std::move(tokenizer)) {
  if (n_gram < 1 || n_gram > 16) {
    throw_error<ValueError>("BLEUScore: bad n_gram; got ", n_gram, "; expected 1 to 16");
  }
  if (smooth_ != "none" && smooth_ != "floor" && smooth_ != "add-k" && smooth_ != "exp") {
    throw_error<ValueError>("BLEUScore: unknown smooth; got '", smooth_,
                            "'; expected none, floor, add-k or exp");
  }
  smooth_value_ = smooth_value.value_or(smooth_ == "floor" ? 0.1 : smooth_ == "add-k" ? 1 : 0);
  if (!(smooth_value_ >= 0 && std::isfinite(smooth_value_))) {
    throw_error<ValueError>("BLEUScore: bad smooth_value; got ", smooth_value_,
                            "; expected a number that is not negative");
  }
  metrics::tokenize("", tokenize_);
  matches_.assign(static_cast<size_t>(n_gram), 0);
  totals_ = matches_;
}

std::string BLEUScore::description() const {
  return concat("BLEUScore(n_gram=", matches_.size(), ", smooth=", smooth_, " ", smooth_value_,
                ", tokenize=", tokenize_, ")");
}

void BLEUScore::visit_state(StateVisitor& visitor) {
  visitor("matches", matches_, Join::sum);
  visitor("totals", totals_, Join::sum);
  visitor("length", length_, Join::sum);
  visitor("reference_length", reference_length_, Join::sum);
}

void BLEUScore::update(const Texts& preds, const std::vector<Texts>& references) {
  check_references("BLEUScore", preds, references);
  BLEUScore next = *this;
  for (size_t i = 0; i < preds.size(); ++i) {
    const Texts tokens = metrics::tokenize(preds[i], tokenize_);
    const auto length = static_cast<int64_t>(tokens.size());
    Grams allowed;
    int64_t closest = std::numeric_limits<int64_t>::max();
    for (const std::string& reference : references[i]) {
      const Texts other = metrics::tokenize(reference, tokenize_);
      for (const auto& [gram, count] : grams_of(other, matches_.size())) {
        int64_t& most = allowed[gram];
        most = std::max(most, count);
      }
      const auto n = static_cast<int64_t>(other.size());
      const auto gap = [length](int64_t m) { return std::abs(m - length); };
      if (closest == std::numeric_limits<int64_t>::max() || gap(n) < gap(closest) ||
          (gap(n) == gap(closest) && n < closest)) {
        closest = n;
      }
    }
    next.length_ += length;
    next.reference_length_ += closest;
    for (const auto& [gram, count] : grams_of(tokens, matches_.size())) {
      next.totals_[gram.size() - 1] += count;
      const auto found = allowed.find(gram);
      if (found != allowed.end()) next.matches_[gram.size() - 1] += std::min(count, found->second);
    }
  }
  *this = next;
}

Tensor BLEUScore::compute() const {
  if (std::all_of(matches_.begin(), matches_.end(), [](int64_t n) { return n == 0; })) {
    return value_tensor(0.0);
  }
  double logs = 0, halved = 1;
  for (size_t n = 0; n < matches_.size(); ++n) {
    const double added = smooth_ == "add-k" && n > 0 ? smooth_value_ : 0;
    double matches = static_cast<double>(matches_[n]) + added;
    const double total = static_cast<double>(totals_[n]) + added;
    if (matches == 0 && smooth_ == "exp") matches = 1 / (halved *= 2);
    if (matches == 0 && smooth_ == "floor") matches = smooth_value_;
    if (total == 0 || matches == 0) return value_tensor(0.0);
    logs += std::log(matches / total);
  }
  const double penalty =
      length_ < reference_length_
          ? std::exp(1 - static_cast<double>(reference_length_) / static_cast<double>(length_))
          : 1;
  return value_tensor(penalty * std::exp(logs / static_cast<double>(matches_.size())));
}

RougeL::RougeL(std::string accumulate) : accumulate_(std::move(accumulate)) {
  if (accumulate_ != "best" && accumulate_ != "avg") {
    throw_error<ValueError>("RougeL: unknown accumulate; got '", accumulate_,
                            "'; expected best or avg");
  }
}

void RougeL::visit_state(StateVisitor& visitor) {
  visitor("sum", sum_, Join::sum);
  visitor("count", count_, Join::sum);
}

void RougeL::update(const Texts& preds, const std::vector<Texts>& references) {
  check_references("RougeL", preds, references);
  for (size_t i = 0; i < preds.size(); ++i) {
    const Texts words = rouge_words(preds[i]);
    double best = 0, sum = 0;
    for (const std::string& reference : references[i]) {
      const Texts other = rouge_words(reference);
      // 2 P R / (P + R) with P = common / words and R = common / other.
      const double f = ratio(2 * static_cast<double>(longest_common(words, other)),
                             static_cast<double>(words.size() + other.size()), 0);
      best = std::max(best, f);
      sum += f;
    }
    sum_ += accumulate_ == "best" ? best : sum / static_cast<double>(references[i].size());
    ++count_;
  }
}

Tensor RougeL::compute() const {
  return value_tensor(
      ratio(sum_, static_cast<double>(count_), std::numeric_limits<double>::quiet_NaN()));
}

void ErrorRate::visit_state(StateVisitor& visitor) {
  visitor("errors", errors_, Join::sum);
  visitor("length", length_, Join::sum);
}

void ErrorRate::update(const Texts& preds, const Texts& references) {
  if (preds.size() != references.size()) {
    throw_error<ValueError>(words_ ? "WordErrorRate" : "CharErrorRate", ": got ", preds.size(),
                            " hypotheses and ", references.size(), " references");
  }
  int64_t errors = 0, length = 0;
  const auto add = [&](const auto& a, const auto& b) {
    errors += edit_distance(a, b);
    length += static_cast<int64_t>(b.size());
  };
  for (size_t i = 0; i < preds.size(); ++i) {
    if (words_) {
      add(tokenize(preds[i], "none"), tokenize(references[i], "none"));
    } else {
      add(characters_of(preds[i]), characters_of(references[i]));
    }
  }
  errors_ += errors;
  length_ += length;
}

Tensor ErrorRate::compute() const {
  return value_tensor(ratio(static_cast<double>(errors_), static_cast<double>(length_),
                            std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace kiln::metrics
