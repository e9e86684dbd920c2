// Views that may have to copy, joined tensors, running sums, and quantized tensors: compositions.
#include "kiln/backend/gpu/gpu.h"

namespace kiln::gpu {

H reshape(const H& x, const Shape& shape) {
  if (H same = window::try_reshape(x, shape)) return same;
  return view(contiguous(x), shape, contiguous_strides(shape), 0);
}

H flip(const H& x, const Dims& dims) {
  Strides strides = x->strides();
  int64_t offset = x->offset();
  H out = empty(x->shape(), x->dtype(), x->device());
  if (x->numel() == 0) return out;
  for (int64_t dim : dims) {
    const auto d = static_cast<int>(dim);
    offset += (x->shape()[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  copy_elements(out, view(x, x->shape(), strides, offset));
  return out;
}

H cat(std::span<const H> parts, int dim) {
  Shape shape = parts[0]->shape();
  shape[dim] = 0;
  for (const H& part : parts) shape[dim] += part->shape()[dim];
  H out = empty(shape, parts[0]->dtype(), parts[0]->device());
  int64_t at = 0;
  for (const H& part : parts) {
    const int64_t size = part->shape()[dim];
    if (part->numel() > 0) copy_elements(window::slice(out, dim, {at, at + size, 1}), part);
    at += size;
  }
  return out;
}

H cumsum(const H& x, int dim) {
  // Floats with what each sum has lost (Kahan), but for the widest.
  const bool floats = kind_of(x->dtype()) == Kind::floating && x->dtype() != DType::f64;
  return scan(
      "A h = 0; A lost = 0;",
      floats ? Literal("A t = x0 - lost; A s = h + t; lost = s - s == (A)0 ? (s - h) - t : (A)0; "
                       "h = s; y = h;")
             : Literal("h = (A)((W)h + (W)x0); y = h;"),
      x, dim, x->dtype());
}

Body saturated_body(DType to) {
#define KILN_GPU_SATURATED(type, low, high, above)                                       \
  "y = x0 != x0 ? (" type ")0 : x0 >= (A)" above " ? (" type ")" high " : x0 <= (A)" low \
  " ? (" type ")" low " : (" type ")x0;"
  switch (to) {
    case DType::i64:
      return KILN_GPU_SATURATED("i64", "(-9223372036854775807 - 1)", "9223372036854775807",
                                "9223372036854775808.0");
    case DType::i32:
      return KILN_GPU_SATURATED("i32", "(-2147483647 - 1)", "2147483647", "2147483648.0");
    case DType::i16:
      return KILN_GPU_SATURATED("i32", "(-32768)", "32767", "32768.0");
    case DType::i8:
      return KILN_GPU_SATURATED("i32", "(-128)", "127", "128.0");
    default:
      return KILN_GPU_SATURATED("i32", "0", "255", "256.0");
  }
#undef KILN_GPU_SATURATED
}

// ---- Quantized tensors

namespace {

// What scales are divided and multiplied in.
DType wide_dtype(const H& x) { return x->gpu().properties().has_f64 ? DType::f64 : DType::f32; }

// [rows, cols] with zeros behind each row, up to whole blocks: [rows, blocks, block].
H in_blocks(const H& matrix, const QuantLayout& layout) {
  const int64_t width = layout.blocks * layout.block;
  H filled = matrix;
  if (width != layout.cols) {
    filled = Gpu::float_full({layout.rows, width}, 0.0, matrix->dtype(), matrix->device());
    copy_elements(window::slice(filled, 1, {0, layout.cols, 1}), matrix);
  }
  return reshape(filled, {layout.rows, layout.blocks, layout.block});
}

// The scale of each element, to be read in [rows, cols].
H spread_scales(const H& scales, const QuantLayout& layout) {
  if (layout.one_scale) return reshape(scales, {1, 1});
  const H each = window::expand(reshape(scales, {layout.rows, layout.blocks, 1}),
                                {layout.rows, layout.blocks, layout.block});
  const H all = reshape(each, {layout.rows, layout.blocks * layout.block});
  return window::slice(all, 1, {0, layout.cols, 1});
}

}  // namespace

Q quantize(const H& x, const QuantScheme& scheme) {
  const QuantLayout layout(x->shape(), scheme);
  const DType wide = wide_dtype(x);
  const auto limit = static_cast<double>(layout.limit);
  const H matrix = Gpu::float_cast(reshape(x, {layout.rows, layout.cols}), wide);
  H scales = Gpu::float_full(layout.scales_shape, scheme.scale, layout.scales_dtype, x->device());
  if (!(scheme.scale > 0.0)) {
    // The empty tensor has scale 1, as one of zeros.
    H largest = Gpu::float_full(layout.scales_shape, 0.0, wide, x->device());
    if (x->numel() != 0) {
      const H magnitudes = map("y = x0 - x0 == (A)0 ? fabs(x0) : (A)0;", wide, {matrix});
      const H rows =
          layout.one_scale ? reshape(magnitudes, {1, x->numel()}) : in_blocks(magnitudes, layout);
      largest =
          reshape(Gpu::float_amax(rows, {rows->shape().rank() - 1}, false), layout.scales_shape);
    }
    scales = Gpu::float_cast(Gpu::float_div_scalar(largest, limit), layout.scales_dtype);
  }
  scales = map("y = x0 > (A)0 ? x0 : (A)1;", layout.scales_dtype, {scales});
  const H each = spread_scales(Gpu::float_cast(scales, wide), layout);
  H values = map("A q = rint(x0 / x1); y = q != q ? (A)0 : q < -s0 ? -s0 : q > s0 ? s0 : q;", wide,
                 {matrix, each}, Numbers{limit});
  if (scheme.bits == 8) {
    values = reshape(Gpu::float_into_int(values, DType::i8), layout.values_shape);
  } else {
    const int64_t width = 2 * layout.bytes_per_row;
    const H halves = Gpu::int_full({layout.rows, width}, int64_t{0}, DType::i32, x->device());
    if (x->numel() != 0) {
      copy_elements(window::slice(halves, 1, {0, layout.cols, 1}),
                    Gpu::float_into_int(values, DType::i32));
    }
    const H low = window::slice(halves, 1, {0, width, 2});
    const H high = window::slice(halves, 1, {1, width, 2});
    values = reshape(map("y = (x0 & 15) | ((x1 & 15) << 4);", DType::u8, {low, high}),
                     layout.values_shape);
  }
  return make_handle<GpuQuantized>(values, scales, scheme, x->shape());
}

H dequantize(const Q& x, DType dtype) {
  const QuantLayout layout(x->shape(), x->scheme());
  const DType wide = wide_dtype(x->scales());
  const H scales = spread_scales(Gpu::float_cast(x->scales(), wide), layout);
  H values = reshape(x->values(), layout.values_shape);
  if (x->scheme().bits == 4) {
    const int64_t width = 2 * layout.bytes_per_row;
    values = reshape(values, {layout.rows, layout.bytes_per_row});
    const H halves = empty({layout.rows, width}, DType::i32, values->device());
    map_into(window::slice(halves, 1, {0, width, 2}), "i32 h = x0 & 15; y = h < 8 ? h : h - 16;",
             {values});
    map_into(window::slice(halves, 1, {1, width, 2}), "i32 h = x0 >> 4; y = h < 8 ? h : h - 16;",
             {values});
    values = window::slice(halves, 1, {0, layout.cols, 1});
  } else {
    values = reshape(values, {layout.rows, layout.cols});
  }
  const H product = map(wide == DType::f64 ? Body("y = (ACC(OUT))((f64)x0 * x1);")
                                           : Body("y = (ACC(OUT))((f32)x0 * x1);"),
                        dtype, {values, scales});
  return reshape(product, x->shape());
}

}  // namespace kiln::gpu
