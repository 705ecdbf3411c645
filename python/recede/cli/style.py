"""The style sheet of the page: light, dark, printed, in forced colors, and on a phone."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1a1d21; --soft: #5a626b; --grid: #dfe3e8; --panel: #f5f7f9;
  --one: #0a5fb0; --two: #b3450b; --three: #2c7a3f; --four: #7a3fa0; --thin: #98a1ab; --pale: #c3dbf2; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --ink: #e9ecef; --soft: #a3acb5; --grid: #333a41;
  --panel: #1d2125; --one: #6cb2f7; --two: #f2995c; --three: #74c98a; --four: #c79bea; --thin: #727c86;
  --pale: #1f4468; } }
@media print { :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --grid: #ccc; --panel: #fff;
  --one: #0a5fb0; --two: #b3450b; --three: #2c7a3f; --four: #7a3fa0; --thin: #888; --pale: #c3dbf2; } }
@media (forced-colors: active) { :root { --paper: Canvas; --ink: CanvasText; --soft: CanvasText; --grid: GrayText;
  --panel: Canvas; --one: LinkText; --two: CanvasText; --three: CanvasText; --four: CanvasText; --thin: GrayText;
  --pale: Canvas; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1rem 3rem; max-width: 60rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 3rem 0 .25rem; }
h3 { font-size: 1.05rem; line-height: 1.3; margin: 0 0 .25rem; }
h4 { font-size: .95rem; margin: 1.75rem 0 .75rem; }
p { margin: 0 0 .75rem; max-width: 46rem; }
.note, .legend, dl, footer, details, caption { color: var(--soft); font-size: .9rem; }
.verdict { margin: 1.25rem 0; padding: 1rem 1.25rem; list-style: none; background: var(--panel);
  border-left: .3rem solid var(--one); }
.verdict li { margin: .5rem 0 0; }
.verdict li::first-letter { text-transform: uppercase; }
.verdict li:first-child { margin: 0; font-size: 1.2rem; font-weight: 600; line-height: 1.35; }
.notes { margin: 1rem 0; padding: 0 0 0 1.1rem; color: var(--soft); font-size: .9rem; }
.notes li { margin: .25rem 0; }
.notes li::first-letter { text-transform: uppercase; }
.printed { display: none; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: 1rem 0; }
dt { font-weight: 600; color: var(--ink); }
dd { margin: 0; }
pre { margin: .5rem 0 0; padding: .6rem .8rem; background: var(--paper); border: 1px solid var(--grid);
  white-space: pre-wrap; font: .9rem/1.4 ui-monospace, "SFMono-Regular", Consolas, "Liberation Mono", monospace; }
article { margin: 1.5rem 0 0; padding: 1.5rem 0 0; border-top: 1px solid var(--grid); }
figure { display: flow-root; margin: 1rem 0; overflow: clip; break-inside: avoid; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; margin: 0 0 .75rem; padding: 0; list-style: none; }
.legend li { display: flex; align-items: center; gap: .5rem; }
.legend b { color: var(--ink); font-weight: 600; }
.legend svg { flex: none; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .875rem; line-height: 1.35; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: 0 0 .5rem; }
th, td { padding: .3rem .75rem; border-bottom: 1px solid var(--grid); text-align: right; vertical-align: bottom;
  color: var(--ink); }
td { white-space: nowrap; }
th:first-child { text-align: left; padding-left: 0; min-width: 12.75rem; }
thead th + th { overflow-wrap: normal; }
thead th { border-bottom-color: var(--soft); }
tbody th { font-weight: 400; }
tr.best > * { font-weight: 700; }
summary { cursor: pointer; }
.chart { display: block; font-size: 13px; }
.chart text { fill: var(--ink); }
.ground { fill: var(--paper); }
.lines { --right: 64px; margin: 28px var(--right) 30px 46px; width: calc(100% - 46px - var(--right)); }
.plot { margin: 12px 16px 44px 52px; width: calc(100% - 68px); }
.columns { margin: 24px 8px 44px; width: calc(100% - 16px); }
.bars { margin: 0 128px 0 1px; width: calc(100% - 129px); }
.panel { margin: 1.25rem 0 0; }
figcaption { max-width: 46rem; }
.timeline { margin: 32px 52px 22px 54px; width: calc(100% - 106px); }
.timeline.last { margin-bottom: 42px; }
.timeline text { fill: var(--soft); }
.chart .left { text-anchor: end; }
.chart .middle { text-anchor: middle; }
.lines text, .plot text, .columns text { fill: var(--soft); }
.lines .end { font-weight: 600; }
.chart .name { font-weight: 500; }
.chart .best { font-weight: 700; }
.chart .tool { font-family: ui-monospace, "SFMono-Regular", Consolas, "Liberation Mono", monospace; }
.grid { stroke: var(--grid); }
.axis { stroke: var(--soft); }
.hover { fill: transparent; }
.hover:hover { fill: var(--thin); opacity: .2; }
.point { fill: var(--one); fill-opacity: .7; stroke: var(--paper); }
.point.costlier { fill: var(--two); }
.layer { stroke: var(--paper); stroke-width: .75; vector-effect: non-scaling-stroke; }
.layer-0 { fill: var(--thin); }
.layer-1 { fill: var(--one); }
.layer-2 { fill: var(--two); }
.layer-3 { fill: var(--three); }
.layer-4 { fill: var(--four); }
.layer-5 { fill: var(--pale); }
.layer-6 { fill: var(--grid); }
.block.masked { fill: var(--two); }
.block.result { fill: var(--one); }
.block.text { fill: var(--thin); }
.tick { stroke: var(--soft); }
.leader { stroke: var(--thin); fill: none; }
polyline, .sample line { fill: none; stroke-width: 2; stroke-linejoin: round; vector-effect: non-scaling-stroke; }
.thin { stroke: var(--thin); stroke-width: 1; opacity: .75; }
.line-0 { stroke: var(--ink); stroke-width: 2.5; }
.line-1 { stroke: var(--one); stroke-width: 2.5; }
.line-2 { stroke: var(--two); stroke-dasharray: 7 4; }
.line-3 { stroke: var(--three); stroke-dasharray: 2 3; }
.line-4 { stroke: var(--four); stroke-dasharray: 10 3 2 3; }
.mark-1, .mark-2, .mark-3, .mark-4 { stroke: var(--paper); stroke-width: 1; }
.mark-1 { fill: var(--one); }
.mark-2 { fill: var(--two); }
.mark-3 { fill: var(--three); }
.mark-4 { fill: var(--four); }
.lines .end-0 { fill: var(--ink); }
.lines .end-1 { fill: var(--one); }
.lines .end-2 { fill: var(--two); }
.lines .end-3 { fill: var(--three); }
.lines .end-4 { fill: var(--four); }
.bar { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.cached, .source { fill: var(--one); }
.cached.costlier { fill: var(--two); }
.uncached { fill: url(#hatch); stroke: var(--soft); }
.cached.reference, .uncached.reference { fill: var(--paper); stroke: var(--soft); stroke-width: 1.5; }
.cached.reference { stroke: var(--one); stroke-dasharray: 5 3; }
.chart .aside, tr.reference > * { font-style: italic; color: var(--soft); }
.layer, .block, .point { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.written, .served, .plain, .move { vector-effect: non-scaling-stroke; print-color-adjust: exact;
  -webkit-print-color-adjust: exact; }
.written { fill: var(--two); }
.served { fill: var(--pale); stroke: var(--one); stroke-width: .75; }
.plain { fill: var(--paper); stroke: var(--soft); stroke-dasharray: 3 2; }
.move { fill: none; stroke: var(--ink); stroke-width: 1.5; }
.hatch { stroke: var(--soft); stroke-width: 1.5; }
.rest { fill: none; stroke: var(--soft); }
.raw-mark { stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 4 3; }
.key { flex: none; }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--grid); }
@media print { body { max-width: none; padding: 0; } .scroll { overflow: visible; }
  h2, h3, h4, section > p, article > p { break-after: avoid; } tr { break-inside: avoid; }
  details:not([open]), .sessions article ~ article,
  .hover { display: none; } .printed { display: block; }
  section { margin-top: 1.5rem; } h2 { margin-top: 1.25rem; } }
"""
