#include "kiln/models/generation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/index/scatter.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/random/random_ops.h"
#include "kiln/tensor/sequences.h"
#include "kiln/tensor/shape/joining.h"

namespace kiln::models {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Room for `end` positions or more, the first `start` of them those of `kept`.
Tensor append(const Tensor& kept, const Tensor& added, int64_t start, int64_t end) {
  if (kept.requires_grad() || added.requires_grad()) {
    return cat({kept.narrow(2, 0, start), added}, 2);
  }
  Tensor out = kept;
  if (end > kept.size(2)) {
    Shape room = added.shape();
    room[2] = std::max(end, 2 * start) - start;
    out = cat(
        {kept.narrow(2, 0, start), empty(room, {.dtype = added.dtype(), .device = added.device()})},
        2);
  }
  out.narrow(2, start, end - start).copy_(added);
  return out;
}

void check(const GenerateOptions& o) {
  if (o.max_new_tokens < 1) {
    throw_error<ValueError>("generate: max_new_tokens must be at least 1; got ", o.max_new_tokens);
  }
  if (o.min_new_tokens < 0 || o.top_k < 0) {
    throw_error<ValueError>("generate: min_new_tokens and top_k must be at least 0; got ",
                            o.min_new_tokens, " and ", o.top_k);
  }
  if (!(o.temperature > 0 && std::isfinite(o.temperature))) {
    throw_error<ValueError>("generate: temperature must be above 0; got ", o.temperature);
  }
  if (!(o.top_p > 0 && o.top_p <= 1)) {
    throw_error<ValueError>("generate: top_p must be above 0 and at most 1; got ", o.top_p);
  }
  if (!(o.repetition_penalty > 0 && std::isfinite(o.repetition_penalty))) {
    throw_error<ValueError>("generate: repetition_penalty must be above 0; got ",
                            o.repetition_penalty);
  }
  for (const auto& sequence : o.stop) {
    if (sequence.empty()) {
      throw_error<ValueError>("generate: each sequence of stop needs at least one token");
    }
  }
}

// The next token of each row of logits [N, V].
Tensor choose(Tensor logits, const GenerateOptions& o, Generator* generator) {
  if (!o.do_sample) return logits.argmax(-1);
  logits = logits / o.temperature;
  const int64_t vocabulary = logits.size(1);
  if (o.top_k > 0 && o.top_k < vocabulary) {
    const Tensor least = logits.topk(o.top_k, -1).first.narrow(1, o.top_k - 1, 1);
    logits = logits.masked_fill(logits.lt(least), -kInfinity);
  }
  if (o.top_p < 1) {
    const auto [ordered, index] = logits.sort(-1, /*descending=*/true);
    const Tensor probability = ordered.softmax(-1);
    // The likeliest token always stays: nothing is before it.
    const Tensor drop = (probability.cumsum(-1) - probability).ge(o.top_p);
    logits = logits.masked_fill(zeros_like(drop).scatter(1, index, drop), -kInfinity);
  }
  return multinomial(logits.softmax(-1), 1, false, generator).select(1, 0);
}

struct Row {
  std::set<int64_t> seen;
  std::vector<int64_t> written;
  bool done = false;
};

bool ends(const Row& row, const GenerateOptions& o) {
  const auto& w = row.written;
  if (std::find(o.eos_token_id.begin(), o.eos_token_id.end(), w.back()) != o.eos_token_id.end()) {
    return true;
  }
  return std::any_of(o.stop.begin(), o.stop.end(), [&](const std::vector<int64_t>& stop) {
    return w.size() >= stop.size() && std::equal(stop.rbegin(), stop.rend(), w.rbegin());
  });
}

// Logits of tokens that have occurred, divided by the penalty where above 0, else times it.
Tensor penalized(const Tensor& logits, const std::vector<Row>& rows, double penalty) {
  std::vector<uint8_t> seen(size_t(logits.numel()));
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const int64_t token : rows[i].seen) {
      if (token >= 0 && token < logits.size(1)) {
        seen[i * size_t(logits.size(1)) + size_t(token)] = 1;
      }
    }
  }
  const Tensor mask =
      from_vector(seen, logits.shape(), {.device = logits.device()}).to(DType::boolean);
  return where(mask, where(logits.lt(0), logits * penalty, logits / penalty), logits);
}

}  // namespace

int64_t KeyValueCache::length(size_t layer) const {
  return layer < layers_.size() ? layers_[layer].length : 0;
}

std::pair<Tensor, Tensor> KeyValueCache::update(size_t layer, const Tensor& key,
                                                const Tensor& value) {
  if (layer == layers_.size()) {
    layers_.push_back({key, value, key.size(2)});
    return {key, value};
  }
  Layer& kept = layers_.at(layer);
  const int64_t start = kept.length, end = start + key.size(2);
  kept.key = append(kept.key, key, start, end);
  kept.value = append(kept.value, value, start, end);
  kept.length = end;
  return this->layer(layer);
}

std::pair<Tensor, Tensor> KeyValueCache::layer(size_t layer) const {
  const Layer& kept = layers_.at(layer);
  return {kept.key.narrow(2, 0, kept.length), kept.value.narrow(2, 0, kept.length)};
}

Tensor generate(const GenerationStep& step, const std::vector<std::vector<int64_t>>& prompts,
                const GenerateOptions& o) {
  check(o);
  size_t length = 0;
  for (const auto& prompt : prompts) length = std::max(length, prompt.size());
  std::vector<int64_t> padded;
  std::vector<int64_t> present;
  std::vector<Row> rows;
  for (const auto& prompt : prompts) {
    if (prompt.empty()) length = 0;
    padded.insert(padded.end(), length - std::min(length, prompt.size()), o.pad_token_id);
    present.insert(present.end(), length - std::min(length, prompt.size()), 0);
    padded.insert(padded.end(), prompt.begin(), prompt.end());
    present.insert(present.end(), prompt.size(), 1);
    rows.push_back({std::set<int64_t>(prompt.begin(), prompt.end()), {}, false});
    if (prompt.empty()) break;
  }
  if (length == 0) throw_error<ValueError>("generate: every prompt needs at least one token");
  const NoGradGuard guard;
  const int64_t n = int64_t(rows.size());
  Tensor ids = from_vector(padded, {n, int64_t(length)});
  Tensor mask = from_vector(present, {n, int64_t(length)});
  Tensor step_ids = ids;
  KeyValueCache cache;
  std::optional<Generator> generator;
  if (o.seed) generator.emplace(*o.seed);
  for (int64_t i = 0; i < o.max_new_tokens; ++i) {
    const int64_t now = step_ids.size(1);
    const Tensor positions = (mask.cumsum(1) - 1).clamp(0).narrow(1, mask.size(1) - now, now);
    Tensor logits = step(step_ids, mask, positions, o.use_cache ? &cache : nullptr).to(f32);
    if (o.repetition_penalty != 1.0) logits = penalized(logits, rows, o.repetition_penalty);
    if (i < o.min_new_tokens) {
      for (const int64_t end : o.eos_token_id) logits.select(1, end).fill_(-kInfinity);
    }
    std::vector<int64_t> tokens =
        choose(logits, o, generator ? &*generator : nullptr).to_vector<int64_t>();
    bool all_done = true;
    for (size_t r = 0; r < rows.size(); ++r) {
      Row& row = rows[r];
      if (row.done) {
        tokens[r] = o.pad_token_id;
        continue;
      }
      row.seen.insert(tokens[r]);
      row.written.push_back(tokens[r]);
      row.done = i + 1 >= o.min_new_tokens && ends(row, o);
      all_done = all_done && row.done;
    }
    const Tensor token = from_vector(tokens, {n, 1});
    if (o.on_step) o.on_step(token.select(1, 0));
    ids = cat({ids, token}, 1);
    if (all_done) break;
    mask = cat({mask, ones({n, 1}, {.dtype = i64})}, 1);
    step_ids = o.use_cache ? token : ids;
  }
  return ids;
}

std::pair<Tensor, bool> causal_mask(const Tensor& attention_mask, int64_t queries, int64_t keys,
                                    const Device& device) {
  const bool plain = !attention_mask.defined() || attention_mask.ne(0).all().item<bool>();
  if (plain && (queries == keys || queries == 1)) return {Tensor(), queries > 1};
  Tensor mask = tril(ones({queries, keys}, {.device = device}), keys - queries).ne(0);
  if (!plain) {
    if (attention_mask.size(-1) != keys) {
      throw_error<ShapeError>("attention_mask: expected ", keys,
                              " positions, the cached ones too; got ",
                              to_string(attention_mask.shape()));
    }
    mask = mask.logical_and(attention_mask.ne(0).unsqueeze(1).unsqueeze(1));
  }
  return {mask, false};
}

}  // namespace kiln::models
