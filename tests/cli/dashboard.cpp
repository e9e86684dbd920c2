// `kiln train --dashboard` on a terminal of its own: what stands on the screen, and what keys do.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln/core/json.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

using namespace kiln;
using kiln::test::TempDir;

namespace {

// A terminal that knows what the dashboard sends: places, clearing, lines, UTF-8, two screens.
class Terminal {
 public:
  Terminal(int columns, int rows) : columns_(columns), rows_(rows) { clear(); }

  void take(const std::string& bytes) {
    pending_ += bytes;
    size_t at = 0;
    while (at < pending_.size()) {
      const size_t used = one(at);
      if (used == 0) break;  // the rest has not come yet
      at += used;
    }
    pending_.erase(0, at);
  }
  bool has(const std::string& text) const { return row_with(text) >= 0; }
  int row_with(const std::string& text) const {
    for (int y = 0; y < rows_; ++y) {
      if (row(y).find(text) != std::string::npos) return y;
    }
    return -1;
  }
  std::string row(int y) const {
    std::string out;
    for (const std::string& cell : cells_[static_cast<size_t>(y)]) out += cell;
    return out;
  }
  std::string all() const {
    std::string out;
    for (int y = 0; y < rows_; ++y) out += row(y) + "|\n";
    return out;
  }
  bool other_screen() const { return other_; }
  bool scrolled() const { return scrolled_; }  // a line too many, or too long
  const std::string& main_screen() const { return main_; }

 private:
  void clear() {
    cells_.assign(static_cast<size_t>(rows_),
                  std::vector<std::string>(static_cast<size_t>(columns_), " "));
  }
  size_t one(size_t at) {
    const auto c = static_cast<unsigned char>(pending_[at]);
    if (c == 0x1b) return escape(at);
    const size_t size = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if (at + size > pending_.size()) return 0;
    if (!other_) {
      main_ += pending_.substr(at, size);
      return size;
    }
    if (c == '\r') {
      x_ = 0;
    } else if (c == '\n') {
      if (++y_ >= rows_) {
        scrolled_ = true;
        y_ = rows_ - 1;
      }
    } else {
      if (x_ >= columns_) {
        scrolled_ = true;
      } else {
        cells_[static_cast<size_t>(y_)][static_cast<size_t>(x_++)] = pending_.substr(at, size);
      }
    }
    return size;
  }
  size_t escape(size_t at) {
    size_t end = at + 2;
    while (end < pending_.size() && !std::isalpha(static_cast<unsigned char>(pending_[end]))) ++end;
    if (end >= pending_.size()) return 0;
    const std::string sequence = pending_.substr(at + 2, end - at - 1);
    if (sequence == "?1049h") other_ = true;
    if (sequence == "?1049l") other_ = false;
    if (sequence == "H") x_ = y_ = 0;
    if (sequence == "2J") clear();
    if (sequence == "K") {
      auto& cells = cells_[static_cast<size_t>(y_)];
      std::fill(cells.begin() + std::min(x_, columns_), cells.end(), " ");
    }
    if (sequence == "J") {
      for (int y = y_ + 1; y < rows_; ++y) {
        std::fill(cells_[static_cast<size_t>(y)].begin(), cells_[static_cast<size_t>(y)].end(),
                  " ");
      }
    }
    return end + 1 - at;
  }

  int columns_, rows_;
  int x_ = 0, y_ = 0;
  bool other_ = false, scrolled_ = false;
  std::vector<std::vector<std::string>> cells_;
  std::string pending_, main_;
};

// The program on a terminal; each wait goes on until what it waits for is there, or the program is
// gone.
class Session {
 public:
  Session(const std::vector<std::string>& arguments, int columns, int rows)
      : terminal(columns, rows) {
    winsize size{};
    size.ws_col = static_cast<unsigned short>(columns);
    size.ws_row = static_cast<unsigned short>(rows);
    const std::string path = test::program_path();
    std::vector<char*> argv{const_cast<char*>(path.c_str())};
    for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    child_ = forkpty(&fd_, nullptr, nullptr, &size);
    if (child_ == 0) {
      ::setenv("TERM", "xterm-256color", 1);
      ::setenv("LC_ALL", "C.UTF-8", 1);
      ::signal(SIGINT, SIG_DFL);
      execv(path.c_str(), argv.data());
      _exit(127);
    }
    REQUIRE(child_ > 0);
  }
  ~Session() {
    if (!gone_) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    ::close(fd_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  bool until(const std::function<bool()>& reached) {
    while (!reached()) {
      if (!read_some()) return false;
    }
    return true;
  }
  bool until_has(const std::string& text) {
    return until([&] { return terminal.has(text); });
  }
  void press(const std::string& keys) {
    REQUIRE(::write(fd_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
  }
  int end() {
    while (read_some()) {
    }
    int status = 0;
    ::waitpid(child_, &status, 0);
    gone_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  Terminal terminal;

 private:
  bool read_some() {
    char buffer[4096];
    const ssize_t got = ::read(fd_, buffer, sizeof buffer);
    if (got <= 0) return false;
    terminal.take(std::string(buffer, static_cast<size_t>(got)));
    return true;
  }
  int fd_ = -1;
  pid_t child_ = -1;
  bool gone_ = false;
};

// Digits, for longer than anybody waits; an epoch is longer than the time between two pictures, so
// that a line of the log is seen before others push it away.
std::vector<std::string> endless(const TempDir& dir) {
  const std::string config = test::write_bytes(dir.path("digits.json"), R"({
    "model": "lenet", "data": {"kind": "digits", "samples": 6000, "test_samples": 20},
    "metrics": ["accuracy", "f1"], "epochs": 100000, "batch_size": 30, "workers": 0})");
  return {"train", config, "--out", dir.path("run"), "--dashboard"};
}

// Whether the second line says "epoch N/..." with N of at least `epoch`.
bool has_reached(const Terminal& screen, int epoch) {
  const std::string row = screen.row(1);
  return row.starts_with("epoch ") && std::atoi(row.c_str() + 6) >= epoch;
}

}  // namespace

TEST_CASE("train --dashboard: 80 x 24, and its keys") {
  NEEDS_PROGRAM();
  const TempDir dir;
  Session session(endless(dir), 80, 24);
  Terminal& screen = session.terminal;
  REQUIRE(session.until([&] { return has_reached(screen, 3); }));
  CAPTURE(screen.all());
  CHECK(screen.other_screen());
  CHECK(screen.row(0).starts_with("lenet on digits"));
  CHECK(screen.row(0).find("running") != std::string::npos);
  CHECK(screen.row(1).starts_with("epoch "));
  CHECK(screen.row(2).starts_with(" 1 loss   2 accuracy   3 f1   4 lr"));
  CHECK(screen.row(3).starts_with("loss, whole run"));
  CHECK(screen.has("── step"));
  CHECK(screen.has("── train"));
  CHECK(screen.has("── valid"));
  CHECK(session.until_has("samples/s"));
  CHECK(screen.row(1).find(" left") != std::string::npos);
  CHECK(screen.row(23).starts_with("q stop and save  p pause"));
  CHECK(screen.row(22).find("epoch ") == 0);  // the log's last line
  session.press("2");
  CHECK(session.until_has("accuracy, whole run"));
  session.press("\x1b[C");
  CHECK(session.until_has("f1, whole run"));
  session.press("\x1b[D\x1b[Dv");
  CHECK(session.until_has("loss, recent"));
  session.press("p");
  CHECK(session.until_has("paused (p goes on)"));
  const std::string before = screen.row(1);
  session.press("4");  // drawn while it waits
  CHECK(session.until_has("lr, recent"));
  CHECK(screen.row(1) == before);
  session.press("p");
  CHECK(session.until([&] { return !screen.has("paused"); }));
  session.press("s");
  CHECK(session.until_has("A checkpoint is saved after the next step."));
  session.press("q");
  CHECK(session.end() == 130);
  // The other screen is left, and the lines of the log stand where lines belong.
  CHECK_FALSE(screen.other_screen());
  CHECK_FALSE(screen.scrolled());
  CHECK(screen.main_screen().find("epoch 2/100000") != std::string::npos);
  CHECK(screen.main_screen().find("Continue with: kiln train") != std::string::npos);
  const Json state = decode_json(test::read_bytes(dir.path("run/run.json")));
  CHECK(*state.find("state")->as<std::string>() == "interrupted");
  CHECK_FALSE(std::filesystem::is_empty(dir.path("run/checkpoints")));
}

TEST_CASE("train --dashboard: 200 x 60 shows both plots; Ctrl-C ends a pause; a small one fits") {
  NEEDS_PROGRAM();
  const TempDir dir;
  {
    Session session(endless(dir), 200, 60);
    REQUIRE(session.until([&] { return has_reached(session.terminal, 2); }));
    REQUIRE(session.until_has("── valid"));
    CAPTURE(session.terminal.all());
    CHECK(session.terminal.has("loss, whole run"));
    CHECK(session.terminal.row_with("loss, recent") == session.terminal.row_with("whole run"));
    CHECK(session.terminal.row(59).starts_with("q stop"));
    session.press("p");
    CHECK(session.until_has("paused"));
    session.press("\x03");
    CHECK(session.end() == 130);
    CHECK_FALSE(session.terminal.scrolled());
  }
  const TempDir other;
  Session small(endless(other), 28, 6);
  REQUIRE(small.until_has("epoch "));
  small.press("q");
  CHECK(small.end() == 130);
  CHECK_FALSE(small.terminal.scrolled());
}

TEST_CASE("train --dashboard: plain lines where there is no terminal") {
  NEEDS_PROGRAM();
  const TempDir dir;
  std::vector<std::string> arguments = endless(dir);
  arguments.insert(arguments.end(), {"--epochs", "2"});
  const test::ProgramResult result = test::run_program(arguments);
  CHECK(result.status == 0);
  CHECK(result.out.find('\x1b') == std::string::npos);
  CHECK(result.out.find("epoch 2/2") != std::string::npos);
}
