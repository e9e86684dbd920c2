// kiln.metrics: images, features, boxes.
#include "binding.h"
#include "kiln/metrics/detection.h"
#include "kiln/metrics/image.h"
#include "parts.h"

namespace kiln::python {

namespace {

using namespace kiln::metrics;

nb::object called(const HeldObject& function, const Tensor& x) { return function.get()(x); }

std::vector<Tensor> tensors_of(const char* op, nb::handle object) {
  if (const Tensor* x = tensor_pointer(object.ptr())) return {*x};
  if (!PyList_Check(object.ptr()) && !PyTuple_Check(object.ptr())) {
    throw nb::type_error(concat(op, ": expected a tensor, or a list of them").c_str());
  }
  std::vector<Tensor> out;
  const nb::list items(nb::borrow(object));
  for (nb::handle item : items) out.push_back(tensor_arg(op, item));
  return out;
}

void bind_features(nb::module_& m) {
  using Fid = FrechetInceptionDistance;
  nb::class_<Fid, Metric>(
      m, "FrechetInceptionDistance",
      "Frechet's distance between two sets of features. feature: gives [N, D] of "
      "images; without, update() takes features.")
      .def(
          "__init__",
          [](Fid* self, nb::handle feature) {
            if (feature.is_none()) {
              new (self) Fid();
              return;
            }
            if (!PyCallable_Check(feature.ptr())) {
              throw nb::type_error("FrechetInceptionDistance: feature must be callable or None");
            }
            new (self) Fid([held = HeldObject(nb::borrow(feature))](const Tensor& x) {
              return tensor_arg("FrechetInceptionDistance: feature", called(held, x));
            });
          },
          "feature"_a = nb::none())
      .def("update", &Fid::update, "imgs"_a, "real"_a,
           "real: to which of the two sets they belong.");
  using Lpips = LearnedPerceptualImagePatchSimilarity;
  nb::class_<Lpips, Metric>(m, "LearnedPerceptualImagePatchSimilarity",
                            "The distance of images in a network's features. net: images -> the "
                            "features [N, C, H, W] of its layers. weights: [C] for each layer.")
      .def(
          "__init__",
          [](Lpips* self, nb::handle net, nb::handle weights) {
            if (!PyCallable_Check(net.ptr())) {
              throw nb::type_error("LearnedPerceptualImagePatchSimilarity: net must be callable");
            }
            const char* const op = "LearnedPerceptualImagePatchSimilarity";
            new (self) Lpips([op, held = HeldObject(nb::borrow(net))](
                                 const Tensor& x) { return tensors_of(op, called(held, x)); },
                             weights.is_none() ? std::vector<Tensor>() : tensors_of(op, weights));
          },
          "net"_a, "weights"_a = nb::none())
      .def("update", &Lpips::update, "img1"_a, "img2"_a);
}

SsimOptions ssim_options(double data_range, double sigma, double k1, double k2) {
  return {data_range, sigma, k1, k2};
}

void bind_pictures(nb::module_& m) {
  nb::class_<PeakSignalNoiseRatio, Metric>(m, "PeakSignalNoiseRatio",
                                           "The peak signal-to-noise ratio, in decibels.")
      .def(nb::init<double>(), "data_range"_a)
      .def("update", &PeakSignalNoiseRatio::update, "preds"_a, "target"_a);
  using Ssim = StructuralSimilarityIndexMeasure;
  nb::class_<Ssim, Metric>(m, "StructuralSimilarityIndexMeasure",
                           "The structural similarity of images.")
      .def(
          "__init__",
          [](Ssim* self, double sigma, double data_range, double k1, double k2) {
            new (self) Ssim(ssim_options(data_range, sigma, k1, k2));
          },
          "sigma"_a = 1.5, "data_range"_a = 1.0, "k1"_a = 0.01, "k2"_a = 0.03)
      .def("update", &Ssim::update, "preds"_a, "target"_a);
  using MsSsim = MultiScaleStructuralSimilarityIndexMeasure;
  nb::class_<MsSsim, Metric>(m, "MultiScaleStructuralSimilarityIndexMeasure",
                             "The structural similarity of images over several scales.")
      .def(
          "__init__",
          [](MsSsim* self, double sigma, double data_range, double k1, double k2,
             const std::vector<double>& betas) {
            new (self) MsSsim(ssim_options(data_range, sigma, k1, k2), betas);
          },
          "sigma"_a = 1.5, "data_range"_a = 1.0, "k1"_a = 0.01, "k2"_a = 0.03,
          "betas"_a = nb::make_tuple(0.0448, 0.2856, 0.3001, 0.2363, 0.1333))
      .def("update", &MsSsim::update, "preds"_a, "target"_a);
  nb::class_<DiceScore, Metric>(m, "DiceScore",
                                "Dice's coefficient of segmentations, a mean over images.")
      .def(
          "__init__",
          [](DiceScore* self, int64_t num_classes, bool include_background,
             const std::optional<std::string>& average, const std::string& input_format) {
            if (input_format != "one-hot" && input_format != "index") {
              throw_error<ValueError>("DiceScore: unknown input_format; got '", input_format,
                                      "'; expected one-hot or index");
            }
            new (self) DiceScore(num_classes, include_background, average.value_or("none"),
                                 input_format == "one-hot");
          },
          "num_classes"_a, "include_background"_a = true, "average"_a = "macro",
          "input_format"_a = "one-hot")
      .def("update", &DiceScore::update, "preds"_a, "target"_a);
}

Detections detections_of(nb::handle object, bool scored) {
  const char* const op = "MeanAveragePrecision";
  if (!PyDict_Check(object.ptr())) {
    throw nb::type_error("MeanAveragePrecision: expected a dict for each image");
  }
  const nb::dict dict = nb::borrow<nb::dict>(object);
  const auto part = [&](const char* name, bool required) {
    if (!dict.contains(name)) {
      if (required) throw_error<KeyError>(op, ": an image has no '", name, "'");
      return Tensor();
    }
    return tensor_arg(op, nb::object(dict[name]));
  };
  return {part("boxes", true), part("labels", true), part("scores", scored), part("iscrowd", false),
          part("area", false)};
}

std::vector<Detections> images_of(nb::handle object, bool scored) {
  if (!PyList_Check(object.ptr()) && !PyTuple_Check(object.ptr())) {
    throw nb::type_error("MeanAveragePrecision: expected a list with a dict for each image");
  }
  std::vector<Detections> out;
  const nb::list items(nb::borrow(object));
  for (nb::handle item : items) out.push_back(detections_of(item, scored));
  return out;
}

void bind_detection(nb::module_& m) {
  using Map = MeanAveragePrecision;
  nb::class_<Map, Metric>(m, "MeanAveragePrecision",
                          "Mean average precision and recall of boxes, by COCO's protocol.")
      .def(
          "__init__",
          [](Map* self, const std::string& box_format,
             const std::optional<std::vector<double>>& iou_thresholds,
             const std::optional<std::vector<double>>& rec_thresholds,
             const std::optional<std::vector<int64_t>>& max_detection_thresholds) {
            DetectionOptions options{box_format, iou_thresholds.value_or(std::vector<double>()),
                                     rec_thresholds.value_or(std::vector<double>())};
            if (max_detection_thresholds) {
              if (max_detection_thresholds->size() != 3) {
                throw_error<ValueError>(
                    "MeanAveragePrecision: max_detection_thresholds must be 3 numbers; got ",
                    max_detection_thresholds->size());
              }
              for (size_t i = 0; i < 3; ++i) {
                options.max_detections[i] = (*max_detection_thresholds)[i];
              }
            }
            new (self) Map(options);
          },
          "box_format"_a = "xyxy", "iou_thresholds"_a = nb::none(), "rec_thresholds"_a = nb::none(),
          "max_detection_thresholds"_a = nb::none())
      .def(
          "update",
          [](Map& self, nb::handle preds, nb::handle target) {
            self.update(images_of(preds, true), images_of(target, false));
          },
          "preds"_a, "target"_a,
          "For each image a dict: boxes, labels, scores; boxes, labels, iscrowd, area.")
      .def(
          "compute",
          [](const Map& self) {
            nb::dict out;
            for (const auto& [name, value] : self.results()) out[name.c_str()] = value;
            return out;
          },
          "A dict: map, map_50, map_75, map_small and so on.");
}

}  // namespace

void bind_image_metrics(nb::module_& m) {
  bind_features(m);
  bind_pictures(m);
  bind_detection(m);
}

}  // namespace kiln::python
