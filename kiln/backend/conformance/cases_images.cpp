// Images: the largest elements of windows, reading at points, other sizes, edges.
#include <cmath>

#include "kiln/backend/conformance/cases.h"

namespace kiln::conformance {
namespace {

void add_window_argmax(CaseList& list, DType dtype) {
  struct Form {
    Shape x;
    std::vector<int64_t> starts;
    int64_t rows;
    std::vector<int64_t> lengths;
    Shape out, longest;
  };
  const Form forms[] = {
      // Windows that overlap, of unequal lengths, in all planes alike.
      {{2, 3, 1, 5, 7}, {0, 0, 1, 3, 0, 2, 4}, 1, {1, 2, 3, 2, 3, 3, 3}, {1, 3, 3}, {1, 3, 3}},
      // In every plane others.
      {{1, 2, 3, 4, 4},
       {0, 1, 0, 2, 1, 2, 0, 1, 1, 2, 0, 2},
       2,
       {2, 2, 2, 2, 2, 2},
       {2, 2, 2},
       {2, 2, 2}},
      // Rows that fill vectors.
      {{1, 2, 1, 6, 40}, {0, 0, 3, 0, 20}, 1, {1, 3, 3, 20, 20}, {1, 2, 2}, {1, 3, 20}},
      {{0, 2, 1, 2, 2}, {0, 0, 0}, 1, {1, 2, 2}, {1, 1, 1}, {1, 2, 2}},
  };
  for (const auto& [x, starts, rows, lengths, out, longest] : forms) {
    const auto columns = static_cast<int64_t>(lengths.size());
    for (const bool ties : {false, true}) {
      list.add("float_window_argmax",
               {ties ? list.integers(x, dtype, -2, 2) : list.uniform(x, dtype),
                int_values(starts, Shape{rows, columns}), int_values(lengths), out, longest})
          .elementwise = false;
    }
  }
  // One NaN wins, and -inf is found where there is nothing else.
  list.add("float_window_argmax",
           {values({1, kNan, kInf, 2, -kInf, -kInf, -kInf, -kInf}, {1, 2, 1, 2, 2}, dtype),
            int_values({0, 0, 0}, Shape{1, 3}), int_values({1, 2, 2}), Shape{1, 1, 1},
            Shape{1, 2, 2}})
      .elementwise = false;
}

void add_grids(CaseList& list, DType dtype) {
  struct Form {
    Shape x;
    int64_t points;
  };
  const Form forms[] = {{{2, 3, 5, 6}, 7},   {{1, 2, 1, 4}, 5}, {{1, 2, 3, 4, 5}, 6},
                        {{2, 9, 8, 7}, 150}, {{1, 1, 1, 1}, 3}, {{0, 2, 3, 3}, 4}};
  for (const auto& [x, count] : forms) {
    const int64_t spatial = x.rank() - 2;
    for (const GridOutside outside :
         {GridOutside::zeros, GridOutside::border, GridOutside::reflection}) {
      for (const GridBetween between :
           {GridBetween::nearest, GridBetween::linear, GridBetween::cubic}) {
        if (between == GridBetween::cubic && spatial == 3) continue;
        for (const bool align_corners : {false, true}) {
          const GridOptions options{outside, between, align_corners, true};
          const Shape of_points{x[0], count, spatial};
          const Shape out{x[0], x[1], count};
          const auto points = [&] { return list.uniform(of_points, dtype, -1.4, 1.4); };
          // Sums over channels of differences, times the size of the image.
          const auto add = [&](const char* op, std::vector<Argument> arguments) {
            list.add(op, std::move(arguments), {64, 4096}).elementwise = false;
          };
          add("float_grid_sample", {list.uniform(x, dtype), points(), options});
          add("float_grid_sample_input_grad", {list.uniform(out, dtype), points(), x, options});
          add("float_grid_sample_points_grad",
              {list.uniform(out, dtype), list.uniform(x, dtype), points(), options});
        }
      }
    }
  }
  // Points in elements, and nowhere.
  const GridOptions plain{GridOutside::zeros, GridBetween::linear, false, false};
  list.add("float_grid_sample",
           {list.uniform({1, 2, 4, 5}, dtype),
            values({0.25, 1.5, -0.5, 2.25, 4.75, 3.5, kNan, 1.0, 100.0, 0.0}, {1, 5, 2}, dtype),
            plain},
           {64, 256})
      .elementwise = false;
}

// Every output the mean of two neighbours, and one of nothing.
LineMap means_of(int64_t in) {
  LineMap map(in);
  for (int64_t o = 0; o + 1 < in; ++o) {
    map.begin_output();
    map.put(o, 0.5);
    map.put(o + 1, 0.5);
  }
  map.begin_output();
  return map;
}
// Many taps for each of a few outputs.
LineMap sums_of(int64_t in) {
  LineMap map(in);
  for (int64_t o = 0; o < 3; ++o) {
    map.begin_output();
    for (int64_t k = 0; k < in; ++k) map.put(k, 1.0 / static_cast<double>(k + o + 1));
  }
  return map;
}
LineMap doubled(int64_t in) {
  LineMap map(in);
  for (int64_t o = 0; o < 2 * in; ++o) {
    map.begin_output();
    map.put(o / 2, 1.0);
  }
  return map;
}

DimMaps maps_of(std::vector<DimMap> maps) {
  return std::make_shared<const std::vector<DimMap>>(std::move(maps));
}

void add_resampling(CaseList& list, DType dtype) {
  const auto add = [&](const Shape& x, const DimMaps& maps) {
    const bool is_float = kind_of(dtype) == Kind::floating;
    list.add(is_float ? "float_resample" : "int_resample", {list.uniform(x, dtype, -9, 9), maps},
             {16, 64})
        .elementwise = false;
  };
  add({2, 3, 5, 6}, maps_of({{2, doubled(5)}, {3, doubled(6)}}));
  add({2, 3, 37}, maps_of({{2, doubled(37)}}));
  if (dtype != f32 && dtype != f64) return;
  add({2, 3, 5, 6}, maps_of({{3, means_of(6)}, {2, sums_of(5)}}));
  add({2, 3, 5, 6}, maps_of({{2, means_of(5)}, {3, doubled(6)}}));
  add({1, 2, 3, 4, 50}, maps_of({{4, sums_of(50)}, {3, means_of(4)}, {2, doubled(3)}}));
  add({3, 40, 2}, maps_of({{1, sums_of(40)}}));
  add({0, 2, 4, 4}, maps_of({{3, means_of(4)}}));
}

void add_pads(CaseList& list, DType dtype) {
  struct Form {
    Shape x, before, behind;
  };
  const Form forms[] = {{{5}, {2}, {3}},
                        {{2, 3, 4}, {0, 0, 1}, {0, 0, 3}},
                        {{3, 4, 2}, {2, 0, 0}, {1, 3, 0}},
                        {{2, 4, 5}, {1, 2, 3}, {0, 1, 2}},
                        {{2, 30}, {0, 20}, {0, 25}},
                        {{0, 4}, {0, 2}, {0, 1}}};
  const Kind kind = kind_of(dtype);
  for (const auto& [x, before, behind] : forms) {
    for (const EdgeMode mode : {EdgeMode::reflect, EdgeMode::replicate, EdgeMode::circular}) {
      const char* op = kind == Kind::floating  ? "float_pad_edges"
                       : kind == Kind::integer ? "int_pad_edges"
                                               : "bool_pad_edges";
      const auto operand = [&](const Shape& shape) {
        return kind == Kind::boolean ? list.booleans(shape) : list.uniform(shape, dtype);
      };
      list.add(op, {operand(x), before, behind, mode});
      if (kind != Kind::floating) continue;
      Shape padded = x;
      for (int d = 0; d < x.rank(); ++d) padded[d] += before[d] + behind[d];
      list.add("float_pad_edges_backward", {operand(padded), before, behind, mode}, {8, 32})
          .elementwise = false;
    }
  }
}

}  // namespace

void add_image_cases(CaseList& list) {
  for (const DType dtype : list.floats) {
    add_window_argmax(list, dtype);
    add_resampling(list, dtype);
    add_pads(list, dtype);
    if (dtype == f32 || dtype == f64) add_grids(list, dtype);
  }
  for (const DType dtype : list.ints) {
    add_resampling(list, dtype);
    add_pads(list, dtype);
  }
  add_pads(list, bool_);
}

}  // namespace kiln::conformance
