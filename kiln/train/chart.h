// Line charts as inline SVG, for the HTML report.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::train {

struct ChartSeries {
  std::string name;
  std::string
      css_class;  // gives the colour: rules for .stroke-<class> and .fill-<class> are the page's
  std::vector<std::pair<double, double>>
      points;  // x ascending; a y that is not finite breaks the line
  // Where not empty: for each point the lowest and highest value it stands for, drawn as a band
  // behind the line.
  std::vector<std::pair<double, double>> range;
  bool markers = false;  // a dot at each point, with its values as tooltip
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<ChartSeries> series;
  bool percent = false;    // y from 0 to 1 is shown as percent
  bool integer_x = false;  // ticks at whole numbers only
  bool log_y = false;      // for values above 0; others count as not finite
  bool legend = true;      // the series' names at the top right
  int width = 520;
  int height = 300;
};

// An <svg> element; empty when no series has a finite value.
std::string to_svg(const Chart& chart);

// `text` fit for HTML, as content or in a quoted attribute.
std::string html_escape(std::string_view text);
// printf of one number.
std::string format_number(const char* format, double value);

}  // namespace kiln::train
