#include "cli/digit_net.h"

#include <charconv>
#include <cmath>

#include "kiln/core/error.h"
#include "kiln/io/model_file.h"
#include "kiln/tensor/ops.h"

namespace kiln::cli {

namespace {

// What the metadata says of the network; a change of its layers changes the name.
const char* const kArchitecture = "kiln-digits-conv32-conv64-fc128";

std::string to_text(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

double number(const std::string& path, const io::Metadata& facts, const char* name) {
  const auto found = facts.find(name);
  double value = 0;
  if (found != facts.end()) {
    const std::string& text = found->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value)) {
      return value;
    }
  }
  throw_error<IoError>("'", path, "' is damaged: its metadata has no number '", name, "'");
}

}  // namespace

Tensor DigitNet::forward(const Tensor& images) const {
  const double scale = 1.0 / (255.0 * pixels_.std);
  Tensor x = images.to(f32) * scale - pixels_.mean / pixels_.std;
  x = relu(pool(norm1(conv1(std::move(x)))));
  x = relu(pool(norm2(conv2(std::move(x)))));
  x = relu(hidden(x.flatten(1)));
  return classes(dropout(std::move(x)));
}

void save_digit_net(const DigitNet& net, const std::string& path, const io::Metadata& facts) {
  io::Metadata all = facts;
  all["architecture"] = kArchitecture;
  all["input"] = "u8 [N, 1, 28, 28], white on black; x = (pixel / 255 - mean) / std";
  all["mean"] = to_text(net.pixels().mean);
  all["std"] = to_text(net.pixels().std);
  all["classes"] = "0 1 2 3 4 5 6 7 8 9";
  io::save_model(net, path, all);
}

DigitModel load_digit_net(const std::string& path) {
  const io::Metadata facts = io::SafetensorsReader(path).metadata();
  const auto architecture = facts.find("architecture");
  if (architecture == facts.end() || architecture->second != kArchitecture) {
    throw_error<IoError>("'", path, "' holds no digit network; expected a file that ",
                         "`kiln digits train` wrote");
  }
  const Normalization pixels{number(path, facts, "mean"), number(path, facts, "std")};
  if (pixels.std <= 0) throw_error<IoError>("'", path, "' is damaged: std is not above 0");
  DigitModel model{DigitNet(pixels), facts};
  try {
    io::load_model(model.net, path);
  } catch (const RuntimeError& e) {
    throw_error<IoError>("'", path, "' does not hold this network's parameters: ", e.what());
  }
  model.net.eval();
  return model;
}

}  // namespace kiln::cli
