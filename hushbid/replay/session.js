// Draws a session at one place in its steps, `at`, from which all of it follows. Only the steps around it are drawn.
// Every text of the facts goes into the page as text. Where two sessions are on a page, `other` has the other's facts,
// and the ids of one end in `mark`.
const sessionOf = (facts, { mark = "", other = null } = {}) => {
  const { bytes, epsilonAt, grouped, make, odometerOf, plural, short, valueOf, write } = parts;
  const NOBODY = -1;
  const ALL_OWNERS = -2;
  const ROW = 30; // pixels between two steps
  const HEAD = 44; // above the first
  const NARROW = 640;
  const LANE = 84; // least pixels between two lanes
  const BESIDE = 960; // pixels from which two sessions stand beside each other, as in the style sheet
  let at = 0; // steps that are played

  // -- what the facts say ----------------------------------------------------------------------------------

  const { steps, parties, copies } = facts;
  const total = steps.round.length;
  const owners = parties.length - 2;
  const last = facts.rounds + 1; // the delivery and the end
  const starts = startsOfRounds();
  const hasUnnamed = steps.sender.some(
    (sender, i) => !steps.event[i] && (sender === NOBODY || steps.receiver[i] === NOBODY),
  );

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

  const ownersOdometer = odometerOf(facts, "add-remove-one");
  const targetOdometer = odometerOf(facts, "substitute-one");
  const where = make("p", { id: `where${mark}`, class: "where" });
  const now = make("p", { id: `now${mark}`, class: "said-now" });
  const stage = make("svg:svg", { id: `stage${mark}`, role: "img", "aria-labelledby": `now${mark}` });
  const chosenOwner = make(
    "select",
    { id: `owner${mark}` },
    ...parties.slice(2).map((name, i) => make("option", { value: i + 2 }, name)),
  );
  const own = parties.findIndex((name, i) => i >= 2 && copies[name] !== undefined);
  if (own > 0) chosenOwner.value = String(own);
  chosenOwner.addEventListener("change", () => draw(at));
  const cards = make("div", { class: "cards" });
  const { allBoughtBy, chosenBy, draw: drawPictures, pictures } = picturesOf(facts, { mark, other });

  // -- drawing ---------------------------------------------------------------------------------------------

  const roundOf = (step) => Math.min(steps.round[step], last);
  const roundAt = () => (at === 0 ? 0 : roundOf(at - 1));

  function draw(place) {
    at = place;
    if (at === 0) {
      where.textContent = `Before the first of ${plural(total, "step")}.`;
      now.textContent = "Nothing was said yet.";
    } else {
      const time = `${steps.seconds[at - 1].toFixed(2)} s`;
      where.textContent = `Step ${grouped(at)} of ${grouped(total)}, ${roundName(roundAt())}, ${time}.`;
      now.textContent = sentence(at - 1);
    }
    drawStage();
    drawCards();
    drawPictures(at, roundAt());
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
    const part = other && window.innerWidth < BESIDE ? 0.31 : 0.62; // of the window: one above the other
    const rows = Math.max(6, Math.floor((Math.min(560, window.innerHeight * part) - HEAD) / ROW));
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
    const arrow = { id: `head${mark}`, markerUnits: "userSpaceOnUse", orient: "auto", ...size };
    return make("svg:defs", {}, make("svg:marker", arrow, make("svg:path", { d: "M0,0 L8,4 L0,8 z" })));
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
        const pointed = { ...ends, "marker-end": `url(#head${mark})` };
        group.append(make("svg:line", { class: gone ? "arrow gone" : "arrow", ...pointed }));
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
    const title = owner ? [make("label", { for: `owner${mark}` }, "Owner "), chosenOwner] : [name];
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
      yield ["charged to the validation set", epsilon(targetOdometer, value("charged_target"))];
    }
    if (tracks.charged_rounds) {
      const whose = party >= 2 ? "charged to its own data, for the whole session" : "charged to owners’ data so far";
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
      const term = allBoughtBy(at) ? "points sold" : "points chosen";
      yield [term, `${grouped(sold)} (by the ${parties[facts.chosen.teller]}’s transcript)`];
    }
  }

  return { cards, chosenOwner, draw, last, now, pictures, roundOf, stage, starts, total, where };
};
