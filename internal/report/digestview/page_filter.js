// Filters: blocks by when, by which thread, in which size and below which function they were allocated.

const ENDED = 10; // index in the uses of a filtered stack: blocks that are live at the end of the range

// sizesOf returns the smallest and the largest size of a class.
function sizesOf(c) { return c ? [4 ** (c - 1), c === 32 ? 2 ** 64 : 4 ** c - 1] : [0, 0]; }

// Cells reads the cells of a resource: blocks by stack, thread, class of sizes and interval.
class Cells {
  constructor(base64) {
    const text = atob(base64);
    this.bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) this.bytes[i] = text.charCodeAt(i);
  }

  // each calls cell for each cell; if that returns true, it calls part for each of its parts, with the
  // interval and the blocks and bytes made, ended, temporary, kept and unknown.
  each(cell, part) {
    const bytes = this.bytes, a = new Float64Array(10);
    let at = 0, stack = 0;
    const number = () => {
      let n = 0, unit = 1, b;
      do {
        b = bytes[at++];
        n += (b & 127) * unit;
        unit *= 128;
      } while (b > 127);
      return n;
    };
    while (at < bytes.length) {
      stack += number();
      const thread = number() - 1, size = bytes[at++];
      const uniform = number(), n = number(), wanted = cell(stack, thread, size);
      for (let i = 0, interval = 0; i < n; i++) {
        interval += number();
        const set = bytes[at++];
        for (let k = 0; k < 5; k++) {
          a[2 * k] = a[2 * k + 1] = 0;
          if (!(set >> k & 1)) continue;
          a[2 * k] = number();
          a[2 * k + 1] = uniform ? a[2 * k] * (uniform - 1) : number();
        }
        if (wanted) part(stack, thread, size, interval, a);
      }
    }
  }
}

// Filter is what the reader selected.
class Filter {
  constructor(data) {
    this.data = data;
    this.count = data.intervals.events.length;
    this.clear();
  }

  clear() {
    this.range = null; // the first interval, and the one after the last
    this.thread = this.text = '';
    this.sizes = [0, Infinity]; // classes
  }

  // edge returns the time or call at which an interval begins.
  edge(i, byTime) {
    const {width, events} = this.data.intervals;
    if (byTime) return i >= this.count ? this.data.duration : Math.min(i * width, this.data.duration);
    return i ? events[i - 1] : 0;
  }

  // interval returns the interval that contains a time or call.
  interval(v, byTime) {
    const {width, events} = this.data.intervals;
    if (byTime) return Math.max(0, Math.min(Math.floor(v / width), this.count - 1));
    const i = events.findIndex((e) => e > v);
    return i < 0 ? this.count - 1 : i;
  }

  sized() { return this.sizes[0] > 0 || this.sizes[1] < Infinity; }

  // counts reports whether cells must be counted: functions select whole stacks.
  counts() { return !!this.range || !!this.thread || this.sized(); }

  active() { return this.counts() || !!this.text; }

  // position returns a time or call as text, with enough digits to tell intervals apart.
  position(v, byTime) {
    if (!byTime) return 'call ' + count(v);
    const d = this.data, step = d.intervals.width / 1e9, digits = Math.max(0, Math.min(9, Math.ceil(1 - Math.log10(step))));
    return ((v - d.from) / 1e9).toFixed(digits) + ' s';
  }

  // threadRows returns the rows of the threads that match, or null for all.
  threadRows(resource) {
    if (!this.thread) return null;
    const d = this.data, want = this.thread.toLowerCase(), all = resource.threads.rows.map((r) => [d.text(r[0]), d.text(r[1])]);
    const exact = all.some(([id, name]) => id === this.thread || name.toLowerCase() === want);
    return new Set(all.map(([id, name], i) => (exact ? id === this.thread || name.toLowerCase() === want : (id + ' ' + name).toLowerCase().includes(want)) ? i : -1).filter((i) => i >= 0));
  }

  // stacksOf returns whether each stack of a resource matches.
  stacksOf(resource) {
    if (!this.text) return null;
    const d = this.data, want = this.text.toLowerCase(), {parent, frame} = d.nodes;
    const has = d.frames.function.map((_, f) => (d.name(f) + '\n' + d.module(f)).toLowerCase().includes(want));
    // A node comes after its parent.
    const below = new Uint8Array(parent.length);
    for (let n = 1; n < parent.length; n++) below[n] = below[parent[n]] || frame[n] >= 0 && has[frame[n]] ? 1 : 0;
    return resource.stacks.node.map((n) => below[n] === 1);
  }

  // words describes the selection.
  words(resource, byTime) {
    const parts = [];
    if (this.range) {
      const [from, to] = this.range.map((i) => this.edge(i, byTime));
      parts.push('allocated ' + (byTime ? 'between ' + this.position(from, true) + ' and ' + this.position(to, true) : 'by calls ' + count(from + 1) + ' to ' + count(to)));
    }
    if (this.thread) {
      const rows = [...this.threadRows(resource)];
      const label = (r) => this.data.text(r[0]) + (r[1] ? ' ' + this.data.text(r[1]) : '');
      parts.push(rows.length === 1 ? 'by thread ' + label(resource.threads.rows[rows[0]]) : 'by ' + plural(rows.length, 'thread') + ' with “' + this.thread + '”');
    }
    if (this.sized()) {
      const [low, high] = this.sizes, unit = resource.bytes ? size : count, from = unit(sizesOf(low)[0]), to = high < Infinity ? unit(sizesOf(high)[1]) : '';
      parts.push(!to ? 'of ' + from + ' or more' : low ? 'of ' + from + ' to ' + to : 'of at most ' + to);
    }
    if (this.text) parts.push('in or below “' + this.text + '”');
    return 'Filtered: only blocks ' + parts.join(', ');
  }

  // apply returns a resource as far as it is selected.
  apply(resource) {
    const stacks = this.stacksOf(resource), uses = this.counts() ? null : resource.stacks.uses.map((u, i) => stacks[i] ? u : new Array(USES).fill(0));
    const out = {...resource, filtered: true, counted: !uses, ranged: !!this.range && this.range[1] < this.count, apis: [], lifeEvents: [], lifeTimes: []};
    const sums = this.counted(resource, stacks, out);
    const all = uses || sums.uses;
    out.total = new Float64Array(USES);
    for (const u of all) addTo(out.total, u);
    out.stacks = {...resource.stacks, uses: all, left: all.some((u, i) => i >= resource.stacks.first && some(u)) ? resource.stacks.left : 0};
    if (!uses) out.stacks.event = out.stacks.time = all.map(() => 0);
    this.groups(resource, out);
    return out;
  }

  // count_ adds up the cells that are selected.
  counted(resource, stacks, out) {
    const threads = this.threadRows(resource), [low, high] = this.sizes, [from, to] = this.range || [0, this.count];
    const none = () => new Float64Array(USES), uses = resource.stacks.node.map(none);
    const byThread = resource.threads.rows.map(none), rest = none(), scratch = none(), bySize = new Map();
    const before = [0, 0], lives = new Float64Array(2 * this.count);
    out.freed = [0, 0];
    out.cells.each((stack, thread, size) => (!stacks || stacks[stack]) && (!threads || threads.has(thread)) && size >= low && size <= high,
      (stack, thread, size, interval, a) => {
        for (let k = 0; k < 2; k++) lives[2 * interval + k] += a[k] - a[2 + k];
        if (interval >= to) return;
        const sum = scratch.fill(0), inside = interval >= from;
        for (let k = 0; k < 2; k++) {
          sum[ENDED + k] = a[k] - a[2 + k];
          if (!inside) continue;
          sum[4 + k] = a[k];
          sum[k] = a[6 + k];
          sum[6 + k] = a[4 + k];
          sum[8 + k] = a[8 + k];
          out.freed[k] += a[2 + k];
        }
        addTo(uses[stack], sum);
        addTo(thread < 0 ? rest : byThread[thread], sum);
        if (!bySize.has(size)) bySize.set(size, none());
        addTo(bySize.get(size), sum);
      });
    for (let i = 0; i < this.count; i++) for (let k = 0; k < 2; k++) lives[2 * i + k] = before[k] += lives[2 * i + k];
    out.lives = lives;
    out.threads = {rows: resource.threads.rows.map((r, i) => [r[0], r[1], byThread[i]]).filter((r) => some(r[2])), left: some(rest) ? resource.threads.left : 0, rest};
    const processes = resource.processes.rows.map(none), other = none();
    addTo(other, rest);
    resource.threads.rows.forEach((r, i) => addTo(processes[r[3]] || other, byThread[i]));
    out.processes = {rows: resource.processes.rows.map((r, i) => [r[0], r[1], processes[i]]).filter((r) => some(r[2])), left: some(other) ? resource.processes.left + 1 : 0, rest: other};
    out.sizes = [...bySize].sort((a, b) => a[0] - b[0]).map(([c, u]) => [...sizesOf(c), u[4], u[5], u[0], u[1]]);
    return {uses};
  }

  // groups adds up the selected stacks by function and by module.
  groups(resource, out) {
    const d = this.data, f = d.frames, tables = {functions: new Map(), modules: new Map()};
    const keys = {
      functions: (n) => f.function[n] ? f.function[n] + ' ' + f.module[n] : 'at ' + f.address[n] + ' ' + f.module[n],
      modules: (n) => String(f.module[n]),
    };
    const label = {functions: (n) => d.name(n) + (f.function[n] && f.module[n] ? ' from ' + base(d.module(n)) : ''), modules: (n) => d.module(n) || UNKNOWN};
    out.stacks.uses.forEach((u, i) => {
      if (!some(u)) return;
      const path = d.path(out.stacks.node[i]);
      for (const [id, table] of Object.entries(tables)) {
        const seen = new Set();
        path.forEach((n, depth) => {
          const key = n < 0 ? OTHER : keys[id](n);
          let row = table.get(key);
          if (!row) {
            table.set(key, row = [0, 0, new Float64Array(USES), new Float64Array(USES)]);
            row.label = n < 0 ? OTHER : label[id](n);
          }
          if (!depth) addTo(row[2], u);
          if (!seen.has(key)) addTo(row[3], u);
          seen.add(key);
        });
      }
    });
    for (const [id, table] of Object.entries(tables)) out[id] = {rows: [...table.values()], left: 0, rest: null};
  }
}

// Controls are the fields of the filter.
class Controls {
  // changed is called after each change.
  constructor(filter, changed) {
    Object.assign(this, {filter, changed});
    const change = (set) => () => { set(); changed(); };
    $('by-thread').addEventListener('change', change(() => { filter.thread = $('by-thread').value.trim(); }));
    $('by-function').addEventListener('change', change(() => { filter.text = $('by-function').value.trim(); }));
    for (const id of ['from-size', 'to-size']) {
      $(id).addEventListener('change', change(() => { filter.sizes = [Number($('from-size').value), Number($('to-size').value) || ($('to-size').value === '0' ? 0 : Infinity)]; }));
    }
    $('clear').addEventListener('click', () => this.clear());
    for (const id of ['by-thread', 'by-function']) {
      $(id).addEventListener('keydown', (e) => {
        if (e.key !== 'Escape' || !$(id).value) return;
        $(id).value = '';
        $(id).dispatchEvent(new Event('change'));
      });
    }
  }

  clear() {
    this.filter.clear();
    this.show(this.resource);
    this.changed();
  }

  // show offers the threads and sizes of a resource.
  show(resource) {
    this.resource = resource;
    const d = this.filter.data, unit = resource.bytes ? size : count, classes = new Set();
    resource.cells.each((stack, thread, size) => { classes.add(size); return false; });
    const sorted = [...classes].sort((a, b) => a - b), option = (value, text, now) => el('option', {value, selected: now}, text);
    const [low, high] = this.filter.sizes;
    $('from-size').replaceChildren(option('0', 'any', !low), ...sorted.filter((c) => c > 0).map((c) => option(c, unit(sizesOf(c)[0]), c === low)));
    $('to-size').replaceChildren(option('', 'any', high === Infinity), ...sorted.map((c) => option(c, unit(sizesOf(c)[1]), c === high)));
    $('sizes-field').hidden = !resource.sized;
    $('threads-field').hidden = resource.threads.rows.length < 2 && !this.filter.thread;
    $('functions-field').hidden = !resource.hasStacks;
    $('thread-names').replaceChildren(...resource.threads.rows.map((r) => el('option', {value: d.text(r[0])}, d.text(r[1]))));
    $('by-thread').value = this.filter.thread;
    $('by-function').value = this.filter.text;
  }
}
