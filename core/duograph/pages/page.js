"use strict";
/* Draws the page from the data that `compiler.program_facts` collects. All text of the user enters
   the page as text nodes, never as markup. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const OP = 0, ATTRIBUTES = 1, TYPES = 2, FILE = 3, LINE = 4, EFFECTS = 5, CALLED = 6, KIND = 7;
  const LONGEST = 12; // layers that a drawn edge may span; longer ones are written at the reader
  const MANY = 8; // results that are drawn as one box
  const INLINE_KINDS = new Set(["state", "array", "cell", "attribute", "item"]);
  const KINDS = {
    elementwise: "elementwise", reduction: "reduction", kernel: "kernel of its own",
    fused: "fused kernel", control: "branch, loop, call", view: "movement", host: "on the host",
  };
  const state = {program: 0, stage: 0, open: new Set(), shut: new Set(), node: "", line: ""};
  const $ = id => document.getElementById(id);

  // ---- building elements ------------------------------------------------------------------------

  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    return fill(element, attributes, children);
  }

  function draw(tag, attributes, ...children) {
    return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  }

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {}))
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== false && value != null) element.setAttribute(name, value);
    element.append(...children.flat().filter(child => child != null));
    return element;
  }

  const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

  function bytes(n) {
    for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024]])
      if (n >= size) return `${(n / size).toFixed(n >= 10 * size ? 0 : 1)} ${unit}`;
    return plural(n, "byte");
  }

  function time(seconds) {
    for (const [unit, size] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]])
      if (seconds >= size) return `${(seconds / size).toPrecision(3)} ${unit}`;
    return `${Math.round(seconds * 1e9)} ns`;
  }

  const cut = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

  // ---- the model --------------------------------------------------------------------------------

  const program = () => data.programs[state.program];
  const stage = () => program().stages[state.stage];
  const head = node => data.heads[node[0]];
  const lineKey = h => (h[FILE] >= 0 ? `${h[FILE]}:${h[LINE]}` : "");

  /* The sub-graphs of a node as [title, graph], also that of a called graph. */
  function subgraphs(node, path) {
    if (node.length > 3) return node[3];
    const name = head(node)[CALLED], graph = name && data.named[name];
    const recursive = name && path.includes(`@${name}/`);
    return graph && !recursive ? [[`@${name}`, graph]] : [];
  }

  function size(graph) {
    return graph.n.reduce(
      (n, node) => n + 1 + (node[3] || []).reduce((m, [, inner]) => m + size(inner), 0), 0);
  }

  function isOpen(path, node, inner) {
    if (!inner.length || state.shut.has(path)) return false;
    if (state.open.has(path)) return true;
    return head(node)[KIND] === "control" && inner.reduce((n, [, g]) => n + size(g), 0) <= 30;
  }

  /* The text of a value that is written into its readers instead of drawn, by value id. */
  function inlined(graph) {
    const found = new Map();
    graph.p.forEach(([, name, kind], i) => { if (INLINE_KINDS.has(kind)) found.set(i, name); });
    const results = new Set(graph.o);
    for (const node of graph.n) {
      const h = head(node);
      if (h[KIND] !== "constant" || node[2].some(i => results.has(i))) continue;
      const value = /(?:^|, )value=(array\([^)]*\)|[^,]*)/.exec(h[ATTRIBUTES]);
      found.set(node[2][0], value ? value[1] : h[OP]);
    }
    return found;
  }

  // ---- laying out -------------------------------------------------------------------------------

  const LETTER = 7.3, SMALL = 6.4, PAD = 10;

  /* Returns boxes with positions, edges, width and height of a graph; `path` ends in "/". */
  function arrange(graph, path, changes) {
    const inside = inlined(graph), boxes = [], owner = new Map();
    const marks = new Map();
    if (changes) {
      for (const at of changes.new) marks.set(at, "new");
      for (const at of changes.rewired) marks.set(at, "rewired");
    }
    graph.p.forEach(([type, name], i) => {
      if (inside.has(i)) return;
      owner.set(i, boxes.length);
      boxes.push(sized({
        path: `${path}p${i}`, kind: "param", title: name || `%${i}`, sub: type, notes: [],
        values: [i], param: i,
      }));
    });
    graph.n.forEach((node, at) => {
      const h = head(node);
      if (node[2].length && inside.has(node[2][0])) return;
      const own = `${path}n${at}`, inner = subgraphs(node, own + "/");
      const title = h[KIND] === "fused" ? fusedTitle(h[ATTRIBUTES]) : h[OP];
      const box = {
        path: own, kind: h[KIND], title, sub: h[TYPES].join(", "), notes: [], node, at, inner,
        mark: marks.get(at) || "", line: lineKey(h), open: isOpen(own, node, inner),
      };
      const texts = node[1].filter(i => i !== null && inside.has(i)).map(i => inside.get(i));
      if (texts.length) box.notes.push(cut(texts.join(", "), 30));
      if (!path && isLast() && program().times[at] !== undefined) {
        box.seconds = program().times[at];
        box.notes.push(time(box.seconds));
      }
      if (h[CALLED] && !inner.length) box.notes.push(`calls @${h[CALLED]}`);
      if (box.open) {
        const below = changes && changes.inner[at];
        box.parts = inner.map(([name, g], k) => {
          const label = name.startsWith("@") ? name + "/" : "";
          const given = node[1].slice(node[1].length - g.p.length); // without a branch's index
          const params = g.p.map(([type, own, kind], i) => [type,
            own || (given.length === g.p.length && name !== "cond" ? valueName(given[i]) : ""), kind]);
          return {name, ...arrange({...g, p: params}, `${own}/${label}${k}/`, below && below[k])};
        });
      }
      node[2].forEach(i => owner.set(i, boxes.length));
      boxes.push(box);
    });
    const results = graph.o.filter(i => !inside.has(i));
    if (results.length > MANY) { // one box for all of them would pull the graph apart
      graph.o.forEach((i, k) => {
        const box = boxes[owner.get(i)];
        if (box && box.node) box.notes.push(`= result ${k}`);
      });
      results.length = 0;
    } else if (results.length)
      boxes.push(sized({path: `${path}r`, kind: "param", title: "result", sub: "", notes: [],
        result: true}));
    const edges = [], known = new Set();
    function valueName(i) {
      if (i === null) return "";
      return inside.get(i) || (owner.has(i) ? boxes[owner.get(i)].title : "");
    }
    const connect = (a, b) => {
      const key = a * 65536 + b;
      if (a === b || known.has(key)) return;
      known.add(key);
      edges.push([a, b]);
    };
    boxes.forEach((box, b) => {
      for (const i of box.node ? box.node[1] : box.result ? results : [])
        if (i !== null && owner.has(i)) connect(owner.get(i), b);
    });
    const longest = boxes.length <= 60 ? Infinity : LONGEST;
    boxes.forEach(sized);
    const layout = trial(boxes, edges, longest);
    boxes.forEach((box, k) => { box.x = layout.at[k].x; box.y = layout.at[k].y; });
    return {boxes, edges, paths: layout.paths, width: layout.width, height: layout.height};
  }

  /* Lays out boxes; an edge that is too long becomes a note of its reader, which may grow. */
  function trial(boxes, edges, longest) {
    const first = Layout.layered(boxes, edges, longest);
    if (!first.cut.length) return first;
    for (const [a, b] of first.cut) {
      const from = boxes[a];
      boxes[b].far = [...(boxes[b].far || []), from.path];
    }
    for (const box of boxes)
      if (box.far) {
        const names = box.far.map(path => boxes.find(other => other.path === path).title);
        box.notes.push(cut("↑ " + names.join(", "), 30));
        sized(box);
      }
    const left = new Set(first.cut);
    const found = Layout.layered(boxes, edges.filter(edge => !left.has(edge)), longest);
    found.at.forEach((at, k) => { boxes[k].fixed = at; });
    return found;
  }

  function fusedTitle(ops) {
    const names = ops.split(", ").filter(name => !["fill", "constant", "reshape"].includes(name));
    return names.length > 3 ? `${names.slice(0, 2).join(" · ")} · +${names.length - 2}`
      : names.join(" · ") || "copy";
  }

  function sized(box) {
    const longest = Math.max(box.title.length * LETTER + (box.inner && box.inner.length ? 24 : 0),
      cut(box.sub, 34).length * SMALL, ...box.notes.map(note => note.length * SMALL));
    box.w = Math.max(64, longest + 2 * PAD + 6);
    box.head = 26 + (box.sub ? 13 : 0) + 13 * box.notes.length;
    box.h = box.head;
    if (box.parts) {
      let x = PAD;
      for (const part of box.parts) {
        part.x = x;
        part.y = box.head + 18;
        x += Math.max(part.width, part.name.length * SMALL + 10) + 22;
      }
      box.w = Math.max(box.w, x - 22 + PAD);
      box.h = box.head + 18 + Math.max(0, ...box.parts.map(part => part.height)) + PAD;
    }
    return box;
  }

  // ---- drawing the graph ------------------------------------------------------------------------

  const shown = new Map(); // path -> {box, element, x, y}
  let edgesOf = new Map(); // path -> edges that touch it
  const camera = {x: 0, y: 0, k: 1, width: 0, height: 0};

  function drawGraph(keep) {
    const svg = $("graph"), root = draw("g", {id: "world"});
    shown.clear();
    edgesOf = new Map();
    const whole = arrange(stage().graph, "", stage().changes);
    paint(whole, root, 0, 0, 0);
    svg.replaceChildren(root);
    camera.width = whole.width;
    camera.height = whole.height;
    if (!keep) fit();
    move();
    legend();
    mark();
  }

  function curve(points) {
    let text = `M${points[0][0]},${points[0][1]}`;
    for (let i = 1; i < points.length; i++) {
      const [x0, y0] = points[i - 1], [x, y] = points[i];
      const bend = (y - y0) / 2;
      text += x === x0 ? `L${x},${y}` : `C${x0},${y0 + bend} ${x},${y - bend} ${x},${y}`;
    }
    return text;
  }

  function paint(part, parent, dx, dy, depth) {
    for (const {edge, points} of part.paths) {
      const line = draw("path", {class: "edge", d: curve(points)});
      parent.append(line);
      for (const k of edge) {
        const path = part.boxes[k].path;
        if (!edgesOf.has(path)) edgesOf.set(path, []);
        edgesOf.get(path).push({line, from: part.boxes[edge[0]].path, to: part.boxes[edge[1]].path});
      }
    }
    for (const box of part.boxes) {
      const group = draw("g", {
        class: `box ${box.kind} ${box.mark || ""} ${box.parts ? "inside" : ""}`,
        transform: `translate(${box.x},${box.y})`, "data-path": box.path,
      });
      if (box.node) { group.setAttribute("tabindex", "0"); group.setAttribute("role", "button");
        group.setAttribute("aria-label", `${box.title} ${box.sub}`); }
      group.append(draw("rect", {class: "body", width: box.w, height: box.h, rx: 6}),
        draw("rect", {class: `k-${box.kind}`, width: 4, height: box.head - 8, x: 3, y: 4, rx: 2}));
      let y = 17;
      group.append(draw("text", {class: "title", x: PAD + 2, y}, box.title));
      for (const text of [box.sub && cut(box.sub, 34), ...box.notes].filter(Boolean))
        group.append(draw("text", {class: "sub", x: PAD + 2, y: y += 13}, text));
      parent.append(group);
      shown.set(box.path, {box, element: group, x: dx + box.x, y: dy + box.y});
      if (box.inner && box.inner.length) {
        group.append(draw("g", {class: "toggle", transform: `translate(${box.w - 22},6)`},
          draw("rect", {width: 16, height: 16, rx: 4}),
          draw("text", {x: 8, y: 12}, box.open ? "−" : "+")));
      }
      for (const inner of box.parts || []) {
        const frame = draw("g", {transform: `translate(${inner.x},${inner.y})`});
        frame.append(draw("text", {class: "frame", y: -6}, inner.name));
        paint(inner, frame, dx + box.x + inner.x, dy + box.y + inner.y, depth + 1);
        group.append(frame);
      }
    }
  }

  function move() {
    const world = $("world");
    if (world) world.setAttribute("transform", `translate(${camera.x},${camera.y}) scale(${camera.k})`);
  }

  function fit() {
    const {clientWidth: w, clientHeight: h} = $("canvas");
    const k = Math.min((w - 40) / camera.width, (h - 84) / camera.height, 1);
    camera.k = Math.max(k, 0.75); // readable, from the top
    const first = [...shown.values()].reduce((a, b) => (b.y < a.y ? b : a), {x: 0, y: Infinity});
    const middle = first.box && camera.width * camera.k > w - 40
      ? first.x + first.box.w / 2 : camera.width / 2;
    camera.x = w / 2 - middle * camera.k;
    camera.y = camera.height * camera.k < h - 84 ? 48 + (h - 84 - camera.height * camera.k) / 4 : 48;
  }

  function whole() {
    const {clientWidth: w, clientHeight: h} = $("canvas");
    camera.k = Math.max(Math.min((w - 40) / camera.width, (h - 84) / camera.height, 1), 0.005);
    camera.x = (w - camera.width * camera.k) / 2;
    camera.y = 48;
    move();
  }

  function zoom(factor, x, y) {
    const k = Math.min(4, Math.max(0.005, camera.k * factor));
    camera.x = x - (x - camera.x) * (k / camera.k);
    camera.y = y - (y - camera.y) * (k / camera.k);
    camera.k = k;
    move();
  }

  function centre(path) {
    const found = shown.get(path);
    if (!found) return;
    const {clientWidth: w, clientHeight: h} = $("canvas");
    camera.k = Math.max(camera.k, 0.7);
    camera.x = w / 2 - (found.x + found.box.w / 2) * camera.k;
    camera.y = h / 2 - (found.y + found.box.head / 2) * camera.k;
    move();
  }

  function legend() {
    const kinds = new Set([...shown.values()].map(({box}) => box.kind));
    $("legend").replaceChildren(...Object.entries(KINDS).filter(([kind]) => kinds.has(kind))
      .map(([kind, words]) => make("span", {}, make("i", {class: `k-${kind}`}), words)));
  }

  // ---- selecting --------------------------------------------------------------------------------

  function select(path, far) {
    state.node = path;
    const found = shown.get(path);
    state.line = found && found.box.line || "";
    mark();
    describe();
    if (far) centre(path);
    const row = document.querySelector("#source .on");
    if (row) row.scrollIntoView({block: "nearest"});
  }

  function mark() {
    for (const element of document.querySelectorAll("#graph .on, #graph .lit, #graph .holds"))
      element.classList.remove("on", "lit", "holds");
    for (const element of document.querySelectorAll("#graph .hot")) element.classList.remove("hot");
    const lit = new Set();
    if (state.node && shown.has(state.node)) {
      shown.get(state.node).element.classList.add("on");
      lit.add(state.node);
      for (const {line, from, to} of edgesOf.get(state.node) || []) {
        line.classList.add("hot");
        lit.add(from).add(to);
      }
    } else if (state.line) {
      for (const [path, {box}] of shown) if (linesOf(box).has(state.line)) lit.add(path);
    }
    for (const path of lit) {
      shown.get(path).element.classList.add("lit");
      for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) {
        const outer = shown.get(path.slice(0, at));
        if (outer) outer.element.classList.add("holds");
      }
    }
    $("graph").classList.toggle("dim", lit.size > 0);
    for (const row of document.querySelectorAll("#source .linked"))
      row.classList.toggle("on", row.dataset.line === state.line
        || Boolean(state.node && shown.has(state.node)
          && linesOf(shown.get(state.node).box).has(row.dataset.line)));
  }

  /* The source lines of a node and of its sub-graphs. */
  function linesOf(box) {
    if (!box.node) return new Set();
    if (!box.lines) {
      box.lines = new Set([box.line]);
      const visit = graph => graph.n.forEach(node => {
        box.lines.add(lineKey(head(node)));
        (node[3] || []).forEach(([, inner]) => visit(inner));
      });
      (box.node[3] || []).forEach(([, inner]) => visit(inner));
      box.lines.delete("");
    }
    return box.lines;
  }

  /* What is known about the selected node, or about the whole graph. */
  function describe() {
    const panel = $("detail"), found = shown.get(state.node);
    if (!found) {
      const {graph} = stage(), count = new Map();
      for (const node of graph.n) {
        const h = head(node);
        const op = h[KIND] === "fused" ? "fused kernel" : h[OP];
        count.set(op, (count.get(op) || 0) + 1);
      }
      const rows = [...count].sort((a, b) => b[1] - a[1]);
      panel.replaceChildren(
        make("h2", {}, program().title),
        make("p", {}, `${plural(size(graph), "node")}, ${plural(graph.p.length, "input")}, `
          + plural(graph.o.length, "result")),
        make("p", {class: "hint"}, "Select a node to see its types, source and decisions; select a "
          + "line of the source to see its nodes. + opens a branch, loop, call or fused kernel."),
        make("h3", {}, "Nodes"),
        make("ul", {}, rows.map(([op, n]) => make("li", {}, make("code", {}, op), ` × ${n}`))),
        make("h3", {}, "Compilation"),
        make("ul", {}, program().notes.map(note => make("li", {}, note))));
      return;
    }
    const {box} = found;
    if (!box.node) {
      const facts = box.param !== undefined && !box.path.includes("/")
        ? stage().graph.p[box.param] : null;
      panel.replaceChildren(make("h2", {}, box.title), make("p", {}, make("code", {}, box.sub)),
        ...(facts ? [make("p", {class: "hint"}, `input %${box.param}: ${facts[2]}`)] : []));
      return;
    }
    const h = head(box.node), top = !box.path.includes("/");
    const parts = [make("h2", {}, box.kind === "fused" ? `fused kernel: ${box.title}` : h[OP])];
    if (box.mark)
      parts.push(make("p", {class: box.mark === "new" ? "plus" : "wire"},
        box.mark === "new" ? `new: ${stage().pass} made it`
          : `${stage().pass} gave it other operands`));
    const graph = graphAt(box.path);
    const types = typesOf(graph);
    parts.push(make("h3", {}, "Results"), make("ul", {}, box.node[2].map((i, k) =>
      make("li", {}, make("code", {}, `%${i}: ${h[TYPES][k]}`)))));
    if (!box.node[2].length) parts.push(make("p", {class: "hint"}, "none"));
    const inside = inlined(graph);
    parts.push(make("h3", {}, "Operands"), make("ul", {}, box.node[1].map(i => operand(
      i, graph, types, inside, box.path))));
    if (h[ATTRIBUTES])
      parts.push(make("h3", {}, box.kind === "fused" ? "Ops" : "Attributes"),
        make("p", {}, make("code", {}, h[ATTRIBUTES])));
    parts.push(make("h3", {}, "Effects"), make("p", {}, h[EFFECTS] || "none"));
    if (h[FILE] >= 0)
      parts.push(make("h3", {}, "Source"), make("p", {}, make("code", {},
        `${data.files[h[FILE]]}:${h[LINE]}`)));
    if (box.seconds !== undefined) {
      const all = Object.values(program().times).reduce((a, b) => a + b, 0);
      parts.push(make("h3", {}, "Time"), make("p", {}, `${time(box.seconds)} a run, `
        + `${Math.round(100 * box.seconds / all)} % of all kernels`));
    }
    if (top) parts.push(...decisions(box));
    panel.replaceChildren(...parts);
  }

  function graphAt(path) {
    const steps = path.split("/");
    let graph = stage().graph;
    for (let i = 0; i + 1 < steps.length; i++) {
      if (!steps[i].startsWith("n")) continue;
      const inner = subgraphs(graph.n[+steps[i].slice(1)], "");
      const next = steps[i + 1].startsWith("@") ? steps[i + 2] : steps[i + 1];
      graph = inner[+next][1];
    }
    return graph;
  }

  function typesOf(graph) {
    const types = new Map(graph.p.map(([type], i) => [i, type]));
    for (const node of graph.n) node[2].forEach((i, k) => types.set(i, head(node)[TYPES][k]));
    return types;
  }

  function operand(i, graph, types, inside, path) {
    if (i === null) return make("li", {class: "hint"}, "absent");
    const prefix = path.slice(0, path.lastIndexOf("/") + 1);
    const at = graph.n.findIndex(node => node[2].includes(i));
    const name = inside.has(i) ? inside.get(i) : at >= 0 ? head(graph.n[at])[OP]
      : graph.p[i] && graph.p[i][1] || "";
    const target = prefix + (at >= 0 ? `n${at}` : `p${i}`);
    const label = shown.has(target)
      ? make("a", {class: "to", onclick: () => select(target, true)}, name || `%${i}`) : name;
    return make("li", {}, make("code", {}, `%${i}: ${types.get(i)} `), label);
  }

  /* Why the node was fused, and the kernel and memory that it has; for the last stage. */
  function decisions(box) {
    const found = [], all = fusion();
    const reasons = all.filter(entry => state.stage === program().stages.length - 1
      ? entry.node === box.at : box.node[2].includes(entry.id) && isBeforeFusion());
    if (reasons.length)
      found.push(make("h3", {}, "Fusion"), make("ul", {}, reasons.slice(0, 30).map(entry =>
        make("li", {}, make("code", {}, entry.op), ` ${entry.why}`,
          entry.apart.map(([i, why]) => make("div", {class: "hint"}, `apart from %${i}: ${why}`))))));
    if (state.stage === program().stages.length - 1)
      program().kernels.forEach((kernel, k) => {
        if (kernel.nodes.includes(box.at))
          found.push(make("p", {}, make("a", {class: "to", onclick: () => view("kernels", k)},
            `generated kernel ${k + 1}`)));
      });
    return found;
  }

  const fusion = () => (program().stages[program().stages.length - 1].fusion || []);
  const isLast = () => state.stage === program().stages.length - 1;
  const isBeforeFusion = () => state.stage === program().stages.length - 2;

  // ---- passes and programs ----------------------------------------------------------------------

  function counts(changes) {
    return changes ? {plus: total(changes, "new"), wire: total(changes, "rewired"),
      minus: total(changes, "gone")} : {plus: 0, wire: 0, minus: 0};
  }

  function total(changes, key) {
    return changes[key].length + Object.values(changes.inner).reduce(
      (n, inner) => n + inner.reduce((m, each) => m + total(each, key), 0), 0);
  }

  const passName = name => (name === "read" ? "as written" : name.replaceAll("_", " "));

  function showPrograms() {
    const buttons = data.programs.map((each, k) => make("button", {
      type: "button", "aria-pressed": String(k === state.program), "data-program": k,
      onclick: () => { state.program = k; state.stage = 0; state.node = ""; refresh(); },
    }, each.title));
    if (data.gradient) buttons.push(make("span", {}, `No gradient: ${data.gradient}`));
    $("programs").replaceChildren(...buttons);
    const stages = program().stages, slider = $("slider");
    slider.max = stages.length - 1;
    slider.value = state.stage;
    $("pass-list").replaceChildren(...stages.map((each, k) => {
      const {plus, minus, wire} = counts(each.changes);
      return make("li", {}, make("button", {
        type: "button", "aria-current": k === state.stage && "step", "data-stage": k,
        onclick: () => goto(k),
      }, passName(each.pass), plus ? make("i", {class: "plus"}, `+${plus}`) : null,
      minus ? make("i", {class: "minus"}, `−${minus}`) : null,
      wire ? make("i", {class: "wire"}, `~${wire}`) : null));
    }));
    $("pass-name").textContent = `${state.stage + 1} of ${stages.length}: ${passName(stage().pass)}`;
    $("pass-changes").replaceChildren(...said());
  }

  /* What the pass of the present stage changed, in words. */
  function said() {
    if (!stage().changes) return ["The graph as the function was evaluated, before all passes."];
    const before = program().stages[state.stage - 1].graph, {plus, minus, wire} = counts(stage().changes);
    const gone = new Map();
    for (const at of stage().changes.gone) {
      const op = head(before.n[at])[OP];
      gone.set(op, (gone.get(op) || 0) + 1);
    }
    const names = [...gone].map(([op, n]) => (n > 1 ? `${op} ×${n}` : op)).join(", ");
    return [make("span", {class: "plus"}, `${plus} new`), ", ",
      make("span", {class: "wire"}, `${wire} with other operands`), ", ",
      make("span", {class: "minus"}, `${minus} removed`), names ? `: ${cut(names, 160)}` : ""];
  }

  function goto(k) {
    state.stage = k;
    state.node = "";
    showPrograms();
    drawGraph();
    describe();
  }

  // ---- source -----------------------------------------------------------------------------------

  function showSource() {
    const count = new Map();
    if (data.programs.length) {
      const visit = graph => graph.n.forEach(node => {
        const key = lineKey(head(node));
        if (key) count.set(key, (count.get(key) || 0) + 1);
        (node[3] || []).forEach(([, inner]) => visit(inner));
      });
      visit(data.programs[0].stages[0].graph);
    }
    const spent = new Map(); // seconds by line, of the kernels that run
    if (data.programs.length) {
      const {stages, times} = data.programs[0], {graph} = stages[stages.length - 1];
      for (const [at, seconds] of Object.entries(times)) {
        const key = lineKey(head(graph.n[at]));
        spent.set(key, (spent.get(key) || 0) + seconds);
      }
    }
    const most = Math.max(...spent.values());
    $("source").replaceChildren(...data.sources.flatMap(part => [
      make("h2", {}, `${part.name}:${part.first}`),
      make("div", {class: "code"}, part.lines.map((text, k) => {
        const key = `${part.file}:${part.first + k}`, n = count.get(key);
        const row = make("div", n ? {class: "linked", "data-line": key, tabindex: 0, role: "button",
          title: spent.has(key) ? `${plural(n, "node")}; kernels: ${time(spent.get(key))}`
            : plural(n, "node")} : {},
        make("span", {class: "no"}, part.first + k),
        spent.size ? make("span", {class: "time"}, spent.has(key) ? make("i", {
          style: `width:${Math.max(4, 100 * spent.get(key) / most)}%`}) : null,
        spent.has(key) ? time(spent.get(key)) : "") : make("span", {class: "count"}, n || ""),
        text || " ");
        return row;
      })),
    ]));
  }

  function pick(row) {
    state.line = state.line === row.dataset.line && !state.node ? "" : row.dataset.line;
    state.node = "";
    view("graph");
    mark();
    describe();
    const first = state.line && [...shown].find(([, {box}]) => linesOf(box).has(state.line));
    if (first && !inSight(first[0])) centre(first[0]);
  }

  function inSight(path) {
    const {x, y, box} = shown.get(path), {clientWidth: w, clientHeight: h} = $("canvas");
    const left = camera.x + x * camera.k, top = camera.y + y * camera.k;
    return left > 0 && top > 0 && left + box.w * camera.k < w && top < h - 20;
  }

  // ---- the other views --------------------------------------------------------------------------

  const VIEWS = {graph: "Graph", why: "Fusion", kernels: "Kernels", memory: "Memory",
    guards: "Captures and guards"};

  function view(name, item) {
    for (const key of Object.keys(VIEWS)) {
      $(`view-${key}`).hidden = key !== name;
      const tab = document.querySelector(`[data-view="${key}"]`);
      tab.setAttribute("aria-selected", String(key === name));
      if (key === name) tab.scrollIntoView({block: "nearest", inline: "nearest"});
    }
    if (name === "kernels" && item !== undefined) {
      const card = document.querySelectorAll("details.kernel")[item];
      card.open = true;
      card.scrollIntoView({block: "start"});
    }
    if (name === "memory") showMemory();
  }

  function showTabs() {
    const n = {kernels: program() ? built() : 0, guards: data.facts.captures.length};
    const tabs = Object.entries(VIEWS).filter(([key]) => program() || key === "guards");
    $("tabs").replaceChildren(...Object.entries(VIEWS).map(([key, words]) => make("button", {
      type: "button", role: "tab", "data-view": key, "aria-selected": "false",
      hidden: !tabs.some(([name]) => name === key) && "", onclick: () => view(key),
    }, words, key in n ? make("small", {}, n[key]) : null)));
  }

  const link = at => (at >= 0 ? {class: "to", onclick: () => toNode(at)} : {});

  function toNode(at) {
    if (state.stage !== program().stages.length - 1) goto(program().stages.length - 1);
    view("graph");
    select(`n${at}`, true);
  }

  function showFusion() {
    const entries = fusion(), rows = [], groups = new Map();
    for (const entry of entries) {
      const key = entry.kernel === null ? "apart" : entry.kernel;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(entry);
    }
    for (const [key, all] of [...groups].sort((a, b) => (a[0] === "apart") - (b[0] === "apart"))) {
      const title = key === "apart" ? "Not fused" : `Kernel ${key + 1}: ${plural(all.length, "node")}`;
      rows.push(make("tr", {class: "head"}, make("td", {colspan: 3}, key === "apart" ? title
        : make("a", link(all[0].node), title))));
      for (const entry of all)
        rows.push(make("tr", {}, make("td", {}, make("a", link(entry.node), make("code", {}, entry.op))),
          make("td", {}, entry.line || ""), make("td", {}, entry.why,
            entry.apart.map(([i, why]) => make("div", {class: "hint"},
              `apart from ${producer(i)}: ${why}`)))));
    }
    $("view-why").replaceChildren(make("p", {}, program().notes.join("; ") || "op by op"),
      entries.length ? make("div", {class: "scroll"}, make("table", {}, make("thead", {}, make("tr", {},
        ["Node", "Line", "Decision"].map(text => make("th", {}, text)))), make("tbody", {}, rows)))
        : make("p", {class: "hint"}, "No pass fused nodes: at level O0, and on devices without a "
          + "compiler, every node runs in the kernel of its op."));
    function producer(i) {
      const entry = entries.find(each => each.id === i);
      return entry ? `${entry.op} (%${i})` : `%${i}`;
    }
  }

  const built = () => program().kernels.filter(kernel => kernel.built).length;
  const unbuilt = () => program().notes.filter(note => note.includes("run op by op:"))
    .map(note => note.replace(/^\d+ regions? without a kernel, run op by op: /, "The backend says: ") + ".").join(" ");

  const WORDS = /(\/\*[\s\S]*?\*\/|\/\/[^\n]*)|(#[^\n]*)|\b(const|int|float|double|void|for|while|if|else|return|static|inline|restrict|DG_KERNEL|i64|i32|i16|i8|u8|u16|u32|u64|f32|f64|f16|bf16|b8)\b|\b(0x[0-9a-fA-F]+|\d+\.?\d*(?:e[+-]?\d+)?f?)\b/g;

  function highlighted(text) {
    const found = [];
    let end = 0;
    for (const match of text.matchAll(WORDS)) {
      found.push(text.slice(end, match.index));
      const kind = match[1] ? "r" : match[2] || match[3] ? "w" : "n";
      found.push(make("span", {class: kind}, match[0]));
      end = match.index + match[0].length;
    }
    return [...found, text.slice(end)];
  }

  function showKernels() {
    const cards = program().kernels.map((kernel, k) => {
      const ops = kernel.ops.filter(op => op !== "fill" && op !== "constant");
      const body = make("div", {});
      const card = make("details", {class: "kernel", ontoggle: () => {
        if (card.open && !body.childNodes.length)
          body.append(make("pre", {class: "c"}, kernel.source ? highlighted(kernel.source)
            : (kernel.built ? "The backend shows no source for this kernel."
              : `This region has no kernel; its nodes run one by one. ${unbuilt()}`)
              + " It computes:\n\n" + kernel.graph));
      }}, make("summary", {}, make("b", {}, `${k + 1}. ${cut(ops.join(" · "), 70)}`),
        kernel.built ? null : make("span", {class: "wire"}, "runs op by op"),
        make("span", {}, `${plural(ops.length, "op")}, reads ${bytes(kernel.reads)}, writes `
          + bytes(kernel.writes)),
        make("span", {}, kernel.nodes.slice(0, 8).map((at, i) => [i ? ", " : "used by ",
          make("a", {class: "to", onclick: event => { event.preventDefault(); toNode(at); }},
            `node ${at}`)]).flat())), body);
      if (k === 0) card.open = true;
      return card;
    });
    $("view-kernels").replaceChildren(...(cards.length ? cards : [make("p", {class: "hint"},
      "No kernel was generated for this graph: its nodes run in prebuilt kernels.")]));
  }

  const HUES = [212, 262, 168, 28, 340, 190, 48, 300, 130, 0];

  function showMemory() {
    const memory = program().memory, panel = $("view-memory");
    if (!memory) {
      panel.replaceChildren(make("p", {class: "hint"}, "There is no memory plan: each value has "
        + "memory of its own while it is needed, as the program "
        + (program().notes.find(note => note.startsWith("runs step by step"))
          || "runs step by step") + "."));
      return;
    }
    const tile = (value, words) => make("div", {}, make("b", {}, value), make("span", {}, words));
    const saved = memory.total ? Math.round(100 * (1 - memory.arena / memory.total)) : 0;
    const note = make("p", {id: "memory-note"}, memory.blocks.length
      ? "Point at a block to see its value." : "No value needs the arena.");
    panel.replaceChildren(make("div", {class: "tiles"},
      tile(bytes(memory.arena), "arena for intermediate values"),
      tile(bytes(memory.total), `without sharing (${saved} % saved)`),
      tile(bytes(memory.results), "new memory for results"),
      tile(memory.donations, "results in the memory of Parameters")),
    chart(memory, note, panel.clientWidth - 36 || 900), note, largest(memory));
  }

  /* The op that writes a block; the ops of a fused kernel. */
  function writer(block) {
    const {graph} = program().stages[program().stages.length - 1];
    const h = block.node >= 0 ? head(graph.n[block.node]) : null;
    return h && h[KIND] === "fused" ? fusedTitle(h[ATTRIBUTES]) : block.op;
  }

  function chart(memory, note, width) {
    const left = 62, height = 300, live = 70, bottom = 26, n = memory.steps.length + 1;
    const x = step => left + (step / n) * (width - left - 8);
    const y = offset => 8 + height * (1 - offset / Math.max(1, memory.arena));
    const svg = draw("svg", {id: "memory-chart", viewBox: `0 0 ${width} ${height + live + bottom + 44}`,
      height: height + live + bottom + 44, role: "img",
      "aria-label": "Memory plan: offsets in the arena over the steps of the program"});
    for (let i = 0; i <= 4; i++) {
      const at = y(memory.arena * i / 4);
      svg.append(draw("line", {class: "grid", x1: left, x2: width - 8, y1: at, y2: at}),
        draw("text", {x: left - 6, y: at + 4, "text-anchor": "end"}, bytes(Math.round(memory.arena * i / 4))));
    }
    const ops = [...new Set(memory.blocks.map(block => block.op))];
    const use = new Array(n + 1).fill(0);
    for (const block of memory.blocks) {
      const top = y(block.offset + block.bytes), w = Math.max(2, x(block.last + 1) - x(block.first) - 1);
      const h = Math.max(2, y(block.offset) - top);
      for (let t = block.first; t <= Math.min(block.last, n); t++) use[t] += block.bytes;
      const hue = HUES[ops.indexOf(block.op) % HUES.length];
      const words = `${writer(block)} → ${block.type}: ${bytes(block.bytes)} at offset ${block.offset}, `
        + `written by step ${block.first}, last read by step ${block.last}`;
      const rect = draw("rect", {class: "block", x: x(block.first), y: top, width: w, height: h,
        rx: 2, fill: `hsl(${hue} 48% 46%)`, tabindex: 0, "data-node": block.node,
        onmouseenter: () => { note.textContent = words; }, onfocus: () => { note.textContent = words; },
        onclick: () => { if (block.node >= 0) toNode(block.node); }}, draw("title", {}, words));
      svg.append(rect);
      const name = cut(writer(block), Math.floor((w - 8) / 7));
      if (h > 14 && name.length > 2)
        svg.append(draw("text", {class: "in", x: x(block.first) + 5, y: top + Math.min(h / 2 + 4, 15)},
          name));
    }
    const base = 8 + height + 20 + live, most = Math.max(1, ...use);
    let line = `M${x(1)},${base}`;
    for (let t = 1; t < n; t++) {
      const at = base - live * use[t] / most;
      line += `L${x(t)},${at}L${x(t + 1)},${at}`;
    }
    svg.append(draw("path", {class: "live", d: `${line}L${x(n)},${base}Z`}),
      draw("text", {x: left - 6, y: base - live + 8, "text-anchor": "end"}, bytes(most)),
      draw("text", {x: left - 6, y: base, "text-anchor": "end"}, "live"));
    const ticks = Math.min(memory.steps.length, Math.max(1, Math.floor((width - left) / 60)));
    for (let i = 0; i < ticks; i++) {
      const step = 1 + Math.round(i * (memory.steps.length - 1) / Math.max(1, ticks - 1));
      svg.append(draw("text", {x: x(step), y: base + 16}, String(step)));
    }
    svg.append(draw("text", {x: width - 8, y: base + 32, "text-anchor": "end"}, "step of the program"));
    return svg;
  }

  function largest(memory) {
    const rows = memory.blocks.slice().sort((a, b) => b.bytes - a.bytes).slice(0, 12);
    return make("div", {class: "scroll"}, make("h3", {}, "Largest values"), make("table", {},
      make("thead", {}, make("tr", {}, ["Written by", "Type", "Bytes", "Offset", "Steps"].map(
        text => make("th", {}, text)))),
      make("tbody", {}, rows.map(block => make("tr", {},
        make("td", {}, make("a", link(block.node), make("code", {}, writer(block)))),
        make("td", {}, make("code", {}, block.type)), make("td", {}, bytes(block.bytes)),
        make("td", {}, block.offset), make("td", {}, `${block.first} to ${block.last}`))))));
  }

  function showGuards() {
    const {facts} = data;
    const list = (title, items) => [make("h3", {}, title), items.length
      ? make("ul", {}, items.map(item => make("li", {}, make("code", {}, item))))
      : make("p", {class: "hint"}, "nothing")];
    $("view-guards").replaceChildren(
      make("p", {}, "Before each call these captured values are compared with what they were; a "
        + "change compiles the function again."),
      make("div", {class: "scroll"}, make("table", {}, make("thead", {}, make("tr", {},
        ["Captured", "Value when compiled", "Guard", "On a change"].map(text => make("th", {}, text)))),
      make("tbody", {}, facts.captures.length ? facts.captures.map(c => make("tr", {},
        make("td", {}, make("code", {}, c.name)), make("td", {}, make("code", {}, c.value)),
        make("td", {}, c.guard),
        make("td", {}, c.exact ? "always compiled again" : "as stale_captures says")))
        : [make("tr", {}, make("td", {colspan: 4, class: "hint"}, "nothing"))]))),
      ...list("Compiled for", [facts.arguments]), ...list("Reads", facts.reads),
      ...list("Writes", facts.writes), ...list("Effects", facts.effects),
      ...list("Calls of Python", facts.host_calls),
      ...list("Why it was compiled again", facts.reasons));
  }

  function showSummary() {
    const {facts} = data, parts = [];
    if (facts.line_by_line) parts.push(`runs line by line: ${facts.line_by_line}`);
    else {
      const first = data.programs[0].stages;
      parts.push(`level ${facts.level} on ${facts.device}`,
        `compiled in ${(facts.seconds * 1000).toFixed(1)} ms`,
        `${size(first[0].graph)} nodes as written, ${first[first.length - 1].graph.n.length} to run`,
        plural(built(), "generated kernel"));
      const all = Object.values(data.programs[0].times).reduce((a, b) => a + b, 0);
      if (all) parts.push(`kernels take ${time(all)}`);
      if (data.programs[0].memory) parts.push(`arena ${bytes(data.programs[0].memory.arena)}`);
    }
    $("summary").replaceChildren(...parts.map(text => make("span", {}, text)));
  }

  // ---- events -----------------------------------------------------------------------------------

  function toggle(path) {
    const {box, x, y} = shown.get(path), before = {x, y};
    (box.open ? state.shut : state.open).add(path);
    (box.open ? state.open : state.shut).delete(path);
    drawGraph(true);
    const after = shown.get(path); // the box stays where it is on the screen
    camera.x += (before.x - after.x) * camera.k;
    camera.y += (before.y - after.y) * camera.k;
    move();
  }

  function listen() {
    const svg = $("graph"), held = new Map();
    let moved = 0, apart = 0;
    svg.addEventListener("wheel", event => {
      event.preventDefault();
      const frame = svg.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - frame.left, event.clientY - frame.top);
    }, {passive: false});
    svg.addEventListener("pointerdown", event => {
      held.set(event.pointerId, [event.clientX, event.clientY]);
      moved = 0;
      apart = 0;
    });
    svg.addEventListener("pointermove", event => {
      const last = held.get(event.pointerId);
      if (!last) return;
      const dx = event.clientX - last[0], dy = event.clientY - last[1];
      moved += Math.abs(dx) + Math.abs(dy);
      held.set(event.pointerId, [event.clientX, event.clientY]);
      if (moved < 4) return;
      svg.setPointerCapture(event.pointerId);
      svg.classList.add("dragging");
      if (held.size === 2) { // two fingers
        const [a, b] = [...held.values()], frame = svg.getBoundingClientRect();
        const now = Math.hypot(a[0] - b[0], a[1] - b[1]);
        if (apart) zoom(now / apart, (a[0] + b[0]) / 2 - frame.left, (a[1] + b[1]) / 2 - frame.top);
        apart = now;
        return;
      }
      camera.x += dx;
      camera.y += dy;
      move();
    });
    for (const name of ["pointerup", "pointercancel"])
      svg.addEventListener(name, event => {
        held.delete(event.pointerId);
        svg.classList.remove("dragging");
      });
    const chosen = event => {
      const box = event.target.closest(".box");
      if (!box) { state.line = ""; select(""); return; }
      if (event.target.closest(".toggle")) toggle(box.dataset.path);
      else select(box.dataset.path);
    };
    svg.addEventListener("click", event => { if (moved < 4) chosen(event); });
    svg.addEventListener("dblclick", event => {
      const box = event.target.closest(".box"), found = box && shown.get(box.dataset.path);
      if (found && found.box.inner && found.box.inner.length) toggle(box.dataset.path);
    });
    svg.addEventListener("keydown", event => {
      if (event.key === "Enter") chosen(event);
    });
    $("slider").addEventListener("input", event => goto(+event.target.value));
    for (const name of ["click", "keydown"])
      $("source").addEventListener(name, event => {
        const row = event.target.closest(".linked");
        if (row && (name === "click" || event.key === "Enter")) pick(row);
      });
    $("zoom").addEventListener("click", event => {
      const what = event.target.dataset.zoom, {clientWidth: w, clientHeight: h} = $("canvas");
      if (what === "in") zoom(1.3, w / 2, h / 2);
      if (what === "out") zoom(1 / 1.3, w / 2, h / 2);
      if (what === "fit") whole();
      if (what === "open" || what === "shut") all(what === "open");
    });
    window.addEventListener("resize", () => { if (!$("view-memory").hidden) showMemory(); });
  }

  function all(open) {
    state.open.clear();
    state.shut.clear();
    const visit = (graph, path) => graph.n.forEach((node, at) => {
      const own = `${path}n${at}`, inner = subgraphs(node, own + "/");
      if (!inner.length) return;
      (open ? state.open : state.shut).add(own);
      inner.forEach(([name, g], k) => visit(g, `${own}/${name.startsWith("@") ? name + "/" : ""}${k}/`));
    });
    visit(stage().graph, "");
    drawGraph();
  }

  function refresh() {
    showPrograms();
    drawGraph();
    describe();
    showFusion();
    showKernels();
  }

  showSummary();
  showSource();
  showTabs();
  showGuards();
  if (program()) {
    listen();
    view("graph");
    refresh();
  } else view("guards");
  document.body.dataset.ready = String(Math.round(performance.now()));
})();
