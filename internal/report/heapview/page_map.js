// The map: regions below each other, in rows of cells. The canvas shows a part of
// it.

const GUTTER = 118, HEAD = 22, GAP = 12, BAR = 12;

class MapView {
  constructor(data, canvas) {
    Object.assign(this, {data, canvas, scroll: 0, event: data.event, mode: 'state', picked: -1, hover: null});
    this.ctx = canvas.getContext('2d');
    this.cells = document.createElement('canvas');
    this.resize();
    this.fit();
  }

  // resize adopts the size of the canvas on the page.
  resize() {
    const box = this.canvas.getBoundingClientRect(), scale = window.devicePixelRatio || 1;
    this.width = Math.max(320, Math.floor(box.width));
    this.height = Math.max(120, Math.floor(box.height));
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.height * scale);
    this.ctx.setTransform(scale, 0, 0, scale, 0, 0);
    const room = this.width - GUTTER - BAR - 4;
    this.columns = 128;
    while (this.columns * 4 <= room) this.columns *= 2;
    this.cellWidth = Math.max(1, Math.floor(room / this.columns));
    if (this.zoom !== undefined) this.setZoom(this.zoom);
  }

  rowBytes() { return this.columns * 2 ** this.zoom; }
  rowHeight() { return this.stretch * ([16, 12, 8, 6][this.zoom] || 4); }
  largest() {
    const most = Math.max(...this.data.regions.map((r) => r.size));
    return Math.max(0, Math.ceil(Math.log2(most / this.columns)));
  }

  // setZoom makes cells of 2^zoom bytes and lays the regions out.
  setZoom(zoom) {
    this.zoom = Math.min(Math.max(0, zoom), this.largest());
    this.stretch = 1;
    // If everything fits with room to spare, rows are higher.
    const heads = this.data.regions.length * (HEAD + GAP);
    const rows = this.data.regions.reduce((sum, r) => sum + Math.ceil(r.size / this.rowBytes()), 0) * this.rowHeight();
    this.stretch = Math.min(4, Math.max(1, Math.floor((this.height - heads) / rows)));
    let y = 0;
    for (const r of this.data.regions) {
      r.y = y;
      r.rows = Math.ceil(r.size / this.rowBytes());
      y += HEAD + r.rows * this.rowHeight() + GAP;
    }
    this.total = y;
    this.setScroll(this.scroll);
  }

  setScroll(y) { this.scroll = Math.min(Math.max(0, y), Math.max(0, this.total - this.height)); }

  // fit shows everything, as large as possible.
  fit() {
    const last = this.largest();
    for (let zoom = 0; zoom <= last; zoom++) {
      this.setZoom(zoom);
      if (this.total <= this.height) break;
    }
    this.setScroll(0);
  }

  // show makes a range of a region fill the canvas.
  show(region, offset, size) {
    let zoom = 0;
    const rows = () => Math.ceil(size / this.rowBytes()) * this.rowHeight();
    this.stretch = 1;
    for (this.zoom = 0; rows() > this.height - HEAD && this.zoom < this.largest(); this.zoom++) zoom = this.zoom + 1;
    this.setZoom(zoom);
    this.setScroll(this.yOf(region, offset) - (offset ? this.rowHeight() : HEAD));
  }

  yOf(region, offset) {
    const r = this.data.regions[region];
    return r.y + HEAD + Math.floor(offset / this.rowBytes()) * this.rowHeight();
  }

  // find returns the region and the offset of the cell at a place of the canvas; if
  // there is none, null or, if near is set, the nearest cell.
  find(x, y, near) {
    const at = y + this.scroll;
    let region = 0;
    while (region + 1 < this.data.regions.length && this.data.regions[region + 1].y <= at) region++;
    const r = this.data.regions[region];
    let row = Math.floor((at - r.y - HEAD) / this.rowHeight()), column = Math.floor((x - GUTTER) / this.cellWidth);
    if (near) {
      row = Math.min(Math.max(0, row), r.rows - 1);
      column = Math.min(Math.max(0, column), this.columns - 1);
    }
    const offset = row * this.rowBytes() + column * 2 ** this.zoom;
    if (row < 0 || row >= r.rows || column < 0 || column >= this.columns || offset >= r.size) {
      return near ? {region, offset: r.size - 1} : null;
    }
    return {region, offset};
  }

  // zoomBy zooms and keeps the given place of the canvas fixed.
  zoomBy(steps, x, y) {
    const held = this.find(x, y, true);
    const before = this.yOf(held.region, held.offset) - this.scroll;
    this.setZoom(this.zoom - steps);
    this.setScroll(this.yOf(held.region, held.offset) - before);
  }

  draw() {
    const ctx = this.ctx, css = getComputedStyle(document.documentElement);
    this.colour = (name) => css.getPropertyValue('--' + name).trim();
    ctx.fillStyle = this.colour('page');
    ctx.fillRect(0, 0, this.width, this.height);
    const paints = this.data.colours.map((name) => rgb(this.colour(name)));
    this.data.regions.forEach((r, i) => {
      const y = r.y - this.scroll;
      if (y < this.height && y + HEAD + r.rows * this.rowHeight() > 0) this.drawRegion(r, i, y, paints);
    });
    this.outline(this.picked, this.colour('accent'), 2);
    if (this.hover !== null && this.hover !== this.picked) this.outline(this.hover, this.colour('accent'), 1);
    this.drawBar();
  }

  drawRegion(r, region, y, paints) {
    const ctx = this.ctx, height = this.rowHeight(), bytes = this.rowBytes();
    ctx.fillStyle = this.colour('text');
    ctx.font = '600 12px system-ui, "DejaVu Sans", sans-serif';
    ctx.fillText(address(r.base) + ' to ' + address(r.base + BigInt(r.size) - 1n) + ', ' + size(r.size), GUTTER, y + 15);
    y += HEAD;
    const from = Math.max(0, Math.floor(-y / height)), to = Math.min(r.rows, Math.ceil((this.height - y) / height));
    if (from >= to) return;
    const cellBytes = 2 ** this.zoom, base = from * bytes;
    const n = Math.min((to - from) * this.columns, Math.ceil((r.size - base) / cellBytes));
    const states = paint(this.data, region, base, cellBytes, n, this.event);
    const image = new ImageData(this.columns, to - from), pixels = image.data;
    const classes = this.classes(region, base, cellBytes, n);
    for (let i = 0; i < n; i++) {
      const c = classes && states[i] >= USED ? classes(i) : paints[states[i]];
      pixels[4 * i] = c[0];
      pixels[4 * i + 1] = c[1];
      pixels[4 * i + 2] = c[2];
      pixels[4 * i + 3] = 255;
    }
    this.cells.width = this.columns;
    this.cells.height = to - from;
    this.cells.getContext('2d').putImageData(image, 0, 0);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(this.cells, GUTTER, y + from * height, this.columns * this.cellWidth, (to - from) * height);
    this.labels(r, y, from, to);
    this.frame(r, y);
  }

  labels(r, y, from, to) {
    const ctx = this.ctx, height = this.rowHeight();
    if (height >= 8) {
      ctx.fillStyle = this.colour('page');
      for (let row = from; row < to; row++) ctx.fillRect(GUTTER, y + (row + 1) * height - 1, this.columns * this.cellWidth, 1);
    }
    const every = Math.ceil(16 / height);
    ctx.fillStyle = this.colour('muted');
    ctx.font = '11px ui-monospace, "DejaVu Sans Mono", monospace';
    ctx.textAlign = 'right';
    for (let row = Math.ceil(from / every) * every; row < to; row += every) {
      ctx.fillText(address(r.base + BigInt(row * this.rowBytes())), GUTTER - 8, y + row * height + 9);
    }
    ctx.textAlign = 'left';
  }

  frame(r, y) {
    const ctx = this.ctx, height = this.rowHeight(), width = this.columns * this.cellWidth;
    const rest = Math.ceil((r.size % this.rowBytes()) / 2 ** this.zoom) * this.cellWidth || width;
    ctx.strokeStyle = this.colour('line');
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(GUTTER - 0.5, y - 0.5);
    const right = GUTTER + (r.rows === 1 ? rest : width) + 0.5, bottom = y + r.rows * height + 0.5;
    ctx.lineTo(right, y - 0.5);
    ctx.lineTo(right, rest < width && r.rows > 1 ? bottom - height : bottom);
    if (rest < width && r.rows > 1) {
      ctx.lineTo(GUTTER + rest + 0.5, bottom - height);
      ctx.lineTo(GUTTER + rest + 0.5, bottom);
    }
    ctx.lineTo(GUTTER - 0.5, bottom);
    ctx.closePath();
    ctx.stroke();
  }

  // classes returns the function that colours a cell by its block; null if cells
  // have the colours of their states.
  classes(region, base, cellBytes, n) {
    if (this.mode === 'state') return null;
    const owner = owners(this.data, region, base, cellBytes, n, this.event);
    const of = MODES[this.mode].of, paints = MODES[this.mode].colours.map((name) => rgb(this.colour(name)));
    return (i) => paints[of(this.data, owner[i], this.event)];
  }

  // outline draws a line around a block.
  outline(block, colour, width) {
    if (block === null || block < 0) return;
    const region = this.data.regions.findIndex((r) => r.from <= block && block < r.to);
    const cell = (offset) => Math.floor(offset / 2 ** this.zoom);
    const from = cell(this.data.offset[block]), to = cell(this.data.end[block]), ctx = this.ctx;
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    for (let row = Math.floor(from / this.columns); row <= Math.floor(to / this.columns); row++) {
      const y = this.data.regions[region].y + HEAD + row * this.rowHeight() - this.scroll;
      if (y > this.height) break;
      if (y < -this.rowHeight()) continue;
      const first = Math.max(from, row * this.columns) % this.columns, last = Math.min(to, (row + 1) * this.columns - 1) % this.columns;
      ctx.strokeRect(GUTTER + first * this.cellWidth - 0.5, y - 0.5, (last - first + 1) * this.cellWidth + 1, this.rowHeight() + 1);
    }
  }

  // bar returns the position of the scroll bar next to the map; null if everything
  // is visible.
  bar() {
    if (this.total <= this.height) return null;
    const length = Math.max(24, this.height * this.height / this.total);
    return {length, y: this.scroll / (this.total - this.height) * (this.height - length)};
  }

  drawBar() {
    const bar = this.bar(), ctx = this.ctx;
    if (!bar) return;
    ctx.fillStyle = this.colour('panel');
    ctx.fillRect(this.width - BAR, 0, BAR, this.height);
    ctx.fillStyle = this.colour('muted');
    ctx.fillRect(this.width - BAR + 3, bar.y, BAR - 6, bar.length);
  }
}

// MODES are the ways to colour blocks: the names of the colours and of the classes,
// and the class of a block.
const ramp = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => 'ramp' + i);
const sorts = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => 'sort' + i);
const SIZES = [16, 64, 256, 1024, 4096, 65536, 1048576];
const MODES = {
  age: {
    colours: ramp, names: () => ['up to 10 events', '100', '1,000', '10,000', '100,000', '1 million', '10 million', 'older'],
    of: (data, i, event) => Math.min(7, Math.max(0, Math.ceil(Math.log10(event - data.born[i] + 1)) - 1)),
  },
  size: {
    colours: ramp, names: () => [...SIZES.map((n, i) => (i ? '' : 'up to ') + size(n)), 'more'],
    of: (data, i) => { const c = SIZES.findIndex((n) => data.size[i] <= n); return c < 0 ? 7 : c; },
  },
  thread: {
    colours: sorts, names: (data) => several(data.threads.map((t) => t === '0' ? 'unknown' : 'thread ' + t)),
    of: (data, i) => data.thread[i] ? Math.min(7, data.thread[i] - 1) : 7,
  },
  site: {
    colours: sorts, names: (data) => several(data.sites),
    of: (data, i) => data.site[i] ? Math.min(7, data.site[i] - 1) : 7,
  },
};

function several(names) { return names.length > 7 ? [...names.slice(0, 7), 'others'] : names; }

function rgb(colour) { return [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)); }

function address(a) { return '0x' + a.toString(16); }

// size formats bytes as package figure does.
function size(n) {
  if (n < 1024) return n + ' B';
  let unit = 0;
  while (n >= 999.5 && unit < 6) [n, unit] = [n / 1024, unit + 1];
  const digits = n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2;
  return Number(n.toFixed(digits)) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'][unit];
}

function count(n) { return n.toLocaleString('en-GB'); }

function plural(n, what) { return count(n) + ' ' + what + (n === 1 ? '' : 's'); }
