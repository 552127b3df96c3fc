/* SPDX-License-Identifier: Apache-2.0 */
/* What is worth looking at first, each with its place on the curve. */
const deviceOf = (index) => data.devices.find((device) => device.index === index);
const instantFor = (device, reason) => device.instants.find((instant) => instant.reasons & reason);

function instantOf(finding) {
  const device = deviceOf(finding.device);
  if (!device) return null;
  return device.instants.find((instant) => instant.sequence === finding.sequence && instant.sequence !== null) ??
    nearestInstant(device, finding.at_ns);
}

function card(title, value, note, alarm) {
  const box = add(element("cards"), "div", undefined, alarm ? "card alarm" : "card");
  add(box, "span", title);
  const figure = add(box, "b", value === null ? view.device.device_note ?? "not measured" : bytes(value));
  if (value !== null) figure.dataset.bytes = value;
  add(box, "span", note);
  return figure;
}

function drawCards() {
  const device = view.device, rows = device.rows, last = rows.time.length - 1;
  element("cards").replaceChildren();
  const share = (value) => (device.total && value !== null ? `${(100 * value / device.total).toFixed(1)} % of ${bytes(device.total)}` : "");
  card("Most allocated", device.peak, `at ${moment(device.peak_ns)}; ${share(device.peak)}`).id = "peak-allocated";
  card("Most reserved", device.reserved_peak, share(device.reserved_peak)).id = "peak-reserved";
  card("Most of the device used", device.device_peak, share(device.device_peak)).id = "peak-device";
  card(data.trace.complete ? "Allocated at the end" : "Allocated where the trace ends", last < 0 ? 0 : rows.live[last],
    `of ${bytes(last < 0 ? 0 : rows.reserved[last])} reserved`).id = "end-allocated";
}

function findingLine({ kind, title, why, alarm, go, place }) {
  const item = add(element("findings"), "li", undefined, alarm ? "alarm" : "");
  const button = add(item, "button");
  add(button, "span", kind, "kind");
  button.append(" " + title);
  if (why) { button.append(" "); add(button, "span", why, "why"); }
  button.onclick = () => { go(); if (place) pick(place); };
}

function oomLine(finding) {
  const where = finding.device >= 0 ? `GPU ${finding.device}` : "";
  findingLine({
    kind: finding.handled ? "Out of memory, survived" : "Out of memory", alarm: !finding.handled,
    title: `${bytes(finding.requested)} asked for by ${finding.api ?? "the framework"} at ${moment(finding.at_ns)} on ${where} (${finding.class}).`,
    why: finding.why, place: finding.place === null ? null : places[finding.place],
    go: () => { const instant = instantOf(finding); if (instant) choose(instant); },
  });
}

function growthLine(finding) {
  const place = finding.place === null ? null : places[finding.place], device = deviceOf(finding.device) ?? view.device;
  const each = finding.object ? `${finding.count_per_step.toFixed(1)} more ${finding.object.replace("_", " ")} objects` : bytes(Math.round(finding.bytes_per_step)) + " more";
  const step = finding.behind_steps ? "rounds of a loop behind the last step" : "steps";
  findingLine({
    kind: "Growth", alarm: finding.confidence === "sure", place,
    title: `${each} with each of ${grouped(finding.steps)} ${step} from ${place ? place.title : "an unknown place"}`,
    why: `${bytes(finding.end_bytes)} in ${grouped(finding.end_count)}${finding.object ? "" : " blocks"} at the end; ${finding.confidence}.`,
    go: () => { const instant = instantFor(device, REASON.end); if (instant) choose(instant); },
  });
}

function fragmentationLine(instant) {
  const reserved = instant.segments.reduce((sum, one) => sum + one[2], 0);
  if (!(instant.pinned[1] > reserved / 10)) return;
  findingLine({
    kind: "Fragmentation", title: `GPU ${instant.device}, ${titleOf(instant)}: ${bytes(instant.free)} of ${bytes(reserved)} reserved are free, the largest hole is ${bytes(instant.largest_free)}.`,
    why: pinnedLine(instant),
    go: () => { choose(instant); element("segments-box").scrollIntoView({ block: "nearest" }); },
  });
}

function drawFindings() {
  element("findings").replaceChildren();
  data.findings.filter((finding) => finding.kind === "oom" && !finding.handled).reverse().forEach(oomLine);
  data.findings.filter((finding) => finding.kind === "growth").forEach(growthLine);
  for (const device of data.devices) {
    peakLines(device);
    const told = device.instants.filter((instant) => instant.segments && instant.reasons & KEY);
    if (told.length) fragmentationLine(told.reduce((worst, one) => (one.pinned[1] > worst.pinned[1] ? one : worst)));
  }
  data.findings.filter((finding) => finding.kind === "oom" && finding.handled).reverse().forEach(oomLine);
}

/* Where reserved or the device's use is highest at another instant, that one too, with its segments. */
function peakLines(device) {
  const told = [];
  for (const [reason, value, what] of [[REASON.peak, device.peak, "allocated"], [REASON.reserved, device.reserved_peak, "reserved"],
    [REASON.device, device.device_peak, "of the device used"]]) {
    const instant = instantFor(device, reason);
    if (!instant || told.includes(instant)) continue;
    told.push(instant);
    const go = () => { choose(instant); if (reason !== REASON.peak) element("segments-box").scrollIntoView({ block: "nearest" }); };
    findingLine({ kind: "Peak", title: `GPU ${device.index}: ${bytes(value)} ${what} at ${moment(instant.at_ns)}`, why: topOf(instant), go });
  }
}

function topOf(instant) {
  const top = liveAt(instant)[0];
  return top ? `most from ${top.place.title}: ${bytes(top.bytes)}.` : "";
}

function writeLeftOut() {
  const list = element("left-out"), trace = data.trace, kept = data.instants.length;
  const rows = data.devices.reduce((sum, device) => sum + device.rows.time.length, 0);
  const seen = data.devices.reduce((sum, device) => sum + device.seen, 0);
  add(list, "li", `${grouped(trace.events)} events of ${trace.file} were read; ${grouped(rows)} of ${grouped(seen)} changes of the curves are kept. Every value shown is that of one event: none is averaged, and no highest or lowest value of a curve is missing.`);
  add(list, "li", `What was live is carried for ${grouped(kept)} instants, the grey ticks under the curve, and is exact at each: the highest and the lowest of every part of the curve, the peaks, the end, and the last ${data.oom_sets} requests that ran out of memory. A click shows the nearest of them, not a guess in between.`);
  const withSegments = data.reader ? "" : " and the segments with their blocks are carried";
  add(list, "li", `At the peaks, the end, out of memory and an instant asked for, up to 2,000 places are listed${withSegments}; elsewhere the 250 largest places. The others are summed up as “places not listed”.`);
  for (const note of data.reader?.notes ?? []) add(list, "li", note);
  if (trace.filter) add(list, "li", `This page was made with filters: only what is ${trace.filter}.`);
  if (data.ooms_left_out) add(list, "li", `${grouped(data.ooms_left_out)} earlier requests that ran out of memory are not listed.`);
  if (data.growth_left_out) add(list, "li", `${grouped(data.growth_left_out)} more places that grow are not listed.`);
  if (data.phases_left_out) add(list, "li", `${grouped(data.phases_left_out)} more phases are not drawn.`);
  if (trace.lost) add(list, "li", `${grouped(trace.lost)} events were lost while recording: what they took or gave back is uncertain.`);
  if (trace.torn) add(list, "li", `${grouped(trace.torn)} events were cut short by the end of their thread.`);
  if (trace.damaged) add(list, "li", "The trace is damaged; only what could be read is here.");
  if (!trace.complete) add(list, "li", "The trace does not tell the program's own end: what is live at its end is live at the cut, not leaked.");
  add(list, "li", `Made by vramscope ${data.version}. Nothing is loaded from anywhere; curves are drawn with D3 (BSD 3-clause, see this page's source).`);
}
