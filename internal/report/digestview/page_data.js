'use strict';
// The data of the page, and trees built from its stacks.

// The measures of a stack, a function …, by their index in uses.
const USES = 12;
const MEASURES = [
  {id: 'live', name: 'Still live at the end', at: 0},
  {id: 'peak', name: 'Live at the peak', at: 2},
  {id: 'allocated', name: 'Allocated', at: 4},
  {id: 'temporary', name: 'Temporary', at: 6},
  {id: 'unknown', name: 'Unknown', at: 8},
  {id: 'range', name: 'Live at the end of the range', at: 10}, // of filtered stacks only
];
const OTHER = '(other)', UNKNOWN = '??';

class Data {
  constructor(json) {
    Object.assign(this, json);
    this.inlined = new Set(this.frames.inlined);
  }

  text(n) { return this.texts[n]; }

  // when returns a time as text, counted from the beginning of the recording.
  when(t) { return seconds(t - this.from); }

  // clock returns a time as the time of day, or an empty string for one that no calendar has.
  clock(t) {
    const at = new Date(this.wall + (t - this.from) / 1e6);
    return isNaN(at) ? '' : at.toISOString().replace(/.*T|\..*/g, '') + ' UTC';
  }

  // name returns the function of a frame, or else the module and the offset in it, or the address,
  // line and module.
  name(frame) {
    if (frame < 0) return OTHER;
    const f = this.frames;
    const name = this.text(f.function[frame]);
    if (name) return name;
    const where = this.text(f.file[frame]), at = this.text(f.address[frame]);
    return [at, where ? 'at ' + where : '', f.module[frame] && !at.includes('+') ? 'in ' + base(this.text(f.module[frame])) : ''].filter(Boolean).join(' ') || UNKNOWN;
  }

  module(frame) { return frame < 0 ? '' : this.text(this.frames.module[frame]); }

  // line returns the source file and line of a frame, or an empty string.
  line(frame) {
    const f = this.frames, file = frame < 0 ? '' : this.text(f.file[frame]);
    return file && f.line[frame] ? file + ':' + f.line[frame] : file;
  }

  // place returns a frame with its file and line, or module.
  place(frame) {
    if (frame < 0) return OTHER;
    const f = this.frames, line = this.line(frame), module = this.module(frame);
    let out = this.name(frame);
    if (f.function[frame] === 0) return out;
    if (line) out += ' at ' + line;
    if (module) out += ' from ' + module;
    if (f.address[frame]) out = this.text(f.address[frame]) + ' ' + out;
    return out;
  }

  // path returns the frames of a node, the innermost first.
  path(node) {
    const frames = [];
    for (let n = node; n > 0; n = this.nodes.parent[n]) frames.push(this.nodes.frame[n]);
    return frames;
  }

  // same returns equal keys for frames that share a box of the flame graph. Lines
  // do not count: a box may have several.
  same(frame) {
    if (frame < 0) return -1;
    const f = this.frames;
    if (f.function[frame] === 0) return 'a' + f.address[frame] + ' ' + f.module[frame] + ' ' + f.file[frame];
    return f.function[frame] + ' ' + f.module[frame] + (this.inlined.has(frame) ? ' inlined' : '');
  }

  // tree adds up the stacks of a resource, from the outermost frames on or, if
  // inverted, from the innermost ones.
  tree(resource, inverted) {
    const root = new Node(null, null, 'all', '');
    const s = resource.stacks;
    for (let i = 0; i < s.node.length; i++) {
      const path = this.path(s.node[i]);
      if (!inverted) path.reverse();
      let frames = path;
      // A sum of stacks has no innermost frame.
      if (inverted && i >= s.first) frames = [-1];
      let node = root;
      node.add(s.uses[i]);
      for (const frame of frames) {
        node = node.child(this.same(frame), () => [this.name(frame), this.module(frame), this.inlined.has(frame)]);
        node.add(s.uses[i]);
        if (frame >= 0 && this.frames.file[frame]) node.addFrame(frame, s.uses[i]);
      }
    }
    return root;
  }
}

// Node is a box of the flame graph.
class Node {
  constructor(parent, key, name, module, inlined) {
    this.parent = parent;
    this.other = key === -1;
    this.name = name;
    this.module = module;
    this.inlined = !!inlined;
    this.depth = parent ? parent.depth + 1 : 0;
    this.uses = new Float64Array(USES);
    this.kids = new Map();
    this.frames = null; // uses by frame, for frames with lines
    this.colour = 7;
  }

  add(uses) { addTo(this.uses, uses); }

  addFrame(frame, uses) {
    this.frames ??= new Map();
    let sum = this.frames.get(frame);
    if (!sum) this.frames.set(frame, sum = new Float64Array(USES));
    addTo(sum, uses);
  }

  // framesBy returns the frames with lines, the largest first.
  framesBy(at) {
    return [...this.frames || []].filter(([, uses]) => uses[at] > 0).sort((a, b) => b[1][at] - a[1][at] || a[0] - b[0]).map(([frame]) => frame);
  }

  child(key, describe) {
    let kid = this.kids.get(key);
    if (!kid) {
      kid = new Node(this, key, ...describe());
      this.kids.set(key, kid);
    }
    return kid;
  }

  // sorted returns the children, the largest first.
  sorted(at) {
    return [...this.kids.values()].filter((k) => k.uses[at] > 0).sort((a, b) => a.other - b.other || b.uses[at] - a.uses[at] || (a.name < b.name ? -1 : 1));
  }

  matches(query) {
    if (this.lower === undefined) this.lower = (this.name + '\n' + this.module).toLowerCase();
    return this.parent !== null && this.lower.includes(query);
  }
}

// el makes an element. Texts of the trace are always added as text, not as HTML.
function el(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === 'class') e.className = value;
    else if (name.startsWith('on')) e.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) e.setAttribute(name, value);
  }
  e.append(...children);
  return e;
}

function addTo(sum, uses) { for (let i = 0; i < uses.length; i++) sum[i] += uses[i]; }

function some(uses) { return uses.some((n) => n !== 0); }

const $ = (id) => document.getElementById(id);

function base(path) { return path.slice(path.lastIndexOf('/') + 1) || path; }

// These functions format numbers as package figure does.

function significant(v) {
  const digits = v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2;
  return String(Number(v.toFixed(digits)));
}

function size(n) {
  if (n < 1024) return Math.round(n) + ' B';
  let unit = 0;
  while (n >= 999.5 && unit < 6) [n, unit] = [n / 1024, unit + 1];
  return significant(n) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'][unit];
}

function short(n) {
  if (n < 1000) return significant(n);
  let unit = 0;
  while (n >= 999.5 && unit < 6) [n, unit] = [n / 1000, unit + 1];
  return significant(n) + ['', ' k', ' M', ' G', ' T', ' P', ' E'][unit];
}

function seconds(ns) {
  if (ns === 0) return '0 s';
  for (const unit of [' ns', ' µs', ' ms']) {
    if (ns < 999.5) return significant(ns) + unit;
    ns /= 1000;
  }
  return significant(ns) + ' s';
}

function percent(part, whole) {
  if (!whole) return '0 %';
  const p = 100 * part / whole;
  if (p > 0 && p < 0.1) return '<0.1 %';
  if (p < 100 && p > 99.9) return '>99.9 %';
  return significant(p) + ' %';
}

function count(n) { return n.toLocaleString('en-US', {maximumFractionDigits: 0}); }

function plural(n, what) { return count(n) + ' ' + what + (n === 1 ? '' : 's'); }
