// The page around the map: time, zoom, the list of regions, keys.

const $ = (id) => document.getElementById(id);
class Page {
  constructor(data) {
    this.data = data;
    this.map = new MapView(data, $('map'));
    this.timer = null;
    this.pending = false;
    $('slider').min = data.first;
    $('slider').max = $('event').max = data.events;
    $('event').min = data.first;
    $('of').textContent = 'of ' + count(data.events);
    this.listRegions();
    this.listen();
    this.legend();
    if (data.view) this.map.show(data.view.region, data.view.offset, data.view.size);
    this.setEvent(data.event);
  }

  // setEvent moves to the nearest event whose state is exact.
  setEvent(event) {
    const d = this.data;
    event = Math.min(Math.max(d.first, Math.round(event) || 0), d.events);
    if (![d.events, d.peak.event, d.event].includes(event)) event = Math.max(d.first, Math.floor(event / d.step) * d.step);
    this.map.event = event;
    $('slider').value = event;
    $('slider').setAttribute('aria-valuetext', 'event ' + count(event));
    $('event').value = event;
    this.level = d.level(event);
    $('level').textContent = size(this.level.bytes) + ' live in ' + plural(this.level.blocks, 'block') +
      (event === d.peak.event ? ' (peak)' : '');
    d.regions.forEach((r, i) => {
      const live = this.level.regions[i];
      r.cells[0].textContent = size(live.bytes);
      r.cells[1].textContent = count(live.blocks);
    });
    this.what(this.place);
    this.redraw();
  }

  // redraw draws once in the next frame, however often it is called.
  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    this.pending = false;
    this.map.draw();
    this.drawCurve();
    const zoom = 2 ** this.map.zoom;
    $('scale').textContent = size(zoom) + ' per cell, ' + size(this.map.rowBytes()) + ' per row';
    $('in').disabled = this.map.zoom === 0;
    $('out').disabled = this.map.zoom >= this.map.largest();
  }

  listRegions() {
    for (const [i, r] of this.data.regions.entries()) {
      const row = $('regions').insertRow(), button = document.createElement('button');
      button.textContent = address(r.base);
      button.className = 'mono link';
      button.addEventListener('click', () => { this.map.show(i, 0, r.size); this.redraw(); });
      row.insertCell().append(button);
      row.insertCell().textContent = size(r.size);
      r.cells = [row.insertCell(), row.insertCell()];
      for (const cell of [...row.cells].slice(1)) cell.className = 'number';
    }
    if (this.data.left) $('left').textContent = plural(this.data.left, 'more region') + ' with less memory not shown';
  }

  // legend explains the colours of the mode.
  legend() {
    const items = [];
    if (this.map.mode === 'state') {
      items.push([['used1', 'used4', 'used8'], 'allocated part of the cell']);
    } else {
      const mode = MODES[this.map.mode];
      mode.names(this.data).forEach((name, i) => items.push([[mode.colours[i]], name]));
    }
    items.push([['freed'], 'freed'], [['heap'], 'from the system, never allocated']);
    if (this.data.regions.some((r) => r.internal.length)) items.push([['internal'], "the tracer's own"]);
    items.push([['unknown'], 'unknown']);
    $('legend').replaceChildren(...items.map(([colours, text]) => {
      const item = document.createElement('span');
      for (const c of colours) {
        const box = document.createElement('i');
        box.style.background = 'var(--' + c + ')';
        item.append(box);
      }
      item.append(' ' + text.replace(/ from \/.*\//, ' from ')); // the last part of a path
      item.title = text;
      return item;
    }));
  }

  // what describes a place of the map.
  what(place) {
    this.place = place;
    const d = this.data, out = $('what');
    this.map.hover = null;
    if (!place) {
      out.textContent = 'Point at the map to see what is there.';
      return;
    }
    const r = d.regions[place.region], last = Math.min(r.size, place.offset + 2 ** this.map.zoom) - 1;
    const found = d.at(place.region, place.offset, last, this.map.event);
    if (found.block >= 0) {
      this.map.hover = found.block;
      out.textContent = this.describe(found.block, r) + (found.blocks > 1 ? '; ' + plural(found.blocks - 1, 'more block') + ' in this cell' : '');
      return;
    }
    const state = paint(d, place.region, place.offset, last - place.offset + 1, 1, this.map.event)[0];
    let text = address(r.base + BigInt(place.offset)) + ': ' +
      ['unknown', 'from the system, never allocated', "the tracer's own memory", 'freed'][state];
    if (found.freed >= 0) text += '; last here was ' + this.describe(found.freed, r);
    out.textContent = text;
  }

  describe(i, r) {
    const d = this.data, n = d.count ? d.count[i] : 1;
    let text = address(r.base + BigInt(d.offset[i])) + ': ' + (n > 1 ? plural(n, 'block') + ' with ' : '') + plural(d.bytesOf(i), 'byte');
    text += ', allocated at event ' + count(d.born[i]);
    if (d.died[i] !== Infinity) text += ', freed at ' + count(d.died[i]);
    if (d.thread[i] && d.threads[d.thread[i] - 1] !== '0') text += ', thread ' + d.threads[d.thread[i] - 1];
    if (d.site[i]) text += ', ' + d.sites[d.site[i] - 1];
    return text;
  }

  // drawCurve draws the live bytes over the course of the trace.
  drawCurve() {
    const canvas = $('curve'), ctx = canvas.getContext('2d'), scale = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight, pad = 8, d = this.data, c = d.curve;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    const most = Math.max(1, d.peak.bytes, ...c.most);
    const x = (event) => pad + (event - d.first) / Math.max(1, d.events - d.first) * (width - 2 * pad);
    const y = (bytes) => height - 1 - bytes / most * (height - 16);
    ctx.fillStyle = this.map.colour('muted');
    ctx.globalAlpha = 0.35;
    ctx.beginPath();
    ctx.moveTo(x(d.first), height);
    c.most.forEach((bytes, i) => {
      const from = Math.max(d.first, i * c.width), to = Math.min(d.events, (i + 1) * c.width);
      if (to > d.first) { ctx.lineTo(x(from), y(bytes)); ctx.lineTo(x(to), y(bytes)); }
    });
    ctx.lineTo(x(d.events), height);
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.beginPath();
    c.least.forEach((bytes, i) => {
      const from = Math.max(d.first, i * c.width), to = Math.min(d.events, (i + 1) * c.width);
      if (to > d.first) { ctx.lineTo(x(from), y(bytes)); ctx.lineTo(x(to), y(bytes)); }
    });
    ctx.strokeStyle = this.map.colour('muted');
    ctx.stroke();
    ctx.font = '11px system-ui, "DejaVu Sans", sans-serif';
    const text = 'peak ' + size(d.peak.bytes) + ' after event ' + count(d.peak.event), room = ctx.measureText(text).width;
    const at = x(d.peak.event);
    ctx.fillStyle = this.map.colour('text');
    ctx.fillRect(at - 1, y(d.peak.bytes) - 2, 3, 3);
    ctx.fillText(text, Math.min(Math.max(pad, at - room / 2), width - pad - room), 10);
    ctx.fillStyle = this.map.colour('accent');
    ctx.fillRect(x(this.map.event) - 0.75, 14, 1.5, height - 14);
  }

  // play moves through the trace in about 12 seconds.
  play() {
    if (this.timer !== null) return this.stop();
    if (this.map.event >= this.data.events) this.setEvent(this.data.first);
    const speed = Math.max(this.data.events - this.data.first, 60) / 12000;
    let before = null, event = this.map.event;
    $('play').textContent = 'Pause';
    const step = (now) => {
      if (before !== null) event += (now - before) * speed;
      before = now;
      this.setEvent(event);
      if (event >= this.data.events) return this.stop();
      this.timer = requestAnimationFrame(step);
    };
    this.timer = requestAnimationFrame(step);
    return undefined;
  }

  stop() {
    cancelAnimationFrame(this.timer);
    this.timer = null;
    $('play').textContent = 'Play';
  }

  moveBy(steps) {
    const d = this.data, e = this.map.event;
    let to = steps > 0 ? Math.floor(e / d.step) * d.step + steps * d.step : Math.ceil(e / d.step) * d.step + steps * d.step;
    this.setEvent(Math.min(Math.max(d.first, to), d.events));
  }

  zoom(steps, x = GUTTER, y = this.map.height / 2) {
    this.map.zoomBy(steps, x, y);
    this.redraw();
  }

  listen() {
    const map = $('map'), d = this.data;
    const on = (id, kind, f) => $(id).addEventListener(kind, f);
    on('slider', 'input', () => { this.stop(); this.setEvent(Number($('slider').value)); });
    on('event', 'change', () => { this.stop(); this.setEvent(Number($('event').value)); });
    on('play', 'click', () => this.play());
    on('start', 'click', () => { this.stop(); this.setEvent(d.first); });
    on('peak', 'click', () => { this.stop(); this.setEvent(d.peak.event); });
    on('end', 'click', () => { this.stop(); this.setEvent(d.events); });
    on('in', 'click', () => this.zoom(1));
    on('out', 'click', () => this.zoom(-1));
    on('all', 'click', () => { this.map.fit(); this.redraw(); });
    on('mode', 'change', () => { this.map.mode = $('mode').value; this.legend(); this.redraw(); });
    const curve = (e) => {
      if (e.buttons !== 1) return;
      const box = $('curve').getBoundingClientRect();
      this.stop();
      this.setEvent(d.first + (e.clientX - box.left - 8) / (box.width - 16) * (d.events - d.first));
    };
    on('curve', 'pointerdown', curve);
    on('curve', 'pointermove', curve);
    map.addEventListener('wheel', (e) => {
      e.preventDefault();
      if (e.ctrlKey || e.metaKey) return this.zoom(e.deltaY < 0 ? 1 : -1, e.offsetX, e.offsetY);
      return this.scrollBy(e.deltaMode === 1 ? 16 * e.deltaY : e.deltaY);
    }, {passive: false});
    this.drag(map);
    map.addEventListener('keydown', (e) => this.key(e));
    new ResizeObserver(() => { this.map.resize(); this.redraw(); }).observe(map);
    window.addEventListener('resize', () => this.redraw()); // the curve
    window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.redraw());
  }

  scrollBy(y) {
    this.map.setScroll(this.map.scroll + y);
    this.redraw();
  }

  // drag moves the map, or the scroll bar next to it, with the pointer; a click
  // selects a block.
  drag(map) {
    let from = null;
    map.addEventListener('pointerdown', (e) => {
      map.setPointerCapture(e.pointerId);
      from = {y: e.offsetY, scroll: this.map.scroll, bar: e.offsetX >= this.map.width - BAR, moved: false};
    });
    map.addEventListener('pointermove', (e) => {
      if (from) {
        const by = e.offsetY - from.y, bar = this.map.bar();
        from.moved = from.moved || Math.abs(by) > 3;
        if (from.moved) {
          const perPixel = from.bar && bar ? (this.map.total - this.map.height) / Math.max(1, this.map.height - bar.length) : -1;
          this.map.setScroll(from.scroll + by * perPixel);
        }
      }
      this.what(this.map.find(e.offsetX, e.offsetY));
      this.redraw();
    });
    map.addEventListener('pointerup', (e) => {
      if (from && !from.moved) {
        this.what(this.map.find(e.offsetX, e.offsetY));
        this.map.picked = this.map.hover === null ? -1 : this.map.hover;
      }
      from = null;
      this.redraw();
    });
    map.addEventListener('pointerleave', () => { this.what(null); this.redraw(); });
  }

  key(e) {
    if (e.altKey || e.ctrlKey || e.metaKey) return;
    const row = 4 * this.map.rowHeight(), page = this.map.height - 40;
    const large = Math.max(1, Math.round((this.data.events - this.data.first) / 50 / this.data.step));
    const keys = {
      ArrowUp: () => this.scrollBy(-row), ArrowDown: () => this.scrollBy(row),
      PageUp: () => this.scrollBy(-page), PageDown: () => this.scrollBy(page),
      Home: () => this.scrollBy(-Infinity), End: () => this.scrollBy(Infinity),
      ArrowLeft: () => this.moveBy(e.shiftKey ? -large : -1), ArrowRight: () => this.moveBy(e.shiftKey ? large : 1),
      '+': () => this.zoom(1), '=': () => this.zoom(1), '-': () => this.zoom(-1), 0: () => { this.map.fit(); this.redraw(); },
      ' ': () => this.play(),
    };
    if (!keys[e.key]) return;
    e.preventDefault();
    if (e.key !== ' ') this.stop();
    keys[e.key]();
  }
}

async function start() {
  const [meta, blocks] = await Promise.all([unpack('meta'), unpack('blocks')]);
  window.heapmap = new Page(new Data(JSON.parse(new TextDecoder().decode(meta)), blocks));
}

window.heapmapReady = start().catch((err) => {
  $('what').textContent = 'The page cannot be shown: ' + err.message + '. It needs a browser of 2023 or later.';
  throw err;
});
