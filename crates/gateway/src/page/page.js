"use strict";
// Moments come as server-sent events: first all of the last ten minutes, then each as it comes. All is drawn from them.

const SPAN = 600;
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [460, 170, 62, 20, 8];
const $ = (id) => document.getElementById(id);
let moments = [], chosen = null, pointed = null, heard = 0;

// ---- words

const scaled = (value, unit) => {
  const [size, prefix] = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]].find(([size]) => value >= size) || [1, ""];
  return `${Number((value / size).toPrecision(3))} ${prefix}${unit}`;
};
const known = (value, say) => (value === null || value === undefined ? "–" : say(value));
const rate = (value) => known(value, (bits) => scaled(bits, "bit/s"));
const bytes = (value) => known(value, (count) => scaled(count, "B"));
const percent = (value) => known(value, (part) => `${Number((100 * part).toPrecision(2))} %`);
const millis = (value) => known(value, (seconds) => `${Number((1000 * seconds).toFixed(seconds < 0.01 ? 1 : 0))} ms`);
const count = (value) => known(value, String);
const span = (seconds) => {
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const at = Math.max(0, parts.findIndex(([size]) => seconds >= size));
  const [[size, unit], next] = [seconds >= 1 ? parts[at] : parts[3], parts[at + 1]];
  const rest = next && seconds >= 1 ? Math.floor((seconds % size) / next[0]) : 0;
  return `${Math.floor(seconds / size)} ${unit}` + (rest ? ` ${rest} ${next[1]}` : "");
};

const CURVES = [
  { title: "Traffic", say: rate, lines: [["sent", (p) => p.sent], ["received", (p) => p.received], ["path carries", (p) => p.carries]] },
  { title: "Loss of the path", say: percent, lines: [["lost", (p) => p.loss]] },
  { title: "Delay", say: millis, lines: [["round trip", (p) => p.round_trip], ["queueing on the path", (p) => p.queueing]] },
  { title: "Waiting in front of the link", say: bytes, lines: [["queue", (p) => p.queued]] },
  { title: "Connections of hosts", say: count, lines: [["split", (p) => p.connections]] },
];
const CLASSES = ["one", "two", "three"];

// ---- what is there

const make = (tag, attributes = {}, ...children) => {
  const svg = ["svg", "path", "line", "text"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};
const put = (node, text) => { if (node.textContent !== text) node.textContent = text; };

const states = { connected: "connected", silent: "silent", never: "never heard" };
const state = (peer) => `${states[peer.state] || peer.state}, ${span(peer.state_seconds)}`;
const FACTS = [
  ["sent", (p) => rate(p.sent)],
  ["received", (p) => rate(p.received)],
  ["path carries", (p) => rate(p.carries)],
  ["used at most", (p) => rate(p.rate)],
  ["loss", (p) => percent(p.loss)],
  ["round trip", (p) => millis(p.round_trip)],
  ["queue", (p) => bytes(p.queued)],
  ["dropped from it", (p) => count(p.dropped)],
  ["connections", (p) => count(p.connections)],
];

const showPeers = (last) => {
  const list = $("peers");
  if (!last.peers.some((peer) => peer.name === chosen)) chosen = last.peers.length ? last.peers[0].name : null;
  last.peers.forEach((peer, number) => {
    let card = list.children[number];
    if (!card) {
      const facts = make("dl", {}, ...FACTS.flatMap(([name]) => [make("dt", {}, name), make("dd")]));
      card = make("button", { class: "peer", type: "button" }, make("strong"), make("span", { class: "state" }), facts);
      card.addEventListener("click", () => { chosen = card.dataset.name; show(); });
      list.append(card);
    }
    card.dataset.name = peer.name;
    card.setAttribute("aria-pressed", String(peer.name === chosen));
    put(card.children[0], peer.address ? `${peer.name} (${peer.address})` : peer.name);
    put(card.children[1], state(peer));
    card.children[1].className = `state ${peer.state === "connected" ? "good" : "bad"}`;
    FACTS.forEach(([, say], fact) => put(card.children[2].children[2 * fact + 1], say(peer)));
  });
  while (list.children.length > last.peers.length) list.lastChild.remove();
  $("more").hidden = last.more === 0;
  put($("more"), `and ${last.more} more: longhaul gateway status`);
};

// A round number at or above, so that the axis does not move with each moment.
const above = (value) => {
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * size).find((step) => step >= value * 0.999);
};

const showCurve = (figure, curve, series, now) => {
  const most = Math.max(0, ...series.flatMap(({ peer }) => curve.lines.map(([, of]) => (peer && of(peer)) || 0)));
  const top = most > 0 ? above(most) : 1;
  const x = (at) => LEFT + ((at - now + SPAN) / SPAN) * (WIDTH - LEFT - 4);
  const y = (value) => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM);
  const svg = figure.querySelector("svg");
  svg.replaceChildren();
  for (const part of [0, 0.5, 1]) {
    const level = y(part * top);
    svg.append(make("line", { x1: LEFT, x2: WIDTH - 4, y1: level, y2: level }));
    if (most > 0 || part === 0) svg.append(make("text", { x: LEFT - 6, y: level + 4, "text-anchor": "end" }, curve.say(part * top)));
  }
  for (const [ago, text] of [[SPAN, "10 min ago"], [SPAN / 2, "5 min"], [0, "now"]]) {
    const anchor = ago === 0 ? "end" : ago === SPAN ? "start" : "middle";
    svg.append(make("text", { x: x(now - ago), y: HEIGHT - 4, "text-anchor": anchor }, text));
  }
  const near = pointed === null ? series.at(-1) : series.reduce((a, b) => (Math.abs(b.at - pointed) < Math.abs(a.at - pointed) ? b : a));
  curve.lines.forEach(([, of], line) => {
    let [path, before] = ["", null];
    for (const { at, peer } of series) {
      const value = peer ? of(peer) : null;
      if (value === null || value === undefined) { before = null; continue; }
      // Where the gateway did not answer there is a gap.
      path += `${before !== null && at - before < 30 ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
      before = at;
    }
    if (path) svg.append(make("path", { d: path, class: CLASSES[line] }));
    put(figure.querySelectorAll("i")[line], `${curve.lines[line][0]} ${near.peer ? curve.say(of(near.peer)) : "–"}`);
  });
  if (pointed !== null) svg.append(make("line", { class: "at", x1: x(near.at), x2: x(near.at), y1: TOP, y2: HEIGHT - BOTTOM }));
  const when = pointed === null ? "" : `, ${new Date(near.at * 1000).toLocaleTimeString()}`;
  put(figure.querySelector("b"), curve.title + when);
};

const makeCurves = () => CURVES.map((curve) => {
  const words = curve.lines.map(([name], line) => make("span", {}, make("span", { class: `key ${CLASSES[line]}` }), make("i", {}, name)));
  const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${curve.title}, the last ten minutes` });
  const point = (event) => {
    const box = svg.getBoundingClientRect();
    const part = (((event.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - LEFT - 4);
    pointed = part < 0 || !moments.length ? null : moments.at(-1).at - SPAN + part * SPAN;
    show();
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
  svg.addEventListener("pointerleave", () => { pointed = null; show(); });
  return make("figure", {}, make("figcaption", {}, make("b", {}, curve.title), ...words), svg);
});

const showCurves = (last) => {
  const place = $("curves");
  if (!place.children.length) place.append(...makeCurves());
  const series = moments.map(({ at, peers }) => ({ at, peer: peers.find((peer) => peer.name === chosen) }));
  put($("chosen"), chosen === null ? "No peers" : `${chosen}, the last ten minutes`);
  CURVES.forEach((curve, number) => showCurve(place.children[number], curve, series, last.at));
};

const show = () => {
  const last = moments.at(-1);
  if (!last) return;
  const there = last.peers.filter((peer) => peer.state === "connected").length;
  document.title = `${last.device}: ${there} of ${last.peers.length} connected`;
  put($("device"), last.device);
  const late = (Date.now() - heard) / 1000;
  const more = last.more ? ` (and ${last.more} more)` : "";
  put($("summary"), late > 15
    ? `No news from the gateway for ${span(late)}.`
    : `${there} of ${last.peers.length} peers connected${more}. Up for ${span(last.uptime)}, ${bytes(last.memory)} in packets and connections.`);
  showPeers(last);
  showCurves(last);
};

// ---- what comes

const take = (news) => {
  // A clock that was set back begins anew.
  if (moments.length && news.at(-1).at < moments.at(-1).at) moments = [];
  const newest = moments.length ? moments.at(-1).at : 0;
  const all = [...moments, ...news.filter(({ at }) => at > newest)];
  moments = all.filter(({ at }) => at > all.at(-1).at - SPAN);
  heard = Date.now();
  show();
};
const listen = () => {
  const source = new EventSource("/moments");
  source.addEventListener("moments", (event) => take(JSON.parse(event.data)));
  // A stream that breaks off the browser opens again; one that was refused it does not.
  source.addEventListener("error", () => { if (source.readyState === EventSource.CLOSED) setTimeout(listen, 5000); });
};
listen();
setInterval(show, 5000);
