// Recurrences, forward.
#include "kiln/backend/cpu/recurrent/recurrence.h"

#include <optional>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/matmul/gemm.h"
#include "kiln/backend/cpu/operand.h"
#include "kiln/backend/cpu/recurrent/recurrence_kernels.h"

namespace kiln {
namespace {

using cpu::CellForward;
using cpu::Scratch;

template <class T>
struct ForwardArgs {
  const T *x, *h, *c, *w, *b;  // c and b may be null
  T *out, *last, *kept;        // kept may be null
  const Storage* weights;      // where w lies
  int64_t count, size;
};

// Rows of a step that a thread takes at least: a gate costs about as much as 16 simple elements.
int64_t rows_of_a_piece(int64_t gates) {
  return std::max<int64_t>(1, kGrain / 16 / std::max<int64_t>(gates, 1));
}

template <class T>
class Forward {
 public:
  Forward(const ForwardArgs<T>& args, const RecurrenceOptions& options)
      : a_(args),
        steps_(options.steps()),
        gates_(options.gates() * args.size),
        kept_(options.kept() * args.size),
        cell_(cpu::recurrence_kernels<T>().forward[static_cast<size_t>(options.cell)]) {}

  void run() const {
    const int64_t states = a_.count * a_.size;
    std::copy_n(a_.h, states, a_.last);
    if (a_.c != nullptr) std::copy_n(a_.c, states, a_.last + states);
    if (steps_.size() == 1) return one_step();
    const cpu::PackedWeights<T> weights(*a_.weights, a_.size, gates_, {a_.w, 1, a_.size});
    parallel_for(a_.count, cpu::sequences_of_a_piece(a_.count), [&](int64_t begin, int64_t end) {
      const Scratch<T> y((end - begin) * gates_);
      for (const RecurrenceStep& step : steps_) {
        const int64_t rows = std::min(end, step.rows) - begin;
        if (rows <= 0) continue;
        weights.multiply(rows, a_.last + begin * a_.size, y.get(), a_.b, false);
        run_cells(step, begin, rows, y.get());
      }
    });
  }

 private:
  void one_step() const {
    const RecurrenceStep& step = steps_[0];
    const Scratch<T> y(step.rows * gates_);
    cpu::Gemm<T> product;
    product.m = step.rows;
    product.n = gates_;
    product.k = a_.size;
    product.a = {a_.h, a_.size, 1};
    product.b = {a_.w, 1, a_.size};
    product.c = y.get();
    product.c_row = gates_;
    product.column_bias = a_.b;
    cpu::gemm(product);
    parallel_for(step.rows, rows_of_a_piece(gates_), [&](int64_t begin, int64_t end) {
      run_cells(step, begin, end - begin, y.get() + begin * gates_);
    });
  }

  // Sequences [begin, begin + rows) of a step. Their states are where the last ones are to be.
  void run_cells(const RecurrenceStep& step, int64_t begin, int64_t rows, const T* y) const {
    const int64_t row = step.begin + begin;
    CellForward<T> cell;
    cell.rows = rows;
    cell.size = a_.size;
    cell.x = a_.x + row * gates_;
    cell.y = y;
    cell.h = a_.last + begin * a_.size;
    if (a_.c != nullptr) cell.c = a_.last + (a_.count + begin) * a_.size;
    cell.out = a_.out + row * a_.size;
    if (a_.kept != nullptr) cell.kept = a_.kept + row * kept_;
    cell_(cell);
  }

  ForwardArgs<T> a_;
  std::vector<RecurrenceStep> steps_;
  int64_t gates_, kept_;
  void (*cell_)(const CellForward<T>&);
};

}  // namespace

std::tuple<HostHandle, HostHandle, HostHandle> CpuOps::float_recurrence(
    Arg<HostHandle> x, Arg<HostHandle> h, const HostHandle* c, Arg<HostHandle> w,
    const HostHandle* b, const RecurrenceOptions& options) {
  const DType dtype = x.get()->dtype();
  if (cpu::is_half(dtype)) {
    const cpu::OptionalOperand cs(c, cpu::widened), bs(b, cpu::widened);
    auto [out, last, kept] = float_recurrence(cpu::widened(x), cpu::widened(h), cs.get(),
                                              cpu::widened(w), bs.get(), options);
    return {cpu::narrowed(std::move(out), dtype), cpu::narrowed(std::move(last), dtype),
            std::move(kept)};
  }
  const HostHandle xs = cpu::contiguous(x.get()), hs = cpu::contiguous(h.get());
  const HostHandle ws = cpu::contiguous(w.get());
  const cpu::OptionalOperand cs(c, cpu::contiguous), bs(b, cpu::contiguous);
  const int64_t count = hs->shape()[0], size = hs->shape()[1], rows = options.rows();
  HostHandle out = host::empty(Shape{rows, size}, dtype, xs->device());
  HostHandle last = host::empty(Shape{options.states(), count, size}, dtype, xs->device());
  HostHandle kept = host::empty(options.saves ? Shape{rows, options.kept(), size} : Shape{0}, dtype,
                                xs->device());
  const auto run = [&]<class T>(T) {
    ForwardArgs<T> args;
    args.x = xs->data_as<const T>();
    args.h = hs->data_as<const T>();
    args.c = cs.data<T>();
    args.w = ws->data_as<const T>();
    args.weights = ws->storage().get();
    args.b = bs.data<T>();
    args.out = out->data_as<T>();
    args.last = last->data_as<T>();
    args.kept = options.saves && options.kept() > 0 ? kept->data_as<T>() : nullptr;
    args.count = count;
    args.size = size;
    Forward<T>(args, options).run();
  };
  if (dtype == DType::f64) {
    run(double());
  } else {
    run(float());
  }
  return {std::move(out), std::move(last), std::move(kept)};
}

// The products are those of float_linear, with weights that are kept.
std::pair<HostHandle, HostHandle> CpuOps::float_recurrent_cell(
    Arg<HostHandle> x, Arg<HostHandle> h, const HostHandle* c, Arg<HostHandle> w_ih,
    Arg<HostHandle> w_hh, const HostHandle* b_ih, const HostHandle* b_hh,
    const RecurrenceOptions& options) {
  const Shape& shape = h.get()->shape();
  const DType dtype = h.get()->dtype();
  const auto ready = [&](const HostHandle& t) {
    return cpu::contiguous(cpu::is_half(dtype) ? cpu::widened(t) : t);
  };
  const HostHandle xs = ready(float_linear(x.get(), w_ih.get(), b_ih));
  const HostHandle ys = ready(float_linear(h.get(), w_hh.get(), b_hh));
  const HostHandle hs = ready(h.get());
  const cpu::OptionalOperand cs(c, ready);
  HostHandle hidden = host::empty(shape, xs->dtype(), xs->device());
  HostHandle cells = host::empty(c != nullptr ? shape : Shape{0}, xs->dtype(), xs->device());
  const auto run = [&]<class T>(T) {
    const int64_t size = shape[1], gates = options.gates() * size;
    const auto cell_of = cpu::recurrence_kernels<T>().forward[static_cast<size_t>(options.cell)];
    parallel_for(shape[0], rows_of_a_piece(gates), [&](int64_t begin, int64_t end) {
      const int64_t from = begin * size, count = (end - begin) * size;
      CellForward<T> cell;
      cell.rows = end - begin;
      cell.size = size;
      cell.x = xs->data_as<const T>() + begin * gates;
      cell.y = ys->data_as<const T>() + begin * gates;
      cell.h = cell.out = hidden->data_as<T>() + from;
      std::copy_n(hs->data_as<const T>() + from, count, cell.h);
      if (c != nullptr) {
        cell.c = cells->data_as<T>() + from;
        std::copy_n(cs.data<T>() + from, count, cell.c);
      }
      cell_of(cell);
    });
  };
  if (xs->dtype() == DType::f64) {
    run(double());
  } else {
    run(float());
  }
  return {cpu::narrowed(std::move(hidden), dtype), cpu::narrowed(std::move(cells), dtype)};
}

}  // namespace kiln
