#include "cli/predict/answers.h"

#include <algorithm>
#include <cstdio>

#include "kiln/core/error.h"
#include "kiln/core/json.h"
#include "kiln/core/utf8.h"
#include "kiln/train/chart.h"
#include "kiln/train/text.h"

namespace kiln::cli {

namespace {

// With its quotes where it needs some (RFC 4180).
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string exact(double value) { return encode_json(Json(value), JsonFormat::text); }

bool has_rows(Task task) { return task != Task::image_classes && task != Task::segmentation; }

// A segmentation's number is the share of pixels that a class has.
const char* share_name(Task task) { return task == Task::segmentation ? "share" : "probability"; }

// JSON and terminals take UTF-8 alone; names of files are bytes.
std::string shown(const std::string& text) { return is_utf8(text) ? text : printable(text); }

}  // namespace

AnswerPrinter::AnswerPrinter(const TrainedModel& model, AnswerForm form, int64_t top)
    : model_(model), form_(form), top_(top) {
  if (form_ == AnswerForm::json) {
    Json head = Json::Object();
    head.add("model", shown(model.path));
    head.add("name", model.model.name);
    head.add("task", to_string(model.shape.task));
    const std::string text = encode_json(head, JsonFormat::text);
    std::printf("%s,\n \"predictions\": [", text.substr(0, text.size() - 1).c_str());
  }
  if (form_ != AnswerForm::csv) return;
  std::string line = has_rows(model.shape.task) ? "input,row" : "input";
  if (model.shape.task == Task::table_numbers) line += ",value";
  if (model.shape.task == Task::segmentation) line += ",mask";
  const char* what = model.shape.task == Task::language ? "token" : "class";
  for (int64_t i = 1; model.shape.task != Task::table_numbers && i <= top_; ++i) {
    const std::string number = i == 1 ? "" : concat("_", i);
    line += concat(",", what, number, ",", share_name(model.shape.task), number);
  }
  std::printf("%s\n", line.c_str());
}

void AnswerPrinter::print(const Answer& answer) {
  switch (form_) {
    case AnswerForm::csv:
      print_csv(answer);
      break;
    case AnswerForm::json:
      print_json(answer);
      break;
    default:
      print_line(answer);
  }
  first_ = false;
}

void AnswerPrinter::print_line(const Answer& answer) const {
  std::string line = printable(answer.input, 200);
  if (answer.row > 0) line += concat(", row ", answer.row);
  line += ":";
  if (answer.value) line += concat(" ", train::format_number("%.6g", *answer.value));
  for (const auto& [name, probability] : answer.classes) {
    line += concat("  ", printable(name, 60), " ", train::percent(probability));
  }
  if (!answer.mask.empty()) line += concat("  -> ", printable(answer.mask, 200));
  std::printf("%s\n", line.c_str());
}

void AnswerPrinter::print_csv(const Answer& answer) const {
  std::string line = csv_field(shown(answer.input));
  // A text of its own is a file of one row.
  if (has_rows(model_.shape.task)) line += concat(",", std::max<int64_t>(answer.row, 1));
  if (answer.value) line += "," + exact(*answer.value);
  if (model_.shape.task == Task::segmentation) line += "," + csv_field(shown(answer.mask));
  for (const auto& [name, probability] : answer.classes) {
    line += concat(",", csv_field(shown(name)), ",", exact(probability));
  }
  std::printf("%s\n", line.c_str());
}

void AnswerPrinter::print_json(const Answer& answer) {
  Json out = Json::Object();
  out.add("input", shown(answer.input));
  if (answer.row > 0) out.add("row", answer.row);
  if (answer.value) out.add("value", *answer.value);
  if (!answer.mask.empty()) out.add("mask", shown(answer.mask));
  if (!answer.classes.empty()) {
    const char* what = model_.shape.task == Task::language ? "token" : "class";
    Json top = Json::Array();
    for (const auto& [name, probability] : answer.classes) {
      Json item = Json::Object();
      item.add(what, shown(name));
      item.add(share_name(model_.shape.task), probability);
      top.add(std::move(item));
    }
    if (model_.shape.task != Task::segmentation) {
      out.add(what, shown(answer.classes[0].first));
      out.add("probability", answer.classes[0].second);
    }
    out.add("top", std::move(top));
  }
  std::printf("%s\n  %s", first_ ? "" : ",", encode_json(out, JsonFormat::text).c_str());
}

void AnswerPrinter::end() {
  if (form_ == AnswerForm::json) std::printf("\n]}\n");
}

}  // namespace kiln::cli
