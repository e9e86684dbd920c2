// Sequences of tensors, and optional values.
#include "kiln/onnx/read/call.h"

namespace kiln::onnx {

namespace {

void sequence_empty(Call& c) { c.out_sequence({}); }
void sequence_construct(Call& c) {
  TensorList all;
  for (size_t i = 0; i < c.inputs(); ++i) all.push_back(c.in(i));
  c.out_sequence(std::move(all));
}
void sequence_length(Call& c) { c.out(tensor(static_cast<int64_t>(c.sequence(0).size()))); }

// A place in a sequence, where negative ones count from the end; `end` is a place, too, when it
// takes one more.
size_t place_in(Call& c, size_t input, size_t length, bool end) {
  const std::vector<int64_t> given = c.integers(input);
  if (given.size() != 1) c.fail("expected one place");
  const auto n = static_cast<int64_t>(length);
  const int64_t at = given[0] < 0 ? given[0] + n : given[0];
  if (at < 0 || at >= n + (end ? 1 : 0)) {
    c.fail(concat("place ", given[0], " in a sequence of ", length));
  }
  return static_cast<size_t>(at);
}
void sequence_at(Call& c) {
  const TensorList& all = c.sequence(0);
  c.out(all[place_in(c, 1, all.size(), false)]);
}
void sequence_insert(Call& c) {
  TensorList all = c.sequence(0);
  const size_t at = c.has(2) ? place_in(c, 2, all.size(), true) : all.size();
  all.insert(all.begin() + static_cast<int64_t>(at), c.in(1));
  c.out_sequence(std::move(all));
}
void sequence_erase(Call& c) {
  TensorList all = c.sequence(0);
  if (all.empty()) c.fail("an empty sequence");
  const size_t at = c.has(1) ? place_in(c, 1, all.size(), false) : all.size() - 1;
  all.erase(all.begin() + static_cast<int64_t>(at));
  c.out_sequence(std::move(all));
}
void concat_from_sequence(Call& c) {
  const TensorList& all = c.sequence(0);
  if (all.empty()) c.fail("an empty sequence");
  const bool stacks = c.i("new_axis", 0) != 0;
  const int64_t axis = c.axis_of("axis", 0, all[0].dim() + (stacks ? 1 : 0));
  c.out(stacks ? stack(all, axis) : cat(all, axis));
}
void split_to_sequence(Call& c) {
  const Tensor x = c.in(0);
  const int64_t axis = c.axis_of("axis", 0, x.dim()), n = x.size(axis);
  std::vector<int64_t> sizes;
  const bool single = !c.has(1);
  if (single || c.in(1).dim() == 0) {
    const int64_t each = single ? 1 : c.integers(1).at(0);
    if (each < 1) c.fail(concat("got the size ", each));
    for (int64_t at = 0; at < n; at += each) sizes.push_back(std::min(each, n - at));
  } else {
    sizes = c.integers(1);
  }
  TensorList all;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || size > n - begin) c.fail("sizes that are larger than the dim");
    const Tensor part = x.narrow(axis, begin, size);
    all.push_back(single && c.i("keepdims", 1) == 0 ? part.squeeze(axis) : part);
    begin += size;
  }
  if (begin != n) c.fail(concat("sizes of ", begin, " in all; the dim has ", n));
  c.out_sequence(std::move(all));
}

// An absent optional value is a value that is not there.
void optional(Call& c) { c.out_value(c.value(0), 0); }
void optional_has_element(Call& c) {
  c.out(kiln::full({}, c.has(size_t{0}) ? 1 : 0, {.dtype = DType::boolean}));
}
void optional_get_element(Call& c) {
  if (!c.has(size_t{0})) c.fail("an optional value that is absent");
  c.out_value(c.value(0), 0);
}

constexpr Operator kSequencesOperators[] = {
    {"SequenceEmpty", sequence_empty},
    {"SequenceConstruct", sequence_construct},
    {"SequenceLength", sequence_length},
    {"SequenceAt", sequence_at},
    {"SequenceInsert", sequence_insert},
    {"SequenceErase", sequence_erase},
    {"ConcatFromSequence", concat_from_sequence},
    {"SplitToSequence", split_to_sequence},
    {"Optional", optional},
    {"OptionalHasElement", optional_has_element},
    {"OptionalGetElement", optional_get_element},
};

}  // namespace

std::span<const Operator> sequence_operators() { return kSequencesOperators; }

}  // namespace kiln::onnx
