// Keeps a page of a session that runs up to date: it asks the server that it is from, once a second, and nobody else.
// Every text goes into the page as text.
(function () {
  const { make, read } = parts;
  const EACH = 1000; // milliseconds between two questions
  const TRIES = 5; // that may fail before it stops asking
  const session = document.querySelector("meta[name='hushbid-session']").content; // empty while it waits
  const state = make("p", { id: "live-state", role: "status" }, "Asking for what parties do …");
  const table = make("div", { id: "live-parties", class: "table" });
  const notices = make("div", { id: "live-notices" });
  document.getElementById("live").append(state, table, notices);
  let version = 0;
  let failed = 0;
  let over = false;

  // A terminal shows these texts too, with code between backticks.
  const coded = (text) => text.split("`").map((part, place) => (place % 2 ? make("code", {}, part) : part));

  function show(told) {
    over = told.over;
    const now = told.over ? "The session is over." : told.begun ? "The session runs." : "No party has begun yet.";
    if (state.textContent !== now) state.textContent = now; // a screen reader says what changes
    const cells = (tag, row) => make("tr", {}, ...row.map((text) => make(tag, {}, text)));
    const rows = told.parties.map((row) => cells("td", row));
    for (const [name, why] of told.awaited) rows.push(make("tr", {}, make("td", {}, name), make("td", {}, why)));
    table.replaceChildren(make("table", {}, make("thead", {}, cells("th", told.titles)), make("tbody", {}, ...rows)));
    notices.replaceChildren(
      ...told.notices.map(({ title, lines, alert }) => {
        const list = make("ul", {}, ...lines.map((line) => make("li", {}, ...coded(line))));
        return make("div", { class: alert ? "notice alert" : "notice", role: "note" }, make("strong", {}, title), list);
      }),
    );
  }

  async function ask() {
    const answer = await fetch(`facts?since=${version}`, { cache: "no-store" });
    if (!answer.ok) throw new Error(`the server says ${answer.status}`);
    failed = 0;
    if (answer.status === 204) return;
    const told = read(await answer.text());
    if (told.facts !== null && told.facts.session !== session) {
      window.location.reload(); // the page waited; now it has something to show
      return;
    }
    version = told.version;
    show(told);
    if (told.facts !== null) document.dispatchEvent(new CustomEvent("facts", { detail: told.facts }));
  }

  async function askAgain() {
    const drawn = session === "" || document.documentElement.dataset.drawn !== undefined;
    try {
      if (drawn) await ask();
    } catch (error) {
      failed += 1;
      if (failed >= TRIES) {
        const last = `Nothing new can be asked for (${error.message}): this is what was known last.`;
        state.textContent = over ? `The session is over. ${last}` : last;
        return;
      }
    }
    window.setTimeout(askAgain, EACH);
  }

  askAgain();
})();
