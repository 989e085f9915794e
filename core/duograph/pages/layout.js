"use strict";
/* A layered layout of directed graphs without cycles, after Sugiyama, Tagawa and Toda (1981):
   assign layers, order each layer by medians, then place nodes as near to their neighbours as
   their order allows. Items may differ in size, so that an item can hold a laid-out graph. */
const Layout = (() => {
  const GAP_X = 18, GAP_Y = 34, DUMMY = 8, SWEEPS = 8;

  /* Returns the layer of each item: as low as its operands allow, then moved down towards its
     readers where that shortens edges. Items are in topological order. */
  function layersOf(items, edges) {
    const count = items.length;
    const before = Array.from({length: count}, () => []);
    const after = Array.from({length: count}, () => []);
    for (const [a, b] of edges) { before[b].push(a); after[a].push(b); }
    const layer = new Array(count).fill(0);
    for (let i = 0; i < count; i++)
      for (const p of before[i]) layer[i] = Math.max(layer[i], layer[p] + 1);
    for (let i = count - 1; i >= 0; i--) {
      const held = before[i].filter(p => items[p].kind !== "param").length; // inputs may be far
      if (!after[i].length || (held && held >= after[i].length)) continue;
      layer[i] = Math.max(layer[i], Math.min(...after[i].map(s => layer[s])) - 1);
    }
    return layer;
  }

  /* Solves min sum w_i (x_i - want_i)^2 with x_{i+1} - x_i >= distance_i (pool adjacent
     violators). */
  function separate(want, distance, weight) {
    const blocks = [];
    let shift = 0;
    want.forEach((w, i) => {
      if (i) shift += distance[i - 1];
      blocks.push({sum: (w - shift) * weight[i], weight: weight[i], size: 1});
      while (blocks.length > 1) {
        const b = blocks[blocks.length - 1], a = blocks[blocks.length - 2];
        if (a.sum / a.weight <= b.sum / b.weight) break;
        blocks.pop();
        a.sum += b.sum; a.weight += b.weight; a.size += b.size;
      }
    });
    const found = [];
    let at = 0;
    shift = 0;
    for (const block of blocks)
      for (let k = 0; k < block.size; k++, at++) {
        if (at) shift += distance[at - 1];
        found.push(block.sum / block.weight + shift);
      }
    return found;
  }

  /* Lays out items of given sizes. Edges longer than `longest` layers are left out and returned
     as `cut`. Returns {width, height, at: [{x, y}] (top left corners), paths: [{edge, points}],
     cut: [edge]}. */
  function layered(sizes, edges, longest) {
    const layer = layersOf(sizes, edges);
    const nodes = sizes.map((s, i) => ({w: s.w, h: s.h, layer: layer[i], up: [], down: []}));
    const link = (a, b) => { nodes[a].down.push(b); nodes[b].up.push(a); };
    const cut = [], routes = [];
    for (const edge of edges) {
      const [a, b] = edge, span = layer[b] - layer[a];
      if (span > longest) { cut.push(edge); continue; }
      const route = [a];
      for (let l = layer[a] + 1; l < layer[b]; l++) {
        nodes.push({w: DUMMY, h: 0, layer: l, up: [], down: [], dummy: true});
        link(route[route.length - 1], nodes.length - 1);
        route.push(nodes.length - 1);
      }
      link(route[route.length - 1], b);
      route.push(b);
      routes.push({edge, route});
    }
    const rows = [];
    nodes.forEach((n, i) => (rows[n.layer] = rows[n.layer] || []).push(i));
    for (let l = 0; l < rows.length; l++) rows[l] = rows[l] || [];
    order(nodes, rows);
    place(nodes, rows);
    let y = 0;
    const tops = [], heights = [];
    rows.forEach((row, l) => {
      tops[l] = y;
      heights[l] = Math.max(0, ...row.map(i => nodes[i].h));
      y += heights[l] + GAP_Y;
    });
    let left = Infinity, right = -Infinity;
    for (const n of nodes) {
      left = Math.min(left, n.x - n.w / 2);
      right = Math.max(right, n.x + n.w / 2);
    }
    if (!nodes.length) left = right = 0;
    const at = sizes.map((s, i) => ({x: nodes[i].x - s.w / 2 - left, y: tops[layer[i]]}));
    const arriving = ports(routes, nodes, 1), leaving = ports(routes, nodes, 0);
    const paths = routes.map(({edge, route}, k) => {
      const points = [];
      route.forEach((i, r) => {
        const n = nodes[i], top = tops[n.layer];
        if (r === 0) points.push([leaving[k] - left, top + n.h]);
        else if (r === route.length - 1) points.push([arriving[k] - left, top]);
        else points.push([n.x - left, top], [n.x - left, top + heights[n.layer]]);
      });
      return {edge, points};
    });
    return {width: right - left, height: Math.max(0, y - GAP_Y), at, paths, cut};
  }

  /* Spreads the ends of the edges over the sides of their items; returns an x for each route. */
  function ports(routes, nodes, end) {
    const by = new Map();
    routes.forEach(({route}, k) => {
      const own = end ? route[route.length - 1] : route[0];
      const next = end ? route[route.length - 2] : route[1];
      if (!by.has(own)) by.set(own, []);
      by.get(own).push([nodes[next].x, k]);
    });
    const found = [];
    for (const [own, all] of by) {
      all.sort((a, b) => a[0] - b[0]);
      const room = Math.min(nodes[own].w * 0.6, (all.length - 1) * 16);
      all.forEach(([, k], i) => {
        const part = all.length > 1 ? i / (all.length - 1) - 0.5 : 0;
        found[k] = nodes[own].x + part * room;
      });
    }
    return found;
  }

  function order(nodes, rows) {
    const rank = () => rows.forEach(row => row.forEach((i, k) => { nodes[i].rank = k; }));
    rank();
    for (let sweep = 0; sweep < SWEEPS; sweep++) {
      const side = sweep % 2 ? "down" : "up";
      const list = sweep % 2 ? rows.slice().reverse() : rows;
      for (const row of list) {
        const key = new Map(row.map(i => [i, median(nodes[i][side], nodes, nodes[i].rank)]));
        row.sort((a, b) => key.get(a) - key.get(b) || nodes[a].rank - nodes[b].rank);
        row.forEach((i, k) => { nodes[i].rank = k; });
      }
    }
  }

  function median(neighbours, nodes, own) {
    if (!neighbours.length) return own;
    const ranks = neighbours.map(i => nodes[i].rank).sort((a, b) => a - b);
    const middle = ranks.length >> 1;
    return ranks.length % 2 ? ranks[middle] : (ranks[middle - 1] + ranks[middle]) / 2;
  }

  function place(nodes, rows) {
    for (const row of rows) {
      let x = 0;
      for (const i of row) { nodes[i].x = x + nodes[i].w / 2; x += nodes[i].w + GAP_X; }
      for (const i of row) nodes[i].x -= x / 2;
    }
    for (let sweep = 0; sweep < SWEEPS; sweep++) {
      const list = sweep % 2 ? rows.slice().reverse() : rows;
      for (const row of list) {
        const want = row.map(i => {
          const n = nodes[i];
          const near = sweep === SWEEPS - 1 ? [...n.up, ...n.down] : sweep % 2 ? n.down : n.up;
          return near.length ? near.reduce((s, j) => s + nodes[j].x, 0) / near.length : n.x;
        });
        const distance = row.slice(1).map((i, k) => (nodes[row[k]].w + nodes[i].w) / 2 + GAP_X);
        const weight = row.map(i => (nodes[i].dummy ? 4 : 1));
        separate(want, distance, weight).forEach((x, k) => { nodes[row[k]].x = x; });
      }
    }
  }

  return {layered};
})();
