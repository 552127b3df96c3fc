/* SPDX-License-Identifier: Apache-2.0 */
/* The framework's segments at an instant: live blocks, coloured by place, and the holes between. */
const SEGMENT = { height: 20, gap: 5, narrowest: 4, lines: 24 };
let drawnBlocks = [];

const hue = (index) => (index * 137.508) % 360;
function blockColour(number) {
  if (number < 0) return colour("other");
  const dark = document.documentElement.dataset.theme === "dark" && !view.printing;
  return `hsl(${hue(number)} ${dark ? "45% 52%" : "55% 62%"})`;
}

/* The largest first, side by side in lines; the scale lets all fit a bounded number of lines. */
function layOut(segments, width) {
  const sorted = [...segments].sort((a, b) => b[1] - a[1]);
  const largest = sorted.length ? sorted[0][1] : 1;
  const tryScale = (scale) => {
    const placed = [];
    let x = 0, line = 0;
    for (const segment of sorted) {
      const wide = Math.min(width, Math.max(SEGMENT.narrowest, segment[1] * scale));
      if (x > 0 && x + wide > width) { x = 0; line++; }
      placed.push({ segment, x, line, wide });
      x += wide + 3;
    }
    return { placed, lines: line + 1 };
  };
  let scale = width / largest, result = tryScale(scale);
  for (let i = 0; i < 30 && result.lines > SEGMENT.lines; i++) result = tryScale(scale *= 0.8);
  return result;
}

function drawBlocks(context, { segment, x, line, wide }) {
  const [address, size, , , , blocks] = segment, top = line * (SEGMENT.height + SEGMENT.gap);
  const scale = wide / size;
  context.fillStyle = colour("free");
  context.fillRect(x, top, wide, SEGMENT.height);
  let at = 0;
  for (let i = 0; i < blocks.length; i += 5) {
    at += blocks[i];
    const [span, held, number, count] = [blocks[i + 1], blocks[i + 2], blocks[i + 3], blocks[i + 4]];
    const place = placeOf(number), left = x + at * scale, across = Math.max(span * scale, 0.6);
    const faint = (view.query && !matches(place)) || (view.picked && !view.query && view.picked !== place);
    context.globalAlpha = faint ? 0.25 : 1;
    context.fillStyle = blockColour(number);
    context.fillRect(left, top + 1, across > 3 ? across - 0.7 : across, SEGMENT.height - 2);
    drawnBlocks.push({ left, right: left + across, top, place, held, span, count, address, offset: at });
    at += span;
  }
  context.globalAlpha = 1;
  context.strokeStyle = colour("dim");
  context.lineWidth = 1;
  context.strokeRect(x + 0.5, top + 0.5, Math.max(wide - 1, 1), SEGMENT.height - 1);
  drawnBlocks.push({ left: x, right: x + wide, top, segment });
}

function pinnedLine(instant) {
  const [count, held] = instant.pinned;
  return count === 1 ? `1 segment is kept by live blocks although ${bytes(held)} in it are free.`
    : `${grouped(count)} segments are kept by live blocks although ${bytes(held)} in them are free.`;
}

function segmentsNote(instant) {
  const segments = instant.segments, live = segments.reduce((sum, one) => sum + one[3], 0);
  const reserved = segments.reduce((sum, one) => sum + one[2], 0);
  return `${grouped(segments.length)} segments, ${bytes(reserved)} reserved, ${bytes(live)} live; ${bytes(instant.free)} free in them, ` +
    `the largest hole ${bytes(instant.largest_free)}, ${bytes(instant.releasable)} could be given back. ` +
    (instant.pinned[0] ? pinnedLine(instant) + " " : "") +
    (instant.joined_below ? `Blocks under ${bytes(instant.joined_below)} that lie side by side are drawn as one. ` : "") +
    "Colours tell places apart; hover for what a block is, click to find its place in the table.";
}

function drawSegments() {
  const instant = view.instant, canvas = element("segments"), note = element("segments-note");
  drawnBlocks = [];
  element("segments-title").textContent = instant ? `at ${titleOf(instant)}` : "";
  if (!instant || !instant.segments) {
    canvas.style.display = "none";
    const others = view.device ? view.device.instants.filter((one) => one.segments) : [];
    note.textContent = others.length
      ? "The segments are carried for these instants: "
      : data.reader ? "Left to the native vramscope."
      : "No segments: nothing on this GPU took memory in segments, or their blocks are not all known.";
    for (const one of others) add(note, "button", titleOf(one)).onclick = () => choose(one);
    return;
  }
  canvas.style.display = "block";
  const width = element("segments-box").clientWidth, { placed, lines } = layOut(instant.segments, width);
  const context = prepareCanvas(canvas, width, lines * (SEGMENT.height + SEGMENT.gap));
  for (const one of placed) drawBlocks(context, one);
  note.textContent = segmentsNote(instant);
}

const blockAt = (px, py) => drawnBlocks.find((block) => px >= block.left && px < block.right && py >= block.top && py < block.top + SEGMENT.height);
const addressOf = (block) => "0x" + (BigInt(block.address) + BigInt(block.offset)).toString(16);

function showBlock(event) {
  const tip = element("segments-tip"), [px, py] = d3.clientPoint(element("segments"), event), block = blockAt(px, py);
  tip.hidden = !block;
  if (!block) return;
  tip.replaceChildren();
  if (block.segment) {
    add(tip, "b", `free, in a segment of ${bytes(block.segment[1])}`);
    add(tip, "div", `${block.segment[0]}: ${bytes(block.segment[3])} live of ${bytes(block.segment[2])} reserved`);
  } else {
    add(tip, "b", block.count > 1 ? `${grouped(block.count)} blocks, ${bytes(block.held)} in ${bytes(block.span)}` : `block of ${bytes(block.held)}`);
    add(tip, "div", block.place.title + (block.count > 1 ? " and others" : ""));
    add(tip, "div", addressOf(block), "note");
  }
  tip.style.left = Math.min(px + 14, element("segments-box").clientWidth - tip.offsetWidth - 4) + "px";
  tip.style.top = py + 16 + "px";
}

function setUpSegments() {
  element("segments").addEventListener("mousemove", showBlock);
  element("segments").addEventListener("mouseleave", () => { element("segments-tip").hidden = true; });
  element("segments").addEventListener("click", (event) => {
    const block = blockAt(...d3.clientPoint(element("segments"), event));
    pick(block && block.place && block.place.index >= 0 ? block.place : null);
  });
}
