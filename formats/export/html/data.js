/* SPDX-License-Identifier: Apache-2.0 */
/* The data the page carries, and how figures are written. */
const data = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);
const KIND = { NATIVE: 0, PYTHON: 1, NOTE: 2 };
const REASON = { sampled: 1, peak: 2, reserved: 4, device: 8, oom: 16, asked: 32, end: 64 };
const KEY = REASON.peak | REASON.reserved | REASON.device | REASON.oom | REASON.asked | REASON.end;

function sums(differences) {
  const out = new Float64Array(differences.length);
  let value = 0;
  for (let i = 0; i < out.length; i++) out[i] = value += differences[i];
  return out;
}

for (const device of data.devices) {
  for (const name of Object.keys(device.rows)) device.rows[name] = sums(device.rows[name]);
  device.instants = data.instants.filter((instant) => instant.device === device.index)
    .sort((a, b) => a.at_ns - b.at_ns || (a.sequence ?? Infinity) - (b.sequence ?? Infinity));
}

/* ---- figures ---- */

function bytes(value) {
  const sign = value < 0 ? "−" : "";
  let size = Math.abs(value), unit = 0;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  while (size >= 1024 && unit < units.length - 1) { size /= 1024; unit++; }
  const digits = unit === 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return `${sign}${size.toFixed(digits)} ${units[unit]}`;
}

const grouped = (value) => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

function moment(ns, resolution_ns) {
  const seconds = ns / 1e9;
  const step = (resolution_ns ?? 1e6) / 1e9;
  const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step))));
  return `${seconds.toFixed(digits)} s`;
}

/* ---- places ---- */

const text = (number) => (number < 0 ? "" : data.strings[number]);
const baseName = (path) => path.slice(path.lastIndexOf("/") + 1);

const frames = data.frames.map(([name, file, line, module, kind, own]) => {
  const frame = { name: text(name), file: text(file), line, module: text(module), kind, own: own === 1 };
  if (kind === KIND.NOTE) frame.label = `[${frame.name}]`;
  else if (kind === KIND.PYTHON) frame.label = `${frame.name || "?"} (${baseName(frame.file) || "?"}${line ? ":" + line : ""})`;
  else if (frame.name.startsWith("+0x") || frame.name === "") frame.label = (baseName(frame.module) || "?") + frame.name;
  else frame.label = `${frame.name} (${frame.file && line ? baseName(frame.file) + ":" + line : baseName(frame.module) || "?"})`;
  frame.search = `${frame.name} ${frame.file} ${frame.module}`.toLowerCase();
  return frame;
});

const SITE = ["", "live before recording began", "uncertain after a loss"];
const LAYER = ["framework", "driver", "host"];
const owners = { libc10_cuda: "PyTorch" };

const places = data.places.map(([layer, kind, owner, label, number, main, stack], index) => {
  const place = { index, layer, kind, number, stack: stack.map((id) => frames[id]) };
  place.owner = owners[text(owner)] ?? text(owner);
  place.call = text(label);
  const frame = main >= 0 ? place.stack[main] : null;
  place.title = frame ? frame.label : SITE[kind] || place.call || place.owner || "no stack";
  if (frame) place.where = frame.kind === KIND.PYTHON ? frame.file : frame.module;
  place.search = `${place.title} ${place.owner} ${place.call} `.toLowerCase() +
    place.stack.map((one) => one.search).join(" ");
  return place;
});
const elsewhere = { index: -1, layer: 0, stack: [], title: "other places", owner: "", call: "", search: "" };
const placeOf = (number) => (number >= 0 ? places[number] : elsewhere);

/* What is live at an instant: [{place, bytes, count}], most first. */
function liveAt(instant) {
  if (!instant.items) {
    instant.items = [];
    for (let i = 0; i < instant.live.length; i += 3)
      instant.items.push({ place: places[instant.live[i]], bytes: instant.live[i + 1], count: instant.live[i + 2] });
    instant.items.sort((a, b) => b.bytes - a.bytes);
    const [sites, allBytes, allCount] = instant.total;
    instant.rest = { sites: sites, bytes: allBytes, count: allCount };
    for (const item of instant.items) { instant.rest.bytes -= item.bytes; instant.rest.count -= item.count; }
  }
  return instant.items;
}

function reasonsOf(instant) {
  const names = [];
  const bit = (name) => (instant.reasons & REASON[name]) !== 0;
  if (bit("peak")) names.push("peak");
  if (bit("reserved")) names.push("most reserved");
  if (bit("device")) names.push("most of the device used");
  if (bit("oom")) names.push("out of memory");
  if (bit("asked")) names.push("asked for");
  if (bit("end")) names.push(data.trace.complete ? "end" : "end of the trace");
  return names;
}

/* What the page shows now; parts subscribe to changes. */
const view = { device: data.devices[0], instant: null, query: "", zoomed: null, picked: null, allFrames: false };
const listeners = [];
const changed = (what) => listeners.forEach((listener) => listener(what));
const matches = (place) => view.query !== "" && place.search.includes(view.query);

function add(parent, tag, content, className) {
  const made = document.createElement(tag);
  if (content !== undefined) made.textContent = content;
  if (className) made.className = className;
  parent.append(made);
  return made;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

/* A canvas of so many CSS pixels, sharp on this screen. */
function prepareCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = height + "px";
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
