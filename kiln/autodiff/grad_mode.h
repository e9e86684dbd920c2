// Whether this thread records ops on tracked tensors.
#pragma once

namespace kiln::autodiff {

namespace detail {
struct RecordingState {
  bool on = true;
  bool packs = false;  // what is saved goes through hooks; see saved_hooks.h
};
// One for each decorated backend: a pass of Autodiff<Autodiff<B>> that is not recorded itself still
// lets the inner Autodiff<B> record it. Both flags are one variable, so that who has read one finds
// the other for nothing.
template <class B>
inline constinit thread_local RecordingState recording;
}  // namespace detail

template <class B>
bool is_recording() {
  return detail::recording<B>.on;
}
template <class B>
void set_recording(bool on) {
  detail::recording<B>.on = on;
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

// What this thread's graphs keep for the backward pass: everything it needs, or only what is
// expensive to compute again (Note [Recipes] in node.h).
enum class CheckpointStrategy : bool { keep_all, balanced };

namespace detail {
inline constinit thread_local CheckpointStrategy checkpoint_strategy = CheckpointStrategy::keep_all;
}  // namespace detail

inline CheckpointStrategy checkpoint_strategy() { return detail::checkpoint_strategy; }
inline void set_checkpoint_strategy(CheckpointStrategy strategy) {
  detail::checkpoint_strategy = strategy;
}

}  // namespace kiln::autodiff
