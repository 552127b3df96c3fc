/* SPDX-License-Identifier: Apache-2.0 */
/* The live set as a flame graph, the outermost frame on top. */
const FLAME_ROW = 19, FLAME_ROWS = 60;

/* What runs the interpreter says nothing of the program: by default a stack begins with Python. */
function outermost(stack) {
  let at = stack.length - 1;
  if (view.allFrames) return at;
  while (at >= 0 && stack[at].kind !== KIND.PYTHON) at--;
  return at >= 0 ? at : stack.length - 1;
}

/* Stacks joined from the outermost frame inwards. */
function flameTree(instant) {
  const root = { label: "all that is live", bytes: 0, count: 0, children: new Map(), frame: null };
  const grow = (node, key, label, item, frame) => {
    let child = node.children.get(key);
    if (!child) node.children.set(key, child = { label, bytes: 0, count: 0, children: new Map(), frame, parent: node, places: [] });
    child.bytes += item.bytes;
    child.count += item.count;
    child.places.push(item.place);
    return child;
  };
  for (const item of liveAt(instant)) {
    root.bytes += item.bytes;
    root.count += item.count;
    let node = root;
    for (let i = outermost(item.place.stack); i >= 0; i--) {
      const frame = item.place.stack[i];
      if (frame.kind !== KIND.NOTE) node = grow(node, frame.label, frame.label, item, frame);
    }
    if (node === root) node = grow(root, "· " + item.place.title, item.place.title, item, null);
  }
  if (instant.rest.bytes > 0) {
    const rest = { place: elsewhere, bytes: instant.rest.bytes, count: instant.rest.count };
    root.bytes += rest.bytes;
    root.count += rest.count;
    grow(root, "· rest", "places not listed", rest, null);
  }
  return root;
}

/* A chain of frames with nothing beside it says little: what all live bytes share is skipped on top. */
function flameStart(root) {
  let node = root;
  while (node.children.size === 1) {
    const [child] = node.children.values();
    if (child.bytes !== node.bytes || child.children.size === 0) break;
    node = child;
  }
  return node === root || !node.parent ? root : node.parent;
}

function flameClass(node) {
  if (!node.frame) return "remark";
  if (node.frame.own) return "own";
  return node.frame.kind === KIND.PYTHON ? "python" : "native";
}

function drawFlame() {
  const box = element("flame");
  box.replaceChildren();
  if (!view.instant) return;
  if (view.flameOf !== view.instant) {
    view.flameOf = view.instant;
    view.flameRoot = flameTree(view.instant);
    view.zoomed = flameStart(view.flameRoot);
  }
  const width = box.clientWidth, top = view.zoomed, trail = [];
  for (let node = top.parent; node; node = node.parent) trail.unshift(node);
  let hidden = 0, deepest = 0;
  const put = (node, left, wide, row) => {
    const div = add(box, "div", wide > 25 ? `${node.label}  ${bytes(node.bytes)}` : "", flameClass(node));
    div.style.cssText = `left:${left}px;width:${wide}px;top:${row * FLAME_ROW}px`;
    div.title = `${node.label}\n${bytes(node.bytes)} (${grouped(node.bytes)} bytes) in ${grouped(node.count)} blocks, ` +
      `${(100 * node.bytes / (view.flameRoot.bytes || 1)).toFixed(1)} % of what is live`;
    if (view.query && node.places && node.places.some(matches) && (!node.frame || node.frame.search.includes(view.query)))
      div.classList.add("match");
    div.onclick = () => { view.zoomed = node; drawFlame(); };
    deepest = Math.max(deepest, row);
  };
  const lay = (node, left, wide, row) => {
    put(node, left, wide, row);
    if (row >= FLAME_ROWS) { hidden += node.children.size; return; }
    let at = left;
    for (const child of [...node.children.values()].sort((a, b) => b.bytes - a.bytes)) {
      const share = node.bytes ? wide * child.bytes / node.bytes : 0;
      if (share >= 1.5) lay(child, at, share, row + 1); else hidden++;
      at += share;
    }
  };
  box.classList.toggle("searching", view.query !== "");
  const shown = trail.slice(-4);
  shown.forEach((node, row) => put(node, 0, width, row));
  lay(top, 0, width, shown.length);
  box.style.height = (deepest + 1) * FLAME_ROW + "px";
  element("flame-note").textContent = "Click a frame to look into it, one above it to go back." +
    (trail.length > shown.length ? ` ${trail.length - shown.length} outer frames are not drawn.` : "") +
    (hidden ? ` ${grouped(hidden)} frames too narrow to draw are left out.` : "");
}
