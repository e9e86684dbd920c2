// Interrupt: Ctrl-C as a request to come to a clean end.
#pragma once

namespace kiln::train {

// While one lives, the first SIGINT, SIGTERM, SIGHUP (the terminal was closed) or SIGXFSZ (a file
// would grow beyond its limit) is only noted; a SIGINT or SIGTERM after it ends the process at
// once, with the status 128 + signal. A signal that the process ignored before (nohup, a background
// job) stays ignored. One at a time: throws ValueError when there is another.
class Interrupt {
 public:
  Interrupt();
  // Restores what the signals did before.
  ~Interrupt();
  // The same, before the end of its life. signal() stays.
  void restore();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Called by the handler before a second signal ends the process; may be null. It may do what
  // handlers may, such as write().
  static void at_once(void (*words)());

  bool requested() const { return signal() != 0; }
  // The first that came, or 0.
  int signal() const;

 private:
  bool restored_ = false;
};

}  // namespace kiln::train
