// The sums of several traces. A part is the traces of one service on one host.

const FLEET_MEASURES = MEASURES.slice(0, 5).map((m) => (m.id === 'peak' ? {...m, name: 'Live at the peak of each trace'} : m));

class Fleet {
  constructor(data) {
    this.data = data;
    this.bytes = true;
    this.inverted = false;
    this.parts = data.parts.map(([host, service, traces, growing]) => ({host: data.text(host) || 'unknown', service: data.text(service) || 'unknown', traces, growing}));
    // grows has the pairs of a site and a part in which the site grows.
    this.grows = new Set(data.shares.site.map((site, i) => (data.shares.growing[i] ? site + ' ' + data.shares.part[i] : '')));
    this.measure = FLEET_MEASURES[0];
    this.flame = new Flame($('flame'), (node) => this.what(node), (node) => this.crumbs(node));
    this.flame.at = this.column();
    choice($('units'), [[true, 'Bytes'], [false, 'Blocks']], true, (bytes) => { this.bytes = bytes; this.draw(); });
    choice($('directions'), [[false, 'From main'], [true, 'From the allocation']], false, (inverted) => { this.inverted = inverted; this.draw(); });
    this.options('host');
    this.options('service');
    $('growing-field').hidden = !data.shares.growing.some(Boolean);
    $('growing').addEventListener('change', () => this.draw());
    $('clear').addEventListener('click', () => {
      $('host').value = $('service').value = '';
      $('growing').checked = false;
      this.draw();
    });
    $('search').addEventListener('input', () => this.flame.search($('search').value));
    document.addEventListener('keydown', (e) => {
      if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return;
      e.preventDefault();
      $('search').focus();
    });
    $('bar').hidden = $('main').hidden = false;
    this.draw();
  }

  column() { return this.measure.at + (this.bytes ? 1 : 0); }

  format(n) { return this.bytes ? size(n) : plural(n, 'block'); }

  // options fills the choice of hosts or services. It is hidden if there is only one.
  options(what) {
    const names = [...new Set(this.parts.map((p) => p[what]))].sort();
    $(what).replaceChildren(el('option', {value: ''}, 'all ' + count(names.length)), ...names.map((name) => el('option', {value: name}, name)));
    $(what + '-field').hidden = names.length < 2;
    $(what).addEventListener('change', () => this.draw());
    this[what + 's'] = names.length;
  }

  // select finds the parts that the filter selects.
  select() {
    const host = $('host').value, service = $('service').value, growing = $('growing').checked;
    this.selected = this.parts.map((p) => (!host || p.host === host) && (!service || p.service === service));
    this.counts = (site, part) => this.selected[part] && (!growing || this.grows.has(site + ' ' + part));
    const filters = [[host, 'host ' + host], [service, 'service ' + service], [growing, 'only call sites that grow']].filter(([on]) => on).map(([, text]) => text);
    $('filtered').textContent = filters.length ? 'Filtered: ' + filters.join(', ') + '.' : '';
    $('clear').hidden = !filters.length;
    $('main').classList.toggle('filtered', filters.length > 0);
  }

  draw() {
    this.select();
    const s = this.data.stacks, node = [], uses = [], rows = [];
    this.total = new Float64Array(USES);
    let first = 0;
    for (let i = 0; i < s.node.length; i++) {
      if (!this.counts(s.site[i], s.part[i])) continue;
      if (i < s.first) first++;
      node.push(s.node[i]);
      uses.push(s.uses[i]);
      rows.push(i);
      addTo(this.total, s.uses[i]);
    }
    this.rows = rows;
    const measures = FLEET_MEASURES.filter(({at}) => at === 0 || this.total[at]);
    if (!measures.includes(this.measure)) this.measure = measures[0];
    choice($('measures'), measures.map((m) => [m, m.name]), this.measure, (m) => { this.measure = m; this.flame.measure(this.column()); });
    this.flame.at = this.column();
    this.flame.show(this.data.tree({stacks: {node, uses, first}}, this.inverted));
    const names = this.flame.modules, items = names.slice(0, 7).map((m, i) => ['flame' + i, base(m)]);
    if (names.length > 7) items.push(['flame7', 'others']);
    $('legend').replaceChildren(...items.map(([colour, text]) => {
      const i = el('i');
      i.style.background = 'var(--' + colour + ')';
      return el('span', {}, i, text);
    }), ...(this.data.inlined.size ? [el('span', {}, el('i', {class: 'inlined'}), 'inlined into its caller')] : []));
    this.sites();
    this.traces();
    this.cards();
  }

  // sites fills the table of call sites.
  sites() {
    const d = this.data, s = d.shares, of = new Map();
    s.site.forEach((site, i) => {
      const part = s.part[i];
      if (!this.counts(site, part)) return;
      let row = of.get(site);
      if (!row) of.set(site, row = {site, name: site < 0 ? '' : d.text(d.sites[site]), uses: new Float64Array(USES), traces: 0, growing: 0, rate: 0, blocks: 0, hosts: new Set(), services: new Set(), shares: []});
      addTo(row.uses, s.uses[i]);
      row.traces += s.traces[i];
      row.growing += s.growing[i];
      row.rate += s.bytes[i];
      row.blocks += s.blocks[i];
      row.hosts.add(this.parts[part].host);
      row.services.add(this.parts[part].service);
      row.shares.push(i);
    });
    const rest = of.get(-1);
    of.delete(-1);
    if (rest) rest.name = OTHER + ': ' + plural(d.leftSites, 'smaller call site') + ', added up';
    this.growing = [...of.values()].filter((r) => r.growing > 0).length;
    const unit = this.bytes ? 1 : 0, live = this.total[unit];
    const amount = (title, at, about) => ({title, about, number: true, value: (r) => r.uses[at + unit], text: (r) => this.amount(r.uses[at + unit])});
    const rate = (r) => (this.bytes ? r.rate : r.blocks);
    const columns = [
      {title: 'Grows', about: 'growth per second, of all traces in which the call site grows steadily', number: true, value: rate, text: (r) => (r.growing ? (this.bytes ? size(rate(r)) : significant(rate(r))) + '/s' : '')},
      {title: 'in', about: 'the number of traces in which it grows steadily', number: true, value: (r) => r.growing, text: (r) => (r.growing ? count(r.growing) : '')},
      amount('Still live', 0, 'at the end of each trace'),
      {title: '%', number: true, value: (r) => r.uses[unit], text: (r) => percent(r.uses[unit], live)},
      {title: 'Traces', about: 'the number of traces that have it', number: true, value: (r) => r.traces, text: (r) => count(r.traces)},
      ...(this.hosts > 1 ? [{title: 'Hosts', number: true, value: (r) => r.hosts.size}] : []),
      ...(this.services > 1 ? [{title: 'Services', number: true, value: (r) => r.services.size}] : []),
      amount('Allocated', 4), amount('Temporary', 6, 'freed by the same thread before its next allocation'),
      {title: 'Call site', value: (r) => r.name},
    ];
    new Table($('site-table'), {columns: this.growing ? columns : columns.slice(2), rows: [...of.values()], rest, caption: 'Call sites', none: 'None.', expand: (r) => this.detail(r)});
  }

  amount(n) { return this.bytes ? size(n) : count(n); }

  // detail returns what an open row of the table of call sites shows: its parts and its largest stacks.
  detail(row) {
    const s = this.data.shares, unit = this.bytes ? 1 : 0, all = el('div', {class: 'wide'});
    const head = ['Host', 'Service', 'Traces', 'grows in', 'Grows', 'Still live', 'Allocated'];
    const body = el('tbody');
    const shares = row.shares.toSorted((a, b) => s.bytes[b] - s.bytes[a] || s.uses[b][unit] - s.uses[a][unit]);
    for (const i of shares.slice(0, SHOWN)) {
      const p = this.parts[s.part[i]], rate = this.bytes ? size(s.bytes[i]) : significant(s.blocks[i]);
      const cells = [p.host, p.service, count(s.traces[i]), count(s.growing[i]), s.growing[i] ? rate + '/s' : '', this.amount(s.uses[i][unit]), this.amount(s.uses[i][4 + unit])];
      body.append(el('tr', {}, ...cells.map((text, k) => el('td', {class: k < 2 ? 'brief' : 'number'}, text))));
    }
    all.append(el('table', {class: 'shares'}, el('thead', {}, el('tr', {}, ...head.map((text, k) => el('th', {class: k < 2 ? 'brief' : 'number', scope: 'col'}, text)))), body));
    if (shares.length > SHOWN) all.append(el('p', {class: 'muted'}, 'and ' + count(shares.length - SHOWN) + ' more'));
    const stacks = new Map(), of = this.data.stacks;
    for (const i of this.rows) if (of.site[i] === row.site) stacks.set(of.node[i], (stacks.get(of.node[i]) || 0) + of.uses[i][this.column()]);
    const largest = [...stacks].sort((a, b) => b[1] - a[1]).slice(0, 3);
    for (const [node, n] of largest) {
      all.append(el('p', {class: 'muted'}, this.measure.name + ': ' + this.format(n)), el('ol', {class: 'frames mono'}, ...this.data.path(node).map((f) => el('li', {}, this.data.place(f)))));
    }
    if (stacks.size > largest.length) all.append(el('p', {class: 'muted'}, 'and ' + plural(stacks.size - largest.length, 'smaller stack')));
    return all;
  }

  // traces fills the table of traces. Those that do not count are in it whatever the filter is.
  traces() {
    const d = this.data, unit = this.bytes ? 1 : 0;
    const rows = d.traces.map(([file, host, service, state, part, calls, growing, uses, notes]) => ({
      file: d.text(file), host: d.text(host) || 'unknown', service: d.text(service) || 'unknown', state: d.text(state), part, calls, growing, uses, notes: d.text(notes),
    })).filter((r) => r.part < 0 || this.selected[r.part]);
    const number = (title, value, text) => ({title, number: true, value: (r) => (r.part < 0 ? -1 : value(r)), text: (r) => (r.part < 0 ? '' : text(value(r)))});
    const columns = [
      number('Still live', (r) => r.uses[unit], (n) => this.amount(n)), number('Live at its peak', (r) => r.uses[2 + unit], (n) => this.amount(n)),
      number('Allocated', (r) => r.uses[4 + unit], (n) => this.amount(n)), number('Calls', (r) => r.calls, count), number('Growing sites', (r) => r.growing, count),
      ...(this.hosts > 1 ? [{title: 'Host', brief: true, value: (r) => r.host}] : []),
      ...(this.services > 1 ? [{title: 'Service', brief: true, value: (r) => r.service}] : []),
      {title: 'State', brief: true, value: (r) => (r.state ? '0' : '1') + r.state, text: (r) => r.state || 'complete'},
      {title: 'Trace', value: (r) => r.file},
    ];
    new Table($('trace-table'), {
      columns, rows, sort: columns.length - 2, caption: 'Traces', none: 'None.',
      expand: (r) => el('ul', {}, ...(r.notes || 'Nothing is known to be missing.').split('\n').map((text) => el('li', {}, text))),
    });
    if (d.leftTraces) $('trace-table').append(el('p', {class: 'muted'}, 'and ' + plural(d.leftTraces, 'trace') + ' of which nothing is known to be missing, with less live memory'));
  }

  cards() {
    const t = this.total, unit = this.bytes ? 1 : 0, parts = this.parts.filter((p, i) => this.selected[i]);
    const sum = (of) => parts.reduce((n, p) => n + of(p), 0);
    const card = (id, title, text, line) => el('div', {class: 'card', id: 'card-' + id}, el('h3', {}, title), el('p', {class: 'big'}, text), el('p', {class: 'muted'}, line));
    const amount = (id, title, at) => card(id, title, this.format(t[at + unit]), this.bytes ? 'in ' + plural(t[at], 'block') : size(t[at + 1]));
    const of = [[this.hosts, 'host'], [this.services, 'service']].filter(([n]) => n > 1).map(([, what]) => plural(new Set(parts.map((p) => p[what])).size, what)).join(', ');
    $('cards').replaceChildren(card('traces', 'Traces', count(sum((p) => p.traces)), of || 'of one host and service'),
      card('growing', 'Growing call sites', count(this.growing), 'in ' + plural(sum((p) => p.growing), 'trace')),
      amount('live', 'Still live', 0), amount('peak', 'At the peaks', 2), amount('allocated', 'Allocated', 4), amount('temporary', 'Temporary', 6));
  }

  what(node) {
    node = node || this.flame.top;
    if (!node) return;
    const at = this.column(), n = node.uses[at];
    $('what').textContent = (node.parent ? node.name : 'all stacks') + ': ' + this.format(n) + ', ' + percent(n, this.total[at]) + ' of "' + this.measure.name + '"; ' +
      size(node.uses[1]) + ' in ' + plural(node.uses[0], 'block') + ' still live, ' + size(node.uses[5]) + ' in ' + plural(node.uses[4], 'block') + ' allocated' + (node.module ? ' — ' + node.module : '');
  }

  crumbs(node) {
    const path = [];
    for (let n = node; n; n = n.parent) path.unshift(n);
    const shown = path.length > 7 ? [path[0], null, ...path.slice(-5)] : path;
    $('crumbs').replaceChildren(...shown.flatMap((n, i) => [...(i ? ['›'] : []),
      n ? el('button', {type: 'button', 'aria-current': n === node ? 'true' : undefined, onclick: () => this.flame.zoom(n)}, n.name) : '…']));
    this.what(null);
  }
}

const fleet = new Fleet(new Data(JSON.parse($('data').textContent)));
