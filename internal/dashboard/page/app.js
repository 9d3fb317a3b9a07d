// The page asks its launcher for /state.json, draws it, and asks again.
'use strict';

const period = 500; // milliseconds between an answer and the next question
const $ = id => document.getElementById(id);
let last = null;

// mostShown bounds the list of ranks; those that wait longest come first beyond it.
const mostShown = 256;

function waitLine(w) {
  const peer = w.peer >= 0 ? ' for rank ' + w.peer : '';
  return html('span', '', w.op + peer + ', ' + secondsText(w.seconds), html('small', '', w.where + (w.detail ? ' · ' + w.detail : '')));
}

function rankLine(r) {
  const what = html('div', 'what');
  const failed = r.state === 'ended' && !r.ended.startsWith('exited with 0 after');
  what.append(html('span', 'pill ' + (failed ? 'failed' : r.state), r.state), ' ');
  if (r.state === 'ended') what.append(r.ended);
  if (r.state === 'silent') what.append('no answer for ' + secondsText(r.silent));
  r.waits.forEach(w => what.append(waitLine(w)));
  const much = html('div', 'much', bytesText(r.bytes), html('br'), countText(r.ops) + ' ops');
  const e = html('div', 'rank', html('b', '', String(r.rank)), what, much);
  e.title = `rank ${r.rank}, process ${r.pid}` + (r.node ? ' on ' + r.node : '') + `, ${bytesText(r.registered)} registered`;
  e.dataset.rank = r.rank;
  e.dataset.state = r.state;
  return e;
}

function drawRanks(s) {
  const states = {};
  for (const r of s.ranks) states[r.state] = (states[r.state] || 0) + 1;
  $('counts').replaceChildren(...Object.entries(states).map(([state, n]) => html('span', 'pill ' + state, n + ' ' + state)));
  let shown = s.ranks;
  if (shown.length > mostShown) {
    const longest = r => Math.max(-1, ...r.waits.map(w => w.seconds), r.state === 'silent' ? r.silent : -1);
    shown = [...shown].sort((a, b) => longest(b) - longest(a)).slice(0, mostShown);
  }
  const list = $('ranks'), at = list.scrollTop;
  list.replaceChildren(...shown.map(rankLine));
  list.scrollTop = at;
}

// drawTraffic keeps the choice of transports as it was made.
function drawTraffic(s) {
  const names = Object.keys(s.flows).sort(), via = $('via'), have = [...via.options].map(o => o.value);
  const want = ['all', ...names];
  if (have.join() !== want.join()) {
    const chosen = via.value;
    via.replaceChildren(...want.map(n => new Option(n, n)));
    via.value = want.includes(chosen) ? chosen : 'all';
  }
  const column = $('unit').value === 'ops' ? 2 : 3, sums = new Map();
  for (const name of names) {
    if (via.value !== 'all' && via.value !== name) continue;
    for (const f of s.flows[name]) {
      const key = f[0] + ' ' + f[1], cell = sums.get(key) || [f[0], f[1], 0];
      cell[2] += f[column];
      sums.set(key, cell);
    }
  }
  const n = Math.ceil(s.ranks.length / s.group);
  drawMatrix($('matrix'), n, s.group, [...sums.values()], column === 2 ? countText : bytesText);
  $('matrix-note').textContent = 'rows move to and from the memory of columns' + (s.group > 1 ? `; ${s.group} ranks in each` : '') +
    '; what Views load and store is not counted';
}

function drawAll(s) {
  document.title = s.program + ' · pgasrun';
  $('program').textContent = s.program;
  drawRanks(s);
  drawTraffic(s);
  drawBars($('mix'), s.paths);
  const h = s.history;
  drawLines($('memory'), h.seconds, [
    { cls: 'a', name: 'registered', values: h.registered }, { cls: 'b', name: 'heap', values: h.heap }], bytesText);
  drawLines($('rate'), h.seconds, [{ cls: 'a', name: 'moved', values: h.rate }], v => bytesText(v) + '/s');
  drawLines($('moves'), h.seconds, [{ cls: 'b', name: 'moves', values: h.moves }], v => countText(v) + '/s');
  const sum = name => s.extra['firehose.' + name] ? s.extra['firehose.' + name].sum : 0;
  $('hoses').textContent = sum('hits') + sum('misses') === 0 ? 'no memory here is registered in buckets'
    : `${countText(sum('hits'))} hits, ${countText(sum('misses'))} misses, ${countText(sum('moves'))} moves, ${countText(sum('refused'))} refused`;
}

// over says that nobody answers any more.
function over() {
  $('status').className = 'over';
  $('status').textContent = 'the job has ended' + (last ? ' after ' + secondsText(last.seconds) + '; this is what was seen last' : '');
  setTimeout(ask, 2 * period);
}

async function ask() {
  let s;
  try {
    const answer = await fetch('state.json', { cache: 'no-store' });
    s = await answer.json();
  } catch {
    return over();
  }
  last = s;
  $('status').className = '';
  $('status').textContent = `${s.ranks.length} rank${s.ranks.length === 1 ? '' : 's'}, ${secondsText(s.seconds)}`;
  drawAll(s);
  setTimeout(ask, period);
}

for (const id of ['via', 'unit']) $(id).addEventListener('change', () => last && drawTraffic(last));
ask();
