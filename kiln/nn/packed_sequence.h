// Sequences of different lengths as one batch: padded, and packed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln::nn {

// The steps of several sequences one behind another: first the first steps of all, the longest
// sequence first, then the second steps of those that have one, ... Undefined indices: the order of
// the batch is that of the lengths.
struct PackedSequence {
  Tensor data;              // [all steps, ..]
  Tensor batch_sizes;       // i64 [longest]: how many sequences have a step t
  Tensor sorted_indices;    // i64 [N]: which sequence stands where
  Tensor unsorted_indices;  // its inverse
};

// x [T, N, ..] (or [N, T, ..] with batch_first) and i64 lengths [N] on the host, each at least 1.
// With enforce_sorted the lengths must not grow; else the batch is sorted. Throws ShapeError,
// ValueError.
PackedSequence pack_padded_sequence(const Tensor& x, const Tensor& lengths,
                                    bool batch_first = false, bool enforce_sorted = true);
// Back: the padded sequences in their first order, and their lengths. total_length: at least that
// many steps, 0 for as many as the longest has. Throws ValueError when it is less.
std::pair<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence,
                                              bool batch_first = false, double padding_value = 0.0,
                                              int64_t total_length = 0);
// Tensors [length, ..] -> [longest, N, ..], or [N, longest, ..] with batch_first. padding_side:
// right or left.
Tensor pad_sequence(std::span<const Tensor> sequences, bool batch_first = false,
                    double padding_value = 0.0, const std::string& padding_side = "right");
inline Tensor pad_sequence(std::initializer_list<Tensor> sequences, bool batch_first = false,
                           double padding_value = 0.0, const std::string& padding_side = "right") {
  return pad_sequence(std::span(sequences.begin(), sequences.size()), batch_first, padding_value,
                      padding_side);
}
std::vector<Tensor> unpad_sequence(const Tensor& padded, const Tensor& lengths,
                                   bool batch_first = false);
PackedSequence pack_sequence(std::span<const Tensor> sequences, bool enforce_sorted = true);
inline PackedSequence pack_sequence(std::initializer_list<Tensor> sequences,
                                    bool enforce_sorted = true) {
  return pack_sequence(std::span(sequences.begin(), sequences.size()), enforce_sorted);
}
std::vector<Tensor> unpack_sequence(const PackedSequence& sequence);
// Which place each element of a permutation has.
Tensor invert_permutation(const Tensor& permutation);

namespace detail {
// The batch sizes as numbers. Throws ValueError unless they are positive, do not grow and count the
// rows of data: `op` is who asks.
std::vector<int64_t> batch_sizes_of(const char* op, const PackedSequence& sequence);
}  // namespace detail

}  // namespace kiln::nn
