#include "tests/gpu_host/planted.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <doctest/doctest.h>

#include "kiln/backend/gpu/kernel_texts.h"
#include "tests/gpu_host/driver.h"

namespace kiln::gpu_host {
namespace {

constexpr int kItems = 64;
constexpr size_t kElements = 128;

// Of two groups of kItems; in and out have kElements floats, count one i32.
void run_body(const Planted& p, Check check) {
  const std::string text =
      std::string(gpu::kernel_text("prelude")) +
      "#define NAME kiln_kernel\n"
      "// BARRIER\n"
      "KERNEL(NAME)(GLOBAL f32* out, GLOBAL const f32* in, GLOBAL i32* count) {"
      "\n  int me = LOCAL_ID;\n" +
      p.body + "\n}\n";
  const char* folder = std::getenv("KILN_GPU_HOST_KERNELS");
  const HostKernel& kernel = HostKernel::of(text, check, folder == nullptr ? "" : folder);
  // Each of its own, so that AddressSanitizer knows where it ends.
  auto* out = static_cast<float*>(std::calloc(kElements, sizeof(float)));
  auto* in = static_cast<float*>(std::calloc(kElements, sizeof(float)));
  auto* count = static_cast<int32_t*>(std::calloc(1, sizeof(int32_t)));
  void* arguments[] = {&out, &in, &count};
  const Block blocks[] = {{reinterpret_cast<std::byte*>(out), kElements * sizeof(float)},
                          {reinterpret_cast<std::byte*>(in), kElements * sizeof(float)},
                          {reinterpret_cast<std::byte*>(count), sizeof(int32_t)}};
  const Grid groups = {2, 1, 1};
  const Grid group = {kItems, 1, 1};
  const auto free_all = [&] {
    std::free(out);
    std::free(in);
    std::free(count);
  };
  try {
    kernel.run(groups, group, arguments, blocks);
  } catch (...) {
    free_all();
    throw;
  }
  free_all();
}

}  // namespace

const std::vector<Planted>& planted() {
  static const std::vector<Planted> all = {
      {"nothing",
       "SHARED f32 part[64]; part[me] = in[GLOBAL_ID]; BARRIER;"
       "out[GLOBAL_ID] = part[63 - me]; RAISE(count, 1);",
       "", false},
      {"read_behind", "out[GLOBAL_ID] = in[GLOBAL_ID + 1];", "out of bounds", true},
      {"read_before", "out[GLOBAL_ID] = in[GLOBAL_ID - 1];", "out of bounds", true},
      {"write_behind", "out[GLOBAL_ID + (GLOBAL_ID == 127)] = 1;", "out of bounds", true},
      {"local_behind", "SHARED f32 part[64]; part[me] = 1; BARRIER; out[GLOBAL_ID] = part[me + 1];",
       "", true},
      {"private_behind",
       "f32 mine[4]; for (int i = 0; i < 4; i++) mine[i] = in[i] + me;"
       "out[GLOBAL_ID] = mine[me < 60 ? me % 4 : 6];",
       "", true},
      {"no_barrier",
       "SHARED f32 part[64]; part[me] = in[GLOBAL_ID]; out[GLOBAL_ID] = part[me / 2];", "race",
       false},
      // In the order of the work-items nothing would come out wrong.
      {"no_barrier_harmless_order",
       "SHARED f32 part[64]; part[me] = 1; out[GLOBAL_ID] = me > 0 ? part[me - 1] : 0;", "race",
       false},
      {"no_barrier_before_reuse",
       "SHARED f32 part[64]; part[me] = in[GLOBAL_ID]; BARRIER;"
       "f32 x = part[63 - me]; part[me] = x; out[GLOBAL_ID] = x;",
       "race", false},
      {"two_writers", "out[GLOBAL_ID / 2] = 1;", "race", false},
      {"between_groups", "if (me == 0) out[5] = (f32)GROUP_ID; BARRIER;", "race", false},
      {"read_of_another_group",
       "if (GROUP_ID == 0) out[me] = 1; BARRIER; if (GROUP_ID == 1) out[64 + me] = out[me];",
       "race", false},
      {"not_all_at_barrier", "if (me < 32) { BARRIER; } out[GLOBAL_ID] = 1;", "barrier", false},
      {"two_barriers", "if (me < 32) {\n BARRIER;\n } else {\n BARRIER;\n }\n out[GLOBAL_ID] = 1;",
       "barrier", false},
      {"local_unwritten", "SHARED f32 part[64]; BARRIER; out[GLOBAL_ID] = part[me];",
       "before it is written", false},
  };
  return all;
}

int run_planted(const std::string& name) {
  for (const Planted& p : planted()) {
    if (p.name != name) continue;
    try {
      run_body(p, check_of_process());
      return 0;
    } catch (const KernelError& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return 1;
    }
  }
  std::fprintf(stderr, "no planted kernel '%s'\n", name.c_str());
  return 2;
}

TEST_CASE("planted kernels: what is wrong is found, and what is right is not") {
  if (check_of_process() != Check::accesses) return;
  for (const Planted& p : planted()) {
    // Beside arrays whose size the compiler knows a sanitizer ends the process.
    if (p.name == "private_behind" || p.name == "local_behind") continue;
    INFO(p.name);
    std::string message;
    try {
      run_body(p, Check::accesses);
    } catch (const KernelError& error) {
      message = error.what();
    }
    INFO(message);
    if (p.expected.empty()) {
      CHECK(message == "");
    } else {
      CHECK(message.find(p.expected) != std::string::npos);
    }
  }
}

TEST_CASE("planted kernels: AddressSanitizer ends the process that reads beside an array") {
  if (check_of_process() != Check::addresses) return;
  std::string self(4096, '\0');
  FILE* link = std::fopen("/proc/self/cmdline", "r");
  REQUIRE(link != nullptr);
  self.resize(std::fread(self.data(), 1, self.size(), link));
  std::fclose(link);
  self = self.c_str();  // the first of them
  for (const Planted& p : planted()) {
    if (!p.addresses && p.name != "nothing") continue;
    INFO(p.name);
    FILE* child = popen(("'" + self + "' --plant " + p.name + " 2>&1").c_str(), "r");
    REQUIRE(child != nullptr);
    std::string text(20000, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), child));
    pclose(child);
    INFO(text);
    const bool found = text.find("AddressSanitizer: ") != std::string::npos ||
                       text.find("runtime error: ") != std::string::npos;
    CHECK(found == p.addresses);
  }
}

}  // namespace kiln::gpu_host
