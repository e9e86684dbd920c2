#include "kiln/backend/meta/infer.h"

namespace kiln::infer {

namespace {

template <class Options>
Shape convolved(const Shape& x, const Shape& weight, const Options& options) {
  Shape out{x[0], weight[0]};
  for (size_t i = 0; i < options.stride.size(); ++i) {
    const int d = static_cast<int>(i) + 2;
    out.push_back(conv_output_size(x[d], weight[d], options.stride[i], options.padding[i],
                                   options.dilation[i]));
  }
  return out;
}

}  // namespace

Shape conv2d(const Shape& x, const Shape& weight, const ConvOptions& options) {
  return convolved(x, weight, options);
}
Shape conv3d(const Shape& x, const Shape& weight, const Conv3dOptions& options) {
  return convolved(x, weight, options);
}

Shape pool2d(const Shape& x, const PoolOptions& options) {
  Shape out{x[0], x[1]};
  for (size_t i = 0; i < 2; ++i) {
    out.push_back(pool_output_size(x[static_cast<int>(i) + 2], options.kernel[i], options.stride[i],
                                   options.padding[i], options.dilation[i], options.ceil_mode));
  }
  return out;
}

Shape padded(Shape x, const Shape& before, const Shape& behind, int64_t sign) {
  for (int d = 0; d < x.rank(); ++d) x[d] += sign * (before[d] + behind[d]);
  return x;
}

Shape resampled(Shape x, const DimMaps& maps) {
  for (const DimMap& m : *maps) x[m.dim] = m.map.out;
  return x;
}

Shape channels(const Shape& x) { return {x[1]}; }

Shape without_last(const Shape& x, int n) {
  Shape out = x;
  for (int d = x.rank() - n; d < x.rank(); ++d) out[d] = 1;
  return out;
}

Shape last(const Shape& x, int n) {
  Shape out;
  for (int d = x.rank() - n; d < x.rank(); ++d) out.push_back(x[d]);
  return out;
}

}  // namespace kiln::infer
