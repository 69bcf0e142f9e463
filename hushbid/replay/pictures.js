// The pictures of a session's purchase at one place in its steps. Every text of the facts goes into the page as text.
// Where two sessions are on a page, `other` has the other's facts, whose curves and bars have the same scale, and the
// ids of one end in `mark`.
const picturesOf = (facts, { mark, other }) => {
  const { curve, epsilonAt, grouped, make, odometerOf, plural, short, thinned, valueOf, write } = parts;
  const MOST_BARS = 12;
  const { copies, parties } = facts;
  const owners = parties.length - 2;
  const ownersOdometer = odometerOf(facts, "add-remove-one");
  const charging = Object.values(copies)
    .map((copy) => copy.tracks.charged_rounds)
    .find((track) => track?.value.length > 1);
  const pictures = make("div", { class: "pictures" });
  let at = 0; // steps that are played
  let number = 0; // the round of the last of them

  const countBefore = (known, place) => {
    let count = 0;
    while (count < known.length && known[count] < place) count += 1;
    return count;
  };
  const chosenBy = (place) => (facts.chosen ? countBefore(facts.chosen.at, place) : 0);

  // Whether the consumer has all that were chosen: they are bought from then on, and not before.
  const allBoughtBy = (place) => {
    const count = chosenBy(place);
    return count > 0 && countBefore(facts.chosen.delivered, place) >= count;
  };

  // The round of the last point that is known to be chosen, 0 before.
  const reached = () => {
    const known = chosenBy(at);
    return known ? facts.chosen.round[known - 1] : 0;
  };

  function draw(place, round) {
    at = place;
    number = round;
    const width = Math.max(240, Math.min(420, pictures.clientWidth || 360));
    pictures.replaceChildren(closeness(width), score(width), points(width), shares(width), odometer(width));
  }

  // A measure of the other session, whose pictures have this one's scale: 0 where there is none.
  const theirs = (of) => (other && of(other)) || 0;
  const highest = (values) => Math.max(...thinned(values.length).map((i) => values[i]));

  function countedBy(chosen) {
    const all = new Map();
    for (const owner of chosen.owner) all.set(owner, (all.get(owner) ?? 0) + 1);
    return all;
  }

  function figure(id, title, drawing, ...caption) {
    const parts = drawing ? [drawing] : [];
    const lines = caption.map((line) => make("figcaption", {}, line));
    return make("figure", { id: `${id}${mark}` }, make("h3", {}, title), ...parts, ...lines);
  }

  function closeness(width) {
    const title = "Distance to the validation set (MMD²)";
    const found = facts.closeness;
    if (!found) return figure("closeness", title, null, "Not in these transcripts: only the consumer’s has it.");
    let points = 0;
    while (points < found.round.length && found.round[points] <= reached()) points += 1;
    const places = thinned(found.mmd2.length);
    const [xs, ys] = [places.map((i) => i + 1), places.map((i) => found.mmd2[i])];
    const most = Math.max(found.mmd2.length, theirs(({ closeness }) => closeness?.mmd2.length));
    const high = theirs(({ closeness }) => closeness && highest(closeness.mmd2));
    const drawing = curve(width, xs, ys, points, most, title, { high });
    const told = points
      ? `${found.mmd2[points - 1].toPrecision(3)} after ${plural(points, "point")}.`
      : "No point was chosen yet.";
    const who =
      "Lower is closer. Only the consumer can work it out, from the points that it got. What owners are sent has " +
      "noise, so it need not fall in every round.";
    return figure("closeness", title, drawing, `${told} ${who}`);
  }

  // -- the model's score -----------------------------------------------------------------------------------

  // Bounds of an axis, a little wider than the values, on twentieths.
  function around(values) {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return { low: Math.floor((low - 0.02) * 20) / 20, high: Math.ceil((high + 0.02) * 20) / 20 };
  }

  const known = ({ value }) => value.filter((each) => each !== null);

  function score(width) {
    const found = facts.scores;
    if (typeof found === "string") return figure("score", "The model’s score", null, found);
    const right = found.metric === "accuracy";
    const title = right ? "The model’s accuracy" : "The model’s R²";
    const comparable = typeof other?.scores === "object" && other.scores.metric === found.metric ? other.scores : null;
    const places = found.value.map((_, i) => i).filter((i) => found.value[i] !== null);
    if (!places.length) return figure("score", title, null, "Nothing could be learned.", found.told.join(" "));
    let last = 0;
    while (last + 1 < found.round.length && found.round[last + 1] <= reached()) last += 1;
    const bounds = around([...known(found), ...(comparable ? known(comparable) : [])]);
    if (right) bounds.high = Math.min(1, bounds.high);
    const most = Math.max(found.points.at(-1), comparable ? comparable.points.at(-1) : 0);
    const [xs, ys] = [places.map((i) => found.points[i]), places.map((i) => found.value[i])];
    const drawing = curve(width, xs, ys, found.points[last], most, title, bounds);
    const part = (value) => (right ? `${(100 * value).toFixed(1)} %` : `R² ${value.toFixed(3)}`);
    const interval = () => `95 % interval ${part(found.low[last])} to ${part(found.high[last])}`;
    const with_ = found.points[last] ? `with ${plural(found.points[last], "point")}` : "with no point yet";
    const told =
      found.value[last] === null
        ? `Nothing could be learned ${with_}.`
        : `${part(found.value[last])}${right ? " right" : ""} ${with_} (${interval()}).`;
    return figure("score", title, drawing, told, found.told.join(" "));
  }

  // -- points ----------------------------------------------------------------------------------------------

  function points(width) {
    const title = "Points, by the first two components of φ";
    const found = facts.points_drawn;
    if (typeof found === "string") return figure("points", title, null, found);
    const spots = layOut(found, width);
    const there = ({ at: steps }, i) => steps.length === 0 || steps[i] < at;
    const now = ({ round }, i) => round[i] === number;
    const places = (cloud, ...tests) => cloud.x.map((_, i) => i).filter((i) => tests.every((test) => test(cloud, i)));
    const [offered, bought] = [places(found.offered, there), places(found.bought, there)];
    const [offeredNow, boughtNow] = [places(found.offered, there, now), places(found.bought, there, now)];
    const { height, inside, spot } = spots;
    const drawing = make("svg:svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", class: "points" });
    const dots = (kind, cloud, chosen) => {
      const path = chosen.map((i) => `M${spot(cloud.x[i], cloud.y[i]).join(",")}h0`).join("");
      drawing.append(make("svg:path", { class: `dots ${kind}`, d: path }));
    };
    dots("offered", found.offered, offered);
    dots("offered lit", found.offered, offeredNow);
    dots("wanted", found.wanted, places(found.wanted));
    dots("bought", found.bought, bought);
    dots("rim", found.bought, boughtNow);
    dots("bought", found.bought, boughtNow);
    const word = allBoughtBy(at) ? "bought" : "chosen";
    const keys = [
      ["wanted", found.wanted.x.length, `wanted: ${drawn(found.wanted, places(found.wanted))}`],
      ["offered", found.offered.x.length, `offered so far: ${drawn(found.offered, offered)}`],
      ["offered lit", found.offered.x.length, `offered in this round: ${drawn(found.offered, offeredNow)}`],
      ["bought", found.bought.x.length, `${word} so far: ${drawn(found.bought, bought)}`],
      ["rim", found.bought.x.length, `chosen in this round: ${drawn(found.bought, boughtNow)}`],
    ];
    const notes = [];
    if (found.mean) {
      const [x, y] = spot(...found.mean).map((value, i) => Math.max(9, Math.min([width, height][i] - 9, value)));
      drawing.append(make("svg:path", { class: "cross", d: cross(x, y) }));
      keys.push(["cross", 1, "released mean of the validation set"]);
      if (!inside(...found.mean)) notes.push("The released mean lies outside of the picture, by its noise.");
    }
    if (bought.length) {
      const [cx, cy] = spot(...found.means[bought.at(-1)]);
      drawing.append(make("svg:circle", { class: "ring", cx, cy, r: 7 }));
    }
    keys.push(["ring", found.means.length, `mean of what was ${word} so far`]);
    const told = keys.filter(([, count]) => count).map(([, , words]) => words);
    drawing.setAttribute("aria-label", `${title}: ${told.join("; ")}.`);
    const [first, second] = found.explained.map((each) => `${(100 * each).toFixed(0)} %`);
    const axes =
      `Points are near each other where the session’s kernel finds them alike. The axes have ${first} and ${second} ` +
      `of the variance of what is drawn${other ? ", and are this session’s own" : ""}.`;
    const made = figure("points", title, drawing, [...notes, axes, ...found.told].join(" "));
    drawing.after(legend(keys));
    made.classList.add("tall");
    return made;
  }

  const drawn = (cloud, chosen) => `${grouped(chosen.length)}${cloud.x.length < cloud.of ? " of those drawn" : ""}`;

  const cross = (x, y) => `M${x - 7},${y}h14M${x},${y - 7}v14`;

  // One scale for both axes, so that distances are true; what lies far out by noise alone does not set it.
  function layOut(found, width) {
    const clouds = [found.wanted, found.offered, found.bought];
    const [xs, ys] = [clouds.flatMap(({ x }) => x), clouds.flatMap(({ y }) => y)];
    const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const edge = 12;
    const scale = Math.min((width - 2 * edge) / (right - left || 1), 300 / (high - low || 1));
    const height = Math.max(80, Math.round(scale * (high - low) + 2 * edge));
    const spot = (x, y) => [
      Number((width / 2 + scale * (x - (left + right) / 2)).toFixed(1)),
      Number((height / 2 - scale * (y - (low + high) / 2)).toFixed(1)),
    ];
    const inside = (x, y) => {
      const [across, down] = spot(x, y);
      return across >= 0 && across <= width && down >= 0 && down <= height;
    };
    return { height, inside, spot };
  }

  function legend(keys) {
    const sign = (kind) => {
      const size = { viewBox: "0 0 18 18", width: 18, height: 18, "aria-hidden": "true" };
      const marks = {
        cross: () => [make("svg:path", { class: "cross", d: cross(9, 9) })],
        ring: () => [make("svg:circle", { class: "ring", cx: 9, cy: 9, r: 7 })],
        rim: () => ["rim", "bought"].map((each) => make("svg:path", { class: `dots ${each}`, d: "M9,9h0" })),
      };
      const made = marks[kind]?.() ?? [make("svg:path", { class: `dots ${kind}`, d: "M9,9h0" })];
      return make("svg:svg", size, ...made);
    };
    const lines = keys.filter(([, count]) => count).map(([kind, , words]) => make("li", {}, sign(kind), words));
    return make("ul", { class: "legend" }, ...lines);
  }

  // -- shares and ε ----------------------------------------------------------------------------------------

  function shares(width) {
    const title = "Points by owner";
    if (!facts.chosen) {
      const who = "Not in these transcripts: the curator’s has it, and the consumer’s after the delivery.";
      return figure("shares", title, null, who);
    }
    const count = chosenBy(at);
    const sold = new Map();
    const all = countedBy(facts.chosen);
    facts.chosen.owner.forEach((owner, i) => {
      if (i < count) sold.set(owner, (sold.get(owner) ?? 0) + 1);
    });
    const places = parties.map((_, i) => i).slice(2);
    const sales = (owner) => all.get(owner) ?? 0;
    const order = places.length > MOST_BARS ? places.sort((a, b) => sales(b) - sales(a)).slice(0, MOST_BARS) : places;
    const top = Math.max(1, ...all.values(), theirs(({ chosen }) => chosen && Math.max(...countedBy(chosen).values())));
    const height = order.length * 22 + 4;
    const size = { viewBox: `0 0 ${width} ${height}`, width, height };
    const drawing = make("svg:svg", { ...size, role: "img", "aria-label": title });
    const room = Math.min(130, width * 0.36);
    order.forEach((owner, i) => {
      const points = sold.get(owner) ?? 0;
      const long = ((width - room - 56) * points) / top;
      drawing.append(
        write(short(parties[owner], room), 0, i * 22 + 15, "start"),
        make("svg:rect", { class: "bar", x: room, y: i * 22 + 3, width: Math.max(0, long), height: 15 }),
        make("svg:text", { x: room + long + 6, y: i * 22 + 15 }, points),
      );
    });
    const more = places.length > order.length ? ` The ${order.length} of ${owners} that sold most are shown.` : "";
    const teller = parties[facts.chosen.teller];
    const counted = `${grouped(count)} of ${plural(facts.chosen.at.length, "point")} chosen`;
    return figure("shares", title, drawing, `${counted}, by the ${teller}’s transcript.${more}`);
  }

  function odometer(width) {
    const title = "ε of owners’ data, from each other";
    const without = (words) => figure("odometer", title, null, words);
    if (!ownersOdometer) return without("This session promises owners no ε towards each other.");
    const { rounds, epsilon } = ownersOdometer;
    const whole = epsilon[epsilon.length - 1];
    if (whole === 0) return without("ε = 0: nothing that owners are sent follows from other owners’ data.");
    const releases = charging ? valueOf(charging, at) ?? 0 : Math.min(number, facts.planned);
    const places = thinned(rounds.length);
    const [xs, ys] = [places.map((i) => rounds[i]), places.map((i) => epsilon[i])];
    const most = Math.max(facts.planned, theirs(({ planned }) => planned));
    const high = theirs((each) => odometerOf(each, "add-remove-one")?.epsilon.at(-1));
    const drawing = curve(width, xs, ys, releases, most, title, { high });
    const spent = releases ? epsilonAt(ownersOdometer, releases) : 0;
    const told = `ε = ${spent.toPrecision(3)} of ${whole.toPrecision(3)}`;
    return figure("odometer", title, drawing, `${told}, after ${plural(releases, "release")}.`);
  }

  return { allBoughtBy, chosenBy, draw, pictures };
};
