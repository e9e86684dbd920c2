// Where a mask is true: kernels/nonzero.k.
#include "kiln/backend/gpu/loops.h"

namespace kiln::gpu {

namespace {

// Running sums of n numbers: of rows of them side by side, then of the rows' sums.
H running_count(const H& flat) {
  constexpr int64_t kRow = 128;
  const int64_t n = flat->shape()[0];
  const Literal body = "h = (A)((W)h + (W)x0); y = h;";
  if (n <= kRow) return scan("A h = 0;", body, flat, 0, DType::i64);
  const int64_t rows = (n + kRow - 1) / kRow;
  const H padded = empty(Shape{rows, kRow}, DType::i64, flat->device());
  fill_into(padded, int64_t{0});
  copy_elements(view(padded, Shape{n}, Strides{1}, 0), flat);
  const H within = scan("A h = 0;", body, padded, 1, DType::i64);
  const H sums = running_count(contiguous(view(within, Shape{rows}, Strides{kRow}, kRow - 1)));
  // Row r goes on from the sum of rows before it.
  const H later = view(within, Shape{rows - 1, kRow}, Strides{kRow, 1}, kRow);
  map_into(later, "y = (A)((W)x0 + (W)x1);",
           {later, view(sums, Shape{rows - 1, 1}, Strides{1, 1}, 0)});
  return view(within, Shape{n}, Strides{1}, 0);
}

}  // namespace

H nonzero(const H& mask) {
  const int64_t n = mask->numel();
  const int rank = mask->shape().rank();
  if (n == 0) return empty(Shape{0, rank}, DType::i64, mask->device());
  const H rows = contiguous(mask);
  const H flat = view(rows, Shape{n}, Strides{1}, rows->offset());
  const H ones = empty(Shape{n}, DType::i64, mask->device());
  map_into(ones, "y = x0 != 0;", {flat});
  const H counts = running_count(ones);
  int64_t found = 0;
  const auto last = static_cast<size_t>(counts->offset() + n - 1) * sizeof(int64_t);
  mask->gpu().read(*counts->storage(), last, &found, sizeof found, false);
  H to = empty(Shape{found, rank}, DType::i64, mask->device());
  if (to->numel() == 0) return to;
  Loop loop(Shape{n});
  loop.add(Strides{0}, 0);
  loop.add(flat);
  loop.add(counts);
  MapArgument shape;
  shape.rank = rank;
  for (int d = 0; d < rank; ++d) shape.size[d] = mask->shape()[d];
  const MapArgument m = loop.argument();
  const Argument arguments[] = {Argument::bytes(m), Argument::memory(to->storage()->memory()),
                                Argument::memory(flat->storage()->memory()),
                                Argument::memory(counts->storage()->memory()),
                                Argument::bytes(shape)};
  const auto defines = [&] { return define("INDEX", index_type(loop.is_wide())); };
  const Kernel kernel{.file = "nonzero", .choice = choice(loop.is_wide()), .defines = defines};
  mask->gpu().launch(kernel, static_cast<size_t>(n), arguments);
  return to;
}

}  // namespace kiln::gpu
