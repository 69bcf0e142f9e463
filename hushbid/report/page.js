"use strict";

// Draws every plot of the page in its place, in the colours of the page, and again at the width of the paper when the
// page is printed.
(async function () {
  const embedded = (id) => JSON.parse(document.getElementById(id).textContent);
  const places = Array.from(document.querySelectorAll(".plot"));
  const scheme = window.matchMedia("(prefers-color-scheme: dark)");
  const dark = new Map(Object.entries(embedded("dark")));
  const coloured = [];
  const drawn = [];

  async function unpackProgram() {
    const packed = atob(document.getElementById("program").textContent);
    const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  }

  // What has colours is one, a list of them, or an object whose `value` is one.
  function inTheDark(value) {
    if (Array.isArray(value)) return value.some((each) => dark.has(each)) ? value.map(inTheDark) : value;
    if (dark.has(value?.value)) return { ...value, value: dark.get(value.value) };
    return dark.get(value) ?? value;
  }

  function findColours(plot) {
    for (const model of plot.all_models) {
      for (const { attr } of model) {
        if (!/color|palette/.test(attr)) continue;
        const light = model[attr];
        const other = inTheDark(light);
        if (other !== light) coloured.push([model, attr, light, other]);
      }
    }
  }

  function colour(isDark) {
    for (const [model, attr, light, other] of coloured) model[attr] = isDark ? other : light;
  }

  // Says in words what the cells of the map mean.
  function addStates(plot) {
    for (const source of plot.all_models) {
      if (source.name === "map") {
        const names = embedded("figures").rounds.map.states.map(
          (row) => [Array.from(row, (letter) => source.tags[0][letter])],
        );
        source.data = { ...source.data, state: names };
      }
    }
  }

  async function draw() {
    const plots = embedded("plots");
    await unpackProgram();
    Bokeh.logger.set_level("warn"); // it says of each document that it is drawn
    const { Document } = Bokeh.require("document");
    for (const place of places) {
      const plot = Document.from_json(plots[place.id.replace("plot-", "")]);
      addStates(plot);
      findColours(plot);
      colour(scheme.matches);
      const [view] = await Bokeh.embed.add_document_standalone(plot, place);
      drawn.push(view);
    }
  }

  // At once, for the browser prints what is there when the listener returns; Bokeh would draw with the next frame.
  function print(onPaper) {
    document.body.classList.toggle("paper", onPaper);
    colour(scheme.matches && !onPaper);
    for (const view of drawn) {
      view.after_resize();
      for (const plot of view.child_views.length ? view.child_views : [view]) {
        for (const part of plot.renderer_views.values()) part.set_visuals?.();
        plot.invalidate_painters();
        plot.repaint();
      }
    }
  }

  try {
    await draw();
  } catch (error) {
    for (const place of places) place.textContent = `This browser cannot draw the plots: ${error.message}`;
    throw error;
  }
  scheme.addEventListener("change", () => colour(scheme.matches));
  window.addEventListener("beforeprint", () => print(true));
  window.addEventListener("afterprint", () => print(false));
  document.documentElement.setAttribute("data-drawn", String(places.length));
})();
