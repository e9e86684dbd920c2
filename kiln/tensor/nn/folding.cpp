#include "kiln/tensor/nn/folding.h"

#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/memory_check.h"
#include "kiln/tensor/nn/functional_support.h"

namespace kiln::functional {

using namespace detail;

namespace {

// Where windows of this kind lie in a plane of H x W.
struct Windows {
  const char* op;
  Triple kernel, dilation, padding, stride;
  IntPair count{};

  Windows(const char* name, const Sizes& kernels, const Sizes& dilations, const Sizes& paddings,
          const Sizes& strides, int64_t height, int64_t width)
      : op(name),
        kernel(triple_of(name, "kernel_size", kernels, 2, 1, 1)),
        dilation(triple_of(name, "dilation", dilations, 2, 1, 1)),
        padding(triple_of(name, "padding", paddings, 2, 0, 0)),
        stride(triple_of(name, "stride", strides, 2, 1, 1)) {
    const IntPair size{height, width};
    for (size_t i = 0; i < 2; ++i) {
      count[i] =
          conv_output_size(size[i], kernel[i + 1], stride[i + 1], padding[i + 1], dilation[i + 1]);
      if (count[i] < 1) {
        throw_error<ShapeError>(
            op, ": the window is larger than the padded plane; got a plane of [", height, ", ",
            width, "], kernel_size ", text_of(kernel, 2), ", dilation ", text_of(dilation, 2),
            ", padding ", text_of(padding, 2));
      }
    }
    // What is listed and joined below, one by one.
    check_memory(op, Shape{kernel[1], kernel[2], count[0], count[1]}, i64);
    check_memory(op, Shape{height + 2 * padding[1], width + 2 * padding[2]}, f32);
  }
  int64_t area() const { return kernel[1] * kernel[2]; }
};

}  // namespace

Tensor unfold(const Tensor& input, const Sizes& kernel_size, const Sizes& dilation,
              const Sizes& padding, const Sizes& stride) {
  const Planes planes("unfold", input, 2);
  const Shape s = planes.x.shape();
  const Windows w("unfold", kernel_size, dilation, padding, stride, s[3], s[4]);
  Tensor x = planes.x.reshape({s[0], s[1], s[3], s[4]});
  x = padded_dim(x, 2, w.padding[1], w.padding[1]);
  x = padded_dim(x, 3, w.padding[2], w.padding[2]);
  std::vector<Tensor> met;
  for (int64_t i = 0; i < w.kernel[1]; ++i) {
    const int64_t top = i * w.dilation[1];
    const Tensor rows = x.slice(2, top, top + (w.count[0] - 1) * w.stride[1] + 1, w.stride[1]);
    for (int64_t j = 0; j < w.kernel[2]; ++j) {
      const int64_t left = j * w.dilation[2];
      met.push_back(rows.slice(3, left, left + (w.count[1] - 1) * w.stride[2] + 1, w.stride[2]));
    }
  }
  const Tensor out = stack(std::span<const Tensor>(met), 2)
                         .reshape({s[0], s[1] * w.area(), w.count[0] * w.count[1]});
  return planes.batched ? out : out.squeeze(0);
}

Tensor fold(const Tensor& input, const Sizes& output_size, const Sizes& kernel_size,
            const Sizes& dilation, const Sizes& padding, const Sizes& stride) {
  if (!has_complex(input)) require_floating("fold", input);
  const Triple plane = triple_of("fold", "output_size", output_size, 2, 1, 1);
  const Windows w("fold", kernel_size, dilation, padding, stride, plane[1], plane[2]);
  const bool batched = input.dim() == 3;
  const Shape s =
      batched ? input.shape() : Shape{1, input.size(0), input.dim() < 2 ? 0 : input.size(1)};
  const int64_t windows = w.count[0] * w.count[1];
  if ((!batched && input.dim() != 2) || s[1] % w.area() != 0 || s[2] != windows) {
    throw_error<ShapeError>("fold: the columns do not fit the output; got ", input.shape(),
                            "; expected [N, C * ", w.area(), ", ", windows, "] or [C * ", w.area(),
                            ", ", windows, "]");
  }
  const int64_t channels = s[1] / w.area();
  const int64_t height = plane[1] + 2 * w.padding[1], width = plane[2] + 2 * w.padding[2];
  std::vector<int64_t> places;
  places.reserve(static_cast<size_t>(w.area() * windows));
  for (int64_t i = 0; i < w.kernel[1]; ++i)
    for (int64_t j = 0; j < w.kernel[2]; ++j)
      for (int64_t y = 0; y < w.count[0]; ++y)
        for (int64_t x = 0; x < w.count[1]; ++x)
          places.push_back((y * w.stride[1] + i * w.dilation[1]) * width + x * w.stride[2] +
                           j * w.dilation[2]);
  const Tensor zero = zeros({s[0] * channels, height * width}, {input.dtype(), input.device()});
  const Tensor sums = zero.index_add(1, beside(input, places),
                                     input.reshape({s[0] * channels, w.area() * windows}));
  const Tensor out = sums.reshape({s[0], channels, height, width})
                         .narrow(2, w.padding[1], plane[1])
                         .narrow(3, w.padding[2], plane[2])
                         .contiguous();
  return batched ? out : out.squeeze(0);
}

}  // namespace kiln::functional
