// The flame graph: boxes below their callers, with widths in proportion to their
// amounts.

const ROW = 20;      // pixels
const LEAST = 1.5;   // width of the narrowest box in pixels
const MOST = 8000;   // boxes at most

// push adds children to a list. They may be more than the arguments a call can take.
function push(list, kids) { for (const kid of kids.values()) list.push(kid); }

class Flame {
  // box is the element for the boxes. pointed is called with the node to describe,
  // or null; zoomed after zooming to another node.
  constructor(box, pointed, zoomed) {
    this.box = box;
    this.pointed = pointed;
    this.zoomed = zoomed;
    this.at = 1;
    this.query = '';
    this.nodes = new WeakMap(); // by element
    this.elements = new Map();  // by node
    const node = (e) => this.nodes.get(e.target.closest('.box'));
    box.addEventListener('click', (e) => { const n = node(e); if (n) this.zoom(n); });
    box.addEventListener('pointerover', (e) => this.pointed(node(e) || null));
    box.addEventListener('pointerleave', () => this.pointed(null));
    box.addEventListener('focusin', (e) => { const n = node(e); if (n) { this.current = n; this.pointed(n); } });
    box.addEventListener('keydown', (e) => this.key(e));
    this.width = box.clientWidth;
    new ResizeObserver(() => {
      if (box.clientWidth !== this.width) this.render();
    }).observe(box);
  }

  // show draws another tree.
  show(root) {
    this.root = this.top = this.current = root;
    this.colour();
    this.render();
    this.zoomed(root);
  }

  // measure draws another measure.
  measure(at) {
    this.at = at;
    if (this.top && !this.top.uses[at]) this.top = this.current = this.root;
    this.render();
    this.zoomed(this.top);
  }

  zoom(node) {
    const focused = this.box.contains(document.activeElement);
    this.top = this.current = node;
    this.render();
    this.box.scrollTop = Math.max(0, (node.depth - 2) * ROW);
    if (focused) this.focus(node);
    this.zoomed(node);
  }

  search(text) {
    this.query = text.trim().toLowerCase();
    this.render();
  }

  // matched returns the amount of the matching boxes within the zoomed one. A match
  // within a match counts once.
  matched() {
    let sum = 0;
    const todo = [this.top];
    while (todo.length) {
      const node = todo.pop();
      if (node.matches(this.query)) sum += node.uses[this.at];
      else push(todo, node.kids);
    }
    return sum;
  }

  // lead returns the boxes with a match below them.
  lead() {
    const leads = new Set();
    if (!this.query) return leads;
    const todo = [this.root];
    while (todo.length) {
      const node = todo.pop();
      if (node.matches(this.query) && node.uses[this.at] > 0) for (let n = node.parent; n && !leads.has(n); n = n.parent) leads.add(n);
      push(todo, node.kids);
    }
    return leads;
  }

  // colour assigns a colour to each of the largest modules.
  colour() {
    const own = new Map(), todo = [...this.root.kids.values()];
    while (todo.length) {
      const node = todo.pop();
      let kids = 0;
      for (const k of node.kids.values()) { kids += k.uses[4]; todo.push(k); }
      const n = own.get(node.module) || {boxes: 0, self: 0};
      n.boxes += node.uses[4];
      n.self += node.uses[4] - kids;
      own.set(node.module, n);
    }
    own.delete('');
    this.modules = [...own].sort((a, b) => b[1].boxes - a[1].boxes || (a[0] < b[0] ? -1 : 1)).map((m) => m[0]);
    const number = new Map(this.modules.slice(0, 7).map((m, i) => [m, i]));
    // Without modules, functions are coloured by name.
    const byName = this.modules.length === 0;
    push(todo, this.root.kids);
    while (todo.length) {
      const node = todo.pop();
      node.colour = number.get(node.module) ?? 7;
      if (byName) node.colour = [...node.name].reduce((h, c) => (h * 31 + c.codePointAt(0)) % 7919, 7) % 7;
      push(todo, node.kids);
    }
  }

  render() {
    if (!this.root) return;
    this.width = this.box.clientWidth || 1000;
    const whole = this.top.uses[this.at] || 1, leads = this.lead(), made = document.createDocumentFragment();
    this.elements.clear();
    let rows = 0, boxes = 0;
    const draw = (node, left, width, above) => {
      const e = document.createElement('div'), pixels = width * this.width;
      e.className = 'box c' + node.colour + (node.parent ? '' : ' root') + (node.other ? ' other' : '') + (node.inlined ? ' inlined' : '') + (above ? ' above' : '') +
        (pixels < 8 ? ' thin' : '') + (this.query && node.matches(this.query) ? ' hit' : leads.has(node) ? ' leads' : '');
      e.style.left = 100 * left + '%';
      e.style.width = 100 * width + '%';
      e.style.top = node.depth * ROW + 'px';
      e.setAttribute('role', 'treeitem');
      e.setAttribute('aria-level', node.depth + 1);
      e.tabIndex = node === this.current ? 0 : -1;
      if (pixels > 22) e.textContent = node.short;
      if (pixels <= 22 || node.inlined || node.short !== node.name) e.setAttribute('aria-label', node.name + (node.inlined ? ', inlined' : ''));
      this.nodes.set(e, node);
      this.elements.set(node, e);
      rows = Math.max(rows, node.depth + 1);
      boxes++;
      made.append(e);
    };
    for (let node = this.top.parent; node; node = node.parent) draw(node, 0, 1, true);
    // Breadth first, so that the limit leaves out the narrowest and deepest boxes.
    let todo = [[this.top, 0, 1]];
    while (todo.length && boxes < MOST) {
      const next = [];
      for (const [node, from, width] of todo) {
        draw(node, from, width, false);
        let left = from;
        for (const kid of node.sorted(this.at)) {
          const w = Math.min(kid.uses[this.at] / whole, from + width - left);
          if (w * this.width >= LEAST) next.push([kid, left, w]);
          left += w;
        }
      }
      todo = next;
    }
    const space = document.createElement('div');
    space.style.height = rows * ROW + 'px';
    made.append(space);
    this.box.classList.toggle('searching', this.query !== '');
    this.box.replaceChildren(made);
  }

  focus(node) {
    const e = this.elements.get(node);
    if (!e) return;
    const before = this.elements.get(this.current);
    if (before) before.tabIndex = -1;
    this.current = node;
    e.tabIndex = 0;
    e.focus({preventScroll: true});
    e.scrollIntoView({block: 'nearest'});
  }

  key(e) {
    if (e.ctrlKey || e.altKey || e.metaKey) return;
    const node = this.current, drawn = (n) => n && this.elements.has(n);
    const side = (step) => {
      if (!node.parent) return;
      const all = node.parent.sorted(this.at).filter(drawn);
      const to = all[all.indexOf(node) + step];
      if (to) this.focus(to);
    };
    const keys = {
      ArrowDown: () => { const kid = node.sorted(this.at).find(drawn); if (kid) this.focus(kid); },
      ArrowUp: () => { if (node.parent) this.focus(node.parent); },
      ArrowLeft: () => side(-1),
      ArrowRight: () => side(1),
      Home: () => this.focus(this.root),
      Enter: () => this.zoom(node),
      ' ': () => this.zoom(node),
      Escape: () => { if (this.top.parent) this.zoom(this.top.parent); },
      Backspace: () => { if (this.top.parent) this.zoom(this.top.parent); },
    };
    if (!keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  }
}
