#include "bench/html_report.h"

#include <algorithm>

#include "bench/machine.h"
#include "bench/text.h"

namespace kiln::bench {
namespace {

constexpr const char* kStyle = R"css(
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --ink: #1c2330; --soft: #667085;
  --rule: #e3e7ed; --blue: rgb(37 99 205); --orange: rgb(214 92 28); }
@media (prefers-color-scheme: dark) { :root { --page: #12151b; --card: #1b2029; --ink: #e6e9ef;
  --soft: #98a2b3; --rule: #2e3643; --blue: rgb(96 156 255); --orange: rgb(255 146 82); } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font-variant-numeric: tabular-nums;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 1000px; margin: 0 auto; padding: 32px 20px; }
h1 { font-size: 28px; line-height: 1.2; margin: 0; }
header p, .what, .peak, footer { color: var(--soft); }
header p { margin: 4px 0 0; }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 12px;
  padding: 6px 22px; margin-top: 18px; }
.row { display: grid; grid-template-columns: minmax(0, 5fr) minmax(0, 7fr) 104px; gap: 4px 20px;
  align-items: center; padding: 10px 0; border-bottom: 1px solid var(--rule); }
.row:last-child { border-bottom: 0; }
.name { font-weight: 600; overflow-wrap: anywhere; }
.what, .peak, footer { font-size: 13px; font-weight: 400; }
.peak { white-space: nowrap; }
.line { display: grid; grid-template-columns: 1fr 80px; gap: 10px; align-items: center;
  font-size: 13px; }
.line span { text-align: right; white-space: nowrap; }
.bar { height: 10px; border-radius: 3px; min-width: 2px; }
.kiln { background: var(--blue); } .peer, .compiled { background: var(--orange); }
.compiled { opacity: 0.55; }
.ratio { text-align: right; font-size: 18px; font-weight: 650; }
.ahead { color: var(--blue); } .behind { color: var(--orange); }
.problem { grid-column: 1 / -1; color: var(--orange); font-size: 13px; }
.key { display: inline-block; width: 12px; height: 10px; border-radius: 3px; margin: 0 4px 0 12px; }
@media (max-width: 640px) { .row { grid-template-columns: 1fr 70px; } .bars { grid-row: 2;
  grid-column: 1 / -1; } }
)css";

std::string bar(const char* side, double seconds, double longest) {
  return format(
             "<div class=\"line\"><div><div class=\"bar %s\" style=\"width:%.1f%%\"></div></div>",
             side, seconds / longest * 100) +
         "<span>" + format_time(seconds) + "</span></div>";
}

std::string row(const Result& result) {
  const double kiln = result.kiln.median;
  const FloorResult* compiled = nullptr;
  for (const FloorResult& floor : result.floors) {
    if (floor.name == kCompiled) compiled = &floor;
  }
  double longest = result.peer ? std::max(kiln, result.peer->median) : kiln;
  if (compiled != nullptr) longest = std::max(longest, compiled->seconds.median);
  std::string html = "<div class=\"row\"><div><div class=\"name\">" + result.row.name +
                     "</div><div class=\"what\">" + escape_html(result.row.what) + "</div></div>";
  html += "<div class=\"bars\">" + bar("kiln", kiln, longest);
  if (result.peer) html += bar("peer", result.peer->median, longest);
  if (compiled != nullptr) html += bar("compiled", compiled->seconds.median, longest);
  html += "</div><div class=\"ratio ";
  if (result.ratio) {
    html += result.ratio->median >= 1 ? "ahead\">" : "behind\">";
    html += three_digits(result.ratio->median) + "&times;";
  } else {
    html += "\">";
  }
  if (result.peak_fraction > 0) {
    html +=
        "<div class=\"peak\">" + format("%.0f %% of peak", result.peak_fraction * 100) + "</div>";
  }
  html += "</div>";
  if (!result.problem.empty()) {
    html += "<div class=\"problem\">" + escape_html(result.problem) + "</div>";
  }
  return html + "</div>\n";
}

}  // namespace

std::string html_report(const std::vector<Result>& results, const Peaks& peaks,
                        const std::string& peer) {
  const std::string title = peer.empty() ? "Kiln benchmark" : "Kiln beside " + peer;
  std::string html =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
      escape_html(title) + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n<main>\n";
  html += "<header><h1>" + escape_html(title) + "</h1>\n<p>" + escape_html(processor_name()) + ", ";
  html +=
      format("%d thread%s: multiply-add %.0f GFLOP/s; memory %.0f GB/s, cache %.0f GB/s",
             peaks.threads, peaks.threads == 1 ? "" : "s", peaks.flops / 1e9,
             std::max({peaks.copy, peaks.add, peaks.add_streaming}) / 1e9, peaks.add_cached / 1e9);
  if (!peer.empty())
    html += "; " + escape_html(peer + " " +
                               (peer_setup().empty() ? "as installed" : "with " + peer_setup()));
  html += "</p></header>\n<section>\n";
  for (const Result& result : results) {
    if (result.is_measured()) html += row(result);
  }
  html += "</section>\n<footer><p><span class=\"key kiln\"></span>Kiln";
  if (!peer.empty()) html += "<span class=\"key peer\"></span>" + escape_html(peer);
  const bool has_compiled = std::any_of(results.begin(), results.end(), [](const Result& result) {
    return std::any_of(result.floors.begin(), result.floors.end(),
                       [](const FloorResult& floor) { return floor.name == kCompiled; });
  });
  if (has_compiled) html += std::string("<span class=\"key compiled\"></span>") + kCompiled;
  html += ". Median time of one iteration, shorter is better";
  if (!peer.empty()) html += "; the two ran in turns, and the ratio is the median of the pairs";
  return html + ".</p></footer>\n</main>\n</body>\n</html>\n";
}

}  // namespace kiln::bench
