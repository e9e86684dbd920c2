#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "tests/gpu_host/fake/fake_cuda.h"

namespace kiln::fake_cuda {
namespace {

thread_local Context* current = nullptr;

Settings read_settings() {
  Settings out;
  const char* text = std::getenv("KILN_FAKE_CUDA");
  std::istringstream parts(text == nullptr ? "" : text);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : part.substr(equals + 1);
    if (name == "devices") {
      out.devices = std::stoi(value);
    } else if (name == "version") {
      out.version = std::stoi(value);
    } else if (name == "init") {
      out.init = std::stoi(value);
    } else if (name == "memory") {
      out.memory = std::stoul(value) << 20;
    } else if (name == "fail") {
      const size_t first = value.find(':');
      const size_t second = value.find(':', first + 1);
      out.fail_function = value.substr(0, first);
      out.fail_call = std::stoi(value.substr(first + 1, second - first - 1));
      out.fail_result = std::stoi(value.substr(second + 1));
    } else {
      violation("KILN_FAKE_CUDA has an unknown name '" + name + "'");
    }
  }
  return out;
}

}  // namespace

void violation(const std::string& what) {
  std::fprintf(stderr, "fake cuda: %s\n", what.c_str());
  std::fflush(stderr);
  std::abort();
}

const Settings& settings() {
  static const Settings& all = *new Settings(read_settings());
  return all;
}

Driver& driver() {
  static Driver& instance = *new Driver;
  return instance;
}

int enter(const char* function) {
  Driver& d = driver();
  if (!d.initialized) return 3;
  if (current != nullptr && current->lost != 0) return current->lost;
  const Settings& s = settings();
  if (s.fail_function == function && ++d.calls[function] == s.fail_call) {
    // 701 refuses one launch.
    if (s.fail_result >= 700 && s.fail_result != 701 && current != nullptr)
      current->lost = s.fail_result;
    return s.fail_result;
  }
  return 0;
}

Context* current_context() { return current; }
void set_current(Context* context) { current = context; }

int drain(Stream& stream, size_t until) {
  size_t taken = 0;
  while (stream.done < until && taken < stream.queue.size()) {
    if (stream.context->lost == 0) {
      const int result = stream.queue[taken]();
      if (result != 0) stream.context->lost = result;
    }
    ++taken;
    ++stream.done;
  }
  stream.queue.erase(stream.queue.begin(),
                     stream.queue.begin() + static_cast<std::ptrdiff_t>(taken));
  return stream.context->lost;
}

int drain_all(Context& context) {
  for (auto& [handle, stream] : driver().streams) {
    if (stream->context == &context) drain(*stream, stream->queued);
  }
  return context.lost;
}

}  // namespace kiln::fake_cuda
