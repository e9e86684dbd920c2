// Recurrences, backward: from the last step that was computed to the first.
#include "kiln/backend/composed_recurrence.h"
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/matmul/gemm.h"
#include "kiln/backend/cpu/operand.h"
#include "kiln/backend/cpu/recurrent/recurrence.h"
#include "kiln/backend/cpu/recurrent/recurrence_kernels.h"

namespace kiln {
namespace {

using cpu::CellBackward;

template <class T>
struct BackwardArgs {
  const T *g_out, *g_last;          // may be null
  const T *out, *kept, *h, *c, *w;  // c may be null
  T *g_x, *g_y, *g_first;           // g_y is g_x but for GRU
  int64_t count, size;
  const Storage* weights;  // where w lies
};

template <class T>
class Backward {
 public:
  Backward(const BackwardArgs<T>& args, const RecurrenceOptions& options)
      : a_(args),
        options_(options),
        steps_(options.steps()),
        gates_(options.gates() * args.size),
        kept_(options.kept() * args.size),
        cell_(cpu::recurrence_kernels<T>().backward[static_cast<size_t>(options.cell)]) {}

  void run() const {
    const int64_t states = options_.states() * a_.count * a_.size;
    if (a_.g_last != nullptr) {
      std::copy_n(a_.g_last, states, a_.g_first);
    } else {
      std::fill_n(a_.g_first, states, T(0));
    }
    if (steps_.size() == 1) return one_step();
    const cpu::PackedWeights<T> weights(*a_.weights, gates_, a_.size, {a_.w, a_.size, 1});
    parallel_for(a_.count, cpu::sequences_of_a_piece(a_.count), [&](int64_t begin, int64_t end) {
      for (size_t at = steps_.size(); at-- > 0;) {
        const RecurrenceStep& step = steps_[at];
        const int64_t rows = std::min(end, step.rows) - begin;
        if (rows <= 0) continue;
        run_cells(at, begin, rows);
        weights.multiply(rows, a_.g_y + (step.begin + begin) * gates_, a_.g_first + begin * a_.size,
                         nullptr, is_gru());
      }
    });
  }

 private:
  bool is_gru() const { return options_.cell == RecurrenceCell::gru; }

  void one_step() const {
    const int64_t rows = steps_[0].rows;
    const int64_t grain = std::max<int64_t>(1, kGrain / 8 / std::max<int64_t>(gates_, 1));
    parallel_for(rows, grain,
                 [&](int64_t begin, int64_t end) { run_cells(0, begin, end - begin); });
    cpu::Gemm<T> product;
    product.m = rows;
    product.n = a_.size;
    product.k = gates_;
    product.a = {a_.g_y, gates_, 1};
    product.b = {a_.w, a_.size, 1};
    product.c = a_.g_first;
    product.c_row = a_.size;
    product.accumulate = is_gru();
    cpu::gemm(product);
  }

  // Sequences [begin, begin + rows) of a step. The state before comes from the step that was
  // computed before, or is the first one.
  void run_cells(size_t at, int64_t begin, int64_t rows) const {
    int64_t known = 0;
    if (at > 0) known = std::clamp<int64_t>(steps_[at - 1].rows - begin, 0, rows);
    const T* first = a_.c != nullptr ? a_.c : a_.h;
    if (known > 0) {
      const int64_t row = steps_[at - 1].begin + begin;
      if (a_.c != nullptr) {
        run_cells(at, begin, known, a_.kept + row * kept_ + 4 * a_.size, kept_);
      } else {
        run_cells(at, begin, known, a_.out + row * a_.size, a_.size);
      }
    }
    if (known < rows) {
      begin += known;
      run_cells(at, begin, rows - known, first + begin * a_.size, a_.size);
    }
  }

  void run_cells(size_t at, int64_t begin, int64_t rows, const T* before,
                 int64_t before_row) const {
    const int64_t row = steps_[at].begin + begin;
    CellBackward<T> cell;
    cell.rows = rows;
    cell.size = a_.size;
    if (a_.g_out != nullptr) cell.g_out = a_.g_out + row * a_.size;
    cell.out = a_.out + row * a_.size;
    cell.kept = a_.kept + row * kept_;
    cell.before = before;
    cell.before_row = before_row;
    cell.dh = a_.g_first + begin * a_.size;
    if (a_.c != nullptr) cell.dc = a_.g_first + (a_.count + begin) * a_.size;
    cell.g_x = a_.g_x + row * gates_;
    cell.g_y = a_.g_y + row * gates_;
    cell_(cell);
  }

  BackwardArgs<T> a_;
  const RecurrenceOptions& options_;
  std::vector<RecurrenceStep> steps_;
  int64_t gates_, kept_;
  void (*cell_)(const CellBackward<T>&);
};

}  // namespace

std::tuple<HostHandle, HostHandle, HostHandle> CpuOps::float_recurrence_backward(
    const HostHandle* g_out, const HostHandle* g_last, const HostHandle* g_kept,
    Arg<HostHandle> out, Arg<HostHandle> kept, Arg<HostHandle> h, const HostHandle* c,
    Arg<HostHandle> w, const RecurrenceOptions& options) {
  // Only a gradient of a gradient has one.
  if (g_kept != nullptr) {
    const auto [gx, gy, first] = defaults::ComposedRecurrence<Cpu>::backward(
        g_out, g_last, g_kept, out.get(), kept.get(), h.get(), c, w.get(), options);
    return {cpu::contiguous(gx), cpu::contiguous(gy), cpu::contiguous(first)};
  }
  const DType dtype = h.get()->dtype();
  if (cpu::is_half(dtype)) {
    const cpu::OptionalOperand gs(g_out, cpu::widened), ls(g_last, cpu::widened);
    const cpu::OptionalOperand cs(c, cpu::widened);
    auto [gx, gy, first] = float_recurrence_backward(gs.get(), ls.get(), nullptr, cpu::widened(out),
                                                     cpu::widened(kept), cpu::widened(h), cs.get(),
                                                     cpu::widened(w), options);
    return {cpu::narrowed(std::move(gx), dtype), cpu::narrowed(std::move(gy), dtype),
            cpu::narrowed(std::move(first), dtype)};
  }
  const cpu::OptionalOperand gs(g_out, cpu::contiguous), ls(g_last, cpu::contiguous);
  const cpu::OptionalOperand cs(c, cpu::contiguous);
  const HostHandle os = cpu::contiguous(out.get()), ks = cpu::contiguous(kept.get());
  const HostHandle hs = cpu::contiguous(h.get()), ws = cpu::contiguous(w.get());
  const int64_t count = hs->shape()[0], size = hs->shape()[1];
  const Shape gates{options.rows(), options.gates() * size};
  HostHandle gx = host::empty(gates, dtype, hs->device());
  HostHandle gy =
      options.cell == RecurrenceCell::gru ? host::empty(gates, dtype, hs->device()) : gx;
  HostHandle first = host::empty(Shape{options.states(), count, size}, dtype, hs->device());
  const auto run = [&]<class T>(T) {
    BackwardArgs<T> args;
    args.g_out = gs.data<T>();
    args.g_last = ls.data<T>();
    args.out = os->data_as<const T>();
    args.kept = ks->data_as<const T>();
    args.h = hs->data_as<const T>();
    args.c = cs.data<T>();
    args.w = ws->data_as<const T>();
    args.weights = ws->storage().get();
    args.g_x = gx->data_as<T>();
    args.g_y = gy->data_as<T>();
    args.g_first = first->data_as<T>();
    args.count = count;
    args.size = size;
    Backward<T>(args, options).run();
  };
  if (dtype == DType::f64) {
    run(double());
  } else {
    run(float());
  }
  return {std::move(gx), std::move(gy), std::move(first)};
}

}  // namespace kiln
