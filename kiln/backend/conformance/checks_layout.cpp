// What a backend says of where its tensors lie, against what writing and reading them shows.
#include <functional>

#include "kiln/backend/conformance/checks.h"

namespace kiln::conformance {
namespace {

// from, from + 1, ... as a tensor's data.
TensorData numbered(const Shape& shape, DType dtype, int64_t from) {
  std::vector<int64_t> numbers(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = from + static_cast<int64_t>(i);
  return TensorData(numbers, shape).cast(dtype);
}

// Where each element of a tensor lies in its storage, in row-major order.
std::vector<int64_t> places(const Shape& shape, const kiln::Layout& layout) {
  std::vector<int64_t> out;
  Shape index = Shape::filled(shape.rank(), 0);
  for (int64_t n = shape.numel(); n > 0; --n) {
    int64_t at = layout.offset;
    for (int d = 0; d < shape.rank(); ++d) at += index[d] * (*layout.strides)[d];
    out.push_back(at);
    for (int d = shape.rank() - 1; d >= 0 && ++index[d] == shape[d]; --d) index[d] = 0;
  }
  return out;
}

class LayoutCheck {
 public:
  LayoutCheck(const Runner& runner, DType dtype) : runner_(runner), dtype_(dtype) {}

  std::vector<ConformanceFailure> run() {
    if (!declared()) return std::move(failures_);
    const auto each_base = [&](const char* op, const std::function<ErasedTensor(ErasedTensor)>& f) {
      step(op, [&] { lies_where_it_says(op, base(), f); });
      // A base that starts behind the begin of its memory, with rows that have gaps.
      step(op, [&] { lies_where_it_says(op, runner_.slice(wide(), 1, {1, 7, 1}), f); });
    };
    each_base("from_data", [](const ErasedTensor& x) { return x; });
    each_base("reshape", [&](const ErasedTensor& x) { return runner_.reshape(x, {2, 2, 6}); });
    each_base("reshape", [&](const ErasedTensor& x) { return runner_.reshape(x, {24}); });
    step("reshape", [&] { keeps_views(); });
    each_base("permute", [&](const ErasedTensor& x) { return runner_.permute(x, {1, 0}); });
    each_base("slice", [&](const ErasedTensor& x) { return runner_.slice(x, 0, {1, 3, 1}); });
    each_base("slice", [&](const ErasedTensor& x) { return runner_.slice(x, 1, {1, 6, 2}); });
    each_base("slice", [&](const ErasedTensor& x) { return runner_.slice(x, 1, {6, 6, 1}); });
    each_base("expand", [&](const ErasedTensor& x) {
      return runner_.expand(runner_.slice(x, 0, {2, 3, 1}), {3, 6});
    });
    each_base("contiguous", [&](const ErasedTensor& x) { return row_major(x); });
    each_base("as_strided", [&](const ErasedTensor& x) { return strided(x); });
    return std::move(failures_);
  }

 private:
  void step(const char* op, const std::function<void()>& check) {
    try {
      check();
    } catch (const std::exception& e) {
      fail(op, concat("threw: ", e.what()));
    }
  }

  void fail(const char* op, const std::string& what) {
    const char* kind = kind_of(dtype_) == Kind::floating  ? "float_"
                       : kind_of(dtype_) == Kind::integer ? "int_"
                                                          : "bool_";
    failures_.push_back({std::string(kind) + op, concat(dtype_, ": ", what)});
  }

  ErasedTensor base() const { return runner_.from_data(numbered({4, 6}, dtype_, 1)); }
  ErasedTensor wide() const { return runner_.from_data(numbered({4, 8}, dtype_, 1)); }

  kiln::Layout layout_of(const ErasedTensor& x) const { return runner_.views().layout(x); }

  // Whether there is something to check.
  bool declared() {
    const bool known = static_cast<bool>(layout_of(base()));
    const bool views = runner_.views().as_strided != nullptr;
    if (known != views) {
      fail("as_strided", concat("layout is ", known ? "known" : "not known", " and as_strided is ",
                                views ? "declared" : "not declared", "; expected both or none"));
    }
    return known && views;
  }

  ErasedTensor row_major(const ErasedTensor& x) {
    const ErasedTensor turned = runner_.permute(x, {1, 0});
    const BackendTable& table = runner_.table();
    const auto op = kind_of(dtype_) == Kind::floating  ? table.float_contiguous
                    : kind_of(dtype_) == Kind::integer ? table.int_contiguous
                                                       : table.bool_contiguous;
    ErasedTensor out = op(turned);
    if (!is_contiguous(out->shape(), *layout_of(out).strides)) {
      fail("contiguous", concat("the result's strides are ", *layout_of(out).strides,
                                "; expected row-major ones for shape ", out->shape()));
    }
    return out;
  }

  ErasedTensor strided(const ErasedTensor& x) {
    const kiln::Layout at = layout_of(x);
    const Strides steps{(*at.strides)[0] * 2, (*at.strides)[1], (*at.strides)[1]};
    const int64_t first = at.offset + (*at.strides)[1];
    ErasedTensor out = runner_.views().as_strided(x, {2, 2, 2}, steps, first);
    const kiln::Layout got = layout_of(out);
    if (got.storage != at.storage || got.offset != first || !(*got.strides == steps) ||
        !(out->shape() == Shape{2, 2, 2})) {
      fail("as_strided", concat("the view has shape ", out->shape(), ", strides ", *got.strides,
                                " and offset ", got.offset, "; expected [2, 2, 2], ", steps,
                                " and ", first, " in the same storage"));
    }
    return out;
  }

  // select, squeeze and unsqueeze are views of any tensor.
  void keeps_views() {
    const ErasedTensor x = runner_.permute(base(), {1, 0});
    for (const Shape& shape : {Shape{6, 1, 4}, Shape{1, 6, 4, 1}}) {
      const ErasedTensor wide = runner_.reshape(x, shape);
      const ErasedTensor again = runner_.reshape(wide, {6, 4});
      if (layout_of(wide).storage == layout_of(x).storage &&
          layout_of(again).storage == layout_of(x).storage) {
        continue;
      }
      fail("reshape", concat("permuted [6, 4] became a copy on its way to ", shape,
                             " and back; expected views where dims of size 1 come and go"));
    }
  }

  // All that the storage of x holds, as a tensor.
  ErasedTensor memory_of(const ErasedTensor& x) const {
    return runner_.views().as_strided(x, {layout_of(x).capacity}, {1}, 0);
  }

  void lies_where_it_says(const char* op, const ErasedTensor& x,
                          const std::function<ErasedTensor(ErasedTensor)>& of) {
    const ErasedTensor view = of(x);
    const kiln::Layout at = layout_of(view);
    if (!at) return fail(op, "the result has no layout; expected one of every tensor");
    const std::vector<int64_t> own = places(view->shape(), at);
    for (const int64_t place : own) {
      if (place < 0 || place >= at.capacity) {
        return fail(op, concat("an element lies at ", place, " in a storage of ", at.capacity));
      }
    }
    const TensorData memory = runner_.into_data(memory_of(view));
    if (!picks("reading", op, memory, own, runner_.into_data(view))) return;
    writes_show(op, x, view, own);
  }

  // Writes other values through the view: x's storage changes there and nowhere else, if it is the
  // view's.
  void writes_show(const char* op, const ErasedTensor& x, const ErasedTensor& view,
                   const std::vector<int64_t>& own) {
    const bool shared = layout_of(x).storage == layout_of(view).storage;
    const TensorData before = runner_.into_data(memory_of(x));
    const int64_t from = dtype_ == bool_ ? 0 : 50;
    const bool repeats = op == std::string("expand") || op == std::string("as_strided");
    const Shape written = repeats || dtype_ == bool_ ? Shape{} : view->shape();
    runner_.assign(view, runner_.from_data(numbered(written, dtype_, from)));
    const TensorData after = runner_.into_data(memory_of(x));
    std::vector<double> want = before.to_doubles();
    const std::vector<double> now = runner_.into_data(view).to_doubles();
    for (size_t i = 0; shared && i < own.size(); ++i) want[static_cast<size_t>(own[i])] = now[i];
    const std::vector<double> got = after.to_doubles();
    const std::vector<int64_t> seen = places(x->shape(), layout_of(x));
    for (const int64_t place : seen) {
      const auto i = static_cast<size_t>(place);
      if (got[i] == want[i]) continue;
      return fail(op, concat("the result was written; its layout says that it ",
                             shared ? "shares" : "does not share",
                             " the operand's storage, which then holds ", got[i], " at ", place,
                             "; expected ", want[i]));
    }
  }

  bool picks(const char* what, const char* op, const TensorData& memory,
             const std::vector<int64_t>& own, const TensorData& values) {
    const std::vector<double> all = memory.to_doubles();
    const std::vector<double> got = values.to_doubles();
    for (size_t i = 0; i < own.size(); ++i) {
      const double there = all[static_cast<size_t>(own[i])];
      if (there == got[i]) continue;
      fail(op, concat(what, ": the layout says that element ", i, " lies at ", own[i],
                      " of the storage, which holds ", there, "; expected ", got[i]));
      return false;
    }
    return true;
  }

  const Runner& runner_;
  DType dtype_;
  std::vector<ConformanceFailure> failures_;
};

}  // namespace

std::vector<ConformanceFailure> check_layouts(const Runner& runner, DType dtype) {
  return LayoutCheck(runner, dtype).run();
}

}  // namespace kiln::conformance
