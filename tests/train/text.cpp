#include "kiln/train/text.h"

#include <limits>

#include <doctest/doctest.h>

using namespace kiln::train;

TEST_CASE("numbers for a reader") {
  CHECK(percent(0.985) == "98.50 %");
  CHECK(percent(1) == "100.00 %");
  CHECK(percent(std::numeric_limits<double>::quiet_NaN()) == "-");
  CHECK(fixed(0.03125, 3) == "0.031");
  CHECK(fixed(std::numeric_limits<double>::infinity(), 3) == "-");
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1,000");
  CHECK(grouped(-123456) == "-123,456");
  CHECK(grouped(24000000) == "24,000,000");
}

TEST_CASE("durations") {
  CHECK(duration(0.04) == "0.0 s");
  CHECK(duration(7.26) == "7.3 s");
  CHECK(duration(59.96) == "1:00");
  CHECK(duration(125) == "2:05");
  CHECK(duration(3725) == "1:02:05");
  CHECK(duration(std::numeric_limits<double>::quiet_NaN()) == "-");
}

TEST_CASE("a table lines up") {
  CHECK(text_table({{"a", "bb", "c"}, {"long", "1", "23"}, {"é", "4", ""}}) ==
        "a     bb   c\n"
        "long   1  23\n"
        "é      4\n");
  CHECK(text_table({}).empty());
}

TEST_CASE("bars") {
  CHECK(text_bar(0.5, 4, true) == "██");
  CHECK(text_bar(0.53, 4, true) == "██▏");
  CHECK(text_bar(2, 3, true) == "███");
  CHECK(text_bar(0, 3, true).empty());
  CHECK(text_bar(std::numeric_limits<double>::quiet_NaN(), 3, true).empty());
  CHECK(text_bar(0.5, 4, false) == "##");
  CHECK(text_width("██▏a") == 4);
}
