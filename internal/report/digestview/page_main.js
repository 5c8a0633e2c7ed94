// The page as a whole.

const LINES = 4; // lines of a box that are listed

class Report {
  constructor(data) {
    this.data = data;
    this.filter = new Filter(data);
    this.controls = new Controls(this.filter, () => { this.refilter(); this.drawCurves(); });
    this.curves = new Curves($('curve'), $('at'), this.filter, () => this.refilter());
    this.flame = new Flame($('flame'), (node) => this.what(node), (node) => this.crumbs(node));
    this.inverted = false;
    this.byTime = data.duration > 0;
    this.listen();
    choice($('resources'), data.resources.map((r, i) => [i, r.type || 'unnamed', r.desc]), data.open, (i) => this.show(i));
    $('bar').hidden = $('main').hidden = false;
    if (data.resources.length) this.show(data.open);
    else {
      $('main').replaceChildren(el('p', {}, 'The trace has no calls.'));
      $('bar').hidden = true;
    }
  }

  listen() {
    $('search').addEventListener('input', () => { this.flame.search($('search').value); this.matched(); });
    $('search').addEventListener('keydown', (e) => {
      if (e.key !== 'Escape') return;
      $('search').value = '';
      this.flame.search('');
      this.matched();
    });
    $('reset').addEventListener('click', () => {
      $('search').value = '';
      this.flame.search('');
      this.flame.zoom(this.flame.root);
    });
    document.addEventListener('keydown', (e) => {
      if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return;
      e.preventDefault();
      $('search').focus();
    });
  }

  // show shows a resource.
  show(i) {
    const r = this.base = this.data.resources[i];
    if (typeof r.cells === 'string') r.cells = new Cells(r.cells);
    this.bytes = r.sized;
    this.measure = MEASURES[r.total[0] > 0 && r.hasFrees ? 0 : 2];
    if (!r.sized) this.filter.sizes = [0, Infinity];
    this.controls.show(r);
    $('desc').textContent = r.desc;
    choice($('units'), r.sized ? [[true, r.bytes ? 'Bytes' : 'Units'], [false, 'Blocks']] : [], this.bytes, (bytes) => { this.bytes = bytes; this.drawCurves(); this.draw(); });
    const axes = [[true, 'Time'], [false, 'Calls']].filter(([time]) => time ? r.byTime : r.byEvent);
    if (!axes.some(([time]) => time === this.byTime)) this.byTime = axes[0][0];
    choice($('axes'), axes, this.byTime, (time) => { this.byTime = time; this.headline(); this.drawCurves(); this.draw(); });
    $('over-time-title').textContent = this.byTime ? 'Over time' : 'By call';
    choice($('directions'), [[false, 'From main'], [true, 'From the allocation']], this.inverted, (inverted) => { this.inverted = inverted; this.setTree(); });
    this.refilter();
    this.drawCurves();
  }

  // refilter shows what the filter selects of the resource.
  refilter() {
    const r = this.resource = this.filter.active() ? this.filter.apply(this.base) : this.base;
    const measures = MEASURES.filter((m) => m.id === 'allocated' || r.hasFrees && ({unknown: r.total[8] > 0, range: r.ranged, peak: !r.counted}[m.id] ?? true));
    if (!measures.includes(this.measure)) this.measure = measures[0];
    choice($('measures'), measures.map((m) => [m, m.name]), this.measure, (m) => { this.measure = m; this.setMeasure(); });
    this.headline();
    this.cards();
    this.setTree();
    this.setStacks();
    this.setTables();
    this.draw();
  }

  // headline says what is selected.
  headline() {
    const f = this.filter, r = this.base, on = f.active();
    $('filtered').textContent = on ? f.words(r, this.byTime) : '';
    $('clear').hidden = !on;
    $('main').classList.toggle('filtered', on);
    $('filter-notes').hidden = !on;
    const notes = document.querySelector('.verdict') ? ['The suspects above are those of the whole recording.'] : [];
    if (f.range) notes.push('Ranges consist of intervals of ' + (this.byTime ? seconds(this.data.intervals.width) : 'several calls') + '. “Live at the end of the range” also counts blocks that were allocated before the range.');
    if (f.text && r.stacks.left) notes.push('Stacks that are added up as (other) match by the frames that are shown.');
    $('filter-notes').textContent = notes.join(' ');
  }

  // drawCurves draws the curves of the whole recording, with the selected blocks as a line.
  drawCurves() {
    const f = this.filter, r = this.resource, some = f.active() && (f.thread || f.text || f.sized());
    this.curves.show(this.data, {resource: this.base, byTime: this.byTime, bytes: this.bytes, lives: some && r.hasFrees ? r.lives : null});
  }

  // draw draws the other parts that depend on the unit and the axis.
  draw() {
    this.setMeasure();
    this.histograms();
  }

  // amount formats bytes and blocks.
  amount(uses, at) { return (this.resource.sized ? this.size(uses[at + 1]) + ' in ' : '') + plural(uses[at], 'block'); }

  size(n) { return this.resource.bytes ? size(n) : count(n) + ' units'; }

  cards() {
    const r = this.resource, t = r.total, big = (at) => r.sized ? this.size(t[at + 1]) : count(t[at]);
    const blocks = (n) => r.sized ? 'in ' + plural(n, 'block') : n === 1 ? 'block' : 'blocks';
    const card = (id, title, text, ...lines) => el('div', {class: 'card' + (id === 'live' && t[0] ? ' first' : ''), id: 'card-' + id}, el('h3', {}, title, ...(r.filtered ? [' ', el('span', {class: 'tag'}, 'filtered')] : [])), el('p', {class: 'big'}, text), ...lines.filter(Boolean).map((l) => el('p', {class: 'muted'}, l)));
    const cards = [];
    if (r.hasFrees) {
      cards.push(card('live', 'Still live at the end', big(0), blocks(t[0]), t[5] && r.sized ? percent(t[1], t[5]) + ' of the allocated bytes' : ''));
      if (t[8]) cards.push(card('unknown', 'Unknown', big(8), blocks(t[8]), 'live at a gap in the recording, in which they may have been freed'));
      if (r.ranged) cards.push(card('range', 'Live at the end of the range', big(ENDED), blocks(t[ENDED]), 'also allocated before the range'));
      if (!r.counted) cards.push(card('peak', 'Live at the peak', big(2), blocks(t[2]), this.data.duration ? 'at ' + this.data.when(r.peakTime) + ', after call ' + count(r.peakEvent) : 'after call ' + count(r.peakEvent)));
    }
    const range = this.filter.range && this.filter.range.map((i) => this.filter.edge(i, true)), long = range ? range[1] - range[0] : this.data.duration;
    const rate = this.data.duration && long ? short(t[4] / (long / 1e9)) + ' blocks per second' : '';
    cards.push(card('allocated', 'Allocated', big(4), blocks(t[4]), rate));
    if (r.hasFrees) {
      cards.push(card('freed', r.filtered && range ? 'Freed in the range' : 'Freed', r.sized ? this.size(r.freed[1]) : count(r.freed[0]), blocks(r.freed[0])));
      cards.push(card('temporary', 'Temporary', percent(t[6], t[4]), 'of the blocks: ' + plural(t[6], 'block') + (r.sized ? ', ' + this.size(t[7]) : ''), 'freed by their thread before it allocated another'));
    }
    $('cards').replaceChildren(...cards);
  }

  setTree() {
    const r = this.resource;
    this.root = this.data.tree(r, this.inverted);
    $('no-stacks').hidden = r.hasStacks;
    for (const id of ['flame', 'what', 'crumbs', 'legend', 'keys', 'measures', 'directions', 'find']) $(id).hidden = !r.hasStacks;
    this.flame.show(this.root);
    const names = this.flame.modules, items = names.slice(0, 7).map((m, i) => ['flame' + i, base(m)]);
    if (names.length > 7) items.push(['flame7', 'others']);
    $('legend').replaceChildren(...items.map(([colour, text]) => {
      const i = el('i');
      i.style.background = 'var(--' + colour + ')';
      return el('span', {}, i, text);
    }), ...(this.data.inlined.size ? [el('span', {}, el('i', {class: 'inlined'}), 'inlined into its caller')] : []));
  }

  column() { return this.measure.at + (this.bytes ? 1 : 0); }

  setMeasure() {
    this.flame.measure(this.column());
    this.matched();
    this.what(null);
  }

  matched() {
    const f = this.flame;
    $('matched').textContent = f.query ? percent(f.matched(), f.top.uses[f.at]) + ' matches: ' + this.value(f.matched()) : '';
  }

  value(n) { return this.bytes ? this.size(n) : plural(n, 'block'); }

  // what describes a box: the one under the pointer, or the zoomed one.
  what(node) {
    node = node || this.flame.top;
    if (!node) return;
    const at = this.measure.at, all = this.root.uses[this.column()];
    const parts = [node.parent ? node.name + this.where(node) : 'all stacks', this.measure.name.toLowerCase() + ' ' + this.amount(node.uses, at)];
    parts[1] += ', ' + percent(node.uses[this.column()], all) + ' of the total';
    if (node.parent && node.parent.parent) parts[1] += ', ' + percent(node.uses[this.column()], node.parent.uses[this.column()]) + ' of ' + (this.inverted ? 'its callee' : 'its caller');
    $('what').textContent = parts.join(': ') + (node.module ? ' — ' + node.module : '');
  }

  // where returns the lines of a box, those with the largest amounts first, and
  // whether it is inlined.
  where(node) {
    const lines = [...new Set(node.framesBy(this.column()).map((f) => this.data.line(f)))], more = lines.length - LINES;
    const at = lines.length ? ' at ' + lines.slice(0, LINES).join(', ') + (more > 0 ? ' and ' + plural(more, 'other line') : '') : '';
    return at + (node.inlined ? ' (inlined)' : '');
  }

  crumbs(node) {
    const path = [];
    for (let n = node; n; n = n.parent) path.unshift(n);
    const shown = path.length > 7 ? [path[0], null, ...path.slice(-5)] : path;
    const parts = [];
    for (const n of shown) {
      if (parts.length) parts.push('›');
      if (!n) parts.push('…');
      else parts.push(el('button', {type: 'button', 'aria-current': n === node ? 'true' : undefined, onclick: () => this.flame.zoom(n)}, n.name));
    }
    $('crumbs').replaceChildren(...parts);
    this.matched();
    this.what(null);
  }

  setStacks() {
    const r = this.resource;
    this.unfreed = r.total[0] > 0 && r.hasFrees;
    choice($('scopes'), r.hasFrees && r.total[0] > 0 ? [[true, 'Still live'], [false, 'All']] : [], this.unfreed, (unfreed) => { this.unfreed = unfreed; this.stackTable(); });
    this.stackTable();
  }

  stackTable() {
    const d = this.data, r = this.resource, s = r.stacks, rows = [];
    const rest = new Float64Array(USES);
    s.node.forEach((node, i) => {
      const uses = s.uses[i];
      if (this.unfreed ? !uses[0] : !some(uses)) return;
      if (i >= s.first) addTo(rest, uses);
      else rows.push({node, uses, event: s.event[i], time: s.time[i]});
    });
    const end = this.byTime ? d.to : d.events;
    const number = (title, at, about) => ({title, number: true, about, value: (row) => row.uses[at], text: (row) => at % 2 ? (r.bytes ? size(row.uses[at]) : count(row.uses[at])) : count(row.uses[at])});
    const columns = [];
    if (r.hasFrees) {
      if (r.sized) columns.push(number('Still live', 1));
      columns.push({title: '%', number: true, value: (row) => row.uses[r.sized ? 1 : 0], text: (row) => percent(row.uses[r.sized ? 1 : 0], r.total[r.sized ? 1 : 0])});
      columns.push(number(r.sized ? 'Blocks' : 'Still live', 0));
      if (!r.counted) columns.push({title: 'Oldest', number: true, about: 'age of the oldest of these blocks at the end', value: (row) => row.event ? end - (this.byTime ? row.time : row.event) : -1, text: (row) => row.event ? (this.byTime ? seconds(end - row.time) : plural(end - row.event, 'call')) : ''});
    }
    if (r.total[8] && !this.unfreed) columns.push(number('Unknown', r.sized ? 9 : 8));
    if (r.hasFrees && !this.unfreed && !r.counted) columns.push(number('At the peak', r.sized ? 3 : 2));
    if (r.ranged && r.hasFrees) columns.push(number('Live at the range’s end', ENDED + (r.sized ? 1 : 0)));
    if (r.sized) columns.push(number('Allocated', 5));
    columns.push(number('Allocations', 4));
    if (r.hasFrees && !this.unfreed) columns.push(number('Temporary', 6));
    const label = (row) => d.path(row.node).slice(0, 4).map((f, i) => d.name(f) + (i || !d.line(f) ? '' : ' at ' + d.line(f))).join(' ← ');
    columns.push({title: 'Stack, innermost frame first', value: (row) => row.label ??= label(row), text: (row) => row.label ??= label(row)});
    const other = s.left && some(rest) ? {uses: rest, event: 0, time: 0, label: '(other): ' + (r.filtered ? 'of ' : '') + plural(s.left, 'smaller stack') + ', added up'} : null;
    $('unfreed-title').textContent = this.unfreed ? 'Still live at the end, by stack' : 'All stacks';
    this.stackRows = new Table($('stack-table'), {
      columns, rows, rest: other, sort: r.hasFrees && this.unfreed ? 0 : columns.findIndex((c) => c.title === (r.sized ? 'Allocated' : 'Allocations')), caption: 'Stacks',
      none: r.filtered ? 'No block matches the filter.' : r.total[8] ? 'No block is certain to be still live.' : 'Everything was freed.',
      expand: (row) => el('div', {}, el('ol', {class: 'frames mono'}, ...d.path(row.node).map((f) => el('li', {}, d.place(f), ...(d.inlined.has(f) ? [' ', el('span', {class: 'tag'}, 'inlined')] : [])))),
        el('button', {type: 'button', class: 'link', onclick: () => this.find(row.node)}, 'Show in the flame graph')),
    });
  }

  // find zooms to a stack.
  find(stack) {
    let path = this.data.path(stack);
    if (!this.inverted) path = path.reverse();
    let node = this.flame.root;
    for (const f of path) node = node.kids.get(this.data.same(f)) || node;
    if (!node.uses[this.column()]) return;
    this.flame.zoom(node);
    $('stacks').scrollIntoView();
  }

  histograms() {
    const r = this.resource, at = this.bytes ? 3 : 2, value = (n) => this.bytes ? (r.bytes ? size(n) : count(n)) : count(n);
    const range = (text, from, to) => from === to ? text(from) : text(from) + ' – ' + text(to);
    const trim = (rows) => { const first = rows.findIndex((b) => b[2]); return first < 0 ? [] : rows.slice(first); };
    const row = (name, b, live) => ({name, value: b[at], part: live, text: b[at] ? value(b[at]) : '', title: plural(b[2], 'block') + (r.sized ? ', ' + this.size(b[3]) : '')});
    $('sizes-title').parentElement.hidden = !r.sized;
    bars($('sizes'), trim(r.sizes).map((b) => row(range(r.bytes ? size : count, b[0], b[1]), b, b[at + 2])),
      [['allocated', 'allocated'], ...(r.hasFrees ? [['live', 'still live at the end']] : [])], 'Blocks by size');
    const byTime = this.byTime && this.data.duration > 0;
    // Clocks have a resolution, so the bins from 0 to the shortest lifetime are empty.
    const all = byTime ? r.lifeTimes : r.lifeEvents, lives = [...all.slice(0, 1).filter((b) => b[2]), ...trim(all.slice(1))];
    const rows = lives.map((b) => row(byTime ? (b[0] ? range(seconds, b[0], b[1] + 1) : 'under ' + seconds(this.data.step)) : range(count, b[0], b[1]), b, 0));
    const live = r.total[this.bytes ? 1 : 0];
    rows.push({name: 'still live', value: live, part: live, text: value(live), title: this.amount(r.total, 0)});
    $('lives-title').textContent = byTime ? 'Lifetimes' : 'Lifetimes in calls';
    $('lives-title').parentElement.hidden = !r.hasFrees || r.filtered;
    bars($('lives'), rows, [['allocated', 'freed after'], ['live', 'still live at the end']], 'Blocks by lifetime');
  }

  setTables() {
    const r = this.resource, all = [
      ['functions', 'Functions', r.functions], ['modules', 'Modules', r.modules], ['threads', 'Threads', r.threads],
      ['processes', 'Processes', r.processes], ['apis', 'Traced functions', {rows: r.apis}],
    ].filter(([id, , g]) => g.rows.length > (id === 'processes' ? 1 : 0));
    const now = all.some(([id]) => id === this.who) ? this.who : all.length ? all[0][0] : '';
    choice($('tables'), all.map(([id, name]) => [id, name]), now, (id) => { this.who = id; this.table(id); });
    if (now) this.table(now);
    else $('who-table').replaceChildren();
  }

  table(id) {
    this.who = id;
    const d = this.data, r = this.resource;
    if (id === 'apis') {
      $('who-about').textContent = 'The functions that were traced.';
      this.rows = new Table($('who-table'), {caption: 'Traced functions', rows: r.apis, columns: [
        {title: 'Calls', number: true, value: (x) => x[2], text: (x) => count(x[2])},
        ...(r.sized ? [{title: 'Requested', number: true, value: (x) => x[3], text: (x) => r.bytes ? size(x[3]) : count(x[3])}] : []),
        {title: 'Operation', value: (x) => x[1]},
        {title: 'Function', value: (x) => d.text(x[0]) || UNKNOWN},
      ]});
      return;
    }
    const g = r[id], nested = id === 'functions' || id === 'modules';
    $('who-about').textContent = {
      functions: 'Self counts the allocations that a function made itself; with callees also those of the functions that it called.',
      modules: 'Self counts the allocations that the code of a program or library made itself; with callees also those of the code that it called.',
      threads: 'A block belongs to the thread that allocated it or last moved it with realloc, whichever thread freed it.',
      processes: 'The allocations of each process.',
    }[id];
    const number = (title, at, total) => ({title, number: true, value: (x) => x[total ? 3 : 2] ? x[total ? 3 : 2][at] : -1,
      text: (x) => { const u = x[total ? 3 : 2]; return !u ? '' : at % 2 ? (r.bytes ? size(u[at]) : count(u[at])) : count(u[at]); }});
    const columns = [], self = nested ? ', self' : '';
    if (r.hasFrees) {
      if (r.sized) columns.push(number('Still live' + self, 1));
      else columns.push(number('Still live' + self, 0));
      if (nested) columns.push(number('with callees', r.sized ? 1 : 0, true));
      if (r.total[8]) columns.push(number('Unknown' + self, r.sized ? 9 : 8));
      if (!r.counted) columns.push(number('At the peak' + self, r.sized ? 3 : 2));
      if (r.ranged) columns.push(number('Live at the range’s end' + self, ENDED + (r.sized ? 1 : 0)));
    }
    if (r.sized) columns.push(number('Allocated' + self, 5));
    if (r.sized && nested) columns.push(number('with callees', 5, true));
    columns.push(number('Allocations' + self, 4));
    if (r.hasFrees) columns.push(number('Temporary' + self, 6));
    columns.push({title: {functions: 'Function', modules: 'Module', threads: 'Thread', processes: 'Process'}[id], value: (x) => x.label ??= this.label(id, x), text: (x) => x.label ??= this.label(id, x)});
    let rest = null;
    if (g.left) {
      rest = [0, 0, g.rest];
      rest.label = '(other): ' + plural(g.left, 'row') + ', added up';
    }
    const sort = columns.findIndex((c) => c.title.startsWith(r.hasFrees && r.total[0] ? 'Still live' : r.sized ? 'Allocated' : 'Allocations'));
    this.rows = new Table($('who-table'), {caption: id, rows: g.rows, columns, rest, sort: Math.max(0, sort)});
  }

  label(id, row) {
    const name = this.data.text(row[0]) || UNKNOWN, remark = this.data.text(row[1]);
    if (!remark || remark === name) return name;
    return id === 'functions' ? (name.endsWith(remark) ? name : name + ' from ' + base(remark)) : id === 'modules' ? remark : name + ' ' + remark;
  }
}

const report = new Report(new Data(JSON.parse($('data').textContent)));
