// Pictures: each function fills an element with an SVG made of plain numbers.
'use strict';

const svgNS = 'http://www.w3.org/2000/svg';

// svg returns an element with attributes and children; a string is text.
function svg(name, attributes, ...children) {
  const e = document.createElementNS(svgNS, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

// html is the same for HTML; its attributes are a class only.
function html(name, cls, ...children) {
  const e = document.createElement(name);
  if (cls) e.className = cls;
  e.append(...children);
  return e;
}

function scaled(n, base, units) {
  let i = 0;
  while (Math.abs(n) >= base && i < units.length - 1) { n /= base; i++; }
  const digits = i === 0 && Number.isInteger(n) ? 0 : Math.abs(n) < 10 ? 2 : Math.abs(n) < 100 ? 1 : 0;
  return n.toFixed(digits) + units[i];
}
const bytesText = n => scaled(n, 1024, [' B', ' KiB', ' MiB', ' GiB', ' TiB', ' PiB']);
const countText = n => scaled(n, 1000, ['', ' k', ' M', ' G', ' T']);
const secondsText = s => s < 120 ? s.toFixed(1) + ' s' : s < 7200 ? (s / 60).toFixed(1) + ' min' : (s / 3600).toFixed(1) + ' h';

// drawMatrix draws who moves how much to whom; rows are origins. cells are [row, column, value].
function drawMatrix(into, n, group, cells, text) {
  const left = 34, top = 20, side = 360 / n, all = 360;
  const most = Math.max(1, ...cells.map(c => c[2]));
  const name = i => group === 1 ? String(i) : i * group + '…';
  const g = svg('svg', { viewBox: `0 0 ${left + all + 2} ${top + all + 2}`, role: 'img', 'aria-label': 'traffic matrix' });
  const every = Math.ceil(n / 16);
  for (let i = 0; i < n; i += every) {
    g.append(svg('text', { x: left - 4, y: top + (i + .5) * side + 4, 'text-anchor': 'end' }, name(i)));
    g.append(svg('text', { x: left + (i + .5) * side, y: top - 5, 'text-anchor': 'middle' }, name(i)));
  }
  for (const [row, column, value] of cells) {
    if (value <= 0) continue;
    const strength = .12 + .88 * value / most;
    const x = left + column * side, y = top + row * side;
    g.append(svg('rect', {
      class: 'cell', x, y, width: side, height: side, 'fill-opacity': strength.toFixed(3),
      'data-from': row, 'data-to': column, 'data-value': value,
    }, svg('title', {}, `rank ${name(row)} → rank ${name(column)}: ${text(value)}`)));
    if (n <= 8) {
      g.append(svg('text', { class: strength > .6 ? 'over' : 'in', x: x + side / 2, y: y + side / 2 + 4, 'text-anchor': 'middle' }, text(value)));
    }
  }
  g.append(svg('rect', { class: 'grid', x: left, y: top, width: all, height: all }));
  into.replaceChildren(g);
}

// drawLines draws series over the same times. lines are {cls, name, values}.
function drawLines(into, seconds, lines, text) {
  const left = 62, top = 8, wide = 330, high = 120, n = seconds.length;
  const most = Math.max(1e-9, ...lines.flatMap(l => l.values)), end = n ? seconds[n - 1] : 0, begin = n ? seconds[0] : 0;
  const g = svg('svg', { viewBox: `0 0 ${left + wide + 8} ${top + high + 36}`, role: 'img', 'aria-label': lines.map(l => l.name).join(', ') });
  const x = s => left + (end > begin ? (s - begin) / (end - begin) : 1) * wide, y = v => top + high - v / most * high;
  const none = lines.every(l => l.values.every(v => v === 0));
  for (const part of [0, .5, 1]) {
    g.append(svg('line', { class: 'axis', x1: left, x2: left + wide, y1: y(part * most), y2: y(part * most) }));
    if (!none || part === 0) g.append(svg('text', { x: left - 5, y: y(part * most) + 4, 'text-anchor': 'end' }, text(none ? 0 : part * most)));
  }
  g.append(svg('text', { x: left, y: top + high + 14 }, secondsText(begin)));
  g.append(svg('text', { x: left + wide, y: top + high + 14, 'text-anchor': 'end' }, secondsText(end)));
  let at = left;
  for (const l of lines) {
    g.append(svg('polyline', { class: l.cls, points: l.values.map((v, i) => x(seconds[i]).toFixed(1) + ',' + y(v).toFixed(1)).join(' ') }));
    const now = l.name + ' ' + text(n ? l.values[n - 1] : 0);
    g.append(svg('rect', { class: 'f' + l.cls, x: at, y: top + high + 22, width: 9, height: 9 }), svg('text', { x: at + 13, y: top + high + 31 }, now));
    at += 26 + 6 * now.length;
  }
  into.replaceChildren(g);
}

// drawBars draws each path's share of operations and bytes.
function drawBars(into, paths) {
  const left = 104, wide = 150, row = 34;
  paths = paths.filter(p => p.ops > 0);
  const ops = Math.max(1, ...paths.map(p => p.ops)), bytes = Math.max(1, ...paths.map(p => p.bytes));
  const g = svg('svg', { viewBox: `0 0 404 ${Math.max(1, paths.length) * row + 22}`, role: 'img', 'aria-label': 'protocol mix' });
  paths.forEach((p, i) => {
    const y = i * row + 4;
    g.append(svg('text', { class: 'in', x: left - 6, y: y + 16, 'text-anchor': 'end' }, p.via + ' ' + p.path));
    g.append(svg('rect', { class: 'fa', x: left, y, width: Math.max(1, p.bytes / bytes * wide), height: 11 }));
    g.append(svg('rect', { class: 'fb', x: left, y: y + 13, width: Math.max(1, p.ops / ops * wide), height: 11 }));
    g.append(svg('text', { x: left + wide + 6, y: y + 10 }, bytesText(p.bytes)));
    g.append(svg('text', { x: left + wide + 6, y: y + 23 }, countText(p.ops) + ' ops' + (p.waits ? ', ' + countText(p.waits) + ' waited' : '')));
  });
  const y = Math.max(1, paths.length) * row + 8;
  g.append(svg('rect', { class: 'fa', x: left, y, width: 9, height: 9 }), svg('text', { x: left + 13, y: y + 9 }, 'bytes'));
  g.append(svg('rect', { class: 'fb', x: left + 60, y, width: 9, height: 9 }), svg('text', { x: left + 73, y: y + 9 }, 'operations'));
  into.replaceChildren(g);
}
