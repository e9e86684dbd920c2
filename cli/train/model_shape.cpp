// ModelShape as JSON.
#include <array>
#include <utility>

#include "cli/train/zoo.h"
#include "kiln/core/error.h"

namespace kiln::cli {

namespace {

constexpr std::array kTasks{Task::image_classes, Task::segmentation,  Task::image_codes,
                            Task::table_classes, Task::table_numbers, Task::text_classes,
                            Task::language};
constexpr int64_t kMost = 100'000'000;

using Number = std::pair<const char*, int64_t ModelShape::*>;
constexpr std::array kNumbers{
    Number{"channels", &ModelShape::channels}, Number{"height", &ModelShape::height},
    Number{"width", &ModelShape::width},       Number{"features", &ModelShape::features},
    Number{"classes", &ModelShape::classes},   Number{"vocabulary", &ModelShape::vocabulary},
    Number{"length", &ModelShape::length}};

}  // namespace

Json to_json(const ModelShape& shape) {
  Json out = Json::Object();
  out.add("task", to_string(shape.task));
  for (const auto& [name, member] : kNumbers) out.add(name, shape.*member);
  return out;
}

ModelShape shape_from(const Json& json) {
  ModelShape out;
  const Json* task = json.find("task");
  const auto* text = task == nullptr ? nullptr : task->as<std::string>();
  bool known = false;
  for (const Task each : kTasks) {
    if (text == nullptr || *text != to_string(each)) continue;
    out.task = each;
    known = true;
  }
  if (!known) throw ValueError("the model's task is not known");
  for (const auto& [name, member] : kNumbers) {
    const Json* found = json.find(name);
    const auto* value = found == nullptr ? nullptr : found->as<int64_t>();
    if (value == nullptr || *value < 0 || *value > kMost) {
      throw_error<ValueError>("the model's ", name, " is malformed; expected 0 to ", kMost);
    }
    out.*member = *value;
  }
  return out;
}

}  // namespace kiln::cli
