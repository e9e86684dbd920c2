// Gradient cases of normalization with groups and with given statistics, of Fourier transforms and
// of distances.
#pragma once

#include <limits>

#include "gradcheck.h"

namespace gradcheck {

template <class B>
std::vector<Case<B>> norm_cases(kiln::Device device) {
  using A = kiln::Autodiff<B>;
  using T = typename A::FloatTensorPrimitive;
  using V = std::vector<T>;
  std::vector<Case<B>> out;
  const TensorData image = uniform({2, 4, 3}, -1, 1, 31);
  const TensorData gain = uniform({4}, 0.5, 1.5, 32);
  const TensorData bias = uniform({4}, -1, 1, 33);
  out.push_back({"float_group_norm", {image, gain, bias}, [](const V& x) {
                   return std::get<0>(A::float_group_norm(x[0], &x[1], &x[2], 2, 1e-3));
                 }});
  out.push_back({"float_group_norm", {image}, [](const V& x) {
                   return std::get<0>(A::float_group_norm(x[0], nullptr, nullptr, 4, 1e-3));
                 }});
  // Statistics that are no function of anything.
  const auto mean = B::float_from_data(bias, device);
  const auto var = B::float_from_data(gain, device);
  out.push_back({"float_batch_norm_inference", {image, gain, bias}, [mean, var](const V& x) {
                   const T m = A::from_inner(mean), v = A::from_inner(var);
                   return A::float_batch_norm_inference(x[0], m, v, &x[1], &x[2], 1e-3);
                 }});
  out.push_back({"float_batch_norm_inference", {image}, [mean, var](const V& x) {
                   const T m = A::from_inner(mean), v = A::from_inner(var);
                   return A::float_batch_norm_inference(x[0], m, v, nullptr, nullptr, 1e-3);
                 }});
  return out;
}

template <class B>
std::vector<Case<B>> transform_cases() {
  using A = kiln::Autodiff<B>;
  using T = typename A::FloatTensorPrimitive;
  using V = std::vector<T>;
  std::vector<Case<B>> out;
  // What follows a linear op is squared, so that there is a second derivative.
  const auto square = [](const T& x) { return A::float_square(x); };
  for (const bool inverse : {false, true}) {
    out.push_back({"float_fft", {uniform({3, 5, 2}, -1, 1, 41)}, [=](const V& x) {
                     return square(A::float_fft(x[0], inverse ? 0 : 1, inverse, 0.7));
                   }});
    out.push_back({"float_fft_real", {uniform({2, 3, 4}, -1, 1, 42)}, [=](const V& x) {
                     return square(A::float_fft_real(x[0], kiln::Dims{0, 2}, inverse, 0.7));
                   }});
  }
  for (const int64_t n : {6, 7}) {
    for (const double ends : {1.0, 0.5}) {
      out.push_back({"float_rfft", {uniform({2, n}, -1, 1, 43)}, [=](const V& x) {
                       return square(A::float_rfft(x[0], 0.7, ends));
                     }});
      out.push_back({"float_irfft", {uniform({2, n / 2 + 1, 2}, -1, 1, 44)}, [=](const V& x) {
                       return square(A::float_irfft(x[0], n, 0.7, ends));
                     }});
    }
  }
  const TensorData left = uniform({2, 3, 2}, -1, 0, 45);
  const TensorData right = uniform({2, 4, 2}, 0.1, 1, 46);
  for (const double norm : {0.0, 1.0, 1.5, 2.0, 3.0, std::numeric_limits<double>::infinity()}) {
    out.push_back({"float_cdist", {left, right}, [norm](const V& x) {
                     return A::float_cdist(x[0], x[1], norm, false);
                   }});
  }
  out.push_back({"float_cdist", {left, right}, [](const V& x) {
                   return A::float_cdist(x[0], x[1], 2.0, true);
                 }});
  return out;
}

template <class B>
std::vector<Case<B>> complex_cases() {
  using A = kiln::Autodiff<B>;
  using T = typename A::FloatTensorPrimitive;
  using V = std::vector<T>;
  using Function = kiln::ComplexFunction;
  std::vector<Case<B>> out;
  // Away from 0 and from the cuts of the functions.
  const TensorData a = uniform({3, 2, 2}, 0.3, 1.2, 51);
  const TensorData b = uniform({2, 2}, 0.4, 1.5, 52);
  for (const bool conjugate : {false, true}) {
    out.push_back({"float_complex_mul", {a, b}, [conjugate](const V& x) {
                     return A::float_complex_mul(x[0], x[1], conjugate);
                   }});
    out.push_back({"float_complex_mul", {b, a}, [conjugate](const V& x) {
                     return A::float_complex_mul(x[0], x[1], conjugate);
                   }});
  }
  out.push_back({"float_complex_mul", {a}, [](const V& x) {
                   return A::float_complex_mul(x[0], x[0], false);
                 }});
  out.push_back(
      {"float_complex_div", {a, b}, [](const V& x) { return A::float_complex_div(x[0], x[1]); }});
  out.push_back(
      {"float_complex_pow", {a, b}, [](const V& x) { return A::float_complex_pow(x[0], x[1]); }});
  out.push_back({"float_complex_abs", {a}, [](const V& x) { return A::float_complex_abs(x[0]); }});
  out.push_back({"float_complex_rows", {a}, [](const V& x) {
                   return A::float_square(A::float_complex_rows(x[0]));
                 }});
  for (int i = 0; i < static_cast<int>(Function::count); ++i) {
    const auto f = static_cast<Function>(i);
    out.push_back(
        {"float_complex_unary", {a}, [f](const V& x) { return A::float_complex_unary(x[0], f); }});
  }
  return out;
}

template <class B>
std::vector<Case<B>> image_cases() {
  using A = kiln::Autodiff<B>;
  using T = typename A::FloatTensorPrimitive;
  using V = std::vector<T>;
  using kiln::EdgeMode;
  using kiln::GridBetween;
  using kiln::GridOutside;
  std::vector<Case<B>> out;
  const TensorData image = uniform({1, 2, 4, 5}, -1, 1, 61);
  const TensorData points = uniform({1, 3, 2}, -1.3, 1.3, 62);
  const TensorData g = uniform({1, 2, 3}, -1, 1, 63);
  for (const GridOutside outside :
       {GridOutside::zeros, GridOutside::border, GridOutside::reflection}) {
    for (const GridBetween between :
         {GridBetween::nearest, GridBetween::linear, GridBetween::cubic}) {
      const kiln::GridOptions how{outside, between, outside == GridOutside::border, true};
      out.push_back({"float_grid_sample", {image, points}, [how](const V& x) {
                       return A::float_grid_sample(x[0], x[1], how);
                     }});
    }
  }
  const kiln::GridOptions how{GridOutside::zeros, GridBetween::cubic, false, true};
  const Shape shape = image.shape();
  out.push_back({"float_grid_sample_input_grad", {g, points}, [how, shape](const V& x) {
                   return A::float_grid_sample_input_grad(x[0], x[1], shape, how);
                 }});
  out.push_back({"float_grid_sample_points_grad", {g, image, points}, [how](const V& x) {
                   return A::float_grid_sample_points_grad(x[0], x[1], x[2], how);
                 }});
  const TensorData volume = uniform({1, 2, 3, 2, 3}, -1, 1, 64);
  out.push_back({"float_grid_sample", {volume, uniform({1, 2, 3}, -1, 1, 65)}, [](const V& x) {
                   return A::float_grid_sample(x[0], x[1], kiln::GridOptions{});
                 }});
  kiln::LineMap map(4);
  for (int64_t o = 0; o < 3; ++o) {
    map.begin_output();
    map.put(o, 0.25);
    map.put(o + 1, 0.75);
  }
  const auto maps =
      std::make_shared<const std::vector<kiln::DimMap>>(std::vector<kiln::DimMap>{{2, map}});
  out.push_back({"float_resample", {image}, [maps](const V& x) {
                   return A::float_square(A::float_resample(x[0], maps));
                 }});
  const Shape before{0, 0, 2, 1}, behind{0, 0, 1, 3};
  out.push_back({"float_pad", {image}, [=](const V& x) {
                   return A::float_square(A::float_pad(x[0], before, behind, kiln::Scalar(0.5)));
                 }});
  for (const EdgeMode mode : {EdgeMode::reflect, EdgeMode::replicate, EdgeMode::circular}) {
    out.push_back({"float_pad_edges", {image}, [=](const V& x) {
                     return A::float_square(A::float_pad_edges(x[0], before, behind, mode));
                   }});
    const TensorData padded = uniform({1, 2, 7, 9}, -1, 1, 66);
    out.push_back({"float_pad_edges_backward", {padded}, [=](const V& x) {
                     return A::float_square(
                         A::float_pad_edges_backward(x[0], before, behind, mode));
                   }});
  }
  return out;
}

}  // namespace gradcheck
