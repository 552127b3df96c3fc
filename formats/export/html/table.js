/* SPDX-License-Identifier: Apache-2.0 */
/* The live set as a table: one line for each place, its stack when clicked. */
const TABLE_ROWS = 100;
const order = { by: "bytes", all: false };

const keyOf = { bytes: (item) => -item.bytes, count: (item) => -item.count, title: (item) => item.place.title, owner: (item) => item.place.owner };

function ordered(items) {
  const key = keyOf[order.by];
  return [...items].sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : b.bytes - a.bytes));
}

function toggleStack(row, place) {
  if (row.nextSibling && row.nextSibling.className === "stack") { row.nextSibling.remove(); return; }
  const below = document.createElement("tr");
  below.className = "stack";
  const cell = add(below, "td");
  cell.colSpan = 5;
  const lines = place.stack.map((frame) => "  " + frame.label + (frame.kind === KIND.PYTHON && frame.file ? `  ${frame.file}` : ""));
  add(cell, "pre", (place.call ? `${place.call}\n` : "") + (lines.length ? lines.join("\n") : "no stack was recorded"));
  row.after(below);
}

function putItem(body, item, all) {
  const row = add(body, "tr");
  row.dataset.place = item.place.index;
  row.dataset.bytes = item.bytes;
  if (view.picked === item.place) row.className = "picked";
  add(row, "td", bytes(item.bytes), "number").title = grouped(item.bytes);
  add(row, "td", `${(100 * item.bytes / (all || 1)).toFixed(1)} %`, "number");
  add(row, "td", grouped(item.count), "number");
  const cell = add(row, "td");
  add(cell, "code", item.place.title);
  if (item.place.where) add(cell, "span", "  " + item.place.where, "where");
  add(row, "td", item.place.owner + (item.place.layer === 1 && view.device.framework ? " (direct)" : ""));
  if (item.place.index >= 0) row.onclick = () => toggleStack(row, item.place);
}

function drawTable() {
  const body = element("table").tBodies[0], instant = view.instant;
  body.replaceChildren();
  if (!instant) return;
  const items = ordered(liveAt(instant).filter((item) => view.query === "" || matches(item.place)));
  const picked = view.picked && items.find((item) => item.place === view.picked);
  const shown = order.all ? items : items.slice(0, TABLE_ROWS);
  if (picked && !shown.includes(picked)) shown.unshift(picked);
  for (const item of shown) putItem(body, item, instant.total[1]);
  if (instant.rest.bytes !== 0 && view.query === "")
    putItem(body, { place: { ...elsewhere, title: "places not listed" }, bytes: instant.rest.bytes, count: instant.rest.count }, instant.total[1]);
  const note = element("table-note");
  note.textContent = `${grouped(items.length)} places`;
  if (shown.length < items.length) {
    note.append(`, the first ${shown.length} shown. `);
    add(note, "button", "Show all").onclick = () => { order.all = true; drawTable(); };
  }
  const found = items.reduce((sum, item) => sum + item.bytes, 0);
  element("matched").textContent = view.query ? `“${view.query}”: ${bytes(found)} in ${grouped(items.length)} places` : "";
  element("matched").dataset.bytes = view.query ? found : "";
}

function setUpTable() {
  for (const head of document.querySelectorAll("#table th[data-sort]"))
    head.onclick = () => { order.by = head.dataset.sort; drawTable(); };
}

/* Shows a place in the table and keeps it marked. */
function pick(place) {
  view.picked = place;
  drawTable();
  drawSegments();
  const row = element("table").querySelector("tr.picked");
  if (row) row.scrollIntoView({ block: "nearest" });
}
