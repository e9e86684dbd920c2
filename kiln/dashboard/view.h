// DashboardView: what the dashboard of a run shows, and its drawing as lines of text.
#pragma once

#include <string>
#include <vector>

#include "kiln/dashboard/text_plot.h"
#include "kiln/train/progress.h"

namespace kiln::dashboard {

// A metric's curves, over the whole run and over its last part.
struct DashboardMetric {
  std::string name;
  bool percent = false;
  std::string whole_label, recent_label;  // of the x axes: "epochs"
  std::vector<TextSeries> whole, recent;
};

struct DashboardView {
  std::string title;    // "resnet18 on image_folder"
  std::string status;   // "running 1:02"
  bool urgent = false;  // the status wants to be seen: paused, stopping
  train::ProgressState progress;
  std::vector<std::string> tabs;  // names of metrics
  size_t tab = 0;                 // which is shown
  DashboardMetric metric;         // that one
  bool recent = false;            // its last part, where there is room for one plot
  std::string resources;          // one line
  std::vector<std::string> log;   // the last line last
  bool unicode = true;
};

// Exactly `height` lines, none with more than `width` columns; colours are escape sequences. Wide
// terminals have both plots side by side. Below 30 columns or 8 rows: progress alone.
std::vector<std::string> draw_dashboard(const DashboardView& view, int width, int height);

// The first `width` columns of a line with escape sequences.
std::string fit_line(const std::string& line, int width);

}  // namespace kiln::dashboard
