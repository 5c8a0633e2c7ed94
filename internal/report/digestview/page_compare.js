// The comparison of two traces. Uses are the blocks and bytes before, after, grown and shrunk.

const BEFORE = 0, AFTER = 2, GROWN = 4, SHRUNK = 6;
const WIDTHS = [
  [GROWN, 'What grew'], [SHRUNK, 'What shrank'], [AFTER, 'After'], [BEFORE, 'Before'],
];

// signed formats a difference.
function signed(n, format) { return n === 0 ? '0' : (n > 0 ? '+' : '−') + format(Math.abs(n)); }

// GrowthFlame colours boxes by how much they grew in proportion to what they are.
class GrowthFlame extends Flame {
  colour() {
    const unit = this.at % 2, todo = [...this.root.kids.values()];
    while (todo.length) {
      const node = todo.pop(), before = node.uses[BEFORE + unit], after = node.uses[AFTER + unit];
      const part = (after - before) / Math.max(before, after, 1), size = Math.abs(part);
      node.colour = size < 0.02 ? 7 : (part > 0 ? 'up' : 'down') + (size < 0.25 ? 1 : size < 0.75 ? 2 : 3);
      push(todo, node.kids);
    }
  }
}

class Comparison {
  constructor(data) {
    this.data = data;
    this.stacks = data.resources[0].stacks;
    this.total = data.resources[0].total;
    this.bytes = true;
    this.inverted = false;
    this.width = this.total[GROWN] || this.total[GROWN + 1] ? GROWN : AFTER;
    this.flame = new GrowthFlame($('flame'), (node) => this.what(node), (node) => this.crumbs(node));
    this.flame.at = this.column();
    choice($('units'), [[true, 'Bytes'], [false, 'Blocks']], true, (bytes) => { this.bytes = bytes; this.draw(); });
    choice($('measures'), WIDTHS.filter(([at]) => this.total[at] || this.total[at + 1]), this.width, (at) => { this.width = at; this.flame.measure(this.column()); });
    choice($('directions'), [[false, 'From main'], [true, 'From the allocation']], false, (inverted) => { this.inverted = inverted; this.draw(); });
    $('search').addEventListener('input', () => this.flame.search($('search').value));
    document.addEventListener('keydown', (e) => {
      if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return;
      e.preventDefault();
      $('search').focus();
    });
    $('legend').replaceChildren(...[['up3', 'grew by most of what it is'], ['up2', 'grew'], ['up1', 'grew a little'], ['flame7', 'the same'],
      ['down1', 'shrank a little'], ['down2', 'shrank'], ['down3', 'shrank by most of what it was']].map(([colour, text]) => {
      const i = el('i');
      i.style.background = 'var(--' + colour + ')';
      return el('span', {}, i, text);
    }));
    $('bar').hidden = $('main').hidden = false;
    this.draw();
  }

  column() { return this.width + (this.bytes ? 1 : 0); }

  format(n) { return this.bytes ? size(n) : plural(n, 'block'); }

  // change describes a change in both units.
  change(u) { return signed(u[AFTER + 1] - u[BEFORE + 1], size) + ' in ' + signed(u[AFTER] - u[BEFORE], (n) => plural(n, 'block')); }

  draw() {
    this.flame.at = this.column();
    this.flame.show(this.data.tree({stacks: this.stacks}, this.inverted));
    this.cards();
    this.tables();
  }

  cards() {
    const t = this.total, unit = this.bytes ? 1 : 0;
    const card = (id, title, text, line) => el('div', {class: 'card', id: 'card-' + id}, el('h3', {}, title), el('p', {class: 'big'}, text), el('p', {class: 'muted'}, line));
    const amount = (id, title, at) => card(id, title, this.format(t[at + unit]), this.bytes ? 'in ' + plural(t[at], 'block') : size(t[at + 1]));
    $('cards').replaceChildren(amount('before', 'Before', BEFORE), amount('after', 'After', AFTER),
      card('change', 'Difference', signed(t[AFTER + unit] - t[BEFORE + unit], (n) => this.format(n)), this.change(t)), amount('grown', 'Stacks that grew', GROWN), amount('shrunk', 'Stacks that shrank', SHRUNK));
  }

  what(node) {
    node = node || this.flame.top;
    if (!node) return;
    const u = node.uses;
    $('what').textContent = (node.parent ? node.name : 'all stacks') + ': ' + this.change(u) + '; before ' + size(u[BEFORE + 1]) + ' in ' + plural(u[BEFORE], 'block') +
      ', after ' + size(u[AFTER + 1]) + ' in ' + plural(u[AFTER], 'block') + (node.module ? ' — ' + node.module : '');
  }

  crumbs(node) {
    const path = [];
    for (let n = node; n; n = n.parent) path.unshift(n);
    const shown = path.length > 7 ? [path[0], null, ...path.slice(-5)] : path;
    $('crumbs').replaceChildren(...shown.flatMap((n, i) => [...(i ? ['›'] : []),
      n ? el('button', {type: 'button', 'aria-current': n === node ? 'true' : undefined, onclick: () => this.flame.zoom(n)}, n.name) : '…']));
    this.what(null);
  }

  // tables fills the tables of stacks and of the functions that they begin with.
  tables() {
    const d = this.data, s = this.stacks, stacks = [], functions = new Map(), rest = new Float64Array(USES);
    s.node.forEach((node, i) => {
      const uses = s.uses[i], path = d.path(node);
      if (i >= s.first) {
        uses.forEach((n, j) => { rest[j] += n; });
        return;
      }
      stacks.push({uses, path, label: path.slice(0, 4).map((f, j) => d.name(f) + (j || !d.line(f) ? '' : ' at ' + d.line(f))).join(' ← ')});
      const key = path.length ? d.same(path[0]) : '';
      let sum = functions.get(key);
      if (!sum) functions.set(key, sum = {uses: new Float64Array(USES), label: path.length ? d.name(path[0]) + (d.module(path[0]) ? ' from ' + base(d.module(path[0])) : '') : UNKNOWN});
      uses.forEach((n, j) => { sum.uses[j] += n; });
    });
    const changed = (rows) => rows.filter(({uses: u}) => u[BEFORE] !== u[AFTER] || u[BEFORE + 1] !== u[AFTER + 1]);
    const other = s.left ? {uses: rest, label: '(other): ' + plural(s.left, 'smaller stack') + ', added up'} : null;
    const columns = (title) => [
      this.grows('Bytes', 1, size), this.grows('Blocks', 0, count),
      ...[['Before', BEFORE], ['After', AFTER]].map(([text, at]) => ({title: text, number: true, value: (r) => r.uses[at + 1], text: (r) => size(r.uses[at + 1])})),
      {title, value: (r) => r.label},
    ];
    const sort = this.bytes ? 0 : 1;
    new Table($('function-table'), {columns: columns('Function'), rows: changed([...functions.values()]), rest: other, sort, caption: 'Functions', none: 'Nothing changed.'});
    new Table($('stack-table'), {columns: columns('Stack, innermost frame first'), rows: changed(stacks), rest: other, sort, caption: 'Stacks', none: 'Nothing changed.',
      expand: (r) => el('ol', {class: 'frames mono'}, ...r.path.map((f) => el('li', {}, d.place(f)))),
    });
  }

  grows(title, unit, format) {
    return {title, number: true, about: 'after minus before', value: (r) => r.uses[AFTER + unit] - r.uses[BEFORE + unit], text: (r) => signed(r.uses[AFTER + unit] - r.uses[BEFORE + unit], format)};
  }
}

const comparison = new Comparison(new Data(JSON.parse($('data').textContent)));
