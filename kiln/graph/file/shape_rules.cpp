// Rules of rows that make, move, cut and index.
#include "kiln/graph/file/rules.h"

namespace kiln::graph {

namespace {

void any_shape(const RowCheck&) {}

void check_shape_argument(const RowCheck& row) { checked_numel(row.get<Shape>(0)); }
void check_arange(const RowCheck& row) { checked_numel({row.get<int64_t>(2)}); }

template <Kind kind>
void check_to_dtype(const RowCheck& row) {
  const DType to = row.get<DType>(1);
  row.require(kind_of(to) == kind && to != DType::c64 && to != DType::c128,
              "a dtype of the kind that the row gives");
}
template <Kind kind, size_t at>
void check_made(const RowCheck& row) {
  check_shape_argument(row);
  const DType to = row.get<DType>(at);
  row.require(kind_of(to) == kind && to != DType::c64 && to != DType::c128,
              "a dtype of the kind that the row gives");
}
template <Kind kind>
void check_arange_of(const RowCheck& row) {
  check_arange(row);
  const DType to = row.get<DType>(3);
  row.require(kind_of(to) == kind && to != DType::c64 && to != DType::c128,
              "a dtype of the kind that the row gives");
}

void check_reshape(const RowCheck& row) {
  row.require(checked_numel(row.get<Shape>(1)) == row.shape(0).numel(),
              "a shape of as many elements");
}
void check_permute(const RowCheck& row) {
  row.require_dims(0, 1);
  row.require(row.get<Shape>(1).rank() == row.rank(0), "each dim once");
}
void check_expand(const RowCheck& row) {
  const Shape& to = row.get<Shape>(1);
  checked_numel(to);
  const int added = to.rank() - row.rank(0);
  bool fits = added >= 0;
  for (int d = 0; fits && d < row.rank(0); ++d) {
    fits = row.shape(0)[d] == to[d + added] || row.shape(0)[d] == 1;
  }
  row.require(fits, "a shape that the operand expands to");
}
void check_slice(const RowCheck& row) {
  row.require_dim(0, 1);
  const Range& range = row.get<Range>(2);
  row.require(range.start >= 0 && range.start <= range.end && range.step >= 1 &&
                  range.end <= row.shape(0)[row.get<int>(1)],
              "a range within the dim");
}
void check_flip(const RowCheck& row) { row.require_dims(0, 1); }
void check_assign(const RowCheck& row) {
  row.require_same_dtype(0, 1);
  row.require(broadcast_shapes("assign", row.shape(0), row.shape(1)) == row.shape(0),
              "values that expand to what they are written to");
}

void check_index(const RowCheck& row, size_t index) {
  row.require(row.dtype(index) == DType::i64, "indices of dtype int64");
}
void check_gather(const RowCheck& row) {
  row.require_dim(0, 1);
  check_index(row, 2);
  bool fits = row.rank(2) == row.rank(0);
  for (int d = 0; fits && d < row.rank(0); ++d) {
    fits = d == row.get<int>(1) || row.shape(2)[d] <= row.shape(0)[d];
  }
  row.require(fits, "an index that is no larger than the operand beside the dim");
}
void check_scatter(const RowCheck& row) {
  check_gather(row);
  row.require_same_dtype(0, 3);
  row.require_shape(3, row.shape(2), "values in the shape of the index");
}
void check_one_index(const RowCheck& row) {
  row.require_dim(0, 1);
  check_index(row, 2);
  row.require(row.rank(2) == 1, "an index of one dim");
}
void check_index_add(const RowCheck& row) {
  check_one_index(row);
  row.require_same_dtype(0, 3);
  Shape rows = row.shape(0);
  rows[row.get<int>(1)] = row.shape(2)[0];
  row.require_shape(3, rows, "a row for each index");
}
void check_bag_sum(const RowCheck& row) {
  check_index(row, 1);
  check_index(row, 2);
  row.require(row.rank(0) == 2 && row.rank(1) == 1 && row.rank(2) == 1 && row.shape(2)[0] >= 1,
              "a table, rows and where bags start");
}
void check_csr(const RowCheck& row) {
  check_index(row, 0);
  check_index(row, 1);
  row.require_same_dtype(2, 3);
  row.require(row.rank(0) == 1 && row.rank(1) == 1 && row.rank(3) == 2 && row.shape(0)[0] >= 1,
              "where rows start, columns and matrices");
}
void check_csr_matmul(const RowCheck& row) {
  check_csr(row);
  const int64_t columns = row.get<int64_t>(4);
  row.require_shape(2, row.shape(1), "a value for each column");
  row.require(columns >= 0 && row.shape(3)[0] == (row.get<bool>(5) ? row.shape(0)[0] - 1 : columns),
              "a dense matrix with a row for each that the sparse one meets");
  checked_numel({row.get<bool>(5) ? columns : row.shape(0)[0] - 1, row.shape(3)[1]});
}
void check_csr_sampled_matmul(const RowCheck& row) {
  check_csr(row);
  row.require(row.rank(2) == 2 && row.shape(2)[0] == row.shape(0)[0] - 1 &&
                  row.shape(2)[1] == row.shape(3)[1],
              "matrices of as many columns, the first with a row for each of the sparse one");
}
void check_cat(const RowCheck& row) {
  const auto& parts = row.operands(0);
  row.require(!parts.empty(), "at least one part");
  const Value& first = row.of(parts[0]);
  const int dim = row.get<int>(1);
  bool fits = dim >= 0 && dim < first.shape.rank();
  int64_t along = 0;
  for (size_t i = 0; fits && i < parts.size(); ++i) {
    const Value& part = row.of(parts[i]);
    fits = part.dtype == first.dtype && part.shape.rank() == first.shape.rank();
    for (int d = 0; fits && d < first.shape.rank(); ++d) {
      fits = d == dim || part.shape[d] == first.shape[d];
    }
    if (fits) along += part.shape[dim];
  }
  row.require(fits, "parts of one dtype whose shapes differ in the dim alone");
  Shape out = first.shape;
  out[dim] = along;
  checked_numel(out);
}
void check_where(const RowCheck& row) {
  row.require_same_dtype(0, 2);
  checked_numel(broadcast_shapes(
      "mask_where", broadcast_shapes("mask_where", row.shape(0), row.shape(1)), row.shape(2)));
}
void check_mask_fill(const RowCheck& row) {
  checked_numel(broadcast_shapes("mask_fill", row.shape(0), row.shape(1)));
}
void check_pad(const RowCheck& row) {
  const Shape &before = row.get<Shape>(1), &behind = row.get<Shape>(2);
  Shape out = row.shape(0);
  constexpr int64_t kWidest = int64_t{1} << 40;
  bool fits = before.rank() == out.rank() && behind.rank() == out.rank();
  for (int d = 0; fits && d < out.rank(); ++d) {
    fits = before[d] >= 0 && behind[d] >= 0 && before[d] <= kWidest && behind[d] <= kWidest;
    if (fits) out[d] += before[d] + behind[d];
  }
  row.require(fits, "pads for each dim of the operand");
  checked_numel(out);
}
void check_continued(const RowCheck& row) {
  const Shape &before = row.get<Shape>(1), &behind = row.get<Shape>(2);
  const EdgeMode mode = row.get<EdgeMode>(3);
  const Shape& x = row.shape(0);
  bool fits = before.rank() == x.rank() && behind.rank() == x.rank();
  Shape out = x;
  for (int d = 0; fits && d < x.rank(); ++d) {
    const int64_t most = mode == EdgeMode::reflect    ? x[d] - 1
                         : mode == EdgeMode::circular ? x[d]
                         : x[d] > 0                   ? int64_t{1} << 40
                                                      : 0;
    fits = before[d] >= 0 && behind[d] >= 0 &&
           ((before[d] == 0 && behind[d] == 0) || (before[d] <= most && behind[d] <= most));
    if (fits) out[d] += before[d] + behind[d];
  }
  row.require(fits, "pads that the operand's dims continue to");
  checked_numel(out);
}

constexpr Rule kShapeRules[] = {{kRow_float_empty, check_made<Kind::floating, 1>},
                                {kRow_int_empty, check_made<Kind::integer, 1>},
                                {kRow_bool_empty, check_shape_argument},
                                {kRow_float_full, check_made<Kind::floating, 2>},
                                {kRow_int_full, check_made<Kind::integer, 2>},
                                {kRow_bool_full, check_shape_argument},
                                {kRow_float_arange, check_arange_of<Kind::floating>},
                                {kRow_int_arange, check_arange_of<Kind::integer>},
                                {kRow_float_cast, check_to_dtype<Kind::floating>},
                                {kRow_int_cast, check_to_dtype<Kind::integer>},
                                {kRow_float_into_int, check_to_dtype<Kind::integer>},
                                {kRow_bool_into_int, check_to_dtype<Kind::integer>},
                                {kRow_int_into_float, check_to_dtype<Kind::floating>},
                                {kRow_bool_into_float, check_to_dtype<Kind::floating>},
                                {kRow_float_into_bool, any_shape},
                                {kRow_int_into_bool, any_shape},
                                {kRow_float_scatter_add, check_scatter},
                                {kRow_int_scatter_add, check_scatter},
                                {kRow_float_scatter_reduce, check_scatter},
                                {kRow_int_scatter_reduce, check_scatter},
                                {kRow_float_index_add, check_index_add},
                                {kRow_int_index_add, check_index_add},
                                {kRow_float_bag_sum, check_bag_sum},
                                {kRow_float_csr_matmul, check_csr_matmul},
                                {kRow_float_csr_sampled_matmul, check_csr_sampled_matmul},
#define KILN_SHAPE_RULES(kind)                                                                    \
  {kRow_##kind##_reshape, check_reshape}, {kRow_##kind##_permute, check_permute},                 \
      {kRow_##kind##_expand, check_expand}, {kRow_##kind##_slice, check_slice},                   \
      {kRow_##kind##_flip, check_flip}, {kRow_##kind##_contiguous, any_shape},                    \
      {kRow_##kind##_assign, check_assign}, {kRow_##kind##_fill, any_shape},                      \
      {kRow_##kind##_gather, check_gather}, {kRow_##kind##_scatter, check_scatter},               \
      {kRow_##kind##_index_select, check_one_index}, {kRow_##kind##_index_copy, check_index_add}, \
      {kRow_##kind##_cat, check_cat}, {kRow_##kind##_mask_where, check_where},                    \
      {kRow_##kind##_mask_fill, check_mask_fill}, {kRow_##kind##_pad_edges, check_continued},     \
      {kRow_##kind##_pad, check_pad}, {kRow_##kind##_to_device, any_shape},
                                // clang-format off
    KILN_SHAPE_RULES(float)
    KILN_SHAPE_RULES(int)
    KILN_SHAPE_RULES(bool)
// clang-format on
#undef KILN_SHAPE_RULES
};

}  // namespace

std::span<const Rule> shape_rules() { return kShapeRules; }

}  // namespace kiln::graph
