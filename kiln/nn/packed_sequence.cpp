#include "kiln/nn/packed_sequence.h"

#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/padding.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {
namespace {

std::vector<int64_t> numbers(const Tensor& x) {
  return x.to(i64).contiguous().to_vector<int64_t>();
}

// Each at least 1 and at most `most`.
std::vector<int64_t> lengths_of(const char* op, const Tensor& lengths, int64_t count,
                                int64_t most) {
  if (lengths.dim() != 1 || lengths.size(0) != count || count == 0) {
    throw_error<ShapeError>(op, ": expected a length for each of ", count, " sequences; got shape ",
                            lengths.shape());
  }
  std::vector<int64_t> out = numbers(lengths);
  for (const int64_t length : out) {
    if (length < 1 || length > most) {
      throw_error<ValueError>(op, ": lengths must be from 1 to ", most, "; got ", length);
    }
  }
  return out;
}

// x [length, ..] with `more` steps at its end, or at its beginning.
Tensor padded(const Tensor& x, int64_t before, int64_t after, double value) {
  if (before == 0 && after == 0) return x;
  Shape sides;
  for (int64_t i = 1; i < x.dim(); ++i) {
    sides.push_back(0);
    sides.push_back(0);
  }
  sides.push_back(before);
  sides.push_back(after);
  return functional::pad(x, sides, "constant", value);
}

}  // namespace

Tensor invert_permutation(const Tensor& permutation) {
  if (!permutation.defined()) return permutation;
  const Tensor out = zeros(permutation.shape(), {.dtype = i64, .device = permutation.device()});
  const Tensor places =
      arange(0, permutation.numel(), 1, {.dtype = i64, .device = permutation.device()});
  return out.scatter(0, permutation, places);
}

PackedSequence pack_padded_sequence(const Tensor& x, const Tensor& lengths, bool batch_first,
                                    bool enforce_sorted) {
  constexpr const char* kOp = "pack_padded_sequence";
  if (x.dim() < 2) {
    throw_error<ShapeError>(kOp, ": expected [T, N, ..]; got shape ", x.shape());
  }
  Tensor steps = batch_first ? x.transpose(0, 1) : x;
  std::vector<int64_t> sizes = lengths_of(kOp, lengths, steps.size(1), steps.size(0));
  PackedSequence out;
  if (!enforce_sorted) {
    std::vector<int64_t> order(sizes.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return sizes[static_cast<size_t>(a)] > sizes[static_cast<size_t>(b)];
    });
    out.sorted_indices = from_vector(order, {static_cast<int64_t>(order.size())}).to(x.device());
    out.unsorted_indices = invert_permutation(out.sorted_indices);
    steps = steps.index_select(1, out.sorted_indices);
    std::sort(sizes.rbegin(), sizes.rend());
  } else if (!std::is_sorted(sizes.rbegin(), sizes.rend())) {
    throw_error<ValueError>(
        kOp, ": with enforce_sorted the lengths must not grow; got ",
        Shape(std::span<const int64_t>(sizes).first(std::min<size_t>(sizes.size(), kMaxRank))));
  }
  std::vector<Tensor> parts;
  std::vector<int64_t> batch_sizes;
  auto left = static_cast<int64_t>(sizes.size());
  for (int64_t t = 0; t < sizes[0]; ++t) {
    while (sizes[static_cast<size_t>(left - 1)] <= t) --left;
    batch_sizes.push_back(left);
    parts.push_back(steps.select(0, t).narrow(0, 0, left));
  }
  out.data = cat(parts, 0);
  out.batch_sizes = from_vector(batch_sizes, {static_cast<int64_t>(batch_sizes.size())});
  return out;
}

std::vector<int64_t> detail::batch_sizes_of(const char* op, const PackedSequence& sequence) {
  std::vector<int64_t> sizes;
  if (sequence.batch_sizes.defined() && sequence.batch_sizes.dim() == 1) {
    sizes = numbers(sequence.batch_sizes);
  }
  int64_t sum = 0;
  bool legal = !sizes.empty() && sequence.data.defined() && sequence.data.dim() >= 1;
  for (size_t i = 0; i < sizes.size() && legal; ++i) {
    legal =
        sizes[i] >= 1 && (i == 0 || sizes[i] <= sizes[i - 1]) && sizes[i] <= sequence.data.size(0);
    sum += sizes[i];
  }
  if (!legal || sum != sequence.data.size(0)) {
    throw_error<ValueError>(op,
                            ": the batch sizes of a packed sequence must be positive, must not "
                            "grow and must add up to the rows of its data; got data ",
                            sequence.data.defined() ? sequence.data.shape() : Shape{},
                            " and batch sizes that add up to ", sum);
  }
  return sizes;
}

std::pair<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first,
                                              double padding_value, int64_t total_length) {
  constexpr const char* kOp = "pad_packed_sequence";
  const std::vector<int64_t> batch_sizes = detail::batch_sizes_of(kOp, sequence);
  const auto longest = static_cast<int64_t>(batch_sizes.size());
  if (total_length != 0 && total_length < longest) {
    throw_error<ValueError>(kOp, ": total_length must be at least the longest length ", longest,
                            "; got ", total_length);
  }
  const int64_t count = batch_sizes[0];
  std::vector<Tensor> steps;
  std::vector<int64_t> lengths(static_cast<size_t>(count), 0);
  int64_t place = 0;
  for (const int64_t size : batch_sizes) {
    steps.push_back(padded(sequence.data.narrow(0, place, size), 0, count - size, padding_value));
    place += size;
    for (int64_t i = 0; i < size; ++i) ++lengths[static_cast<size_t>(i)];
  }
  Tensor out =
      padded(stack(steps, 0), 0, std::max<int64_t>(0, total_length - longest), padding_value);
  Tensor sizes = from_vector(lengths, {count});
  if (sequence.unsorted_indices.defined()) {
    out = out.index_select(1, sequence.unsorted_indices);
    sizes = sizes.index_select(0, sequence.unsorted_indices.to(sizes.device()));
  }
  return {batch_first ? out.transpose(0, 1) : out, sizes};
}

Tensor pad_sequence(std::span<const Tensor> sequences, bool batch_first, double padding_value,
                    const std::string& padding_side) {
  constexpr const char* kOp = "pad_sequence";
  if (sequences.empty()) throw_error<ValueError>(kOp, ": expected at least one sequence; got none");
  if (padding_side != "right" && padding_side != "left") {
    throw_error<ValueError>(kOp, ": padding_side must be right or left; got '", padding_side, "'");
  }
  int64_t longest = 0;
  for (const Tensor& x : sequences) {
    if (x.dim() == 0)
      throw_error<ShapeError>(kOp, ": expected [length, ..]; got shape ", x.shape());
    longest = std::max(longest, x.size(0));
  }
  std::vector<Tensor> out;
  for (const Tensor& x : sequences) {
    const int64_t more = longest - x.size(0);
    const bool right = padding_side == "right";
    out.push_back(padded(x, right ? 0 : more, right ? more : 0, padding_value));
  }
  return stack(out, batch_first ? 0 : 1);
}

std::vector<Tensor> unpad_sequence(const Tensor& padded_sequences, const Tensor& lengths,
                                   bool batch_first) {
  constexpr const char* kOp = "unpad_sequence";
  if (padded_sequences.dim() < 2) {
    throw_error<ShapeError>(kOp, ": expected [T, N, ..]; got shape ", padded_sequences.shape());
  }
  const Tensor x = batch_first ? padded_sequences : padded_sequences.transpose(0, 1);
  const std::vector<int64_t> sizes = lengths_of(kOp, lengths, x.size(0), x.size(1));
  std::vector<Tensor> out;
  for (int64_t i = 0; i < x.size(0); ++i) {
    out.push_back(x.select(0, i).narrow(0, 0, sizes[static_cast<size_t>(i)]));
  }
  return out;
}

PackedSequence pack_sequence(std::span<const Tensor> sequences, bool enforce_sorted) {
  const Tensor all = pad_sequence(sequences);
  std::vector<int64_t> lengths;
  for (const Tensor& x : sequences) lengths.push_back(x.size(0));
  return pack_padded_sequence(all, from_vector(lengths, {static_cast<int64_t>(lengths.size())}),
                              false, enforce_sorted);
}

std::vector<Tensor> unpack_sequence(const PackedSequence& sequence) {
  const auto [padded_sequences, lengths] = pad_packed_sequence(sequence, true);
  return unpad_sequence(padded_sequences, lengths, true);
}

}  // namespace kiln::nn
