// Whether this thread records ops on tracked tensors.
#pragma once

namespace kiln::autodiff {

namespace detail {
// One for each decorated backend: a pass of Autodiff<Autodiff<B>> that is not recorded itself still
// lets the inner Autodiff<B> record it.
template <class B>
inline constinit thread_local bool recording = true;
}  // namespace detail

template <class B>
bool is_recording() {
  return detail::recording<B>;
}
template <class B>
void set_recording(bool on) {
  detail::recording<B> = on;
}

template <class B>
class RecordingGuard {
 public:
  explicit RecordingGuard(bool on) : before_(is_recording<B>()) { set_recording<B>(on); }
  ~RecordingGuard() { set_recording<B>(before_); }
  RecordingGuard(const RecordingGuard&) = delete;
  RecordingGuard& operator=(const RecordingGuard&) = delete;

 private:
  bool before_;
};

}  // namespace kiln::autodiff
