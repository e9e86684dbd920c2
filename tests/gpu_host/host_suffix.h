
// ---- Behind a kernel's text (see host_prefix.h).

extern "C" {
KILN_NO_HOOKS void kiln_call(void* const* kiln_arguments) { kiln_call_all(&NAME, kiln_arguments); }
KILN_NO_HOOKS int kiln_describe(std::size_t* kiln_sizes, bool* kiln_pointers) {
  return kiln_describe_all(&NAME, kiln_sizes, kiln_pointers);
}
KILN_NO_HOOKS void kiln_shared_memory(char** kiln_begin, char** kiln_end) {
  *kiln_begin = __start_kiln_shared;
  *kiln_end = __stop_kiln_shared;
}
}
