// kiln.vision: filters, morphology, components, colours, transforms, boxes.
#include "kiln/vision/vision.h"

#include "binding.h"
#include "parts.h"

namespace kiln::python {

namespace {

using namespace kiln::vision;

Border border_of(const std::string& mode, double value) { return {mode, value}; }

void bind_filters(nb::module_& m) {
  m.def(
      "pad_border",
      [](const Tensor& x, int64_t top, int64_t bottom, int64_t left, int64_t right,
         const std::string& border, Scalar value) {
        Unlocked lock(x);
        return pad_border(x, top, bottom, left, right, {border, value});
      },
      "input"_a, "top"_a, "bottom"_a, "left"_a, "right"_a, "border"_a = "reflect",
      "border_value"_a = 0,
      "More rows and columns. border: constant, replicate, reflect, symmetric, circular.");
  m.def(
      "filter2d",
      [](const Tensor& x, const Tensor& kernel, const std::string& border, double value) {
        Unlocked lock(x);
        return filter2d(x, kernel, border_of(border, value));
      },
      "input"_a, "kernel"_a, "border"_a = "reflect", "border_value"_a = 0.0,
      "Correlation of [.., H, W] with a kernel [rows, columns].");
  m.def(
      "separable_filter2d",
      [](const Tensor& x, const Tensor& column, const Tensor& row, const std::string& border,
         double value) {
        Unlocked lock(x);
        return separable_filter2d(x, column, row, border_of(border, value));
      },
      "input"_a, "column"_a, "row"_a, "border"_a = "reflect", "border_value"_a = 0.0,
      "filter2d with the kernel column times row.");
  m.def("gaussian_kernel", &gaussian_kernel, "size"_a, "sigma"_a = nb::none(),
        "[size] of f64, whose sum is 1.");
  m.def(
      "gaussian_blur",
      [](const Tensor& x, int64_t size, std::optional<double> sigma, const std::string& border,
         double value) {
        Unlocked lock(x);
        return gaussian_blur(x, size, sigma, border_of(border, value));
      },
      "input"_a, "size"_a, "sigma"_a = nb::none(), "border"_a = "reflect", "border_value"_a = 0.0,
      "Without sigma it is 0.3 ((size - 1) / 2 - 1) + 0.8.");
  const auto sized = [&m](const char* name, Tensor (*f)(const Tensor&, int64_t, const Border&),
                          const char* mode, const char* doc) {
    m.def(
        name,
        [f](const Tensor& x, int64_t size, const std::string& border, double value) {
          Unlocked lock(x);
          return f(x, size, border_of(border, value));
        },
        "input"_a, "size"_a, "border"_a = mode, "border_value"_a = 0.0, doc);
  };
  sized("box_blur", &box_blur, "reflect", "The mean of size x size pixels.");
  sized("median_blur", &median_blur, "replicate", "The middle value of size x size pixels.");
  m.def(
      "sobel",
      [](const Tensor& x, const std::string& border, double value) {
        Derivatives out;
        {
          Unlocked lock(x);
          out = sobel(x, border_of(border, value));
        }
        return nb::make_tuple(out.dx, out.dy);
      },
      "input"_a, "border"_a = "reflect", "border_value"_a = 0.0,
      "Derivatives along the columns and along the rows.");
  const auto plain = [&m](const char* name, Tensor (*f)(const Tensor&, const Border&),
                          const char* doc) {
    m.def(
        name,
        [f](const Tensor& x, const std::string& border, double value) {
          Unlocked lock(x);
          return f(x, border_of(border, value));
        },
        "input"_a, "border"_a = "reflect", "border_value"_a = 0.0, doc);
  };
  plain("sobel_magnitude", &sobel_magnitude, "sqrt(dx^2 + dy^2) of sobel.");
  plain("laplacian", &laplacian, "The sum of second derivatives.");
  m.def(
      "unsharp_mask",
      [](const Tensor& x, int64_t size, std::optional<double> sigma, double amount,
         const std::string& border, double value) {
        Unlocked lock(x);
        return unsharp_mask(x, size, sigma, amount, border_of(border, value));
      },
      "input"_a, "size"_a, "sigma"_a = nb::none(), "amount"_a = 1.0, "border"_a = "reflect",
      "border_value"_a = 0.0, "input + amount (input - its blur).");
  m.def(
      "bilateral_filter",
      [](const Tensor& x, int64_t size, double sigma_value, double sigma_space,
         const std::string& border, double value) {
        Unlocked lock(x);
        return bilateral_filter(x, size, sigma_value, sigma_space, border_of(border, value));
      },
      "input"_a, "size"_a, "sigma_value"_a, "sigma_space"_a, "border"_a = "reflect",
      "border_value"_a = 0.0, "Blurs but where values differ.");
}

void bind_morphology(nb::module_& m) {
  m.def("structuring_element", &structuring_element, "shape"_a, "rows"_a, "columns"_a,
        "A kernel of bools: rect, cross, ellipse.");
  const auto bind = [&m](const char* name,
                         Tensor (*f)(const Tensor&, const Tensor&, const MorphologyOptions&),
                         const char* doc) {
    m.def(
        name,
        [f](const Tensor& x, const Tensor& kernel, int64_t iterations,
            const std::optional<std::pair<int64_t, int64_t>>& anchor,
            const std::optional<std::string>& border, Scalar value) {
          MorphologyOptions options{.iterations = iterations};
          if (anchor) {
            options.anchor_row = anchor->first;
            options.anchor_column = anchor->second;
          }
          if (border) options.border = Border{*border, value};
          Unlocked lock(x);
          return f(x, kernel, options);
        },
        "input"_a, "kernel"_a, nb::kw_only(), "iterations"_a = 1, "anchor"_a = nb::none(),
        "border"_a = nb::none(), "border_value"_a = 0, doc);
  };
  bind("dilate", &dilate, "The largest value under the kernel.");
  bind("erode", &erode, "The smallest value under the kernel.");
  bind("opening", &opening, "erode, then dilate.");
  bind("closing", &closing, "dilate, then erode.");
  bind("morphological_gradient", &morphological_gradient, "dilate - erode.");
  bind("top_hat", &top_hat, "input - opening.");
  bind("black_hat", &black_hat, "closing - input.");
}

void bind_colors(nb::module_& m) {
  const auto bind = [&m](const char* name, Tensor (*f)(const Tensor&), const char* doc) {
    m.def(
        name,
        [f](const Tensor& x) {
          Unlocked lock(x);
          return f(x);
        },
        "input"_a, doc);
  };
  bind("rgb_to_grayscale", &rgb_to_grayscale, "0.299 R + 0.587 G + 0.114 B, [.., 1, H, W].");
  bind("grayscale_to_rgb", &grayscale_to_rgb, "One channel as three.");
  bind("rgb_to_bgr", &rgb_to_bgr, "Channels in the other order.");
  bind("rgb_to_hsv", &rgb_to_hsv, "Hue (0 to 1), saturation, value.");
  bind("hsv_to_rgb", &hsv_to_rgb, "The inverse of rgb_to_hsv.");
  bind("rgb_to_ycbcr", &rgb_to_ycbcr, "Luma and two differences of colour, as JPEG has them.");
  bind("ycbcr_to_rgb", &ycbcr_to_rgb, "The inverse of rgb_to_ycbcr.");
  bind("srgb_to_linear", &srgb_to_linear, "Light itself.");
  bind("linear_to_srgb", &linear_to_srgb, "The inverse of srgb_to_linear.");
  bind("rgb_to_xyz", &rgb_to_xyz, "sRGB as CIE XYZ (D65).");
  bind("xyz_to_rgb", &xyz_to_rgb, "The inverse of rgb_to_xyz.");
  bind("rgb_to_lab", &rgb_to_lab, "sRGB as CIE L*a*b* of 1976 (D65).");
  bind("lab_to_rgb", &lab_to_rgb, "The inverse of rgb_to_lab.");
}

using Point = std::array<double, 2>;

Point point_of(const std::pair<double, double>& p) { return {p.first, p.second}; }

std::array<Point, 4> points_of(const std::vector<std::pair<double, double>>& points) {
  if (points.size() != 4) {
    throw_error<ValueError>("perspective: expected 4 points; got ", points.size());
  }
  return {point_of(points[0]), point_of(points[1]), point_of(points[2]), point_of(points[3])};
}

Tensor matrix_of(const Transform2D& t) {
  return from_vector(std::vector<double>(t.rows().begin(), t.rows().end()), {3, 3}, {.dtype = f64});
}

WarpOptions warp_options(const std::string& mode, const std::string& padding_mode,
                         const std::optional<std::pair<int64_t, int64_t>>& size) {
  WarpOptions out{mode, padding_mode, {}};
  if (size) out.size = std::array<int64_t, 2>{size->first, size->second};
  return out;
}

void bind_transform_class(nb::module_& m) {
  using T = Transform2D;
  nb::class_<T>(m, "Transform2D", "A map of points (x, y), as a matrix of 3 x 3.")
      .def(nb::init<>())
      .def_static("translation", &T::translation, "dx"_a, "dy"_a)
      .def_static(
          "rotation",
          [](double degrees, const std::pair<double, double>& center) {
            return T::rotation(degrees, point_of(center));
          },
          "degrees"_a, "center"_a = nb::make_tuple(0.0, 0.0), "Counter-clockwise as it is seen.")
      .def_static(
          "scaling",
          [](double sx, double sy, const std::pair<double, double>& center) {
            return T::scaling(sx, sy, point_of(center));
          },
          "sx"_a, "sy"_a, "center"_a = nb::make_tuple(0.0, 0.0))
      .def_static(
          "shearing",
          [](double degrees_x, double degrees_y, const std::pair<double, double>& center) {
            return T::shearing(degrees_x, degrees_y, point_of(center));
          },
          "degrees_x"_a, "degrees_y"_a, "center"_a = nb::make_tuple(0.0, 0.0))
      .def_static(
          "perspective",
          [](const std::vector<std::pair<double, double>>& from,
             const std::vector<std::pair<double, double>>& to) {
            return T::perspective(points_of(from), points_of(to));
          },
          "from_points"_a, "to_points"_a, "Takes four points to four others.")
      .def("then", &T::then, "other"_a, "First this, then the other.")
      .def("inverse", &T::inverse)
      .def(
          "__call__",
          [](const T& self, double x, double y) {
            const Point p = self(x, y);
            return nb::make_tuple(p[0], p[1]);
          },
          "x"_a, "y"_a)
      .def_prop_ro("matrix", &matrix_of, "[3, 3] of f64.");
}

void bind_transforms(nb::module_& m) {
  bind_transform_class(m);
  m.def(
      "warp",
      [](const Tensor& x, nb::handle transform, const std::string& mode,
         const std::string& padding_mode, const std::optional<std::pair<int64_t, int64_t>>& size) {
        const WarpOptions options = warp_options(mode, padding_mode, size);
        if (nb::isinstance<Transform2D>(transform)) {
          return warp(x, nb::cast<Transform2D>(transform), options);
        }
        return warp(x, tensor_arg("warp", transform), options);
      },
      "input"_a, "transform"_a, "mode"_a = "bilinear", "padding_mode"_a = "zeros",
      "size"_a = nb::none(),
      "The picture as a Transform2D or a tensor [3, 3] moves its points. size: (rows, columns).");
  m.def(
      "rotate",
      [](const Tensor& x, double degrees, const std::string& mode,
         const std::string& padding_mode) {
        Unlocked lock(x);
        return rotate(x, degrees, warp_options(mode, padding_mode, {}));
      },
      "input"_a, "degrees"_a, "mode"_a = "bilinear", "padding_mode"_a = "zeros",
      "Around the middle, counter-clockwise.");
  const auto bind = [&m](const char* name,
                         Tensor (*f)(const Tensor&, double, double, const WarpOptions&),
                         const char* first, const char* second, const char* doc) {
    m.def(
        name,
        [f](const Tensor& x, double a, double b, const std::string& mode,
            const std::string& padding_mode) {
          Unlocked lock(x);
          return f(x, a, b, warp_options(mode, padding_mode, {}));
        },
        "input"_a, nb::arg(first), nb::arg(second), "mode"_a = "bilinear",
        "padding_mode"_a = "zeros", doc);
  };
  bind("scale", &scale, "sx", "sy", "Around the middle.");
  bind("shear", &shear, "degrees_x", "degrees_y", "Around the middle.");
  bind("translate", &translate, "dx", "dy", "By columns to the right and rows down.");
  m.def(
      "resize",
      [](const Tensor& x, const std::pair<int64_t, int64_t>& size, const std::string& mode,
         bool antialias) {
        Unlocked lock(x);
        return resize(x, size.first, size.second, mode, antialias);
      },
      "input"_a, "size"_a, "mode"_a = "bilinear", "antialias"_a = true,
      "[.., H, W] in the size (rows, columns).");
  m.def("hflip", &hflip, "input"_a, "Left to right.");
  m.def("vflip", &vflip, "input"_a, "Top to bottom.");
  m.def("crop", &crop, "input"_a, "top"_a, "left"_a, "rows"_a, "columns"_a, "A part.");
  m.def("center_crop", &center_crop, "input"_a, "rows"_a, "columns"_a, "The middle part.");
}

void bind_boxes(nb::module_& m) {
  m.def(
      "connected_components",
      [](const Tensor& x, int64_t connectivity) {
        Unlocked lock(x);
        return connected_components(x, connectivity);
      },
      "input"_a, "connectivity"_a = 8, "Labels from 1 of what is not 0 and hangs together.");
  m.def(
      "connected_components_with_stats",
      [](const Tensor& x, int64_t connectivity) {
        ComponentStats stats;
        {
          Unlocked lock(x);
          stats = connected_components_with_stats(x, connectivity);
        }
        nb::dict out;
        out["labels"] = stats.labels;
        out["count"] = stats.count;
        out["area"] = stats.area;
        out["left"] = stats.left;
        out["top"] = stats.top;
        out["right"] = stats.right;
        out["bottom"] = stats.bottom;
        out["centroid"] = stats.centroid;
        return out;
      },
      "input"_a, "connectivity"_a = 8,
      "-> dict of labels, count, area, left, top, right, bottom (within) and centroid (x, y).");
  m.def("box_area", &box_area, "boxes"_a, "[N, 4] of (x1, y1, x2, y2) -> [N].");
  m.def("box_iou", &box_iou, "boxes1"_a, "boxes2"_a, "Common over covered area, [N, M].");
  constexpr double kAll = -std::numeric_limits<double>::infinity();
  const auto options = [](double iou, double score, std::optional<int64_t> most) {
    NmsOptions out{.iou_threshold = iou, .score_threshold = score};
    if (most) out.max_boxes = *most;
    return out;
  };
  m.def(
      "nms",
      [options](const Tensor& boxes, const Tensor& scores, double iou_threshold,
                double score_threshold, std::optional<int64_t> max_boxes) {
        Unlocked lock(boxes);
        return nms(boxes, scores, options(iou_threshold, score_threshold, max_boxes));
      },
      "boxes"_a, "scores"_a, "iou_threshold"_a = 0.5, "score_threshold"_a = kAll,
      "max_boxes"_a = nb::none(), "The places of the boxes that stay, the best first.");
  m.def(
      "batched_nms",
      [options](const Tensor& boxes, const Tensor& scores, const Tensor& classes,
                double iou_threshold, double score_threshold, std::optional<int64_t> max_boxes) {
        Unlocked lock(boxes);
        return batched_nms(boxes, scores, classes,
                           options(iou_threshold, score_threshold, max_boxes));
      },
      "boxes"_a, "scores"_a, "idxs"_a, "iou_threshold"_a = 0.5, "score_threshold"_a = kAll,
      "max_boxes"_a = nb::none(), "nms within each class.");
}

}  // namespace

void bind_vision(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("_vision", "Vision.");
  bind_filters(m);
  bind_morphology(m);
  bind_colors(m);
  bind_transforms(m);
  bind_boxes(m);
  bind_image_files(m);
}

}  // namespace kiln::python
