// Runs the program `kiln`, as a user would.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::test {

struct ProgramResult {
  int status = 0;  // 128 + signal when a signal ended it
  std::string out;
  std::string err;

  // The last line of what it printed.
  std::string last_line() const {
    if (out.empty()) return "";
    const auto end = out.back() == '\n' ? out.size() - 1 : out.size();
    const auto newline = out.rfind('\n', end - 1);
    const auto begin = newline == std::string::npos ? 0 : newline + 1;
    return out.substr(begin, end - begin);
  }
};

// "" when the tests were built without the program.
inline std::string program_path() {
  const char* path = std::getenv("KILN_PROGRAM");
  return path == nullptr ? "" : path;
}

// Ends a test case that has no program to run, and says so.
#define NEEDS_PROGRAM()                                \
  if (::kiln::test::program_path().empty()) {          \
    MESSAGE("skipped: KILN_PROGRAM names no program"); \
    return;                                            \
  }                                                    \
  static_assert(true)

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// It ended well, and printed each of the parts.
inline void check_prints(const ProgramResult& result, const std::vector<std::string>& parts) {
  CAPTURE(result.out);
  CAPTURE(result.err);
  CHECK(result.status == 0);
  CHECK(result.err.empty());
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(contains(result.out, part));
  }
}

// One clear line on stderr, and the status.
inline void check_error(const ProgramResult& result, int status, const std::string& part) {
  CAPTURE(result.out);
  CAPTURE(result.err);
  CHECK(result.status == status);
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  CHECK(result.err.starts_with("kiln: "));
  CHECK(contains(result.err, part));
}

// Sends `signal` as soon as `after` stands in what the program printed.
struct SendSignal {
  int signal = 0;
  std::string after = {};
};

inline ProgramResult run_program(const std::vector<std::string>& arguments,
                                 const SendSignal& send = {}) {
  int out[2];
  int err[2];
  if (pipe(out) != 0 || pipe(err) != 0) throw std::runtime_error("pipe failed");
  const std::string path = program_path();
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    for (const int fd : {out[0], out[1], err[0], err[1]}) close(fd);
    // A test runner in the background may ignore it.
    ::signal(SIGINT, SIG_DFL);
    std::vector<char*> argv{const_cast<char*>(path.c_str())};
    for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    execv(path.c_str(), argv.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  ProgramResult result;
  bool sent = send.signal == 0;
  pollfd fds[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string* const texts[2] = {&result.out, &result.err};
  int open = 2;
  while (open > 0) {
    poll(fds, 2, -1);
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t got = read(fds[i].fd, buffer, sizeof buffer);
      if (got > 0) {
        texts[i]->append(buffer, static_cast<size_t>(got));
      } else {
        close(fds[i].fd);
        fds[i].fd = -1;
        --open;
      }
    }
    if (!sent && result.out.find(send.after) != std::string::npos) {
      kill(child, send.signal);
      sent = true;
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace kiln::test
