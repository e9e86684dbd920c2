#include "kiln/onnx/read/window.h"

#include <algorithm>

#include "kiln/tensor/nn/convolution.h"

namespace kiln::onnx {

int64_t option(Call& c, const std::vector<int64_t>& all, int d, int64_t otherwise) {
  if (all.empty()) return otherwise;
  if (d >= static_cast<int>(all.size())) c.fail("an option with too few numbers");
  if (all[static_cast<size_t>(d)] < 0 || all[static_cast<size_t>(d)] > (1 << 28)) {
    c.fail(concat("got the option ", all[static_cast<size_t>(d)]));
  }
  return all[static_cast<size_t>(d)];
}

Window window_of(Call& c, const Tensor& x, const std::vector<int64_t>& kernel) {
  Window w;
  w.dims = static_cast<int>(x.dim()) - 2;
  if (w.dims < 1 || w.dims > 3)
    c.refuse(concat("a window over ", w.dims, " dims; Kiln has 1 to 3"));
  const auto strides = c.ints("strides"), dilations = c.ints("dilations"), pads = c.ints("pads");
  const std::string pad = c.s("auto_pad", "NOTSET");
  for (int d = 0; d < w.dims; ++d) {
    w.kernel.push_back(option(c, kernel, d, 1));
    w.stride.push_back(std::max<int64_t>(1, option(c, strides, d, 1)));
    w.dilation.push_back(std::max<int64_t>(1, option(c, dilations, d, 1)));
    int64_t before = option(c, pads, d, 0),
            after = option(c, pads, d + (pads.empty() ? 0 : w.dims), 0);
    if (pad == "SAME_UPPER" || pad == "SAME_LOWER") {
      const int64_t n = x.size(d + 2), out = (n + w.stride[d] - 1) / w.stride[d];
      const int64_t all =
          std::max<int64_t>(0, (out - 1) * w.stride[d] + w.dilation[d] * (w.kernel[d] - 1) + 1 - n);
      before = pad == "SAME_UPPER" ? all / 2 : all - all / 2;
      after = all - before;
    } else if (pad == "VALID") {
      before = after = 0;
    }
    w.before.push_back(before);
    w.after.push_back(after);
  }
  return w;
}

Tensor padded(const Tensor& x, const Window& w, double value) {
  Shape list;
  bool any = false;
  for (int d = w.dims - 1; d >= 0; --d) {
    list.push_back(w.before[d]);
    list.push_back(w.after[d]);
    any = any || w.before[d] != 0 || w.after[d] != 0;
  }
  return any ? functional::pad(x, list, "constant", value) : x;
}

std::vector<int64_t> behind_channels(const Tensor& weight) {
  std::vector<int64_t> out;
  for (int64_t d = 2; d < weight.dim(); ++d) out.push_back(weight.size(d));
  return out;
}

Tensor convolve(Call& c, const Tensor& input, const Tensor& weight, const Tensor& bias) {
  const Window w = window_of(c, input, behind_channels(weight));
  const bool even = w.before == w.after;
  const Tensor x = even ? input : padded(input, w, 0.0);
  const Sizes stride(w.stride), dilation(w.dilation);
  const Padding pad = even ? Padding(Sizes(w.before)) : Padding(0);
  const int64_t groups = c.i("group", 1);
  return w.dims == 1   ? functional::conv1d(x, weight, bias, stride, pad, dilation, groups)
         : w.dims == 2 ? functional::conv2d(x, weight, bias, stride, pad, dilation, groups)
                       : functional::conv3d(x, weight, bias, stride, pad, dilation, groups);
}

Window with_ceil(Call& c, const Tensor& x, Window w) {
  if (c.i("ceil_mode", 0) == 0) return w;
  for (int d = 0; d < w.dims; ++d) {
    const int64_t n = x.size(d + 2) + w.before[d] + w.after[d];
    const int64_t span = w.dilation[d] * (w.kernel[d] - 1) + 1;
    if (n < span) continue;
    int64_t out = (n - span + w.stride[d] - 1) / w.stride[d] + 1;
    if ((out - 1) * w.stride[d] >= x.size(d + 2) + w.before[d]) --out;
    w.after[d] += std::max<int64_t>(0, (out - 1) * w.stride[d] + span - n);
  }
  return w;
}

Tensor window_sums(const Tensor& x, const Window& w) {
  Shape shape = Shape::filled(w.dims + 2, 1);
  shape[0] = x.size(1);
  for (int d = 0; d < w.dims; ++d) shape[d + 2] = w.kernel[d];
  const Tensor weight = ones(shape, {.dtype = x.dtype()});
  const Sizes stride(w.stride), dilation(w.dilation);
  const int64_t groups = x.size(1);
  return w.dims == 1   ? functional::conv1d(x, weight, {}, stride, 0, dilation, groups)
         : w.dims == 2 ? functional::conv2d(x, weight, {}, stride, 0, dilation, groups)
                       : functional::conv3d(x, weight, {}, stride, 0, dilation, groups);
}

}  // namespace kiln::onnx
