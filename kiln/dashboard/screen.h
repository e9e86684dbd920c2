// Screen: the whole terminal, drawn line by line, and its keys as they are pressed.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <termios.h>

namespace kiln::dashboard {

enum class Key { left, right, up, down, tab, back_tab, letter };
struct KeyPress {
  Key key = Key::letter;
  char letter = 0;
};

// While one lives, the terminal shows its other screen, without a cursor, and keys come unread by
// the line. Ctrl-C stays a signal. One at a time.
class Screen {
 public:
  // Whether standard input and output are terminals that can be drawn on.
  static bool is_there();

  Screen();
  // The terminal is as it was before, whatever was drawn.
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Columns and rows, as they are now.
  std::pair<int, int> size() const;
  // From the first row on; what is below them is cleared.
  void draw(const std::vector<std::string>& lines);
  // The next key that was pressed, if any; it does not wait.
  std::optional<KeyPress> key();

 private:
  termios before_{};
  std::string read_;
};

}  // namespace kiln::dashboard
