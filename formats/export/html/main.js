/* SPDX-License-Identifier: Apache-2.0 */
/* The page as a whole: which device, which instant, keys, theme, paper. */
function titleOf(instant) {
  const reasons = reasonsOf(instant);
  return (reasons.length ? reasons.join(", ") + ", " : "") + moment(instant.at_ns, 1e6);
}

function drawInstant() {
  const instant = view.instant, [sites, held, count] = instant.total;
  const title = element("instant-title");
  title.textContent = titleOf(instant);
  title.dataset.bytes = held;
  title.dataset.sequence = instant.sequence ?? "";
  const framework = liveAt(instant).filter((item) => item.place.layer === 0).length > 0;
  element("instant-note").textContent = `${bytes(held)} (${grouped(held)} bytes) in ${grouped(count)} blocks of ${grouped(sites)} call sites` +
    (framework ? ", the framework's blocks and direct allocations beside them" : "") +
    (instant.sequence === null ? ". Exact: the state at the end." : `. Exact: the state right after event ${grouped(instant.sequence)}.`);
  const keys = element("keys");
  keys.replaceChildren();
  for (const one of view.device.instants.filter((candidate) => candidate.reasons & ~REASON.sampled)) {
    const button = add(keys, "button", titleOf(one), one === instant ? "chosen" : "");
    button.onclick = () => choose(one);
  }
  drawFlame();
  drawTable();
  drawSegments();
}

function choose(instant) {
  if (!instant) return;
  if (instant.device !== view.device.index) showDevice(deviceOf(instant.device), instant);
  view.instant = instant;
  view.picked = null;
  order.all = false;
  reveal(instant.at_ns);
  drawInstant();
  askCurve();
}

function firstInstant(device) {
  const wanted = { peak: REASON.peak, end: REASON.end, oom: REASON.oom, asked: REASON.asked }[data.at] ?? REASON.peak;
  const found = device.instants.filter((instant) => instant.reasons & wanted);
  return found[found.length - 1] ?? instantFor(device, REASON.peak) ?? device.instants[device.instants.length - 1] ?? null;
}

function showDevice(device, instant) {
  view.device = device;
  element("device").value = device.index;
  writeLegend();
  writeCurveNote();
  drawCards();
  if (!instant) choose(firstInstant(device));
}

function step(by) {
  const instants = view.device.instants, at = instants.indexOf(view.instant) + by;
  if (at >= 0 && at < instants.length) choose(instants[at]);
}

function nextOom() {
  const ooms = view.device.instants.filter((instant) => instant.reasons & REASON.oom);
  if (ooms.length) choose(ooms[(ooms.indexOf(view.instant) + 1) % ooms.length]);
}

function nextDevice() {
  showDevice(data.devices[(data.devices.indexOf(view.device) + 1) % data.devices.length]);
}

function redraw() {
  drawCurve();
  if (view.instant) { drawFlame(); drawSegments(); }
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  redraw();
}
const otherTheme = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");

function search(query) {
  view.query = query.trim().toLowerCase();
  if (view.instant) drawInstant();
}

const keys = {
  "+": () => zoomBy(2), "=": () => zoomBy(2), "-": () => zoomBy(0.5), "0": () => element("zoom-all").click(),
  ArrowLeft: () => moveBy(120), ArrowRight: () => moveBy(-120), "[": () => step(-1), "]": () => step(1),
  p: () => choose(instantFor(view.device, REASON.peak)), e: () => choose(instantFor(view.device, REASON.end)), o: nextOom,
  d: nextDevice, t: otherTheme, "/": () => element("search").focus(), "?": () => element("help-text").showModal(),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") { element("search").value = ""; search(""); element("search").blur(); pick(null); return; }
  if (/^(INPUT|SELECT)$/.test(event.target.tagName) || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
}

function onPaper() {
  let theme;
  window.addEventListener("beforeprint", () => { theme = document.documentElement.dataset.theme; setTheme("light"); });
  window.addEventListener("afterprint", () => setTheme(theme));
}

function writeSubject() {
  const trace = data.trace;
  const ended = { exit: "ended by itself", killed: `killed${trace.signal === null ? "" : " by signal " + trace.signal}`, exec: "became another program" }[trace.ended] ?? "end not known";
  const code = trace.exit_code ? ` with status ${trace.exit_code}` : "";
  const rank = trace.rank === null ? "" : `, rank ${trace.rank}`;
  element("subject").textContent = `${trace.file} · ${trace.exe ?? "program unknown"}${rank} · ${moment(trace.duration_ns)} · ${grouped(trace.events)} events · ${ended}${code}`;
  document.title = `${trace.file} – vramscope`;
}

function start() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
  dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
  element("theme").onclick = otherTheme;
  element("help").onclick = keys["?"];
  element("search").addEventListener("input", (event) => search(event.target.value));
  element("previous").onclick = () => step(-1);
  element("next").onclick = () => step(1);
  element("all-frames").onclick = () => {
    view.allFrames = !view.allFrames;
    view.flameOf = null;
    element("all-frames").classList.toggle("chosen", view.allFrames);
    if (view.instant) drawFlame();
  };
  document.addEventListener("keydown", onKey);
  window.addEventListener("resize", redraw);
  writeSubject();
  writeLeftOut();
  if (!data.devices.length) {
    element("curve-note").textContent = "This trace tells of no memory on any GPU.";
    return;
  }
  for (const device of data.devices) add(element("device"), "option", `${device.index} ${device.name ?? ""}`).value = device.index;
  element("device").onchange = () => showDevice(deviceOf(Number(element("device").value)));
  element("device-choice").hidden = data.devices.length < 2;
  setUpCurve();
  setUpTable();
  setUpSegments();
  onPaper();
  drawFindings();
  showDevice(view.device);
}
start();
