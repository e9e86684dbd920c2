// The style sheet of the HTML report. For report.cpp.
#pragma once

namespace kiln::train {

inline constexpr const char* kReportStyle = R"css(
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --ink: #1c2330; --soft: #667085;
  --rule: #e3e7ed; --a: 1; --blue: 37 99 205; --orange: 214 92 28;
  --green: 22 128 84; --purple: 126 58 190; --cell-ink: #1c2330; }
@media (prefers-color-scheme: dark) { :root { --page: #12151b; --card: #1b2029; --ink: #e6e9ef;
  --soft: #98a2b3; --rule: #2e3643; --blue: 96 156 255; --orange: 255 146 82;
  --green: 78 201 150; --purple: 190 140 255; --cell-ink: #e6e9ef; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); line-height: 1.5;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
  font-variant-numeric: tabular-nums; }
main { max-width: 1100px; margin: 0 auto; padding: 32px 20px 24px; }
header p { margin: 4px 0 0; color: var(--soft); }
h1 { font-size: 28px; line-height: 1.2; margin: 0; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 0 0 14px; }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 12px;
  padding: 20px 22px; margin-top: 18px; }
.tiles { display: flex; flex-wrap: wrap; gap: 14px; margin-top: 22px; }
.tile { flex: 1 1 180px; background: var(--card); border: 1px solid var(--rule); border-radius: 12px;
  padding: 14px 18px; }
.tile .value { font-size: 26px; font-weight: 650; line-height: 1.25; }
.tile:first-child .value { color: rgb(var(--blue)); }
.tile .what { color: var(--soft); font-size: 13px; }
.pair { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 400px), 1fr)); gap: 8px 20px; }
.chart { width: 100%; height: auto; display: block; margin-bottom: 12px; }
.wide { min-width: 720px; }
.chart text { font-size: 12px; fill: var(--soft); }
.chart .chart-title { font-size: 14px; font-weight: 600; fill: var(--ink); }
.chart .legend { fill: var(--ink); }
.grid { stroke: var(--rule); stroke-width: 1; }
.axis { stroke: var(--soft); stroke-width: 1; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.band { opacity: .18; }
.stroke-a { stroke: rgb(var(--blue)); } .fill-a { fill: rgb(var(--blue)); }
.stroke-b { stroke: rgb(var(--orange)); } .fill-b { fill: rgb(var(--orange)); }
.stroke-c { stroke: rgb(var(--green)); } .fill-c { fill: rgb(var(--green)); }
.stroke-d { stroke: rgb(var(--purple)); } .fill-d { fill: rgb(var(--purple)); }
.dot { stroke: var(--card); stroke-width: 1; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; }
th { font-weight: 600; }
.confusion { margin: 0 auto; border-collapse: separate; border-spacing: 2px; }
.confusion th { color: var(--soft); padding: 3px 8px; font-size: 13px; }
.confusion td { min-width: 52px; height: 36px; padding: 2px 6px; text-align: center; border-radius: 5px;
  color: var(--cell-ink); }
.confusion .right { background: rgb(var(--blue) / var(--a)); }
.confusion .wrong { background: rgb(var(--orange) / var(--a)); }
.confusion .strong { color: #fff; }
.confusion .zero { color: var(--soft); opacity: .5; }
.confusion .sum { color: var(--soft); font-size: 13px; white-space: nowrap; }
@media (prefers-color-scheme: dark) { .confusion .strong { color: #0b0e13; } }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(84px, 1fr)); gap: 14px; }
figure { margin: 0; text-align: center; }
figure img { width: 84px; height: 84px; object-fit: contain; image-rendering: pixelated;
  background: #000; border-radius: 6px; }
figcaption { font-size: 13px; line-height: 1.35; margin-top: 4px; color: var(--soft); }
figcaption b { color: var(--ink); } figcaption .bad { color: rgb(var(--orange)); }
.epochs { width: 100%; font-size: 14px; }
.epochs th, .epochs td { text-align: right; padding: 6px 10px; border-bottom: 1px solid var(--rule);
  white-space: nowrap; }
.epochs th { color: var(--soft); font-size: 13px; }
.epochs th:first-child, .epochs td:first-child { text-align: left; }
.epochs tbody tr:last-child td { border-bottom: 0; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 380px), 1fr)); gap: 24px; }
dl { display: grid; grid-template-columns: minmax(110px, max-content) 1fr; gap: 5px 18px; margin: 0; font-size: 14px; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
footer { color: var(--soft); font-size: 13px; text-align: center; margin-top: 22px; }
@media print { body { background: none; } section, .tile { break-inside: avoid; } }
)css";

}  // namespace kiln::train
