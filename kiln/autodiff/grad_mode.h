// Whether this thread records ops on tracked tensors.
#pragma once

namespace kiln::autodiff {

namespace detail {
inline constinit thread_local bool recording = true;
}

inline bool is_recording() { return detail::recording; }
inline void set_recording(bool on) { detail::recording = on; }

class RecordingGuard {
 public:
  explicit RecordingGuard(bool on) : before_(is_recording()) { set_recording(on); }
  ~RecordingGuard() { set_recording(before_); }
  RecordingGuard(const RecordingGuard&) = delete;
  RecordingGuard& operator=(const RecordingGuard&) = delete;

 private:
  bool before_;
};

}  // namespace kiln::autodiff
