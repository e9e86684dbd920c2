// How the digits are written: per class a few styles, each a few pen strokes. For digits.cpp.
#pragma once

#include <span>

namespace kiln::data::detail {

struct Point {
  float x, y;
};

// Points that the pen passes, in a box of 1 by 1 with y downwards. The curve through them is
// smooth; a point that stands twice makes a corner.
using Stroke = std::span<const Point>;

struct Style {
  std::span<const Stroke> strokes;
  float weight;  // how often it is drawn, relative to the other styles of the class
};

// The styles of digit 0 to 9.
std::span<const Style> digit_styles(int digit);

}  // namespace kiln::data::detail
