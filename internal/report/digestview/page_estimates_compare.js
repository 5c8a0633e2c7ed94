// The comparison of two traces that were recorded in windows. Uses of a box are blocks and bytes per
// second, after and before.

const AFTER = 4, BEFORE = 6;

// ChangedFlame colours the boxes that certainly changed.
class ChangedFlame extends Flame {
  colour() {
    const unit = this.at % 2, todo = [this.root];
    while (todo.length) {
      const node = todo.pop(), change = node.of.change[unit], before = node.of.before[unit], after = node.of.after[unit];
      const part = Math.abs(after - before) / Math.max(before, after, 1e-9);
      node.colour = change ? (change > 0 ? 'up' : 'down') + (part < 0.25 ? 1 : part < 0.75 ? 2 : 3) : 7;
      push(todo, node.kids);
    }
  }

  measure(at) {
    this.at = at;
    this.colour();
    super.measure(at);
  }
}

class EstimatesComparison {
  constructor(data) {
    this.data = data;
    this.bytes = true;
    this.width = AFTER;
    const root = this.tree();
    this.flame = new ChangedFlame($('flame'), (node) => this.what(node), (node) => this.crumbs(node));
    this.flame.at = this.column();
    choice($('units'), [[true, 'Bytes'], [false, 'Blocks']], true, (bytes) => { this.bytes = bytes; this.draw(); });
    choice($('measures'), [[AFTER, 'After'], [BEFORE, 'Before']], AFTER, (at) => { this.width = at; this.draw(); });
    $('search').addEventListener('input', () => this.flame.search($('search').value));
    document.addEventListener('keydown', (e) => {
      if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return;
      e.preventDefault();
      $('search').focus();
    });
    $('legend').replaceChildren(...[['up3', 'more, by most of it'], ['up2', 'more'], ['up1', 'a little more'], ['flame7', 'the interval includes 0'],
      ['down1', 'a little less'], ['down2', 'less'], ['down3', 'less, by most of it']].map(([colour, text]) => {
      const i = el('i');
      i.style.background = 'var(--' + colour + ')';
      return el('span', {}, i, text);
    }));
    for (const [id, n, what] of [['cut', data.cut, 'Smaller boxes'], ['left', data.left, 'Call sites with smaller differences']]) {
      $(id).hidden = n === 0;
      $(id).textContent = what + ' are left out: ' + count(n);
    }
    $('bar').hidden = $('main').hidden = false;
    this.flame.show(root);
    this.draw();
  }

  column() { return this.width + (this.bytes ? 1 : 0); }

  text(n) { return this.data.texts[n]; }

  tree() {
    const nodes = [];
    for (const b of this.data.boxes) {
      const make = () => [this.text(b.name) || UNKNOWN, this.text(b.module || 0), b.inlined, this.text(b.short || 0)];
      const node = nodes.length ? nodes[b.parent || 0].child(nodes.length, make) : new Node(null, null, 'all', '');
      [node.uses[AFTER], node.uses[AFTER + 1]] = b.after;
      [node.uses[BEFORE], node.uses[BEFORE + 1]] = b.before;
      node.of = b;
      nodes.push(node);
    }
    return nodes[0];
  }

  draw() {
    this.flame.measure(this.column());
    const unit = this.bytes ? 1 : 0, name = this.bytes ? 'Bytes' : 'Blocks', part = (title, k, value) => ({title, number: true, value, text: (r) => r.text[3 * unit + k]});
    new Table($('who-table'), {
      columns: [
        part(name + ' per second', 2, (r) => r.after[unit] - r.before[unit]), part('Before', 0, (r) => r.before[unit]), part('After', 1, (r) => r.after[unit]),
        {title: 'Change', number: true, about: 'whether the interval excludes 0', value: (r) => r.change[unit], text: (r) => ['less', '', 'more'][1 + r.change[unit]]},
        {title: 'Call site', value: (r) => this.text(r.name) || UNKNOWN},
      ],
      rows: this.data.sites, caption: 'Call sites', none: 'No window saw an allocation.',
    });
  }

  what(node) {
    node = node || this.flame.top;
    if (!node) return;
    const t = node.of.text, unit = (k, name) => t[k + 2] + ' ' + name + ' per second (before ' + t[k] + ', after ' + t[k + 1] + ')';
    $('what').textContent = (node.parent ? node.name : 'all stacks') + ': ' + unit(3, 'bytes') + ', ' + unit(0, 'blocks') + (node.module ? ' — ' + node.module : '');
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

const comparison = new EstimatesComparison(JSON.parse($('data').textContent));
