"use strict";

// What pages are drawn of, without any facts: elements whose text is text, numbers in words, and a curve.
const parts = (() => {
  const SVG = "http://www.w3.org/2000/svg";

  function make(tag, attributes = {}, ...children) {
    const drawn = tag.startsWith("svg:");
    const made = drawn ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
    made.append(...children.map((child) => (typeof child === "number" ? String(child) : child)));
    return made;
  }

  const write = (text, x, y, anchor, more = {}) => make("svg:text", { x, y, "text-anchor": anchor, ...more }, text);

  async function unpack(id) {
    const packed = atob(document.getElementById(id).textContent);
    const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return read(await new Response(stream).text());
  }

  // Facts, from JSON. Their objects have no prototype: a party may be named `constructor`.
  function read(text) {
    const bare = (_, value) =>
      value === null || typeof value !== "object" || Array.isArray(value)
        ? value
        : Object.assign(Object.create(null), value);
    return JSON.parse(text, bare);
  }

  const grouped = (number) => number.toLocaleString("en");
  const plural = (count, noun) => `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;

  function bytes(size) {
    if (size === null) return "size not in this copy";
    if (size < 1000) return `${size} B`;
    if (size < 1e6) return `${(size / 1000).toFixed(size < 1e4 ? 1 : 0)} kB`;
    return size < 1e9 ? `${(size / 1e6).toFixed(1)} MB` : `${(size / 1e9).toFixed(1)} GB`;
  }

  // The value of a track once `at` steps are played; undefined before its first.
  function valueOf(track, at) {
    if (track === undefined) return undefined;
    let low = 0;
    let high = track.at.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (track.at[middle] < at) low = middle + 1;
      else high = middle;
    }
    return low ? track.value[low - 1] : undefined;
  }

  function epsilonAt(odometer, releases) {
    const place = odometer.rounds.findIndex((number) => number >= releases);
    return odometer.epsilon[place < 0 ? odometer.epsilon.length - 1 : place];
  }

  const odometerOf = ({ odometers }, neighbours) => odometers.find((each) => each.neighbours === neighbours);

  const short = (text, pixels) => {
    const most = Math.max(4, Math.floor(pixels / 7.5));
    return text.length > most ? `${text.slice(0, most - 1)}…` : text;
  };

  // A line over 0 … `most`, of which the part up to `upto` is strong; `low` and `high` are heights that have to fit.
  function curve(width, xs, ys, upto, most, label, { low = 0, high = 0 } = {}) {
    const height = 150;
    const left = 46;
    const top = Math.max(...ys, high, low + 1e-12);
    const x = (value) => left + ((width - left - 8) * value) / Math.max(most, 1);
    const y = (value) => height - 22 - ((height - 34) * (value - low)) / (top - low);
    const point = (i) => `${x(xs[i]).toFixed(1)},${y(ys[i]).toFixed(1)}`;
    const path = (count) => xs.slice(0, count).map((_, i) => `${i ? "L" : "M"}${point(i)}`).join("");
    let count = 0;
    while (count < xs.length && xs[count] <= upto) count += 1;
    const drawing = make(
      "svg:svg",
      { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label, class: "curve" },
      make("svg:line", { class: "axis", x1: left, x2: width - 8, y1: y(low), y2: y(low) }),
      make("svg:line", { class: "axis", x1: left, x2: left, y1: 8, y2: y(low) }),
      make("svg:text", { x: left - 4, y: 16, "text-anchor": "end" }, top.toPrecision(2)),
      make("svg:text", { x: left - 4, y: y(low) + 4, "text-anchor": "end" }, low === 0 ? "0" : low.toPrecision(2)),
      make("svg:text", { x: width - 8, y: height - 6, "text-anchor": "end" }, grouped(most)),
      make("svg:path", { class: "all", d: path(xs.length) }),
      make("svg:path", { class: "part", d: path(count) }),
    );
    if (count) drawing.append(make("svg:circle", { cx: x(xs[count - 1]), cy: y(ys[count - 1]), r: 4 }));
    return drawing;
  }

  function thinned(count) {
    const most = 400;
    if (count <= most) return Array.from({ length: count }, (_, i) => i);
    return Array.from({ length: most }, (_, i) => Math.round((i * (count - 1)) / (most - 1)));
  }

  return { bytes, curve, epsilonAt, grouped, make, odometerOf, plural, read, short, thinned, unpack, valueOf, write };
})();
