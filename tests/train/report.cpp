#include "kiln/train/report.h"

#include <cmath>
#include <set>

#include <doctest/doctest.h>

#include "kiln/data/digits.h"
#include "kiln/train/chart.h"
#include "tests/support/temp_dir.h"

using namespace kiln;
using namespace kiln::train;
using kiln::test::read_bytes;
using kiln::test::TempDir;

namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TrainingReport example() {
  TrainingReport r;
  r.title = "Digits";
  r.subtitle = "a test";
  r.config = {{"batch size", "64"}};
  r.machine = {{"threads", "2"}};
  for (int e = 1; e <= 3; ++e)
    r.epochs.push_back({e, 1.0 / e, 0.5 + 0.1 * e, 1.1 / e, 0.4 + 0.1 * e, 2.5, 1e-3});
  for (int i = 0; i < 1000; ++i) r.step_loss.push_back(1.0 / (1 + i));
  r.final_accuracy = 0.98765;
  r.class_names = {"cat", "dog"};
  r.confusion = {8, 2, 0, 5};
  Mistake m;
  m.image = TensorData(Shape{28, 28}, u8, data::make_digits(1, 1).images.storage());
  m.label = 0;
  m.predicted = 1;
  m.probability = 0.61;
  r.mistakes = {m};
  return r;
}

// The end of the tag that begins at `at`; quoted attributes may hold a '>'.
size_t tag_end(const std::string& html, size_t at) {
  bool quoted = false;
  for (; at < html.size() && (quoted || html[at] != '>'); ++at)
    quoted = quoted != (html[at] == '"');
  return at;
}

// Every element that is opened is closed, in order.
bool balanced(const std::string& html) {
  const std::set<std::string> without_end{"!DOCTYPE", "meta", "img", "br"};
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at)) {
    const size_t end = tag_end(html, at);
    std::string name = html.substr(at + 1, html.find_first_of(" >", at) - at - 1);
    at = end;
    if (without_end.contains(name) || html[end - 1] == '/') continue;
    if (name[0] != '/') {
      open.push_back(name);
    } else {
      if (open.empty() || open.back() != name.substr(1)) return false;
      open.pop_back();
    }
  }
  return open.empty();
}

// The page without the images' base64, which may hold any characters.
std::string without_images(std::string html) {
  for (size_t at = html.find("base64,"); at != std::string::npos;
       at = html.find("base64,", at + 1)) {
    html.erase(at + 7, html.find('"', at) - at - 7);
  }
  return html;
}

}  // namespace

TEST_CASE("to_html: what the report holds is on the page") {
  const std::string html = to_html(example());
  CHECK(html.rfind("<!DOCTYPE html>", 0) == 0);
  CHECK(balanced(html));
  for (const char* part : {"<h1>Digits</h1>", "a test", "98.77 %", "batch size", "threads",
                           "0.5500", "cat", "dog", "80.0 %", "61 %", "2.5 s", "7.5 s", "70.00 %"}) {
    CAPTURE(part);
    CHECK(contains(html, part));
  }
  CHECK(count(html, "<svg") == 3);
  CHECK(count(html, "<circle") == 12);
  CHECK(count(html, "data:image/png;base64,iVBORw0KGgo") == 1);
  CHECK(!contains(html, "nan"));
  CHECK(!contains(html, "inf"));
}

TEST_CASE("to_html: one file, nothing from elsewhere, no scripts") {
  const std::string html = without_images(to_html(example()));
  CHECK(contains(html, "default-src 'none'"));
  CHECK(contains(html, "prefers-color-scheme: dark"));
  for (const char* part : {"http:", "https:", "//", "<script", "<link", "@import", "url("}) {
    CAPTURE(part);
    CHECK(!contains(html, part));
  }
}

TEST_CASE("to_html: every text is escaped") {
  const std::string evil = "<script>alert('x')</script>&\"\x01";
  TrainingReport r = example();
  r.title = r.subtitle = evil;
  r.config = r.machine = {{evil, evil}};
  r.class_names = {evil, evil};
  const std::string html = to_html(r);
  CHECK(!contains(html, "<script"));
  CHECK(!contains(html, "\x01"));
  CHECK(count(html, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot; ") >= 12);
  CHECK(balanced(html));
}

TEST_CASE("to_html: parts that are empty or not measured are left out") {
  const std::string html = to_html(TrainingReport{});
  CHECK(balanced(html));
  CHECK(!contains(html, "<section"));
  CHECK(!contains(html, "<svg"));

  TrainingReport r;
  r.epochs = {EpochRecord{1}};
  r.step_loss = {kNotMeasured, std::numeric_limits<double>::infinity()};
  const std::string unmeasured = to_html(r);
  CHECK(!contains(unmeasured, "<svg"));
  CHECK(!contains(unmeasured, "nan"));
  CHECK(balanced(unmeasured));
}

TEST_CASE("to_html: odd numbers do not break the charts") {
  TrainingReport r;
  r.epochs = {{1, 5.0, 1.0, kNotMeasured, 1.0, 1, 0},
              {2, std::numeric_limits<double>::infinity(), 1.0, 3.0, 1.0, 1, 0},
              {3, 1e300, 1.0, -1e300, 0.0, 90, 0},
              {4, 0.0, 1.0, 0.0, 0.5, 4000, 0}};
  r.step_loss = {1e-300, 1e300, 0, -5, kNotMeasured, 1e-12};
  const std::string html = to_html(r);
  CHECK(balanced(html));
  CHECK(!contains(html, "nan"));
  CHECK(!contains(html, "inf"));
  CHECK(contains(html, "1 min 30 s"));
  CHECK(contains(html, "1 h 6 min"));
  r.step_loss = {0.5};
  r.epochs.resize(1);
  CHECK(count(to_html(r), "<svg") == 3);
}

TEST_CASE("to_html: a long run stays a small page") {
  TrainingReport r;
  for (int e = 1; e <= 500; ++e) r.epochs.push_back({e, 1.0 / e, 0.9, 1.0 / e, 0.9, 1, 1e-3});
  for (int i = 0; i < 300'000; ++i) r.step_loss.push_back(2 + std::sin(i * 0.01));
  CHECK(to_html(r).size() < 400'000);
}

TEST_CASE("to_html: a confusion matrix must be square and fit its names") {
  TrainingReport r = example();
  r.confusion.push_back(1);
  CHECK_THROWS_AS(to_html(r), ValueError);
  r.confusion = std::vector<int64_t>(9, 1);
  CHECK_THROWS_AS(to_html(r), ValueError);
  r.class_names.clear();
  CHECK(contains(to_html(r), "33.3 %"));
  r = example();
  r.mistakes[0].image = TensorData(Shape{28, 28}, f32);
  CHECK_THROWS_AS(to_html(r), DTypeError);
  // Classes without samples have no recall.
  r = example();
  r.confusion = {0, 0, 0, 0};
  CHECK(!contains(to_html(r), "nan"));
}

TEST_CASE("to_svg: ticks are round numbers and the curve stays inside") {
  Chart chart;
  chart.title = "t";
  chart.integer_x = true;
  chart.series = {{"s", "a", {{1, 0.13}, {2, 0.87}}, {}, false}};
  const std::string svg = to_svg(chart);
  for (const char* tick : {">0.0<", ">0.2<", ">0.8<", ">1.0<", ">1<", ">2<"}) {
    CAPTURE(tick);
    CHECK(contains(svg, tick));
  }
  CHECK(!contains(svg, ">1.5<"));
  CHECK(to_svg(Chart{}).empty());
}

TEST_CASE("write_html_report: the file is the page") {
  TempDir dir;
  const TrainingReport r = example();
  write_html_report(dir.path("report.html"), r);
  CHECK(read_bytes(dir.path("report.html")) == to_html(r));
  CHECK_THROWS_AS(write_html_report(dir.path("none/report.html"), r), IoError);
}
