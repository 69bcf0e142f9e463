// Plays the steps of a session: one place in them, `at`, from which everything on the page follows. Only the steps
// around it are drawn. Every text of the facts goes into the page as text.
(async function () {
  const { bytes, curve, epsilonAt, grouped, make, plural, short, thinned, unpack, valueOf, write } = parts;
  const NOBODY = -1;
  const ALL_OWNERS = -2;
  const ROW = 30; // pixels between two steps
  const HEAD = 44; // above the first
  const NARROW = 640;
  const LANE = 84; // least pixels between two lanes
  const MOST_BARS = 12;
  const SPEEDS = [1, 2, 5, 20, 100];

  const player = document.getElementById("player");
  const live = document.getElementById("live") !== null; // newer facts come while the page is open
  let facts;
  let steps, parties, copies, total, owners, last, starts, byRound, hasUnnamed, charging;
  try {
    take(await unpack("facts"));
  } catch (error) {
    player.textContent = `This browser cannot read the session in this page: ${error.message}`;
    throw error;
  }

  // -- what the facts say ----------------------------------------------------------------------------------

  function take(newer) {
    facts = newer;
    ({ steps, parties, copies } = facts);
    total = steps.round.length;
    owners = parties.length - 2;
    last = facts.rounds + 1; // the delivery and the end
    starts = startsOfRounds();
    byRound = facts.rounds > 1;
    hasUnnamed = steps.sender.some(
      (sender, i) => !steps.event[i] && (sender === NOBODY || steps.receiver[i] === NOBODY),
    );
    charging = Object.values(copies)
      .map((copy) => copy.tracks.charged_rounds)
      .find((track) => track?.value.length > 1);
  }

  function startsOfRounds() {
    const found = new Array(last + 2).fill(total);
    for (let i = total - 1; i >= 0; i -= 1) found[Math.min(steps.round[i], last)] = i;
    for (let number = last; number >= 0; number -= 1) found[number] = Math.min(found[number], found[number + 1]);
    return found;
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
  const endedWell = (step) => kindOf(step) === "finish" && /^exit code 0\b/.test(noteOf(step));
  const isQuiet = (step) => kindOf(step) === "returned" || endedWell(step);

  function marksOf(step) {
    const found = [];
    if (steps.again[step]) found.push("sent again");
    if (steps.late[step]) found.push("late: its round was over");
    if (steps.unarrived[step]) found.push("did not arrive");
    return found;
  }

  function roundName(number) {
    if (number <= 0) return "before the first round";
    return number >= last ? "delivery and end" : `round ${grouped(number)} of ${grouped(facts.planned)}`;
  }

  // What a step is, in a sentence: for people who see it, and for those who hear it.
  function sentence(step) {
    const meaning = facts.meanings[steps.kind[step]];
    const note = noteOf(step) ? ` (${noteOf(step)})` : "";
    if (steps.event[step]) return `${nameOf(steps.sender[step], step)}: ${meaning}${note}.`;
    const many = steps.count[step] > 1 ? `${grouped(steps.count[step])} messages, ` : "";
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

  const odometerOf = (what) => facts.odometers.find((each) => each.neighbours === what);
  const ownersOdometer = odometerOf("add-remove-one");
  const targetOdometer = odometerOf("substitute-one");

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
  const slider = make("input", { type: "range", id: "slider", min: 0, step: 1 });
  const sliderName = make("label", { for: "slider" });
  const more = make("p", { id: "more", class: "help" });
  const playing = button("play", "Play", "Space", () => (timer === null ? play() : pause()));
  const choices = (id, options) =>
    make("select", { id }, ...options.map(([value, text]) => make("option", { value }, text)));
  const speed = choices("speed", SPEEDS.map((each) => [each, `${each}×`]));
  const where = make("p", { id: "where" });
  const now = make("p", { id: "now" });
  const said = make("p", { id: "said", class: "unseen", role: "status" });
  const link = make("a", { id: "moment", href: "#" }, "Link to this moment");
  const stage = make("svg:svg", { id: "stage", role: "img", "aria-labelledby": "now" });
  const chosenOwner = choices("owner", parties.slice(2).map((name, i) => [i + 2, name]));
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
      ...(live ? [more] : []),
      said,
      make("div", { class: "table-of-two" }, make("div", { class: "stage" }, stage), cards),
      help,
      make("section", {}, make("h2", {}, "How the purchase went, up to this moment"), pictures),
    );
    slider.addEventListener("input", stopAnd(slid));
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

  // Newer facts of the same session: who stood at the end follows it, and who did not stays at the same step.
  function renew(newer) {
    const follows = at >= total && timer === null;
    const before = { teller: steps.teller, at };
    take(newer);
    at = follows ? total : sameStep(before);
    measure();
    draw();
  }

  // Steps come in between, but those that one transcript tells keep their order.
  function sameStep(before) {
    if (before.at === 0) return 0;
    const teller = before.teller[before.at - 1];
    let left = before.teller.slice(0, before.at).filter((each) => each === teller).length;
    const place = steps.teller.findIndex((each) => each === teller && (left -= 1) === 0);
    return place < 0 ? Math.min(before.at, total) : place + 1;
  }

  function measure() {
    slider.max = byRound ? last : total;
    sliderName.textContent = byRound ? "Round" : "Message";
    document.documentElement.setAttribute("data-drawn", String(total));
  }

  function slid() {
    const value = Number(slider.value);
    seek(byRound ? afterStartOf(value) : value);
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
    if (at === 0) {
      where.textContent = `Before the first of ${plural(total, "step")}.`;
      now.textContent = "Nothing was said yet.";
    } else {
      const time = `${steps.seconds[at - 1].toFixed(2)} s`;
      where.textContent = `Step ${grouped(at)} of ${grouped(total)}, ${roundName(number)}, ${time}.`;
      now.textContent = sentence(at - 1);
    }
    const later = total - at;
    more.textContent = later ? `There is more: ${plural(later, "later step")}. End follows.` : "New steps follow.";
    slider.setAttribute("aria-valuetext", where.textContent);
    link.setAttribute("href", `#round=${number}&message=${within}`);
    say();
    drawStage();
    drawCards();
    drawPictures();
  }

  function say() {
    const time = performance.now();
    const hurries = timer !== null || (live && at === total);
    if (hurries && time - lastSaid < 4000) return; // nobody can listen as fast as it plays
    lastSaid = time;
    said.textContent = `${where.textContent} ${now.textContent}`;
  }

  // The lanes that there is room for: owners each, or all of them as one.
  function lanesOf(width) {
    const extra = hasUnnamed ? 1 : 0;
    const together = width < NARROW || (owners + 2 + extra) * LANE > width;
    const each = parties.slice(2).map((name, i) => ({ name, of: i + 2 }));
    const lanes = together ? [{ name: plural(owners, "owner"), of: null }] : each;
    lanes.push({ name: parties[0], of: 0 }, { name: parties[1], of: 1 });
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
      const name = write(short(lane.name, lane.gap - 6), lane.x, HEAD - 24, "middle", { class: "name" });
      name.append(make("svg:title", {}, lane.name));
      stage.append(
        make("svg:line", { class: "lane", x1: lane.x, x2: lane.x, y1: HEAD - 16, y2: height }),
        name,
      );
    }
    for (let i = first; i < until; i += 1) stage.append(drawStep(i, lanes, HEAD + (i - first + 0.5) * ROW, width));
  }

  function head() {
    const size = { viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9 };
    const mark = { id: "head", markerUnits: "userSpaceOnUse", orient: "auto", ...size };
    return make("svg:defs", {}, make("svg:marker", mark, make("svg:path", { d: "M0,0 L8,4 L0,8 z" })));
  }

  function drawStep(step, lanes, y, width) {
    const state = step === at - 1 ? "now" : step < at ? "past" : "future";
    const happened = !steps.event[step] ? "" : isQuiet(step) ? " event quiet" : " event";
    const group = make("svg:g", { class: `step ${state}${happened}`, "data-step": step });
    if (step === 0 || steps.round[step] !== steps.round[step - 1]) {
      const number = steps.round[step];
      const text = number <= 0 ? "enrolment" : number >= last ? "end" : `round ${number}`;
      const top = y - ROW / 2;
      group.append(make("svg:line", { class: "cut", x1: 0, x2: width, y1: top, y2: top }));
      group.append(write(text, width - 3, top + 11, "end", { class: "cut-name" }));
    }
    if (happened) drawEvent(group, step, lanes, y, width);
    else drawMessage(group, step, lanes, y, width);
    return group;
  }

  function drawEvent(group, step, lanes, y, width) {
    const places = laneFor(lanes, steps.sender[step]);
    for (const lane of places) group.append(make("svg:circle", { cx: lane.x, cy: y, r: 5 }));
    const x = places[0]?.x ?? width / 2;
    const right = x > width / 2;
    const who = lanes[0].of === null && steps.sender[step] >= 2 ? `${nameOf(steps.sender[step], step)}: ` : "";
    const note = noteOf(step) ? ` (${noteOf(step)})` : "";
    const text = short(`${who}${kindOf(step)}${note}`, (right ? x : width - x) - 16);
    group.append(write(text, right ? x - 10 : x + 10, y + 4, right ? "end" : "start"));
  }

  function drawMessage(group, step, lanes, y, width) {
    const gone = steps.unarrived[step];
    let middle = width / 2;
    for (const from of laneFor(lanes, steps.sender[step])) {
      for (const to of laneFor(lanes, steps.receiver[step])) {
        const way = Math.sign(to.x - from.x) || 1;
        const end = gone ? from.x + (to.x - from.x) * 0.7 : to.x - way * 3;
        const ends = { x1: from.x + way * 3, x2: end, y1: y + 5, y2: y + 5 };
        group.append(make("svg:line", { class: gone ? "arrow gone" : "arrow", ...ends, "marker-end": "url(#head)" }));
        if (gone) group.append(write("✕", end + way * 8, y + 9, "middle", { class: "cross" }));
        middle = (from.x + to.x) / 2;
      }
    }
    const owner = [steps.sender[step], steps.receiver[step]].find((party) => party >= 2);
    const who = lanes[0].of === null && owner !== undefined ? `${parties[owner]}: ` : "";
    const count = steps.count[step] > 1 ? `${steps.count[step]} × ` : "";
    const size = steps.size[step] === null ? "" : ` ${bytes(steps.size[step])}`;
    const marks = steps.again[step] ? " again" : steps.late[step] ? " late" : "";
    const room = 2 * Math.min(middle, width - middle) - 4;
    group.append(write(short(`${who}${count}${kindOf(step)}${size}${marks}`, room), middle, y, "middle"));
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
    const owner = party >= 2;
    const title = owner ? [make("label", { for: "owner" }, "Owner "), chosenOwner] : [name];
    const list = make("dl");
    const line = (term, value) => list.append(make("dt", {}, term), make("dd", {}, value));
    line("phase", phaseOf(copy));
    if (copy?.redacted && !hasUnnamed) {
      line("messages", "not in this copy");
    } else {
      line("received", traffic(party, "receiver"));
      line("sent", traffic(party, "sender"));
    }
    for (const [term, value] of having(party, copy)) line(term, value);
    const about = make("p", { class: "source" }, sourceOf(copy));
    return make("div", { class: "card", "data-party": party }, make("h3", {}, ...title), list, about);
  }

  function phaseOf(copy) {
    if (!copy) return "not known";
    return valueOf(copy.tracks.phase, at) ?? (copy.redacted ? "not in this copy" : "not begun");
  }

  function sourceOf(copy) {
    if (!copy) return "No transcript of it is here: this is what others’ transcripts tell.";
    return copy.redacted ? "From a redacted copy of its transcript." : "From its own transcript.";
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
    const epsilon = (odometer, releases) => {
      if (!releases) return "nothing yet";
      return odometer ? `ε = ${epsilonAt(odometer, releases).toPrecision(3)}` : "no ε is promised";
    };
    if (tracks.charged_target) {
      yield ["spent of the validation set", epsilon(targetOdometer, value("charged_target"))];
    }
    if (tracks.charged_rounds) {
      const whose = party >= 2 ? "spent of its own data, by all rounds" : "spent of owners’ data";
      yield [whose, epsilon(ownersOdometer, value("charged_rounds"))];
    }
    if (tracks.held) {
      yield ["points handed to it", `${grouped(value("held"))}, ${grouped(value("raw"))} of them in the clear`];
    }
    if (tracks.handed) yield ["points handed over", grouped(value("handed"))];
    if (tracks.delivered) yield ["points got", grouped(value("delivered"))];
    if (!facts.chosen) {
      if (party >= 2) yield ["points sold", "not known: it is not told"];
      return;
    }
    const known = chosenBy(at);
    if (party === facts.chosen.teller) yield ["points chosen", grouped(known)];
    if (party >= 2) {
      let sold = 0;
      for (let i = 0; i < known; i += 1) sold += facts.chosen.owner[i] === party ? 1 : 0;
      yield ["points sold", `${grouped(sold)} (by the ${parties[facts.chosen.teller]}’s transcript)`];
    }
  }

  // -- pictures --------------------------------------------------------------------------------------------

  function drawPictures() {
    const width = Math.max(240, Math.min(420, pictures.clientWidth || 360));
    pictures.replaceChildren(closeness(width), shares(width), odometer(width));
  }

  function figure(id, title, drawing, caption) {
    const parts = drawing ? [drawing] : [];
    return make("figure", { id }, make("h3", {}, title), ...parts, make("figcaption", {}, caption));
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
    const [xs, ys] = [places.map((i) => i + 1), places.map((i) => found.mmd2[i])];
    const drawing = curve(width, xs, ys, points, found.mmd2.length, title);
    const reached = points
      ? `${found.mmd2[points - 1].toPrecision(3)} after ${plural(points, "point")}.`
      : "No point was chosen yet.";
    const who = "The consumer knows it from the delivery on; nobody else does.";
    return figure("closeness", title, drawing, `${reached} ${who}`);
  }

  function shares(width) {
    const title = "Points by owner";
    if (!facts.chosen) {
      const who = "Not in these transcripts: the curator’s has it, and the consumer’s after the delivery.";
      return figure("shares", title, null, who);
    }
    const known = chosenBy(at);
    const sold = new Map();
    const all = new Map();
    facts.chosen.owner.forEach((owner, i) => {
      all.set(owner, (all.get(owner) ?? 0) + 1);
      if (i < known) sold.set(owner, (sold.get(owner) ?? 0) + 1);
    });
    const places = parties.map((_, i) => i).slice(2);
    const sales = (owner) => all.get(owner) ?? 0;
    const order = places.length > MOST_BARS ? places.sort((a, b) => sales(b) - sales(a)).slice(0, MOST_BARS) : places;
    const top = Math.max(1, ...all.values());
    const height = order.length * 22 + 4;
    const size = { viewBox: `0 0 ${width} ${height}`, width, height };
    const drawing = make("svg:svg", { ...size, role: "img", "aria-label": title });
    const room = Math.min(130, width * 0.36);
    order.forEach((owner, i) => {
      const count = sold.get(owner) ?? 0;
      const long = ((width - room - 56) * count) / top;
      drawing.append(
        write(short(parties[owner], room), 0, i * 22 + 15, "start"),
        make("svg:rect", { class: "bar", x: room, y: i * 22 + 3, width: Math.max(0, long), height: 15 }),
        make("svg:text", { x: room + long + 6, y: i * 22 + 15 }, count),
      );
    });
    const more = places.length > order.length ? ` The ${order.length} of ${owners} that sold most are shown.` : "";
    const teller = parties[facts.chosen.teller];
    const counted = `${grouped(known)} of ${plural(facts.chosen.at.length, "point")} chosen`;
    return figure("shares", title, drawing, `${counted}, by the ${teller}’s transcript.${more}`);
  }

  function odometer(width) {
    const title = "ε spent of owners’ data";
    const without = (words) => figure("odometer", title, null, words);
    if (!ownersOdometer) return without("This session promises owners no ε towards each other.");
    const { rounds, epsilon } = ownersOdometer;
    const whole = epsilon[epsilon.length - 1];
    if (whole === 0) return without("ε = 0: nothing that owners are sent follows from other owners’ data.");
    const releases = charging ? valueOf(charging, at) ?? 0 : Math.min(roundAt(), facts.planned);
    const places = thinned(rounds.length);
    const [xs, ys] = [places.map((i) => rounds[i]), places.map((i) => epsilon[i])];
    const drawing = curve(width, xs, ys, releases, facts.planned, title);
    const spent = releases ? epsilonAt(ownersOdometer, releases) : 0;
    const told = `ε = ${spent.toPrecision(3)} of ${whole.toPrecision(3)}`;
    return figure("odometer", title, drawing, `${told}, after ${plural(releases, "release")}.`);
  }

  build();
  measure();
  if (live) at = total;
  if (window.location.hash) goTo(window.location.hash);
  draw();
  document.addEventListener("facts", (event) => renew(event.detail));
})();
