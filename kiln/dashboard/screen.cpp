#include "kiln/dashboard/screen.h"

#include <cstdlib>
#include <string_view>

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kiln/train/interrupt.h"

namespace kiln::dashboard {

namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[2J";
constexpr std::string_view kLeave = "\x1b[0m\x1b[?25h\x1b[?1049l";

// What a handler of signals must undo.
termios saved;

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void restore() {
  put(kLeave);
  tcsetattr(STDIN_FILENO, TCSANOW, &saved);
}

}  // namespace

bool Screen::is_there() {
  const char* term = std::getenv("TERM");
  return isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0 && term != nullptr &&
         *term != '\0' && std::string_view(term) != "dumb";
}

Screen::Screen() {
  tcgetattr(STDIN_FILENO, &before_);
  saved = before_;
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_lflag |= NOFLSH;  // Ctrl-C would throw away what is on its way to the screen, escapes half
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  raw.c_cc[VSUSP] = _POSIX_VDISABLE;  // a stopped program would leave the other screen behind
  tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  put(kEnter);
  train::Interrupt::at_once(restore);
}

Screen::~Screen() {
  train::Interrupt::at_once(nullptr);
  restore();
}

std::pair<int, int> Screen::size() const {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
    return {size.ws_col, size.ws_row};
  }
  return {80, 24};
}

void Screen::draw(const std::vector<std::string>& lines) {
  // In one piece, between marks that newer terminals show at once.
  std::string out = "\x1b[?2026h\x1b[H";
  for (size_t i = 0; i < lines.size(); ++i) {
    out += lines[i] + "\x1b[0m\x1b[K";
    if (i + 1 < lines.size()) out += "\r\n";
  }
  put(out + "\x1b[J\x1b[?2026l");
}

std::optional<KeyPress> Screen::key() {
  pollfd in{STDIN_FILENO, POLLIN, 0};
  if (poll(&in, 1, 0) > 0) {
    char buffer[64];
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (got > 0) read_.append(buffer, static_cast<size_t>(got));
  }
  if (read_.empty()) return {};
  static constexpr std::pair<std::string_view, Key> kNamed[] = {
      {"\x1b[D", Key::left},     {"\x1b[C", Key::right}, {"\x1b[A", Key::up}, {"\x1b[B", Key::down},
      {"\x1bOD", Key::left},     {"\x1bOC", Key::right}, {"\x1bOA", Key::up}, {"\x1bOB", Key::down},
      {"\x1b[Z", Key::back_tab}, {"\t", Key::tab}};
  for (const auto& [bytes, key] : kNamed) {
    if (!read_.starts_with(bytes)) continue;
    read_.erase(0, bytes.size());
    return KeyPress{key, 0};
  }
  const char first = read_[0];
  if (first == '\x1b') {  // a key that means nothing here
    read_.clear();
    return {};
  }
  read_.erase(0, 1);
  return KeyPress{Key::letter, first};
}

}  // namespace kiln::dashboard
