// Recurrences: one sequence after another, one step after another.
#include <algorithm>
#include <cmath>

#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::make;
using reference::Ops;
using reference::read;
using reference::Tensor;

namespace {

using Row = std::vector<double>;

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

struct Recurrence {
  Recurrence(const Tensor& h, const HostHandle* c, const Tensor& w, const RecurrenceOptions& o)
      : options(o),
        steps(o.steps()),
        count(static_cast<size_t>(h->shape()[0])),
        size(static_cast<size_t>(h->shape()[1])),
        gates(static_cast<size_t>(o.gates()) * size),
        keeps(static_cast<size_t>(o.kept())),
        rows(static_cast<size_t>(o.rows())),
        first_h(read<double>(h)),
        weights(read<double>(w)) {
    if (c != nullptr) first_c = read<double>(*c);
  }

  // y = W h + b.
  Row product(const double* h, const Row& b) const {
    Row y(gates);
    for (size_t j = 0; j < gates; ++j) {
      double sum = b.empty() ? 0.0 : b[j];
      for (size_t k = 0; k < size; ++k) sum += weights[j * size + k] * h[k];
      y[j] = sum;
    }
    return y;
  }

  const RecurrenceOptions& options;
  std::vector<RecurrenceStep> steps;
  size_t count, size, gates, keeps, rows;
  Row first_h, first_c, weights;
};

// Where step `at` of sequence n stands among the rows; false if the sequence lacks that step.
bool row_of(const Recurrence& r, size_t at, size_t n, size_t* row) {
  *row = static_cast<size_t>(r.steps[at].begin) + n;
  return n < static_cast<size_t>(r.steps[at].rows);
}

HostHandle made(const Row& values, const Shape& shape, DType dtype, const Tensor& like) {
  return make(shape, dtype, like->device(), values);
}

DType statistics(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

struct Forward {
  Row out, last, kept;
};

// All steps, from the input's part of the gates.
Forward forward(const Recurrence& r, const Row& xs, const Row& bias) {
  const RecurrenceOptions& options = r.options;
  const size_t size = r.size;
  const bool lstm = options.cell == RecurrenceCell::lstm;
  Row out(r.rows * size), last(static_cast<size_t>(options.states()) * r.count * size);
  Row kept(r.rows * r.keeps * size);
  for (size_t n = 0; n < r.count; ++n) {
    Row state(r.first_h.begin() + long(n * size), r.first_h.begin() + long((n + 1) * size));
    Row cell(size);
    if (lstm) cell.assign(&r.first_c[n * size], &r.first_c[n * size] + size);
    for (size_t at = 0; at < r.steps.size(); ++at) {
      size_t row = 0;
      if (!row_of(r, at, n, &row)) continue;
      const Row y = r.product(state.data(), bias);
      const double* in = &xs[row * r.gates];
      for (size_t j = 0; j < size; ++j) {
        double* keep = kept.data() + row * r.keeps * size + j;
        switch (options.cell) {
          case RecurrenceCell::tanh:
            state[j] = std::tanh(in[j] + y[j]);
            break;
          case RecurrenceCell::relu: {
            const double sum = in[j] + y[j];
            state[j] = sum > 0.0 || std::isnan(sum) ? sum : 0.0;
            break;
          }
          case RecurrenceCell::gru: {
            const double reset = logistic(in[j] + y[j]);
            const double z = logistic(in[size + j] + y[size + j]);
            const double own = std::tanh(in[2 * size + j] + reset * y[2 * size + j]);
            keep[0] = reset, keep[size] = z, keep[2 * size] = own, keep[3 * size] = y[2 * size + j];
            state[j] = (1.0 - z) * own + z * state[j];
            break;
          }
          case RecurrenceCell::lstm: {
            const double i = logistic(in[j] + y[j]), f = logistic(in[size + j] + y[size + j]);
            const double g = std::tanh(in[2 * size + j] + y[2 * size + j]);
            const double o = logistic(in[3 * size + j] + y[3 * size + j]);
            cell[j] = f * cell[j] + i * g;
            keep[0] = i, keep[size] = f, keep[2 * size] = g, keep[3 * size] = o;
            keep[4 * size] = cell[j];
            state[j] = o * std::tanh(cell[j]);
            break;
          }
        }
      }
      std::copy(state.begin(), state.end(), &out[row * size]);
    }
    std::copy(state.begin(), state.end(), last.begin() + long(n * size));
    if (lstm) {
      std::copy(cell.begin(), cell.end(), last.begin() + long((r.count + n) * size));
    }
  }
  return {std::move(out), std::move(last), std::move(kept)};
}

}  // namespace

std::tuple<HostHandle, HostHandle, HostHandle> Ops::float_recurrence(
    Tensor x, Tensor h, const HostHandle* c, Tensor w, const HostHandle* b,
    const RecurrenceOptions& options) {
  const Recurrence r(h, c, w, options);
  const Row bias = b == nullptr ? Row() : read<double>(*b);
  const auto [out, last, kept] = forward(r, read<double>(x.get()), bias);
  const DType dtype = x->dtype();
  const auto n_rows = options.rows(), width = h->shape()[1];
  return {made(out, Shape{n_rows, width}, dtype, x),
          made(last, Shape{options.states(), h->shape()[0], width}, dtype, x),
          options.saves ? made(kept, Shape{n_rows, options.kept(), width}, statistics(dtype), x)
                        : made({}, Shape{0}, statistics(dtype), x)};
}

std::pair<HostHandle, HostHandle> Ops::float_recurrent_cell(Tensor x, Tensor h, const HostHandle* c,
                                                            Tensor w_ih, Tensor w_hh,
                                                            const HostHandle* b_ih,
                                                            const HostHandle* b_hh,
                                                            const RecurrenceOptions& options) {
  const Shape& shape = h->shape();
  const RecurrenceOptions one{.cell = options.cell, .saves = false, .batch_sizes = {shape[0]}};
  const Recurrence r(h, c, w_hh, one);
  const Row values = read<double>(x.get()), weights = read<double>(w_ih.get());
  const auto bias_of = [](const HostHandle* b) { return b == nullptr ? Row() : read<double>(*b); };
  const Row bias = bias_of(b_ih);
  const auto inputs = static_cast<size_t>(x->shape()[1]);
  Row gates(r.count * r.gates);
  for (size_t n = 0; n < r.count; ++n) {
    for (size_t j = 0; j < r.gates; ++j) {
      double sum = bias.empty() ? 0.0 : bias[j];
      for (size_t k = 0; k < inputs; ++k) sum += weights[j * inputs + k] * values[n * inputs + k];
      gates[n * r.gates + j] = sum;
    }
  }
  const Row last = forward(r, gates, bias_of(b_hh)).last;
  const auto states = static_cast<long>(r.count * r.size);
  const DType dtype = h->dtype();
  return {made(Row(last.begin(), last.begin() + states), shape, dtype, h),
          c == nullptr ? made({}, Shape{0}, dtype, h)
                       : made(Row(last.begin() + states, last.end()), shape, dtype, h)};
}

std::tuple<HostHandle, HostHandle, HostHandle> Ops::float_recurrence_backward(
    const HostHandle* g_out, const HostHandle* g_last, const HostHandle* g_kept, Tensor out,
    Tensor kept, Tensor h, const HostHandle* c, Tensor w, const RecurrenceOptions& options) {
  const Recurrence r(h, c, w, options);
  const size_t size = r.size;
  const auto values = [](const HostHandle* x) { return x == nullptr ? Row() : read<double>(*x); };
  const Row outs = read<double>(out.get()), keeps = read<double>(kept.get());
  const Row g_outs = values(g_out), g_lasts = values(g_last), g_keeps = values(g_kept);
  const auto of = [](const Row& x, size_t i) { return x.empty() ? 0.0 : x[i]; };
  Row g_x(r.rows * r.gates), g_y(r.rows * r.gates);
  Row g_first(static_cast<size_t>(options.states()) * r.count * size);
  for (size_t n = 0; n < r.count; ++n) {
    // The rows of this sequence, in the order in which they were computed.
    std::vector<size_t> rows;
    for (size_t at = 0; at < r.steps.size(); ++at) {
      size_t row = 0;
      if (row_of(r, at, n, &row)) rows.push_back(row);
    }
    Row dh(size), dc(size);
    for (size_t j = 0; j < size; ++j) {
      dh[j] = of(g_lasts, n * size + j);
      if (c != nullptr) dc[j] = of(g_lasts, (r.count + n) * size + j);
    }
    for (size_t k = rows.size(); k-- > 0;) {
      const size_t row = rows[k];
      Row to_h(size);
      for (size_t j = 0; j < size; ++j) {
        const double d = dh[j] + of(g_outs, row * size + j);
        double* gx = &g_x[row * r.gates + j];
        double* gy = &g_y[row * r.gates + j];
        const double* keep = keeps.data() + row * r.keeps * size + j;
        const auto own = [&](size_t i) { return of(g_keeps, (row * r.keeps + i) * size + j); };
        const double y = outs[row * size + j];
        switch (options.cell) {
          case RecurrenceCell::tanh:
            gx[0] = gy[0] = d * (1.0 - y * y);
            break;
          case RecurrenceCell::relu:
            gx[0] = gy[0] = y > 0.0 ? d : 0.0;
            break;
          case RecurrenceCell::gru: {
            const double before = k == 0 ? r.first_h[n * size + j] : outs[rows[k - 1] * size + j];
            const double reset = keep[0], z = keep[size], m = keep[2 * size], p = keep[3 * size];
            gx[2 * size] = (d * (1.0 - z) + own(2)) * (1.0 - m * m);
            gx[size] = gy[size] = (d * (before - m) + own(1)) * z * (1.0 - z);
            gx[0] = gy[0] = (gx[2 * size] * p + own(0)) * reset * (1.0 - reset);
            gy[2 * size] = gx[2 * size] * reset + own(3);
            to_h[j] = d * z;
            break;
          }
          case RecurrenceCell::lstm: {
            const double before =
                k == 0 ? r.first_c[n * size + j] : keeps[(rows[k - 1] * r.keeps + 4) * size + j];
            const double i = keep[0], f = keep[size], g = keep[2 * size], o = keep[3 * size];
            const double squashed = std::tanh(keep[4 * size]);
            const double d_c = dc[j] + d * o * (1.0 - squashed * squashed) + own(4);
            gx[0] = (d_c * g + own(0)) * i * (1.0 - i);
            gx[size] = (d_c * before + own(1)) * f * (1.0 - f);
            gx[2 * size] = (d_c * i + own(2)) * (1.0 - g * g);
            gx[3 * size] = (d * squashed + own(3)) * o * (1.0 - o);
            for (size_t gate = 0; gate < 4; ++gate) gy[gate * size] = gx[gate * size];
            dc[j] = d_c * f;
            break;
          }
        }
      }
      dh = to_h;
      for (size_t j = 0; j < r.gates; ++j) {
        const double g = g_y[row * r.gates + j];
        for (size_t i = 0; i < size; ++i) dh[i] += g * r.weights[j * size + i];
      }
    }
    std::copy(dh.begin(), dh.end(), g_first.begin() + long(n * size));
    if (c != nullptr) {
      std::copy(dc.begin(), dc.end(), g_first.begin() + long((r.count + n) * size));
    }
  }
  const DType dtype = h->dtype();
  const Shape gates{options.rows(), static_cast<int64_t>(r.gates)};
  return {made(g_x, gates, dtype, h), made(g_y, gates, dtype, h),
          made(g_first, Shape{options.states(), h->shape()[0], h->shape()[1]}, dtype, h)};
}

}  // namespace kiln
