// Sortable tables, of which only a part is shown at first.

const SHOWN = 25; // rows shown at first

// kind returns the class of a column's cells.
function kind(column) { return column.number ? 'number' : column.brief ? 'brief' : 'name'; }

class Table {
  // A column has a title, value (the sort key), text if that is not the value, and
  // number, or brief if its texts are short; without value it cannot be sorted by. rows are the arguments of value
  // and text; rest is a row that is always last. expand returns the element that an
  // open row shows.
  constructor(host, {columns, rows, rest, expand, sort, caption, none}) {
    Object.assign(this, {host, columns, rows, rest, expand, caption, none});
    this.shown = SHOWN;
    this.open = new Set();
    this.by = columns[sort || 0];
    this.down = !!this.by.number;
    this.draw();
  }

  sortBy(column) {
    this.down = this.by === column ? !this.down : !!column.number;
    this.by = column;
    this.draw();
  }

  sorted() {
    const of = this.by.value, sign = this.down ? -1 : 1;
    return this.rows.map((row, i) => [row, i]).sort(([a, i], [b, j]) => {
      const x = of(a), y = of(b);
      return x === y ? i - j : x < y ? -sign : sign;
    }).map(([row]) => row);
  }

  draw() {
    const focused = this.host.contains(document.activeElement) ? document.activeElement.dataset.column : undefined;
    const head = el('tr');
    for (const [i, c] of this.columns.entries()) {
      const button = el('button', {type: 'button', 'data-column': i, title: c.about, onclick: () => this.sortBy(c)}, c.title + (c === this.by ? (this.down ? ' ▾' : ' ▴') : ''));
      head.append(el('th', {class: kind(c), scope: 'col', 'aria-sort': c === this.by ? (this.down ? 'descending' : 'ascending') : undefined}, button));
    }
    const body = el('tbody');
    const rows = this.sorted();
    for (const row of rows.slice(0, this.shown)) this.row(body, row);
    if (this.rest) this.row(body, this.rest, true);
    const table = el('table', {}, el('caption', {hidden: ''}, this.caption || ''), el('thead', {}, head), body);
    const parts = [el('div', {class: 'wide'}, table)];
    if (!rows.length && !this.rest) parts.splice(0, 1, el('p', {class: 'muted'}, this.none || 'Nothing.'));
    if (rows.length > this.shown) {
      parts.push(el('button', {type: 'button', class: 'show-more', onclick: () => { this.shown += 4 * SHOWN; this.draw(); }}, 'Show more (' + count(rows.length - this.shown) + ')'));
    }
    this.host.replaceChildren(...parts);
    if (focused !== undefined) this.host.querySelector('button[data-column="' + focused + '"]').focus();
  }

  row(body, row, last) {
    const tr = el('tr');
    for (const c of this.columns) {
      const text = c.text ? c.text(row) : String(c.value(row));
      const td = el('td', {class: kind(c)});
      if (this.expand && kind(c) === 'name' && !last) {
        const button = el('button', {type: 'button', class: 'toggle', 'aria-expanded': this.open.has(row)}, text);
        button.addEventListener('click', () => this.toggle(row, tr, button));
        td.append(button);
      } else td.append(text);
      tr.append(td);
    }
    body.append(tr);
    if (this.open.has(row)) this.detail(row, tr);
  }

  toggle(row, tr, button) {
    if (this.open.delete(row)) {
      tr.classList.remove('more');
      tr.nextSibling.remove();
    } else {
      this.open.add(row);
      this.detail(row, tr);
    }
    button.setAttribute('aria-expanded', this.open.has(row));
  }

  detail(row, tr) {
    tr.classList.add('more');
    tr.after(el('tr', {class: 'detail'}, el('td', {colspan: this.columns.length}, this.expand(row))));
  }
}

// choice fills an element with buttons, one of which is pressed. options are pairs
// of a value and a text.
function choice(host, options, value, change) {
  const buttons = options.map(([v, text, about]) => el('button', {
    type: 'button', 'data-value': v, 'aria-pressed': v === value, title: about,
    onclick: (e) => {
      for (const b of buttons) b.setAttribute('aria-pressed', b === e.currentTarget);
      change(v);
    },
  }, text));
  host.replaceChildren(...(options.length > 1 ? buttons : []));
}

// bars draws a histogram. A row has a name, a value, a part of it, and texts.
function bars(host, rows, keys, caption) {
  const most = Math.max(1, ...rows.map((r) => r.value));
  const table = el('table', {class: 'bars'}, el('caption', {hidden: ''}, caption));
  for (const r of rows) {
    const whole = el('i'), part = el('i', {class: 'live'});
    whole.style.width = 100 * r.value / most + '%';
    part.style.width = 100 * r.part / most + '%';
    table.append(el('tr', {}, el('td', {class: 'number'}, r.name), el('td', {class: 'graph'}, el('div', {class: 'track', title: r.title}, whole, part)), el('td', {class: 'number'}, r.text)));
  }
  const key = el('p', {class: 'key'});
  for (const [colour, text] of keys) {
    const i = el('i');
    i.style.background = 'var(--' + colour + ')';
    key.append(el('span', {}, i, text));
  }
  host.replaceChildren(key, el('div', {class: 'wide'}, table));
}
