"use strict";

// Plays the steps of a session: one place in them, `at`, from which everything on the page follows. Only the steps
// around it are drawn. Every text of the facts goes into the page as text.
(async function () {
  const NOBODY = -1;
  const ALL_OWNERS = -2;
  const ROW = 30; // pixels between two steps
  const HEAD = 44; // above the first
  const NARROW = 640;
  const LANE = 84; // least pixels between two lanes
  const MOST_BARS = 12;
  const SPEEDS = [1, 2, 5, 20, 100];
  const SVG = "http://www.w3.org/2000/svg";

  // -- making elements -------------------------------------------------------------------------------------

  function make(tag, attributes = {}, ...children) {
    const made = tag.startsWith("svg:") ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
    made.append(...children.map((child) => (typeof child === "number" ? String(child) : child)));
    return made;
  }

  async function unpack(id) {
    const packed = atob(document.getElementById(id).textContent);
    const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  const player = document.getElementById("player");
  let facts;
  try {
    facts = await unpack("facts");
  } catch (error) {
    player.textContent = `This browser cannot read the session in this page: ${error.message}`;
    throw error;
  }

  // -- what the facts say ----------------------------------------------------------------------------------

  const { steps, parties, copies } = facts;
  const total = steps.round.length;
  const owners = parties.length - 2;
  const last = facts.rounds + 1; // the delivery and the end
  const starts = startsOfRounds();
  const byRound = facts.rounds > 1;
  const hasUnnamed = steps.sender.some((each, i) => !steps.event[i] && (each === NOBODY || steps.receiver[i] === NOBODY));

  function startsOfRounds() {
    const found = new Array(last + 2).fill(total);
    for (let i = total - 1; i >= 0; i -= 1) found[Math.min(steps.round[i], last)] = i;
    for (let number = last; number >= 0; number -= 1) found[number] = Math.min(found[number], found[number + 1]);
    return found;
  }

  const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

  function bytes(size) {
    if (size === null) return "size not in this copy";
    if (size < 1000) return `${size} B`;
    if (size < 1e6) return `${(size / 1000).toFixed(size < 1e4 ? 1 : 0)} kB`;
    return size < 1e9 ? `${(size / 1e6).toFixed(1)} MB` : `${(size / 1e9).toFixed(1)} GB`;
  }

  function nameOf(party, step) {
    if (party === NOBODY) return "a party that this copy does not name";
    if (party !== ALL_OWNERS) return parties[party];
    const some = facts.steps.some[step];
    return some === undefined ? `all ${plural(owners, "owner")}` : plural(some.length, "owner");
  }

  const kindOf = (step) => facts.kinds[steps.kind[step]];
  const noteOf = (step) => facts.notes[steps.note[step]];

  // What happened as it should: a party came back, or ended well.
  const isQuiet = (step) => kindOf(step) === "returned" || (kindOf(step) === "finish" && /^exit code 0\b/.test(noteOf(step)));

  function marksOf(step) {
    const found = [];
    if (steps.again[step]) found.push("sent again");
    if (steps.late[step]) found.push("late: its round was over");
    if (steps.unarrived[step]) found.push("did not arrive");
    return found;
  }

  function roundName(number) {
    if (number <= 0) return "before the first round";
    return number >= last ? "delivery and end" : `round ${number.toLocaleString("en")} of ${facts.planned.toLocaleString("en")}`;
  }

  // What a step is, in a sentence: for people who see it, and for those who hear it.
  function sentence(step) {
    const meaning = facts.meanings[steps.kind[step]];
    const note = noteOf(step) ? ` (${noteOf(step)})` : "";
    if (steps.event[step]) return `${nameOf(steps.sender[step], step)}: ${meaning}${note}.`;
    const many = steps.count[step] > 1 ? `${steps.count[step].toLocaleString("en")} messages, ` : "";
    const marks = marksOf(step).map((mark) => `, ${mark}`).join("");
    const ends = `${nameOf(steps.sender[step], step)} to ${nameOf(steps.receiver[step], step)}`;
    return `${ends}: ${kindOf(step)} (${many}${bytes(steps.size[step])}${marks}): ${meaning}${note}.`;
  }

  // How many of a step's messages have this party at that end.
  function share(step, end, party) {
    const who = steps[end][step];
    if (who === party) return steps.count[step];
    if (who !== ALL_OWNERS || party < 2) return 0;
    const some = steps.some[step];
    if (some === undefined) return Math.round(steps.count[step] / owners);
    return some.includes(party) ? Math.round(steps.count[step] / some.length) : 0;
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

  const odometerOf = (what) => facts.odometers.find((each) => each.neighbours === what);
  const ownersOdometer = odometerOf("add-remove-one");
  const targetOdometer = odometerOf("substitute-one");
  const charging = Object.values(copies).map((copy) => copy.tracks.charged_rounds).find((track) => track?.value.length > 1);

  const chosenBy = (at) => {
    if (!facts.chosen) return 0;
    let count = 0;
    while (count < facts.chosen.at.length && facts.chosen.at[count] < at) count += 1;
    return count;
  };

  // -- the page's parts ------------------------------------------------------------------------------------

  const button = (id, text, title, act) => {
    const made = make("button", { type: "button", id, title }, text);
    made.addEventListener("click", act);
    return made;
  };
  const stopAnd = (act) => () => {
    pause();
    act();
  };
  const slider = make("input", { type: "range", id: "slider", min: 0, max: byRound ? last : total, step: 1 });
  const sliderName = make("label", { for: "slider" }, byRound ? "Round" : "Message");
  const playing = button("play", "Play", "Space", () => (timer === null ? play() : pause()));
  const speed = make("select", { id: "speed" }, ...SPEEDS.map((each) => make("option", { value: each }, `${each}×`)));
  const where = make("p", { id: "where" });
  const now = make("p", { id: "now" });
  const said = make("p", { id: "said", class: "unseen", role: "status" });
  const link = make("a", { id: "moment", href: "#" }, "Link to this moment");
  const stage = make("svg:svg", { id: "stage", role: "img", "aria-labelledby": "now" });
  const chosenOwner = make("select", { id: "owner" }, ...parties.slice(2).map((name, i) => make("option", { value: i + 2 }, name)));
  const own = parties.findIndex((name, i) => i >= 2 && copies[name] !== undefined);
  if (own > 0) chosenOwner.value = String(own);
  const cards = make("div", { class: "cards" });
  const pictures = make("div", { class: "pictures" });

  function build() {
    const controls = make(
      "div",
      { class: "controls", role: "group", "aria-label": "Play the session" },
      button("first", "Start", "Home", stopAnd(() => seek(0))),
      button("round-back", "« Round", "Shift and left arrow, or page up", stopAnd(() => byRounds(-1))),
      button("back", "‹ Message", "Left arrow", stopAnd(() => seek(at - 1))),
      playing,
      button("forward", "Message ›", "Right arrow", stopAnd(() => seek(at + 1))),
      button("round-forward", "Round »", "Shift and right arrow, or page down", stopAnd(() => byRounds(1))),
      button("last", "End", "End", stopAnd(() => seek(total))),
      make("label", {}, "Speed ", speed),
    );
    const help = make(
      "p",
      { class: "help" },
      "Keys: space plays and pauses, arrows step by message, with shift by round, Home and End. ",
      link,
    );
    player.append(
      controls,
      make("div", { class: "slide" }, sliderName, slider),
      where,
      now,
      said,
      make("div", { class: "table-of-two" }, make("div", { class: "stage" }, stage), make("div", { class: "side" }, cards)),
      help,
      make("section", {}, make("h2", {}, "How the purchase went, up to this moment"), pictures),
    );
    slider.addEventListener("input", stopAnd(() => seek(byRound ? afterStartOf(Number(slider.value)) : Number(slider.value))));
    chosenOwner.addEventListener("change", draw);
    document.addEventListener("keydown", pressed);
    window.addEventListener("hashchange", () => goTo(window.location.hash));
    window.addEventListener("resize", draw);
  }

  // -- moving ----------------------------------------------------------------------------------------------

  let at = 0; // steps that are played
  let timer = null;
  let lastSaid = 0;

  // At the start of a round its first message is played; the start of all is before anything.
  const afterStartOf = (number) => (number <= 0 ? 0 : Math.min(starts[Math.min(number, last)] + 1, total));
  const roundAt = () => (at === 0 ? 0 : Math.min(steps.round[at - 1], last));

  function seek(place) {
    at = Math.max(0, Math.min(total, place));
    draw();
  }

  function byRounds(by) {
    let number = roundAt();
    const start = afterStartOf(number);
    if (by < 0 && at > start) seek(start);
    else {
      do number += by;
      while (number > 0 && number < last && starts[number] === starts[number + 1]);
      seek(number > last ? total : afterStartOf(number));
    }
  }

  function play() {
    if (at >= total) at = 0;
    let before = performance.now();
    let due = 0;
    const frame = (time) => {
      due += ((time - before) / 900) * Number(speed.value);
      before = time;
      const whole = Math.floor(due);
      due -= whole;
      if (whole > 0) seek(at + whole);
      if (at >= total) pause();
      else timer = window.requestAnimationFrame(frame);
    };
    timer = window.requestAnimationFrame(frame);
    playing.textContent = "Pause";
    draw();
  }

  function pause() {
    if (timer === null) return;
    window.cancelAnimationFrame(timer);
    timer = null;
    playing.textContent = "Play";
    draw();
  }

  function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
    const onButton = event.target.matches("button, a, summary");
    const acts = {
      " ": () => (onButton ? null : () => (timer === null ? play() : pause())),
      ArrowLeft: () => stopAnd(() => (event.shiftKey ? byRounds(-1) : seek(at - 1))),
      ArrowRight: () => stopAnd(() => (event.shiftKey ? byRounds(1) : seek(at + 1))),
      PageUp: () => stopAnd(() => byRounds(-1)),
      PageDown: () => stopAnd(() => byRounds(1)),
      Home: () => stopAnd(() => seek(0)),
      End: () => stopAnd(() => seek(total)),
    };
    const act = acts[event.key]?.();
    if (!act) return;
    event.preventDefault();
    act();
  }

  // A link to a moment: `#round=12`, and `&message=3` for the third of it.
  function goTo(hash) {
    const wanted = new URLSearchParams(hash.replace("#", ""));
    const number = Number(wanted.get("round"));
    if (!wanted.has("round") || !Number.isInteger(number) || number < 0) return;
    pause();
    const message = Number(wanted.get("message") ?? (number === 0 ? 0 : 1));
    const first = starts[Math.min(number, last)];
    seek(Number.isInteger(message) ? first + message : first + 1);
  }

  // -- drawing ---------------------------------------------------------------------------------------------

  function draw() {
    const number = roundAt();
    const within = at - starts[number];
    if (byRound) slider.value = number;
    else slider.value = at;
    const place = at === 0 ? "Before the first message" : `Step ${at.toLocaleString("en")} of ${total.toLocaleString("en")}`;
    where.textContent = at === 0 ? `${place} of ${plural(total, "step")}.` : `${place}, ${roundName(number)}, ${steps.seconds[at - 1].toFixed(2)} s.`;
    slider.setAttribute("aria-valuetext", where.textContent);
    now.textContent = at === 0 ? "Nothing was said yet." : sentence(at - 1);
    link.setAttribute("href", `#round=${number}&message=${within}`);
    say();
    drawStage();
    drawCards();
    drawPictures();
  }

  function say() {
    const time = performance.now();
    if (timer !== null && time - lastSaid < 4000) return; // nobody can listen as fast as it plays
    lastSaid = time;
    said.textContent = `${where.textContent} ${now.textContent}`;
  }

  // The lanes that there is room for: owners each, or all of them as one.
  function lanesOf(width) {
    const extra = hasUnnamed ? 1 : 0;
    const together = width < NARROW || (owners + 2 + extra) * LANE > width;
    const own = together ? [{ name: plural(owners, "owner"), of: null }] : parties.slice(2).map((name, i) => ({ name, of: i + 2 }));
    const lanes = [...own, { name: parties[0], of: 0 }, { name: parties[1], of: 1 }];
    if (hasUnnamed) lanes.push({ name: "not named", of: NOBODY });
    const gap = width / lanes.length;
    lanes.forEach((lane, i) => {
      lane.x = Math.round(gap * (i + 0.5));
      lane.gap = gap;
    });
    return lanes;
  }

  function laneFor(lanes, party) {
    const found = lanes.find((lane) => lane.of === party);
    if (found) return [found];
    const own = lanes.filter((lane) => lane.of === null || lane.of >= 2);
    return own[0].of === null ? own : own.filter((lane) => party === ALL_OWNERS || lane.of === party);
  }

  const short = (text, pixels) => {
    const most = Math.max(4, Math.floor(pixels / 7.5));
    return text.length > most ? `${text.slice(0, most - 1)}…` : text;
  };

  function drawStage() {
    const width = Math.max(260, stage.parentNode.clientWidth);
    const rows = Math.max(6, Math.floor((Math.min(560, window.innerHeight * 0.62) - HEAD) / ROW));
    const before = Math.floor(rows * 0.6);
    const first = Math.max(0, Math.min(at - before, total - rows));
    const until = Math.min(total, first + rows);
    const height = HEAD + rows * ROW;
    const lanes = lanesOf(width);
    stage.setAttribute("viewBox", `0 0 ${width} ${height}`);
    stage.setAttribute("width", width);
    stage.setAttribute("height", height);
    stage.replaceChildren(head());
    for (const lane of lanes) {
      const title = make("svg:title", {}, lane.name);
      stage.append(
        make("svg:line", { class: "lane", x1: lane.x, x2: lane.x, y1: HEAD - 16, y2: height }),
        make("svg:text", { class: "name", x: lane.x, y: HEAD - 24, "text-anchor": "middle" }, short(lane.name, lane.gap - 6), title),
      );
    }
    for (let i = first; i < until; i += 1) stage.append(drawStep(i, lanes, HEAD + (i - first + 0.5) * ROW, width));
  }

  function head() {
    const mark = { id: "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto-start-reverse" };
    return make("svg:defs", {}, make("svg:marker", mark, make("svg:path", { d: "M0,0 L8,4 L0,8 z" })));
  }

  function drawStep(step, lanes, y, width) {
    const state = step === at - 1 ? "now" : step < at ? "past" : "future";
    const group = make("svg:g", { class: `step ${state}${steps.event[step] ? (isQuiet(step) ? " event quiet" : " event") : ""}`, "data-step": step });
    const fresh = step === 0 || steps.round[step] !== steps.round[step - 1];
    if (fresh) {
      const number = steps.round[step];
      const text = number <= 0 ? "enrolment" : number >= last ? "end" : `round ${number}`;
      group.append(
        make("svg:line", { class: "cut", x1: 0, x2: width, y1: y - ROW / 2, y2: y - ROW / 2 }),
        make("svg:text", { class: "cut-name", x: 2, y: y - ROW / 2 + 11 }, text),
      );
    }
    const from = laneFor(lanes, steps.sender[step]);
    if (steps.event[step]) {
      for (const lane of from) group.append(make("svg:circle", { cx: lane.x, cy: y, r: 5 }));
      const x = from[0]?.x ?? width / 2;
      const right = x > width / 2;
      const who = lanes[0].of === null && steps.sender[step] >= 2 ? `${nameOf(steps.sender[step], step)}: ` : "";
      const text = short(`${who}${kindOf(step)}${noteOf(step) ? ` (${noteOf(step)})` : ""}`, (right ? x : width - x) - 16);
      group.append(make("svg:text", { x: right ? x - 10 : x + 10, y: y + 4, "text-anchor": right ? "end" : "start" }, text));
      return group;
    }
    const to = laneFor(lanes, steps.receiver[step]);
    let middle = 0;
    for (const one of from) {
      for (const other of to) {
        const way = Math.sign(other.x - one.x) || 1;
        const gone = steps.unarrived[step];
        const end = gone ? one.x + (other.x - one.x) * 0.7 : other.x - way * 3;
        group.append(make("svg:line", { class: gone ? "arrow gone" : "arrow", x1: one.x + way * 3, x2: end, y1: y + 5, y2: y + 5, "marker-end": "url(#head)" }));
        if (gone) group.append(make("svg:text", { class: "cross", x: end + way * 8, y: y + 9, "text-anchor": "middle" }, "✕"));
        middle = (one.x + other.x) / 2;
      }
    }
    const together = lanes[0].of === null ? [steps.sender[step], steps.receiver[step]].find((party) => party >= 2) : undefined;
    const count = steps.count[step] > 1 ? `${steps.count[step]} × ` : "";
    const marks = steps.again[step] ? " again" : steps.late[step] ? " late" : "";
    const size = steps.size[step] === null ? "" : ` ${bytes(steps.size[step])}`;
    const who = together === undefined ? "" : `${parties[together]}: `;
    const room = 2 * Math.min(middle, width - middle) - 4;
    group.append(make("svg:text", { x: middle, y: y, "text-anchor": "middle" }, short(`${who}${count}${kindOf(step)}${size}${marks}`, room)));
    return group;
  }

  // -- what each party has ---------------------------------------------------------------------------------

  function drawCards() {
    const owner = Number(chosenOwner.value);
    const focused = document.activeElement === chosenOwner;
    const shown = [card(0), card(1)];
    if (owners) shown.push(card(owner));
    cards.replaceChildren(...shown);
    if (focused) chosenOwner.focus();
  }

  function card(party) {
    const name = parties[party];
    const copy = copies[name];
    const title = party >= 2 ? make("h3", {}, make("label", { for: "owner" }, "Owner "), chosenOwner) : make("h3", {}, name);
    const list = make("dl");
    const line = (term, value) => list.append(make("dt", {}, term), make("dd", {}, value));
    line("phase", copy ? valueOf(copy.tracks.phase, at) ?? (copy.redacted ? "not in this copy" : "not begun") : "not known");
    if (copy?.redacted && !hasUnnamed) {
      line("messages", "not in this copy");
    } else {
      for (const [term, end] of [["received", "receiver"], ["sent", "sender"]]) line(term, traffic(party, end));
    }
    for (const [term, value] of having(party, copy)) line(term, value);
    const source = !copy
      ? "No transcript of it is here: this is what others' transcripts tell."
      : copy.redacted
        ? "From a redacted copy of its transcript."
        : "From its own transcript.";
    return make("div", { class: "card", "data-party": party }, title, list, make("p", { class: "source" }, source));
  }

  function traffic(party, end) {
    let count = 0;
    let size = 0;
    let events = 0;
    for (let i = 0; i < at; i += 1) {
      if (steps.event[i] || (end === "receiver" && steps.unarrived[i])) continue;
      const own = share(i, end, party);
      if (!own) continue;
      count += own;
      events += 1;
      size = size === null || steps.size[i] === null ? null : size + (steps.size[i] * own) / steps.count[i];
    }
    if (!events) return "nothing";
    return `${plural(count, "message")}${size === null ? "" : `, ${bytes(Math.round(size))}`}`;
  }

  function* having(party, copy) {
    const tracks = copy?.tracks ?? {};
    const value = (name) => valueOf(tracks[name], at) ?? 0;
    const epsilon = (odometer, releases) => (odometer ? `ε = ${epsilonAt(odometer, releases).toPrecision(3)}` : "no ε is promised");
    if (tracks.charged_target) yield ["spent of the validation set", value("charged_target") ? epsilon(targetOdometer, 0) : "nothing yet"];
    if (tracks.charged_rounds) {
      const releases = value("charged_rounds");
      const own = party >= 2 ? "spent of its own data, by all rounds" : "spent of owners’ data";
      yield [own, releases ? epsilon(ownersOdometer, releases) : "nothing yet"];
    }
    if (tracks.held) yield ["points handed to it", `${value("held").toLocaleString("en")}, ${value("raw").toLocaleString("en")} of them in the clear`];
    if (tracks.handed) yield ["points handed over", value("handed").toLocaleString("en")];
    if (tracks.delivered) yield ["points got", value("delivered").toLocaleString("en")];
    if (!facts.chosen) {
      if (party >= 2) yield ["points sold", "not known: it is not told"];
      return;
    }
    const known = chosenBy(at);
    if (party === facts.chosen.teller) yield ["points chosen", known.toLocaleString("en")];
    if (party >= 2) {
      let sold = 0;
      for (let i = 0; i < known; i += 1) sold += facts.chosen.owner[i] === party ? 1 : 0;
      yield ["points sold", `${sold.toLocaleString("en")} (by the ${parties[facts.chosen.teller]}’s transcript)`];
    }
  }

  // -- pictures --------------------------------------------------------------------------------------------

  function drawPictures() {
    const width = Math.max(240, Math.min(420, pictures.clientWidth || 360));
    pictures.replaceChildren(closeness(width), shares(width), odometer(width));
  }

  function figure(id, title, drawing, caption) {
    return make("figure", { id }, make("h3", {}, title), ...(drawing ? [drawing] : []), make("figcaption", {}, caption));
  }

  // A line over 0 … `most`, of which the part up to `upto` is strong.
  function curve(width, xs, ys, upto, most, label) {
    const height = 150;
    const left = 46;
    const top = Math.max(...ys, 1e-12);
    const x = (value) => left + ((width - left - 8) * value) / Math.max(most, 1);
    const y = (value) => height - 22 - ((height - 34) * value) / top;
    const path = (count) => xs.slice(0, count).map((value, i) => `${i ? "L" : "M"}${x(value).toFixed(1)},${y(ys[i]).toFixed(1)}`).join("");
    let count = 0;
    while (count < xs.length && xs[count] <= upto) count += 1;
    const drawing = make(
      "svg:svg",
      { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label, class: "curve" },
      make("svg:line", { class: "axis", x1: left, x2: width - 8, y1: y(0), y2: y(0) }),
      make("svg:line", { class: "axis", x1: left, x2: left, y1: 8, y2: y(0) }),
      make("svg:text", { x: left - 4, y: 16, "text-anchor": "end" }, top.toPrecision(2)),
      make("svg:text", { x: left - 4, y: y(0) + 4, "text-anchor": "end" }, "0"),
      make("svg:text", { x: width - 8, y: height - 6, "text-anchor": "end" }, most.toLocaleString("en")),
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

  function closeness(width) {
    const title = "Distance to the validation set (MMD²)";
    const found = facts.closeness;
    if (!found) return figure("closeness", title, null, "Not in these transcripts: only the consumer’s has it.");
    const known = chosenBy(at);
    const number = known ? facts.chosen.round[known - 1] : 0;
    let points = 0;
    while (points < found.round.length && found.round[points] <= number) points += 1;
    const places = thinned(found.mmd2.length);
    const drawing = curve(width, places.map((i) => i + 1), places.map((i) => found.mmd2[i]), points, found.mmd2.length, title);
    const reached = points ? `${found.mmd2[points - 1].toPrecision(3)} after ${plural(points, "point")}.` : "No point was chosen yet.";
    return figure("closeness", title, drawing, `${reached} The consumer knows it from the delivery on; nobody else does.`);
  }

  function shares(width) {
    const title = "Points by owner";
    if (!facts.chosen) return figure("shares", title, null, "Not in these transcripts: the curator’s has it, and the consumer’s after the delivery.");
    const known = chosenBy(at);
    const sold = new Map();
    const all = new Map();
    facts.chosen.owner.forEach((owner, i) => {
      all.set(owner, (all.get(owner) ?? 0) + 1);
      if (i < known) sold.set(owner, (sold.get(owner) ?? 0) + 1);
    });
    const places = parties.map((_, i) => i).slice(2);
    const order = places.length > MOST_BARS ? places.sort((a, b) => (all.get(b) ?? 0) - (all.get(a) ?? 0)).slice(0, MOST_BARS) : places;
    const top = Math.max(1, ...all.values());
    const drawing = make("svg:svg", { viewBox: `0 0 ${width} ${order.length * 22 + 4}`, width, height: order.length * 22 + 4, role: "img", "aria-label": title });
    const room = Math.min(130, width * 0.36);
    order.forEach((owner, i) => {
      const count = sold.get(owner) ?? 0;
      const long = ((width - room - 56) * count) / top;
      drawing.append(
        make("svg:text", { x: 0, y: i * 22 + 15 }, short(parties[owner], room), make("svg:title", {}, parties[owner])),
        make("svg:rect", { class: "bar", x: room, y: i * 22 + 3, width: Math.max(0, long), height: 15 }),
        make("svg:text", { x: room + long + 6, y: i * 22 + 15 }, count),
      );
    });
    const more = places.length > order.length ? ` The ${order.length} of ${owners} that sold most are shown.` : "";
    const teller = parties[facts.chosen.teller];
    return figure("shares", title, drawing, `${known.toLocaleString("en")} of ${plural(facts.chosen.at.length, "point")} chosen, by the ${teller}’s transcript.${more}`);
  }

  function odometer(width) {
    const title = "ε spent of owners’ data";
    if (!ownersOdometer) return figure("odometer", title, null, "This session promises owners no ε towards each other.");
    const releases = charging ? valueOf(charging, at) ?? 0 : Math.min(roundAt(), facts.planned);
    const { rounds, epsilon } = ownersOdometer;
    const places = thinned(rounds.length);
    if (!epsilon.some((each) => each > 0)) return figure("odometer", title, null, "ε = 0: nothing that owners are sent follows from other owners’ data.");
    const drawing = curve(width, places.map((i) => rounds[i]), places.map((i) => epsilon[i]), releases, facts.planned, title);
    const whole = epsilon[epsilon.length - 1];
    const spent = releases ? epsilonAt(ownersOdometer, releases) : 0;
    return figure("odometer", title, drawing, `ε = ${spent.toPrecision(3)} of ${whole.toPrecision(3)}, after ${plural(releases, "release")}.`);
  }

  build();
  if (window.location.hash) goTo(window.location.hash);
  draw();
  document.documentElement.setAttribute("data-drawn", String(total));
})();
