// Charts of characters, for a terminal.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kiln::dashboard {

struct TextSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x ascending
};

struct TextPlot {
  std::string title;
  std::string x_label;
  std::vector<TextSeries> series;
  int width = 80;       // columns, 30 or more
  int height = 20;      // rows of the chart itself, 4 or more
  bool unicode = true;  // braille's dots for lines; else a letter for each series
  bool colour = false;  // escape sequences; without them each series has its own mark
  bool percent = false;
};

// Lines that end in newlines; "" when there is nothing to show.
std::string to_text(const TextPlot& plot);

}  // namespace kiln::dashboard
