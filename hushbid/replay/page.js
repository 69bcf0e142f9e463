// Plays the steps of a session, or of two on one course: one place in them, `at`, from which everything follows.
(async function () {
  const { make, plural, unpack } = parts;
  const SPEEDS = [1, 2, 5, 20, 100];

  const player = document.getElementById("player");
  const live = document.getElementById("live") !== null; // newer facts come while the page is open
  let facts;
  let beside = null;
  try {
    facts = await unpack("facts");
    if (document.getElementById("beside")) beside = await unpack("beside");
  } catch (error) {
    player.textContent = `This browser cannot read the session in this page: ${error.message}`;
    throw error;
  }

  let sessions = beside
    ? [sessionOf(facts, { other: beside.facts }), sessionOf(beside.facts, { mark: "-b", other: facts })]
    : [sessionOf(facts)];
  let course, last, roundOf, starts, total, byRound;
  setOut();

  function setOut() {
    course = beside ? joined(sessions) : { ...sessions[0], placeIn: (_, place) => place };
    ({ last, roundOf, starts, total } = course);
    byRound = last > 2; // the last is the delivery and the end
  }

  // Two sessions on one course: each round is as long as the longer of its two, and who has less to say waits.
  function joined(both) {
    const last = Math.max(...both.map((each) => each.last));
    const startIn = (each, number) => each.starts[Math.min(number, each.last + 1)];
    const starts = [0];
    for (let number = 0; number <= last; number += 1) {
      const long = both.map((each) => startIn(each, number + 1) - startIn(each, number));
      starts.push(starts[number] + Math.max(...long));
    }
    const roundOf = (step) => {
      let low = 0;
      let high = last;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (starts[middle] <= step) low = middle;
        else high = middle - 1;
      }
      return low;
    };
    const placeIn = (each, place) => {
      if (place === 0) return 0;
      const number = roundOf(place - 1);
      return Math.min(startIn(each, number) + place - starts[number], startIn(each, number + 1));
    };
    return { last, placeIn, roundOf, starts, total: starts[last + 1] };
  }

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
  const said = make("p", { id: "said", class: "unseen", role: "status" });
  const link = make("a", { id: "moment", href: "#" }, "Link to this moment");

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
    const slide = make("div", { class: "slide" }, sliderName, slider);
    if (beside) buildTwo(controls, slide, help);
    else buildOne(controls, slide, help);
    slider.addEventListener("input", stopAnd(slid));
    document.addEventListener("keydown", pressed);
    window.addEventListener("hashchange", () => goTo(window.location.hash));
    window.addEventListener("resize", draw);
  }

  function buildOne(controls, slide, help) {
    const [{ cards, now, pictures, stage, where }] = sessions;
    player.append(
      controls,
      slide,
      where,
      now,
      ...(live ? [more] : []),
      said,
      make("div", { class: "table-of-two" }, make("div", { class: "stage" }, stage), cards),
      help,
      make("section", {}, make("h2", {}, "How the purchase went, up to this moment"), pictures),
    );
  }

  // What belongs together is in one row, so that what is compared is one above the other where there is no room.
  function buildTwo(controls, slide, help) {
    const names = [`A: ${facts.name}`, `B: ${beside.facts.name}`];
    const row = (level, content) =>
      make(
        "div",
        { class: "two" },
        ...sessions.map((each, i) => make("div", {}, make(level, { class: "whose" }, names[i]), ...content(each))),
      );
    const { difference } = beside;
    if (difference) {
      const moment = `#round=${difference.round}&message=${difference.message}`;
      controls.append(button("difference", "First difference", "Go to where they first differ", () => goTo(moment)));
    }
    player.append(
      controls,
      slide,
      said,
      row("h2", ({ now, stage, where }) => [where, now, make("div", { class: "stage" }, stage)]),
      help,
      row("h3", ({ cards }) => [cards]),
      make(
        "section",
        {},
        make("h2", {}, "How the purchases went, up to this moment"),
        row("h3", ({ pictures }) => [pictures]),
      ),
    );
  }

  // -- moving ----------------------------------------------------------------------------------------------

  let at = 0; // steps that are played
  let timer = null;
  let lastSaid = 0;

  // At the start of a round its first message is played; the start of all is before anything.
  const afterStartOf = (number) => (number <= 0 ? 0 : Math.min(starts[Math.min(number, last)] + 1, total));
  const roundAt = () => (at === 0 ? 0 : roundOf(at - 1));

  function seek(place) {
    at = Math.max(0, Math.min(total, place));
    draw();
  }

  // Newer facts of the same session: who stood at the end follows it, and who did not stays at the same step.
  function renew(newer) {
    const follows = at >= total && timer === null;
    const before = facts.steps.teller;
    const [old] = sessions;
    const focused = document.activeElement === old.chosenOwner;
    facts = newer;
    sessions = [sessionOf(facts)];
    const [fresh] = sessions;
    fresh.chosenOwner.value = old.chosenOwner.value;
    for (const each of ["cards", "now", "pictures", "stage", "where"]) old[each].replaceWith(fresh[each]);
    setOut();
    at = follows ? total : sameStep(before, facts.steps.teller);
    measure();
    draw();
    if (focused) fresh.chosenOwner.focus();
  }

  // Steps come in between, but those that one transcript tells keep their order.
  function sameStep(before, tellers) {
    if (at === 0) return 0;
    const teller = before[at - 1];
    let left = before.slice(0, at).filter((each) => each === teller).length;
    const place = tellers.findIndex((each) => each === teller && (left -= 1) === 0);
    return place < 0 ? Math.min(at, total) : place + 1;
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
    if (byRound) slider.value = number;
    else slider.value = at;
    for (const each of sessions) each.draw(course.placeIn(each, at));
    const later = total - at;
    more.textContent = later ? `There is more: ${plural(later, "later step")}. End follows.` : "New steps follow.";
    slider.setAttribute("aria-valuetext", told(({ where }) => where.textContent));
    link.setAttribute("href", `#round=${number}&message=${at - starts[number]}`);
    say();
  }

  // Words of the session, or of both.
  const told = (words) => sessions.map((each, i) => (beside ? `${"AB"[i]}: ` : "") + words(each)).join(" ");

  function say() {
    const time = performance.now();
    const hurries = timer !== null || (live && at === total);
    if (hurries && time - lastSaid < 4000) return; // nobody can listen as fast as it plays
    lastSaid = time;
    said.textContent = told(({ now, where }) => `${where.textContent} ${now.textContent}`);
  }

  build();
  if (live) at = total;
  slider.max = byRound ? last : total;
  if (window.location.hash) goTo(window.location.hash);
  draw();
  measure();
  document.addEventListener("facts", (event) => renew(event.detail));
})();
