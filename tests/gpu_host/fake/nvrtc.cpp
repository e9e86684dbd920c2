// A libnvrtc.so.13 for tests: what it "compiles" is the text itself, which the driver that tests
// play takes. A text with "#error" does not compile.
#include <cstring>
#include <string>

#define FAKE extern "C" __attribute__((visibility("default"))) int

namespace {

struct NvrtcProgram {
  std::string text;
  std::string log;
  bool compiled = false;
};
constexpr char kTextMagic[8] = {'K', 'I', 'L', 'N', 'T', 'E', 'X', 'T'};

}  // namespace

FAKE nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
FAKE nvrtcCreateProgram(NvrtcProgram** program, const char* text, const char*, int headers,
                        const char* const*, const char* const*) {
  if (headers != 0) return 3;
  *program = new NvrtcProgram{text, "", false};
  return 0;
}
FAKE nvrtcCompileProgram(NvrtcProgram* program, int count, const char* const* options) {
  bool has_architecture = false;
  for (int i = 0; i < count; ++i) {
    has_architecture |= std::string(options[i]).starts_with("--gpu-architecture=sm_");
  }
  if (!has_architecture) return 5;
  if (program->text.find("#error planted") != std::string::npos) {
    program->log = "kernel.cu(1): error: planted";
    return 6;
  }
  program->compiled = true;
  return 0;
}
FAKE nvrtcDestroyProgram(NvrtcProgram** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
FAKE nvrtcGetProgramLogSize(NvrtcProgram* program, size_t* size) {
  *size = program->log.size() + 1;
  return 0;
}
FAKE nvrtcGetProgramLog(NvrtcProgram* program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return 0;
}
FAKE nvrtcGetCUBINSize(NvrtcProgram* program, size_t* size) {
  if (!program->compiled) return 9;
  *size = sizeof kTextMagic + program->text.size() + 1;
  return 0;
}
FAKE nvrtcGetCUBIN(NvrtcProgram* program, char* out) {
  std::memcpy(out, kTextMagic, sizeof kTextMagic);
  std::memcpy(out + sizeof kTextMagic, program->text.c_str(), program->text.size() + 1);
  return 0;
}
