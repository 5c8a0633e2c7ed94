'use strict';
// The data of the page, and the states of memory computed from it. Numbers are
// floating point but exact: offsets in a region, sizes and events are below 2^53.
// Addresses are BigInt.

// unpack decompresses the text of an element.
async function unpack(id) {
  const text = atob(document.getElementById(id).textContent.replace(/[^A-Za-z0-9+/=]/g, ''));
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Columns reads numbers in LEB128.
class Columns {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  next() {
    let value = 0, unit = 1, byte;
    do {
      byte = this.bytes[this.at++];
      value += (byte & 127) * unit;
      unit *= 128;
    } while (byte > 127);
    return value;
  }
  column(n, next = () => this.next()) {
    const out = new Float64Array(n);
    for (let i = 0; i < n; i++) out[i] = next(i);
    return out;
  }
}

// Data is the meta data with the blocks and ranges as arrays.
class Data {
  constructor(meta, bytes) {
    Object.assign(this, meta);
    const c = new Columns(bytes);
    let n = 0;
    for (const r of this.regions) {
      r.base = BigInt(r.start);
      r.from = n;
      n += r.blocks;
      r.to = n;
    }
    this.offset = new Float64Array(n);
    for (const r of this.regions) {
      for (let i = r.from, at = 0; i < r.to; i++) this.offset[i] = at += c.next();
    }
    this.size = c.column(n);
    this.end = this.size.map((size, i) => this.offset[i] + Math.max(1, size) - 1); // a block of 0 bytes has an address
    let before = 0;
    this.born = c.column(n, () => {
      const v = c.next();
      return before += v % 2 ? -(v + 1) / 2 : v / 2;
    });
    this.died = c.column(n, (i) => { const life = c.next(); return life ? this.born[i] + life : Infinity; });
    this.thread = c.column(n);
    this.site = c.column(n);
    this.bytes = this.merged ? c.column(n) : null;
    this.count = this.merged ? c.column(n) : null;
    for (const r of this.regions) {
      for (const kind of ['heap', 'internal', 'freed']) r[kind] = spans(c, r[kind]);
    }
  }

  live(i, event) { return this.born[i] <= event && event < this.died[i]; }

  // bytesOf returns the size of a block, or of all merged blocks.
  bytesOf(i) { return this.bytes ? this.bytes[i] : this.size[i]; }

  // level returns the live amount in each region and in total.
  level(event) {
    const all = {blocks: 0, bytes: 0, regions: []};
    for (const r of this.regions) {
      let blocks = 0, bytes = 0;
      for (let i = r.from; i < r.to; i++) {
        if (this.born[i] <= event && event < this.died[i]) {
          blocks += this.count ? this.count[i] : 1;
          bytes += this.bytesOf(i);
        }
      }
      all.regions.push({blocks, bytes});
      all.blocks += blocks;
      all.bytes += bytes;
    }
    return all;
  }

  // at finds the blocks in a range of a region: the live block that covers most of
  // it and the number of live blocks, otherwise the block that was freed last.
  at(region, from, to, event) {
    const r = this.regions[region];
    let best = -1, most = 0, n = 0, last = -1;
    for (let i = r.from; i < r.to && this.offset[i] <= to; i++) {
      const end = this.end[i];
      if (end < from || this.born[i] > event) continue;
      if (event >= this.died[i]) {
        if (last < 0 || this.died[i] > this.died[last]) last = i;
        continue;
      }
      n++;
      const cover = Math.min(end, to) - Math.max(this.offset[i], from) + 1;
      if (cover > most) [best, most] = [i, cover];
    }
    return {block: best, blocks: n, freed: last};
  }
}

function spans(c, n) {
  const out = [];
  for (let i = 0, at = 0; i < n; i++) {
    const start = at + c.next(), length = c.next();
    out.push({start, last: start + length - 1, since: c.next()});
    at = start + length;
  }
  return out;
}

// Coverage counts the bytes of each cell that are covered by ranges.
class Coverage {
  constructor(base, cellBytes, cells) {
    Object.assign(this, {base, cellBytes, cells, last: base + cells * cellBytes - 1});
    this.parts = new Float64Array(cells);
    this.steps = new Int32Array(cells + 1);
    this.whole = 0;
  }
  add(start, last) {
    if (last < this.base || start > this.last) return;
    const from = Math.max(start, this.base) - this.base, to = Math.min(last, this.last) - this.base;
    const i = Math.floor(from / this.cellBytes), j = Math.floor(to / this.cellBytes);
    if (i === j) {
      this.parts[i] += to - from + 1;
      return;
    }
    this.parts[i] += (i + 1) * this.cellBytes - from;
    this.parts[j] += to - j * this.cellBytes + 1;
    this.steps[i + 1]++;
    this.steps[j]--;
  }
  spans(list, event) {
    for (const s of list) if (s.since <= event) this.add(s.start, s.last);
  }
  next(i) {
    this.whole += this.steps[i];
    return this.parts[i] + this.whole * this.cellBytes;
  }
}

// The states, as in package heapmap; from USED on, in eighths.
const UNKNOWN = 0, HEAP = 1, INTERNAL = 2, FREED = 3, USED = 4;

// paint returns the states of cells of a region from an offset on.
function paint(data, region, base, cellBytes, cells, event) {
  const r = data.regions[region], grid = () => new Coverage(base, cellBytes, cells);
  const used = grid(), freed = grid(), internal = grid(), heap = grid();
  for (let i = r.from; i < r.to && data.offset[i] <= used.last; i++) {
    if (data.born[i] > event) continue;
    (event < data.died[i] ? used : freed).add(data.offset[i], data.end[i]);
  }
  freed.spans(r.freed, event);
  internal.spans(r.internal, event);
  heap.spans(r.heap, event);
  const out = new Uint8Array(cells);
  for (let i = 0; i < cells; i++) {
    const n = used.next(i), f = freed.next(i), own = internal.next(i), h = heap.next(i);
    if (n > 0) out[i] = USED + Math.ceil(Math.min(n, cellBytes) * 8 / cellBytes) - 1;
    else if (f > 0) out[i] = FREED;
    else if (own > 0) out[i] = INTERNAL;
    else if (h > 0) out[i] = HEAP;
  }
  return out;
}

// owners returns the live block in each of some cells, -1 for none.
function owners(data, region, base, cellBytes, cells, event) {
  const r = data.regions[region], last = base + cells * cellBytes - 1;
  const out = new Int32Array(cells).fill(-1);
  for (let i = r.from; i < r.to && data.offset[i] <= last; i++) {
    const start = data.offset[i], end = data.end[i];
    if (end < base || !data.live(i, event)) continue;
    const from = Math.floor((Math.max(start, base) - base) / cellBytes);
    out.fill(i, from, Math.floor((Math.min(end, last) - base) / cellBytes) + 1);
  }
  return out;
}
