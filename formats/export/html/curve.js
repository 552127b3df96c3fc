/* SPDX-License-Identifier: Apache-2.0 */
/* The curves: bands stacked to the device's use, zoomed and moved, with the marks on them. */
const curve = { left: 74, right: 12, top: 26, bottom: 26, height: 340, width: 0, transform: d3.zoomIdentity };

const backedAt = (rows, i) => (rows.backed ?? rows.reserved)[i];
const measuredPart = (column, rows, i) => (rows[column] && rows.measured[i] ? Math.max(0, rows[column][i]) : 0);

/* From below: parts of what the device uses. Columns that the page's maker did not compute are not there. */
const BANDS = [
  ["allocated", "allocated", (rows, i) => Math.min(rows.allocated[i], Math.max(backedAt(rows, i), 0))],
  ["cached", "cached by the framework", (rows, i) => Math.max(0, backedAt(rows, i) - rows.allocated[i])],
  ["direct", "direct allocations", (rows, i) => Math.max(0, rows.direct ? rows.direct[i] : 0)],
  ["implicit", "context, modules, graphs", (rows, i) => measuredPart("implicit", rows, i)],
  ["rest", "all else, not told apart", (rows, i) => measuredPart("rest", rows, i)],
  ["other", "other processes", (rows, i) => measuredPart("other", rows, i)],
  ["unexplained", "unexplained", (rows, i) => measuredPart("unexplained", rows, i)],
];
const LINES = [["live", "live-line"], ["reserved", "reserved-line"], ["device", "device-line"]];
const lineName = { live: "allocated", reserved: "reserved", device: "device used" };

function stackedTotals(device) {
  const rows = device.rows, totals = new Float64Array(rows.time.length);
  for (let i = 0; i < totals.length; i++) {
    for (const [, , part] of BANDS) totals[i] += part(rows, i);
  }
  device.totals = totals;
  device.tops = totals.map((total, i) => Math.max(total, rows.live[i], rows.reserved[i], rows.measured[i] ? rows.device[i] : 0));
}
data.devices.forEach(stackedTotals);

const bandsShown = (device) => BANDS.filter(([, , part]) => {
  for (let i = 0; i < device.rows.time.length; i++) if (part(device.rows, i) > 0) return true;
  return false;
});

const timeScale = () => curve.transform.rescaleX(
  d3.scaleLinear().domain([data.trace.from_ns, Math.max(data.trace.to_ns, data.trace.from_ns + 1)])
    .range([curve.left, curve.width - curve.right]));

/* Index of the last row at or before a time, -1 before the first. */
const rowAt = (rows, time) => d3.bisectRight(rows.time, time) - 1;

/*
 * For every pixel column the row whose bands are drawn (the fullest) and the lowest and
 * highest of each curve in it, the value it begins with included.
 */
function columnsOf(device, x) {
  const rows = device.rows, from = curve.left, to = curve.width - curve.right, columns = [];
  let next = Math.max(0, rowAt(rows, x.invert(from)));
  let current = rows.time.length && rows.time[next] <= x.invert(from) ? next : -1;
  for (let pixel = from; pixel < to; pixel++) {
    const until = x.invert(pixel + 1);
    let best = current, first = current, last = current;
    while (next < rows.time.length && rows.time[next] < until) {
      if (first < 0) first = next;
      if (best < 0 || device.totals[next] > device.totals[best]) best = next;
      last = current = next++;
    }
    columns.push([best, first, last]);
  }
  return columns;
}

/* Of everything in sight. */
function highestOf(device, columns) {
  let highest = 1;
  for (const [, first, last] of columns)
    for (let row = Math.max(first, 0); row <= last; row++) highest = Math.max(highest, device.tops[row]);
  return highest;
}

function byteTicks(highest) {
  let step = 1;
  while (highest / step > 6) step *= 2;
  const ticks = [];
  for (let value = 0; value <= highest; value += step) ticks.push(value);
  return ticks;
}

function drawBands(context, device, columns, y) {
  const bands = bandsShown(device);
  const below = new Float64Array(columns.length);
  for (const [name, , part] of bands) {
    context.fillStyle = colour(name);
    context.beginPath();
    columns.forEach(([best], i) => {
      const value = best < 0 ? 0 : part(device.rows, best);
      if (value > 0) {
        const top = y(below[i] + value);
        context.rect(curve.left + i, top, 1.05, y(below[i]) - top);
        below[i] += value;
      }
    });
    context.fill();
  }
}

function drawLine(context, device, columns, y, name, style) {
  const values = device.rows[name], measured = name !== "device" ? null : device.rows.measured;
  context.strokeStyle = colour(style);
  context.lineWidth = 1.3;
  context.beginPath();
  let drawing = false;
  columns.forEach(([, first, last], i) => {
    if (first < 0 || (measured && !measured[last])) { drawing = false; return; }
    let low = Infinity, high = -Infinity;
    for (let row = first; row <= last; row++) {
      if (measured && !measured[row]) continue;
      low = Math.min(low, values[row]);
      high = Math.max(high, values[row]);
    }
    const at = curve.left + i + 0.5;
    if (drawing) context.lineTo(at, y(high)); else context.moveTo(at, y(high));
    if (low < high) context.lineTo(at, y(low));
    context.lineTo(at, y(values[last]));
    drawing = true;
  });
  context.stroke();
}

function drawAxes(context, x, y, highest) {
  context.strokeStyle = colour("line");
  context.fillStyle = colour("dim");
  context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
  context.lineWidth = 1;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const value of byteTicks(highest)) {
    context.beginPath();
    context.moveTo(curve.left, Math.round(y(value)) + 0.5);
    context.lineTo(curve.width - curve.right, Math.round(y(value)) + 0.5);
    context.stroke();
    context.fillText(bytes(value), curve.left - 8, y(value));
  }
  const ticks = x.ticks(Math.max(2, Math.floor(curve.width / 130)));
  context.textAlign = "center";
  context.textBaseline = "top";
  for (const time of ticks) {
    context.beginPath();
    context.moveTo(x(time), curve.height - curve.bottom);
    context.lineTo(x(time), curve.height - curve.bottom + 4);
    context.stroke();
    context.fillText(moment(time, ticks.length > 1 ? ticks[1] - ticks[0] : 1e9), x(time), curve.height - curve.bottom + 7);
  }
}

function drawPhases(context, device, x) {
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  data.phases.forEach((phase, i) => {
    if (phase.device !== device.index) return;
    const from = Math.max(curve.left, x(phase.start_ns)), to = Math.min(curve.width - curve.right, x(phase.end_ns));
    if (to - from < 1) return;
    context.fillStyle = colour(i % 2 ? "cached" : "note-frame");
    context.fillRect(from, 2, to - from, 13);
    if (to - from < 30) return;
    context.save();
    context.beginPath();
    context.rect(from, 2, to - from, 13);
    context.clip();
    context.fillStyle = colour("text");
    context.fillText(phase.name ?? "phase", from + 3, 9);
    context.restore();
  });
}

function verticalMark(context, at, style, dash, label, drop) {
  if (at < curve.left - 1 || at > curve.width - curve.right + 1) return;
  context.save();
  context.strokeStyle = context.fillStyle = colour(style);
  context.setLineDash(dash);
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(at, curve.top - 8);
  context.lineTo(at, curve.height - curve.bottom);
  context.stroke();
  if (label) {
    const toLeft = at > curve.width - 130;
    context.font = "600 12px system-ui, 'DejaVu Sans', sans-serif";
    context.textAlign = toLeft ? "right" : "left";
    context.textBaseline = "middle";
    const place = [label, at + (toLeft ? -5 : 5), curve.top - 5 + (drop ?? 0)];
    context.setLineDash([]); /* a rim, so that a line behind it does not strike it out */
    context.strokeStyle = colour("back");
    context.lineWidth = 4;
    context.strokeText(...place);
    context.fillText(...place);
  }
  context.restore();
}

function drawMarks(context, device, x) {
  context.fillStyle = colour("dim");
  for (const instant of device.instants)
    if (x(instant.at_ns) >= curve.left && x(instant.at_ns) <= curve.width - curve.right)
      context.fillRect(Math.round(x(instant.at_ns)), curve.height - curve.bottom + 1, 1, 4);
  for (const finding of data.findings)
    if (finding.kind === "oom" && finding.device === device.index)
      verticalMark(context, x(finding.at_ns), "alarm", [5, 4], finding.handled ? "" : "out of memory");
  if (view.instant) verticalMark(context, x(view.instant.at_ns), "accent", [], view.instant.reasons & REASON.peak ? "peak" : "", 15);
}

function drawCurve() {
  const device = view.device;
  if (!device) return;
  curve.width = element("curve-box").clientWidth;
  const context = prepareCanvas(element("curve"), curve.width, curve.height);
  const x = timeScale(), columns = columnsOf(device, x), highest = highestOf(device, columns) * 1.03;
  const y = d3.scaleLinear().domain([0, highest]).range([curve.height - curve.bottom, curve.top]);
  drawAxes(context, x, y, highest);
  drawBands(context, device, columns, y);
  for (const [name, style] of LINES) drawLine(context, device, columns, y, name, style);
  drawPhases(context, device, x);
  drawMarks(context, device, x);
  const from = Math.max(x.invert(curve.left), data.trace.from_ns), to = x.invert(curve.width - curve.right);
  element("visible").textContent = `${moment(from, (to - from) / 1000)} – ${moment(to, (to - from) / 1000)}`;
}

let curveAsked = false;
function askCurve() {
  if (curveAsked) return;
  curveAsked = true;
  requestAnimationFrame(() => { curveAsked = false; drawCurve(); });
}

/* ---- hands ---- */

function showTip(px, py) {
  const device = view.device, rows = device.rows, x = timeScale(), tip = element("tip");
  const from = x.invert(px), to = x.invert(px + 1);
  const row = rowAt(rows, to), first = Math.max(0, rowAt(rows, from));
  tip.hidden = row < 0 || px < curve.left || px > curve.width - curve.right;
  if (tip.hidden) return;
  tip.replaceChildren();
  tip.dataset.live = rows.live[row];
  tip.dataset.reserved = rows.reserved[row];
  add(tip, "b", moment(from, (to - from)));
  const table = add(tip, "table");
  const line = (name, value, note) => { const tr = add(table, "tr"); add(tr, "td", name); add(tr, "td", value); add(tr, "td", note ?? ""); };
  for (const [name] of LINES) {
    if (name === "device" && !rows.measured[row]) { line(lineName[name], device.device_note ?? "not measured"); continue; }
    let low = Infinity, high = -Infinity;
    for (let i = first; i <= row; i++) { low = Math.min(low, rows[name][i]); high = Math.max(high, rows[name][i]); }
    line(lineName[name], bytes(rows[name][row]), low < high ? `${bytes(low)} – ${bytes(high)} in this pixel` : "");
  }
  for (const [, label, part] of bandsShown(device).slice(1)) line(label, bytes(part(rows, row)));
  if (rows.reserved[row] > backedAt(rows, row)) line("reserved without memory behind it", bytes(rows.reserved[row] - backedAt(rows, row)));
  if (rows.pinned && rows.pinned[row] > 0) line("pinned host memory", bytes(rows.pinned[row]));
  const near = nearestInstant(device, from);
  if (near) add(tip, "div", `click: live set of ${moment(near.at_ns, (to - from))}`, "note");
  tip.style.left = Math.min(px + 14, curve.width - tip.offsetWidth - 4) + "px";
  tip.style.top = Math.max(0, Math.min(py + 14, curve.height - tip.offsetHeight)) + "px";
}

function nearestInstant(device, time) {
  let best = null;
  for (const instant of device.instants)
    if (!best || Math.abs(instant.at_ns - time) < Math.abs(best.at_ns - time)) best = instant;
  return best;
}

const zoom = d3.zoom().scaleExtent([1, 1e6]).on("zoom", () => { curve.transform = d3.event.transform; askCurve(); });

function setUpCurve() {
  const box = d3.select("#curve-box");
  const extent = () => {
    const width = element("curve-box").clientWidth;
    const area = [[curve.left, 0], [width - curve.right, curve.height]];
    zoom.extent(area).translateExtent(area);
  };
  extent();
  window.addEventListener("resize", () => { extent(); askCurve(); });
  box.call(zoom);
  element("curve-box").addEventListener("mousemove", (event) => {
    const [px, py] = d3.clientPoint(element("curve-box"), event);
    showTip(px, py);
  });
  element("curve-box").addEventListener("mouseleave", () => { element("tip").hidden = true; });
  box.on("click", () => {
    if (d3.event.defaultPrevented) return;
    const [px] = d3.clientPoint(element("curve-box"), d3.event);
    if (px >= curve.left && px <= curve.width - curve.right)
      choose(nearestInstant(view.device, timeScale().invert(px)));
  });
  element("zoom-in").onclick = () => zoomBy(2);
  element("zoom-out").onclick = () => zoomBy(0.5);
  element("zoom-all").onclick = () => box.call(zoom.transform, d3.zoomIdentity);
}
const zoomBy = (factor) => d3.select("#curve-box").call(zoom.scaleBy, factor);
const moveBy = (pixels) => d3.select("#curve-box").call(zoom.translateBy, pixels / curve.transform.k, 0);

/* Brings a time into sight when it is not. */
function reveal(time) {
  const x = timeScale();
  if (x(time) >= curve.left && x(time) <= curve.width - curve.right) return;
  d3.select("#curve-box").call(zoom.translateBy, (curve.width / 2 - x(time)) / curve.transform.k, 0);
}

function writeLegend() {
  const legend = element("legend");
  legend.replaceChildren();
  const entry = (name, style, line) => {
    const span = add(legend, "span"), mark = add(span, "i", "", line ? "line" : "");
    mark.style.background = `var(--${style})`;
    span.append(name);
  };
  for (const [name, label] of bandsShown(view.device)) entry(label, name, false);
  for (const [name, style] of LINES)
    if (name !== "device" || view.device.device_peak !== null) entry(lineName[name], style, true);
}

function writeCurveNote() {
  const device = view.device, kept = device.rows.time.length, seen = device.seen;
  element("curve-note").textContent = kept >= seen
    ? `All ${grouped(seen)} changes of the bands are drawn.`
    : `${grouped(kept)} of ${grouped(seen)} changes are kept: of every stretch of at most ${grouped(device.stretch_rows)} changes the first, ` +
      "the last and the lowest and highest of each curve. No peak is left out; what lies between may be.";
}
