// Reductions: kernels/reduce.k and arg.k.
#include <algorithm>

#include "kiln/backend/gpu/columns.h"
#include "kiln/backend/gpu/loops.h"
#include "kiln/core/error.h"

namespace kiln::gpu {

namespace {

struct ReductionArgument {
  int64_t outputs = 1;
  int64_t length = 1;
  int64_t chunk = 1;
  int64_t chunks = 1;
  int64_t offset = 0;
  int64_t outer_rank = 0;
  int64_t outer_size[kMaxRank] = {};
  int64_t outer_step[kMaxRank] = {};
  int64_t inner_rank = 0;
  int64_t inner_size[kMaxRank] = {};
  int64_t inner_step[kMaxRank] = {};
};

void add_dim(int64_t* rank, int64_t* sizes, int64_t* steps, int64_t size, int64_t step) {
  if (size == 1) return;
  if (*rank > 0 && steps[*rank - 1] == step * size) {
    sizes[*rank - 1] *= size;
    steps[*rank - 1] = step;
    return;
  }
  sizes[*rank] = size;
  steps[*rank] = step;
  ++*rank;
}

ReductionArgument reduction_of(const H& x, const Dims& dims) {
  ReductionArgument r;
  r.offset = x->offset();
  for (int d = 0; d < x->shape().rank(); ++d) {
    const bool inner = std::ranges::find(dims, d) != dims.end();
    (inner ? r.length : r.outputs) *= x->shape()[d];
    if (inner) {
      add_dim(&r.inner_rank, r.inner_size, r.inner_step, x->shape()[d], x->strides()[d]);
    } else {
      add_dim(&r.outer_rank, r.outer_size, r.outer_step, x->shape()[d], x->strides()[d]);
    }
  }
  for (auto [rank, sizes] :
       {std::pair{&r.outer_rank, r.outer_size}, {&r.inner_rank, r.inner_size}}) {
    if (*rank == 0) {
      *rank = 1;
      sizes[0] = 1;
    }
  }
  r.chunk = std::max<int64_t>(r.length, 1);
  return r;
}

// What is joined: 16-bit floats in f32, small integers in i32.
DType total_dtype(DType dtype) {
  switch (dtype) {
    case DType::f16:
    case DType::bf16:
      return DType::f32;
    case DType::i16:
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return DType::i32;
    default:
      return dtype;
  }
}

bool is_wide(const ReductionArgument& r) { return r.outputs * r.length >= (int64_t{1} << 31); }

constexpr int64_t kColumnLength = 64;  // rows this short are one work-item's
constexpr int64_t kRowLength = 1 << 14;
constexpr int64_t kShortestChunk = 1 << 11;
constexpr int64_t kFewOutputs = 256;
constexpr int64_t kManyGroups = 1024;  // as many as give a large GPU enough to do

// Elements that work-items of a group take at once: VECTOR of reduce.k.
int64_t vector_of(const ReductionArgument& r, DType dtype) {
  const int64_t count = pack_of(dtype);
  if (r.inner_rank != 1 || r.inner_step[0] != 1 || r.length < count ||
      r.length * r.outputs < kFewElements || r.offset % count != 0)
    return 1;
  for (int64_t d = 0; d < r.outer_rank; ++d) {
    if (r.outer_size[d] > 1 && r.outer_step[d] % count != 0) return 1;
  }
  return count;
}

void launch_reduction(const Reducer& reducer, const H& x, const ReductionArgument& r, const H& to,
                      DType total, Literal finish, bool columns, double number) {
  const int64_t vector = columns ? 1 : vector_of(r, x->dtype());
  const auto defines = [&] {
    std::string out =
        define("INDEX", index_type(is_wide(r))) + define("IN0", dialect_name(x->dtype())) +
        define("OUT", dialect_name(to->dtype())) +
        define("TOTAL", concat("ACC(", dialect_name(total), ")")) + arithmetic(total) +
        define("SCALAR", scalar_type(total)) + define("FIRST", reducer.first.get()) +
        define("EACH", reducer.each.get()) + define("JOINED", reducer.joined.get()) +
        define("FINISH", finish.get()) + define("VECTOR", std::to_string(vector));
    if (columns) out += define("COLUMNS", "1");
    return out;
  };
  const Kernel kernel{.file = "reduce",
                      .parts = {reducer.first, reducer.each, reducer.joined, finish},
                      .choice = choice(is_wide(r), x->dtype(), to->dtype(), total, columns, vector),
                      .defines = defines};
  const ScalarArgument s(total, number);
  const Argument arguments[] = {Argument::bytes(r), Argument::memory(to->storage()->memory()),
                                Argument::memory(x->storage()->memory()), s.argument()};
  const auto count = static_cast<size_t>(r.outputs * r.chunks);
  if (columns) {
    x->gpu().launch(kernel, count, arguments);
  } else {
    x->gpu().launch_groups(kernel, {count, 1, 1}, {kGroup, 1, 1}, arguments);
  }
}

// Whether the rows of a packed matrix are joined.
bool has_columns(const ReductionArgument& r, int64_t vector) {
  constexpr int64_t kFewRows = 64;
  return r.outer_rank == 1 && r.outer_step[0] == 1 && r.inner_rank == 1 &&
         r.inner_step[0] == r.outputs && r.length >= kFewRows && r.outputs % vector == 0 &&
         r.offset == 0 && r.length * r.outputs >= kFewElements;
}

// Joins the rows of each chunk of a packed matrix.
void launch_columns(const Reducer& reducer, const H& x, const Columns& columns, int64_t vector,
                    const H& to, DType total, Literal finish, double number) {
  const auto defines = [&] {
    return define("IN0", dialect_name(x->dtype())) + define("OUT", dialect_name(to->dtype())) +
           define("TOTAL", concat("ACC(", dialect_name(total), ")")) + arithmetic(total) +
           define("SCALAR", scalar_type(total)) + define("FIRST", reducer.first.get()) +
           define("EACH", reducer.each.get()) + define("JOINED", reducer.joined.get()) +
           define("FINISH", finish.get()) + define("VECTOR", std::to_string(vector));
  };
  const Kernel kernel{.file = "reduce_columns",
                      .parts = {reducer.first, reducer.each, reducer.joined, finish},
                      .choice = choice(x->dtype(), to->dtype(), total, vector),
                      .libraries = {"columns"},
                      .defines = defines};
  const ScalarArgument s(total, number);
  const Argument arguments[] = {columns.argument(), Argument::memory(to->storage()->memory()),
                                Argument::memory(x->storage()->memory()), s.argument()};
  x->gpu().launch_groups(kernel, columns.extent(), {kGroup, 1, 1}, arguments);
}

}  // namespace

H reduce(const Reducer& reducer, const H& x, const Dims& dims, bool keepdim, DType out,
         double number) {
  H to = empty(reduced_shape(x->shape(), dims, keepdim), out, x->device());
  if (to->numel() == 0) return to;
  ReductionArgument r = reduction_of(x, dims);
  const DType total = total_dtype(x->dtype());
  if (const int64_t vector = pack_of(x->dtype()); has_columns(r, vector)) {
    // Few rows: work-items that are many beside one another join them at once.
    constexpr int64_t kRowsAtOnce = 1024;
    constexpr int64_t kFewColumns = 4096;
    const auto join_at_once = [&](const Reducer& each, const H& rows, int64_t count) {
      constexpr int64_t kLanes = 8;
      const Columns columns(count, r.outputs, 1, 1, kLanes);
      launch_columns(each, rows, columns, 1, to, total, reducer.finish, number);
      return to;
    };
    if (r.length <= kRowsAtOnce && r.outputs <= kFewColumns) {
      return join_at_once(reducer, x, r.length);
    }
    const Columns columns(r.length, r.outputs, vector, kColumnGroups);
    if (columns.chunks == 1) {
      launch_columns(reducer, x, columns, vector, to, total, reducer.finish, number);
      return to;
    }
    const H parts = empty(Shape{columns.chunks, r.outputs}, total, x->device());
    launch_columns(reducer, x, columns, vector, parts, total, "a", number);
    return join_at_once({reducer.first, "x", reducer.joined, reducer.finish}, parts,
                        columns.chunks);
  }
  // Where neighbours among the rows are neighbours in memory, work-items side by side read side by
  // side.
  const bool side_by_side = r.outer_step[r.outer_rank - 1] == 1 && r.outputs >= kFewOutputs;
  const bool columns = r.length <= kColumnLength || side_by_side;
  int64_t longest = columns ? kColumnLength * 2 : kRowLength;
  while (!columns && longest > kShortestChunk &&
         r.outputs * ((r.length + longest - 1) / longest) < kManyGroups) {
    longest /= 2;
  }
  if (r.length <= longest || (r.length <= 2 * longest && !columns)) {
    launch_reduction(reducer, x, r, to, total, reducer.finish, columns, number);
    return to;
  }
  r.chunk = longest;
  r.chunks = (r.length + longest - 1) / longest;
  const H parts = empty(Shape{r.chunks, r.outputs}, total, x->device());
  launch_reduction(reducer, x, r, parts, total, "a", columns, number);
  const Reducer rest{reducer.first, "x", reducer.joined, reducer.finish};
  const H result = reduce(rest, parts, Dims{0}, false, out, number);
  return view(result, to->shape(), to->strides(), 0);
}

H arg_reduce(Literal better, const H& x, int dim, bool keepdim) {
  const Dims dims{dim};
  H to = empty(reduced_shape(x->shape(), dims, keepdim), DType::i64, x->device());
  if (to->numel() == 0) return to;
  const ReductionArgument r = reduction_of(x, dims);
  const auto defines = [&] {
    return define("INDEX", index_type(is_wide(r))) + define("IN0", dialect_name(x->dtype())) +
           define("BETTER", better.get()) + floats_flag(x->dtype());
  };
  const Kernel kernel{.file = "arg",
                      .parts = {better},
                      .choice = choice(is_wide(r), x->dtype()),
                      .defines = defines};
  const Argument arguments[] = {Argument::bytes(r), Argument::memory(to->storage()->memory()),
                                Argument::memory(x->storage()->memory())};
  x->gpu().launch_groups(kernel, {static_cast<size_t>(r.outputs), 1, 1}, {kGroup, 1, 1}, arguments);
  return to;
}

}  // namespace kiln::gpu
