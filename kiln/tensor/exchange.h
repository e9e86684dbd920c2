// Tensors that are given other values while threads compute with them.
#pragma once

#include <cstdint>

namespace kiln::interop {

// Note [Exchanged values]. A tensor's values can be exchanged for others (set_data, Module::to,
// share_memory_) while a thread reads them: a server that refreshes its weights does so. An op
// reads its operands by reference, so that it costs nothing; therefore what it reads must stay
// where it is. A thread that computes without the interpreter's lock, or that calls out to Python
// from the middle of an op, says so with a ReadSection. An exchange then leaves the tensor's own
// state as it is and puts a newer version beside it; impl_of() gives each thread the version that
// it is to see. A version goes when no section is left that may see it, and the newest one becomes
// the tensor's own state when there are no sections. Without any section the exchange takes place
// at once.
//
// So one op, however many parts it is made of, sees each of its operands with one shape, one dtype
// and one memory. Nobody waits for anybody.
//
// In a program without bindings threads may use the same class: the thread that exchanges a
// tensor's values needs no other order with threads that read it in sections.
class ReadSection {
 public:
  // What this thread sees of tensors that others exchange meanwhile.
  enum class Sees { values_at_its_begin, newest };
  explicit ReadSection(Sees sees = Sees::values_at_its_begin);
  ~ReadSection();
  ReadSection(const ReadSection&) = delete;
  ReadSection& operator=(const ReadSection&) = delete;

  // Of those that began in this process: how many run now, in all threads.
  static int running();

 private:
  friend struct Exchanges;
  uint64_t since_;        // what it protects: whatever was visible after that many exchanges
  uint64_t seen_before_;  // what the thread saw until then
  const void* thread_;
};

}  // namespace kiln::interop
