// Packed sequences, for python/kiln/nn/utils/rnn.py: a packed sequence is a tuple of its four
// parts.
#include "functional.h"
#include "kiln/nn/packed_sequence.h"
#include "nn_module.h"

namespace kiln::python {
namespace {

nb::object part(const Tensor& x) {
  return x.defined() ? nb::steal(tensor_object(x)) : nb::object(nb::none());
}

nb::tuple parts(const nn::PackedSequence& x) {
  return nb::make_tuple(part(x.data), part(x.batch_sizes), part(x.sorted_indices),
                        part(x.unsorted_indices));
}

}  // namespace

void bind_packed_sequences(nb::module_& m) {
  m.def(
      "_pack_padded_sequence",
      [](const Tensor& input, const Tensor& lengths, bool batch_first, bool enforce_sorted) {
        return parts(nn::pack_padded_sequence(input, lengths, batch_first, enforce_sorted));
      },
      "input"_a, "lengths"_a, "batch_first"_a, "enforce_sorted"_a);
  m.def(
      "_pad_packed_sequence",
      [](const Tensor& data, const Tensor& batch_sizes, const OptionalTensor& sorted,
         const OptionalTensor& unsorted, bool batch_first, double padding_value,
         int64_t total_length) {
        auto [padded, lengths] = nn::pad_packed_sequence({data, batch_sizes, sorted, unsorted},
                                                         batch_first, padding_value, total_length);
        return nb::make_tuple(part(padded), part(lengths));
      },
      "data"_a, "batch_sizes"_a, nb::arg("sorted_indices").none(),
      nb::arg("unsorted_indices").none(), "batch_first"_a, "padding_value"_a, "total_length"_a);
  m.def(
      "_pad_sequence",
      [](const std::vector<Tensor>& sequences, bool batch_first, double padding_value,
         const std::string& padding_side) {
        return nn::pad_sequence(sequences, batch_first, padding_value, padding_side);
      },
      "sequences"_a, "batch_first"_a, "padding_value"_a, "padding_side"_a);
}

}  // namespace kiln::python
