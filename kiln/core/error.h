// The errors that Kiln throws. Every one derives from kiln::Error.
//
// Message grammar: `op: what is wrong; got ...; expected ...`, so that a reader sees which call
// failed, what it was given and what would have been legal.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace kiln {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ShapeError : public Error {
 public:
  using Error::Error;
};

class DTypeError : public Error {
 public:
  using Error::Error;
};

class DeviceError : public Error {
 public:
  using Error::Error;
};

// An index or a dim outside its range.
class IndexError : public Error {
 public:
  using Error::Error;
};

class ValueError : public Error {
 public:
  using Error::Error;
};

// A file that is missing, unwritable, truncated or malformed.
class IoError : public Error {
 public:
  using Error::Error;
};

// A graph that cannot be differentiated as asked: freed, modified in place, not tracked.
class AutodiffError : public Error {
 public:
  using Error::Error;
};

// What an earlier backward pass freed. The outcome of a second pass over one graph.
class FreedGraphError final : public AutodiffError {
 public:
  using AutodiffError::AutodiffError;
};

class NotImplementedError : public Error {
 public:
  using Error::Error;
};

// A name that is malformed, taken or unknown.
class KeyError : public Error {
 public:
  using Error::Error;
};

// A value of another class than the one expected.
class TypeError : public Error {
 public:
  using Error::Error;
};

// A part of a module that does not exist, or is of another kind.
class AttributeError : public Error {
 public:
  using Error::Error;
};

// What went wrong while a call was carried out: a state dict that does not fit, hooks that
// contradict one another.
class RuntimeError : public Error {
 public:
  using Error::Error;
};

namespace detail {

inline void append(std::string& out, const char* text) { out += text; }
inline void append(std::string& out, const std::string& text) { out += text; }
inline void append(std::string& out, std::string_view text) { out += text; }
inline void append(std::string& out, char c) { out += c; }
inline void append(std::string& out, bool b) { out += b ? "true" : "false"; }
inline void append(std::string& out, int v) { out += std::to_string(v); }
inline void append(std::string& out, long v) { out += std::to_string(v); }
inline void append(std::string& out, long long v) { out += std::to_string(v); }
inline void append(std::string& out, unsigned v) { out += std::to_string(v); }
inline void append(std::string& out, unsigned long v) { out += std::to_string(v); }
inline void append(std::string& out, unsigned long long v) { out += std::to_string(v); }
void append(std::string& out, double v);  // shortest form that reads well (%g)

}  // namespace detail

// Joins its arguments into one string. Anything with a `to_string(x)` found by argument-dependent
// lookup works too.
template <class... Args>
std::string concat(const Args&... args) {
  std::string out;
  [[maybe_unused]] const auto one = [&out](const auto& arg) {
    if constexpr (requires { detail::append(out, arg); }) {
      detail::append(out, arg);
    } else {
      out += to_string(arg);
    }
  };
  (one(args), ...);
  return out;
}

// throw_error<ShapeError>("add: ", a.shape(), " and ", b.shape(), " do not broadcast")
template <class E, class... Args>
[[noreturn, gnu::cold, gnu::noinline]] void throw_error(const Args&... args) {
  throw E(concat(args...));
}

}  // namespace kiln
