// Recurrences and their gradients.
#include <algorithm>

#include "kiln/backend/conformance/cases.h"
#include "kiln/backend/host_tensor.h"
#include "kiln/backend/reference/reference.h"

namespace kiln::conformance {
namespace {

HostHandle on_host(const Operand& x) { return host::from_data(x.data, Device()); }
Operand from_host(const HostHandle& x) { return Operand{host::into_data(x)}; }

struct Form {
  int64_t sequences, size;
  std::vector<int64_t> batch_sizes;
};

void add_form(CaseList& list, const Form& form, RecurrenceCell cell, bool reverse, bool whole,
              DType dtype) {
  RecurrenceOptions options{.cell = cell, .reverse = reverse, .batch_sizes = form.batch_sizes};
  const int64_t rows = options.rows(), gates = options.gates() * form.size;
  const Shape state{form.sequences, form.size};
  // Small weights: the errors of a state that grows would drown those of the kernels.
  const double most = 1.0 / static_cast<double>(form.size);
  const Operand x = list.uniform({rows, gates}, dtype), h = list.uniform(state, dtype);
  const Operand c = list.uniform(state, dtype), b = list.uniform({gates}, dtype);
  const Operand w = list.uniform({gates, form.size}, dtype, -most, most);
  const bool lstm = cell == RecurrenceCell::lstm;
  const Argument cells = lstm ? Argument(c) : Argument(Absent());
  const Argument bias = whole ? Argument(b) : Argument(Absent());
  const Tolerance tolerance{64, 64};
  list.add("float_recurrence", {x, h, cells, w, bias, options}, tolerance).elementwise = false;
  options.saves = false;
  list.add("float_recurrence", {x, h, cells, w, bias, options}, tolerance).elementwise = false;
  options.saves = true;

  const HostHandle host_c = on_host(c), host_b = on_host(b);
  const auto [out, last, kept] =
      Reference::float_recurrence(on_host(x), on_host(h), lstm ? &host_c : nullptr, on_host(w),
                                  whole ? &host_b : nullptr, options);
  const auto add = [&](const Argument& g_out, const Argument& g_last, const Argument& g_kept) {
    list.add("float_recurrence_backward",
             {g_out, g_last, g_kept, from_host(out), from_host(kept), h, cells, w, options},
             {64, 256})
        .elementwise = false;
  };
  const Operand g_out = list.uniform({rows, form.size}, dtype);
  const Operand g_last = list.uniform({options.states(), form.sequences, form.size}, dtype);
  add(g_out, Absent(), Absent());
  if (!whole) return;
  add(Absent(), g_last, Absent());
  add(g_out, g_last, list.uniform({rows, options.kept(), form.size}, kept->dtype()));
}

void add_cell(CaseList& list, int64_t sequences, int64_t inputs, int64_t size, RecurrenceCell cell,
              bool whole, DType dtype) {
  const RecurrenceOptions options{.cell = cell};
  const int64_t gates = options.gates() * size;
  const double most = 1.0 / static_cast<double>(std::max<int64_t>(size, 1));
  const auto weight = [&](int64_t columns) {
    return list.uniform({gates, columns}, dtype, -most, most);
  };
  const auto bias = [&] {
    return whole ? Argument(list.uniform({gates}, dtype)) : Argument(Absent());
  };
  const Operand x = list.uniform({sequences, inputs}, dtype);
  const Operand h = list.uniform({sequences, size}, dtype);
  const Argument c = cell == RecurrenceCell::lstm ? Argument(list.uniform({sequences, size}, dtype))
                                                  : Argument(Absent());
  list.add("float_recurrent_cell", {x, h, c, weight(inputs), weight(size), bias(), bias(), options},
           {64, 64})
      .elementwise = false;
}

}  // namespace

void add_recurrent_cell_cases(CaseList& list) {
  for (DType dtype : list.floats) {
    for (const RecurrenceCell cell :
         {RecurrenceCell::tanh, RecurrenceCell::relu, RecurrenceCell::gru, RecurrenceCell::lstm}) {
      add_cell(list, 1, 5, 6, cell, true, dtype);
      add_cell(list, 3, 4, 5, cell, false, dtype);
      add_cell(list, 0, 4, 5, cell, true, dtype);
      add_cell(list, 2, 0, 3, cell, true, dtype);
      if (dtype != f32 && dtype != f64) continue;
      add_cell(list, 13, 19, 37, cell, true, dtype);  // vectors and panels, with rests
    }
  }
}

void add_recurrence_cases(CaseList& list) {
  const Form forms[] = {
      {3, 5, {3, 3, 3}}, {4, 3, {4, 3, 1}}, {1, 4, {1, 1}}, {3, 4, {3}},
      {2, 1, {2, 2}},    {3, 4, {2, 0}},    {0, 4, {0}},
  };
  // More than a vector and a panel of any likely size, with rests.
  const Form large{13, 37, {13, 13, 9, 2}};
  for (DType dtype : list.floats) {
    for (const RecurrenceCell cell :
         {RecurrenceCell::tanh, RecurrenceCell::relu, RecurrenceCell::gru, RecurrenceCell::lstm}) {
      for (const Form& form : forms) {
        add_form(list, form, cell, false, true, dtype);
        add_form(list, form, cell, true, false, dtype);
      }
      if (dtype != f32 && dtype != f64) continue;
      add_form(list, large, cell, true, true, dtype);
    }
  }
}

}  // namespace kiln::conformance
