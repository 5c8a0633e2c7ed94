// The page of a trace that was recorded in windows: estimates with their errors.

const BLOCKS = 4, BYTES = 5; // in the uses of a box
const TALL = 150;            // pixels of the curve
const NARROW = 3;            // width of the narrowest window in pixels

class Estimates {
  constructor(data) {
    this.data = data;
    this.bytes = true;
    this.root = this.tree();
    this.flame = new Flame($('flame'), (node) => this.what(node), (node) => this.crumbs(node));
    this.flame.at = BYTES;
    choice($('units'), [[true, 'Bytes'], [false, 'Blocks']], true, (bytes) => { this.bytes = bytes; this.draw(); });
    $('search').addEventListener('input', () => this.flame.search($('search').value));
    document.addEventListener('keydown', (e) => {
      if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return;
      e.preventDefault();
      $('search').focus();
    });
    $('bar').hidden = $('main').hidden = false;
    this.flame.show(this.root);
    this.legend();
    for (const [id, n, what] of [['cut', data.cut, 'Smaller boxes'], ['left', data.left, 'Smaller call sites']]) {
      $(id).hidden = n === 0;
      $(id).textContent = what + ' are left out: ' + count(n);
    }
    this.draw();
    new ResizeObserver(() => { if ($('curve').clientWidth !== this.width) this.curve(); }).observe($('curve'));
  }

  text(n) { return this.data.texts[n]; }

  // tree returns the root of the boxes.
  tree() {
    const nodes = [];
    for (const b of this.data.boxes) {
      const make = () => [this.text(b.name) || UNKNOWN, this.text(b.module || 0), b.inlined, this.text(b.short || 0)];
      const node = nodes.length ? nodes[b.parent || 0].child(nodes.length, make) : new Node(null, null, 'all', '');
      node.uses[BLOCKS] = b.values[0];
      node.uses[BYTES] = b.values[1];
      node.of = b;
      nodes.push(node);
    }
    return nodes[0];
  }

  draw() {
    this.flame.measure(this.bytes ? BYTES : BLOCKS);
    this.curve();
    this.table();
  }

  legend() {
    const names = this.flame.modules, items = names.slice(0, 7).map((m, i) => ['flame' + i, base(m)]);
    if (names.length > 7) items.push(['flame7', 'others']);
    $('legend').replaceChildren(...items.map(([colour, text]) => {
      const i = el('i');
      i.style.background = 'var(--' + colour + ')';
      return el('span', {}, i, text);
    }), ...(this.data.boxes.some((b) => b.inlined) ? [el('span', {}, el('i', {class: 'inlined'}), 'inlined into its caller')] : []));
  }

  // amounts returns both estimates of a box or a call site, with their errors.
  amounts({text}) { return text[3] + ' bytes and ' + text[2] + ' blocks per second; ' + text[1] + ' bytes in ' + text[0] + ' blocks'; }

  what(node) {
    node = node || this.flame.top;
    if (!node) return;
    const at = this.flame.at, parts = [this.amounts(node.of)];
    if (node.parent) parts.push(percent(node.uses[at], this.root.uses[at]) + ' of the total');
    $('what').textContent = (node.parent ? node.name + (node.inlined ? ' (inlined)' : '') : 'all stacks') + ': ' + parts.join(', ') + (node.module ? ' — ' + node.module : '');
  }

  crumbs(node) {
    const path = [];
    for (let n = node; n; n = n.parent) path.unshift(n);
    const shown = path.length > 7 ? [path[0], null, ...path.slice(-5)] : path;
    $('crumbs').replaceChildren(...shown.flatMap((n, i) => [...(i ? ['›'] : []),
      n ? el('button', {type: 'button', 'aria-current': n === node ? 'true' : undefined, onclick: () => this.flame.zoom(n)}, n.name) : '…']));
    this.what(null);
  }

  table() {
    const all = this.root.uses[this.bytes ? BYTES : BLOCKS], unit = this.bytes ? 1 : 0;
    const column = (title, k) => ({title, number: true, value: (r) => r.values[k % 2], text: (r) => r.text[k]});
    const rates = [column('Bytes per second', 3), column('Blocks per second', 2)];
    if (!this.bytes) rates.reverse();
    new Table($('who-table'), {
      columns: [rates[0], {title: '%', number: true, value: (r) => r.values[unit], text: (r) => percent(r.values[unit], all)}, rates[1], column('Bytes', 1), column('Blocks', 0),
        {title: 'Call site', value: (r) => this.text(r.name) || UNKNOWN}],
      rows: this.data.sites, caption: 'Call sites', none: 'No window saw an allocation.',
    });
  }

  // columns returns the windows as they are drawn: those that would overlap are one, with the mean of
  // their rates.
  columns(inner) {
    const out = [], unit = this.bytes ? 1 : 0, x = (t) => inner * t / Math.max(1, this.data.length);
    for (const [from, to, open, stretch, windows, ...rates] of this.data.rates) {
      const rate = rates[unit], left = x(from), right = Math.min(inner, Math.max(x(to), left + NARROW)), last = out.at(-1);
      if (last && left < last.right && right - last.left < 2 * NARROW) {
        last.rate += (rate - last.rate) * stretch / (last.stretch + stretch);
        last.stretch += stretch;
        last.open += open;
        last.windows += windows;
        last.right = Math.max(last.right, right);
      } else out.push({left: last ? Math.max(left, last.right) : left, right, from, rate, stretch, open, windows});
    }
    return out;
  }

  curve() {
    const host = $('curve');
    this.width = host.clientWidth || 900;
    const inner = this.width - EDGE.left - EDGE.right, bottom = EDGE.top + TALL, columns = this.columns(inner);
    const most = Math.max(1e-9, ...columns.map((c) => c.rate)), unit = this.bytes ? size : short;
    const y = (v) => bottom - TALL * v / most, svg = shape('svg', {class: 'curve', viewBox: '0 0 ' + this.width + ' ' + (bottom + EDGE.bottom), height: bottom + EDGE.bottom, role: 'img',
      'aria-label': plural(this.data.rates.reduce((n, r) => n + r[4], 0), 'window') + ' on the time axis, with the estimated rate of each'});
    for (const v of ticks(most, 4, this.bytes)) {
      svg.append(shape('path', {class: 'grid', d: 'M' + EDGE.left + ' ' + (Math.round(y(v)) + 0.5) + 'h' + inner}),
        shape('text', {x: EDGE.left - 8, y: y(v) + 4, 'text-anchor': 'end'}, v === 0 ? '0' : unit(v)));
    }
    for (const v of ticks(this.data.length / 1e9, Math.max(2, Math.floor(inner / 110)))) {
      const x = EDGE.left + inner * v * 1e9 / Math.max(1, this.data.length);
      svg.append(shape('text', {x, y: bottom + 16, 'text-anchor': v ? 'middle' : 'start'}, seconds(v * 1e9)));
    }
    for (const c of columns) {
      const width = Math.max(1, c.right - c.left);
      svg.append(shape('rect', {class: 'window', x: EDGE.left + c.left, y: EDGE.top, width, height: TALL, fill: 'var(--range)'}),
        shape('rect', {class: 'rate', x: EDGE.left + c.left, y: y(c.rate), width, height: bottom - y(c.rate), fill: 'var(--allocated)'}));
    }
    svg.append(shape('text', {class: 'title', x: EDGE.left, y: 18}, 'Allocated ' + (this.bytes ? 'bytes' : 'blocks') + ' per second'));
    svg.addEventListener('pointermove', (e) => this.point(columns, e.clientX - svg.getBoundingClientRect().left - EDGE.left));
    svg.addEventListener('pointerleave', () => { $('at').textContent = ''; });
    const key = el('p', {class: 'key'});
    for (const [colour, text] of [['range', 'a window: calls were recorded'], ['allocated', 'the rate that it estimates for the time around it; single windows differ, and the errors are those of the sums']]) {
      const i = el('i');
      i.style.background = 'var(--' + colour + ')';
      key.append(el('span', {}, i, text));
    }
    host.replaceChildren(svg, key);
  }

  // point describes the window next to a place.
  point(columns, x) {
    let best = null;
    for (const c of columns) {
      const away = Math.max(0, c.left - x, x - c.right);
      if (!best || away < best.away) best = {away, c};
    }
    if (!best) return;
    const {c} = best;
    $('at').textContent = (c.windows > 1 ? plural(c.windows, 'window') + ' from ' : 'Window at ') + seconds(c.from) + ', open for ' + seconds(c.open) +
      ', for a time of ' + seconds(c.stretch) + ': ' + (this.bytes ? size(c.rate) : short(c.rate) + ' blocks') + ' per second';
  }
}

const estimates = new Estimates(JSON.parse($('data').textContent));
