#include "kiln/tensor/nn/recurrence.h"

#include <tuple>

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/nn/functional_support.h"
#include "kiln/tensor/ops.h"

namespace kiln::functional {

using namespace detail;

namespace {

constexpr const char* kRecurrenceOp = "recurrence";
constexpr const char* kCellOp = "recurrent_cell";

void check_cell_state(const char* op, bool lstm, const Tensor& cell) {
  if (lstm == cell.defined()) return;
  throw_error<ValueError>(op, ": LSTM alone has a cell state; got ", lstm ? "none" : "one");
}

void check_batch_sizes(const RecurrenceOptions& options, int64_t rows, int64_t sequences) {
  int64_t most = sequences;
  for (int64_t n : options.batch_sizes) {
    if (n < 0 || n > most) {
      throw_error<ValueError>(kRecurrenceOp, ": batch sizes must neither grow nor exceed the ",
                              sequences, " sequences; got ", n, " after ", most);
    }
    most = n;
  }
  if (options.rows() != rows) {
    throw_error<ValueError>(kRecurrenceOp, ": batch sizes must sum to the rows of the input; got ",
                            options.rows(), " for ", rows, " rows");
  }
}

}  // namespace

RecurrenceResult recurrence(const Tensor& x, const Tensor& hidden, const Tensor& cell,
                            const Tensor& w, const Tensor& b, RecurrenceOptions options) {
  KILN_AUTOCAST(f32, recurrence, x, hidden, cell, w, b, options);
  require_floating(kRecurrenceOp, x);
  const bool lstm = options.cell == RecurrenceCell::lstm;
  if (x.dim() != 2 || hidden.dim() != 2) {
    throw_error<ShapeError>(kRecurrenceOp,
                            ": expected an input [rows, gates H] and states [N, H]; got ",
                            x.shape(), " and ", hidden.shape());
  }
  const int64_t size = hidden.size(1), gates = options.gates() * size;
  if (x.size(1) != gates) {
    throw_error<ShapeError>(kRecurrenceOp, ": expected ", options.gates(), " gates of ", size,
                            " elements in each row of the input; got ", x.shape());
  }
  require_alike(kRecurrenceOp, x, hidden, "hidden state");
  require_alike(kRecurrenceOp, x, w, "weight");
  require_param(kRecurrenceOp, x, w, "weight", {gates, size});
  require_param(kRecurrenceOp, x, b, "bias", {gates});
  check_cell_state(kRecurrenceOp, lstm, cell);
  require_param(kRecurrenceOp, x, cell, "cell state", hidden.shape());
  check_batch_sizes(options, x.size(0), hidden.size(0));

  options.saves = false;  // recording sets it
  const Value* c = lstm ? &value_of(kRecurrenceOp, cell) : nullptr;
  const Value* bias = b.defined() ? &value_of(kRecurrenceOp, b) : nullptr;
  auto results = AD::float_recurrence(value_of(kRecurrenceOp, x), value_of(kRecurrenceOp, hidden),
                                      c, value_of(kRecurrenceOp, w), bias, options);
  RecurrenceResult out;
  out.output = wrap(std::move(std::get<0>(results)));
  const Tensor last = wrap(std::move(std::get<1>(results)));
  out.hidden = last.select(0, 0);
  if (lstm) out.cell = last.select(0, 1);
  return out;
}

RecurrentState recurrent_cell(RecurrenceCell kind, const Tensor& x, const Tensor& hidden,
                              const Tensor& cell, const Tensor& w_ih, const Tensor& w_hh,
                              const Tensor& b_ih, const Tensor& b_hh) {
  if (amp::detail::casting)
      [[unlikely]] {  // the input's product is of another list than the states
    RecurrenceResult next = recurrence(linear(x, w_ih, b_ih), hidden, cell, w_hh, b_hh,
                                       {.cell = kind, .batch_sizes = {hidden.size(0)}});
    return {std::move(next.hidden), std::move(next.cell)};
  }
  require_floating(kCellOp, x);
  if (x.dim() != 2 || hidden.dim() != 2 || x.size(0) != hidden.size(0)) {
    throw_error<ShapeError>(kCellOp, ": expected an input [N, I] and states [N, H]; got ",
                            x.shape(), " and ", hidden.shape());
  }
  const RecurrenceOptions options{.cell = kind, .saves = false};
  const int64_t size = hidden.size(1), gates = options.gates() * size;
  require_alike(kCellOp, x, hidden, "hidden state");
  require_alike(kCellOp, x, w_ih, "input's weight");
  require_alike(kCellOp, x, w_hh, "weight");
  require_param(kCellOp, x, w_ih, "input's weight", {gates, x.size(1)});
  require_param(kCellOp, x, w_hh, "weight", {gates, size});
  require_param(kCellOp, x, b_ih, "input's bias", {gates});
  require_param(kCellOp, x, b_hh, "bias", {gates});
  const bool lstm = kind == RecurrenceCell::lstm;
  check_cell_state(kCellOp, lstm, cell);
  require_param(kCellOp, x, cell, "cell state", hidden.shape());

  const auto given = [](const Tensor& t) { return t.defined() ? &value_of(kCellOp, t) : nullptr; };
  auto [next, next_cell] = AD::float_recurrent_cell(
      value_of(kCellOp, x), value_of(kCellOp, hidden), given(cell), value_of(kCellOp, w_ih),
      value_of(kCellOp, w_hh), given(b_ih), given(b_hh), options);
  RecurrentState out;
  out.hidden = wrap(std::move(next));
  if (lstm) out.cell = wrap(std::move(next_cell));
  return out;
}

}  // namespace kiln::functional
