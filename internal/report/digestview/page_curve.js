// The curves of the live amount and, below, of the amounts allocated and freed, and of the memory of
// the process. An axis of time spans the recording, whose calls need not.

const SVG = 'http://www.w3.org/2000/svg';
const EDGE = {left: 78, right: 14, top: 30, bottom: 24};
const LABELS = 30; // limit for contexts and marks
const RATES = 150; // points of a curve of rates at most

function shape(tag, attributes, text) {
  const e = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  if (text !== undefined) e.textContent = text;
  return e;
}

// ticks returns round values up to most. Their distance is a power of two, or 1,
// 2 or 5 times a power of ten.
function ticks(most, n, binary) {
  const least = most / n;
  let step = 1;
  if (binary) while (step < least) step *= 2;
  else {
    const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)));
    step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= least * (1 - 1e-9)) || 10 * power;
  }
  const out = [];
  for (let v = 0; v <= most * (1 + 1e-9) && out.length < 50; v += step) out.push(v);
  return out;
}

class Curves {
  // host is the element for the curves, readout the one for the values under the
  // pointer. ranged is called when the range of the filter has changed.
  constructor(host, readout, filter, ranged) {
    Object.assign(this, {host, readout, filter, ranged});
    new ResizeObserver(() => { if (this.view && host.clientWidth !== this.width) this.draw(); }).observe(host);
  }

  // show draws a resource. view has the resource, byTime, bytes, and lives: the selected blocks that are
  // live at the end of each interval of the filter, or null.
  show(data, view) {
    Object.assign(this, {data, view});
    const r = view.resource, c = view.byTime ? r.byTime : r.byEvent;
    this.max = Math.max(1, view.byTime ? data.duration : data.events);
    [this.from, this.to] = view.byTime ? [data.from, Math.max(data.to, data.from + 1)] : [0, this.max];
    this.curve = c;
    const b = view.bytes;
    [this.least, this.most, this.last, this.fresh, this.gone] = b ?
      [c.least, c.most, c.last, c.allocated, c.freed] : [c.leastBlocks, c.mostBlocks, c.lastBlocks, c.allocatedBlocks, c.freedBlocks];
    this.units = b ? (r.bytes ? size : short) : short;
    // Rates are averages over several intervals: in a short one they are noisy.
    this.joined = Math.ceil(this.last.length / RATES);
    const rates = (values) => {
      const out = [];
      for (let i = 0; i < values.length; i += this.joined) {
        const to = Math.min(i + this.joined, values.length);
        let sum = 0;
        for (let j = i; j < to; j++) sum += values[j];
        const span = Math.max(this.edge(to) - this.edge(i), c.width * this.joined / 16);
        out.push(view.byTime ? sum / (span / 1e9) : sum);
      }
      return out;
    };
    this.freshRate = rates(this.fresh);
    this.goneRate = rates(this.gone);
    this.draw();
  }

  edge(i) { return Math.min(i * this.curve.width, this.max); }

  position(v) { return this.view.byTime ? this.data.when(v) : count(v); }

  draw() {
    this.width = this.host.clientWidth || 900;
    this.inner = this.width - EDGE.left - EDGE.right;
    this.panels = [];
    const view = this.view, r = view.resource, per = this.view.byTime ? ' per second' : ' per ' + (this.curve.width * this.joined === 1 ? 'call' : plural(this.curve.width * this.joined, 'call'));
    const unit = this.view.bytes ? (r.bytes ? 'bytes' : 'units') : 'blocks';
    const text = (v) => v === 0 ? '0' : this.units(v);
    const live = this.panel('Live ' + unit, 230, Math.max(1, ...this.most), 5, text, this.view.bytes && r.bytes);
    live.band(this.least, this.most, 'range');
    live.line(this.last, 'live');
    if (view.lives) live.path(this.selected(live), {fill: 'none', 'stroke-width': 1.6, 'stroke-dasharray': '6 3', class: 'selected'}, 'stroke', 'allocated');
    this.peak(live);
    const rates = this.panel(r.hasFrees ? 'Allocated and freed' + per : 'Allocated' + per, 130, Math.max(1e-9, ...this.freshRate, ...this.goneRate), 3, text, this.view.bytes && r.bytes);
    if (r.hasFrees) rates.band(this.goneRate.map(() => 0), this.goneRate, 'freed');
    rates.line(this.freshRate, 'allocated');
    if (this.view.byTime && r.type === 'memory') this.memory();
    const key = el('p', {class: 'key'});
    for (const [colour, text] of [['live', 'live at the end of an interval'], ['range', 'range in an interval'], ['allocated', 'allocated'], ['freed', 'freed'],
      ...(view.lives ? [['allocated', 'dashed: live blocks that match the filter']] : []), ...(this.data.marks.length ? [['context', 'in a context']] : []), ...this.missing()]) {
      if (colour === 'freed' && !r.hasFrees) continue;
      const i = el('i');
      i.style.background = 'var(--' + colour + ')';
      key.append(el('span', {}, i, text));
    }
    this.host.replaceChildren(...this.panels.map((p) => p.svg), key);
    this.point(-1);
    this.select();
  }

  // selected returns the points of the line of selected blocks.
  selected(panel) {
    const out = [], k = this.view.bytes ? 1 : 0;
    for (let i = 0, y = 0; i < this.filter.count; i++) {
      out.push([this.x(this.filter.edge(i, this.view.byTime)), panel.y(y)]);
      y = this.view.lives[2 * i + k];
      out.push([this.x(this.filter.edge(i + 1, this.view.byTime)), panel.y(y)]);
    }
    return out;
  }

  // select draws a range of intervals, by default that of the filter.
  select(range = this.filter.range) {
    const [from, to] = (range || [0, 0]).map((i) => this.filter.edge(i, this.view.byTime));
    for (const p of this.panels) {
      p.range.setAttribute('visibility', range ? 'visible' : 'hidden');
      p.range.setAttribute('x', this.x(from));
      p.range.setAttribute('width', Math.max(1, this.x(to) - this.x(from)));
      p.svg.setAttribute('aria-valuenow', range ? range[0] : 0);
      p.svg.setAttribute('aria-valuetext', range ? this.between(range) : 'no range');
    }
  }

  between(range) { return range.map((i) => this.filter.position(this.filter.edge(i, this.view.byTime), this.view.byTime)).join(' to '); }

  // set sets the range of the filter.
  set(from, to) {
    const n = this.filter.count;
    this.filter.range = from <= 0 && to >= n || from === null ? null : [from, to];
    this.select();
    this.ranged();
    this.readout.textContent = this.filter.range ? 'Range: ' + this.between(this.filter.range) : '';
  }

  // drag selects the range from where a button was pressed to the pointer.
  drag(svg, e) {
    const at = (e) => this.filter.interval(this.value(e, svg), this.view.byTime), first = at(e), x = e.clientX;
    let range = null;
    const move = (e) => {
      if (Math.abs(e.clientX - x) < 4 && !range) return;
      const now = at(e);
      range = [Math.min(first, now), Math.max(first, now) + 1];
      this.select(range);
    };
    const end = () => {
      svg.removeEventListener('pointermove', move);
      for (const type of ['pointerup', 'pointercancel']) svg.removeEventListener(type, end);
      if (range) this.set(...range);
    };
    svg.addEventListener('pointermove', move);
    for (const type of ['pointerup', 'pointercancel']) svg.addEventListener(type, end);
    svg.setPointerCapture(e.pointerId);
  }

  // key handles a key and reports whether it did. Without a range the arrows move the cursor.
  key(e) {
    const n = this.last.length - 1, most = this.filter.count, range = this.filter.range;
    if (!range) {
      const to = {ArrowRight: Math.min(this.now + 1, n), ArrowLeft: Math.max(this.now - 1, 0), Home: 0, End: n}[e.key];
      if (to !== undefined) this.point(to);
      else if (e.key === 'Enter' || e.key === ' ') {
        const at = this.filter.interval(this.edge(Math.max(0, this.now)), this.view.byTime);
        this.set(at, at + 1);
      }
      return to !== undefined || e.key === 'Enter' || e.key === ' ';
    }
    const [from, to] = range, wide = to - from;
    const moved = {
      ArrowRight: e.shiftKey ? [from, Math.min(to + 1, most)] : to < most ? [from + 1, to + 1] : range,
      ArrowLeft: e.shiftKey ? [from, Math.max(to - 1, from + 1)] : from > 0 ? [from - 1, to - 1] : range,
      Home: [0, wide], End: [most - wide, most], Escape: [null, null],
    }[e.key];
    if (moved) this.set(...moved);
    return !!moved;
  }

  x(v) { return EDGE.left + this.inner * (Math.min(Math.max(v, this.from), this.to) - this.from) / (this.to - this.from); }

  // memory draws what the process has from the system, as far as that is known.
  memory() {
    const {rss, system} = this.data;
    if (rss.length < 2 && !system.length) return;
    const p = this.panel('Memory of the process', 80, Math.max(1, ...rss.map((l) => l[1]), ...system.map((l) => l[1])), 3, (v) => v === 0 ? '0' : size(v), true);
    const key = [];
    if (system.length) {
      const xy = [[this.x(this.from), p.y(0)]];
      for (const [t, n] of system) xy.push([this.x(t), xy[xy.length - 1][1]], [this.x(t), p.y(n)]);
      xy.push([this.x(this.to), xy[xy.length - 1][1]]);
      p.path(xy, {fill: 'none', 'stroke-width': 1.6}, 'stroke', 'allocated');
      key.push('from the system for blocks: ' + size(system[system.length - 1][1]));
    }
    if (rss.length >= 2) {
      const xy = rss.map(([t, n]) => [this.x(t), p.y(n)]);
      p.path(xy, {fill: 'none', 'stroke-width': 1.6, 'stroke-dasharray': '5 4'}, 'stroke', 'rss');
      for (const [x, y] of xy) {
        const dot = shape('circle', {cx: x, cy: y, r: 3});
        dot.style.fill = 'var(--rss)';
        p.svg.append(dot);
      }
      key.push('RSS, read ' + rss.length + ' times: ' + size(rss[0][1]) + ' to ' + size(rss[rss.length - 1][1]));
    }
    p.svg.append(shape('text', {class: 'note', x: this.width - EDGE.right, y: 15, 'text-anchor': 'end'}, key.join('; ')));
  }

  // missing returns the kinds of spans in which calls are missing, with their descriptions.
  missing() {
    if (!this.view.byTime) return [];
    const kinds = new Set(this.data.spans.map((s) => s.kind));
    return [...(kinds.has('paused') ? [['missing', 'paused: nothing recorded']] : []),
      ...(kinds.has('lossy') ? [['lossy', 'events lost']] : [])];
  }

  // shade draws the spans in which calls are missing.
  shade(svg, height) {
    if (!this.view.byTime) return;
    for (const s of this.data.spans) {
      const left = this.x(s.from), e = shape('rect', {class: 'span', x: left, y: EDGE.top, width: Math.max(2, this.x(s.to) - left), height});
      e.style.fill = 'var(--' + (s.kind === 'lossy' ? 'lossy' : 'missing') + ')';
      e.append(shape('title', {}, this.span(s)));
      svg.append(e);
    }
  }

  // span describes a span.
  span(s) {
    return {
      paused: plural(s.count, 'pause') + ': nothing was recorded', lossy: plural(s.count, 'event') + ' lost',
    }[s.kind] + ', ' + this.position(s.from) + ' to ' + this.position(s.to);
  }

  panel(title, height, most, n, text, binary) {
    const self = this, full = height + EDGE.top + EDGE.bottom, top = most * 1.1;
    const svg = shape('svg', {class: 'curve', height: full, viewBox: '0 0 ' + this.width + ' ' + full, tabindex: 0, role: 'slider', 'aria-label': title + ': choose a range', 'aria-valuemin': 0, 'aria-valuemax': this.filter.count});
    const y = (v) => EDGE.top + height * (1 - Math.min(v, top) / top);
    const p = {
      svg, y,
      points(values) {
        const out = [], n = values.length === self.last.length ? 1 : self.joined;
        if (self.from < 0) out.push([self.x(self.from), y(0)], [self.x(0), y(0)]);
        values.forEach((v, i) => out.push([self.x(self.edge(i * n)), y(v)], [self.x(self.edge((i + 1) * n)), y(v)]));
        return out;
      },
      line(values, colour) {
        const xy = p.points(values);
        // The last level lasts to the end of the trace.
        if (xy.length && colour === 'live') xy.push([self.x(self.to), xy[xy.length - 1][1]]);
        p.path(xy, {fill: 'none', 'stroke-width': 1.6, 'stroke-linejoin': 'round'}, 'stroke', colour);
      },
      band(low, high, colour) { p.path([...p.points(high), ...p.points(low).reverse()], {}, 'fill', colour); },
      path(xy, attributes, property, colour) {
        if (!xy.length) return;
        const e = shape('path', {...attributes, d: 'M' + xy.map(([x, y]) => x.toFixed(1) + ' ' + y.toFixed(1)).join('L')});
        e.style[property] = 'var(--' + colour + ')';
        svg.append(e);
      },
    };
    this.shade(svg, height);
    if (!this.panels.length) this.marks(svg, height);
    svg.append(shape('text', {class: 'title', x: 0, y: 15}, title));
    for (const v of ticks(top, n, binary)) {
      const at = Math.round(y(v)) + 0.5;
      svg.append(shape('path', {class: 'grid', d: 'M' + EDGE.left + ' ' + at + 'H' + (this.width - EDGE.right)}));
      svg.append(shape('text', {x: EDGE.left - 8, y: at + 4, 'text-anchor': 'end'}, text(v)));
    }
    const many = Math.max(2, Math.floor(this.inner / 110));
    for (const v of ticks(this.to - this.from, many, false).map((v) => v + this.from)) {
      const at = this.x(v);
      svg.append(shape('path', {class: 'grid', d: 'M' + at + ' ' + (EDGE.top + height) + 'v4'}));
      svg.append(shape('text', {x: at, y: full - 6, 'text-anchor': at > this.width - 40 ? 'end' : v === this.from ? 'start' : 'middle'}, this.position(v)));
    }
    p.range = shape('rect', {class: 'chosen', y: EDGE.top, height, visibility: 'hidden'});
    svg.append(p.range);
    p.cursor = shape('path', {class: 'cursor', d: ''});
    p.full = full;
    svg.append(p.cursor);
    svg.addEventListener('pointermove', (e) => this.point(this.index(e)));
    svg.addEventListener('pointerdown', (e) => {
      this.point(this.index(e));
      if (e.button === 0) this.drag(svg, e);
    });
    svg.addEventListener('pointerleave', () => this.point(-1));
    svg.addEventListener('blur', () => this.point(-1));
    svg.addEventListener('keydown', (e) => {
      if (!e.ctrlKey && !e.altKey && !e.metaKey && this.key(e)) e.preventDefault();
    });
    this.panels.push(p);
    return p;
  }

  // marks draws contexts in the background of the curves: where they were entered,
  // or where they were declared if no call was made in them.
  marks(svg, height) {
    let labels = 0;
    for (const m of this.data.marks) {
      const spans = this.view.byTime ? m.byTime : m.byEvent;
      for (const [from, to] of spans) {
        const left = this.x(from), e = shape('rect', {x: left, y: EDGE.top, width: Math.max(1, this.x(to) - left), height});
        e.style.fill = 'var(--context)';
        svg.append(e);
      }
      const at = this.x(spans.length ? spans[0][0] : this.view.byTime ? m.time : m.event);
      svg.append(shape('path', {class: 'edge', d: 'M' + at.toFixed(1) + ' ' + EDGE.top + 'v' + height}));
      if (labels === LABELS) continue;
      const end = at > this.width - 150;
      svg.append(shape('text', {class: 'note', x: at + (end ? -4 : 4), y: EDGE.top + 12 + 13 * (labels % 6), 'text-anchor': end ? 'end' : 'start'}, m.name));
      labels++;
    }
  }

  // peak marks the peak: the exact one if it is a peak of the values shown.
  peak(panel) {
    const r = this.view.resource, exact = this.view.bytes || !r.sized;
    let most = this.view.bytes ? r.total[3] : r.peakBlocks, at = this.view.byTime ? r.peakTime : r.peakEvent;
    if (!most) return;
    if (!exact) at = this.edge(this.most.indexOf(Math.max(...this.most)));
    const x = this.x(at), y = panel.y(most), dot = shape('circle', {cx: x, cy: y, r: 3.5});
    dot.style.fill = 'var(--live)';
    const text = 'peak ' + (this.view.bytes ? this.units(most) : count(most)) + (exact ? (this.view.byTime ? ' at ' + this.data.when(at) : ' after call ' + count(at)) : '');
    const end = x > this.width / 2;
    panel.svg.append(dot, shape('text', {class: 'note peak', x: x + (end ? -7 : 7), y: Math.max(y - 6, 12), 'text-anchor': end ? 'end' : 'start'}, text));
  }

  // value returns the time or call under the pointer.
  value(e, svg) { return this.from + (e.clientX - svg.getBoundingClientRect().left - EDGE.left) / this.inner * (this.to - this.from); }

  index(e) {
    const v = this.value(e, e.currentTarget);
    if (v < 0 || v > this.max) return -1;
    return Math.min(Math.floor(v / this.curve.width), this.last.length - 1);
  }

  // point describes an interval.
  point(i) {
    this.now = i;
    for (const p of this.panels) p.cursor.setAttribute('d', i < 0 ? '' : 'M' + Math.round(this.x((this.edge(i) + this.edge(i + 1)) / 2)) + '.5 ' + EDGE.top + 'V' + (p.full - EDGE.bottom));
    if (i < 0) {
      this.readout.textContent = '';
      return;
    }
    const c = this.curve, r = this.view.resource;
    const amount = (n, bytes) => (r.sized ? (r.bytes ? size(bytes) : count(bytes)) + ' in ' : '') + plural(n, 'block');
    const inside = this.data.marks.filter((m) => (this.view.byTime ? m.byTime : m.byEvent).some(([a, b]) => a < this.edge(i + 1) && this.edge(i) < b)).map((m) => m.name);
    const from = this.view.byTime ? this.edge(i) : Math.min(this.edge(i) + 1, this.max);
    const lacks = this.view.byTime ? this.data.spans.filter((s) => s.from < this.edge(i + 1) && this.edge(i) < s.to).map((s) => this.span(s)) : [];
    this.readout.textContent = (this.view.byTime ? '' : 'Calls ') + this.position(from) + ' to ' + this.position(this.edge(i + 1)) + ': live ' + amount(c.lastBlocks[i], c.last[i]) +
      '; allocated ' + amount(c.allocatedBlocks[i], c.allocated[i]) + (r.hasFrees ? '; freed ' + amount(c.freedBlocks[i], c.freed[i]) : '') + (inside.length ? '; in ' + inside.slice(0, 8).join(', ') : '') +
      (this.view.byTime && this.data.wall ? '; ' + this.data.clock(from) : '') + lacks.slice(0, 2).map((text) => '; ' + text).join('');
  }
}
